"""LeRobot datasets (version 2.1 and 3): a folder of Parquet files with many episodes, described by meta/info.json."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from copy import copy
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from dynid.errors import RecordingError
from dynid.files import read_small
from dynid.recording.parquet import Parquet
from dynid.recording.source import FileRows, Source, Values, source_blocks

MAX_DATASET_FILES = 100_000  # data files of one dataset
EPISODE_COLUMN = "episode_index"
_SHOWN_EPISODES = 8  # missing episodes listed in a message


def is_dataset(path: Path) -> bool:
    """Whether a folder is a LeRobot dataset."""
    return os.path.isfile(path / "meta" / "info.json")  # also False for invalid file names


class LeRobotDataset(Source):
    """The data files of a dataset as one table, in the order of their names.

    Attributes:
        path: the folder.
        total: number of episodes according to the description.
        texts: names of the columns of each array, such as shoulder_pan.pos.
    """

    texts: Mapping[str, tuple[str, ...]] = MappingProxyType({})

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        about = path / "meta" / "info.json"
        try:
            info = json.loads(read_small(about))
            self.total, self._rate = int(info["total_episodes"]), float(info["fps"])
            version = str(info.get("codebase_version", ""))
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            raise RecordingError(f"{about}: is not the description of a LeRobot dataset, which states total_episodes "
                                 "and fps", "copy the dataset again") from None
        if not version.startswith(("v2", "v3")):
            raise RecordingError(f"{about}: is of version '{version[:20]}'; datasets of versions 2.1 and 3 are read",
                                 "convert it with LeRobot's conversion scripts")
        files = sorted((path / "data").rglob("*.parquet"))
        if not files or len(files) > MAX_DATASET_FILES:
            raise RecordingError(f"{path}: has {len(files)} data files below data/, so it is not a whole dataset",
                                 "copy the folder data of the dataset too")
        outside = next((file for file in files if not file.resolve().is_relative_to((path / "data").resolve())), None)
        if outside is not None and not _is_hub_cache(path, outside):
            raise RecordingError(f"{path}: {outside.name} is a link to a file outside of the dataset, which is not "
                                 "read", "copy the files into the dataset")
        self._files = files
        with closing(Parquet(files[0])) as first:
            self.texts, self._widths = first.texts, first.fields

    @property
    def fields(self) -> dict[str, tuple[int, ...]]:
        return {name: (0, *shape[1:]) for name, shape in self._widths.items()}

    def value(self, name: str) -> Values:
        raise RecordingError(f"{self.path}: '{name}' is a column of the dataset, not a single value")

    def blocks(self, names: Sequence[str], samples: int | None, rows: int | None) -> Iterator[FileRows]:
        start = 0
        for path in self._files:
            with closing(Parquet(path)) as file:
                missing = [name for name in names if name not in file.fields]
                if missing:
                    raise RecordingError(f"{path}: has no column '{missing[0]}', which {self._files[0].name} has")
                for block in file.blocks(names, samples, rows):
                    yield FileRows(block.values, block.rows + start, block.faults)
                start += file.fields[names[0]][0]

    def episodes(self) -> dict[int, tuple[Path, ...]]:
        """Return the existing episodes, with the files that contain their rows."""
        if EPISODE_COLUMN not in self._widths:
            raise RecordingError(f"{self.path}: has no column {EPISODE_COLUMN}", "copy the dataset again")
        return _files_by_episode(tuple((file, file.stat().st_mtime_ns) for file in self._files))

    def of_episode(self, number: int) -> LeRobotDataset:
        """Return the dataset with the files of one episode alone; raise an error if its rows are missing."""
        known = self.episodes()
        if number not in known:
            lost = self.missing(tuple(known))
            raise RecordingError(f"{self.path}: has no episode {number}; it has "
                                 + (f"{min(known)} to {max(known)}" if known else "none")
                                 + (f", and {lost}" if lost else ""), code="no-episode", where="log.episode")
        lost = self.missing(tuple(known))
        if lost and lost not in self.notes:
            self.notes.append(lost)
        part = copy(self)
        part._files = list(known[number])
        return part

    def missing(self, found: Sequence[int]) -> str:
        """Return a sentence on the episodes that are in the description but not in the data; empty if none."""
        lost = sorted(set(range(min(self.total, MAX_DATASET_FILES))) - set(found))
        if not lost:
            return ""
        named = ", ".join(map(str, lost[:_SHOWN_EPISODES])) + (", ..." if len(lost) > _SHOWN_EPISODES else "")
        return f"{len(lost)} of {self.total} episodes have no rows in the data files: {named}"


@lru_cache(maxsize=16)
def _files_by_episode(files: tuple[tuple[Path, int], ...]) -> dict[int, tuple[Path, ...]]:
    """Return files by episode; a changed modification time shows that a file has to be read again."""
    found: dict[int, tuple[Path, ...]] = {}
    for path, _ in files:
        with closing(Parquet(path)) as file:
            for block in source_blocks(file, [EPISODE_COLUMN], None, None):
                values = np.asarray(block.values[EPISODE_COLUMN], dtype=float)
                for number in np.unique(values[np.isfinite(values)]).astype(int).tolist():
                    if found.get(number, ())[-1:] != (path,):
                        found[number] = (*found.get(number, ()), path)
    return dict(sorted(found.items()))


def dataset_episodes(path: str | Path) -> tuple[tuple[int, ...], str]:
    """Return the readable episodes of a LeRobot dataset, and a sentence on the missing ones, empty if none."""
    dataset = LeRobotDataset(Path(path))
    found = tuple(dataset.episodes())
    return found, dataset.missing(found)


def episode_settings(path: str | Path, settings: Mapping[str, Any]) -> list[dict[str, int]]:
    """Return the settings with which each episode of a dataset is a separate log; one empty table for any other log."""
    if settings.get("episode") is not None or not is_dataset(Path(path)):
        return [{}]
    return [{"episode": number} for number in dataset_episodes(path)[0]]


def _is_hub_cache(folder: Path, file: Path) -> bool:
    """Whether a link belongs to the cache of the Hugging Face hub: snapshots/REVISION/... to ../../blobs/..."""
    parents = folder.absolute().parents
    return len(parents) > 1 and parents[0].name == "snapshots" and \
        file.resolve().is_relative_to((parents[1] / "blobs").resolve())
