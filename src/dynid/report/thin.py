"""Decimation for plots that keeps extremes."""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array, Bools, Ints
from dynid.order_statistics import distinct


def thinned_rows(signals: Array, most: int) -> Ints:
    """Return at most `most` rows of signals (samples, k), in order: the lowest and highest of each in every interval.

    A line through these rows reaches the same extremes as a line through all rows.
    """
    count, width = signals.shape
    if count <= most:
        return np.arange(count)
    stretches = max(1, (most - 2) // (2 * width))
    size = -(-count // stretches)
    stretches = -(-count // size)
    starts = np.arange(stretches)[:, None] * size
    # The last stretch is filled up with its own last row.
    padded = np.concatenate([signals, np.repeat(signals[-1:], stretches * size - count, axis=0)])
    blocks = padded.reshape(stretches, size, width)
    picked = [starts + blocks.argmin(axis=1), starts + blocks.argmax(axis=1)]
    rows = distinct(np.concatenate([np.zeros(1, dtype=np.int64), np.array([count - 1]), *(p.ravel() for p in picked)]))
    return rows[rows < count]


def with_breaks(t: Array, rows: Ints, longest: float, *signals: Array) -> list[Array]:
    """Return t and signals at the chosen rows, with nan where two of them are more than `longest` apart in time."""
    jumps = np.flatnonzero(np.diff(t) > longest) + 1  # first rows after a jump
    at = np.searchsorted(rows, jumps)
    at = distinct(at[(at > 0) & (at < len(rows))])
    chosen = [np.insert(signal[rows], at, np.nan) for signal in signals]
    return [np.insert(t[rows], at, t[rows][at]), *chosen]


def runs(mask: Bools) -> list[tuple[int, int]]:
    """Return half-open row ranges in which a mask is true."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]
