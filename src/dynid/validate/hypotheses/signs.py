"""Torques with the wrong sign, which make masses or friction negative, and torques in other joints' columns."""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array, Ints
from dynid.regression import Regression
from dynid.validate import thresholds
from dynid.validate.sampled_rows import SampledRows

_SIGN_ROUNDS = 20  # estimates of the signs of absolute torques
_MIN_SIGN_SHARE = 0.02  # share of rows with the rarer sign, below which a torque may well have one sign
_EXACT_FIT_SHARE = 1e-4  # a fit that leaves less than this share of the torque's variation is exact


def inverted_joints(regression: Regression, inflation: float = 1.0) -> tuple[int, ...]:
    """Return the joints (from 0) whose inertias and friction are all negative when the joint is fitted alone.

    A joint's own equations do not depend on the other joints' torques, so any set of joints is found at once.
    inflation: ratio of standard errors to those for independent rows.
    """
    return tuple(j for j in range(regression.dof) if _inverted(regression, j, inflation))


def undecided_joints(regression: Regression, inflation: float = 1.0) -> tuple[int, ...]:
    """Return the joints (from 0) without significantly positive friction when fitted alone: their sign may be wrong."""
    return tuple(j for j, factor in enumerate(regression.factors) if not len(factor.columns) or not any(
        _rubs(regression, int(column), j) and z > thresholds.CERTAIN_STANDARD_ERRORS
        for column, z in zip(factor.columns, own_evidence(factor.r, factor.rows, inflation), strict=True)))


def _inverted(regression: Regression, j: int, inflation: float) -> bool:
    """Whether the inertias and the friction of joint j, fitted alone, are significantly negative."""
    factor = regression.factors[j]
    if not len(factor.columns) or factor.rows <= 2 * len(factor.columns) or factor.power <= 0:
        return False
    z = own_evidence(factor.r, factor.rows, inflation)
    rubs = np.array([_rubs(regression, int(column), j) for column in factor.columns], dtype=bool)
    certain = thresholds.CERTAIN_STANDARD_ERRORS
    if rubs.any() and (np.any(z[rubs] > certain) or not np.any(z[rubs] < -certain)):
        return False  # friction dissipates energy, so the sign is right, even if other values are negative
    z = z[regression.base.never_negative[factor.columns]]
    rest = factor.r[-1, -1] ** 2 / factor.power
    known = z[np.abs(z) > thresholds.CERTAIN_STANDARD_ERRORS]
    if not len(known) or rest > thresholds.MAX_SIGN_MISFIT ** 2:
        return False
    weight = np.log1p(known ** 2)
    # Friction that adds energy is nearly proof; inertias of a joint fitted alone are less certain than they look.
    least = thresholds.WRONG_FRICTION_SIGN_SHARE if rubs.any() else thresholds.WRONG_SIGN_SHARE
    return bool(np.sum(weight[known < 0]) > least * np.sum(weight))


def _rubs(regression: Regression, column: int, j: int) -> bool:
    """Whether a base parameter is friction of joint j alone."""
    base = regression.base
    items = [base.parameters.items[c] for c in np.flatnonzero(base.matrix[column])]
    return all(item.kind.group == "friction" and item.owner == j and item.never_negative for item in items)


def own_evidence(r: Array, rows: int, inflation: float) -> Array:
    """Return values over standard errors (columns,) of a joint fitted alone; zero if not determined."""
    size = np.linalg.norm(r[:, :-1], axis=0)
    scale = np.where(size > 0, size, 1.0)
    u, s, vt = np.linalg.svd(r[:-1, :-1] / scale)
    good = s > 1e-7 * s[0]
    value = vt[good].T @ ((u[:, good].T @ r[:-1, -1]) / s[good])
    noise = abs(r[-1, -1]) / np.sqrt(max(rows - len(s), 1)) * inflation
    deviation = noise * np.sqrt(np.sum((vt[good] / s[good, None]) ** 2, axis=0))
    is_determined = np.sum(vt[~good] ** 2, axis=0) < 1e-6
    floor = 1e-9 * float(np.max(np.abs(value), initial=0.0))
    return np.where(is_determined & (size > 0), value / np.maximum(deviation, floor + 1e-300), 0.0)


def unsigned_misfit(rows: SampledRows, j: int) -> float:
    """Return the smallest share of joint j's squared residual that remains if its torques are absolute values: with the
    signs by which the joint's own equations explain their size best; 1 if these signs hardly change.

    The signs follow from the fit and the fit from the signs in turn, from the signs of each column as start.
    """
    keep, basis = rows.keep[:, j], rows.spans[j]
    if basis is None:
        return 1.0
    tau = rows.measured[keep, j]
    rest = float(np.sum((tau - basis @ (basis.T @ tau)) ** 2))
    least = rest
    for column in rows.columns[j][keep].T:
        sign = np.sign(column)
        for _ in range(_SIGN_ROUNDS if np.any(sign != sign[0]) else 0):
            before, fit = sign, basis @ (basis.T @ (sign * tau))
            sign = np.where(fit < 0.0, -1.0, 1.0)
            if np.array_equal(sign, before):
                break
        if _MIN_SIGN_SHARE < np.mean(sign < 0.0) < 1.0 - _MIN_SIGN_SHARE:
            least = min(least, float(np.sum((sign * tau - basis @ (basis.T @ (sign * tau))) ** 2)))
    return least / rest if rest > 0.0 else 1.0


def swapped_torques(rows: SampledRows) -> Ints | None:
    """Return for each joint the joint (from 0) whose torque its equations explain (dof,); None without an exchange.

    The assignment minimises the sum of the logarithms of the residuals, each relative to the torque's variance.
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
    is_better = gained.mean() >= np.log(thresholds.SWAP_RATIO) and gained.min() >= 0.0
    return order if is_better and left[moved, order[moved]].max() <= 0.5 else None


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
