"""Published methods for comparison: pc-points, pc-sqp, pc-virtual, pc-logchol, pc-reduce, pc-box, extract."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from dynid.arrays import Array
from dynid.consistency import Fit
from dynid.consistency.literature import fit_box, fit_log_cholesky, fit_points, fit_reduced, fit_sqp, fit_virtual
from dynid.errors import ModelError
from dynid.estimate.consistent import prior_rows, problem_consistency
from dynid.estimate.covariance import LinearFit, diagnostics
from dynid.estimate.estimate import Estimate
from dynid.estimate.linear import joint_weights, solve, stack_enough
from dynid.estimate.problem import Problem, find_method, method
from dynid.estimate.uncertainty import OnDemand
from dynid.extraction import BaseValues, ExtractionOptions, extract
from dynid.extraction.searches import find_search
from dynid.regression import BaseParameters, Stacked

# weight of a known value's row relative to its torque, in a search without equality constraints
_KNOWN_VALUE_WEIGHT = 1e3


def _estimate(name: str, fit: Callable[..., Fit], problem: Problem, **options: Any) -> Estimate:
    """Return the estimate of a published method by its function `fit`, with joint weights and covariance of `wls`."""
    weights = joint_weights(problem.regression)
    stacked = stack_enough(problem.regression, weights)
    solution = solve(problem.regression, stacked)
    consistency = problem_consistency(problem)
    nominal, has_start = problem.nominal, name in ("pc-sqp", "pc-virtual", "pc-logchol")
    if has_start and nominal is not None and consistency.slack(nominal) > 0:  # strictly feasible
        options = {"begin": nominal, **options}
    equations = (problem.base, stacked) if name == "pc-reduce" else _with_known(problem, weights)
    best = fit(consistency, *equations, **options)
    theta = consistency.with_known(best.theta)
    beta = problem.base.matrix @ theta
    held = replace(LinearFit.from_solution(problem, solution, weights), solution=replace(solution, beta=beta))
    wrong = consistency.violations(theta, 1e-6)
    facts = diagnostics(problem.regression, held.solution, weights, consistent=not wrong,
                        violations=[violation.message for violation in wrong],
                        smallest_eigenvalue=best.smallest_eigenvalue, excess_misfit=best.excess,
                        unconstrained_relative_error=problem.regression.relative_error(solution.beta),
                        standard_errors="of the unconstrained estimate")
    return Estimate(name, problem.model, problem.base, beta, solution.identified, OnDemand(held.uncertainty), theta,
                    diagnostics=facts)


def _with_known(problem: Problem, weights: Array) -> tuple[BaseParameters, Stacked]:
    """Return base parameters and equations, extended by one equation for every known value."""
    base, stacked = problem.base, problem.regression.stack(weights, prior=False)
    rows, values = prior_rows(problem, weights, stacked) or (np.empty((0, len(base.parameters))), np.empty(0))
    size = np.sqrt(float(np.sum(stacked.rho ** 2)) + stacked.rest)
    for name, value in base.known.items():
        row = np.zeros((1, len(base.parameters)))
        row[0, base.parameters.index(name)] = _KNOWN_VALUE_WEIGHT * size / max(abs(value), 1e-3)
        rows, values = np.vstack([rows, row]), np.append(values, row[0, base.parameters.index(name)] * value)
    if not len(values):
        return base, stacked
    count, more = len(base), len(values)
    r = np.zeros((count + more, count + more))
    r[:count, :count], r[count:, count:] = stacked.r, np.eye(more)
    wider = replace(base, matrix=np.vstack([base.matrix, rows]))
    return wider, Stacked(r, np.concatenate([stacked.rho, values]), stacked.rest, stacked.rows)


@method("pc-points", "point masses in a box by quadratic programming", gives={"theta"}, depends_on={"units"})
def points(problem: Problem, *, count: int = 3, prior_std: float | None = None) -> Estimate:
    """Return an estimate with masses on a grid of points in a box around each link (Sousa, eq. 2.74-2.76).

    Args:
        problem: the identification problem.
        count: points along each edge of a link's box.
        prior_std: standard deviation, kg, of each point mass about the nominal one; None for no regularisation.
    """
    prior = None if prior_std is None else (_nominal(problem, "pc-points", prior_std), prior_std)
    return _estimate("pc-points", fit_points, problem, count=count, prior=prior)


@method("pc-sqp", "sequential quadratic programming with eigenvalue or minor constraints", gives={"theta"})
def sequential(problem: Problem, *, constraint: Literal["sylvester", "eigenvalues"] = "eigenvalues",
               iterations: int = 300, prior_std: float | None = None, steps: int = 1) -> Estimate:
    """Return an estimate by sequential quadratic programming with limits on eigenvalues or minors.

    See Mata et al. 2005 and Sousa, eq. 2.69.

    Args:
        problem: the identification problem.
        constraint: limits on eigenvalues or on minors.
        iterations: largest number of iterations.
        prior_std: standard deviation of every base parameter about its nominal value, in its unit; None for no prior.
        steps: 2 starts at a solution that requires only positive masses and diagonal inertias (Mata et al.).
    """
    if steps not in (1, 2):
        raise ModelError(f"method 'pc-sqp' has 1 or 2 steps, got {steps}", code="wrong-option")
    prior = None
    if prior_std is not None:
        nominal = _nominal(problem, "pc-sqp", prior_std)
        has_value = np.isfinite(nominal)
        hidden = np.any(problem.base.matrix[:, ~has_value] != 0.0, axis=1)
        values = problem.base.matrix @ np.where(has_value, nominal, 0.0)
        prior = (np.where(hidden, np.nan, values), prior_std)
    return _estimate("pc-sqp", fit_sqp, problem, constraint=constraint, iterations=iterations, prior=prior, steps=steps)


def _nominal(problem: Problem, name: str, deviation: float) -> Array:
    """Return the nominal parameters (parameters,) toward which a method is regularised; NaN without a nominal value."""
    if not (deviation > 0 and np.isfinite(deviation)):
        raise ModelError(f"prior_std of method '{name}' must be a number above zero, got {deviation}",
                         code="bad-prior-std")
    values = problem.nominal if problem.nominal is not None else np.array(
        [np.nan if item.nominal is None else item.nominal for item in problem.model.parameters], dtype=float)
    for body, places in problem.model.parameters.bodies.items():
        if not np.isfinite(values[places]).all():
            raise ModelError(f"method '{name}' has no nominal values of link '{body}' to regularise toward: give a "
                             "robot file with inertias, or remove prior_std")
    return values


@method("pc-virtual", "squared virtual parameters by nonlinear least squares", gives={"theta"})
def squared_virtual(problem: Problem, *, iterations: int = 200) -> Estimate:
    """Return an estimate by least squares in squared virtual parameters (Ting et al. 2006; Sousa, eq. 2.70-2.73)."""
    return _estimate("pc-virtual", fit_virtual, problem, iterations=iterations)


@method("pc-logchol", "log-Cholesky coordinates by nonlinear least squares", gives={"theta"}, depends_on={"units"})
def log_cholesky(problem: Problem, *, iterations: int = 200) -> Estimate:
    """Return an estimate by nonlinear least squares in log-Cholesky coordinates (Rucker and Wensing 2022)."""
    return _estimate("pc-logchol", fit_log_cholesky, problem, iterations=iterations)


@method("pc-reduce", "parameters removed until least squares is physically consistent", gives={"theta"})
def reduced(problem: Problem, *, every: int = 1) -> Estimate:
    """Return a least-squares estimate with base parameters removed until it is consistent (Diaz-Rodriguez et al. 2010;
    Sousa, s. 6.4). every: number of removals between consistency tests."""
    return _estimate("pc-reduce", fit_reduced, problem, every=every)


@method("pc-box", "bounds on single parameters", gives={"theta"})
def boxed(problem: Problem) -> Estimate:
    """Return a least-squares estimate with masses, diagonal inertias and friction that are not negative.

    See Lomakin and Deutscher, s. VI.
    """
    return _estimate("pc-box", fit_box, problem)


@method("extract", "base values of another method, all parameters by global search within bounds", gives={"theta"})
def extracted(problem: Problem, *, of: str = "wls", bounds: str = "normal",
              loss: Literal["full", "partial", "inertia"] = "full", form: Literal["exact", "penalty"] = "exact",
              step: Literal["two", "one"] = "two", search: str = "annealing", nearest: bool = False, runs: int = 20,
              evaluations: int = 20000, seed: int = 0) -> Estimate:
    """Return the estimate of method `of`, completed by full parameters inside bounds with the same base values.

    See Simionato, s. 2.3.

    Args:
        problem: the identification problem.
        of: method that gives the base values.
        bounds: "loose", "normal", "tight" or a bounds file.
        loss, form, step, search, nearest, runs, evaluations, seed: as in `dynid.literature.ExtractionOptions`.
    """
    if of == "extract":
        raise ModelError("method 'extract' needs the base values of another method; name that method, for example "
                         "of = 'wls'")
    first = find_method(of).function(problem)
    stacked = problem.regression.stack(joint_weights(problem.regression)) if step == "one" else None
    found = extract(BaseValues.from_estimate(first, stacked), bounds, ExtractionOptions(
        loss=loss, form=form, step=step, search=find_search(search), nearest=nearest, runs=runs,
        evaluations=evaluations, seed=seed))
    facts = {key: value for key, value in found.to_dict().items() if key != "parameters"}
    return replace(first, method="extract", values=first.base.matrix @ found.theta, theta=found.theta,
                   diagnostics=first.diagnostics.with_facts({"consistent": found.feasible, "extraction": facts,
                                                             "violations": [one.message for one in found.violations],
                                                             "standard_errors": f"of the base values, by {of}"}))
