"""Rows of all files of a log: paired in order, or interpolated at the time stamps of the positions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

import numpy as np

from dynid.arrays import Ints
from dynid.errors import RecordingError
from dynid.order_statistics import median
from dynid.recording.episodes import episode_rows
from dynid.recording.layout import LogLayout
from dynid.recording.mapping import SECONDS
from dynid.recording.source import FileRows, Values, join, rechunk, source_blocks
from dynid.recording.topics import TopicSeries


def rows_together(current: LogLayout, rows: int | None) -> Iterator[tuple[list[FileRows], tuple[str, ...]]]:
    """Yield the rows of all sources of a log, with notes.

    Sources with a clock of their own are interpolated. Others are paired in order: if their lengths differ, that is an
    error; with bad_rows = "drop" the longer ones are cut.
    """
    timed = {index: _series(current, index, clock) for index, clock in current.clocks.items()}
    paired = [index for index in range(len(current.sources)) if index not in timed]
    streams = [rechunk(episode_rows(current.sources[index], _names(current, index), current.samples[index], rows,
                                    current.mapping), rows) for index in paired]
    done, kept = 0, 0
    for blocks in zip_longest(*streams):
        lengths = [0 if block is None else len(block) for block in blocks]
        shortest = min(lengths)
        text = ""
        if max(lengths) > shortest:
            short, long = (current.sources[paired[lengths.index(size)]].path for size in (shortest, max(lengths)))
            text = f"{short} ends after {done + shortest} samples, but {long} continues"
            if current.mapping.bad_rows == "error":
                raise RecordingError(
                    f"{text}: rows of the files are paired in order. If both files have a time column of one clock, "
                    "name that of the other file, for example --set 'log.torque={file = \"...\", columns = [...], "
                    "time = \"...\"}', and it is interpolated. If the rates are equal, add --set log.bad_rows=drop "
                    "to use only the rows that both have", code="lengths-differ")
        done += shortest
        if shortest:
            found = _joined(current, dict(zip(paired, (block.cut(0, shortest) for block in blocks), strict=True)),
                            timed)
            kept += len(found[0])
            yield found, (f"{text}; the remaining rows are ignored",) if text else ()
        if text:
            break
    for index, series in timed.items():
        current.sources[index].notes.append(series.note(done, done - kept))
    if timed and not kept:
        names = " and ".join(str(current.sources[index].path) for index in (paired[0], *timed))
        raise RecordingError(f"{names} have no time in common: their time stamps must be those of one clock, in one "
                             "unit", code="no-common-time")


def _names(current: LogLayout, index: int) -> list[str]:
    """Return the fields of one file of a log from which signals are read."""
    return list(dict.fromkeys(column.field for columns in current.columns.values() for column in columns
                              if column.source == index))


def _joined(current: LogLayout, blocks: dict[int, FileRows], timed: dict[int, TopicSeries]) -> list[FileRows]:
    """Return the rows of all sources. Sources with a clock of their own are interpolated at the time of the others.

    Rows outside the time of a source, or in one of its gaps, are left out.
    """
    if not timed:
        return [*blocks.values()]
    times = current.columns["time"]
    own = blocks[times[0].source]
    stamps = _stamps(current, [own.values[column.field] for column in times])
    reached = np.all([series.reaches(stamps) for series in timed.values()], axis=0)
    for index, series in timed.items():
        blocks[index] = FileRows({name: series.at(stamps, name, "") for name, _ in series.values}, own.rows)
    return [blocks[index].take(np.flatnonzero(reached)) for index in range(len(current.sources))]


def _series(current: LogLayout, index: int, clock: str) -> TopicSeries:
    """Return the usable rows of a source with time column `clock`; of rows with equal time stamps only the first."""
    source, names = current.sources[index], _names(current, index)
    block = join([*source_blocks(source, [*dict.fromkeys([*names, clock])], current.samples[index], None)])
    good = np.isin(np.arange(len(block)), list(block.faults), invert=True)
    for name in names:
        good &= np.isfinite(np.reshape(block.values[name], (len(block), -1)).astype(float)).all(axis=1)
    if not good.all() and current.mapping.bad_rows == "error":
        row = int(np.argmin(good))
        raise RecordingError(f"{source.path} {source.row} {block.rows[row]}: contains a cell that is not a finite "
                             "number; correct it, or add --set log.bad_rows=drop to ignore such rows", code="bad-row")
    block = block.take(np.flatnonzero(good))
    stamps, first = np.unique(_stamps(current, [block.values[clock]]), return_index=True)
    return TopicSeries(str(source.path), stamps, {(name, ""): block.values[name][first] for name in names})


def _stamps(current: LogLayout, times: Sequence[Values]) -> Ints:
    """Return time stamps (n,) in ns; zero for a stamp that is not finite, which a later check reports."""
    whole = whole_numbers(times)
    if len(whole) == 2:
        return np.asarray(whole[0].astype(np.int64) * 1_000_000_000 + whole[1].astype(np.int64))
    unit = "ns" if times[0].dtype.kind == "M" else current.time_unit or epoch_unit(times[0]) or "s"
    factor = round(1e9 * SECONDS[unit])
    [stamps] = whole
    return np.asarray(np.rint(np.nan_to_num(stamps * factor)).astype(np.int64) if stamps.dtype.kind == "f"
                      else stamps * factor)


def epoch_unit(time: Values) -> str | None:
    """Return the unit in which time stamps (n,) since 1970 are dates between 1973 and 2286; None for seconds."""
    finite = time[np.isfinite(time)] if time.dtype.kind == "f" else time
    size = float(median(np.abs(finite.astype(float)))) if len(finite) else 0.0
    return next((unit for unit, low in (("ns", 1e17), ("us", 1e14), ("ms", 1e11)) if low <= size < 1e3 * low), None)


def whole_numbers(times: Sequence[Values]) -> list[Values]:
    """Return time stamps as integers where the file has integers or dates, since doubles lose nanoseconds."""
    return [time.astype("datetime64[ns]").view(np.int64) if time.dtype.kind == "M"
            else time.astype(np.int64) if time.dtype.kind in "iub" else time for time in times]
