"""Methods map and pc-ridge: fits regularised toward a nominal robot, among physically consistent parameters.

Method `map` is the default. It takes the nominal robot from the file where that is believable and from the geometry of
the links elsewhere (`dynid.robot.nominal`), estimates the total mass if no file gives it, and chooses the strength of
the regularisation by the evidence of the data. If the data contradict every physically consistent robot, the bodies
depart from the consistent robot by a normal prior, whose width is chosen by cross-validation: torques are then
predicted better, and the consistent robot is the one to be written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import tee
from typing import Any

import numpy as np

from dynid.arrays import Array, Ints
from dynid.consistency import Consistency, Fit, fit
from dynid.consistency.consistency import MARGIN
from dynid.consistency.prior import (
    STRENGTHS,
    Metric,
    Nominal,
    PriorFit,
    best_strength,
    body_curvatures,
    entropic_fits,
    euclidean_fits,
    euclidean_rows,
    limit_curvature,
    nominal_model,
    nominal_of,
)
from dynid.errors import ModelError, NotPossibleError
from dynid.estimate.consistent import check_same_parameters, prior_rows, problem_consistency, standard_rows
from dynid.estimate.covariance import LinearFit, diagnostics, noise, residual_noise
from dynid.estimate.estimate import Estimate
from dynid.estimate.friction_regularisation import FrictionPenalty, friction_penalty
from dynid.estimate.linear import Solution, joint_weights, solve
from dynid.estimate.nominal_errors import NominalErrors, at_most_the_difference, leaning
from dynid.estimate.problem import Problem, method
from dynid.estimate.uncertainty import CovType, OnDemand, Uncertainty
from dynid.model import complete
from dynid.regression import BaseParameters, Regression, Stacked
from dynid.robot.nominal import NominalBodies, nominal_bodies
from dynid.threads import one_blas_thread

Rows = tuple[Array, Array]  # (k, parameters) and values (k,)
_PRIOR_ROUNDS = 4  # alternating estimates of noise and prior strength
_MASS_ROUNDS = 12  # the same if the total mass of the nominal robot is estimated too
_SAME_MASS = 0.05  # relative change of the total mass that does not matter
# Widths of departures from the consistent robot that are compared, relative to the nominal bodies: none, that of a
# good nominal robot, that of the bodies themselves, and free.
INCONSISTENCIES = (0.0, 0.1, 1.0, 10.0)
# Corrected standard errors by which a wider departure must predict better. It is below one, because inconsistent bodies
# cost little if data are many, while consistent ones that the data contradict may double the error.
DEPARTURE_ERRORS = 0.5
_MIN_BLOCKS = 4  # blocks of time for a comparison of departures
MAX_MASS_RATIO = 100.0  # largest total mass relative to the nominal one
# Relative error of nominal bodies that are made from geometry: masses are known within a factor of two at best.
GEOMETRY_ERROR = 1.0
# Standard errors by which a prior may move base parameters away from the data: their root mean square, and the largest.
MAX_RMS_MOVE, MAX_MOVE = 0.5, 1.5
_EXACT_SHARE = 1e-10  # of the squared torques: smaller errors are those of rounding


@method("pc-ridge", "weighted least squares among physically consistent robots, regularised toward the nominal model",
        needs={"excerpt"}, gives={"theta"})
def consistent_ridge(problem: Problem, *, metric: Metric = "entropic", strength: float | None = None,
                     margin: float = MARGIN, shapes: bool = False, centres: Mapping[str, Any] | None = None,
                     masses: Sequence[Any] = ()) -> Estimate:
    """Return consistent parameters regularised toward a nominal model (the robot file, or `nominal` of the problem).

    metric: "entropic" (log-det divergence of pseudo-inertias) or "euclidean". strength: by default the one of
    greatest evidence, with the effective number of rows of each joint and the noise about the best consistent robot;
    noise and strength are estimated alternately. Friction is regularised too, toward its nominal values or zero, each
    symbol with its own strength (`friction_penalty`): diagnostics["friction_wrong_by"] has its estimated relative
    errors, and ["friction_to_zero"] the symbols whose nominal values have less evidence.
    """
    if metric not in ("entropic", "euclidean"):
        raise ModelError(f"the metric of pc-ridge is 'entropic' or 'euclidean', not '{metric}'", code="unknown-metric")
    consistency = problem_consistency(problem, margin=margin, shapes=shapes, centres=centres, masses=masses)
    nominal = nominal_model(consistency, problem.nominal)
    return _estimate("pc-ridge", problem, consistency, nominal, metric, strength)


@method("map", "physically consistent maximum a posteriori estimate, near a believable nominal robot",
        needs={"excerpt"}, gives={"theta"})
def maximum_posterior(problem: Problem, *, strength: float | None = None, inconsistency: float | None = None,
                      margin: float = MARGIN, shapes: bool = False, centres: Mapping[str, Any] | None = None,
                      masses: Sequence[Any] = ()) -> Estimate:
    """Return the maximum a posteriori estimate with a log-det prior of the bodies toward a believable nominal robot.

    Args:
        problem: the identification problem.
        strength: strength of the prior of the bodies. Default: the one of greatest evidence.
        inconsistency: width of the departures from the physically consistent robot, relative to the nominal bodies;
            zero for a consistent robot. Default: chosen by cross-validation.
        margin, shapes, centres, masses: see `dynid.estimate.consistent.problem_consistency`.
    """
    if inconsistency is not None and not (np.isfinite(inconsistency) and inconsistency >= 0):
        raise ModelError(f"the inconsistency of map must not be negative, got {inconsistency}",
                         code="bad-inconsistency")
    consistency = problem_consistency(problem, margin=margin, shapes=shapes, centres=centres, masses=masses)
    bodies = believable_bodies(problem)
    if not consistency.bodies:  # all inertias are known
        return _estimate("map", problem, consistency, nominal_of(consistency, {}), "entropic", strength)
    # Undetermined masses follow the nominal robot, so that the bound of the total mass may be far above any true mass.
    consistency = replace(consistency, heaviest=max(
        consistency.heaviest, MAX_MASS_RATIO * sum(float(matrix[3, 3]) for matrix in bodies.matrices.values())))
    return _estimate("map", problem, consistency, nominal_of(consistency, bodies.matrices), "entropic", strength,
                     bodies, inconsistency)


def believable_bodies(problem: Problem) -> NominalBodies:
    """Return the nominal bodies of a problem: given values or those of the file where they are believable."""
    robot = complete(problem.model).robot
    if robot is None:
        raise ModelError("method 'map' needs a model made from a robot; use another method for your own model",
                         "try --method wls", "model-without-robot")
    parameters = problem.model.parameters
    given = np.array([np.nan if item.nominal is None else item.nominal for item in parameters]) \
        if problem.nominal is None else problem.nominal
    return nominal_bodies(robot, {name: given[columns] for name, columns in parameters.bodies.items()})


def _estimate(name: str, problem: Problem, consistency: Consistency, nominal: Nominal, metric: Metric,
              strength: float | None, bodies: NominalBodies | None = None, inconsistency: float | None = 0.0
              ) -> Estimate:
    """Return the regularised estimate. bodies: sources of the nominal bodies, whose total mass may be unknown.
    inconsistency: see `maximum_posterior`."""
    if strength is not None and not (np.isfinite(strength) and strength > 0):
        raise ModelError(f"the strength of {name} must be a number above zero, got {strength}", code="bad-strength")
    with one_blas_thread():
        weights = joint_weights(problem.regression)
        solution = solve(problem.regression, problem.regression.stack(weights))
        found = _in_turn(problem, consistency, nominal, metric, weights, strength,
                         has_mass=bodies is None or bodies.has_mass, may_depart=bodies is not None)
        if bodies is not None:
            found = replace(found, assumed=np.concatenate([np.zeros(0, dtype=np.int64), *(
                columns for name, columns in consistency.bodies.items() if bodies.sources.get(name) != "file")]))
        departing = None if bodies is None else _Departing.from_fit(problem, consistency, found)
        width = 0.0 if departing is None else departing.choose(problem, weights) if inconsistency is None else \
            inconsistency
        if bodies is not None and strength is None and width == 0.0:
            found = _near_the_data(problem, consistency, found)
        chosen, penalty, on_border = found.chosen, found.penalty, False
        theta = chosen.theta
        if metric == "euclidean":
            best = _euclidean(problem, consistency, found.nominal, found.stacked, found.prior, chosen.strength)
            theta, on_border = best.theta, bool(best.active)
        theta = consistency.with_known(theta)
        more: dict[str, Any] = {}
        if bodies is not None:
            more = {"inconsistency": width, "nominal_sources": dict(bodies.sources),
                    "nominal_not_used": dict(bodies.reasons),
                    "nominal_mass": float(found.nominal.matrices[:, 3, 3].sum())}
        if departing is not None and width > 0.0:
            found = replace(found, chosen=departing.fit(problem.base, width))
        held = replace(solution, beta=problem.base.matrix @ (theta if width == 0.0 else found.chosen.theta))
        facts = diagnostics(
            problem.regression, held, weights, consistent=width == 0.0, metric=metric, strength=chosen.strength,
            strength_from="given" if strength else "evidence",
            nominal_thickened=list(nominal.thickened), friction_wrong_by=dict(penalty.shares),
            friction_to_zero=list(penalty.to_zero),
            nominal_relative_error=problem.regression.relative_error(problem.base.matrix @ found.nominal.theta),
            unconstrained_relative_error=problem.regression.relative_error(solution.beta),
            smallest_eigenvalue=consistency.smallest_eigenvalue(theta),
            standard_errors="autocorrelated noise of the data, and estimated errors of the nominal model" + (
                "; active constraints are not included" if on_border else ""), **more)

        def refit(fewer: Regression) -> Array:
            less = replace(problem, regression=fewer, data=(), recordings=())
            if departing is not None and width > 0.0:
                check_same_parameters(less, consistency)
                return departing.on(fewer, found.weights).fit(problem.base, width).theta
            return _refit(less, consistency, metric, found, theta)

        return Estimate(name, problem.model, problem.base, held.beta, solution.identified,
                        OnDemand(lambda cov_type: _uncertainty(problem, held, weights, found, cov_type)),
                        theta if width == 0.0 else None, diagnostics=facts, refit=refit)


def _near_the_data(problem: Problem, consistency: Consistency, found: Fitted) -> Fitted:
    """Return a fit with the strongest prior, not stronger than that of a fit, that moves no base parameter far.

    The evidence assumes equal relative errors of all nominal bodies. If one of them is very wrong, the prior moves
    parameters away from values that the data determine well. Moves are those from the fit with the weakest prior, in
    standard errors of least squares.
    """
    every = _prior_fits(problem, consistency, found.nominal, "entropic", found.stacked, found.prior, None)
    fits = [one for one in every if one.strength <= found.chosen.strength]
    free = solve(problem.regression, found.stacked)
    std = np.sqrt(np.maximum(np.diag(free.inverse), 0.0))
    own = free.identified & (std > 0.0)
    values = [problem.base.matrix @ one.theta for one in fits]
    for one, beta in zip(fits, values, strict=True):
        moves = (beta - values[-1])[own] / std[own]
        if not len(moves) or (np.sqrt(np.mean(moves ** 2)) <= MAX_RMS_MOVE and np.abs(moves).max() <= MAX_MOVE):
            return replace(found, chosen=one)
    return replace(found, chosen=fits[-1])


@dataclass(frozen=True, eq=False)
class _Departing:
    """Quadratic model of a regularised fit about its minimum, in which bodies may depart from consistent ones.

    With the gradient g and the Hessian H of the prior of a body at the minimum, the body is about normal with mean
    theta - H^-1 g and covariance H^-1. A departure of width w adds w^2 H0^-1 to the covariance, with the Hessian H0 of
    the divergence at the nominal body.

    Attributes:
        consistency: the consistent set.
        fitted: the consistent fit.
        normal, score: X'X (base, base) and X'(tau - X beta) (base,) of the equations.
        gradient, hessian: of all terms but the equations and the bodies at the minimum, (parameters,) and (parameters,
            parameters).
        gradients, hessians, nominal: of the bodies, (bodies, 10) and (bodies, 10, 10), and H0 (bodies, 10, 10).
    """

    consistency: Consistency
    fitted: Fitted
    normal: Array
    score: Array
    gradient: Array
    hessian: Array
    gradients: Array
    hessians: Array
    nominal: Array

    @staticmethod
    def from_fit(problem: Problem, consistency: Consistency, fitted: Fitted) -> _Departing:
        """Return the quadratic model of a consistent fit."""
        matrix, stacked, chosen = problem.base.matrix, fitted.stacked, fitted.chosen
        score = stacked.r.T @ (stacked.rho - stacked.r @ (matrix @ chosen.theta))
        normal = stacked.r.T @ stacked.r
        gradients, hessians = body_curvatures(consistency, fitted.nominal, chosen.theta, chosen.strength)
        _, nominal = body_curvatures(consistency, fitted.nominal, fitted.nominal.theta, 1.0)
        gradient = matrix.T @ score  # at the minimum, the gradients of data and prior are opposite
        hessian = chosen.information - matrix.T @ normal @ matrix
        places = consistency.places
        np.add.at(gradient, places, -gradients)
        hessian[places[:, :, None], places[:, None, :]] -= hessians
        return _Departing(consistency, fitted, normal, score, gradient, hessian, gradients, hessians, nominal)

    def on(self, regression: Regression, weights: Array) -> _Departing:
        """Return the model with other equations with joint weights (dof,)."""
        stacked = regression.stack(weights, prior=False)
        beta = regression.base.matrix @ self.fitted.chosen.theta
        return replace(self, normal=stacked.r.T @ stacked.r, score=stacked.r.T @ (stacked.rho - stacked.r @ beta))

    def fit(self, base: BaseParameters, width: float) -> PriorFit:
        """Return the fit whose bodies depart from consistent ones by a width. With a width above zero, the signs of
        friction are free too."""
        chosen, places = self.fitted.chosen, self.consistency.places
        gradient, hessian = self.gradient.copy(), self.hessian.copy()
        if width > 0.0:
            slope, curvature = limit_curvature(self.consistency, chosen.theta)
            gradient, hessian = gradient - slope, hessian - curvature
            penalty = self.fitted.penalty  # of friction, which departs too
            diagonal = np.sum(penalty.rows ** 2, axis=0)
            own = np.flatnonzero(diagonal)
            share = 1.0 / (1.0 + diagonal[own] * (width * penalty.scale[own]) ** 2)
            gradient[own] -= (1.0 - share) * diagonal[own] * (chosen.theta - penalty.nominal)[own]
            hessian[own, own] -= (1.0 - share) * diagonal[own]
        inside = np.linalg.inv(self.hessians)
        precision = np.linalg.inv(inside + width ** 2 * np.linalg.inv(self.nominal))
        slope = np.einsum("bij,bjk,bk->bi", precision, inside, self.gradients)
        np.add.at(gradient, places, slope)
        hessian[places[:, :, None], places[:, None, :]] += precision
        information = base.matrix.T @ self.normal @ base.matrix + hessian
        slope = base.matrix.T @ self.score - gradient
        free = np.eye(len(slope)) if chosen.free is None else chosen.free
        theta = chosen.theta + free @ _solve_scaled(free.T @ information @ free, free.T @ slope)
        return PriorFit(self.consistency.with_known(theta), chosen.strength, information, chosen.evidence, chosen.free)

    def choose(self, problem: Problem, scales: Array) -> float:
        """Return the smallest width of departures that is not worse than the best one in cross-validation over blocks
        of time, by a share of the corrected standard error (Nadeau and Bengio, 2003).

        scales: weights (dof,) of the joints' errors, from least squares, since residuals of a contradicted fit are no
        noise.
        """
        regression, weights = problem.regression, self.fitted.weights
        blocks = [block for block in regression.blocks if block.rows]
        if len(blocks) < _MIN_BLOCKS:
            return 0.0
        beta = problem.base.matrix @ self.fitted.chosen.theta
        losses = np.zeros((len(INCONSISTENCIES), len(blocks)))
        for k, block in enumerate(blocks):
            normal, score = self.normal.copy(), self.score.copy()
            for weight, factor in zip(weights, block.factors, strict=True):
                rows = weight * factor.r[:, :-1]
                normal[np.ix_(factor.columns, factor.columns)] -= rows.T @ rows
                score[factor.columns] -= rows.T @ (weight * factor.r[:, -1] - rows @ beta[factor.columns])
            others = replace(self, normal=normal, score=score)
            for i, width in enumerate(INCONSISTENCIES):
                values = problem.base.matrix @ others.fit(problem.base, width).theta
                losses[i, k] = sum(scale ** 2 * factor.misfit(values)
                                   for scale, factor in zip(scales, block.factors, strict=True))
        power = sum(scale ** 2 * factor.power for scale, factor in zip(scales, regression.factors, strict=True))
        logs = np.log(losses + _EXACT_SHARE * power / len(blocks))
        best, n = logs[int(logs.mean(axis=1).argmin())], len(blocks)
        excess = logs - best
        error = excess.std(axis=1, ddof=1) * np.sqrt(1.0 / n + 1.0 / (n - 1))
        return next(width for width, mean, one in zip(INCONSISTENCIES, excess.mean(axis=1), error, strict=True)
                    if mean <= DEPARTURE_ERRORS * one)


def _solve_scaled(matrix: Array, right: Array) -> Array:
    """Return the solution of a symmetric positive semidefinite system, scaled to a unit diagonal."""
    size = 1.0 / np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    scaled = matrix * size * size[:, None]
    scaled[np.diag_indices(len(scaled))] += 1e-13
    return np.asarray(size * np.linalg.solve(scaled, size * right))


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fit with regularisation toward the nominal model, with the chosen strength.

    Attributes:
        chosen: the fit.
        stacked, weights: equations, and joint weights (dof,) in units of independent noise.
        penalty: regularisation of friction.
        prior: other prior rows.
        nominal: the nominal model, with the estimated total mass if that was unknown.
        assumed: indices (k,) of the inertial parameters of bodies whose nominal values are from geometry.
    """

    chosen: PriorFit
    stacked: Stacked
    weights: Array
    penalty: FrictionPenalty
    prior: Rows
    nominal: Nominal
    assumed: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


def _in_turn(problem: Problem, consistency: Consistency, nominal: Nominal, metric: Metric, weights: Array,
             strength: float | None, *, has_mass: bool = True, may_depart: bool = False) -> Fitted:
    """Return the fit after alternating estimates of the noise, the regularisation of friction, and the prior strength.

    Args:
        problem, consistency, nominal, metric, strength: see `consistent_ridge`.
        weights: joint weights (dof,) of `wls`, for the first fit.
        has_mass: whether the total mass of the nominal model is known. Otherwise the nominal masses are scaled to the
            smallest divergence from the fitted bodies, in turn with the rest.
        may_depart: whether the fit may depart from the consistent one afterwards. Otherwise a prior that costs more
            than it gains is weakened.
    """
    regression = problem.regression
    stacked = regression.stack(weights, prior=False)
    known = prior_rows(problem, weights, stacked)
    if not may_depart or consistency.centres or consistency.masses:
        fit(consistency, problem.base, stacked, prior=known)  # raises an error for limits that contradict the data
    # Initial noise: residuals of the consistent fit with a very weak prior.
    chosen = best_strength(_prior_fits(problem, consistency, nominal, metric, stacked, known, min(STRENGTHS)))
    ratio = 1.0
    for _ in range(_PRIOR_ROUNDS if has_mass else _MASS_ROUNDS):
        deviation, independent = residual_noise(problem, problem.base.matrix @ chosen.theta)
        believed = np.sqrt(independent) / deviation
        stacked = regression.stack(believed, prior=False)
        penalty = friction_penalty(problem, stacked, dict(zip(consistency.bodies, nominal.matrices, strict=True)))
        prior = _with(prior_rows(problem, np.ones(regression.dof), stacked), penalty.rows, penalty.values)
        before = chosen
        fits = _prior_fits(problem, consistency, nominal, metric, stacked, prior, strength)
        chosen = best_strength(fits) if may_depart else _no_worse_than_wls(problem, stacked, penalty, fits)
        if not has_mass:
            products = np.linalg.solve(nominal.matrices, consistency.matrices(chosen.theta))
            ratio = float(np.trace(products, axis1=1, axis2=2).mean() / 4.0)
        if chosen.strength == before.strength and abs(np.log(ratio)) < _SAME_MASS:
            break
        nominal = nominal.scaled(ratio)
    return Fitted(chosen, stacked, believed, penalty, prior, nominal)


def _no_worse_than_wls(problem: Problem, stacked: Stacked, penalty: FrictionPenalty,
                       fits: Iterable[PriorFit]) -> PriorFit:
    """Return the fit of greatest evidence, or one with a weaker prior: while its expected error exceeds that of wls,
    the strength is decreased if this decreases the error. The evidence assumes equal relative errors of all nominal
    bodies. If some bodies are very wrong, the strength of greatest evidence biases parameters that the data determine
    well. The expected torque error contains the noise and the estimated errors of the nominal model; without
    regularisation every base parameter adds one unit of noise."""
    fits, weaker = tee(fits)
    best = best_strength(fits)
    error = _Parts.from_problem(problem, best, stacked, penalty).torque_error(problem.base, stacked, penalty)
    unregularised = float(np.sum(np.any(stacked.r != 0.0, axis=0)))
    for one in weaker:
        if error <= unregularised:
            break
        if one.strength < best.strength:
            other = _Parts.from_problem(problem, one, stacked, penalty).torque_error(problem.base, stacked, penalty)
            if other >= error:
                break
            best, error = one, other
    return best


@dataclass(frozen=True, eq=False)
class _Parts:
    """Matrices from which the expected error of a regularised fit is computed.

    Attributes:
        gain: change of the base parameters by a unit score of each standard parameter (base, parameters).
        curvature: Hessian of the regularisation toward nominal values (parameters, parameters).
        stated: Hessian of known values with a standard error, and of limits (parameters, parameters).
    """

    gain: Array
    curvature: Array
    stated: Array

    @staticmethod
    def from_problem(problem: Problem, chosen: PriorFit, stacked: Stacked, penalty: FrictionPenalty) -> _Parts:
        base = problem.base
        columns = stacked.r @ base.matrix
        chosen = _without_walls(chosen, columns, penalty.rows)
        given = prior_rows(problem, np.ones(problem.regression.dof), stacked)
        other = chosen.information - columns.T @ columns
        known = np.zeros_like(other) if given is None else given[0].T @ given[0]
        body = np.array([item.body is not None for item in base.parameters])
        curvature = np.where(np.outer(body, body), other - known, 0.0) + penalty.rows.T @ penalty.rows
        return _Parts(base.matrix @ chosen.spread, curvature, other - curvature)

    def torque_error(self, base: BaseParameters, stacked: Stacked, penalty: FrictionPenalty) -> float:
        """Return the expected squared error of all torques, in units of the noise of one independent row."""
        through = stacked.r @ self.gain
        noise = np.sum((through @ (stacked.r @ base.matrix).T) ** 2)
        return float(noise + np.trace(through @ self.stated @ through.T)
                     + np.trace(penalty.errors.covariance(through @ self.curvature)))


def _refit(problem: Problem, consistency: Consistency, metric: Metric, found: Fitted, near: Array) -> Array:
    """Return theta (parameters,) of a fit with the noise, prior strength and friction regularisation of an earlier fit.
    near (parameters,): initial values. An error is raised if the equations lack a parameter of the earlier fit."""
    stacked = problem.regression.stack(found.weights, prior=False)
    check_same_parameters(problem, consistency)
    prior = prior_rows(problem, np.ones(problem.regression.dof), stacked)
    prior = _with(prior, found.penalty.rows, found.penalty.values)
    with one_blas_thread():
        if metric == "euclidean":
            best = _euclidean(problem, consistency, found.nominal, stacked, prior, found.chosen.strength)
            return consistency.with_known(best.theta)
        [one] = _prior_fits(problem, consistency, found.nominal, metric, stacked, prior, found.chosen.strength,
                            near)
        return consistency.with_known(one.theta)


def _euclidean(problem: Problem, consistency: Consistency, nominal: Nominal, stacked: Stacked, prior: Rows,
               strength: float) -> Fit:
    """Return the fit inside the consistent set with a normal (Euclidean) prior on the bodies' parameters."""
    pulled, values = euclidean_rows(consistency, nominal)
    size = np.sqrt(strength)
    return fit(consistency, problem.base, stacked, prior=_with(prior, size * pulled, size * values))


def _uncertainty(problem: Problem, solution: Solution, weights: Array, fitted: Fitted,
                 cov_type: CovType | None) -> Uncertainty:
    """Return the mean square error of a fit as its uncertainty; weights (dof,): joint weights of `wls`.

    To first order the error is J^-1 (noise - L e). Here e are the errors of the nominal bodies and friction
    (`nominal_errors`), and J = H + L adds the curvature L of the prior to H, that of the data. The mean square error
    exceeds the posterior covariance J^-1 if e exceeds the prior's assumption: the entropic prior takes the thin
    directions of a thin body as known.
    """
    if cov_type not in (None, "posterior"):
        raise NotPossibleError(f"cov_type '{cov_type}' is not possible for pc-ridge: its standard errors include the "
                               "errors of the nominal model", "remove cov_type, or use method 'pc-wls'",
                               code="cov-type-not-possible")
    base, stacked, penalty = problem.base, fitted.stacked, fitted.penalty
    columns, parts = stacked.r @ base.matrix, _Parts.from_problem(problem, fitted.chosen, stacked, penalty)
    gain = parts.gain
    found = noise(problem, replace(solution, inverse=gain @ base.matrix.T), fitted.weights,
                  regression=replace(problem.regression, prior=None))
    seen = solution.excited
    score = stacked.r.T @ (stacked.rho - columns @ penalty.nominal)
    errors = NominalErrors.from_score(penalty.errors.groups, (stacked.r.T @ columns)[seen], score[seen],
                                      found.score_covariance[np.ix_(seen, seen)])
    # Where the nominal values are those of the geometry alone, the data of other bodies do not show their errors.
    is_assumed = np.array([group.kind in ("shape", "mass") and bool(np.any(group.half[fitted.assumed]))
                           for group in errors.groups], dtype=bool)
    errors = replace(errors, variances=np.where(is_assumed, np.maximum(errors.variances, GEOMETRY_ERROR ** 2),
                                                errors.variances))
    # Known values with a standard deviation, and nearby limits, have their stated uncertainty.
    by_noise = gain @ (base.matrix.T @ found.score_covariance @ base.matrix + parts.stated) @ gain.T
    without = solve(problem.regression, stacked)
    by_nominal = at_most_the_difference(errors.covariance(gain @ parts.curvature), by_noise, found.covariance(without),
                                        solution.beta - without.beta)
    covariance = by_noise + by_nominal
    body = np.array([item.body is not None for item in base.parameters])
    notes = leaning(base, np.diag(by_nominal), np.diag(covariance), solution.identified)
    fit = LinearFit(problem, solution, weights, lambda cov_type: replace(found, cov_type="posterior"))
    return fit.uncertainty(None, covariance=0.5 * (covariance + covariance.T), notes=notes,
                           nominal_wrong_by=errors.wrong_by(np.where(body, penalty.scale, 0.0)))


def _without_walls(chosen: PriorFit, columns: Array, rows: Array) -> PriorFit:
    """Return the fit with the curvature of data and regularisation only, without that of the barrier at zero friction.
    columns (k, parameters): equations of the data. rows (k, parameters): equations of the regularisation."""
    pulled = np.flatnonzero(np.any(rows != 0.0, axis=0))
    own, penalty = columns[:, pulled], rows[:, pulled]
    information = chosen.information.copy()
    information[np.ix_(pulled, pulled)] = own.T @ own + penalty.T @ penalty
    return replace(chosen, information=information)


def _with(prior: Rows | None, rows: Array, values: Array) -> Rows:
    """Return prior equations (rows and values), extended by further rows (k, parameters) and values (k,)."""
    return (rows, values) if prior is None else (np.vstack([prior[0], rows]), np.concatenate([prior[1], values]))


def _prior_fits(problem: Problem, consistency: Consistency, nominal: Nominal, metric: Metric, stacked: Stacked,
                prior: Rows | None, strength: float | None, near: Array | None = None) -> Iterable[PriorFit]:
    """Return the fits for all prior strengths, or a given one. near (parameters,): solution of similar equations."""
    matrix, rho = standard_rows(problem, stacked, prior)
    strengths = STRENGTHS if strength is None else (strength,)
    if metric == "entropic":
        return entropic_fits(consistency, matrix, rho, nominal, strengths, near)
    return euclidean_fits(consistency, matrix, rho, *euclidean_rows(consistency, nominal), strengths)
