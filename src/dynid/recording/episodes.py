"""Selection of the rows of a file: one episode of several, and rows with the drive switched on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dynid.arrays import Ints
from dynid.errors import RecordingError
from dynid.recording.columns import listed
from dynid.recording.lerobot import EPISODE_COLUMN, LeRobotDataset
from dynid.recording.mapping import Mapping
from dynid.recording.source import FileRows, Source, rows_of

MAX_EPISODES = 100_000  # beyond so many, a message does not name the missing ones


def episode_rows(source: Source, names: Sequence[str], samples: int | None, rows: int | None, mapping: Mapping) \
        -> Iterator[FileRows]:
    """Yield the rows of a source: those of the episode that the mapping names, without rows in which the drive is off.

    Time restarts in each episode, so rows of two episodes are not one log.
    """
    switch = mapping.enabled
    if switch is not None and switch not in source.fields:
        if not mapping.may_lack("enabled"):
            raise RecordingError(f"{source.path}: has no column '{switch}' for enabled", where="log.enabled")
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
            yield _some(block, kept)
    if switched_off:
        source.notes.append(f"{switched_off} rows with the drive switched off ('{switch}' is zero) are left out")


def _one_episode(source: Source, names: Sequence[str], samples: int | None, rows: int | None, mapping: Mapping) \
        -> Iterator[FileRows]:
    number, column = mapping.episode, mapping.episode_column
    if number is None:
        yield from rows_of(source, names, samples, rows)
        return
    if column not in source.fields:
        raise RecordingError(f"{source.path}: has no column '{column}' with episode numbers; name it with --set "
                             "log.episode_column=NAME")
    if isinstance(source, LeRobotDataset) and column == EPISODE_COLUMN:
        source = source.of_episode(number)
    seen: set[int] = set()
    for block in rows_of(source, [*dict.fromkeys([*names, column])], samples, rows):
        values = np.asarray(block.values[column], dtype=float)
        seen.update(np.unique(values[np.isfinite(values)]).astype(int).tolist())
        kept = np.flatnonzero(values == number)
        if len(kept):
            yield _some(block, kept)
    if number not in seen:
        is_short = bool(seen) and max(seen) - min(seen) < MAX_EPISODES
        lost = [str(k) for k in range(min(seen), max(seen)) if k not in seen] if is_short else []
        gaps = f", without {listed(lost, 8)}" if lost else ""
        raise RecordingError(f"{source.path}: has no episode {number} in '{column}'; it has "
                             + (f"{min(seen)} to {max(seen)}{gaps}" if seen else "none"), where="log.episode")


def _some(block: FileRows, kept: Ints) -> FileRows:
    """Return the rows of a block with the given indices."""
    place = {int(row): i for i, row in enumerate(kept)}
    return FileRows({name: array[kept] for name, array in block.values.items()}, block.rows[kept],
                    {place[row]: fault for row, fault in block.faults.items() if row in place})
