"""Method ml: maximum likelihood with the full covariance of the joints' residuals."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import NotPossibleError
from dynid.estimate.covariance import LinearFit, naive_covariance, noise
from dynid.estimate.estimate import Estimate
from dynid.estimate.linear import Solution, fit_repeatedly, joint_weights, solve, stack_enough
from dynid.estimate.problem import Problem, method
from dynid.regression import Regression, fold
from dynid.regression.derived import Mixed
from dynid.regression.residual_series import residuals

_EXACT_RESIDUAL = 1e-10  # of a joint's torque: smaller residuals are rounding errors
# smallest eigenvalue of the correlation matrix of joints, which excludes perfect correlation
_MIN_CORRELATION_EIGENVALUE = 1e-6


@method("ml", "maximum likelihood with the full covariance between joints", needs={"data"})
def maximum_likelihood(problem: Problem, *, iterations: int = 50, tolerance: float = 1e-2) -> Estimate:
    """Return the estimate by generalised least squares, alternating with the covariance S of the joints' residuals.

    If the noise of joints is correlated, as with a coupling or a shared disturbance, one joint's residual contains
    information on another's. Equations are whitened by the upper triangular U with U'U = S^-1, using only rows in which
    every joint is valid. Model errors look like correlated noise: if `wls` predicts other data better, prefer it. The
    iteration stops when no parameter changes by more than `tolerance` of its standard error. The covariance accounts
    for the autocorrelation of the whitened residuals.
    """
    start = solve(problem.regression, stack_enough(problem.regression, joint_weights(problem.regression))).beta
    end = fit_repeatedly("ml", start, partial(whitened, problem), iterations, tolerance)
    return likelihood_fit(problem, end.solution, end.regression, end.noise, iterations=end.steps,
                          converged=end.steps < iterations).estimate("ml")


def likelihood_fit(problem: Problem, solution: Solution, regression: Regression, spread: Array,
                   **more: Any) -> LinearFit:
    """Return the fit of whitened equations with its noise. spread: covariance S (dof, dof) of the joints' residuals."""
    ones, deviations, rows = np.ones(problem.regression.dof), np.sqrt(np.diag(spread)), regression.rows[0]
    log_likelihood = -0.5 * (rows * np.linalg.slogdet(2.0 * np.pi * spread).logabsdet
                             + regression.misfits(solution.beta).sum())
    facts = {"residual_correlation": (spread / np.outer(deviations, deviations)).tolist(), "common_rows": rows,
             "log_likelihood": float(log_likelihood), **more}
    return LinearFit(problem, solution, 1.0 / deviations, cache(
        lambda cov_type: noise(problem, solution, ones, equations=Mixed(problem.equations, _whitener(spread)),
                               regression=regression, cov_type=cov_type)),
        lambda found: naive_covariance(regression, solution, ones), facts)


def whitened(problem: Problem, beta: Array) -> tuple[Regression, Array, Array]:
    """Return the compressed equations whitened by the covariance S (dof, dof) of the joints' residuals under beta;
    equal joint weights (dof,); and S."""
    spread = _residual_covariance(problem, beta)
    regression = fold(Mixed(problem.equations, _whitener(spread)), blocks=1, threads=problem.threads)
    return replace(regression, prior=problem.regression.prior), np.ones(regression.dof), spread


def _whitener(spread: Array) -> Array:
    """Return the upper triangular matrix U (dof, dof) that makes noise of covariance S white: U'U = S^-1."""
    return np.linalg.cholesky(np.linalg.inv(spread)).T


def _residual_covariance(problem: Problem, beta: Array) -> Array:
    """Return the covariance S (dof, dof) of the joints' residuals, from samples that are valid for all joints."""
    series = residuals(problem.equations, beta, threads=problem.threads)
    common = np.concatenate([r.residual[np.all(r.keep, axis=1)] for r in series])
    if len(common) <= problem.regression.dof:
        raise NotPossibleError(f"only {len(common)} rows have the equations of all joints, and method 'ml' uses only "
                               "these rows; move all joints at once, or use 'wls'", code="too-few-common-rows")
    spread = common.T @ common / len(common)
    torque = np.sqrt([factor.power / max(factor.rows, 1) for factor in problem.regression.factors])
    least = np.maximum(_EXACT_RESIDUAL * torque, 1e-9 * np.sqrt(np.diag(spread)).max())
    deviations = np.maximum(np.sqrt(np.diag(spread)), np.where(least > 0, least, 1.0))
    # Rounding errors and perfectly correlated joints would make the matrix singular.
    values, vectors = np.linalg.eigh(spread / np.outer(deviations, deviations))
    together = (vectors * np.maximum(values, _MIN_CORRELATION_EIGENVALUE)) @ vectors.T
    size = deviations / np.sqrt(np.diag(together))
    return together * np.outer(size, size)
