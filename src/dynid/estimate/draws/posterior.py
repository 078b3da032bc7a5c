"""Random draws of physically consistent models from the posterior of an estimate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array, Bools
from dynid.consistency import Consistency
from dynid.errors import DynidError, ModelError, NotPossibleError
from dynid.escape import csv_line
from dynid.estimate.draws.body_scaling import BodyScaling
from dynid.estimate.draws.consistent_sets import BaseMap, ConsistentDraws, made_consistent, with_matched_moments
from dynid.estimate.estimate import Estimate
from dynid.estimate.simulators.friction_fit import PASSIVE, JointMotion, passive_table
from dynid.files import write_whole
from dynid.model import robot_model
from dynid.regression import Regression
from dynid.robot import inertia as ten
from dynid.robot.pose import quaternion
from dynid.threads import one_blas_thread

PRIOR_SPREAD = 0.2  # relative standard deviation of links in directions that the data do not determine
MAX_DRAWS = 1_000_000
_KNOWN_STD = 1e-7  # relative, of known values, which are set exactly at the end
_SMALLEST_EIGENVALUE = 1e-13  # of a correlation matrix: smaller ones are rounding errors, of either sign
_SMALLEST_STD = 1e-12  # relative, of a base parameter: allows whitening of parameters without uncertainty
_FEW_MOVED = 0.01  # share of draws without their base values above which moments are matched
_DRAWS_PER_PARAMETER = 4  # draws per base parameter below which a sample covariance cannot be matched
_NOTED_INFLATION = 0.02  # of the variance: smaller values change standard errors by less than 1,000 draws can show
_OTHER_SCALE = 1e-3  # scale of parameters that are zero: N m, N m s/rad or kg m^2


@dataclass(frozen=True, eq=False)
class Draws:
    """Physically consistent models drawn from the posterior of an estimate.

    Iterating yields one `Estimate` per draw, with its own full parameters.

    Attributes:
        estimate: the estimate.
        theta: standard parameters of each draw (draws, parameters).
        as_drawn: mask of draws that were consistent as drawn from posterior and prior (draws,).
        kept_base: mask of draws with exactly the drawn base values (draws,); others have the nearest consistent ones.
        distance: distance of the base values from the drawn ones in standard errors (draws,).
        seed: seed of the random numbers.
        spread: relative standard deviation of the prior.
        rounds: number of matchings of the sample moments to the posterior.
        inflation: target variance of the matching, relative to the posterior. It is above one if consistency restricts
            some combinations; the others then have more spread, so that the spread of torques is as stated.
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
        """Base parameters (draws, base) of all draws."""
        return np.asarray(self.theta @ self.estimate.base.matrix.T)

    @property
    def sentences(self) -> tuple[str, ...]:
        """Sentences that state how the draws were made consistent and by how much this changes their base values."""
        count, null, moved = len(self), int((~self.as_drawn & self.kept_base).sum()), int((~self.kept_base).sum())
        lines = [f"{count} draws, all physically consistent: {int((self.as_drawn & self.kept_base).sum())} as drawn, "
                 f"{null} after a change without effect on torques, {moved} with changed base values."]
        if moved:
            away = float(np.median(self.distance[~self.kept_base]))
            lines.append(f"No consistent robot was found for the drawn base values of these {moved} draws; they have "
                         f"consistent base values at a median distance of {away:.2g} standard errors.")
        if self.rounds:
            lines.append("Mean and covariance of the draws were matched to the posterior as far as consistent robots "
                         "allow, so the draws are not independent of each other.")
        if self.inflation > 1.0 + _NOTED_INFLATION:
            lines.append("Consistency reduces the spread of some base parameters. For the others, standard errors are "
                         f"{100 * (np.sqrt(self.inflation) - 1):.0f} % above those of the posterior, so that the "
                         "spread of torques is as stated.")
        lines.append(f"Parameters that the data do not determine vary by {100 * self.spread:g} % about the estimate.")
        return tuple(lines)

    def torque_spread(self, regression: Regression) -> TorqueSpread:
        """Return the standard deviation of torques along a regression's data: over draws, and by the covariance.

        Raises:
            ModelError: if the regression is of other base parameters.
        """
        estimate, away = self.estimate, self.values - self.values.mean(axis=0)
        check_same_base(estimate, regression)
        stated, drawn = np.zeros(regression.dof), np.zeros(regression.dof)
        for j, factor in enumerate(regression.factors):
            rows, own, count = factor.r[:, :-1], factor.columns, max(factor.rows, 1)
            known = estimate.identified[own]
            rows, own = rows[:, known], own[known]
            covariance = estimate.covariance[np.ix_(own, own)]
            stated[j] = np.sqrt(max(float(np.einsum("ki,ij,kj->", rows, covariance, rows)), 0.0) / count)
            drawn[j] = np.sqrt(float(np.sum((away[:, own] @ rows.T) ** 2)) / max(len(away) - 1, 1) / count)
        return TorqueSpread(regression.joints, stated, drawn)


def posterior_draws(estimate: Estimate, count: int, seed: int = 0, *, spread: float = PRIOR_SPREAD,
                    regression: Regression | None = None) -> Draws:
    """Return physically consistent models drawn from the posterior of an estimate.

    Base parameters are normal with the estimate's values and covariance. Parameters that the data do not determine are
    normal about the estimate's full parameters. Their relative standard deviation is `spread` in the metric of the
    log-det divergence. The prior is truncated at the boundary of the consistent set.

    Args:
        estimate: an estimate with all standard parameters.
        count: number of draws.
        seed: seed of the random numbers.
        spread: relative standard deviation of the prior, above 0.
        regression: compressed regression of the estimate. If consistency restricts the draws, the spread of torques
            along its data is preserved; without a regression, the mean variance of base parameters.

    Raises:
        ModelError: if the regression has other base parameters.
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
            if count < enough:  # few draws have no sample covariance, so more are drawn and the first ones are returned
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
        raise ModelError("the relative standard deviation of undetermined parameters must be above 0 and at most 1, "
                         f"got {spread:g}", code="wrong-spread")


def _checked(estimate: Estimate, count: int, spread: float) -> tuple[Array, Array]:
    """Return full parameters and covariance of the estimate; raise an error if models cannot be drawn from them."""
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
    """Return scaled coordinates around the estimate, their map to whitened base values, and known values by name."""
    base, items = estimate.base, estimate.base.parameters.items
    consistency = Consistency(base.parameters)
    if consistency.bodies and consistency.smallest_eigenvalue(theta) <= 0.0:
        raise NotPossibleError("the estimate is not physically consistent, so no consistent models can be drawn around "
                               "it", "identify with --method pc-wls or --method pc-ridge", code="not-consistent")
    determined, known = base.matrix[estimate.identified], dict(base.known)
    values = estimate.values[estimate.identified]
    smallest = _SMALLEST_STD * np.maximum(np.abs(values), 1e-3)
    widened = covariance + np.diag(smallest ** 2)
    size = np.sqrt(np.diag(widened))
    factor = _triangular_root(widened / np.outer(size, size)) * size[:, None]
    scaling = BodyScaling.around(consistency, theta, _other_scales(estimate, theta, size))
    rows = np.linalg.solve(factor, determined)
    fixed = np.zeros((len(known), len(items)))
    for k, (name, value) in enumerate(known.items()):
        fixed[k, base.parameters.index(name)] = 1.0 / (_KNOWN_STD * max(abs(value), 1e-3))
    whole = np.vstack([rows, fixed])
    weight = np.eye(len(rows)) / len(rows) if regression is None else _torque_weight(estimate, regression, factor)
    return scaling, BaseMap(whole @ scaling.matrix, whole @ theta, len(rows), weight), known


def _triangular_root(correlation: Array) -> Array:
    """Return the lower triangular root (k, k) of a correlation matrix whose smallest eigenvalues may be rounded to
    negative numbers. A Cholesky factor is more accurate, so that eigenvalues are used only without it."""
    try:
        return np.asarray(np.linalg.cholesky(correlation + _SMALLEST_EIGENVALUE * np.eye(len(correlation))))
    except np.linalg.LinAlgError:
        pass
    values, vectors = np.linalg.eigh(correlation)
    upper = np.asarray(np.linalg.qr((vectors * np.sqrt(np.maximum(values, _SMALLEST_EIGENVALUE))).T, mode="r"))
    return np.asarray(upper.T * np.where(np.diag(upper) < 0.0, -1.0, 1.0))


def _torque_weight(estimate: Estimate, regression: Regression, factor: Array) -> Array:
    """Return weights W (identified, identified): for a covariance C of whitened base values, trace(W C) is the torque
    variance relative to the posterior's, averaged over joints. factor: base values = factor @ whitened ones."""
    total = np.zeros_like(factor)
    for joint in regression.factors:
        rows = np.zeros((len(joint.r), len(estimate.values)))
        rows[:, joint.columns] = joint.r[:, :-1]
        torques = rows[:, estimate.identified] @ factor
        whole = float(np.sum(torques ** 2))
        if whole > 0.0:
            total += torques.T @ torques / whole
    return total / max(float(np.trace(total)), np.finfo(float).tiny)


def _other_scales(estimate: Estimate, theta: Array, std: Array) -> Array:
    """Return the scale (parameters,) of each parameter that does not belong to a link. It is the standard error if the
    parameter is itself a base parameter, otherwise the mean size of its kind over the joints."""
    items = estimate.base.parameters.items
    scales = np.ones(len(items))
    for k, item in enumerate(items):
        same_kind = [abs(theta[i]) for i, one in enumerate(items) if one.symbol == item.symbol]
        scales[k] = max(abs(theta[k]), float(np.mean(same_kind))) or _OTHER_SCALE
    alone = np.count_nonzero(estimate.base.matrix, axis=1)[estimate.identified] == 1
    scales[estimate.base.independent[estimate.identified][alone]] = std[alone]
    return scales


def _drawn(scaling: BodyScaling, base: BaseMap, centre: Array, count: int, seed: int, spread: float
           ) -> tuple[ConsistentDraws, Array]:
    """Return consistent draws and the whitened base values that were drawn for them."""
    rng = np.random.default_rng(seed)
    targets = np.tile(base.centre, (count, 1))
    targets[:, :base.spread] += rng.standard_normal((count, base.spread))
    prior = spread * rng.standard_normal((count, len(centre)))
    return made_consistent(scaling, base, centre, prior, targets, rng), targets


SPREAD_TOLERANCE = 0.1  # largest relative difference between the spread of draws and the stated one


@dataclass(frozen=True, eq=False)
class TorqueSpread:
    """Standard deviation of predicted torques over draws, as a root mean square along the data.

    Attributes:
        joints: names of the joints (dof,).
        stated: standard deviation by the covariance of the estimate (dof,), N m or N.
        drawn: standard deviation of the draws about their mean (dof,), N m or N.
    """

    joints: tuple[str, ...]
    stated: Array
    drawn: Array

    @property
    def ratio(self) -> Array:
        """Torque spread of the draws divided by that of the covariance (dof,); one if the latter is zero."""
        return np.where(self.stated > 0.0, self.drawn / np.where(self.stated > 0.0, self.stated, 1.0), 1.0)

    @property
    def matches(self) -> bool:
        """Whether the torque spread of the draws agrees with the covariance within `SPREAD_TOLERANCE`."""
        return bool(np.all(np.abs(self.ratio - 1.0) <= SPREAD_TOLERANCE))

    @property
    def sentence(self) -> str:
        """Sentence that compares the torque spread of the draws with that of the covariance."""
        low, high = float(self.ratio.min()), float(self.ratio.max())
        text = f"The torques of the draws scatter by {low:.2f} to {high:.2f} times the stated standard error"
        if self.matches:
            return text + f" of each joint: within {100 * SPREAD_TOLERANCE:g} %."
        worst = self.joints[int(np.argmax(np.abs(self.ratio - 1.0)))]
        return text + (f", which is outside {100 * SPREAD_TOLERANCE:g} % (worst: {worst}). Physical "
                       "consistency restricts the draws there; more excitation makes the posterior narrower.")


def check_same_base(estimate: Estimate, regression: Regression) -> None:
    """Raise an error if a regression has other base parameters than the estimate."""
    if regression.base.expressions != estimate.base.expressions:
        raise ModelError("the regression has other base parameters than the estimate; give the regression from which "
                         "the estimate was computed", code="other-parameters")


TABLE_SUFFIXES = (".npz", ".csv")


def draw_arrays(draws: Draws, motion: JointMotion | None = None) -> dict[str, Any]:
    """Return the arrays of a table of draws, by name.

    All parameters: `theta` (draws, parameters) in the order of `names`, `base` (draws, base) in that of `base_names`.

    Of each link in `bodies`: `mass` (draws, bodies), kg; `com` (draws, bodies, 3), m, in the link frame; `inertia`
    (draws, bodies, 6), kg m^2, XX YY ZZ XY XZ YZ about the centre of mass in the axes of the link frame; the same as
    `diaginertia` (draws, bodies, 3) with `iquat` (draws, bodies, 4), w x y z.

    Of each joint in `joints`: `armature`, `damping` and `frictionloss` (draws, joints).

    Of each draw: `consistent_as_drawn` and `kept_base` (draws,) state how it was made consistent, `base_distance`
    (draws,) by how many standard errors its base values were moved.

    Args:
        draws: draws of an estimate.
        motion: motion over which friction is approximated for simulators; random states by default.
    """
    estimate = draws.estimate
    parameters = estimate.base.parameters
    places = np.array(list(parameters.bodies.values()), dtype=np.int64).reshape(-1, 10)
    mass, com, full = ten.to_mujoco(draws.theta[:, places])
    values, axes = np.linalg.eigh(ten.symmetric(full[..., [0, 3, 4, 1, 5, 2]]))
    axes = axes * np.where(np.linalg.det(axes) < 0, -1.0, 1.0)[..., None, None]
    turns = np.array([quaternion(one) for one in axes.reshape(-1, 3, 3)]).reshape(*mass.shape, 4)
    found: dict[str, Any] = {
        "names": np.array(parameters.names), "units": np.array(parameters.units), "theta": draws.theta,
        "base_names": np.array(estimate.names), "base": draws.values, "consistent_as_drawn": draws.as_drawn,
        "kept_base": draws.kept_base, "base_distance": draws.distance, "seed": np.array(draws.seed),
        "bodies": np.array(list(parameters.bodies), dtype=str), "mass": mass, "com": com, "inertia": full,
        "diaginertia": values, "iquat": turns}
    model = robot_model(estimate.model)
    if model is not None:
        passive = passive_table(model, draws.theta, motion or JointMotion.random(model.robot))
        found |= {"joints": np.array(model.joint_names), **{name: passive[name] for name in PASSIVE}}
    return found


def save_draws(draws: Draws, path: str | Path, motion: JointMotion | None = None) -> None:
    """Write draws as a table: .npz with all arrays of `draw_arrays`, or .csv with one row of parameters per draw.

    Raises:
        DynidError: if the file has another suffix.
    """
    path = Path(path)
    if path.suffix not in TABLE_SUFFIXES:
        raise DynidError(f"draws are written as .npz or .csv, not as '{path.name}'",
                         "name a file that ends in .npz or .csv", code="unknown-table")
    if path.suffix == ".npz":
        with write_whole(path, "wb") as file:
            np.savez_compressed(file, **draw_arrays(draws, motion))
        return
    names = draws.estimate.base.parameters.names
    with write_whole(path) as file:
        file.write(csv_line(names))
        for row in draws.theta:
            file.write(csv_line([repr(float(value)) for value in row]))
