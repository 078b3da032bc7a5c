"""Stream: a log larger than memory, as Recordings that follow each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Mapping as Dictionary
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.errors import RecordingError
from dynid.recording.check import Extremes, content_notes, timing_notes, unit_notes
from dynid.recording.clean import Cleaned, cleaned
from dynid.recording.mapping import Mapping
from dynid.recording.read import Paths, mapping_of, paths_of, recording_of
from dynid.recording.recording import Recording
from dynid.robot import Robot


def stream(path: Paths, mapping: Mapping | Dictionary[str, Any] | str | Path | None = None, robot: Robot | None = None,
           *, rows: int = 100_000, overlap: int = 2_000, **overrides: Any) -> Iterator[Recording]:
    """The same samples as `read` gives, in pieces of `rows` samples.

    Each piece carries up to `overlap` samples of its neighbours on both sides, so that filters have room
    to settle; `Recording.rows` and `Recording.overlap` say which are its own. Memory holds one piece at a
    time for CSV, Parquet, HDF5, MATLAB 7.3, bags and uncompressed NPZ and NPY; the others are loaded
    whole first. Notes about the whole log come with the last piece.
    """
    if rows < 1 or overlap < 0:
        raise RecordingError(f"a stream needs rows of at least 1 and overlap of at least 0, got {rows} and {overlap}")
    paths, rules = paths_of(path), mapping_of(mapping, overrides)
    return _pieces(paths, rules, robot, rows, overlap)


def _pieces(paths: list[Path], rules: Mapping, robot: Robot | None, rows: int, overlap: int) -> Iterator[Recording]:
    held = Cleaned(np.zeros(0), {}, ())
    extremes: Extremes | None = None
    first = start = 0  # number in the log of the first sample held, and of the first not yet given out
    for part in cleaned(paths, rules, robot, rows):
        held = _append(held, part)
        if len(part.t):
            new = Extremes.of(part.signals["position"], part.signals["torque"])
            extremes = new if extremes is None else extremes | new
            if robot is not None:  # degrees read as radians stop the stream at once, not at its end
                unit_notes(extremes, robot, held.unit_said, str(paths[0]))
        while first + len(held.t) > start + rows + overlap:
            yield _piece(held, paths, first, start, start + rows, overlap)
            start += rows
            held, first = _forget(held, first, start - overlap)
    end = first + len(held.t)
    if extremes is None:
        raise RecordingError(f"{paths[0]}: holds no row that can be used")
    last = content_notes(extremes, held.joints)
    last += unit_notes(extremes, robot, held.unit_said, str(paths[0])) if robot is not None else []
    while start < end:
        stop = min(start + rows, end)
        yield _piece(held, paths, first, start, stop, overlap, last if stop == end else ())
        start = stop
        held, first = _forget(held, first, start - overlap)


def _piece(held: Cleaned, paths: list[Path], first: int, start: int, stop: int, overlap: int,
           last: Sequence[str] = ()) -> Recording:
    """Samples start to stop with their neighbours, out of those held, which begin with sample `first`."""
    before, after = start - first, min(overlap, first + len(held.t) - stop)
    t, signals = held.t[:stop + after - first], {name: array[:stop + after - first] for name, array in
                                                 held.signals.items()}
    own = slice(before, stop - first)
    notes = [f"samples {start + 1} to {stop} of the log", *held.notes,
             *timing_notes(t[own], signals["position"][own]), *last]
    return recording_of(t, signals, held.joints, paths, notes, rows=(start, stop), overlap=(before, after))


def _append(held: Cleaned, part: Cleaned) -> Cleaned:
    if not held.signals:
        return part
    return Cleaned(np.concatenate([held.t, part.t]),
                   {name: np.concatenate([array, part.signals[name]]) for name, array in held.signals.items()},
                   (*held.notes, *part.notes), held.joints, held.unit_said)


def _forget(held: Cleaned, first: int, until: int) -> tuple[Cleaned, int]:
    """Let go of the samples before number `until`, and of the notes, which have been given out."""
    drop = max(until - first, 0)
    return replace(held, t=held.t[drop:], signals={name: array[drop:] for name, array in held.signals.items()},
                   notes=()), first + drop
