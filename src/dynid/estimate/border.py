"""Covariance of a constrained estimate: the unconstrained one, reduced along directions that constraints exclude.

The effect of a constraint depends on its distance from the estimate in standard errors. Whether the constraint is
active is not used, because this depends on rounding errors if the data are weak.

If the unconstrained estimate changes by d beta, an estimate with a barrier of weight w changes by K d theta. Here K
theta are the base parameters, and d theta minimises |R (K d theta - d beta)|^2 + w sum (v_a' dP v_b)^2 / (s_a s_b) + w
sum (row d theta / s)^2 with the triangular factor R of the equations. The first sum is over all bodies and pairs a, b
of eigenvalues s and eigenvectors v of a body's matrix P, which changes by dP. The second sum is over the rows of the
other constraints, with slacks s. The code uses max(s_a, s_b)^2 instead of s_a s_b, which neglects the curvature of the
boundary and is conservative.
"""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array
from dynid.consistency import Consistency
from dynid.consistency.blocks import ConeConstraint, smat, svec, triangle
from dynid.estimate.problem import Problem
from dynid.lapack import null_space
from dynid.regression import Stacked

_SIGNIFICANT_STD = 2.0  # standard errors by which the unconstrained estimate must violate an equality before it counts
# factor on the barrier's weight: a condition that is violated by about four standard errors then counts half
_BARRIER_SOFTNESS = 0.03
_ONE_SIDED = 0.5  # share of the unconstrained variance that remains if errors have one sign only
_VANISHED_VARIANCE_SHARE = 1e-6  # of the unconstrained variance: a smaller constrained variance counts as zero
BORDER_TOLERANCE = 1e-9  # relative to a row, or to the largest eigenvalue or slack


def constrained_covariance(problem: Problem, consistency: Consistency, theta: Array, weight: float, stacked: Stacked,
                           free: Array, covariance: Array) -> Array:
    """Return the covariance (base, base) of a constrained estimate theta (parameters,) inside the consistent set.

    `weight` is the weight of the barrier, relative to half the sum of squares. A bound on a parameter that the data
    determine, such as friction at zero, does not reduce its variance. An equality that the unconstrained estimate
    `free` (base,) violates by less than its standard error does not reduce it either. For parameters that are only
    bounded jointly, half of the unconstrained variance remains, as for a true value on the boundary.
    """
    base = problem.base.matrix
    rows, strength = _restricted_directions(consistency, theta, _BARRIER_SOFTNESS * weight)
    seen = np.linalg.lstsq(base.T, rows.T, rcond=None)[0].T
    unseen = np.linalg.norm(seen @ base - rows, axis=1)  # part that is not a function of the base parameters
    equal = np.isinf(strength)
    spread = np.sqrt(np.maximum(np.einsum("ki,ij,kj->k", seen, covariance, seen), 0.0))
    held = equal & ((unseen > BORDER_TOLERANCE) | (np.abs(seen @ free) > _SIGNIFICANT_STD * spread))
    moves = null_space(rows[held], BORDER_TOLERANCE)  # directions that keep the equalities
    soft = (strength[~equal] * unseen[~equal])[:, None] * rows[~equal]
    tall = np.vstack([stacked.r @ base, soft]) @ moves
    size = np.linalg.norm(tall, axis=0)
    size[size == 0.0] = 1.0
    right = np.vstack([stacked.r, np.zeros((len(soft), len(problem.base)))])
    keep = base @ moves @ (np.linalg.lstsq(tall / size, right, rcond=1e-13)[0] / size[:, None])
    left = keep @ covariance @ keep.T
    before, after = np.diag(covariance), np.diag(left)
    share = after / np.where(before > 0.0, before, 1.0)
    left[np.diag_indices(len(left))] += _ONE_SIDED * before / (1.0 + (share / _VANISHED_VARIANCE_SHARE) ** 2)
    return left


def _restricted_directions(consistency: Consistency, theta: Array, weight: float) -> tuple[Array, Array]:
    """Return unit vectors (k, parameters) along which the constraints restrict a change of theta (parameters,), and
    their strengths (k,): roots of weights relative to the sum of squares, infinite for equalities."""
    parts = [_constrained_directions(block, block.value(theta), weight) for block in consistency.blocks]
    rows = np.zeros((sum(len(strength) for _, strength in parts), len(theta)))
    at = 0
    for block, (own, strength) in zip(consistency.blocks, parts, strict=True):
        rows[at:at + len(strength), block.columns] = own
        at += len(strength)
    size = np.linalg.norm(rows, axis=1)
    size[size == 0.0] = 1.0
    strength = np.concatenate([strength for _, strength in parts]) if parts else np.zeros(0)
    return rows / size[:, None], strength * size


def _constrained_directions(block: ConeConstraint, value: Array, weight: float) -> tuple[Array, Array]:
    """Return the directions that one cone constraint restricts as rows (k, columns), and their strengths (k,)."""
    if block.cone == "psd":
        values, vectors = np.linalg.eigh(smat(value * block.balance))
        a, b = triangle(len(values))
        pairs = vectors[:, a].T[:, :, None] * vectors[:, b].T[:, None, :]
        pairs = (pairs + np.swapaxes(pairs, 1, 2)) * np.where(a == b, 0.5, np.sqrt(0.5))[:, None, None]
        slack = np.maximum(np.maximum(values[a], values[b]), BORDER_TOLERANCE * values[-1])
        return (svec(pairs) * block.balance) @ block.rows, np.sqrt(weight) / slack
    if block.cone == "zero":
        return block.rows, np.full(len(value), np.inf)
    if block.cone == "soc":
        length = float(np.linalg.norm(value[1:]))
        row = block.rows[0] - value[1:] / max(length, 1e-300) @ block.rows[1:]
        return row[None], np.sqrt(weight) / np.maximum([value[0] - length], BORDER_TOLERANCE * value[0])
    least = BORDER_TOLERANCE * max(1.0, float(np.abs(value).max(initial=0.0)))
    return block.rows, np.sqrt(weight) / np.maximum(value, least)
