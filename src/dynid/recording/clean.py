"""Cleaning of a log: rows as joint-side numbers with increasing time, and the faults of unusable rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Mapping as Dictionary
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array, Bools, Ints
from dynid.errors import RecordingError
from dynid.recording.columns import Column
from dynid.recording.episodes import Cleaned, measurable, strays_by_order, strays_by_time, strays_by_value
from dynid.recording.joined_files import epoch_unit, rows_together, whole_numbers
from dynid.recording.layout import LogLayout, lay_out
from dynid.recording.mapping import SECONDS, Mapping
from dynid.recording.recording import DroppedRow
from dynid.recording.source import Fault, FileRows, Values
from dynid.recording.whole_body import WHOLE_BODY_SIGNALS, WITHOUT_JOINTS
from dynid.robot import Robot

# Larger numbers are damage, not measurements: rad or m, their rates, N m or N, s since 1970
ABSURD = {"position": 1e6, "velocity": 1e6, "torque": 1e9, "reference": 1e6, "reference_velocity": 1e6, "wrench": 1e9,
          "temperature": 1e4, "motor_position": 1e6, "sensed_torque": 1e9, "target_torque": 1e9, "target_current": 1e9,
          "external_torque": 1e9, "motor_current": 1e9, "supply_voltage": 1e6, "duty": 1e6,
          **dict.fromkeys(WHOLE_BODY_SIGNALS, 1e9)}
ABSURD_TIME = 1e11
_MAY_BE_ABSENT = tuple(signal for signal in ABSURD if signal not in ("position", "torque"))
MAX_BAD_ROWS_SHOWN = 3  # bad rows shown in a note
MIN_ROWS_WITHOUT_NUMBERS = 10  # rows without a number that show that a column has none
LISTED = 100  # bad rows listed in a recording
_DAY, _MIDNIGHT_GAP = 86400.0, 60.0  # s; the longest gap between the rows before and after midnight
_STAMP_ROUNDING = 1e-9  # s: tolerance of time stamps at the ends of a window


@dataclass
class _Clock:
    """State that is passed from one part of a log to the next.

    Attributes:
        begun: whether the first good row was read.
        origin, scale: time stamps of that row, and seconds per unit of a time stamp.
        until, rows: latest time so far, s, and number of rows so far.
        last, last_row: time, s, and values of the last row.
        days: number of midnights passed, if time stamps are times of day.
        absent: signals that are not a number in any row.
        blank: indices of the joints whose velocity is not a number in any row.
    """

    begun: bool = False
    origin: list[Any] | None = None
    scale: float | None = None
    until: float = 0.0
    last: float = -np.inf
    last_row: dict[str, Array] = field(default_factory=dict)
    rows: int = 0
    days: int = 0
    absent: set[str] | None = None
    blank: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


def cleaned(paths: Sequence[Path], mapping: Mapping, robot: Robot | None, rows: int | None) -> Iterator[Cleaned]:
    """Yield cleaned rows of files that follow each other in time, `rows` rows at a time, or one file at a time."""
    clock = _Clock()
    joints: tuple[str, ...] | None = None
    for path in paths:
        with closing(lay_out(path, mapping, robot)) as current:
            if joints is not None and current.conversion.joints != joints:
                raise RecordingError(f"{path} has other joints than {paths[0]}, so these files cannot be parts of one "
                                     "log; give each file as a log of its own")
            joints = current.conversion.joints
            before = current.notes
            lacking = {signal: tuple(joints[current.conversion.order.index(i)] for i in columns)
                       for signal, columns in current.lacking.items()}
            for blocks, notes in rows_together(current, rows):
                part = _clean(current, blocks, clock)
                yield replace(part, notes=(*before, *notes, *part.notes), joints=joints, lacking=lacking,
                              unit_said=current.unit_said, torque_free=current.mapping.torque_free,
                              labels=current.labels)
                before = ()
            met = tuple(note for source in current.sources for note in source.notes)  # some appear only while reading
            dof = len(current.conversion.order)
            empty = {signal: np.zeros((0, len(columns) if signal in WITHOUT_JOINTS else dof))
                     for signal, columns in current.columns.items()
                     if signal != "time" and signal not in (clock.absent or ())}
            yield Cleaned(np.zeros(0), empty, (*before, *met), joints, current.unit_said, lacking=lacking,
                          torque_free=current.mapping.torque_free)


def _clean(current: LogLayout, blocks: Sequence[FileRows], clock: _Clock) -> Cleaned:
    notes: list[str] = []
    for signal, columns in current.columns.items():
        for column in columns:
            if signal != "time" and _values(blocks, column).dtype.kind == "M":
                raise RecordingError(f"{current.sources[column.source].path}: column "
                                     f"'{column.field}' contains dates, not {signal}; map the "
                                     f"right columns with --set 'log.{signal}=[...]'", where=f"log.{signal}")
    raw = {signal: np.stack([_values(blocks, column) for column in columns], axis=1).astype(float, copy=False)
           for signal, columns in current.columns.items() if signal != "time"}
    raw["torque"][:, list(current.unmeasured)] = 0.0
    for signal, lacking in current.lacking.items():
        raw[signal][:, list(lacking)] = 0.0
    raw = _logged(current, raw, clock, notes)
    times = [_values(blocks, column) for column in current.columns.get("time", ())]
    with np.errstate(invalid="ignore", over="ignore"):  # bad rows are found below
        signals = {signal: measurable(_convert(current, signal, array)) for signal, array in raw.items()}
    faults = _faults(current, blocks, raw, signals, times)
    first, clock.rows = clock.rows, clock.rows + len(blocks[0])
    if current.mapping.bad_rows == "drop":
        _add_strays(signals, faults, clock)
    good = _without(faults, len(blocks[0]))
    t, days = _past_midnight(_seconds(current, times, good, first, clock), clock)
    if current.mapping.bad_rows == "drop" and _add_disorder(current, t, good, faults, clock):
        good = _without(faults, len(good))
        t, days = _past_midnight(_seconds(current, times, good, first, clock), clock)
    _begin(current, times, good, clock, notes)
    if days > clock.days:
        notes.append("time restarts after a day and is continued: it is a time of day, and the log passes midnight")
    clock.days = days
    clock.until = max(clock.until, float(np.max(t[good], initial=0.0)))
    inside = _inside(current.mapping, t)
    faults = {row: fault for row, fault in faults.items() if inside[row]}
    dropped = _dropped(current, blocks, faults, int(np.sum(inside)), notes)
    kept = np.flatnonzero(good & inside)
    signals = {signal: array[kept] for signal, array in signals.items()}
    fresh, repeated = _increasing(current, blocks, t[kept], kept, signals, clock, notes)
    return Cleaned(t[kept][fresh], {signal: array[fresh] for signal, array in signals.items()}, tuple(notes),
                   dropped=len(faults), dropped_rows=dropped, until=clock.until, repeated=repeated)


def _logged(current: LogLayout, raw: dict[str, Array], clock: _Clock, notes: list[str]) -> dict[str, Array]:
    """Return the signals without those that are nan in every row. Velocities that are missing for single joints are set
    to zero; their comparison with the positions rejects them later."""
    if clock.absent is None:
        clock.absent = {signal for signal in _MAY_BE_ABSENT if signal in raw and np.all(np.isnan(raw[signal]))}
        notes += [f"{signal} is not a number in any row and is treated as not "
                  "logged" for signal in sorted(clock.absent)]
        if "velocity" in raw and "velocity" not in clock.absent and current.conversion.inverse is None:
            clock.blank = np.flatnonzero(np.all(np.isnan(raw["velocity"]), axis=0))
            lacking = ", ".join(_label(current, current.columns["velocity"][k]) for k in clock.blank)
            if lacking:
                notes.append(f"velocity is not a number in any row of {lacking} and is treated as not logged there")
    if "velocity" in raw and len(clock.blank):
        raw["velocity"][:, clock.blank] = 0.0
    return {signal: array for signal, array in raw.items() if signal not in clock.absent}


def _without(faults: Dictionary[int, tuple[int, Fault]], count: int) -> Bools:
    """Return the mask (count,) of the rows without a fault."""
    return np.isin(np.arange(count), list(faults), invert=True)


def _dropped(current: LogLayout, blocks: Sequence[FileRows], faults: Dictionary[int, tuple[int, Fault]], count: int,
             notes: list[str]) -> tuple[DroppedRow, ...]:
    """Return the first dropped rows, and add a note on them; raise an error if the mapping forbids dropping rows."""
    where = sorted(faults)
    if not where:
        return ()
    column = _without_numbers(current, faults, count) if current.mapping.bad_rows == "error" else None
    if column is not None:
        raise RecordingError(f"{current.sources[column.source].path}: column '{_label(current, column)}' contains no "
                             f"number in any row{_unmeasured_option(current, column)}", where=current.setting(
                                 *faults[where[0]]), code="bad-row")
    if current.mapping.bad_rows == "error":
        raise RecordingError(f"{_sentence(current, blocks, where[0], faults[where[0]])}; correct it, or add --set "
                             "log.bad_rows=drop to ignore such rows", where=current.setting(*faults[where[0]]),
                             code="bad-row")
    shown = "; ".join(_sentence(current, blocks, row, faults[row]) for row in where[:MAX_BAD_ROWS_SHOWN])
    more = f"; and {len(where) - MAX_BAD_ROWS_SHOWN} more" if len(where) > MAX_BAD_ROWS_SHOWN else ""
    notes.append(f"{len(where)} of {count} rows ignored: {shown}{more}")
    places = (_place(current, blocks, row, faults[row]) for row in where[:LISTED])
    return tuple(DroppedRow(str(file), number, why) for file, number, why in places)


def _without_numbers(current: LogLayout, faults: Dictionary[int, tuple[int, Fault]], count: int) -> Column | None:
    """Return the column that alone makes every row of a log unusable; None if several columns do, or for few rows."""
    columns = {Column(source, name or "", part) for source, (name, part, _) in faults.values()}
    [only] = columns if len(columns) == 1 else [None]
    is_logged = only is not None and any(only in own for own in current.columns.values())
    return only if is_logged and len(faults) == count >= MIN_ROWS_WITHOUT_NUMBERS else None


def _unmeasured_option(current: LogLayout, column: Column) -> str:
    """Return the end of an error message: the option for a joint without measured torque; empty for other columns."""
    joints, place = current.conversion.joints, current.columns["torque"].index(column) \
        if column in current.columns["torque"] else None
    if place is None or not joints or place not in current.conversion.order:
        return ""
    return ("; if this torque was not measured, add --set "
            f"'log.unmeasured=[\"{joints[current.conversion.order.index(place)]}\"]'")


def _add_strays(signals: Dictionary[str, Array], faults: dict[int, tuple[int, Fault]], clock: _Clock) -> None:
    """Add faults for the first rows of a log whose values are far from all later ones."""
    if clock.begun:
        return
    good = np.flatnonzero(_without(faults, len(signals["position"])))
    values = np.hstack([array[good] for signal, array in signals.items()
                        if signal not in (*WITHOUT_JOINTS, "temperature", "supply_voltage")])
    for row in good[:strays_by_value(values)].tolist():
        faults[row] = (0, (None, 0, "its values are far outside the range of all later rows, in several columns"))


def _add_disorder(current: LogLayout, t: Array, good: Bools, faults: dict[int, tuple[int, Fault]], clock: _Clock
                  ) -> bool:
    """Add faults for the first rows of a log whose stamps contradict all later ones. Return whether there are any."""
    if clock.begun:
        return False
    rows = np.flatnonzero(good)
    count = strays_by_order(t[rows])
    count += strays_by_time(t[rows[count:]])
    source = current.columns["time"][0].source if "time" in current.columns else 0
    for row in rows[:count].tolist():
        faults[row] = (source, (None, 0, "its time stamp does not fit the time stamps of all later rows"))
    return count > 0


def _inside(mapping: Mapping, t: Array) -> Bools:
    """Return the mask (n,) of the rows inside the requested time window; a row without a time stamp follows the
    previous one."""
    known = np.isfinite(t)
    if (mapping.start is None and mapping.stop is None) or not np.any(known):
        return np.ones(len(t), dtype=bool)
    places = np.where(known, np.arange(len(t)), -1)
    last = np.maximum.accumulate(places)
    filled = t[np.where(last >= 0, last, int(np.argmax(known)))]
    low, high = mapping.start or 0.0, np.inf if mapping.stop is None else mapping.stop
    return (filled >= low - _STAMP_ROUNDING) & (filled < high - _STAMP_ROUNDING)


def _values(blocks: Sequence[FileRows], column: Column) -> Values:
    values = blocks[column.source].values[column.field]
    return values[:, column.part] if values.ndim == 2 else values


def _convert(current: LogLayout, signal: str, array: Array) -> Array:
    factor = current.conversion.factors.get(signal)
    array = array if factor is None else array * factor[:array.shape[1]]  # a single column has that of the first joint
    if signal in ("temperature", "supply_voltage"):
        return np.ascontiguousarray(np.broadcast_to(array, (len(array), len(current.columns["position"])))[
            :, list(current.conversion.order)])
    if signal in WITHOUT_JOINTS:
        return array
    return current.conversion.joint_side(signal, array)


def _faults(current: LogLayout, blocks: Sequence[FileRows], raw: dict[str, Array], signals: dict[str, Array],
            times: Sequence[Values]) -> dict[int, tuple[int, Fault]]:
    """Return the rows that cannot be used, as row -> (source, fault)."""
    faults: dict[int, tuple[int, Fault]] = {}
    for index, block in enumerate(blocks):
        for row, fault in block.faults.items():
            faults.setdefault(row, (index, fault))
    for column, time in zip(current.columns.get("time", ()), times, strict=True):
        if time.dtype.kind == "M":
            wrong = np.isnat(time)
        else:
            unit = current.time_unit or (epoch_unit(time) if len(times) == 1 else None) or "s"
            size = np.abs(time.astype(float)) * SECONDS[unit]
            wrong = ~np.isfinite(size) | (size > ABSURD_TIME)
        for row in np.flatnonzero(wrong).tolist():
            what = f"has the time {time[row]}, which is not plausible; check its unit (--set log.time_unit=ms)"
            faults.setdefault(row, (column.source, (column.field, column.part, what)))
    for signal, array in signals.items():
        wrong = ~np.all(np.isfinite(raw[signal]), axis=1) | ~np.all(np.abs(array) <= ABSURD[signal], axis=1)
        for row in np.flatnonzero(wrong).tolist():
            if row in faults:
                continue
            size = np.abs(raw[signal][row])
            part = int(np.argmax(np.where(np.isfinite(size), size, np.inf)))
            column, value = current.columns[signal][part], raw[signal][row, part]
            kind = f"plausible {signal.replace('_', ' ')}" if np.isfinite(value) else "finite number"
            what = f"has the value {value:g}, which is not a {kind}"
            faults[row] = (column.source, (column.field, column.part, what))
    return faults


def _sentence(current: LogLayout, blocks: Sequence[FileRows], row: int, found: tuple[int, Fault]) -> str:
    """Return a sentence on one fault with file, row and column."""
    file, number, what = _place(current, blocks, row, found)
    return f"{file} {current.sources[found[0]].row} {number}: {what}"


def _place(current: LogLayout, blocks: Sequence[FileRows], row: int, found: tuple[int, Fault]) -> tuple[Path, int, str]:
    """Return file, row and description of one fault."""
    index, (name, part, what) = found
    source = current.sources[index]
    number = int(blocks[index].rows[row]) + source.lines * part
    if name is None:
        return source.path, number, what
    return source.path, number, f"column '{_label(current, Column(index, name, part))}' {what}"


def _label(current: LogLayout, column: Column) -> str:
    """Return the name of a column in messages: its field, and its number if there are several."""
    shape = current.sources[column.source].fields.get(column.field, ())
    return f"{column.field}[{column.part + 1}]" if len(shape) == 2 and min(shape) != 1 else column.field


def _time_unit(current: LogLayout, times: Sequence[Values], good: Bools) -> tuple[str, bool]:
    """Return the unit of time stamps, and whether it follows from their magnitude."""
    if times[0].dtype.kind == "M":
        return "ns", False
    by_size = epoch_unit(times[0][good]) if current.time_unit is None and len(times) == 1 else None
    return current.time_unit or by_size or "s", by_size is not None


def _seconds(current: LogLayout, times: Sequence[Values], good: Bools, first: int, clock: _Clock) -> Array:
    """Return the time from the first good row of the log (n,), s; nan in other rows. first: number of earlier rows.

    Integers are subtracted before they are converted to floating point.
    """
    if current.mapping.rate is not None:
        return np.asarray((first + np.arange(len(good))) / current.mapping.rate, dtype=float)
    t = np.full(len(good), np.nan)
    if not np.any(good):
        return t
    whole = [time[good] for time in whole_numbers(times)]
    origin = clock.origin or [time[0] for time in whole]
    scale = clock.scale or SECONDS[_time_unit(current, times, good)[0]]
    t[good] = (whole[0] - origin[0]).astype(float) * scale
    if len(whole) == 2:
        t[good] += (whole[1] - origin[1]).astype(float) * 1e-9
    return t


def _past_midnight(t: Array, clock: _Clock) -> tuple[Array, int]:
    """Return increasing times (n,) from times of day, s, which restart at midnight, and the number of midnights."""
    if not np.any(known := np.isfinite(t)):
        return t, clock.days
    before = clock.until - clock.days * _DAY if clock.begun else t[known][0]
    passed = clock.days + np.cumsum(np.abs(np.diff(t[known], prepend=before) + _DAY) < _MIDNIGHT_GAP)
    found = t.copy()
    found[known] += _DAY * passed
    return found, int(passed[-1])


def _begin(current: LogLayout, times: Sequence[Values], good: Bools, clock: _Clock, notes: list[str]) -> None:
    """Set the time of the first good row to zero, and add a note with its original time stamp."""
    if clock.begun or not np.any(good):
        return
    clock.begun = True
    if current.mapping.rate is not None:
        return
    unit, by_size = _time_unit(current, times, good)
    if by_size:
        notes.append(f"time is interpreted as {unit} since 1970, because of its magnitude")
    clock.scale = SECONDS[unit]
    clock.origin = [time[good][0] for time in whole_numbers(times)]
    start = float(clock.origin[0]) * clock.scale
    if start:
        date = datetime.fromtimestamp(start, UTC).strftime(" (%Y-%m-%d %H:%M:%S UTC)") if 1e8 < start < 1e10 else ""
        notes.append(f"time starts at {start:.6f} s{date} in the file and is shifted to 0")


def _increasing(current: LogLayout, blocks: Sequence[FileRows], t: Array, kept: Ints, signals: dict[str, Array],
                clock: _Clock, notes: list[str]) -> tuple[Bools, int]:
    """Return a mask of the rows whose time stamp is later than the previous one, and the number of rows with the
    previous time stamp but other values. Raises an error if time decreases."""
    if not len(t):
        return np.zeros(0, dtype=bool), 0
    steps = np.diff(t, prepend=clock.last)
    column = current.columns["time"][0] if "time" in current.columns else None
    index = column.source if column else 0
    source = current.sources[index]

    def place(i: int) -> int:
        return int(blocks[index].rows[kept[i]])

    back = np.flatnonzero(steps < 0)
    if len(back):
        first = int(back[0])
        before = t[first - 1] if first else clock.last
        raise RecordingError(f"{source.path} {source.row} {place(first)}: time runs backwards, from {before:.6f} s to "
                             f"{t[first]:.6f} s after the start of the log; if the file contains several runs, split "
                             "it there and give each run as a log of its own, or choose one with --set log.episode=N "
                             "--set log.episode_column=NAME where a column numbers them", where="log.time",
                             code="time-backwards")
    fresh, other = steps > 0, 0
    again = np.flatnonzero(~fresh)
    if len(again):
        same = np.ones(len(again), dtype=bool)
        for signal, array in signals.items():
            head = clock.last_row.get(signal, array[:1])
            previous = np.concatenate([head, array[:-1]])
            same &= np.all(array[again] == previous[again], axis=1)
        rows = ", ".join(str(place(int(i))) for i in again[:MAX_BAD_ROWS_SHOWN])
        rows += ", ..." if len(again) > MAX_BAD_ROWS_SHOWN else ""
        other = int(np.sum(~same))
        coarse = "; the clock is too coarse: give the rate in Hz (--set log.rate=N)" if other > 0.1 * len(t) else ""
        notes.append(f"{len(again)} rows repeat the previous time stamp and are ignored ({source.row} {rows}); "
                     + (f"{other} of them have other values{coarse}" if other else "all are copies of that row"))
    clock.last = float(t[-1])
    clock.last_row = {signal: array[-1:] for signal, array in signals.items()}
    return fresh, other
