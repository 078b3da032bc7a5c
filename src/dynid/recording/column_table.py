"""Columns of the signals of a log: where each is, and whether their numbers fit together."""

from __future__ import annotations

from collections.abc import Mapping as Dictionary
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dynid.errors import RecordingError
from dynid.recording.arrays import Arrays
from dynid.recording.columns import Match
from dynid.recording.source import Source
from dynid.recording.whole_body import WIDTHS, WITHOUT_JOINTS


@dataclass(frozen=True)
class Column:
    """One column of numbers: its source (index into Layout.sources), its field, and its index within the field."""

    source: int
    field: str
    part: int


def source_columns(source: Source, index: int, found: Match, samples: int | None, notes: list[str]
                   ) -> tuple[Column, ...]:
    """Return one entry per column; arrays give several."""
    if found.parts is not None:
        return tuple(Column(index, name, part) for name, part in zip(found.fields, found.parts, strict=True))
    columns: list[Column] = []
    for name in found.fields:
        shape = source.fields[name]
        if isinstance(source, Arrays) and samples:
            size = int(np.prod(shape))
            if size % samples:
                raise RecordingError(f"{source.path}: '{name}' is {' x '.join(map(str, shape))}, "
                                     f"which does not fit the {samples} samples of the log", code="lengths-differ")
            width = size // samples
            if source.transposed(name, samples):
                notes.append(f"'{name}' is {shape[0]} x {shape[1]}, with joints along the rows, and was transposed")
        else:
            width = shape[1] if len(shape) == 2 else 1
        columns += [Column(index, name, part) for part in range(width)]
    return tuple(columns)


def check_counts(path: Path, columns: Dictionary[str, tuple[Column, ...]]) -> None:
    """Refuse signals whose number of columns does not fit that of the joints, or their own."""
    count = len(columns["position"])
    if not count:
        raise RecordingError(f"{path}: no position columns are given", where="log.position")
    for signal, found in columns.items():
        if signal == "time" and len(found) not in (1, 2):
            raise RecordingError(f"{path}: time must be one column, or seconds and nanoseconds, got {len(found)}",
                                 where="log.time")
        if signal == "wrench" and len(found) != 6:
            raise RecordingError(f"{path}: wrench needs 6 columns, forces and then moments, got {len(found)}",
                                 where="log.wrench")
        if signal in WIDTHS and len(found) != WIDTHS[signal]:
            raise RecordingError(f"{path}: {signal} needs {WIDTHS[signal]} columns, got {len(found)}",
                                 where=f"log.{signal}")
        if signal in ("temperature", "supply_voltage") and len(found) == 1:
            continue
        if signal not in WITHOUT_JOINTS and len(found) != count:
            raise RecordingError(f"{path}: there are {count} columns of position but {len(found)} of {signal}",
                                 where=f"log.{signal}", code="column-count")
