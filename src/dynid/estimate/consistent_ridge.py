"""Method pc-ridge: ridge regression toward a nominal model, constrained to physically consistent parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import tee
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.consistency import Consistency, Fit, fit
from dynid.consistency.consistency import MARGIN
from dynid.consistency.prior import (
    STRENGTHS,
    Metric,
    Nominal,
    PriorFit,
    best_strength,
    entropic_fits,
    euclidean_fits,
    euclidean_rows,
    nominal_model,
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
from dynid.regression import BaseParameters, Stacked
from dynid.threads import one_blas_thread

Rows = tuple[Array, Array]  # (k, parameters) and values (k,)
_PRIOR_ROUNDS = 4  # alternating estimates of noise and prior strength


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
    if strength is not None and not (np.isfinite(strength) and strength > 0):
        raise ModelError(f"the strength of pc-ridge must be a number above zero, got {strength}", code="bad-strength")
    with one_blas_thread():
        consistency = problem_consistency(problem, margin=margin, shapes=shapes, centres=centres, masses=masses)
        nominal = nominal_model(consistency, problem.nominal)
        weights = joint_weights(problem.regression)
        solution = solve(problem.regression, problem.regression.stack(weights))
        bodies = dict(zip(consistency.bodies, nominal.matrices, strict=True))
        found = _in_turn(problem, consistency, nominal, bodies, metric, weights, strength)
        chosen, penalty, on_border = found.chosen, found.penalty, False
        theta = chosen.theta
        if metric == "euclidean":
            best = _euclidean(problem, consistency, nominal, found.stacked, found.prior, chosen.strength)
            theta, on_border = best.theta, bool(best.active)
        theta = consistency.with_known(theta)
        held = replace(solution, beta=problem.base.matrix @ theta)
        facts = diagnostics(
            problem.regression, held, weights, consistent=True, metric=metric, strength=chosen.strength,
            strength_from="given" if strength else "evidence",
            nominal_thickened=list(nominal.thickened), friction_wrong_by=dict(penalty.shares),
            friction_to_zero=list(penalty.to_zero),
            nominal_relative_error=problem.regression.relative_error(problem.base.matrix @ nominal.theta),
            unconstrained_relative_error=problem.regression.relative_error(solution.beta),
            smallest_eigenvalue=consistency.smallest_eigenvalue(theta),
            standard_errors="autocorrelated noise of the data, and estimated errors of the nominal model" + (
                "; active constraints are not included" if on_border else ""))
        return Estimate("pc-ridge", problem.model, problem.base, held.beta, solution.identified,
                        OnDemand(lambda cov_type: _uncertainty(problem, held, weights, found, cov_type)), theta,
                        diagnostics=facts, refit=lambda fewer: _refit(
                            replace(problem, regression=fewer, data=(), recordings=()), consistency, nominal, metric,
                            found, theta))


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fit with regularisation toward the nominal model, with the chosen strength.

    Attributes:
        chosen: the fit.
        stacked, weights: equations, and joint weights (dof,) in units of independent noise.
        penalty: regularisation of friction.
        prior: other prior rows.
    """

    chosen: PriorFit
    stacked: Stacked
    weights: Array
    penalty: FrictionPenalty
    prior: Rows


def _in_turn(problem: Problem, consistency: Consistency, nominal: Nominal, bodies: Mapping[str, Array], metric: Metric,
             weights: Array, strength: float | None) -> Fitted:
    """Return the fit after alternating estimates of the noise, the regularisation of friction, and the prior strength.
    weights (dof,): joint weights of `wls`, for the first fit."""
    regression = problem.regression
    stacked = regression.stack(weights, prior=False)
    known = prior_rows(problem, weights, stacked)
    fit(consistency, problem.base, stacked, prior=known)  # raises an error for limits that contradict the data
    # Initial noise: residuals of the consistent fit with a very weak prior.
    chosen = best_strength(_prior_fits(problem, consistency, nominal, metric, stacked, known, min(STRENGTHS)))
    for _ in range(_PRIOR_ROUNDS):
        deviation, independent = residual_noise(problem, problem.base.matrix @ chosen.theta)
        believed = np.sqrt(independent) / deviation
        stacked = regression.stack(believed, prior=False)
        penalty = friction_penalty(problem, stacked, bodies)
        prior = _with(prior_rows(problem, np.ones(regression.dof), stacked), penalty.rows, penalty.values)
        before = chosen
        chosen = _no_worse_than_wls(problem, stacked, penalty,
                                    _prior_fits(problem, consistency, nominal, metric, stacked, prior, strength))
        if chosen.strength == before.strength:
            break
    return Fitted(chosen, stacked, believed, penalty, prior)


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


def _refit(problem: Problem, consistency: Consistency, nominal: Nominal, metric: Metric, found: Fitted,
           near: Array) -> Array:
    """Return theta (parameters,) of a fit with the noise, prior strength and friction regularisation of an earlier fit.
    near (parameters,): initial values. An error is raised if the equations lack a parameter of the earlier fit."""
    stacked = problem.regression.stack(found.weights, prior=False)
    check_same_parameters(problem, consistency)
    prior = prior_rows(problem, np.ones(problem.regression.dof), stacked)
    prior = _with(prior, found.penalty.rows, found.penalty.values)
    with one_blas_thread():
        if metric == "euclidean":
            best = _euclidean(problem, consistency, nominal, stacked, prior, found.chosen.strength)
            return consistency.with_known(best.theta)
        [one] = _prior_fits(problem, consistency, nominal, metric, stacked, prior, found.chosen.strength, near)
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
