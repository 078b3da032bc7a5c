"""Physically consistent models drawn from the posterior of an estimate, for domain randomisation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dynid.arrays import Array, Bools
from dynid.consistency import Consistency
from dynid.errors import ModelError, NotPossibleError
from dynid.estimate.draws.body_scaling import BodyScaling
from dynid.estimate.draws.consistent_sets import BaseMap, ConsistentDraws, made_consistent, with_matched_moments
from dynid.estimate.draws.spread_comparison import TorqueSpread, check_same_base, torque_spread
from dynid.estimate.estimate import Estimate
from dynid.regression import Regression
from dynid.threads import one_blas_thread

PRIOR_SPREAD = 0.2  # relative standard deviation of links in what the data do not determine
MAX_DRAWS = 1_000_000
_KNOWN_STD = 1e-7  # of known values, relative: a draw keeps them, and the last digits are put in place at the end
_SMALLEST_STD = 1e-12  # of a base parameter, relative: one without any spread can then be whitened too
_FEW_MOVED = 0.01  # share of draws without their base values above which moments are matched
_DRAWS_PER_PARAMETER = 4  # draws per base parameter below which a sample covariance cannot be matched
_NOTED_INFLATION = 0.02  # of the variance: below, standard errors differ by less than 1,000 draws can show
_OTHER_SCALE = 1e-3  # of parameters that are zero everywhere: N m, N m s/rad or kg m^2


@dataclass(frozen=True, eq=False)
class Draws:
    """Physically consistent models drawn from the posterior of an estimate.

    Iterating yields one `Estimate` per draw, with its own full parameters.

    Attributes:
        estimate: whose posterior they are drawn from.
        theta: (draws, parameters), all standard parameters of each draw.
        as_drawn: (draws,), which were consistent as drawn from posterior and prior.
        kept_base: (draws,), which have exactly the base values that were drawn for them. Other draws have the nearest
        base values of a consistent robot.
        distance: (draws,), standard errors between drawn base values and those of the draw.
        seed: of the random numbers.
        spread: relative standard deviation of the prior.
        rounds: how often sample moments were matched to the posterior's, 0 where that was not needed.
        inflation: variance that was aimed at in the matching, relative to the posterior's. It is above one where
            consistency restricts some combinations and the others make up for the spread of torques.
    """

    estimate: Estimate
    theta: Array
    as_drawn: Bools
    kept_base: Bools
    distance: Array
    seed: int
    spread: float
    rounds: int
    inflation: float = 1.0

    def __len__(self) -> int:
        return len(self.theta)

    def __iter__(self) -> Iterator[Estimate]:
        for theta, values in zip(self.theta, self.values, strict=True):
            yield replace(self.estimate, theta=theta, values=values, refit=None)

    @cached_property
    def values(self) -> Array:
        """Base values (draws, base)."""
        return np.asarray(self.theta @ self.estimate.base.matrix.T)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Sentences that state how the draws were made consistent and by how much this changes their base values."""
        count, null, moved = len(self), int((~self.as_drawn & self.kept_base).sum()), int((~self.kept_base).sum())
        lines = [f"{count} draws, all physically consistent: {int((self.as_drawn & self.kept_base).sum())} as drawn, "
                 f"{null} after a change that torques do not show, {moved} with changed base values."]
        if moved:
            away = float(np.median(self.distance[~self.kept_base]))
            lines.append(f"No consistent robot was found for the base values of these {moved} draws; theirs are "
                         f"{away:.2g} standard errors away (median).")
        if self.rounds:
            lines.append("Mean and covariance of the draws were matched to the posterior as far as consistent robots "
                         "allow, so the draws are not independent of each other.")
        if self.inflation > 1.0 + _NOTED_INFLATION:
            lines.append("Consistency takes spread away from some base parameters. Where it does not, standard errors "
                         f"are {100 * (np.sqrt(self.inflation) - 1):.0f} % above those of the posterior, so that "
                         "torques scatter as stated.")
        lines.append(f"Parameters that the data do not determine vary by {100 * self.spread:g} % about the estimate.")
        return tuple(lines)

    def torque_spread(self, regression: Regression) -> TorqueSpread:
        """Return the spread of torques along the data of a regression, together with the spread by the covariance."""
        return torque_spread(self.estimate, self.values, regression)


def posterior_draws(estimate: Estimate, count: int, seed: int = 0, *, spread: float = PRIOR_SPREAD,
                    regression: Regression | None = None) -> Draws:
    """Return physically consistent models drawn from the posterior of an estimate.

    Base parameters are normal with the estimate's values and covariance. Parameters that the data do not determine are
    normal about the estimate's full parameters. Their relative standard deviation is `spread` in the metric of the
    log-det divergence. The prior is cut off at the border of the consistent set.

    Args:
        estimate: with full parameters.
        count: number of draws.
        seed: of the random numbers.
        spread: relative standard deviation of the prior, above 0.
        regression: of the estimate. The spread of torques is kept along its data where consistency restricts draws;
            without it, the mean variance of base parameters in squared standard errors is kept.

    Raises:
        ModelError: if the regression is of other base parameters.
        NotPossibleError: if the estimate has base parameters only.
    """
    theta, covariance = _checked(estimate, count, spread)
    if regression is not None:
        check_same_base(estimate, regression)
    with one_blas_thread():
        scaling, base, known = _coordinates(estimate, theta, covariance, regression)
        found, targets = _drawn(scaling, base, scaling.inverse @ theta, count, seed, spread)
        moved = float(np.mean(~found.kept_base))
        enough = _DRAWS_PER_PARAMETER * base.spread
        if moved > _FEW_MOVED:
            if count < enough:  # a sample of so few has no covariance: those asked for are the first of more
                found, targets = _drawn(scaling, base, scaling.inverse @ theta, enough, seed, spread)
            found = with_matched_moments(scaling, base, found, targets)
        all_theta = found.x[:count] @ scaling.matrix.T
    for name, value in known.items():
        all_theta[:, estimate.base.parameters.index(name)] = value
    return Draws(estimate, all_theta, found.as_drawn[:count], found.kept_base[:count], found.distance[:count], seed,
                 spread, found.rounds, found.inflation)


def check_draws(count: int, spread: float) -> None:
    """Raise an error if the number of draws or the relative standard deviation is not usable."""
    if not 1 <= count <= MAX_DRAWS:
        raise ModelError(f"the number of draws must be between 1 and {MAX_DRAWS}, got {count}",
                         code="wrong-number-of-draws")
    if not 0.0 < spread <= 1.0:
        raise ModelError("the relative standard deviation of what the data do not determine must be above 0 and at "
                         f"most 1, got {spread:g}", code="wrong-spread")


def _checked(estimate: Estimate, count: int, spread: float) -> tuple[Array, Array]:
    """Return the full parameters of the estimate and its covariance; raise an error if models cannot be drawn from
    them."""
    check_draws(count, spread)
    if estimate.theta is None:
        raise NotPossibleError(f"method '{estimate.method}' gives base parameters only, and draws need all parameters",
                               "identify with a method that gives them, such as --method pc-wls or --method pc-ridge",
                               code="base-parameters-only")
    covariance = estimate.covariance[np.ix_(estimate.identified, estimate.identified)]
    if not np.isfinite(covariance).all():
        raise NotPossibleError("the covariance of the estimate has values that are not finite, so no models can be "
                               "drawn from it", "identify again with more data", code="no-covariance")
    return estimate.theta, covariance


def _coordinates(estimate: Estimate, theta: Array, covariance: Array, regression: Regression | None
                 ) -> tuple[BodyScaling, BaseMap, dict[str, float]]:
    """Return scaled coordinates around the estimate, the whitened base map in them, and known values by name."""
    base, items = estimate.base, estimate.base.parameters.items
    consistency = Consistency(base.parameters)
    inside = _inside(consistency, theta)
    determined, known = base.matrix[estimate.identified], dict(base.known)
    values = estimate.values[estimate.identified]
    smallest = _SMALLEST_STD * np.maximum(np.abs(values), 1e-3)
    widened = covariance + np.diag(smallest ** 2)
    size = np.sqrt(np.diag(widened))
    factor = np.linalg.cholesky(widened / np.outer(size, size) + 1e-13 * np.eye(len(size))) * size[:, None]
    scaling = BodyScaling.around(consistency, inside, _other_scales(estimate, inside, size))
    rows = np.linalg.solve(factor, determined)
    fixed = np.zeros((len(known), len(items)))
    for k, (name, value) in enumerate(known.items()):
        fixed[k, base.parameters.index(name)] = 1.0 / (_KNOWN_STD * max(abs(value), 1e-3))
    whole = np.vstack([rows, fixed])
    weight = np.eye(len(rows)) / len(rows) if regression is None else _torque_weight(estimate, regression, factor)
    return scaling, BaseMap(whole @ scaling.matrix, whole @ theta, len(rows), weight), known


def _torque_weight(estimate: Estimate, regression: Regression, factor: Array) -> Array:
    """Return weights W (identified, identified): for a covariance C of whitened base values, trace(W C) is the mean
    over joints of the torque variance relative to the stated one. factor: (identified, identified), base values are
    factor @ whitened.
    """
    total = np.zeros_like(factor)
    for joint in regression.factors:
        rows = np.zeros((len(joint.r), len(estimate.values)))
        rows[:, joint.columns] = joint.r[:, :-1]
        torques = rows[:, estimate.identified] @ factor
        whole = float(np.sum(torques ** 2))
        if whole > 0.0:
            total += torques.T @ torques / whole
    return total / max(float(np.trace(total)), np.finfo(float).tiny)


def _inside(consistency: Consistency, theta: Array) -> Array:
    """Return full parameters whose links have positive definite pseudo-inertias, which set the scale of each link."""
    if consistency.bodies and consistency.smallest_eigenvalue(theta) <= 0.0:
        raise NotPossibleError("the estimate is not physically consistent, so no consistent models can be drawn around "
                               "it", "identify with --method pc-wls or --method pc-ridge", code="not-consistent")
    return theta


def _other_scales(estimate: Estimate, theta: Array, std: Array) -> Array:
    """Return the scale (parameters,) of each parameter that does not belong to a link.

    It is the standard error if the parameter is itself a base parameter, otherwise the mean size of its kind over the
    joints.
    """
    items = estimate.base.parameters.items
    scales = np.ones(len(items))
    for k, item in enumerate(items):
        alike = [abs(theta[i]) for i, one in enumerate(items) if one.symbol == item.symbol]
        scales[k] = max(abs(theta[k]), float(np.mean(alike))) or _OTHER_SCALE
    alone = np.count_nonzero(estimate.base.matrix, axis=1) == 1
    found = iter(std)
    for column, is_alone, is_known in zip(estimate.base.independent, alone, estimate.identified, strict=True):
        own = next(found) if is_known else None
        if is_alone and own is not None:
            scales[column] = own
    return scales


def _drawn(scaling: BodyScaling, base: BaseMap, centre: Array, count: int, seed: int, spread: float
           ) -> tuple[ConsistentDraws, Array]:
    """Return consistent draws and the whitened base values that were drawn for them."""
    rng = np.random.default_rng(seed)
    targets = np.tile(base.centre, (count, 1))
    targets[:, :base.spread] += rng.standard_normal((count, base.spread))
    prior = spread * rng.standard_normal((count, len(centre)))
    return made_consistent(scaling, base, centre, prior, targets, rng), targets
