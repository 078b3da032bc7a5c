"""Files of named arrays: NPZ, NPY, MATLAB v5 and 7.3, HDF5. They are read in slices, so they may exceed memory."""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import parsed
from dynid.errors import DynidError, RecordingError
from dynid.files import check_file, open_file
from dynid.recording.source import FileRows, Source, Values, check_fields, need, unreadable
from dynid.recording.unpacking import Measure, check_size

_ROWS_AT_ONCE = 65_536  # rows read at once when the caller asks for smaller pieces
_BYTES_AT_ONCE = 1 << 20  # bytes unpacked at once
_MOST_COLUMNS = 10_000  # largest number of columns of one array
_MOST_WORDS = 1 << 20  # bytes of a text field, such as joint names
_MOST_LONG_WORDS = 1000  # texts of a field that are stored elsewhere in the file, each of any length


class Arrays(Source):
    """Named arrays of one file, in memory or read from disk in slices; each has a shape, a dtype and slicing.

    The axis of the samples is the one whose length equals the number of samples. `rows_last` gives the preferred axis
    if both axes have that length (MATLAB 7.3 stores arrays transposed). axis: that axis, 0 or 1, if it is given.
    """

    row = "sample"

    def __init__(self, path: Path, arrays: Mapping[str, Any], *, rows_last: bool = False,
                 close: Callable[[], None] | None = None) -> None:
        super().__init__(path)
        self.arrays = {name: array for name, array in arrays.items() if np.dtype(array.dtype).kind in "fiubM"}
        self.words = {name: array for name, array in arrays.items() if np.dtype(array.dtype).kind in "USO"}
        self.rows_last = rows_last
        self.axis: int | None = None
        self._close = close

    @cached_property
    def fields(self) -> dict[str, tuple[int, ...]]:
        shapes = {}
        for name, array in self.arrays.items():
            shape = tuple(array.shape)[::-1] if self.rows_last else tuple(array.shape)
            if len(shape) > 2:
                shape = tuple(size for size in shape if size > 1)
            if len(shape) <= 2:
                shapes[name] = () if math.prod(shape) == 1 and len(shape) != 1 else shape
        return shapes

    @property
    def texts(self) -> dict[str, tuple[str, ...]]:
        found = {}
        for name, array in self.words.items():
            if math.prod(array.shape) * array.dtype.itemsize > _MOST_WORDS:
                continue
            items = _long_words(array) if array.dtype.kind == "O" and not isinstance(array, np.ndarray) \
                else np.asarray(array[()]).ravel().tolist()
            items = [item.decode(errors="replace") if isinstance(item, bytes) else item for item in items]
            if items and all(isinstance(item, str) for item in items):
                found[name] = tuple(item.strip() for item in items)
        return found

    def value(self, name: str) -> Values:
        check_fields(self, [name])
        return np.asarray(self.arrays[name][()]).ravel()

    def close(self) -> None:
        if self._close:
            self._close()

    def blocks(self, names: Sequence[str], samples: int | None, rows: int | None) -> Iterator[FileRows]:
        count = samples or 0
        axes = {name: self._axis(name, count) for name in names}
        step = max(count, 1) if rows is None else min(rows, _ROWS_AT_ONCE)
        for start in range(0, count, step):
            stop = min(start + step, count)
            yield FileRows({name: _take(self.arrays[name], axis, start, stop) for name, axis in axes.items()},
                        np.arange(start + 1, stop + 1))

    def transposed(self, name: str, samples: int) -> bool:
        """Return whether a two-dimensional array has its samples along the second axis."""
        shape = self.fields[name]
        if len(shape) != 2 or min(shape) == 1:
            return False
        return shape[0] != samples and shape[1] == samples if self.axis is None else self.axis == 1

    def length(self, name: str) -> int:
        """Return the number of samples of an array: its length along `axis`, or along its longer axis."""
        shape = self.fields[name]
        if self.axis is None or len(shape) != 2 or min(shape) == 1:
            return max(shape, default=0)
        return shape[self.axis]

    def one_array(self, name: str | None, axis: int | None) -> Arrays:
        """Return a source whose fields are the columns of one array, named by their numbers from 1.

        name: name of the array; None keeps all arrays. axis: axis of the samples, or None to derive it from the shape.
        """
        if name is None:
            self.axis = axis
            return self
        shape = self.fields.get(name, ())
        if len(shape) != 2:
            have = ", ".join(other for other, size in self.fields.items() if len(size) == 2 and other)
            raise RecordingError(f"{self.path}: has no array '{name}' of rows and columns"
                                 + (f"; it has {have}" if have else ""))
        along = axis if axis is not None else int(shape[0] < shape[1])
        if shape[1 - along] > _MOST_COLUMNS:
            raise RecordingError(f"{self.path}: '{name or 'the array'}' is {shape[0]} x {shape[1]}: {shape[1 - along]} "
                                 "columns are not plausible for a log; check axis (--set log.axis=0 or 1)")
        found = Arrays(self.path, {str(i + 1): _Line(self.arrays[name], i, 1 - along if self.rows_last else along)
                                   for i in range(shape[1 - along])}, close=self._close)
        if along == 1:
            found.notes.append(f"'{name or 'the array'}' is {shape[0]} x {shape[1]}, one column per sample")
        return found

    def _axis(self, name: str, samples: int) -> int:
        shape = tuple(self.arrays[name].shape)
        if self.axis is not None and len(shape) == 2 and min(shape) > 1:
            along = 1 - self.axis if self.rows_last else self.axis
            if shape[along] != samples:
                raise RecordingError(f"{self.path}: '{name}' has {shape[along]} samples along axis {self.axis}, the "
                                     f"log has {samples}; check axis (--set log.axis=0 or 1)")
            return along
        axes = [axis for axis, size in enumerate(shape) if size == samples]
        if not axes:
            raise RecordingError(f"{self.path}: '{name}' is {' x '.join(map(str, shape))}, and none of these "
                                 f"lengths is the number of samples of the log, {samples}")
        return axes[-1] if self.rows_last else axes[0]


def _long_words(array: Any) -> list[Any]:
    """Return the texts of an HDF5 dataset, read one by one.

    A small file can refer to one long text many times, so reading them at once could exhaust memory.
    """
    found: list[Any] = []
    if math.prod(array.shape) <= _MOST_LONG_WORDS:
        for index in np.ndindex(*array.shape):
            found.append(array[index])
            if sum(len(item) for item in found if isinstance(item, str | bytes)) > _MOST_WORDS:
                return []
    return found


def _take(array: Any, axis: int, start: int, stop: int) -> Values:
    """Return the samples from start to stop of an array as (n,), or as (n, k) with all other axes joined."""
    index = tuple(slice(start, stop) if i == axis else slice(None) for i in range(len(array.shape)))
    part = np.moveaxis(np.asarray(array[index]), axis, 0)
    return part if part.ndim == 1 else part.reshape(stop - start, -1)


class _Line:
    """One column or row of a two-dimensional array, read in slices. axis: axis of the samples."""

    def __init__(self, array: Any, index: int, axis: int) -> None:
        self.array, self.index, self.axis = array, index, axis
        self.dtype, self.shape = array.dtype, (array.shape[axis],)

    def __getitem__(self, index: Any) -> Any:
        rows = index[0] if isinstance(index, tuple) and index else slice(None) if index == () else index
        return self.array[(rows, self.index) if self.axis == 0 else (self.index, rows)]


def _expanded(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return record arrays as one array per field, named name.field."""
    found: dict[str, Any] = {}
    for name, array in arrays.items():
        if array.dtype.names:
            found.update({f"{name}.{part}" if name else part: array[part] for part in array.dtype.names})
        else:
            found[name] = array
    return found


def open_npz(path: Path) -> Arrays:
    """Open an NPZ archive. Uncompressed arrays stay on disk; compressed ones are unpacked up to a size limit."""
    arrays, objects = dict[str, Any](), list[str]()
    try:
        with open_file(path) as file, zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            if not members or not all(member.filename.endswith(".npy") for member in members):
                raise RecordingError(f"{path}: is a zip archive or a spreadsheet, not arrays of numpy (npz)", "unpack "
                                     "it and give the log inside, or save the sheet as CSV", code="unknown-format")
            outside = next((member.filename for member in members if _leads_outside(member.filename)), None)
            if outside is not None:
                raise RecordingError(f"{path}: has a member '{outside[:80]}', which leads outside of the archive",
                                     "write the archive again with numpy.savez", code="member-outside")
            measure = Measure(path)
            whole = np.memmap(file, np.uint8, "r")
            for member in members:
                array = parsed(partial(_member, path, archive, member, measure, whole))
                name = member.filename.removesuffix(".npy")
                if array is None:
                    objects.append(name)
                else:
                    arrays[name] = array
    except (zipfile.BadZipFile, zlib.error, ValueError, TypeError, EOFError, OSError) as problem:
        raise unreadable(path, "npz archive", problem) from None
    found = Arrays(path, _expanded(arrays))
    if objects:
        found.unread = (f"arrays of Python objects are not read: {', '.join(objects)[:200]}; save them as numbers, for "
                        f"example numpy.array({objects[0][:80]}.tolist(), dtype=float)")
        found.notes.append(found.unread)
    return found


def _leads_outside(name: str) -> bool:
    return name.startswith(("/", "\\")) or ":" in name or ".." in name.replace("\\", "/").split("/")


def _member(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo, measure: Measure,
            whole: NDArray[np.uint8]) -> Any:
    """Return the array of one member of an archive; None for Python objects, which are not read.

    whole: the bytes of the archive on disk, of which an uncompressed member is a part.
    """
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = header(file)
        if dtype.hasobject:
            return None
        size = math.prod(shape) * dtype.itemsize
        order: Literal["C", "F"] = "F" if fortran else "C"
        if min(shape, default=0) < 0:
            raise ValueError(f"the array '{member.filename}' in the archive has a negative dimension")
        if member.compress_type == zipfile.ZIP_STORED and shape and size:
            return np.ndarray(shape, dtype, whole, _data_offset(whole, member) + file.tell(), order=order)
        check_size(path, size)
        data = bytearray()
        while len(data) < size:
            part = file.read(min(_BYTES_AT_ONCE, size - len(data)))
            if not part:
                raise EOFError(f"the array '{member.filename}' in the archive is cut off")
            measure.add(len(part))
            data += part
        return np.ndarray(shape, dtype, data, order=order)


def _data_offset(whole: NDArray[np.uint8], member: zipfile.ZipInfo) -> int:
    """Return the offset of a stored member's bytes, after its local header of variable length."""
    name, extra = np.frombuffer(whole[member.header_offset + 26:][:4], dtype="<u2")
    return member.header_offset + 30 + int(name) + int(extra)


def open_npy(path: Path, axis: int | None = None) -> Arrays:
    """Open an NPY file: one array with columns named by number or by field. axis: axis of the samples."""
    try:
        array = parsed(lambda: np.load(check_file(path), mmap_mode="r", allow_pickle=False))
    except ValueError as problem:
        if "Python objects" not in str(problem):
            raise unreadable(path, "npy file", problem) from None
        raise RecordingError(f"{path}: holds Python objects, which are not read, because they could run a program",
                             "save the arrays with numpy.savez(FILE, time=..., position=..., torque=...)") from None
    except (EOFError, OSError) as problem:
        raise unreadable(path, "npy file", problem) from None
    if array.dtype.names:
        return Arrays(path, _expanded({"": array}))
    if array.ndim != 2:
        raise RecordingError(f"{path}: holds an array of {array.ndim} dimensions, expected rows and columns")
    return Arrays(path, {"": array}).one_array("", axis)


def open_mat(path: Path) -> Arrays:
    """Open a MATLAB file (v4 to v7.2); fields of structs are named struct.field. Variables with objects are skipped."""
    from scipy.io import loadmat

    from dynid.recording.mat_structure import plain_variables
    with open_file(path) as file:
        is_old = 0 in file.read(4)  # v4 begins with a number below 5000, later versions with text
    names, others = (None, []) if is_old else plain_variables(path)
    try:
        with open_file(path) as file:
            content = loadmat(file, simplify_cells=True, appendmat=False, variable_names=names)
    except DynidError:
        raise
    except Exception as problem:  # scipy raises many kinds of exceptions on damaged files
        raise unreadable(path, "MATLAB file", problem) from None
    arrays: dict[str, Any] = {}

    def collect(prefix: str, value: Any) -> None:
        if isinstance(value, dict):
            for name, inner in value.items():
                if not name.startswith("__"):
                    collect(f"{prefix}.{name}" if prefix else name, inner)
        else:
            array = np.asarray(value)
            if array.dtype.kind in "fiub" or (array.dtype.kind in "UO" and array.ndim <= 1):
                arrays[prefix] = array

    collect("", content)
    found = Arrays(path, arrays)
    if others:
        found.unread = f"variables with objects or functions of MATLAB are not read: {', '.join(others)[:200]}"
        found.notes.append(found.unread)
    return found


class _CompoundField:
    """One field of a compound HDF5 dataset, read in slices."""

    def __init__(self, dataset: Any, name: str) -> None:
        self.dataset, self.name = dataset, name
        kind = dataset.dtype[name]
        self.dtype = kind.base
        self.shape = (*dataset.shape, *kind.shape)

    def __getitem__(self, index: Any) -> Any:
        rows, *rest = index if isinstance(index, tuple) and index else (index,)
        values = self.dataset.fields(self.name)[rows]
        return values[(slice(None), *rest)] if rest else values


def open_hdf5(path: Path) -> Arrays:
    """Open an HDF5 or MATLAB 7.3 file. Datasets are named group/dataset, in MATLAB files struct.field."""
    from dynid.recording.mat_structure import Hdf5Dataset, datasets_by_path
    h5py = need("h5py", "HDF5 and MATLAB 7.3 files", path)
    try:
        file = h5py.File(check_file(path), "r")
    except OSError as problem:
        raise unreadable(path, "HDF5 file", problem) from None
    with open_file(path) as raw:
        matlab = raw.read(6) == b"MATLAB"
    arrays: dict[str, Any] = {}
    try:
        for name, found in datasets_by_path(h5py, file, path).items():
            if name.startswith("#") or found.shape is None:
                continue
            item = Hdf5Dataset(h5py, found, name, path)
            name = name.replace("/", ".") if matlab else name
            if item.dtype.names:
                arrays.update({f"{name}.{part}": _CompoundField(item, part) for part in item.dtype.names})
            elif not (matlab and item.dtype.kind in "OSU"):  # MATLAB cells are references, not data
                arrays[name] = item
    except BaseException:
        file.close()
        raise
    return Arrays(path, arrays, rows_last=matlab, close=file.close)
