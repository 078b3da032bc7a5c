"""Projection of many parameter vectors into the consistent set at once, with base values kept if possible.

The base values b of a draw are random values from the posterior. First case: the point nearest to the estimate with
base values b is consistent. The other parameters are then sampled from the prior inside the set, along directions that
keep b, by elliptical slice sampling (Murray, Adams and MacKay 2010).

Second case: that point is not consistent. The draw becomes the consistent x that minimises |W (A x - b)|^2 + weight |x
- drawn|^2, where W whitens by the posterior and A maps to base values. As the weight is small, x mainly changes in the
null space of A, and b changes only if no consistent robot has these base values. The problem is solved by the
alternating direction method of multipliers (Boyd et al. 2011, s. 5.2). All draws share one matrix, so a step is one
product and one batch of 4 x 4 eigenvalue problems.

If many draws change b, their covariance shrinks. The draws are then alternately mapped to the posterior's mean and
covariance, by the linear map nearest to the identity, and projected into the consistent set.

Mean and covariance cannot always be matched together. If the estimate is on the border of the set, consistent robots of
this mean are all in one face of the border and have no variance across it. The target covariance is then c times the
posterior's. The factor c gives torques their stated variance: combinations that consistency leaves free have more
spread.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dynid.arrays import Array, Bools
from dynid.estimate.draws.body_scaling import BodyScaling

_SPLITTING_PENALTY = 1.0  # penalty of the splitting, in squared standard errors per squared relative change of a link
_SPLITTING_RELAXATION = 1.6  # over-relaxation of the alternating direction method (Boyd et al. 2011, s. 3.4.3)
_NULL_WEIGHT = 1e-4  # weight of the distance from the drawn point, relative to squared standard errors
_FIRST_STEPS = 60  # steps of this method; on real logs the distance is then within 0.3 standard errors of the smallest
_ROUND_STEPS = 10  # steps of this method after each matching of moments
_MOMENT_ROUNDS = 14  # matchings of the moments; chosen on the Panda and LWR logs
_ROUNDS_OF_POSTERIOR = 3  # first matchings, toward the posterior covariance, because draws have too little spread
_LONG_ROUNDS = 2  # last matchings, with more steps after them
_LONG_STEPS = 150  # steps after the last matchings, needed for base values that are known to 1e-3 of a link
_FREE_SHARE = 0.9  # share of the target variance: above it, consistency does not restrict a combination
_MAX_INFLATION = 2.0  # largest factor on the target variance: unrestricted combinations get 1.4 times standard errors
_SLICE_STEPS = 12  # steps of elliptical slice sampling, from the middle of the prior
_MAX_SHRINKS = 60  # reductions of an ellipse's bracket, which is then shorter than rounding errors
_SAME_BASE = 1e-6  # standard errors below which base values count as kept
_MAX_STRETCH = 30.0  # largest factor on one direction in one matching of moments, for draws with nearly no spread


@dataclass(frozen=True, eq=False)
class BaseMap:
    """Linear map rows @ x from scaled parameters x to whitened base values, standard normal about `centre`.

    Attributes:
        rows: (combinations, parameters), W A in the coordinates of `BodyScaling`; those of known values last.
        centre: (combinations,), whitened values of the estimate.
        spread: number of combinations that are drawn; the others are known.
        torque_weight: W (spread, spread) of unit trace: trace(W C) is the torque variance, relative to the stated one,
            of drawn combinations with covariance C, averaged over joints.
    """

    rows: Array
    centre: Array
    spread: int
    torque_weight: Array

    def null_part(self, x: Array) -> Array:
        """Return the component of changes x (draws, parameters) that does not change the base values."""
        return x - (x @ self.rows.T) @ self._right_inverse.T

    def onto(self, x: Array, targets: Array) -> Array:
        """Return the points nearest to x (draws, parameters) with whitened base values `targets` (draws, k)."""
        return x + (targets - x @ self.rows.T) @ self._right_inverse.T

    @cached_property
    def _right_inverse(self) -> Array:
        return np.asarray(np.linalg.pinv(self.rows, rcond=1e-13))


@dataclass(frozen=True, eq=False)
class ConsistentDraws:
    """Random draws inside the consistent set.

    Attributes:
        x: draws in scaled coordinates (draws, parameters).
        as_drawn: mask of draws that were consistent as drawn (draws,).
        kept_base: mask of draws with exactly the drawn base values (draws,).
        distance: distance of the base values from the drawn ones in standard errors (draws,).
        rounds: number of matchings of moments.
        inflation: target variance of combinations that consistency does not restrict, relative to the posterior.
    """

    x: Array
    as_drawn: Bools
    kept_base: Bools
    distance: Array
    rounds: int = 0
    inflation: float = 1.0


def made_consistent(scaling: BodyScaling, base: BaseMap, centre: Array, prior: Array, targets: Array,
                    rng: np.random.Generator) -> ConsistentDraws:
    """Return consistent draws with the drawn base values, wherever a consistent robot has them.

    Args:
        scaling: coordinates.
        base: the determined combinations.
        centre: (parameters,), the estimate.
        prior: (draws, parameters), draws of the prior as differences to the centre.
        targets: (draws, combinations), whitened base values that were drawn.
        rng: random generator for sampling the prior inside the set.
    """
    middle = base.onto(np.tile(centre, (len(prior), 1)), targets)
    # The projection of a draw of the prior on the base values is a draw of the prior given these values.
    drawn = middle + base.null_part(prior)
    as_drawn, reachable = scaling.is_consistent(drawn), scaling.is_consistent(middle)
    x, distance = drawn.copy(), np.zeros(len(drawn))
    sliced = reachable & ~as_drawn
    if sliced.any():
        size = float(np.sqrt(np.mean(prior ** 2)))
        x[sliced] = _sampled_inside(scaling, base, middle[sliced], size, rng)
    outside = ~reachable & ~as_drawn
    if outside.any():
        splitting = _Splitting.at(scaling, base, drawn[outside], scaling.projected(drawn[outside]))
        found = splitting.after(targets[outside], _FIRST_STEPS).inside
        x[outside] = _with_base_kept(scaling, base, found, targets[outside])
        distance[outside] = np.linalg.norm(x[outside] @ base.rows.T - targets[outside], axis=1)
    return ConsistentDraws(x, as_drawn, distance <= _SAME_BASE, distance)


def _sampled_inside(scaling: BodyScaling, base: BaseMap, middle: Array, size: float, rng: np.random.Generator) -> Array:
    """Return draws (draws, parameters) of a normal distribution of standard deviation `size` about consistent
    points, inside the set, along directions that keep the base values: elliptical slice sampling."""
    away = np.zeros_like(middle)
    for _ in range(_SLICE_STEPS):
        other = base.null_part(size * rng.standard_normal(middle.shape))
        angle = rng.uniform(0.0, 2.0 * np.pi, len(middle))
        low, high = angle - 2.0 * np.pi, angle.copy()
        open_ = np.arange(len(middle))
        moved = away.copy()
        for _ in range(_MAX_SHRINKS):
            tried = away[open_] * np.cos(angle[open_])[:, None] + other[open_] * np.sin(angle[open_])[:, None]
            inside = scaling.is_consistent(middle[open_] + tried)
            moved[open_[inside]] = tried[inside]
            open_ = open_[~inside]
            if not len(open_):
                break
            below = angle[open_] < 0.0
            low[open_[below]], high[open_[~below]] = angle[open_[below]], angle[open_[~below]]
            angle[open_] = rng.uniform(low[open_], high[open_])
        away = moved
    return middle + away


def with_matched_moments(scaling: BodyScaling, base: BaseMap, found: ConsistentDraws, targets: Array
                         ) -> ConsistentDraws:
    """Return the draws with sample mean and covariance of base values as near to the posterior's as the set allows.

    If the set restricts some combinations, the covariance is inflated so that torques have the stated variance.

    targets: (draws, combinations), the whitened values that were drawn.
    """
    splitting, inflation = _Splitting.at(scaling, base, found.x, found.x), 1.0
    for k in range(_MOMENT_ROUNDS):
        away = (splitting.inside @ base.rows.T)[:, :base.spread]
        away = away - away.mean(axis=0)
        size, directions = np.linalg.eigh(away.T @ away / max(len(away) - 1, 1))
        if k >= _ROUNDS_OF_POSTERIOR:
            # After few steps, a variance above the target is an error that later steps remove.
            is_exact = k > _MOMENT_ROUNDS - _LONG_ROUNDS
            weights = np.einsum("ik,ij,jk->k", directions, base.torque_weight, directions)
            inflation = _inflation(size if is_exact else np.minimum(size, inflation), weights, inflation)
        # Symmetric, so it is the map nearest to the identity among all maps to this covariance.
        stretch = np.sqrt(inflation / np.maximum(size, _MAX_STRETCH ** -2))
        aims = np.tile(base.centre, (len(away), 1))
        aims[:, :base.spread] += away @ ((directions * stretch) @ directions.T)
        splitting = splitting.after(aims, _ROUND_STEPS if k < _MOMENT_ROUNDS - _LONG_ROUNDS else _LONG_STEPS)
    distance = np.linalg.norm(splitting.inside @ base.rows.T - targets, axis=1)
    return replace(found, x=splitting.inside, distance=distance, kept_base=distance <= _SAME_BASE,
                   rounds=_MOMENT_ROUNDS, inflation=inflation)


def _inflation(size: Array, weights: Array, before: float) -> float:
    """Return the factor on the posterior variance with which torques of the draws have the posterior's variance.

    Args:
        size: (directions,), variances of the draws along principal directions, relative to the posterior's.
        weights: (directions,), share of each direction in the variance of torques.
        before: the factor used so far.
    """
    free = float(weights[size >= _FREE_SHARE * before].sum())
    lacking = 1.0 - float(weights @ size)
    return float(np.clip(before + lacking / free, 1.0, _MAX_INFLATION)) if free > 0.0 else before


def _with_base_kept(scaling: BodyScaling, base: BaseMap, x: Array, targets: Array) -> Array:
    """Return points x (draws, parameters), moved to the target base values wherever the result is consistent."""
    exact = base.onto(x, targets)
    return np.where(scaling.is_consistent(exact)[:, None], exact, x)


@dataclass(frozen=True, eq=False)
class _Splitting:
    """State of the alternating direction method: consistent points and scaled multipliers, both (draws, parameters)."""

    scaling: BodyScaling
    base: BaseMap
    solver: Array
    drawn: Array
    inside: Array
    multipliers: Array

    @staticmethod
    def at(scaling: BodyScaling, base: BaseMap, drawn: Array, inside: Array) -> _Splitting:
        normal = base.rows.T @ base.rows + (_NULL_WEIGHT + _SPLITTING_PENALTY) * np.eye(base.rows.shape[1])
        solver = np.asarray(np.linalg.inv(normal))
        return _Splitting(scaling, base, 0.5 * (solver + solver.T), drawn, inside, np.zeros_like(drawn))

    def after(self, targets: Array, steps: int) -> _Splitting:
        """Return the state after some steps toward whitened base values `targets` (draws, combinations)."""
        fixed = targets @ self.base.rows + _NULL_WEIGHT * self.drawn
        inside, multipliers = self.inside, self.multipliers
        for _ in range(steps):
            fitted = (fixed + _SPLITTING_PENALTY * (inside - multipliers)) @ self.solver
            relaxed = _SPLITTING_RELAXATION * fitted + (1.0 - _SPLITTING_RELAXATION) * inside
            inside = self.scaling.projected(relaxed + multipliers)
            multipliers = multipliers + relaxed - inside
        return replace(self, inside=inside, multipliers=multipliers)
