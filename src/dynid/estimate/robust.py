"""Method irls: robust least squares, in which outliers such as spikes and contacts are down-weighted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError, NotPossibleError
from dynid.estimate.covariance import LinearFit, ScoreNoise, naive_covariance, noise
from dynid.estimate.estimate import Estimate
from dynid.estimate.linear import Solution, fit_repeatedly, joint_weights, positive_std, solve, stack_enough
from dynid.estimate.problem import Problem, method
from dynid.estimate.uncertainty import CovType
from dynid.regression import Regression, fold
from dynid.regression.derived import Weighted
from dynid.regression.residual_series import residuals

_NORMAL_MAD = 0.6744897501960817  # median of |x| for a standard normal x
_START_BEND = 0.5  # tuning of the initial loss, in standard deviations: close to the sum of absolute values
_OUTLIER_STANDARD_DEVIATIONS = 4.685  # beyond these a row is called an outlier
_START_TOLERANCE = 0.5  # in standard errors: convergence tolerance of the start
_LEAST_SLOPE = 0.05  # smallest mean slope of the influence; less means that nearly all rows of a joint are outliers
_EXACT_RESIDUAL = 1e-10  # of a joint's torque: smaller residuals are rounding errors


@dataclass(frozen=True)
class Loss:
    """A robust loss, given by the weight(u) of a row with normalised residual u, and the slope(u) of u weight(u)."""

    tuning: float
    weight: Callable[[Array], Array]
    slope: Callable[[Array], Array]


def huber(tuning: float = 1.345) -> Loss:
    """Return Huber's loss: quadratic within `tuning` standard deviations, linear beyond."""
    return Loss(tuning, lambda u: tuning / np.maximum(np.abs(u), tuning), lambda u: (np.abs(u) <= tuning).astype(float))


def tukey(tuning: float = 4.685) -> Loss:
    """Return Tukey's biweight loss: rows beyond `tuning` standard deviations have no influence."""
    def share(u: Array) -> Array:
        return np.minimum((u / tuning) ** 2, 1.0)
    return Loss(tuning, lambda u: (1.0 - share(u)) ** 2, lambda u: (1.0 - share(u)) * (1.0 - 5.0 * share(u)))


LOSSES: dict[str, Callable[..., Loss]] = {"tukey": tukey, "huber": huber}


@method("irls", "robust least squares, each row weighted by its own residual", needs={"data"})
def robust_least_squares(problem: Problem, *, loss: str = "tukey", tuning: float | None = None, iterations: int = 50,
                         tolerance: float = 1e-2) -> Estimate:
    """Return the estimate by iteratively reweighted least squares, for torques with outliers.

    The start nearly minimises the sum of absolute residuals. The scale of each joint's noise is the median of its
    absolute residuals at this start. The iteration stops when no parameter changes by more than `tolerance` of its
    standard error. Covariance (Huber): (sum w^2 m X'X)^-1 (sum w^4 X' C X) (sum w^2 m X'X)^-1 with the mean slope m of
    the influence and the autocovariance C of the weighted residuals.

    Args:
        problem: the identification problem.
        loss: "tukey" rejects gross outliers, "huber" limits them.
        tuning: in standard deviations of the noise; by default both losses have 95 % efficiency without outliers.
        iterations: largest number of iterations.
        tolerance: in standard errors.
    """
    chosen = chosen_loss("irls", loss, tuning)
    start, scale = robust_start(problem, iterations)
    end = fit_repeatedly("irls", start, lambda beta: reweighted(problem, chosen, beta, scale), iterations, tolerance)
    return robust_fit(problem, chosen, end.solution, scale, loss=loss, iterations=end.steps,
                      converged=end.steps < iterations).estimate("irls")


def chosen_loss(name: str, loss: str, tuning: float | None) -> Loss:
    """Return the loss function that the user requested for a method."""
    if loss not in LOSSES:
        raise ModelError(f"method '{name}' has no loss '{loss}'; it has {', '.join(LOSSES)}", code="unknown-loss")
    if tuning is not None and not tuning > 0:
        raise ModelError(f"the tuning of method '{name}' must be above zero, got {tuning}", code="bad-tuning")
    return LOSSES[loss]() if tuning is None else LOSSES[loss](tuning)


def robust_start(problem: Problem, iterations: int) -> tuple[Array, Array]:
    """Return base parameters (base,) of nearly the smallest sum of absolute residuals, and joint noise (dof,)."""
    start = solve(problem.regression, stack_enough(problem.regression, joint_weights(problem.regression))).beta
    found = fit_repeatedly("irls", start, lambda beta: reweighted(
        problem, huber(_START_BEND), beta, _noise_scale(problem, beta)), iterations, _START_TOLERANCE).beta
    return found, _noise_scale(problem, found)


def robust_fit(problem: Problem, by: Loss, solution: Solution, scale: Array, **more: Any) -> LinearFit:
    """Return the fit of a robust loss with its noise (Huber), see `robust_least_squares`."""
    weights = 1.0 / scale
    in_deviations = [r / s for r, s in zip(_kept_residuals(problem, solution.beta), scale, strict=True)]
    slopes = np.array([by.slope(u).mean() if len(u) else 1.0 for u in in_deviations])
    bread = solve(problem.regression, problem.regression.stack(weights * np.sqrt(np.maximum(slopes, _LEAST_SLOPE))))
    effective = replace(solution, inverse=bread.inverse, identified=solution.identified & bread.identified)

    @cache
    def found(cov_type: CovType | None) -> ScoreNoise:
        if cov_type not in (None, "correlated"):
            raise NotPossibleError(f"cov_type '{cov_type}' is not possible for robust least squares, which weights "
                                   "rows one by one", "use cov_type 'correlated', or method 'wls'",
                                   code="cov-type-not-possible")
        return noise(problem, effective, weights, influence=lambda r: r * by.weight(r / scale))

    def naive(noise: ScoreNoise) -> Array:
        assert noise.correlation is not None  # data are available
        variances = [c[0] for c in noise.correlation.autocovariance]
        return naive_covariance(problem.regression, effective, weights, variances)

    shares = [float(np.mean(np.abs(u) > _OUTLIER_STANDARD_DEVIATIONS)) if len(u) else 0.0 for u in in_deviations]
    return LinearFit(problem, effective, weights, found, naive,
                     {"tuning": by.tuning, "noise_std_per_joint": scale.tolist(),
                      "outlier_share_per_joint": shares, **more})


def reweighted(problem: Problem, loss: Loss, beta: Array, scale: Array) -> tuple[Regression, Array, Array]:
    """Return the compressed equations with rows weighted by the loss of their residuals under beta (base,); the joint
    weights (dof,); and the standard deviation of each joint's noise (dof,), `scale`."""
    columns = [factor.columns for factor in problem.regression.factors]

    def weight(j: int, rows: Array) -> Array:
        return np.sqrt(loss.weight((rows[-1] - beta[columns[j]] @ rows[:-1]) / scale[j]))

    regression = fold(Weighted(problem.equations, weight), blocks=1, threads=problem.threads)
    return replace(regression, prior=problem.regression.prior), 1.0 / scale, scale


def _kept_residuals(problem: Problem, beta: Array) -> list[Array]:
    """Return the torque residuals of each joint in the valid rows, with base values beta (base,)."""
    series = residuals(problem.equations, beta, threads=problem.threads)
    return [np.concatenate([r.residual[r.keep[:, j], j] for r in series]) for j in range(problem.regression.dof)]


def _noise_scale(problem: Problem, beta: Array) -> Array:
    """Return the standard deviation of each joint's noise (dof,) from its median absolute residual."""
    scale = np.zeros(problem.regression.dof)
    for j, (own, factor) in enumerate(zip(_kept_residuals(problem, beta), problem.regression.factors, strict=True)):
        if len(own) > len(factor.columns):
            # The fit makes as many residuals nearly zero as there are parameters.
            scale[j] = np.median(np.abs(own)) / _NORMAL_MAD * len(own) / (len(own) - len(factor.columns))
            scale[j] = max(scale[j], _EXACT_RESIDUAL * np.sqrt(factor.power / factor.rows))
    return positive_std(scale)
