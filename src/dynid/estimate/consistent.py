"""Methods pc-ols and pc-wls: least squares constrained to physically consistent parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from dynid.arrays import Array
from dynid.consistency import Consistency, Fit, fit, limits_from_shapes, limits_from_tables
from dynid.consistency.barrier import Barrier
from dynid.consistency.central import barrier_size, fill_by_barrier
from dynid.consistency.consistency import HEAVIEST, MARGIN, InertiaForm
from dynid.consistency.fit import misfit_unit
from dynid.consistency.limits import MassLimit
from dynid.consistency.newton import minimise
from dynid.consistency.prior import Nominal, nominal_model
from dynid.errors import ModelError, NotPossibleError
from dynid.estimate.border import constrained_covariance
from dynid.estimate.covariance import LinearFit, diagnostics
from dynid.estimate.estimate import Estimate
from dynid.estimate.linear import joint_weights, solve
from dynid.estimate.problem import Problem, method
from dynid.estimate.uncertainty import CovType, OnDemand, Uncertainty
from dynid.model import complete, robot_model
from dynid.model.term_capabilities import capabilities
from dynid.regression import Regression, Stacked
from dynid.regression.known import known_parameters
from dynid.threads import one_blas_thread

Fill = Literal["auto", "central", "nominal"]
# Accepted relative increase of the misfit (half of it in relative error) for links of plausible size: the best fit is
# often approached only with unbounded masses that have little effect on the torques.
_FILL_TOLERANCE = 1e-2
_SOLVER_TOLERANCE = 1e-13  # of the squared torques (3e-7 of a torque): accuracy of the solver
_MAX_MASS_RATIO = 10.0  # relative to the masses of the robot file: upper bound
_LARGEST_LOSS = 10.0  # relative to the measured torque: upper bound of friction and offset
# Change of a value by constraints in standard errors for independent rows. With autocorrelated residuals the true
# standard errors are several times larger.
_MAX_STANDARD_ERRORS_MOVED = 10.0
# Share of the largest allowed mass: for a lighter robot, the upper bound of the mass has no effect.
_CLEARLY_LIGHTER = 0.5
_ZERO_COLUMN = 1e-12  # of the largest column: smaller columns are rounding errors


def problem_consistency(problem: Problem, *, form: InertiaForm = "pseudo", margin: float = MARGIN, shapes: bool = False,
                        centres: Mapping[str, Any] | None = None, masses: Sequence[Any] = (),
                        intervals: Mapping[str, Any] | None = None) -> Consistency:
    """Return the set of physically consistent parameters of a problem, including exactly known values.

    Args:
        problem: the identification problem.
        form: formulation of consistency.
        margin: distance from the boundary of the set.
        shapes: whether to limit centres of mass to the robot's collision shapes.
        centres: limits on centres of mass by link, or tables (low, high | points | centre, axes).
        masses: limits on masses, or tables (bodies, low, high), kg.
        intervals: lower and upper value by combination of parameters, from other estimates (Sousa, s. 2.6.3).
    """
    found = {}
    if shapes:
        robot = complete(problem.model).robot
        if robot is None:
            raise ModelError("limits from collision shapes need a model made from a robot", code="model-without-robot")
        found = limits_from_shapes(robot)
        if not found:
            raise ModelError(f"robot '{robot.name}' has no collision primitives to take limits from; "
                             "give a box for each centre of mass in the option 'centres'", code="no-collision-shapes")
    extra, weights = limits_from_tables(centres or {}, masses)
    return Consistency(problem.model.parameters, form=form, margin=margin, centres={**found, **extra}, masses=weights,
                       heaviest=_heaviest(problem, weights), known={**unseen(problem), **problem.base.known},
                       largest=largest_values(problem), dissipating=dissipating_rows(problem),
                       intervals={text: _interval(text, pair) for text, pair in (intervals or {}).items()})


def _interval(text: str, pair: Any) -> tuple[float, float]:
    """Return the lower and upper value of an interval of a run file; raise an error if it is not a pair of numbers."""
    if not isinstance(pair, list | tuple) or len(pair) != 2 or not all(isinstance(x, int | float) for x in pair):
        raise ModelError(f"the interval of '{text}' must be two numbers, [lower, upper], got {pair!r}",
                         code="bad-interval")
    return float(pair[0]), float(pair[1])


def dissipating_rows(problem: Problem) -> dict[str, Array]:
    """Return matrices (k, parameters) by joint: friction dissipates energy if matrix @ theta is not negative.

    A difference of viscous friction between directions is at most the viscous friction, |Fvd| <= Fv. Other terms are
    constrained at the speeds of the data, and unconstrained if only a compressed regression is available.
    """
    model, items = problem.model, problem.model.parameters.items
    found: dict[str, Array] = {}
    viscous = {item.owner: c for c, item in enumerate(items) if item.symbol == "Fv"}
    for c, item in enumerate(items):
        if item.symbol == "Fvd" and item.owner in viscous:
            for sign in (1.0, -1.0):
                row = np.zeros(len(items))
                row[[viscous[item.owner], c]] = 1.0, sign
                _add_row(problem, found, row)
    own_model = robot_model(model)
    if not problem.data or own_model is None:
        return found
    speeds = np.max([np.abs(part.dq).max(axis=0) for part in problem.data], axis=0)
    for term, places in own_model.parts:
        dissipating = capabilities(term).dissipating
        for own in () if dissipating is None else dissipating(own_model.robot, speeds):
            row = np.zeros(len(items))
            row[places] = own
            _add_row(problem, found, row)
    return found


def _add_row(problem: Problem, found: dict[str, Array], row: Array) -> None:
    """Add a constraint row (parameters,) to those of its joint in `found`, unless all of its parameters are known."""
    items = problem.model.parameters.items
    own = np.flatnonzero(row)
    if not all(items[c].name in problem.base.known for c in own):
        name = f"friction of {complete(problem.model).joint_names[items[own[0]].owner]}"
        found[name] = np.vstack([found.get(name, np.zeros((0, len(items)))), row])


def _heaviest(problem: Problem, limits: Sequence[MassLimit]) -> float:
    """Return an upper bound of the robot's mass, kg: ten times the nominal or allowed mass, and at least a tonne."""
    masses = [problem.model.parameters.items[places[9]].nominal or 0.0
              for places in problem.model.parameters.bodies.values()]
    allowed = sum((limit.low or 0.0) if limit.high is None else limit.high for limit in limits)
    return max(HEAVIEST, _MAX_MASS_RATIO * sum(max(mass, 0.0) for mass in masses), _MAX_MASS_RATIO * allowed)


def largest_values(problem: Problem) -> dict[str, float]:
    """Return upper bounds of the absolute values of joint parameters, by name.

    Friction and offsets that the data do not determine are at most ten times the RMS torque of their joint: if a joint
    moved in one direction only, both could otherwise grow without bound. Bounds of the model's parameters are included.
    """
    regression, base = problem.regression, problem.base
    solution = solve(regression, regression.stack(joint_weights(regression)))
    reach = np.abs(solution.beta) + _MAX_STANDARD_ERRORS_MOVED * np.sqrt(np.maximum(np.diag(solution.inverse), 0.0))
    found, hidden = {}, unseen(problem)
    for c, item in enumerate(problem.model.parameters):
        column = base.matrix[:, c]
        own = column != 0
        if item.kind.group not in ("friction", "offset") or not own.any() or item.name in hidden:
            continue
        pairs = [(float(np.linalg.norm(factor.r[:, :-1] @ column[factor.columns])), float(np.sqrt(factor.power)))
                 for factor in regression.factors]
        high = min((_LARGEST_LOSS * size / norm for norm, size in pairs if norm > 0 and size > 0), default=np.inf)
        if np.isfinite(high) and not np.all(solution.identified[own] & (reach[own] < high)):
            found[item.name] = high
    for item in problem.model.parameters:
        if np.isfinite(item.bounds[1]) and item.name not in base.known:
            found[item.name] = min(found.get(item.name, np.inf), item.bounds[1])
    return found


def unseen(problem: Problem) -> dict[str, float]:
    """Return values by name for joint parameters without effect on any torque in the data: nominal ones, or zero.

    Without these values the fit has no optimum: the friction of a joint at rest could take any value.
    """
    size = np.linalg.norm(problem.regression.stack(prior=False).r @ problem.base.matrix, axis=0)
    known_names = {*problem.base.known, *known_parameters(problem.regression.prior)}
    return {item.name: max(item.nominal or 0.0, 0.0) if item.never_negative else item.nominal or 0.0
            for item, norm in zip(problem.model.parameters, size, strict=True)
            if item.body is None and item.name not in known_names and norm <= _ZERO_COLUMN * size.max()}


def check_same_parameters(problem: Problem, consistency: Consistency) -> None:
    """Raise an error if a parameter has no effect on the torques of a problem, but is free in the consistent set."""
    if unseen(problem).keys() - consistency.known.keys():
        raise NotPossibleError("cross-validation excludes blocks of time in turn, and without one of them the data do "
                               "not depend on every parameter; record a longer motion")


def prior_rows(problem: Problem, weights: Array | None, stacked: Stacked) -> tuple[Array, Array] | None:
    """Return prior equations of standard parameters, matrix (k, parameters) and values (k,); None if there are none.

    The rows are known values with a standard deviation, and ridge penalties, scaled for the equations `stacked`.
    """
    base, prior = problem.base, problem.regression.prior
    pulled = np.flatnonzero(base.ridge)
    rows = np.sqrt(base.ridge * np.sum(stacked.r ** 2, axis=0))[pulled, None] * base.matrix[pulled]
    values = np.zeros(len(pulled))
    if prior is not None:
        known, targets = prior.standard_rows(base)
        weight = problem.regression.prior_weight(weights)
        rows, values = np.vstack([rows, weight * known]), np.append(values, weight * targets)
    return (rows, values) if len(values) else None


@method("pc-ols", "ordinary least squares among physically consistent robots", gives={"theta"},
        options_of=[problem_consistency])
def consistent_ordinary(problem: Problem, *, fill_with: Fill = "auto", **limits: Any) -> Estimate:
    """Return ordinary least squares over the consistent set, with equal weights (Sousa, eq. 3.58).

    limits: see `problem_consistency`.
    """
    return consistent_estimate(problem, "pc-ols", None, problem_consistency(problem, **limits), fill_with)


@method("pc-wls", "weighted least squares among physically consistent robots", gives={"theta"},
        options_of=[problem_consistency])
def consistent_weighted(problem: Problem, *, fill_with: Fill = "auto", **limits: Any) -> Estimate:
    """Return weighted least squares over the consistent set, with each joint weighted by the standard deviation of
    its residual (Sousa, s. 4.5.3). limits: see `problem_consistency`."""
    consistency = problem_consistency(problem, **limits)
    return consistent_estimate(problem, "pc-wls", joint_weights(problem.regression), consistency, fill_with)


def consistent_estimate(problem: Problem, name: str, weights: Array | None, consistency: Consistency,
                        fill_with: Fill = "auto") -> Estimate:
    """Return the estimate of a least-squares fit inside the consistent set, see `inside_the_set`."""
    with one_blas_thread():
        free = LinearFit.from_problem(problem, weights)
        found = _best_inside(free, problem.regression, weights, consistency, fill_with)

    def refit(fewer: Regression) -> Array:
        less = replace(problem, regression=fewer.joined(1), data=(), recordings=())
        return _refit(less, weights is not None, consistency, fill_with, found)

    return replace(_constrained_estimate(free, name, problem.regression, weights, consistency, found), refit=refit)


def _refit(problem: Problem, weighted: bool, consistency: Consistency, fill_with: Fill, earlier: Inside) -> Array:
    """Return theta (parameters,) of a constrained fit, with the barrier of an earlier fit of similar equations. The
    weight of the barrier is scaled by the misfit. A few Newton steps from the earlier minimum find the unique minimum.
    An error is raised if the equations lack a parameter of the earlier fit."""
    check_same_parameters(problem, consistency)
    with one_blas_thread():
        weights = joint_weights(problem.regression) if weighted else None
        if earlier.barrier is not None:
            measured = problem.regression.stack(weights, prior=False)
            barrier = earlier.barrier.times(misfit_unit(measured) / misfit_unit(earlier.measured))
            matrix, rho = standard_rows(problem, measured, prior_rows(problem, weights, measured))
            try:
                theta = minimise(matrix, rho, barrier, earlier.theta, earlier.theta)
            except NotPossibleError:
                theta = None
            if theta is not None and theta[consistency.places[:, 9]].sum() < _CLEARLY_LIGHTER * consistency.heaviest:
                return consistency.with_known(theta)
        free = LinearFit.from_problem(problem, weights)
        return _best_inside(free, problem.regression, weights, consistency, fill_with).theta


def constrained_fit(problem: Problem, regression: Regression, weights: Array | None,
                    consistency: Consistency) -> tuple[Fit, Stacked, tuple[Array, Array] | None]:
    """Return the fit inside the consistent set, its weighted equations, and the prior rows of known values."""
    # Known values with a standard deviation are standard parameters, which base parameters include only in part.
    measured = regression.stack(weights, prior=False)
    prior = prior_rows(problem, weights, measured)
    return fit(consistency, problem.base, measured, prior=prior), measured, prior


def inside_the_set(free: LinearFit, name: str, regression: Regression, weights: Array | None,
                   consistency: Consistency, fill_with: Fill = "auto") -> Estimate:
    """Return the estimate of a constrained fit with all standard parameters, and its diagnostics.

    The diagnostic `given_up` is the relative increase of the misfit over the smallest misfit in the set. The diagnostic
    `excess_over_noise` is the increase of the misfit by the constraints, relative to the increase by noise that is
    expected for the true robot. A value above one contradicts the constraints.

    Args:
        free: the unconstrained fit.
        name: name of the method.
        regression: the fitted equations.
        weights: weights of the joints (dof,), or None.
        consistency: the consistent set.
        fill_with: criterion for undetermined parameters.
    """
    found = _best_inside(free, regression, weights, consistency, fill_with)
    return _constrained_estimate(free, name, regression, weights, consistency, found)


def _constrained_estimate(free: LinearFit, name: str, regression: Regression, weights: Array | None,
                          consistency: Consistency, found: Inside) -> Estimate:
    """Return the `Estimate` of the constrained fit `found`; the other arguments are those of `inside_the_set`."""
    problem, solution = free.problem, free.solution
    best, measured, theta, stacked = found.best, found.measured, found.theta, regression.stack(weights)
    beta = problem.base.matrix @ theta
    held = replace(free, solution=replace(solution, beta=beta))
    facts = diagnostics(
        problem.regression, held.solution, held.weights, consistent=True, excess_misfit=best.excess,
        active=list(dict.fromkeys(block.body or block.name for block in best.active)),
        excess_over_noise=(best.misfit - best.unconstrained) / found.noise_misfit if found.noise_misfit > 0 else 0.0,
        smallest_eigenvalue=consistency.smallest_eigenvalue(theta),
        unconstrained_relative_error=problem.regression.relative_error(solution.beta), form=consistency.form,
        filled_with=found.source, not_filled=open_names(problem) if found.source == "none" else [],
        given_up=max(measured.misfit(beta) / best.misfit - 1.0, 0.0) if best.misfit > 0 else 0.0,
        standard_errors="of the unconstrained estimate, restricted by the nearly active constraints", **free.facts)
    weight = 0.5 * _tolerance(best, found.noise_misfit, measured) / max(barrier_size(consistency), 1)

    def uncertain(cov_type: CovType | None) -> Uncertainty:
        found = held.uncertainty(cov_type)  # its covariance is that of the unconstrained fit
        return replace(found, covariance=constrained_covariance(problem, consistency, theta, weight, stacked,
                                                                solution.beta, found.covariance))

    return Estimate(name, problem.model, problem.base, beta, solution.identified, OnDemand(uncertain), theta,
                    diagnostics=facts)


@dataclass(frozen=True, eq=False)
class Inside:
    """A constrained fit with all standard parameters.

    Attributes:
        best: the constrained optimum.
        measured: the equations without prior rows.
        noise_misfit: expected difference of the true robot's misfit from the smallest misfit.
        theta: standard parameters (parameters,), including undetermined ones.
        source: criterion by which undetermined parameters were chosen.
        barrier: barrier that theta minimises, or None.
    """

    best: Fit
    measured: Stacked
    noise_misfit: float
    theta: Array
    source: str
    barrier: Barrier | None


def _best_inside(free: LinearFit, regression: Regression, weights: Array | None, consistency: Consistency,
                 fill_with: Fill) -> Inside:
    """Return the best fit of weighted equations inside the consistent set, with all standard parameters."""
    stacked = regression.stack(weights)
    best, measured, prior = constrained_fit(free.problem, regression, weights, consistency)
    # Expected excess of the true robot's misfit over the smallest misfit: smaller differences are noise.
    noise_misfit = float(np.sum((stacked.r @ free.noise(None).covariance(free.solution)) * stacked.r))
    return Inside(best, measured, noise_misfit, *filled(free.problem, consistency, measured, best, noise_misfit,
                                                        fill_with, prior))


def filled(problem: Problem, consistency: Consistency, stacked: Stacked, best: Fit, noise_misfit: float,
           fill_with: Fill = "auto", prior: tuple[Array, Array] | None = None) -> tuple[Array, str, Barrier | None]:
    """Return standard parameters (parameters,) of the constrained optimum, with undetermined ones chosen by a
    criterion; the name of this criterion; and its barrier or None.

    Undetermined parameters are chosen by `fill_by_barrier` with an increase of the misfit below `noise_misfit` (see
    `Inside`). The criterion is "nominal", "central", or "none" if neither succeeds. The torques do not change.
    """
    nominal = _nominal(problem, consistency, fill_with)
    matrix, rho = standard_rows(problem, stacked, prior)
    tolerance = _tolerance(best, noise_misfit, stacked)
    for source, matrices in [*([] if nominal is None else [("nominal", nominal.matrices)]), ("central", None)]:
        try:
            theta, barrier = fill_by_barrier(consistency, matrix, rho, best.theta, tolerance=tolerance,
                                             nominal=matrices)
        except NotPossibleError:
            continue
        return consistency.with_known(theta), source, barrier
    return consistency.with_known(best.theta), "none", None


def standard_rows(problem: Problem, stacked: Stacked, prior: tuple[Array, Array] | None) -> tuple[Array, Array]:
    """Return matrix (k, parameters) and values (k,) of equations and prior rows, for standard parameters."""
    matrix, rho = stacked.r @ problem.base.matrix, stacked.rho
    return (matrix, rho) if prior is None else (np.vstack([matrix, prior[0]]), np.concatenate([rho, prior[1]]))


def _tolerance(best: Fit, noise_misfit: float, stacked: Stacked) -> float:
    """Return the accepted increase of the sum of squares for the choice of undetermined parameters: less than noise
    causes, but at least the solver's accuracy, which matters for data without noise."""
    torque = float(np.sum(stacked.rho ** 2)) + stacked.rest
    return max(min(_FILL_TOLERANCE * best.misfit, noise_misfit), 1e-9 * best.misfit, _SOLVER_TOLERANCE * torque, 1e-300)


def open_names(problem: Problem) -> list[str]:
    """Return the names of the bodies' inertial parameters that the base parameters do not determine."""
    base = problem.base
    _, singular, right = np.linalg.svd(base.matrix)
    free = right[np.sum(singular > _ZERO_COLUMN * singular.max(initial=0.0)):]
    return [item.name for item, moves in zip(problem.model.parameters, np.linalg.norm(free, axis=0), strict=True)
            if item.body is not None and moves > 1e-6 and item.name not in base.known]


def _nominal(problem: Problem, consistency: Consistency, fill_with: Fill) -> Nominal | None:
    if fill_with not in ("auto", "central", "nominal"):
        raise ModelError("undetermined parameters are chosen by fill_with = 'central', 'nominal' or 'auto', not by "
                         f"'{fill_with}'", code="unknown-fill")
    if fill_with == "central" or (fill_with == "auto" and consistency.form != "pseudo"):
        return None
    try:
        return nominal_model(consistency, problem.nominal)
    except ModelError:
        if fill_with == "nominal":
            raise
        return None
