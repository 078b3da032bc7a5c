"""Methods pc-irls and pc-ml: robust least squares and maximum likelihood for physically consistent parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from dynid.arrays import Array
from dynid.consistency import Consistency
from dynid.consistency.consistency import MARGIN, InertiaForm
from dynid.estimate.consistent import Fill, constrained_fit, inside_the_set, problem_consistency
from dynid.estimate.estimate import Estimate
from dynid.estimate.likelihood import likelihood_fit, whitened
from dynid.estimate.linear import fit_repeatedly, joint_weights, solve, stack_enough
from dynid.estimate.problem import Problem, method
from dynid.estimate.robust import chosen_loss, reweighted, robust_fit, robust_start
from dynid.regression import Regression
from dynid.threads import one_blas_thread


@method("pc-irls", "robust least squares among physically consistent robots", needs={"data"}, gives={"theta"})
def consistent_robust(problem: Problem, *, loss: str = "tukey", tuning: float | None = None, iterations: int = 50,
                      tolerance: float = 1e-2, form: InertiaForm = "pseudo", margin: float = MARGIN,
                      shapes: bool = False, centres: Mapping[str, Any] | None = None, masses: Sequence[Any] = (),
                      intervals: Mapping[str, Any] | None = None, fill_with: Fill = "auto") -> Estimate:
    """Return reweighted least squares over the consistent set, for torques with outliers: each step is a cone
    programme with weights from the previous residuals (Sousa, s. 8.1).

    The start and the scale of each joint's noise are those of `irls`. The options are those of `irls` and `pc-wls`.
    """
    chosen = chosen_loss("pc-irls", loss, tuning)
    consistency = problem_consistency(problem, form=form, margin=margin, shapes=shapes, centres=centres, masses=masses,
                                      intervals=intervals)
    start, scale = robust_start(problem, iterations)
    with one_blas_thread():
        end = fit_repeatedly("pc-irls", start, lambda beta: reweighted(problem, chosen, beta, scale), iterations,
                             tolerance, partial(_inside, problem, consistency))
        free = robust_fit(problem, chosen, end.solution, scale, loss=loss, iterations=end.steps,
                          converged=end.steps < iterations)
        return inside_the_set(free, "pc-irls", end.regression, end.weights, consistency, fill_with)


@method("pc-ml", "maximum likelihood among physically consistent robots", needs={"data"}, gives={"theta"})
def consistent_likelihood(problem: Problem, *, iterations: int = 50, tolerance: float = 1e-2,
                          form: InertiaForm = "pseudo", margin: float = MARGIN, shapes: bool = False,
                          centres: Mapping[str, Any] | None = None, masses: Sequence[Any] = (),
                          intervals: Mapping[str, Any] | None = None, fill_with: Fill = "auto") -> Estimate:
    """Return generalised least squares over the consistent set, alternating with the covariance S of the joints'
    residuals until both converge (Sousa, s. 8.1, citing Olsen and Petersen 2001).

    Equations are whitened as in `ml`; each step is a cone programme. The options are those of `ml` and `pc-wls`.
    """
    consistency = problem_consistency(problem, form=form, margin=margin, shapes=shapes, centres=centres, masses=masses,
                                      intervals=intervals)
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
    """Return base values (base,) of the constrained fit of equations with joint weights (dof,)."""
    return constrained_fit(problem, regression, weights, consistency)[0].beta
