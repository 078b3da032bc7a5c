"""Least-squares solution of compressed equations, and joint weights, shared by all linear methods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dynid.arrays import Array, Bools, Ints
from dynid.errors import ModelError, NotPossibleError
from dynid.estimate.bounded import bounded_least_squares
from dynid.lapack import is_full_rank, solve_triangular
from dynid.regression import Factor, Regression, Stacked
from dynid.regression.base import reduce_columns

_NOT_EXCITED = 1e-9  # independent share of a column below which it counts as not excited
COLLINEAR_SHARE = 1e-7  # share of a column that another one explains, for collinear columns


@dataclass(frozen=True, eq=False)
class Solution:
    """Solution of one weighted least-squares problem.

    Attributes:
        beta: values (base,).
        inverse: (base, base), inverse of R'R with the triangular factor R of the equations; zero if not excited.
        excited: mask of the solved columns; all other values are zero (base,).
        identified: mask of parameters that can be distinguished from all excluded ones (base,).
        confounded: parameters with which excluded parameters are confounded, by name.
        factor: triangular factor of the excited columns at unit length (excited, excited).
    """

    beta: Array
    inverse: Array
    excited: Bools
    identified: Bools
    confounded: dict[str, tuple[str, ...]]
    factor: Array

    @cached_property
    def condition(self) -> float:
        """Condition number of the excited regressor columns, scaled to unit length."""
        singular = np.linalg.svd(self.factor, compute_uv=False)
        return float(singular[0] / singular[-1])

    @cached_property
    def half(self) -> Array:
        """Root L (excited, excited) of the inverse in the excited parameters: inverse = L L'."""
        values, vectors = np.linalg.eigh(self.inverse[np.ix_(self.excited, self.excited)])
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))

    @property
    def rank(self) -> int:
        return int(self.excited.sum())


def solve(regression: Regression, stacked: Stacked) -> Solution:
    """Return the least-squares solution in the excited parameters; others are zero and listed as confounded.

    Bounded parameters stay within bounds. The inverse is that without bounds, since an active bound does not show how
    far the unconstrained value is from it.
    """
    b = len(regression.base)
    beta, kept, collinear, r, scale = _solved(regression, stacked)
    solved, inverse = np.zeros(b, dtype=bool), np.zeros((b, b))
    solved[kept] = True
    half = solve_triangular(r, np.eye(len(kept))) / scale[:, None]
    inverse[np.ix_(kept, kept)] = half @ half.T
    names = regression.base.names
    confounded = {names[c]: tuple(names[k] for k in np.flatnonzero(collinear[:, c] | collinear[c]))
                  for c in range(b) if not solved[c] or collinear[c].any()}
    identified = solved & ~collinear.any(axis=1)
    return Solution(beta, inverse, solved, identified, confounded, r)


def solve_values(regression: Regression, stacked: Stacked) -> Array:
    """Return the values (base,) of `solve`, without the inverse and the names, which take most of its time."""
    return _solved(regression, stacked)[0]


def _solved(regression: Regression, stacked: Stacked) -> tuple[Array, Ints, Bools, Array, Array]:
    """Return the values (base,), the excited columns, the collinear ones, the triangular factor of the excited columns
    at unit length, and their norms; see `solve` and `_excited`."""
    with np.errstate(over="ignore", invalid="ignore"):  # an error is raised below
        norms = np.linalg.norm(stacked.r, axis=0)
    if not (np.isfinite(norms).all() and np.isfinite(stacked.rho).all()):
        raise NotPossibleError("the equations contain values that are too large: a "
                               "signal or a known value is not plausible for a robot", "check units and known values")
    if not np.any(norms > 0):
        raise NotPossibleError("the motion does not excite any parameter, because no joint moves; record a motion of "
                               "all joints", code="nothing-excited")
    kept, collinear = _excited(regression, stacked, norms)
    matrix, scale, along = stacked.r[:, kept], norms[kept], stacked.rho
    with np.errstate(all="ignore"):  # very small columns overflow at unit length
        r = np.ascontiguousarray(matrix / scale)
        if len(r) > len(kept) or np.tril(r, -1).any():  # columns are missing, or the equations are no triangular factor
            q, r = np.linalg.qr(r)
            along = q.T @ along
    if not (len(kept) and np.isfinite(r).all()):
        raise NotPossibleError("the equations contain values that are too small", "check units, rate and known values")
    beta = np.zeros(len(norms))
    beta[kept] = solve_triangular(r, along) / scale
    low, high = regression.base.bounds[:, kept]
    if np.any((beta[kept] < low) | (beta[kept] > high)):
        beta[kept] = bounded_least_squares(matrix, stacked.rho, low, high, beta[kept])
    return beta, kept, collinear, r, scale


def _excited(regression: Regression, stacked: Stacked, norms: Array) -> tuple[Ints, Bools]:
    """Return the indices of excited columns, which are independent of those before them, and a mask (base, base): [k,
    c] is True if column c is excluded and depends on column k. norms (base,): norms of the columns."""
    b = len(norms)
    collinear = np.zeros((b, b), dtype=bool)
    if np.all(np.abs(np.diag(stacked.r)) > _NOT_EXCITED * norms):  # independent parts of the columns
        return np.arange(b), collinear
    excited = reduce_columns(stacked.r, regression.base.parameters, range(b), tolerance=_NOT_EXCITED)
    share = np.abs(excited.matrix[:, :b]) * norms[excited.independent, None] / np.where(norms > 0, norms, 1.0)
    collinear[excited.independent] = share > COLLINEAR_SHARE
    collinear[:, excited.independent] = False
    return np.sort(excited.independent), collinear


def joint_weights(regression: Regression) -> Array:
    """Return 1 / standard deviation of each joint's own least-squares residual (Janot, Vandanjon, Gautier, eq. 20)."""
    deviations, unsure = np.zeros(regression.dof), []
    for j, factor in enumerate(regression.factors):
        misfit, rank = _own_misfit(factor)
        free = factor.rows - rank
        # With few more rows than columns, residuals do not show the noise.
        if 2 * free >= factor.rows and free > 0:
            deviations[j] = np.sqrt(misfit / free)
        else:
            unsure.append(j)
    if unsure:
        shared = solve(regression, regression.stack()).beta
        for j in unsure:
            factor = regression.factors[j]
            deviations[j] = np.sqrt(factor.misfit(shared) / max(factor.rows, 1))
    return 1.0 / positive_std(deviations)


def positive_std(std: Array) -> Array:
    """Return standard deviations (dof,) of joints, none below 1e-9 of the largest: a joint with an exact fit must not
    dominate the others. All are one for data without noise."""
    return np.maximum(std, 1e-9 * std.max()) if np.any(std > 0) else np.ones(len(std))


def _own_misfit(factor: Factor) -> tuple[float, int]:
    """Return the residual sum of squares of a joint's torque on its own columns, and the number of independent columns.
    If the columns are dependent, it is not the squared last entry of the triangular factor."""
    columns = factor.r[:, :-1]
    size = np.linalg.norm(columns, axis=0)
    if np.all(size > 0) and is_full_rank(columns[:-1] / size, _NOT_EXCITED):
        return float(factor.r[-1, -1] ** 2), len(size)
    left, singular, _ = np.linalg.svd(columns[:, size > 0] / size[size > 0], full_matrices=False)
    span = left[:, singular > _NOT_EXCITED * singular.max(initial=0.0)]
    rest = factor.r[:, -1] - span @ (span.T @ factor.r[:, -1])
    return float(rest @ rest), span.shape[1]


@dataclass(frozen=True, eq=False)
class Reweighted:
    """Last step of an iterated fit, in which the equations of a step depend on the values of the step before.

    Attributes:
        beta: base parameters (base,).
        solution: unconstrained solution of the equations.
        regression, weights: the equations, and the weights of their joints (dof,).
        noise: noise from which the equations were weighted: standard deviations (dof,), or a covariance (dof, dof).
        steps: number of steps.
    """

    beta: Array
    solution: Solution
    regression: Regression
    weights: Array
    noise: Array
    steps: int


def fit_repeatedly(name: str, beta: Array, equations: Callable[[Array], tuple[Regression, Array, Array]],
                   iterations: int, tolerance: float,
                   constrained: Callable[[Regression, Array], Array] | None = None) -> Reweighted:
    """Repeat a fit from base values beta (base,) until none changes by more than `tolerance` of its standard error.

    Args:
        name: name of the method, for messages.
        beta: initial base values (base,).
        equations: returns regression, joint weights (dof,) and noise from the base values of the previous step.
        iterations: largest number of steps.
        tolerance: in standard errors.
        constrained: returns base values (base,) of a weighted regression. Default: those of least squares.
    """
    for step in range(1, iterations + 1):
        regression, weights, noise = equations(beta)
        solution = solve(regression, stack_enough(regression, weights))
        before, beta = beta, solution.beta if constrained is None else constrained(regression, weights)
        moved, unit = np.abs(beta - before), np.sqrt(np.diag(solution.inverse))
        still = np.all(moved[solution.identified] <= tolerance * unit[solution.identified])
        if still or step == iterations:
            return Reweighted(beta, solution, regression, weights, noise, step)
    raise ModelError(f"method '{name}' needs at least one iteration, got {iterations}", code="no-iterations")


def stack_enough(regression: Regression, weights: Array | None) -> Stacked:
    """Return the weighted equations of all joints; raise an error for fewer equations than base parameters."""
    stacked = regression.stack(weights)
    if stacked.rows <= len(regression.base):
        raise NotPossibleError(f"{stacked.rows} equations cannot determine {len(regression.base)} base parameters; "
                               "record a longer motion", code="too-few-equations")
    return stacked
