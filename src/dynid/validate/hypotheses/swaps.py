"""Exchanged torques: each joint's equations are tried on every other joint's torque."""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array, Ints
from dynid.validate.sampled_rows import SampledRows
from dynid.validate.thresholds import SWAP_RATIO

_EXACT_FIT_SHARE = 1e-4  # a fit that leaves less than this share of the torque's variation is exact


def swapped_torques(rows: SampledRows) -> Ints | None:
    """Return for each joint the joint (from 0) whose torque its equations explain best (dof,); None if all explain
    their own.

    The order minimises the sum of residuals over all assignments. Residuals are relative to each torque's variance.
    """
    left = _left(rows)
    if left is None:
        return None
    cost = np.log(np.maximum(left, _EXACT_FIT_SHARE))
    order = assignment(cost)
    moved = np.flatnonzero(order != np.arange(len(order)))
    if not len(moved):
        return None
    gained = cost[moved, moved] - cost[moved, order[moved]]
    if float(gained.mean()) < np.log(SWAP_RATIO) or float(gained.min()) < 0.0:
        return None
    if np.any(left[moved, order[moved]] > 0.5):
        return None
    return order


def assignment(cost: Array) -> Ints:
    """Return for each row of costs (n, n) its column (n,) in the assignment with the smallest sum, by the Hungarian
    method. scipy.optimize has it too, but importing that takes longer than the whole verdict."""
    n = len(cost)
    rows, columns = np.zeros(n + 1), np.zeros(n + 1)  # dual variables; column n is the row that is added
    owner = np.full(n + 1, -1)
    for new in range(n):
        owner[n], at = new, n
        least, before, done = np.full(n, np.inf), np.full(n, n), np.zeros(n + 1, dtype=bool)
        while owner[at] >= 0:
            done[at] = True
            row, open_ = owner[at], ~done[:n]
            through = cost[row] - rows[row] - columns[:n]
            better = open_ & (through < least)
            least[better], before[better] = through[better], at
            following = int(np.argmin(np.where(open_, least, np.inf)))
            step = least[following]
            rows[owner[done]] += step
            columns[done] -= step
            least[open_] -= step
            at = following
        while at != n:
            owner[at], at = owner[before[at]], before[at]
    order = np.empty(n, dtype=np.int64)
    order[owner[:n]] = np.arange(n)
    return order


def _left(rows: SampledRows) -> Array | None:
    """Return left[j, k]: share of the variance of torque k that joint j's columns do not explain (dof, dof)."""
    dof, measured = rows.q.shape[1], rows.measured
    found = np.ones((dof, dof))
    for j in range(dof):
        use = np.all(rows.keep, axis=1) if np.all(rows.keep, axis=1).sum() > 100 else rows.keep[:, j]
        columns = rows.columns[j][use]
        size = np.linalg.norm(columns, axis=0)
        if use.sum() < 3 * columns.shape[1] + 10 or not np.any(size > 0):
            return None
        basis, _ = np.linalg.qr(columns[:, size > 0] / size[size > 0])
        tau = measured[use]
        rest = tau - basis @ (basis.T @ tau)
        variation = np.sum((tau - tau.mean(axis=0)) ** 2, axis=0)
        found[j] = np.sum(rest ** 2, axis=0) / np.where(variation > 0, variation, 1.0)
    return found
