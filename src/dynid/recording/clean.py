"""Cleaning: rows of a log as joint-side numbers with increasing time, and what was wrong with the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array, Bools, Ints
from dynid.errors import RecordingError
from dynid.recording.layout import Column, Layout, lay_out
from dynid.recording.mapping import SECONDS, Mapping
from dynid.recording.source import Block, Fault, Values, rechunk, rows_of
from dynid.robot import Robot

# Beyond these a number is damage, not a measurement: rad or m, their rates, N m or N, s since 1970
ABSURD = {"position": 1e6, "velocity": 1e6, "torque": 1e9, "reference": 1e6, "reference_velocity": 1e6, "wrench": 1e9}
_ABSURD_TIME = 1e11
_MAY_BE_ABSENT = ("velocity", "reference", "reference_velocity", "wrench")
_SHOWN = 3  # bad rows named in a note


@dataclass(frozen=True, eq=False)
class Cleaned:
    """Rows that can be used: t (n,) s from the start of the log, signals (n, dof), the notes about them.

    joints: names of the columns, if known. unit_said: whether the unit of positions was given, not assumed.
    """

    t: Array
    signals: dict[str, Array]
    notes: tuple[str, ...]
    joints: tuple[str, ...] = ()
    unit_said: bool = False


@dataclass
class _Clock:
    """State kept over the parts of a log: where time began, the last stamp and row, how many rows there were."""

    origin: list[Any] | None = None
    scale: float = 1.0
    last: float = -np.inf
    last_row: dict[str, Array] = field(default_factory=dict)
    rows: int = 0
    absent: set[str] | None = None


def cleaned(paths: Sequence[Path], mapping: Mapping, robot: Robot | None, rows: int | None) -> Iterator[Cleaned]:
    """Read files that follow each other in time, `rows` rows at once, or each file at once."""
    clock = _Clock()
    joints: tuple[str, ...] | None = None
    for path in paths:
        with closing(lay_out(path, mapping, robot)) as current:
            if joints is not None and current.conversion.joints != joints:
                raise RecordingError(f"{path}: has other joints than {paths[0]}, so they are not one log")
            joints = current.conversion.joints
            before = current.notes
            for blocks, notes in _together(current, rows):
                part = _clean(current, blocks, clock)
                yield replace(part, notes=(*before, *notes, *part.notes), joints=joints, unit_said=current.unit_said)
                before = ()
            met = tuple(note for source in current.sources for note in source.notes)  # some only while reading
            dof = len(current.conversion.order)
            empty = {signal: np.zeros((0, 6 if signal == "wrench" else dof)) for signal in current.columns
                     if signal != "time" and signal not in (clock.absent or ())}
            yield Cleaned(np.zeros(0), empty, (*before, *met), joints, current.unit_said)


def _together(current: Layout, rows: int | None) -> Iterator[tuple[list[Block], tuple[str, ...]]]:
    """The same rows of all sources; files of different length are an error, or cut with bad_rows = "drop"."""
    streams = []
    for index, source in enumerate(current.sources):
        names = list(dict.fromkeys(column.field for columns in current.columns.values() for column in columns
                                   if column.source == index))
        streams.append(rechunk(rows_of(source, names, current.samples[index], rows), rows))
    done = 0
    for blocks in zip_longest(*streams):
        lengths = [0 if block is None else len(block) for block in blocks]
        shortest = min(lengths)
        if max(lengths) > shortest:
            short, long = (current.sources[lengths.index(size)].path for size in (shortest, max(lengths)))
            text = f"{short} ends after {done + shortest} samples, {long} goes on"
            if current.mapping.bad_rows == "error":
                raise RecordingError(f"{text}; set bad_rows = \"drop\" to use what both have")
            if shortest:
                yield [block.cut(0, shortest) for block in blocks], (f"{text}; the rest was left out",)
            return
        done += shortest
        yield list(blocks), ()


def _clean(current: Layout, blocks: Sequence[Block], clock: _Clock) -> Cleaned:
    notes: list[str] = []
    for signal, columns in current.columns.items():
        for column in columns:
            if signal != "time" and _values(blocks, column).dtype.kind == "M":
                raise RecordingError(f"{current.sources[column.source].path}: column '{column.field}' holds dates, and "
                                     f"no {signal}; name the columns in the mapping")
    raw = {signal: np.stack([_values(blocks, column) for column in columns], axis=1).astype(float, copy=False)
           for signal, columns in current.columns.items() if signal != "time"}
    raw["torque"][:, list(current.unmeasured)] = 0.0
    if clock.absent is None:
        clock.absent = {signal for signal in _MAY_BE_ABSENT if signal in raw and np.all(np.isnan(raw[signal]))}
        notes += [f"{signal} is not a number in any row and counts as not logged" for signal in sorted(clock.absent)]
    raw = {signal: array for signal, array in raw.items() if signal not in clock.absent}
    times = [_values(blocks, column) for column in current.columns.get("time", ())]
    with np.errstate(invalid="ignore", over="ignore"):  # bad rows are found below
        signals = {signal: _convert(current, signal, array) for signal, array in raw.items()}
    faults = _faults(current, blocks, raw, signals, times)
    good = np.ones(len(blocks[0]), dtype=bool)
    if faults:
        where = sorted(faults)
        if current.mapping.bad_rows == "error":
            raise RecordingError(f"{_sentence(current, blocks, where[0], faults[where[0]])}; correct it, or set "
                                 f"bad_rows = \"drop\" to leave such rows out")
        good[where] = False
        shown = "; ".join(_sentence(current, blocks, row, faults[row]) for row in where[:_SHOWN])
        more = f"; and {len(where) - _SHOWN} more" if len(where) > _SHOWN else ""
        notes.append(f"{len(where)} of {len(good)} rows left out: {shown}{more}")
    counted = np.arange(clock.rows, clock.rows + len(good))
    clock.rows += len(good)
    t = _seconds(current, [time[good] for time in times], counted[good], clock, notes)
    signals = {signal: array[good] for signal, array in signals.items()}
    fresh = _increasing(current, blocks, t, np.flatnonzero(good), signals, clock, notes)
    return Cleaned(t[fresh], {signal: array[fresh] for signal, array in signals.items()}, tuple(notes))


def _values(blocks: Sequence[Block], column: Column) -> Values:
    values = blocks[column.source].values[column.field]
    return values[:, column.part] if values.ndim == 2 else values


def _convert(current: Layout, signal: str, array: Array) -> Array:
    if signal in ("position", "reference"):
        return current.conversion.position(array)
    if signal in ("velocity", "reference_velocity"):
        return current.conversion.velocity(array)
    return array if signal == "wrench" else current.conversion.torque(array)


def _faults(current: Layout, blocks: Sequence[Block], raw: dict[str, Array], signals: dict[str, Array],
            times: Sequence[Values]) -> dict[int, tuple[int, Fault]]:
    """Rows that cannot be used: row -> (source, fault)."""
    faults: dict[int, tuple[int, Fault]] = {}
    for index, block in enumerate(blocks):
        for row, fault in block.faults.items():
            faults.setdefault(row, (index, fault))
    for column, time in zip(current.columns.get("time", ()), times, strict=True):
        if time.dtype.kind == "M":
            wrong = np.isnat(time)
        else:
            unit = current.time_unit or (_epoch_unit(time) if len(times) == 1 else None) or "s"
            size = np.abs(time.astype(float)) * SECONDS[unit]
            wrong = ~np.isfinite(size) | (size > _ABSURD_TIME)
        for row in np.flatnonzero(wrong).tolist():
            what = f"holds {time[row]}, which is no time; check time_unit"
            faults.setdefault(row, (column.source, (column.field, column.part, what)))
    for signal, array in signals.items():
        wrong = ~np.all(np.isfinite(raw[signal]), axis=1) | ~np.all(np.abs(array) <= ABSURD[signal], axis=1)
        for row in np.flatnonzero(wrong).tolist():
            if row in faults:
                continue
            size = np.abs(raw[signal][row])
            part = int(np.argmax(np.where(np.isfinite(size), size, np.inf)))
            column, value = current.columns[signal][part], raw[signal][row, part]
            what = f"holds {value:g}, which is no {signal.replace('_', ' ')}" if np.isfinite(value) \
                else f"holds {value:g}, which is not a finite number"
            faults[row] = (column.source, (column.field, column.part, what))
    return faults


def _sentence(current: Layout, blocks: Sequence[Block], row: int, found: tuple[int, Fault]) -> str:
    """A sentence on one fault: file, row and column."""
    index, (name, part, what) = found
    source = current.sources[index]
    place = f"{source.path} {source.row} {int(blocks[index].rows[row]) + source.lines * part}"
    if name is None:
        return f"{place}: {what}"
    shape = source.fields.get(name, ())
    label = f"{name}[{part + 1}]" if len(shape) == 2 and min(shape) != 1 else name
    return f"{place}: column '{label}' {what}"


def _epoch_unit(time: Values) -> str | None:
    """The unit in which a number of this size is a date after 1973 and before 2286; None for seconds."""
    finite = time[np.isfinite(time)] if time.dtype.kind == "f" else time
    size = float(np.median(np.abs(finite.astype(float)))) if len(finite) else 0.0
    return next((unit for unit, low in (("ns", 1e17), ("us", 1e14), ("ms", 1e11)) if low <= size < 1e3 * low), None)


def _seconds(current: Layout, times: Sequence[Values], counted: Ints, clock: _Clock,
             notes: list[str]) -> Array:
    """Time from the first row of the log (n,), s. Integers are subtracted before they become doubles."""
    if current.mapping.rate is not None:
        return np.asarray(counted / current.mapping.rate, dtype=float)
    if not len(times[0]):
        return np.zeros(0)
    whole = [time.astype("datetime64[ns]").view(np.int64) if time.dtype.kind == "M"
             else time.astype(np.int64) if time.dtype.kind in "iub" else time for time in times]
    if clock.origin is None:
        clock.origin = [time[0] for time in whole]
        unit = "ns" if times[0].dtype.kind == "M" else current.time_unit
        if unit is None and len(times) == 1:
            unit = _epoch_unit(times[0])
            if unit:
                notes.append(f"time is taken to be in {unit} since 1970, by its size")
        clock.scale = SECONDS[unit or "s"]
        start = float(whole[0][0]) * clock.scale
        if start:
            date = datetime.fromtimestamp(start, UTC).strftime(" (%Y-%m-%d %H:%M:%S UTC)") if 1e8 < start < 1e10 else ""
            notes.append(f"time starts at {start:.6f} s{date} in the file and at 0 here")
    elapsed = (whole[0] - clock.origin[0]).astype(float) * clock.scale
    return elapsed + (whole[1] - clock.origin[1]).astype(float) * 1e-9 if len(whole) == 2 else elapsed


def _increasing(current: Layout, blocks: Sequence[Block], t: Array, kept: Ints, signals: dict[str, Array],
                clock: _Clock, notes: list[str]) -> Bools:
    """Which rows have a stamp of their own; an error where time runs backwards."""
    if not len(t):
        return np.zeros(0, dtype=bool)
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
                             f"{t[first]:.6f} s after the start of the log; if it holds several runs, split it there")
    fresh = steps > 0
    again = np.flatnonzero(~fresh)
    if len(again):
        same = np.ones(len(again), dtype=bool)
        for signal, array in signals.items():
            head = clock.last_row.get(signal, array[:1])
            previous = np.concatenate([head, array[:-1]])
            same &= np.all(array[again] == previous[again], axis=1)
        rows = ", ".join(str(place(int(i))) for i in again[:_SHOWN]) + (", ..." if len(again) > _SHOWN else "")
        other = int(np.sum(~same))
        notes.append(f"{len(again)} rows repeat the time stamp of the row before and were left out ({source.row} "
                     f"{rows}); " + ("all are copies of it" if not other else f"{other} of them hold other values"
                        + (", so the clock is too coarse: give the rate instead" if other > 0.1 * len(t) else "")))
    clock.last = float(t[-1])
    clock.last_row = {signal: array[-1:] for signal, array in signals.items()}
    return fresh
