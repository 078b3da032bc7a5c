"""Parquet tables, and LeRobot datasets (version 2.1 and 3): folders of Parquet files described by meta/info.json."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from copy import copy
from functools import cached_property, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from dynid.errors import RecordingError
from dynid.files import check_file, read_small
from dynid.recording.source import Fault, FileRows, Source, Values, need, source_blocks, unreadable
from dynid.recording.unpacking import Measure, check_size

MAX_DATASET_FILES = 100_000  # data files of one dataset
EPISODE_COLUMN = "episode_index"
_SHOWN_EPISODES = 8  # missing episodes listed in a message
_ROWS_AT_ONCE = 65_536
_LISTS_AT_ONCE = 500  # columns of lists read at once: each takes some 100 kB of buffers


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

    @cached_property
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
                    raise RecordingError(f"{path}: has no column '{missing[0]}', which {self._files[0].name} has; "
                                         "copy the dataset again")
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
        lost = self.missing(tuple(known))
        if number not in known:
            raise RecordingError(f"{self.path}: has no episode {number}; it has "
                                 + (f"{min(known)} to {max(known)}" if known else "none")
                                 + (f", and {lost}" if lost else ""), code="no-episode", where="log.episode")
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


class Parquet(Source):
    """A Parquet file. A column of lists counts as an array (samples, length of the lists)."""

    texts: Mapping[str, tuple[str, ...]] = MappingProxyType({})

    def __init__(self, path: Path) -> None:
        parquet = need("pyarrow.parquet", "Parquet files", path)
        self._arrow = need("pyarrow", "Parquet files", path)
        super().__init__(path)
        try:
            self._file = parquet.ParquetFile(check_file(path))
        except (self._arrow.ArrowInvalid, OSError) as problem:
            raise unreadable(path, "Parquet file", problem) from None
        self._widths = self._column_widths()
        self.texts = {name: names for name, names in _part_names(path).items() if len(names) == self._widths.get(name)}

    def _column_widths(self) -> dict[str, int]:
        """Return the number of values in a cell of each column of numbers; 0 for a plain number."""
        types, widths, lists = self._arrow.types, dict[str, int](), list[str]()

        def plain(kind: Any) -> bool:
            return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))

        counts = Counter(self._file.schema_arrow.names)
        repeated = [name for name, count in counts.items() if count > 1]
        if repeated:  # a name would select all of them
            self.unread = f"columns are not read if several have the same name: {', '.join(repeated)[:200]!r}"
            self.notes.append(self.unread)
        for item in self._file.schema_arrow:
            if counts[item.name] > 1:
                continue
            if plain(item.type) or types.is_timestamp(item.type):
                widths[item.name] = 0
            elif types.is_fixed_size_list(item.type) and plain(item.type.value_type):
                widths[item.name] = int(item.type.list_size)
            elif (types.is_list(item.type) or types.is_large_list(item.type)) and plain(item.type.value_type):
                widths[item.name] = 0  # keeps the order of the columns
                lists.append(item.name)
        if lists:
            check_size(self.path, 8 * self._numbers_in(set(lists)))
            for begin in range(0, len(lists), _LISTS_AT_ONCE):
                names = lists[begin:begin + _LISTS_AT_ONCE]
                first = next(self._file.iter_batches(batch_size=1, columns=names), None)
                for name in names:
                    cell = None if first is None else first.column(name)[0]
                    if cell is None or not cell.is_valid or not len(cell):
                        del widths[name]
                    else:
                        widths[name] = len(cell)
        return widths

    def _numbers_in(self, names: set[str]) -> int:
        """Return the number of values in columns of lists, from the file's metadata."""
        groups = (self._file.metadata.row_group(k) for k in range(self._file.metadata.num_row_groups))
        columns = (group.column(k) for group in groups for k in range(group.num_columns))
        return sum(column.num_values for column in columns if column.path_in_schema.partition(".")[0] in names)

    @cached_property
    def fields(self) -> dict[str, tuple[int, ...]]:
        rows = self._file.metadata.num_rows
        return {name: (rows, width) if width else (rows,) for name, width in self._widths.items()}

    def close(self) -> None:
        self._file.close()

    def blocks(self, names: Sequence[str], samples: int | None, rows: int | None) -> Iterator[FileRows]:
        start, measure = 1, Measure(self.path)
        columns = list(dict.fromkeys(names))
        for batch in self._file.iter_batches(batch_size=min(rows or _ROWS_AT_ONCE, _ROWS_AT_ONCE), columns=columns):
            measure.add(batch.nbytes)
            faults: dict[int, Fault] = {}
            values = {name: self._numbers(name, batch.column(name), faults) for name in names}
            yield FileRows(values, np.arange(start, start + batch.num_rows), faults)
            start += batch.num_rows

    def _numbers(self, name: str, column: Any, faults: dict[int, Fault]) -> Values:
        width = self._widths[name]
        if column.null_count:
            for row in np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False)).tolist():
                faults.setdefault(row, (name, 0, "is empty"))
        if not width:
            if column.null_count and not self._arrow.types.is_floating(column.type):
                column = column.fill_null(0)
            return np.asarray(column.to_numpy(zero_copy_only=False))
        flat = column.flatten()
        if not column.null_count and not flat.null_count and np.all(column.value_lengths().to_numpy() == width):
            return np.asarray(flat.to_numpy(zero_copy_only=False), dtype=float).reshape(-1, width)
        lists = column.to_pylist()
        numbers = np.zeros((len(lists), width))
        for row, cells in enumerate(lists):
            if cells is not None and len(cells) == width:
                numbers[row] = [np.nan if cell is None else cell for cell in cells]
            else:
                faults.setdefault(row, (name, 0, f"contains {len(cells or [])} of {width} numbers"))
        return numbers


def _part_names(path: Path) -> dict[str, tuple[str, ...]]:
    """Return the names of array columns from the description of a LeRobot dataset, meta/info.json.

    The data of such a dataset are in data/chunk-000/file-000.parquet.
    """
    about = path.absolute().parents[2] / "meta" / "info.json" if len(path.absolute().parents) > 2 else None
    if about is None or not about.is_file():
        return {}
    try:
        features = json.loads(read_small(about))["features"]
        return {str(name): names for name, one in features.items()
                if (names := part_names(one.get("names"))) is not None}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise RecordingError(f"{about}: is not a valid dataset description; correct it or move the log elsewhere",
                             code="bad-dataset-description") from None


def part_names(names: Any) -> tuple[str, ...] | None:
    """Return the names of an array's columns from a feature of a dataset, which has a list or a table with one."""
    if isinstance(names, dict) and len(names) == 1:
        names = next(iter(names.values()))
    return tuple(map(str, names)) if isinstance(names, list) else None
