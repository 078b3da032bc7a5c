"""Test whether a robust fit predicts unseen data better than least squares."""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array, Bools
from dynid.estimate.robust import tukey
from dynid.order_statistics import distinct, median
from dynid.validate.sampled_rows import SampledRows
from dynid.validate.thresholds import PATTERN_BLOCKS, ROBUST_GAIN

_ROBUST_BLOCKS = 10  # blocks of time: even ones are predicted from odd ones and vice versa
_REWEIGHTING_STEPS = 12  # iterations of reweighting
OUTLIER_STD = 4.0  # robust standard deviations beyond which a residual is an outlier
_SLOWER_ERRORS = 2.0  # standard errors by which outliers must be slower than random rows to be due to reversals
_NORMAL_MAD = 0.6745  # median absolute deviation of a standard normal distribution


def robust_predicts_better(rows: SampledRows, j: int) -> bool:
    """Whether a robust fit of joint j's own equations has a smaller cross-validation error than least squares.

    The comparison uses the median absolute residual, which outliers do not affect. Large residuals at low speeds are no
    outliers: a filter rounds the jump of Coulomb friction at reversals, and a fit without these rows ignores friction.
    """
    use = rows.keep[:, j]
    speed, size = np.abs(rows.dq[use, j]), np.abs(rows.residual[use, j])
    far = size > OUTLIER_STD * median(size) / _NORMAL_MAD if len(size) else np.zeros(0, dtype=bool)
    if not far.any() or _at_reversals(speed, far):
        return False
    columns, tau = rows.columns[j][use], rows.measured[use, j]
    stretch = np.arange(len(tau)) * _ROBUST_BLOCKS // max(len(tau), 1)
    ratios: list[float] = []
    for part in (0, 1):
        own = stretch % 2 == part
        if own.sum() < 2 * columns.shape[1] + 10:
            return False
        plain, robust = _fitted(columns[own], tau[own])
        for held in distinct(stretch[~own]):
            rest = [float(median(np.abs((tau - columns @ value)[stretch == held]))) for value in (plain, robust)]
            if rest[0] > 0:
                ratios.append(rest[1] / rest[0])
    return bool(ratios) and float(np.mean(np.array(ratios) < 1.0)) >= PATTERN_BLOCKS \
        and float(median(ratios)) < 1.0 - ROBUST_GAIN


def _at_reversals(speed: Array, far: Bools) -> bool:
    """Return whether outliers (rows,) occur at significantly lower speeds (rows,) than other rows.

    Consecutive outliers are one event. The speeds of events at random times have every rank with equal probability.
    """
    rank = np.searchsorted(np.sort(speed), speed[far], side="right") / len(speed)
    event = np.cumsum(np.diff(np.flatnonzero(far), prepend=-2) > 1) - 1
    ranks = np.bincount(event, rank) / np.bincount(event)
    return bool(ranks.mean() < 0.5 - _SLOWER_ERRORS / np.sqrt(12.0 * len(ranks)))


def _fitted(columns: Array, tau: Array) -> tuple[Array, Array]:
    """Return values by least squares, and by a robust fit: least absolute residuals, then Tukey's biweight."""
    size = np.linalg.norm(columns, axis=0)
    wide = columns / np.where(size > 0, size, 1.0)

    def solve(weight: Array) -> Array:
        root = np.sqrt(weight)
        return np.asarray(np.linalg.lstsq(wide * root[:, None], tau * root, rcond=1e-6)[0], dtype=float)

    plain = value = solve(np.ones(len(tau)))
    loss = tukey()
    for step in range(_REWEIGHTING_STEPS):
        rest = tau - wide @ value
        scale = max(float(median(np.abs(rest))) / _NORMAL_MAD, 1e-12 * float(np.abs(tau).max()) + 1e-300)
        value = solve(
            1.0 / np.maximum(np.abs(rest), 0.1 * scale) if step < _REWEIGHTING_STEPS // 2 else loss.weight(rest / scale)
        )
    scale_back = np.where(size > 0, size, 1.0)
    return plain / scale_back, value / scale_back
