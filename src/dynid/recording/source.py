"""Files as named fields of numbers, read in blocks of consecutive rows."""

from __future__ import annotations

import importlib
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Ints
from dynid.errors import DynidError, RecordingError
from dynid.files import open_file
from dynid.recording.mapping import SIGNALS, SignalPlace
from dynid.recording.mapping import Mapping as ReadingRules
from dynid.recording.unpacking import check_size

Values = NDArray[Any]
Fault = tuple[str | None, int, str]


@dataclass(frozen=True, eq=False)
class FileRows:
    """Consecutive rows of a file.

    Attributes:
        values: (n,) or (n, k) for each field.
        rows: (n,), number of each row in the file, from 1 with the header.
        faults: by row of the block, the field (None for the whole row), its column (from 0) and a description.
    """

    values: Mapping[str, Values]
    rows: Ints
    faults: Mapping[int, Fault] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)

    def cut(self, start: int, stop: int) -> FileRows:
        """Return the rows from start to stop of the block."""
        return FileRows({name: array[start:stop] for name, array in self.values.items()}, self.rows[start:stop],
                     {row - start: fault for row, fault in self.faults.items() if start <= row < stop})

    def take(self, kept: Ints) -> FileRows:
        """Return the rows of the block with the given indices."""
        place = {int(row): i for i, row in enumerate(kept)} if self.faults else {}
        return FileRows({name: array[kept] for name, array in self.values.items()}, self.rows[kept],
                        {place[row]: fault for row, fault in self.faults.items() if row in place})


class Source(ABC):
    """An open file with named fields.

    Attributes:
        path, notes: the file, and remarks on it.
        unread: sentence on the parts of the file that are not read, empty if there are none.
        row: name of its rows in messages: row, message or sample.
        lines: 1 if each number of a row is on a line of its own, otherwise 0.
    """

    row = "row"
    lines = 0

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notes: list[str] = []
        self.unread = ""

    @property
    @abstractmethod
    def fields(self) -> Mapping[str, tuple[int, ...]]:
        """Return names and shapes: () for one value, (n,) for a column, (n, k) for an array; n is 0 if unknown."""

    @property
    def texts(self) -> Mapping[str, tuple[str, ...]]:
        """Return the text fields, such as joint names."""
        return {}

    @property
    def defaults(self) -> Mapping[str, str]:
        """Return the columns of each signal that the file format itself defines, as for bags; empty otherwise."""
        return {}

    def value(self, name: str) -> Values:
        """Return a whole field, for constants stored with the log."""
        return np.concatenate([block.values[name].ravel() for block in self.blocks([name], None, None)])

    @abstractmethod
    def blocks(self, names: Sequence[str], samples: int | None, rows: int | None) -> Iterator[FileRows]:
        """Yield the rows of some fields in blocks of any size; samples: number of rows, if known."""

    def close(self) -> None:
        """Close the log file if it is open."""
        return


def need(module: str, what: str, path: Path) -> ModuleType:
    """Return an optional package; raise an error that states how to install it if it is missing."""
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise RecordingError(f"{path}: reading {what} needs the package {package}; "
                             f"install it with pip install 'dynid[logs]'") from None


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Convert any exception of a library on a damaged file to a RecordingError that names the file."""
    try:
        yield
    except DynidError:
        raise
    except Exception as problem:  # each library has its own exceptions
        raise RecordingError(f"{path}: the file is damaged or cut off and cannot be read, {reason(problem)}",
                             "copy it again from where it was recorded, or remove it from the logs",
                             code="damaged-file") from problem


def reason(problem: Exception) -> str:
    """Return the message of a library's exception on one line."""
    return " ".join(str(problem).split())[:200] or type(problem).__name__


def unreadable(path: Path, what: str, problem: Exception) -> RecordingError:
    """Return the error for a file that a library could not open; what: kind of the file, such as "Parquet file"."""
    return RecordingError(f"{path}: the {what} cannot be read, {reason(problem)}", code="damaged-file")


def source_blocks(source: Source, names: Sequence[str], samples: int | None, rows: int | None) -> Iterator[FileRows]:
    """Yield the blocks of a source, with exceptions converted to RecordingError."""
    with reading(source.path):
        yield from source.blocks(names, samples, rows)


def check_fields(source: Source, names: Iterable[str]) -> None:
    """Refuse fields that declare too many numbers, before they are read."""
    check_size(source.path, sum(8 * math.prod(source.fields[name]) for name in dict.fromkeys(names)))


def join(blocks: Sequence[FileRows]) -> FileRows:
    """Return consecutive blocks of rows as one block."""
    if len(blocks) == 1:
        return blocks[0]
    faults: dict[int, Fault] = {}
    start = 0
    for block in blocks:
        faults.update({row + start: fault for row, fault in block.faults.items()})
        start += len(block)
    return FileRows({name: np.concatenate([block.values[name] for block in blocks]) for name in blocks[0].values},
                 np.concatenate([block.rows for block in blocks]), faults)


def rechunk(blocks: Iterable[FileRows], rows: int | None) -> Iterator[FileRows]:
    """Yield the same rows in blocks of exactly `rows` rows (the last may be shorter), or in one block."""
    held: list[FileRows] = []
    count = 0
    for block in blocks:
        held.append(block)
        count += len(block)
        while rows is not None and count >= rows:
            whole = join(held)
            yield whole.cut(0, rows)
            held, count = [whole.cut(rows, count)], count - rows
    if count:
        yield join(held)


def signal_file(path: Path, place: SignalPlace) -> Path:
    """Return the file with a signal of a log: the log itself, or the file that `place` names relative to its folder."""
    if place.file is None:
        return path
    stem = Path(path.name.removesuffix(".gz")).stem  # of .csv.gz without both extensions
    return (path if os.path.isdir(path) else path.parent) / place.file.replace("{stem}", stem)


def shared_file(paths: Sequence[Path], mapping: ReadingRules) -> list[tuple[str, Path]]:
    """Return the signals read from another file, and that file; refuse one file shared by several files of a log."""
    found: dict[tuple[str, Path], Path] = {}
    for path in paths:
        for signal in SIGNALS:
            place = getattr(mapping, signal)
            if not isinstance(place, SignalPlace) or place.file is None:
                continue
            file = signal_file(path, place)
            first = found.setdefault((signal, file), path)
            if first != path:
                raise RecordingError(f"the {signal} of {first} and of {path} would both be read from {file}; give each "
                                     f"part its own file, with {{stem}} in its name")
    return list(found)


def open_source(path: Path, rules: ReadingRules, width: int | None = None) -> Source:
    """Open a log with the format of its first bytes; as text if they are unknown.

    rules: format of the file, see `Mapping`. width: lines per sample, for a file with one number per line.
    """
    from dynid.recording import rosbag
    if not os.path.exists(path):  # also false for invalid file names
        raise RecordingError(f"{path}: there is no such file", code="no-such-file")
    if path.is_dir():
        if (path / "metadata.yaml").exists():
            with reading(path):
                return rosbag.Bag(path, rules.main_topic)
        from dynid.recording import lerobot
        if lerobot.is_dataset(path):
            with reading(path):
                return lerobot.LeRobotDataset(path)
        raise RecordingError(f"{path}: this folder is neither a ROS 2 bag nor a LeRobot dataset; give a log file, or "
                             "one file per signal with --set 'log.position={file = \"...\"}'")
    try:
        with open_file(path) as file:
            start = file.read(16)
    except OSError as problem:
        raise RecordingError(f"{path}: cannot be read: {problem.strerror}") from None
    with reading(path):
        found = None if width is not None else _opened_arrays(path, start, rules.array, rules.axis)
        if found is not None:
            return found
        if rules.array is not None or rules.axis == 1:
            what = "array" if rules.array is not None else "axis"
            raise RecordingError(f"{path}: {what} applies to files of arrays (NPZ, NPY, MAT, HDF5), not to this file")
        return _opened(path, start, rules, width)


def _opened_arrays(path: Path, start: bytes, array: str | None, axis: int | None) -> Source | None:
    """Return the file of arrays that begins with `start`; None if it is another kind of file."""
    from dynid.recording import arrays, json_tables, torch_tensors
    if start.startswith(b"\x93NUMPY"):
        if array is not None:
            raise RecordingError(f"{path}: an NPY file holds one array without a name; remove array = '{array}'")
        return arrays.open_npy(path, axis)
    if start.startswith(b"PK\x03\x04") and torch_tensors.is_torch_archive(path):
        return torch_tensors.open_torch(path).one_array(array, axis)
    if start.startswith(b"\x80"):
        raise RecordingError(f"{path}: is a pickle of Python{torch_tensors.legacy_words(start)}, which is not read, "
                             "because it could run a program", torch_tensors.SAVE_REMEDY)
    if start.lstrip().startswith((b"{", b"[")):
        return json_tables.open_json(path).one_array(array, axis)
    if start.startswith(b"PK\x03\x04"):
        return arrays.open_npz(path).one_array(array, axis)
    if start.startswith((b"MATLAB 7.3", b"\x89HDF\r\n")):
        return arrays.open_hdf5(path).one_array(array, axis)
    if start.startswith(b"MATLAB") or path.suffix == ".mat":
        return arrays.open_mat(path).one_array(array, axis)
    return None


def _opened(path: Path, start: bytes, rules: ReadingRules, width: int | None) -> Source:
    """Return the source of a table, a bag or a flat file that begins with `start`."""
    from dynid.recording import lerobot, rosbag, tabular
    if width is None and start.startswith(b"PAR1"):
        return lerobot.Parquet(path)
    if width is None and start.startswith((b"#ROSBAG", b"\x89MCAP", b"SQLite format 3")):
        return rosbag.Bag(path, rules.main_topic)
    text = tabular.Text(path, rules.delimiter, rules.decimal, rules.header, rules.skip)
    return text if width is None else tabular.Flat(text, width)
