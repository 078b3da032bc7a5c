"""Ripple: the order of waves over a joint's angle that a residual has, and what they are worth on blocks left out.

The order is looked for anew without each block, so that the search itself is no part of what is judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array, Ints
from dynid.recording import Samples
from dynid.regression.residuals import Residuals

FIRST, LAST = 3, 200  # orders that are tried; lower ones are cables
_AGREE = 0.75  # share of the blocks without which the same order must be found
MIN_ROWS_FOR_RIPPLE = 50  # rows of a joint in a block
_TURN = 1.5  # rad of a wave's angle from row to row, above which rows are too far apart for it
_AT_ONCE = 32


@dataclass(frozen=True)
class RippleOrder:
    """The order found in a joint's residual, and what it is worth: gain and its standard error, percent of the joint's
    error on left-out blocks."""

    order: int
    gain: float
    error: float


def ripple_order(angle: Array, residual: Array, block: Ints, blocks: int, step: float) -> RippleOrder | None:
    """The order of waves in a residual (rows,) over an angle (rows,), each block left out in turn; None where no
    order is found again without most of the blocks. step: rad from row to row."""
    counts = np.bincount(block, minlength=blocks)
    if len(angle) == 0 or counts.min() < MIN_ROWS_FOR_RIPPLE:
        return None
    # A wave must fit into the range of the joint, and rows into a wave.
    first = max(FIRST, int(np.ceil(2.0 * np.pi / max(float(np.ptp(angle)), 1e-9))))
    orders = np.arange(first, min(LAST, int(_TURN / max(step, 1e-9))) + 1)
    if not len(orders):
        return None
    right, squares = _sums(angle, residual, block, blocks, orders)
    best = int(np.argmax(_gains(right.sum(axis=0), squares.sum(axis=0))))
    found, gains = [], []
    for b in range(blocks):
        rest, inside = right.sum(axis=0) - right[b], squares.sum(axis=0) - squares[b]
        k = int(np.argmax(_gains(rest, inside)))
        found.append(k)
        values = np.linalg.solve(_safe(inside)[k], rest[k])
        gains.append(2.0 * values @ right[b, k] - values @ squares[b, k] @ values)
    if np.mean(np.array(found) == best) < _AGREE:
        return None
    size = max(float(residual @ residual), 1e-300)
    error = 50.0 * float(np.std(gains, ddof=1)) * np.sqrt(blocks) / size
    return RippleOrder(int(orders[best]), 100.0 * (1.0 - np.sqrt(max(1.0 - float(np.sum(gains)) / size, 0.0))), error)


def _sums(angle: Array, residual: Array, block: Ints, blocks: int, orders: Ints) -> tuple[Array, Array]:
    """Of each block and order, products of the two waves with the residual (blocks, orders, 2) and with each other
    (blocks, orders, 2, 2)."""
    right, squares = np.zeros((blocks, len(orders), 2)), np.zeros((blocks, len(orders), 2, 2))
    for start in range(0, len(orders), _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        waves = np.exp(1j * np.outer(angle, orders[some]))
        for b in range(blocks):
            own = block == b
            cosine, sine = waves[own].real, waves[own].imag
            right[b, some] = np.column_stack([residual[own] @ cosine, residual[own] @ sine])
            both = np.einsum("rk,rk->k", cosine, sine)
            squares[b, some] = np.moveaxis(np.array([[np.einsum("rk,rk->k", cosine, cosine), both],
                                                     [both, np.einsum("rk,rk->k", sine, sine)]]), 2, 0)
    return right, squares


def _gains(right: Array, squares: Array) -> Array:
    """Squares (orders,) that the best two waves of each order take."""
    return np.einsum("ki,ki->k", right, np.linalg.solve(_safe(squares), right[:, :, None])[:, :, 0])


def _safe(squares: Array) -> Array:
    """The same matrices (orders, 2, 2) where rows do not tell sine and cosine apart, too."""
    size = np.trace(squares, axis1=1, axis2=2)[:, None, None]
    return squares + (1e-9 * size + 1e-300) * np.eye(2)


def joint_rows(samples: Sequence[Samples], series: Sequence[Residuals], joint: int, blocks: int,
               stretches: int) -> tuple[Array, Array, Ints, float]:
    """Of a joint's rows in all logs: position, residual, the block that each stretch of time is dealt to (rows,), and
    the typical step of the position from row to row."""
    positions, left, which, steps = [], [], [], []
    for log, part in zip(samples, series, strict=True):
        keep = part.keep[:, joint]
        rows = np.clip(np.searchsorted(log.t, part.t - 0.5 / log.rate), 0, len(log) - 1)
        position = np.asarray(log.q[rows, joint])
        cut = stretches * blocks * np.arange(len(part.t)) // max(len(part.t), 1)
        positions.append(position[keep])
        left.append(part.residual[keep, joint])
        which.append((cut % blocks)[keep])
        steps.append(np.abs(np.diff(position)))
    every = np.concatenate(steps)
    step = float(np.sqrt(np.mean(every ** 2))) if len(every) else 0.0
    return np.concatenate(positions), np.concatenate(left), np.concatenate(which).astype(np.int64), step
