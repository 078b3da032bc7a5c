"""Bayesian prior from a nominal model: its metric, and the choice of its strength by the evidence of the data.

The entropic prior gives the matrix P_i of body i the density of a Wishart distribution whose mode is the nominal one,

    p(P_i) ~ exp(-strength (tr(P0_i^-1 P_i) - log det P_i)),

whose logarithm is the log-det divergence and whose integral has a closed form. The Euclidean prior is normal in the ten
parameters, each scaled by the nominal body's own mass and size. For either prior, 1/sqrt(strength) is about the
relative difference of the true robot from the nominal one.

The strength maximises the probability of the measured torques over all robots (the evidence, MacKay 1992). The best
strength depends on the noise of the torques. As residuals are autocorrelated, rows count by their effective number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import lgamma
from typing import Literal

import numpy as np

from dynid.arrays import Array
from dynid.consistency.barrier import Barrier
from dynid.consistency.consistency import Consistency
from dynid.consistency.interior import interior_point
from dynid.consistency.newton import free_moves, minimise_along
from dynid.errors import ModelError, NotPossibleError
from dynid.robot import inertia as ten

Metric = Literal["entropic", "euclidean"]
STRENGTHS = tuple(10.0 ** np.arange(5.0, -4.01, -0.5))  # from strong to very weak
# m: smallest radius of gyration of a link along each axis
_MIN_LINK_SPREAD = 0.005
_UNKNOWN_BODY = np.diag([4e-5, 4e-5, 4e-5, 0.1])  # a ball of 0.1 kg with a radius of 45 mm
_NEGLIGIBLE_LOG_RATIO = 30.0  # differences of log evidence beyond it make a fit irrelevant
# barrier weight of friction and similar parameters: small compared with one unit of log evidence
_BARRIER_WEIGHT = 1e-3


@dataclass(frozen=True, eq=False)
class Nominal:
    """A nominal model as the mode of a prior: pseudo-inertias (bodies, 4, 4), and theta (parameters,), zero if missing.

    thickened: links thinner than half a centimetre, which were thickened because the prior would fix their parameters.
    """

    matrices: Array
    theta: Array
    thickened: tuple[str, ...] = ()

    def scaled(self, factor: float) -> Nominal:
        """Return the nominal model with all masses multiplied by a factor."""
        return Nominal(factor * self.matrices, factor * self.theta, self.thickened)


def nominal_of(consistency: Consistency, matrices: Mapping[str, Array]) -> Nominal:
    """Return the nominal model with given pseudo-inertias (4, 4) by name of the body. A body without one is a ball of a
    tenth of a kilogram about the origin of its frame, as for an unknown payload."""
    theta, some = np.zeros(len(consistency.parameters)), []
    for body, columns in consistency.bodies.items():
        some.append(matrices.get(body, _UNKNOWN_BODY))
        theta[columns] = ten.from_pseudo_inertia(some[-1])
    return Nominal(np.array(some).reshape(-1, 4, 4), theta)


def nominal_model(consistency: Consistency, values: Array | None = None) -> Nominal:
    """Return the nominal model from the nominal values of the robot file, or from given values (parameters,)."""
    if consistency.form != "pseudo":
        raise ModelError("regularisation toward a nominal model uses 4 x 4 pseudo-inertias; use form = 'pseudo'")
    items = consistency.parameters.items
    given = np.array([np.nan if item.nominal is None else item.nominal for item in items]) if values is None else values
    theta = np.zeros(len(items))
    matrices, thickened = [], []
    for body, columns in consistency.bodies.items():
        numbers = given[columns]
        if not np.isfinite(numbers).all():
            raise ModelError(f"there are no nominal values for link '{body}'; give a robot file with inertias, or use "
                             "a method without a nominal model")
        mass = float(numbers[9])
        if mass <= 0:
            raise ModelError(f"the nominal mass of link '{body}' is {mass:g} kg; correct the robot file")
        pseudo, com = ten.pseudo_inertia(numbers), numbers[6:9] / mass
        spread, vectors = np.linalg.eigh(pseudo[:3, :3] / mass - np.outer(com, com))
        if spread[0] < _MIN_LINK_SPREAD ** 2:
            thickened.append(body)
            pseudo[:3, :3] += mass * (vectors * np.maximum(_MIN_LINK_SPREAD ** 2 - spread, 0.0)) @ vectors.T
        matrices.append(pseudo)
        theta[columns] = ten.from_pseudo_inertia(pseudo)
    whole = float(sum(pseudo[3, 3] for pseudo in matrices))
    if whole > consistency.heaviest:
        raise NotPossibleError(f"the nominal model weighs {whole:.6g} kg, above the limit of "
                               f"{consistency.heaviest:g} kg for the whole robot; check whether masses are in grams",
                               code="nominal-too-heavy")
    return Nominal(np.array(matrices).reshape(-1, 4, 4), theta, tuple(thickened))


@dataclass(frozen=True, eq=False)
class PriorFit:
    """Regularised fit with a prior of a given strength.

    Attributes:
        theta: parameters (parameters,).
        strength: strength of the prior.
        information: Hessian of half the sum of squares and of the prior (parameters, parameters).
        evidence: log probability of the data, up to a constant.
        free: directions (parameters, k) that do not change known values; None for all.
    """

    theta: Array
    strength: float
    information: Array
    evidence: float
    free: Array | None = None

    @property
    def spread(self) -> Array:
        """Posterior covariance (parameters, parameters), zero for parameters with known values."""
        if self.free is None:
            return np.asarray(np.linalg.pinv(self.information, rcond=1e-14, hermitian=True))
        inner = np.linalg.pinv(self.free.T @ self.information @ self.free, rcond=1e-14, hermitian=True)
        return np.asarray(self.free @ inner @ self.free.T)


def entropic_fits(consistency: Consistency, matrix: Array, rho: Array, nominal: Nominal,
                  strengths: Sequence[float] = STRENGTHS, near: Array | None = None) -> Iterator[PriorFit]:
    """Yield fits with decreasing strengths of the entropic prior.

    Each minimises |M theta - rho|^2 / 2 + strength sum_i D(P_i, P0_i) over consistent parameters, with the log-det
    divergence D. The rows must have independent noise of unit variance. near (parameters,): initial values from similar
    equations.
    """
    p0 = nominal.matrices
    inverse_nominal = np.asarray(np.linalg.inv(p0 - consistency.margin * np.eye(4)), dtype=float)
    normal, free = matrix.T @ matrix, free_moves(consistency)
    held = _fixed_parameter_term(consistency, inverse_nominal, nominal, free)
    falling = sorted(strengths, reverse=True)
    barriers = [Barrier(consistency, inverse_nominal, np.full(len(p0), strength), _BARRIER_WEIGHT)
                for strength in falling]
    fits = minimise_along(matrix, rho, barriers, inside_start(consistency, nominal), near)
    for strength, barrier, theta in zip(falling, barriers, fits, strict=True):
        _, hessian = barrier.derivatives(theta)
        information = hessian + normal
        error = matrix @ theta - rho
        value = barrier.value(theta)
        evidence = -0.5 * float(error @ error) - value - 0.5 * log_determinant(_within(information, free)) - sum(
            _log_integral(strength, p) for p in p0) - held(strength)
        yield PriorFit(theta, float(strength), information, evidence, free)


def _within(matrix: Array, free: Array | None) -> Array:
    return matrix if free is None else free.T @ matrix @ free


def _fixed_parameter_term(consistency: Consistency, inverse_nominal: Array, nominal: Nominal,
                 free: Array | None) -> Callable[[float], float]:
    """Return the change of the log integral of the prior if some parameters are fixed, as a function of the strength,
    by a normal approximation of the prior at the nominal model."""
    if free is None:
        return lambda strength: 0.0
    group = Barrier(consistency, inverse_nominal, np.ones(len(nominal.matrices)), 0.0).groups[0]
    inverses = group.inverses(nominal.theta)
    products, places = group.products(inverses, inverses), consistency.places.ravel()
    bodies, width, _ = products.shape
    curvature = np.einsum("bij,bc->bicj", products, np.eye(bodies)).reshape(bodies * width, -1)
    inside = free[places]
    left, size, _ = np.linalg.svd(inside, full_matrices=False)
    moves = left[:, size > 1e-9]
    fewer = len(places) - moves.shape[1]
    change = 0.5 * (log_determinant(curvature) - log_determinant(moves.T @ curvature @ moves)) \
        - 0.5 * fewer * np.log(2.0 * np.pi)
    return lambda strength: change + 0.5 * fewer * float(np.log(strength))


def body_curvatures(consistency: Consistency, nominal: Nominal, theta: Array, strength: float) -> tuple[Array, Array]:
    """Return gradients (bodies, 10) and Hessians (bodies, 10, 10) of strength D(P_i, P0_i) at theta (parameters,), by
    the inertial parameters of each body. D is the log-det divergence from the nominal body."""
    inverse_nominal = np.asarray(np.linalg.inv(nominal.matrices - consistency.margin * np.eye(4)), dtype=float)
    group = Barrier(consistency, inverse_nominal, np.full(len(nominal.matrices), strength), 0.0).groups[0]
    inverses = group.inverses(theta)
    return strength * group.traces(inverse_nominal - inverses), strength * group.products(inverses, inverses)


def limit_curvature(consistency: Consistency, theta: Array) -> tuple[Array, Array]:
    """Return gradient (parameters,) and Hessian (parameters, parameters) of the barrier of all linear conditions, such
    as those on signs of friction, at theta (parameters,)."""
    rows, offset = Barrier(consistency, np.zeros((0, 4, 4)), np.zeros(0), _BARRIER_WEIGHT).planes
    scaled = rows / (rows @ theta + offset)[:, None]
    return -_BARRIER_WEIGHT * scaled.sum(axis=0), _BARRIER_WEIGHT * (scaled.T @ scaled)


def best_strength(fits: Iterable[PriorFit]) -> PriorFit:
    """Return the fit of greatest evidence, trying fits in order until the evidence is negligible after three
    decreases."""
    best, before, fallen = None, np.inf, 0
    for one in fits:
        fallen = fallen + 1 if one.evidence < before else 0
        before = one.evidence
        if best is None or one.evidence > best.evidence:
            best = one
        elif fallen >= 3 and one.evidence < best.evidence - _NEGLIGIBLE_LOG_RATIO:
            break
    if best is None:
        raise ModelError("the regularisation strength cannot be chosen, because no fit with any strength is given")
    return best


def _log_integral(strength: float, pseudo: Array) -> float:
    """Return the log of the integral of exp(-s (tr(P0^-1 P) - log det P)) over positive definite P (n, n)."""
    n = len(pseudo)
    shape = strength + 0.5 * (n + 1)
    gamma = 0.25 * n * (n - 1) * np.log(np.pi) + sum(lgamma(shape - 0.5 * k) for k in range(n))  # multivariate
    return float(gamma + shape * (np.linalg.slogdet(pseudo)[1] - n * np.log(strength)))


def euclidean_rows(consistency: Consistency, nominal: Nominal) -> tuple[Array, Array]:
    """Return W (k, parameters) and W theta0 (k,) of the Euclidean prior |W theta - W theta0|^2 at strength one."""
    rows = np.zeros((10 * len(consistency.bodies), len(consistency.parameters)))
    for b, (columns, pseudo) in enumerate(zip(consistency.bodies.values(), nominal.matrices, strict=True)):
        mass = pseudo[3, 3]
        size = np.sqrt(np.trace(pseudo[:3, :3]) / (3.0 * mass))
        scale = np.concatenate([np.full(6, mass * size ** 2), np.full(3, mass * size), [mass]])
        rows[10 * b + np.arange(10), columns] = 1.0 / scale
    return rows, rows @ nominal.theta


def euclidean_fits(consistency: Consistency, matrix: Array, rho: Array, rows: Array, values: Array,
                   strengths: Sequence[float] = STRENGTHS) -> list[PriorFit]:
    """Return unconstrained fits with the Euclidean prior on the bodies, one per strength, with exact evidence."""
    free = free_moves(consistency)
    fixed = consistency.with_known(np.zeros(matrix.shape[1]))
    moves = np.eye(matrix.shape[1]) if free is None else free
    found = []
    for strength in sorted(strengths, reverse=True):
        information = matrix.T @ matrix + strength * rows.T @ rows
        tall, right = np.vstack([matrix, np.sqrt(strength) * rows]), np.concatenate([rho, np.sqrt(strength) * values])
        step, *_ = np.linalg.lstsq(tall @ moves, right - tall @ fixed, rcond=None)
        theta = fixed + moves @ step
        misfit = float(np.sum((tall @ theta - right) ** 2))
        evidence = 0.5 * len(rows) * np.log(strength) - 0.5 * misfit - 0.5 * log_determinant(_within(information, free))
        found.append(PriorFit(theta, float(strength), information, evidence, free))
    return found


def inside_start(consistency: Consistency, nominal: Nominal) -> Array:
    """Return parameters (parameters,) strictly inside the consistent set and near the nominal model."""
    theta = nominal.theta.copy()
    flagged = consistency.parameters.positive
    theta[flagged] = np.maximum(theta[flagged], 0.1)
    if any(block.cone == "zero" for block in consistency.blocks):
        return interior_point(consistency)
    if consistency.slack(theta) > 0:
        return theta
    middle = interior_point(consistency)
    moved = (theta + share * (middle - theta) for share in (0.1, 0.3, 0.6, 0.9))
    return next((one for one in moved if consistency.slack(one) > 0), middle)


def log_determinant(matrix: Array) -> float:
    """Return log |det| of a symmetric matrix, accurate also if its rows differ by orders of magnitude."""
    diagonal = np.maximum(np.diag(matrix), 1e-300)
    size = 1.0 / np.sqrt(diagonal)
    return float(np.linalg.slogdet(matrix * size * size[:, None])[1] + np.log(diagonal).sum())
