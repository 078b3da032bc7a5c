"""Detection of implausible first rows of a log, by stamps or values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from dynid.arrays import Array
from dynid.recording.recording import DroppedRow

SHARE = 0.05  # of the rows: more than this at odds is another run in the same file, not damage
MAX_ODD_ROWS = 10  # rows that may be at odds in the shortest of logs
_MIN_ROWS_AFTER = 20  # rows that have to follow for something to be at odds with them
# Times the duration of all that follows: a gap that long says that the rows before it are strays.
_STRAY_GAP_DURATIONS = 10.0
_STRAY_RANGES = 3.0  # times the range of all that follows
_SMALLEST_SIGNAL = 1e-30  # rad, rad/s, N m, A and all else: far below the noise of any sensor
_MIN_STRAY_COLUMNS = 2  # that have to be off at once: one alone may be a signal that jumps


def measurable(array: Array) -> Array:
    """Return an array with zeros in place of numbers that are too small for any sensor and would underflow when
    squared."""
    small = (np.abs(array) < _SMALLEST_SIGNAL) & (array != 0.0)
    return np.where(small, 0.0, array) if small.any() else array


def most_rows(count: int) -> int:
    """Return the largest number of rows that may be implausible."""
    return max(MAX_ODD_ROWS, int(SHARE * count))


def strays_by_order(t: Array) -> int:
    """Return the number of first rows with stamps t (n,) that contradict the later, increasing ones."""
    few = most_rows(len(t))
    back = np.flatnonzero(np.diff(t) < 0)
    if len(t) < few + _MIN_ROWS_AFTER or not len(back) or back[-1] >= few:
        return 0
    return int(back[-1]) + 1


def strays_by_time(t: Array) -> int:
    """Return the number of first rows that are separated from the others by a long time; t (n,) increasing."""
    few = most_rows(len(t))
    if len(t) < few + _MIN_ROWS_AFTER:
        return 0
    gaps, left = np.diff(t[:few + 1]), t[-1] - t[1:few + 1]
    far = np.flatnonzero((gaps > _STRAY_GAP_DURATIONS * left) & (left > 0))
    return int(far[-1]) + 1 if len(far) else 0


def strays_by_value(values: Array) -> int:
    """Return the number of first rows of values (n, columns) that are far outside the later range in several columns
    at once, as uninitialised memory is."""
    few = most_rows(len(values))
    if len(values) < few + _MIN_ROWS_AFTER:
        return 0
    rest = values[few:]
    low, high = rest.min(axis=0), rest.max(axis=0)
    room = _STRAY_RANGES * (high - low)
    head = values[:few]
    off = ((head < low - room) | (head > high + room)) & (high > low)
    found = np.flatnonzero(off.sum(axis=1) >= _MIN_STRAY_COLUMNS)
    if not len(found):
        return 0
    last = int(found[-1])
    jump = np.abs(values[last + 1] - values[last]) > room  # a motion comes back in steps, damage at once
    return last + 1 if np.sum(off[last] & jump) >= _MIN_STRAY_COLUMNS else 0


@dataclass(frozen=True, eq=False)
class Cleaned:
    """Usable rows: t (n,) s from the start of the log, signals (n, dof), and notes.

    Attributes:
        joints: names of the columns, if known.
        unit_said: whether the unit of positions was given.
        dropped: number of unusable rows.
        dropped_rows: the first of them.
        until: s, end of the log as far as it was read, including rows outside the window.
        lacking: joints without data, by signal.
        torque_free: whether the log has no torques.
        labels: names of the columns of signals of a free base, by signal.
    """

    t: Array
    signals: dict[str, Array]
    notes: tuple[str, ...]
    joints: tuple[str, ...] = ()
    unit_said: bool = False
    dropped: int = 0
    dropped_rows: tuple[DroppedRow, ...] = ()
    until: float = 0.0
    lacking: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    torque_free: bool = False
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
