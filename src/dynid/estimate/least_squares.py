"""Ordinary and weighted least squares, and what all methods share: solving, weights, honest covariances."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from dynid.errors import NotPossibleError
from dynid.estimate.estimate import Estimate
from dynid.estimate.problem import Problem, method
from dynid.regression import Regression, Stacked
from dynid.regression.base import reduce_columns
from dynid.regression.residuals import Correlation, correlation
from dynid.robot.inertia import Array

_NOT_EXCITED = 1e-9  # share of a column that is news, below which the data do not tell it from the others


@dataclass(frozen=True, eq=False)
class Solution:
    """Of one weighted problem: beta (base,), inverse (base, base) of R'R with zeros for what is not identified."""

    beta: Array
    inverse: Array
    identified: NDArray[np.bool_]
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
    deviations = np.zeros(regression.dof)
    for j, factor in enumerate(regression.factors):
        free = factor.rows - len(factor.columns)
        if free > 0:
            deviations[j] = abs(factor.r[-1, -1]) / np.sqrt(free)
    if not np.any(deviations > 0):
        return np.ones(regression.dof)  # noise-free data: all joints alike
    # A joint that fits to rounding must not drown the others.
    deviations = np.maximum(deviations, 1e-9 * deviations.max())
    return 1.0 / deviations


def honest_covariance(problem: Problem, solution: Solution, weights: Array) -> tuple[Array, Correlation | None]:
    """Covariance (base, base) under residuals correlated in time; without samples at hand, under independent ones."""
    beta, inverse = solution.beta, solution.inverse
    if not problem.samples:
        return naive_covariance(problem.regression, solution, weights), None
    found = correlation(problem.model, problem.samples, problem.base, beta, inverse=inverse, weights=weights,
                        threads=problem.threads)
    middle = np.zeros_like(inverse)
    for j, factor in enumerate(problem.regression.factors):
        columns = found.columns[j]
        more = factor.rows / max(found.rows[j], 1.0)  # the fold may hold more rows than the samples at hand
        middle[np.ix_(columns, columns)] += weights[j] ** 4 * more * found.noise[j]
    return inverse @ middle @ inverse, found


def naive_covariance(regression: Regression, solution: Solution, weights: Array) -> Array:
    """Covariance as if every row were independent (Janot, Vandanjon, Gautier, eq. 16-18, each joint its own noise)."""
    middle = np.zeros_like(solution.inverse)
    for weight, factor in zip(weights, regression.factors, strict=True):
        variance = factor.misfit(solution.beta) / max(factor.rows - len(factor.columns), 1)
        own = factor.r[:, :-1]
        middle[np.ix_(factor.columns, factor.columns)] += weight ** 4 * variance * (own.T @ own)
    return solution.inverse @ middle @ solution.inverse


def diagnostics(problem: Problem, solution: Solution, weights: Array, covariance: Array,
                found: Correlation | None) -> dict[str, Any]:
    """Numbers every linear method reports."""
    regression = problem.regression
    naive = np.sqrt(np.maximum(np.diag(naive_covariance(regression, solution, weights)), 0.0))
    honest = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    known = solution.identified & (naive > 0)
    rows = np.maximum(np.array(regression.rows, dtype=float), 1.0)
    facts: dict[str, Any] = {
        "relative_error": regression.relative_error(solution.beta),
        "relative_error_per_joint": regression.relative_errors(solution.beta).tolist(),
        "residual_deviation_per_joint": np.sqrt(regression.misfits(solution.beta) / rows).tolist(),
        "rank": solution.rank, "condition": solution.condition, "rows_per_joint": list(regression.rows),
        "weights": weights.tolist(), "confounded": {k: list(v) for k, v in solution.confounded.items()},
        "deviation_inflation": float(np.median(honest[known] / naive[known])) if known.any() else 1.0,
        "joints": list(regression.joints),
    }
    if found is not None:
        facts["effective_rows_per_joint"] = found.effective.tolist()
        facts["autocovariance"] = [c[:200].tolist() for c in found.autocovariance]
        facts["autocovariance_rate"] = found.rate
    return facts


def linear_estimate(problem: Problem, name: str, weights: Array, extra: Mapping[str, Any] | None = None) -> Estimate:
    """Least squares with given joint weights, complete with covariance and diagnostics."""
    stacked = problem.regression.stack(weights)
    if stacked.rows <= len(problem.base):
        raise NotPossibleError(f"{stacked.rows} equations cannot determine {len(problem.base)} base parameters; "
                               "record a longer motion")
    solution = solve(problem.regression, stacked)
    covariance, found = honest_covariance(problem, solution, weights)
    facts = diagnostics(problem, solution, weights, covariance, found)
    return Estimate(name, problem.model, problem.base, solution.beta, covariance, solution.identified,
                    diagnostics={**facts, **(extra or {})})


@method("ols", "ordinary least squares")
def ordinary_least_squares(problem: Problem) -> Estimate:
    """All joints' equations alike (Janot, Vandanjon, Gautier, eq. 15)."""
    return linear_estimate(problem, "ols", np.ones(problem.regression.dof))


@method("wls", "least squares weighted by each joint's own noise")
def weighted_least_squares(problem: Problem) -> Estimate:
    """Each joint's equations divided by the deviation of its own residual (Janot, Vandanjon, Gautier, eq. 20)."""
    return linear_estimate(problem, "wls", joint_weights(problem.regression))
