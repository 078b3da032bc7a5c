"""Rows of one episode in a file with several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dynid.errors import RecordingError
from dynid.recording.mapping import Mapping
from dynid.recording.source import FileRows, Source, rows_of


def episode_rows(source: Source, names: Sequence[str], samples: int | None, rows: int | None, mapping: Mapping) \
        -> Iterator[FileRows]:
    """Yield the rows of a source, of one episode only if the mapping selects one."""
    number, column = mapping.episode, mapping.episode_column
    if number is None:
        yield from rows_of(source, names, samples, rows)
        return
    if column not in source.fields:
        raise RecordingError(f"{source.path}: has no column '{column}' with episode numbers; name it with --set "
                             "log.episode_column=NAME")
    seen: set[int] = set()
    for block in rows_of(source, [*dict.fromkeys([*names, column])], samples, rows):
        values = np.asarray(block.values[column], dtype=float)
        seen.update(np.unique(values[np.isfinite(values)]).astype(int).tolist())
        kept = np.flatnonzero(values == number)
        if len(kept):
            place = {int(row): i for i, row in enumerate(kept)}
            yield FileRows({name: array[kept] for name, array in block.values.items()}, block.rows[kept],
                        {place[row]: fault for row, fault in block.faults.items() if row in place})
    if number not in seen:
        raise RecordingError(f"{source.path}: has no episode {number} in '{column}'; it has "
                             + (f"{min(seen)} to {max(seen)}" if seen else "none"))
