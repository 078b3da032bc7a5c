"""Ordinary and weighted least squares, and what all methods share: solving, weights, honest covariances."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from dynid.arrays import Array, Bools
from dynid.errors import NotPossibleError
from dynid.estimate.estimate import Estimate
from dynid.estimate.problem import Problem, method
from dynid.regression import Regression, Stacked
from dynid.regression.base import reduce_columns
from dynid.regression.residuals import Correlation, correlation

_NOT_EXCITED = 1e-9  # share of a column that is news, below which the data do not tell it from the others


@dataclass(frozen=True, eq=False)
class Solution:
    """Of one weighted problem: beta (base,), inverse (base, base) of R'R with zeros for what is not identified."""

    beta: Array
    inverse: Array
    identified: Bools
    confounded: dict[str, tuple[str, ...]]
    condition: float

    @property
    def rank(self) -> int:
        return int(self.identified.sum())


def solve(regression: Regression, stacked: Stacked) -> Solution:
    """Least squares with whatever the data excite; the rest is set to zero and named."""
    b = len(regression.base)
    norms = np.linalg.norm(stacked.r, axis=0)
    if not np.any(norms > 0):
        raise NotPossibleError("the motion excites no parameter at all: nothing moves")
    excited = reduce_columns(stacked.r, regression.base.parameters, range(b), tolerance=_NOT_EXCITED)
    kept = np.sort(excited.independent)
    identified = np.zeros(b, dtype=bool)
    identified[kept] = True
    matrix, scale = stacked.r[:, kept], norms[kept]
    q, r = np.linalg.qr(matrix / scale)
    beta, inverse = np.zeros(b), np.zeros((b, b))
    beta[kept] = solve_triangular(r, q.T @ stacked.rho) / scale
    half = solve_triangular(r, np.eye(len(kept))) / scale[:, None]
    inverse[np.ix_(kept, kept)] = half @ half.T
    names = regression.base.names
    confounded = {names[c]: tuple(names[excited.independent[k]] for k in np.flatnonzero(excited.matrix[:, c]))
                  for c in range(b) if not identified[c]}
    singular = np.linalg.svd(r, compute_uv=False)
    return Solution(beta, inverse, identified, confounded, float(singular[0] / singular[-1]))


def joint_weights(regression: Regression) -> Array:
    """1 / deviation of each joint's own least-squares residual (Janot, Vandanjon, Gautier, eq. 20)."""
    deviations, unsure = np.zeros(regression.dof), []
    for j, factor in enumerate(regression.factors):
        free = factor.rows - len(factor.columns)
        # With hardly more rows than columns a joint fits itself whatever its noise.
        if 2 * free >= factor.rows and free > 0:
            deviations[j] = abs(factor.r[-1, -1]) / np.sqrt(free)
        else:
            unsure.append(j)
    if unsure:
        shared = solve(regression, regression.stack()).beta
        for j in unsure:
            factor = regression.factors[j]
            deviations[j] = np.sqrt(factor.misfit(shared) / max(factor.rows, 1))
    if not np.any(deviations > 0):
        return np.ones(regression.dof)  # noise-free data: all joints alike
    # A joint that fits to rounding must not drown the others.
    deviations = np.maximum(deviations, 1e-9 * deviations.max())
    return 1.0 / deviations


def noise_matrix(problem: Problem, solution: Solution, weights: Array, *, mix: Array | None = None,
                 influence: Callable[[Array], Array] | None = None) -> tuple[Array, Correlation | None]:
    """sum_j w_j^4 X_j' C_j X_j (base, base), the heart of the covariance under residuals correlated in time.

    Without samples at hand residuals are taken for independent. mix, influence: as
    `dynid.regression.residuals.correlation` takes them.
    """
    if not problem.samples:
        return naive_noise_matrix(problem.regression, solution, weights), None
    found = correlation(problem.model, problem.samples, problem.base, solution.beta, inverse=solution.inverse,
                        weights=weights, mix=mix, influence=influence, threads=problem.threads)
    middle = np.zeros_like(solution.inverse)
    for j, factor in enumerate(problem.regression.factors):
        columns = found.columns[j]
        more = factor.rows / max(found.rows[j], 1.0)  # the fold may hold more rows than the samples at hand
        middle[np.ix_(columns, columns)] += weights[j] ** 4 * more * found.noise[j]
    return middle, found


def honest_covariance(problem: Problem, solution: Solution, weights: Array, *, mix: Array | None = None,
                      influence: Callable[[Array], Array] | None = None) -> tuple[Array, Correlation | None]:
    """Covariance (base, base) under residuals correlated in time; see `noise_matrix`."""
    middle, found = noise_matrix(problem, solution, weights, mix=mix, influence=influence)
    return solution.inverse @ middle @ solution.inverse, found


def naive_noise_matrix(regression: Regression, solution: Solution, weights: Array,
                       variances: Sequence[float] | None = None) -> Array:
    """sum_j w_j^4 c_j X_j' X_j (base, base): rows independent, c_j the variance of joint j's residuals or as given."""
    middle = np.zeros_like(solution.inverse)
    for j, factor in enumerate(regression.factors):
        variance = factor.misfit(solution.beta) / max(factor.rows - len(factor.columns), 1) if variances is None \
            else variances[j]
        own = factor.r[:, :-1]
        middle[np.ix_(factor.columns, factor.columns)] += weights[j] ** 4 * variance * (own.T @ own)
    return middle


def naive_covariance(regression: Regression, solution: Solution, weights: Array,
                     variances: Sequence[float] | None = None) -> Array:
    """Covariance as if every row were independent (Janot, Vandanjon, Gautier, eq. 16-18, each joint its own noise)."""
    return solution.inverse @ naive_noise_matrix(regression, solution, weights, variances) @ solution.inverse


def inflation(covariance: Array, naive: Array, identified: Bools) -> float:
    """How many times too small deviations from the naive covariance are, in the median over the parameters."""
    honest, simple = (np.sqrt(np.maximum(np.diag(matrix), 0.0)) for matrix in (covariance, naive))
    known = identified & (simple > 0)
    return float(np.median(honest[known] / simple[known])) if known.any() else 1.0


def diagnostics(problem: Problem, solution: Solution, weights: Array, covariance: Array,
                found: Correlation | None, naive: Array | None = None) -> dict[str, Any]:
    """Numbers every linear method reports. naive (base, base): covariance to compare with, if not the weighted one."""
    regression = problem.regression
    naive = naive_covariance(regression, solution, weights) if naive is None else naive
    rows = np.maximum(np.array(regression.rows, dtype=float), 1.0)
    facts: dict[str, Any] = {
        "relative_error": regression.relative_error(solution.beta),
        "relative_error_per_joint": regression.relative_errors(solution.beta).tolist(),
        "residual_deviation_per_joint": np.sqrt(regression.misfits(solution.beta) / rows).tolist(),
        "rank": solution.rank, "condition": solution.condition, "rows_per_joint": list(regression.rows),
        "weights": weights.tolist(), "confounded": {k: list(v) for k, v in solution.confounded.items()},
        "deviation_inflation": inflation(covariance, naive, solution.identified),
        "joints": list(regression.joints),
    }
    if found is not None:
        facts["effective_rows_per_joint"] = (found.effective / np.maximum(found.rows, 1.0)
                                             * np.array(regression.rows)).tolist()
        facts["autocovariance"] = [c[:200].tolist() for c in found.autocovariance]
        facts["autocovariance_rate"] = found.rate
    return facts


def stack_enough(regression: Regression, weights: Array) -> Stacked:
    """All joints' equations, weighted; refused when there are not more of them than base parameters."""
    stacked = regression.stack(weights)
    if stacked.rows <= len(regression.base):
        raise NotPossibleError(f"{stacked.rows} equations cannot determine {len(regression.base)} base parameters; "
                               "record a longer motion")
    return stacked


def complete(problem: Problem, name: str, solution: Solution, weights: Array,
             extra: Mapping[str, Any] | None = None) -> Estimate:
    """A solution of the equations with these joint weights as an estimate with its covariance and diagnostics."""
    covariance, found = honest_covariance(problem, solution, weights)
    facts = diagnostics(problem, solution, weights, covariance, found)
    return Estimate(name, problem.model, problem.base, solution.beta, covariance, solution.identified,
                    diagnostics={**facts, **(extra or {})})


def linear_estimate(problem: Problem, name: str, weights: Array, extra: Mapping[str, Any] | None = None) -> Estimate:
    """Least squares with given joint weights, complete with covariance and diagnostics."""
    return complete(problem, name, solve(problem.regression, stack_enough(problem.regression, weights)), weights, extra)


@method("ols", "ordinary least squares")
def ordinary_least_squares(problem: Problem) -> Estimate:
    """All joints' equations alike (Janot, Vandanjon, Gautier, eq. 15)."""
    return linear_estimate(problem, "ols", np.ones(problem.regression.dof))


@method("wls", "least squares weighted by each joint's own noise")
def weighted_least_squares(problem: Problem) -> Estimate:
    """Each joint's equations divided by the deviation of its own residual (Janot, Vandanjon, Gautier, eq. 20)."""
    return linear_estimate(problem, "wls", joint_weights(problem.regression))
