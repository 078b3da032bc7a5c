"""Methods pc-irls and pc-ml: robust least squares and maximum likelihood for physically consistent parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.consistency import Consistency
from dynid.consistency.consistency import MARGIN, InertiaForm
from dynid.errors import ModelError
from dynid.estimate.consistent import Fill, consistency_of, constrained_fit, inside_the_set
from dynid.estimate.estimate import Estimate
from dynid.estimate.likelihood import likelihood_fit, whitened
from dynid.estimate.linear import joint_weights, solve, stack_enough
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
    consistency = consistency_of(problem, form=form, margin=margin, shapes=shapes, centres=centres, masses=masses,
                                 intervals=intervals)
    start, scale = robust_start(problem, iterations)
    with one_blas_thread():
        end = reweighted_inside(problem, consistency, start, 1.0 / scale,
                                lambda beta: reweighted(problem, chosen, beta, scale), Steps(iterations, tolerance))
        free = robust_fit(problem, chosen, solve(end.regression, stack_enough(end.regression, 1.0 / scale)), scale,
                          loss=loss, iterations=end.steps, converged=end.steps < iterations)
        return inside_the_set(free, "pc-irls", end.regression, 1.0 / scale, consistency, fill_with)


@method("pc-ml", "maximum likelihood among physically consistent robots", needs={"data"}, gives={"theta"})
def consistent_likelihood(problem: Problem, *, iterations: int = 50, tolerance: float = 1e-2,
                          form: InertiaForm = "pseudo", margin: float = MARGIN, shapes: bool = False,
                          centres: Mapping[str, Any] | None = None, masses: Sequence[Any] = (),
                          intervals: Mapping[str, Any] | None = None, fill_with: Fill = "auto") -> Estimate:
    """Return generalised least squares over the consistent set, alternating with the covariance S of the joints'
    residuals until both converge (Sousa, s. 8.1, citing Olsen and Petersen 2001).

    Equations are whitened as in `ml`; each step is a cone programme. The options are those of `ml` and `pc-wls`.
    """
    consistency = consistency_of(problem, form=form, margin=margin, shapes=shapes, centres=centres, masses=masses,
                                 intervals=intervals)
    ones = np.ones(problem.regression.dof)
    start = solve(problem.regression, stack_enough(problem.regression, joint_weights(problem.regression))).beta
    with one_blas_thread():
        end = reweighted_inside(problem, consistency, start, ones, lambda beta: whitened(problem, beta)[0],
                                Steps(iterations, tolerance))
        regression, spread = whitened(problem, end.beta)
        solution = solve(regression, stack_enough(regression, ones))
        free = likelihood_fit(problem, solution, regression, spread, iterations=end.steps,
                              converged=end.steps < iterations)
        return inside_the_set(free, "pc-ml", regression, ones, consistency, fill_with)


@dataclass(frozen=True)
class Steps:
    """Largest number of steps, and the convergence tolerance in standard errors of the parameters."""

    most: int
    tolerance: float


@dataclass(frozen=True, eq=False)
class Reweighted:
    """Last step of a reweighted constrained fit: base parameters (base,), its equations, and the number of steps."""

    beta: Array
    regression: Regression
    steps: int


def reweighted_inside(problem: Problem, consistency: Consistency, beta: Array, weights: Array,
                      equations: Callable[[Array], Regression], steps: Steps) -> Reweighted:
    """Repeat constrained fits of equations that depend on the previous one, until they converge. beta (base,): initial
    values. weights (dof,): joint weights of these equations."""
    for step in range(1, steps.most + 1):
        regression = equations(beta)
        before, beta = beta, constrained_fit(problem, regression, weights, consistency)[0].beta
        solution = solve(regression, regression.stack(weights))
        unit = np.sqrt(np.diag(solution.inverse))
        still = np.all(np.abs(beta - before)[solution.identified] <= steps.tolerance * unit[solution.identified])
        if still or step == steps.most:
            return Reweighted(beta, regression, step)
    raise ModelError(f"a reweighted fit needs at least one iteration, got {steps.most}", code="no-iterations")
