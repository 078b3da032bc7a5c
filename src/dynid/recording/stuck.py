"""Detection of stuck encoders: a position that stays constant although the joint was moving."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array
from dynid.order_statistics import median, quantile

MIN_STUCK_SECONDS = 0.1  # s that a position has to stay the same
_SPEED_WINDOW = 0.04  # s before and after, over which the speed is taken
_MISSED_COUNTS = 8.0  # encoder counts that the joint would have made meanwhile
_MIN_CHANGE_RATIO = 3.0  # times the largest change of speed over such a window elsewhere


@dataclass(frozen=True)
class Hang:
    """A joint (from 0) with a stuck position from row `start` to before row `stop`."""

    joint: int
    start: int
    stop: int


def hanging_positions(t: Array, q: Array) -> tuple[Hang, ...]:
    """Return the intervals in which positions q (samples, joints) at times t (samples,) are stuck.

    A joint that comes to rest decelerates first; a stuck one stops or starts within one row. An interval of equal
    values counts if the speed on one side is several encoder counts per row, and changes more suddenly than elsewhere
    in the log.
    """
    if len(t) < 20:
        return ()
    step = float(median(np.diff(t)))
    width, least = max(2, round(_SPEED_WINDOW / step)), max(5, round(MIN_STUCK_SECONDS / step))
    found = []
    for j in range(q.shape[1]):
        column = q[:, j]
        runs = _equal(column, least)
        if not len(runs):
            continue
        size = np.abs(np.diff(column))
        count = float(quantile(size[size > 0], 0.1)) if np.any(size > 0) else 0.0
        usual = _usual_change(column, runs, width)
        for start, stop in runs:
            before = _speed(column, start - width, start) if start >= width else 0.0
            after = _speed(column, stop - 1, stop - 1 + width) if stop - 1 + width < len(column) else 0.0
            fastest = max(abs(before), abs(after))
            if fastest * (stop - start) > _MISSED_COUNTS * max(count, 1e-12) and fastest > _MIN_CHANGE_RATIO * usual:
                found.append(Hang(j, int(start), int(stop)))
    return tuple(found)


def _equal(column: Array, least: int) -> Array:
    """Return row ranges (k, 2) over which a column is constant for at least `least` rows."""
    same = np.concatenate([[False], np.diff(column) == 0.0, [False]])
    starts = np.flatnonzero(~same[:-1] & same[1:])
    stops = np.flatnonzero(same[:-1] & ~same[1:]) + 1
    long = stops - starts >= least
    return np.column_stack([starts[long], stops[long]])


def _speed(column: Array, low: int, high: int) -> float:
    """Return the mean change per row."""
    return float(column[high] - column[low]) / (high - low)


def _usual_change(column: Array, runs: Array, width: int) -> float:
    """Return the largest change of speed (per row) between neighbouring windows, away from constant intervals."""
    speed = (column[width:] - column[:-width]) / width
    change = np.abs(speed[width:] - speed[:-width])
    away = np.ones(len(change), dtype=bool)
    for start, stop in runs:
        away[max(start - 2 * width - 1, 0):stop + 1] = False
    return float(quantile(change[away], 0.99)) if away.sum() > 10 else np.inf
