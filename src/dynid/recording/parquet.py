"""Parquet tables: columns of numbers, lists of numbers, or time stamps."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from dynid.errors import RecordingError
from dynid.files import read_small
from dynid.recording.source import Fault, FileRows, Source, Values, need
from dynid.recording.unpacking import Measure, check_size

_ROWS_AT_ONCE = 65_536


class Parquet(Source):
    """A Parquet file. A column of lists counts as an array (samples, length of the lists)."""

    texts: Mapping[str, tuple[str, ...]] = MappingProxyType({})

    def __init__(self, path: Path) -> None:
        parquet = need("pyarrow.parquet", "Parquet files", path)
        self._arrow = need("pyarrow", "Parquet files", path)
        super().__init__(path)
        try:
            self._file = parquet.ParquetFile(path)
        except (self._arrow.ArrowInvalid, OSError) as problem:
            raise RecordingError(f"{path}: the Parquet file cannot be read, {' '.join(str(problem).split())}",
                                 code="damaged-file") from None
        widths = {item.name: self._width(item) for item in self._file.schema_arrow}
        self._widths = {name: width for name, width in widths.items() if width is not None}
        self.texts = {name: names for name, names in _part_names(path).items() if len(names) == self._widths.get(name)}

    def _width(self, item: Any) -> int | None:
        """Return the number of values in a cell of this column; 0 for a plain number, None if it holds no numbers."""
        types = self._arrow.types

        def plain(kind: Any) -> bool:
            return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))

        if plain(item.type) or types.is_timestamp(item.type):
            return 0
        if types.is_fixed_size_list(item.type) and plain(item.type.value_type):
            return int(item.type.list_size)
        if (types.is_list(item.type) or types.is_large_list(item.type)) and plain(item.type.value_type):
            check_size(self.path, 8 * self._numbers_in(item.name))
            for batch in self._file.iter_batches(batch_size=1, columns=[item.name]):
                first = batch.column(0)[0]
                return len(first) if first.is_valid and len(first) else None
        return None

    def _numbers_in(self, name: str) -> int:
        """Return the number of values per cell in a column of lists, from the file's metadata."""
        groups = (self._file.metadata.row_group(k) for k in range(self._file.metadata.num_row_groups))
        return sum(group.column(k).num_values for group in groups for k in range(group.num_columns)
                   if group.column(k).path_in_schema.startswith(f"{name}."))

    @property
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
                             code="bad-dataset-description") \
            from None


def part_names(names: Any) -> tuple[str, ...] | None:
    """Return the names of an array's columns from a feature of a dataset, which has a list or a table with one."""
    if isinstance(names, dict) and len(names) == 1:
        names = next(iter(names.values()))
    return tuple(map(str, names)) if isinstance(names, list) else None
