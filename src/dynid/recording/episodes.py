"""Selection of rows of a log: one episode, rows with the drive switched on, and plausible first rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Mapping as Dictionary
from dataclasses import dataclass, field

import numpy as np

from dynid.arrays import Array
from dynid.errors import RecordingError
from dynid.recording.columns import listed
from dynid.recording.lerobot import EPISODE_COLUMN, LeRobotDataset
from dynid.recording.mapping import Mapping
from dynid.recording.recording import DroppedRow
from dynid.recording.source import FileRows, Source, source_blocks

MAX_EPISODES = 100_000  # above this number, a message does not list missing episodes
SHARE = 0.05  # share of the rows: more implausible rows are another run in the same file, not damage
MAX_ODD_ROWS = 10  # implausible rows allowed in a short log
_MIN_ROWS_AFTER = 20  # rows that must follow implausible ones
# Gap, in multiples of the duration of all later rows, that separates stray rows from them.
_STRAY_GAP_DURATIONS = 10.0
_STRAY_RANGES = 3.0  # distance of stray values from those of all later rows, in multiples of their range
_SMALLEST_SIGNAL = 1e-30  # rad, rad/s, N m, A and others: far below the noise of any sensor
_MIN_STRAY_COLUMNS = 2  # columns that must be implausible at once: a single signal may jump


def episode_rows(source: Source, names: Sequence[str], samples: int | None, rows: int | None, mapping: Mapping) \
        -> Iterator[FileRows]:
    """Yield the rows of a source: those of the episode that the mapping selects, without rows in which the drive is
    off.

    Time restarts in each episode, so rows of two episodes are not one log.
    """
    switch = mapping.enabled
    if switch is not None and switch not in source.fields:
        if not mapping.may_lack("enabled"):
            raise RecordingError(f"{source.path}: has no column '{switch}', which the setting enabled names; name "
                                 "another one with --set log.enabled=NAME, or remove the setting", where="log.enabled")
        switch = None
    wanted = [*dict.fromkeys([*names, *([] if switch is None else [switch])])]
    switched_off = 0
    for block in _one_episode(source, wanted, samples, rows, mapping):
        if switch is None:
            yield block
            continue
        kept = np.flatnonzero(np.asarray(block.values[switch], dtype=float) > 0.5)
        switched_off += len(block) - len(kept)
        if len(kept):
            yield block.take(kept)
    if switched_off:
        source.notes.append(f"{switched_off} rows with the drive switched off ('{switch}' is zero) are ignored")


def _one_episode(source: Source, names: Sequence[str], samples: int | None, rows: int | None, mapping: Mapping) \
        -> Iterator[FileRows]:
    number, column = mapping.episode, mapping.episode_column
    if number is None:
        yield from source_blocks(source, names, samples, rows)
        return
    if column not in source.fields:
        raise RecordingError(f"{source.path}: has no column '{column}' with episode numbers; name it with --set "
                             "log.episode_column=NAME")
    if isinstance(source, LeRobotDataset) and column == EPISODE_COLUMN:
        source = source.of_episode(number)
    seen: set[int] = set()
    for block in source_blocks(source, [*dict.fromkeys([*names, column])], samples, rows):
        values = np.asarray(block.values[column], dtype=float)
        seen.update(np.unique(values[np.isfinite(values)]).astype(int).tolist())
        kept = np.flatnonzero(values == number)
        if len(kept):
            yield block.take(kept)
    if number not in seen:
        is_short = bool(seen) and max(seen) - min(seen) < MAX_EPISODES
        lost = [str(k) for k in range(min(seen), max(seen)) if k not in seen] if is_short else []
        gaps = f", without {listed(lost, 8)}" if lost else ""
        raise RecordingError(f"{source.path}: has no episode {number} in '{column}'; it has "
                             + (f"{min(seen)} to {max(seen)}{gaps}" if seen else "none"), where="log.episode")


def measurable(array: Array) -> Array:
    """Return an array with zeros in place of numbers too small for any sensor, whose squares would underflow."""
    small = (np.abs(array) < _SMALLEST_SIGNAL) & (array != 0.0)
    return np.where(small, 0.0, array) if small.any() else array


def most_rows(count: int) -> int:
    """Return the largest number of rows that may be implausible."""
    return max(MAX_ODD_ROWS, int(SHARE * count))


def strays_by_order(t: Array) -> int:
    """Return the number of first rows whose time stamps t (n,) contradict the later, increasing ones."""
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
    """Return the number of first rows of values (n, columns) that are far outside the later range in several columns at
    once, as in uninitialised memory."""
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
    jump = np.abs(values[last + 1] - values[last]) > room  # a motion returns in steps, damage at once
    return last + 1 if np.sum(off[last] & jump) >= _MIN_STRAY_COLUMNS else 0


@dataclass(frozen=True, eq=False)
class Cleaned:
    """Usable rows of a log.

    Attributes:
        t: time stamps (n,), s from the start of the log.
        signals: values (n, dof) by name of the signal.
        notes: sentences on the reading of these rows.
        joints: names of the columns, if known.
        unit_said: whether the unit of positions was given.
        dropped: number of unusable rows.
        dropped_rows: the first of these rows.
        until: end of the log that was read, including rows outside the window, s.
        repeated: number of rows that are ignored because they have the previous time stamp, but other values.
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
    repeated: int = 0
    lacking: Dictionary[str, tuple[str, ...]] = field(default_factory=dict)
    torque_free: bool = False
    labels: Dictionary[str, tuple[str, ...]] = field(default_factory=dict)
