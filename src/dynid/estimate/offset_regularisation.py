"""Regularisation of torque offsets of joints, from the noise and the typical size of all offsets of a robot.

If a joint hardly reverses, its offset cannot be distinguished from Coulomb friction. If it has a small range, offset
and friction are hard to distinguish from gravity. Offsets are much smaller than both. Their size is estimated from the
offsets of all joints (empirical Bayes): each is taken as a draw from a normal distribution with mean zero, whose
variance is weighted by its evidence. Offsets that the data determine are hardly changed by the resulting ridge.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.arrays import Array, Ints
from dynid.estimate.covariance import residual_noise
from dynid.estimate.problem import Problem
from dynid.estimate.ridge_search import SMALLEST_RIDGE
from dynid.recording import Samples
from dynid.regression.factor import triangular

# Standard deviations of the offsets to try, as shares of the torque: from far below the repeatability of a good machine
# to as large as the torque itself, ten in a decade.
SHARES_OF_TORQUE = 10.0 ** np.arange(-3.0, 0.01, 0.1)

ONE_WAY_SHARE = 0.05  # largest share of rows in the rarer direction of a joint that hardly reverses


def one_way_joints(logs: Sequence[Samples]) -> tuple[int, ...]:
    """Return the joints, counted from 0, that move almost only in one direction in all logs."""
    rows = np.array([np.sum([np.sum(log.keep & (sign * log.dq > 0.0), axis=0) for log in logs], axis=0)
                     for sign in (1.0, -1.0)])  # (2, joints)
    return tuple(int(j) for j in np.flatnonzero(rows.min(axis=0) <= ONE_WAY_SHARE * rows.sum(axis=0)))


def offset_ridge(problem: Problem, beta: Array, ridge: Array, offsets: Ints) -> float:
    """Return the ridge penalty of the torque offsets, relative to the squared norm of their columns.

    Args:
        problem: regression with the columns of all candidates.
        beta: (base,), values of the chosen model.
        ridge: (base,), ridge of each column by this choice, infinite for excluded ones.
        offsets: columns of the offsets among the base parameters.
    """
    whole = problem.regression
    spread, independent = residual_noise(problem, beta)
    independent = np.clip(independent, 1.0 / np.maximum(np.array(whole.rows, dtype=float), 1.0), 1.0)
    stacked = whole.stack(np.sqrt(independent) / spread, prior=False)
    others = np.setdiff1d(np.flatnonzero(np.isfinite(ridge)), offsets)
    size = np.linalg.norm(stacked.r, axis=0)
    found = offsets[size[offsets] > 0.0]
    torque = float(np.linalg.norm(stacked.rho))
    if not len(found) or torque == 0.0:
        return 0.0
    columns = np.column_stack([stacked.r[:, others], stacked.r[:, found] * (torque / size[found]), stacked.rho])
    penalties = np.zeros((len(others), columns.shape[1]))
    np.fill_diagonal(penalties, np.sqrt(np.maximum(ridge[others], SMALLEST_RIDGE)) * size[others])
    inner = triangular(columns, penalties)[len(others):-1, len(others):]  # all other columns are eliminated
    return 1.0 / (torque * _likely_share(inner[:, :-1], inner[:, -1])) ** 2


def _likely_share(matrix: Array, target: Array) -> float:
    """Return the likely standard deviation of x in target = matrix x + noise of unit variance: the geometric mean of
    candidates, weighted by evidence. The most likely candidate could be zero for few joints."""
    left, singular, _ = np.linalg.svd(matrix)
    variance = 1.0 + (SHARES_OF_TORQUE[:, None] * singular) ** 2
    evidence = -0.5 * np.sum(np.log(variance) + (left.T @ target) ** 2 / variance, axis=1)
    weights = np.exp(evidence - evidence.max())
    return float(np.exp(weights @ np.log(SHARES_OF_TORQUE) / weights.sum()))
