"""Methods pc-irls, pc-ml and pc-sls: physically consistent fits whose equations depend on the previous fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from dynid.arrays import Array
from dynid.consistency import Consistency, fit
from dynid.estimate.consistent import Fill, constrained_fit, inside_the_set, prior_rows, problem_consistency
from dynid.estimate.estimate import Estimate
from dynid.estimate.likelihood import likelihood_fit, whitened
from dynid.estimate.linear import fit_repeatedly, joint_weights, solve, stack_enough
from dynid.estimate.problem import Problem, method
from dynid.estimate.robust import chosen_loss, reweighted, robust_fit, robust_start
from dynid.estimate.separable import separable_fit
from dynid.regression import Regression, Stacked
from dynid.threads import one_blas_thread


@method("pc-irls", "robust least squares among physically consistent robots", needs={"data"}, gives={"theta"},
        options_of=[problem_consistency])
def consistent_robust(problem: Problem, *, loss: str = "tukey", tuning: float | None = None, iterations: int = 50,
                      tolerance: float = 1e-2, fill_with: Fill = "auto", **limits: Any) -> Estimate:
    """Return reweighted least squares over the consistent set, for torques with outliers: each step is a cone
    programme with weights from the previous residuals (Sousa, s. 8.1).

    The start and the scale of each joint's noise are those of `irls`. The options are those of `irls` and `pc-wls`.
    """
    chosen = chosen_loss("pc-irls", loss, tuning)
    consistency = problem_consistency(problem, **limits)
    start, scale = robust_start(problem, iterations)
    with one_blas_thread():
        end = fit_repeatedly("pc-irls", start, lambda beta: reweighted(problem, chosen, beta, scale), iterations,
                             tolerance, partial(_inside, problem, consistency))
        free = robust_fit(problem, chosen, end.solution, scale, loss=loss, iterations=end.steps,
                          converged=end.steps < iterations)
        return inside_the_set(free, "pc-irls", end.regression, end.weights, consistency, fill_with)


@method("pc-ml", "maximum likelihood among physically consistent robots", needs={"data"}, gives={"theta"},
        options_of=[problem_consistency])
def consistent_likelihood(problem: Problem, *, iterations: int = 50, tolerance: float = 1e-2, fill_with: Fill = "auto",
                          **limits: Any) -> Estimate:
    """Return generalised least squares over the consistent set, alternating with the covariance S of the joints'
    residuals until both converge (Sousa, s. 8.1, citing Olsen and Petersen 2001).

    Equations are whitened as in `ml`; each step is a cone programme. The options are those of `ml` and `pc-wls`.
    """
    consistency = problem_consistency(problem, **limits)
    start = solve(problem.regression, stack_enough(problem.regression, joint_weights(problem.regression))).beta
    with one_blas_thread():
        end = fit_repeatedly("pc-ml", start, partial(whitened, problem), iterations, tolerance,
                             partial(_inside, problem, consistency))
        regression, ones, spread = whitened(problem, end.beta)
        solution = solve(regression, stack_enough(regression, ones))
        free = likelihood_fit(problem, solution, regression, spread, iterations=end.steps,
                              converged=end.steps < iterations)
        return inside_the_set(free, "pc-ml", regression, ones, consistency, fill_with)


def _inside(problem: Problem, consistency: Consistency, regression: Regression, weights: Array) -> Array:
    """Return base values (base,) of the fit inside the consistent set, for equations with joint weights (dof,)."""
    return constrained_fit(problem, regression, weights, consistency)[0].beta


@method("pc-sls", "separable least squares among physically consistent robots, including shape parameters of friction",
        needs={"data", "shape", "torques"}, gives={"shape", "theta"}, options_of=[problem_consistency])
def consistent_separable(problem: Problem, *, span: float = 30.0, iterations: int = 30, tolerance: float = 1e-3,
                         fill_with: Fill = "auto", **limits: Any) -> Estimate:
    """Return weighted least squares over the consistent set, with estimation of the free shape parameters of the model.

    The criterion is the smallest misfit of a consistent robot as a function of the shape (Ardiani, perspectives, and
    eq. 2.23 with the constraints of eq. 1.47). Each Gauss-Newton step is a cone programme in the parameters, from which
    the steps of the shape are eliminated. The constraint that friction dissipates energy uses the current shape.

    Options are those of `sls` and `pc-wls`. Standard errors of the shape neglect that constraints exclude some shapes.
    """
    with one_blas_thread():
        found = separable_fit(problem, span=span, iterations=iterations, tolerance=tolerance,
                              inside=partial(_inside_of, limits))
        free = replace(found.free, noise=lambda cov_type: found.noise)
        return inside_the_set(free, "pc-sls", found.regression, found.weights,
                              problem_consistency(free.problem, **limits), fill_with)


def _inside_of(limits: Mapping[str, Any], problem: Problem, stacked: Stacked) -> Array:
    """Return base parameters (base,) of the consistent robot that fits the weighted equations best."""
    prior = prior_rows(problem, None, stacked)
    return fit(problem_consistency(problem, **limits), problem.base, stacked, prior=prior).beta
