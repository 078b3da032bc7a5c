"""Many parameter vectors moved into the consistent set at once, base values kept where that is possible.

A draw with base values b becomes the consistent x with least |W (A x - b)|^2 + weight |x - drawn|^2: W whitens by the
posterior, A maps to base values. As the second weight is small, x moves in the null space of A first, which costs
nothing, and leaves b only where no consistent robot has these base values. All draws share one matrix, so a step of the
alternating direction method of multipliers (Boyd et al. 2011, s. 5.2) is one product and one batch of 4 x 4
eigenvalue problems.

Where many draws leave b, their moments shrink. Alternately the set of draws is mapped linearly to the posterior's mean
and covariance, by the map nearest to the identity, and brought back into the consistent set. This is a projection in
turn onto two sets: those with the moments, and those of consistent draws.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dynid.arrays import Array, Bools
from dynid.estimate.draws.body_scaling import BodyScaling

_PENALTY = 1.0  # of the splitting, in squared standard errors per squared relative change of a link
_RELAXATION = 1.6  # of the splitting (Boyd et al. 2011, s. 3.4.3)
_NULL_WEIGHT = 1e-4  # of the distance from the drawn point, beside squared standard errors
_FIRST_STEPS = 60  # of the splitting; on real logs the distance is then within 0.3 standard errors of the smallest one
_ROUND_STEPS = 10  # of the splitting after each matching of moments
_MOMENT_ROUNDS = 20  # more change the spread of torques by less than 1 %
_SAME_BASE = 1e-6  # standard errors below which base values count as kept
_MAX_STRETCH = 30.0  # of one direction in one matching of moments, where draws have nearly no spread


@dataclass(frozen=True, eq=False)
class BaseMap:
    """The determined combinations as rows of x: whitened = rows @ x, a standard normal about `centre` in the posterior.

    Attributes:
        rows: (combinations, parameters), W A in the coordinates of `BodyScaling`; those of known values last.
        centre: (combinations,), whitened values of the estimate.
        spread: number of combinations that are drawn; the others are known and have no spread.
    """

    rows: Array
    centre: Array
    spread: int

    def onto(self, x: Array, targets: Array) -> Array:
        """Return x (draws, parameters) moved by the shortest way to whitened values `targets` (draws, combinations)."""
        return x + (targets - x @ self.rows.T) @ self._right_inverse.T

    @cached_property
    def _right_inverse(self) -> Array:
        return np.asarray(np.linalg.pinv(self.rows, rcond=1e-13))


@dataclass(frozen=True, eq=False)
class ConsistentDraws:
    """Draws inside the consistent set.

    Attributes:
        x: (draws, parameters), in scaled coordinates.
        as_drawn: (draws,), which were consistent as they were drawn.
        kept_base: (draws,), which have the base values that were drawn for them.
        distance: (draws,), standard errors between the base values and those drawn.
        rounds: how often moments were matched.
    """

    x: Array
    as_drawn: Bools
    kept_base: Bools
    distance: Array
    rounds: int = 0


def made_consistent(scaling: BodyScaling, base: BaseMap, drawn: Array, targets: Array) -> ConsistentDraws:
    """Return consistent draws near given ones, base values kept where a consistent robot has them.

    Args:
        scaling: coordinates.
        base: the determined combinations.
        drawn: (draws, parameters), with base values `targets`.
        targets: (draws, combinations), whitened.
    """
    inside = scaling.is_consistent(drawn)
    x = drawn.copy()
    distance = np.zeros(len(x))
    if not inside.all():
        outside = ~inside
        splitting = _Splitting.at(scaling, base, drawn[outside], scaling.projected(drawn[outside]))
        splitting = splitting.after(targets[outside], _FIRST_STEPS)
        x[outside] = _with_base_kept(scaling, base, splitting.inside, targets[outside])
        distance[outside] = np.linalg.norm(x[outside] @ base.rows.T - targets[outside], axis=1)
    return ConsistentDraws(x, inside, distance <= _SAME_BASE, distance)


def with_matched_moments(scaling: BodyScaling, base: BaseMap, found: ConsistentDraws, targets: Array
                         ) -> ConsistentDraws:
    """Return the draws with sample mean and covariance of base values as near to the posterior's as the set allows.

    targets: (draws, combinations), the whitened values that were drawn.
    """
    splitting = _Splitting.at(scaling, base, found.x, found.x)
    for _ in range(_MOMENT_ROUNDS):
        splitting = splitting.after(_matched(splitting.inside @ base.rows.T, base), _ROUND_STEPS)
    distance = np.linalg.norm(splitting.inside @ base.rows.T - targets, axis=1)
    return replace(found, x=splitting.inside, distance=distance, kept_base=distance <= _SAME_BASE,
                   rounds=_MOMENT_ROUNDS)


def _matched(values: Array, base: BaseMap) -> Array:
    """Whitened values (draws, combinations) mapped to the posterior's mean and covariance, changed as little as can
    be."""
    away = (values - values.mean(axis=0))[:, :base.spread]
    size, directions = np.linalg.eigh(away.T @ away / max(len(away) - 1, 1))
    stretch = 1.0 / np.sqrt(np.maximum(size, _MAX_STRETCH ** -2))
    found = np.tile(base.centre, (len(values), 1))
    found[:, :base.spread] += away @ ((directions * stretch) @ directions.T)
    return found


def _with_base_kept(scaling: BodyScaling, base: BaseMap, x: Array, targets: Array) -> Array:
    """The points with exactly the target base values where that leaves them consistent."""
    exact = base.onto(x, targets)
    return np.where(scaling.is_consistent(exact)[:, None], exact, x)


@dataclass(frozen=True, eq=False)
class _Splitting:
    """State of the alternating direction method: consistent points and scaled multipliers (draws, parameters)."""

    scaling: BodyScaling
    base: BaseMap
    solver: Array
    drawn: Array
    inside: Array
    multipliers: Array

    @staticmethod
    def at(scaling: BodyScaling, base: BaseMap, drawn: Array, inside: Array) -> _Splitting:
        normal = base.rows.T @ base.rows + (_NULL_WEIGHT + _PENALTY) * np.eye(base.rows.shape[1])
        solver = np.asarray(np.linalg.inv(normal))
        return _Splitting(scaling, base, 0.5 * (solver + solver.T), drawn, inside, np.zeros_like(drawn))

    def after(self, targets: Array, steps: int) -> _Splitting:
        """The state after some steps toward whitened base values `targets` (draws, combinations)."""
        fixed = targets @ self.base.rows + _NULL_WEIGHT * self.drawn
        inside, multipliers = self.inside, self.multipliers
        for _ in range(steps):
            fitted = (fixed + _PENALTY * (inside - multipliers)) @ self.solver
            relaxed = _RELAXATION * fitted + (1.0 - _RELAXATION) * inside
            inside = self.scaling.projected(relaxed + multipliers)
            multipliers = multipliers + relaxed - inside
        return replace(self, inside=inside, multipliers=multipliers)
