"""Structure of MATLAB and HDF5 files, checked before scipy or h5py reads them.

MATLAB v5: scipy reads nested arrays by recursion, and allocates the declared size, so a malicious file could end the
process. MATLAB objects and functions contain no signals, so these variables are skipped.

The layout is that of "MAT-File Format" (MathWorks): elements of a tag (type, bytes) and data, padded to eight bytes.

HDF5 and MATLAB 7.3: the library follows external links, raw data in other files and virtual datasets without asking,
and unpacks a chunk to any size. Logs need none of this, so such files are refused.
"""

from __future__ import annotations

import math
import struct
import zlib
from pathlib import Path
from typing import IO, Any

from dynid.errors import RecordingError
from dynid.files import open_file
from dynid.recording.unpacking import Measure, check_size

_MOST_OBJECTS = 10_000  # groups and datasets of one file
MAX_GROUP_DEPTH = 32  # groups inside each other
_DEFLATE_RATIO = 1032  # largest ratio of unpacked to compressed bytes of deflate
_UNCHECKED_CHUNK = 64 << 20  # bytes: a chunk that cannot unpack to more is not measured in advance
_MAX_FILTER_OVERHEAD_BYTES = 1024  # bytes that other filters may add to a chunk
_MATRIX_ELEMENT, _COMPRESSED_ELEMENT = 14, 15  # element types
_CELL_CLASS, _STRUCT_CLASS, _OBJECT_CLASS, _SPARSE_CLASS, _FUNCTION_CLASS, _OPAQUE_CLASS = 1, 2, 3, 5, 16, 17
_NUMERIC_CLASSES = (4, *range(6, 16))  # characters and numbers
_MOST_ARRAYS = 100_000  # arrays of one file, including nested ones
MAX_ARRAY_DEPTH = 32  # nesting of arrays
_MOST_DIMENSIONS = 32
_MOST_NAMES = 1 << 20  # bytes of names
_BYTES_AT_ONCE = 1 << 16


def datasets_by_path(h5py: Any, file: Any, path: Path) -> dict[str, Any]:
    """Return the datasets of an open file by path, sorted and without repetition. Refuses data in another file."""
    found: dict[str, Any] = {}
    seen, todo = {file.id}, [("", file, 0)]
    while todo:
        prefix, item, depth = todo.pop()
        if isinstance(item, h5py.Dataset):
            if item.external or item.is_virtual:
                raise elsewhere(path, prefix)
            found[prefix] = item
            continue
        if depth > MAX_GROUP_DEPTH or len(seen) + len(item) > _MOST_OBJECTS:
            raise RecordingError(f"{path}: has groups nested more than {MAX_GROUP_DEPTH} deep or contains more than "
                                 f"{_MOST_OBJECTS} objects, so it is not a log", code="nested-too-deeply")
        inner = []
        for key in item:
            name = f"{prefix}/{key}" if prefix else key
            link = item.get(key, getlink=True)
            if isinstance(link, h5py.ExternalLink):
                raise elsewhere(path, name)
            one = item.get(key) if isinstance(link, h5py.HardLink) else None  # soft links refer to listed objects
            if isinstance(one, h5py.Dataset | h5py.Group) and one.id not in seen:
                seen.add(one.id)
                inner.append((name, one, depth + 1))
        todo += reversed(inner)
    return found


def elsewhere(path: Path, name: str) -> RecordingError:
    """Return the error for a file of which a part is in another file."""
    return RecordingError(f"{path}: '{name[:80]}' refers to data in other files, which are not read",
                          "write all arrays into one file", code="data-outside")


class Hdf5Dataset:
    """A dataset that is read by slices; the unpacked size of its chunks is checked before the first one is read."""

    def __init__(self, h5py: Any, item: Any, name: str, path: Path) -> None:
        self._h5py, self._item, self._name, self._path = h5py, item, name, path
        self.shape, self.dtype = item.shape, item.dtype
        self._is_checked = False

    def __getitem__(self, index: Any) -> Any:
        return self._checked()[index]

    def fields(self, name: str) -> Any:
        """Return one field of a compound dataset, also read by slices."""
        return self._checked().fields(name)

    def _checked(self) -> Any:
        if not self._is_checked:
            _check_chunks(self._h5py, self._item, self._name, self._path)
            self._is_checked = True
        return self._item


def _check_chunks(h5py: Any, item: Any, name: str, path: Path) -> None:
    """Raise an error if a compressed chunk of a dataset unpacks to more bytes than a chunk has."""
    if item.chunks is None:
        return
    size = math.prod(item.chunks) * item.dtype.itemsize
    check_size(path, size)
    filters = item.id.get_create_plist()
    kinds = [filters.get_filter(k)[0] for k in range(filters.get_nfilters())]
    if kinds.count(h5py.h5z.FILTER_DEFLATE) > 1:
        raise RecordingError(f"{path}: '{name[:80]}' is compressed more than once, so it is not a log",
                             "write it with one compression, or none", code="compressed-twice")
    if h5py.h5z.FILTER_DEFLATE not in kinds:
        return
    for k in range(item.id.get_num_chunks()):
        chunk = item.id.get_chunk_info(k)
        if chunk.size * _DEFLATE_RATIO > max(_UNCHECKED_CHUNK, size) or chunk.size > 2 * size + 1024:
            if _unpacks_beyond(item.id.read_direct_chunk(chunk.chunk_offset)[1], size + _MAX_FILTER_OVERHEAD_BYTES):
                raise RecordingError(f"{path}: a chunk of '{name[:80]}' unpacks to more than the {size} bytes of a "
                                     "chunk, so the file is damaged", "write the arrays again", code="too-large")


def _unpacks_beyond(packed: bytes, size: int) -> bool:
    """Return whether compressed bytes unpack to more than `size` bytes."""
    inflate, total = zlib.decompressobj(), 0
    try:
        while packed and total <= size:
            total += len(inflate.decompress(packed, _BYTES_AT_ONCE))
            packed = inflate.unconsumed_tail
    except zlib.error:  # not compressed or damaged, which the library reports
        return False
    return total > size


def plain_variables(path: Path) -> tuple[list[str], list[str]]:
    """Return the names of the variables with only numbers, text, cells and structs, and the names of the others."""
    plain: list[str] = []
    others: list[str] = []
    measure = Measure(path)
    with open_file(path) as file:
        head = file.read(128)
        order = "<" if head[126:128] == b"IM" else ">"
        walk = _Walk(path, order)
        while tag := file.read(8):
            kind, size = struct.unpack(f"{order}2I", tag.ljust(8, b"\0"))
            begin = file.tell()
            if len(tag) < 8 or begin + size > path.stat().st_size:
                raise _damaged(path, "it is cut off")
            walk.stream = _Stream(file, size, measure if kind == _COMPRESSED_ELEMENT else None)
            if kind == _COMPRESSED_ELEMENT:
                kind, _ = walk.tag()
            if kind != _MATRIX_ELEMENT:
                raise _damaged(path, "a variable of the file is not an array")
            walk.has_objects = False
            name = walk.matrix(0)
            (others if walk.has_objects else plain).append(name)
            file.seek(begin + size)
    return plain, [name or "(without a name)" for name in others]


def _damaged(path: Path, why: str) -> RecordingError:
    return RecordingError(f"{path}: the MATLAB file is damaged or not a log, {why}",
                          "save the signals again as plain arrays: save -v7 log.mat t q tau", code="damaged-file")


class _Stream:
    """Bytes of one variable in order; compressed data are unpacked with a size limit."""

    def __init__(self, file: IO[bytes], size: int, measure: Measure | None) -> None:
        self._file, self._left, self._measure = file, size, measure
        self._inflate = zlib.decompressobj() if measure is not None else None
        self._ready = b""

    def read(self, size: int) -> bytes:
        """Return exactly `size` bytes; raise EOFError if there are fewer."""
        found = b""
        while len(found) < size:
            part = self._some(size - len(found))
            if not part:
                raise EOFError
            found += part
        return found

    def skip(self, size: int) -> None:
        """Skip `size` bytes."""
        if self._inflate is None:
            self._left -= size
            if self._left < -8:  # the last element may lack its padding
                raise EOFError
            self._file.seek(size, 1)
            return
        while size > 0:
            part = self._some(min(size, _BYTES_AT_ONCE))
            if not part:
                raise EOFError
            size -= len(part)

    def _some(self, size: int) -> bytes:
        """Return between one and `size` bytes; empty at the end of the data."""
        if self._inflate is None:
            part = self._file.read(min(size, max(self._left, 0)))
            self._left -= len(part)
            return part
        assert self._measure is not None
        while not self._ready and not self._inflate.eof:
            packed = self._inflate.unconsumed_tail
            if not packed:
                packed = self._file.read(min(_BYTES_AT_ONCE, self._left))
                self._left -= len(packed)
            self._ready = self._inflate.decompress(packed, _BYTES_AT_ONCE)  # empty input: returns the remaining output
            self._measure.add(len(self._ready))
            if not packed:
                break
        part, self._ready = self._ready[:size], self._ready[size:]
        return part


class _Walk:
    """Traversal of the arrays of a file, with a limit on their number."""

    def __init__(self, path: Path, order: str) -> None:
        self.path, self.order, self.count, self.has_objects = path, order, 0, False
        self.stream: _Stream

    def tag(self) -> tuple[int, int]:
        """Return type and number of bytes of the next element, which must not have the small format."""
        kind, size = struct.unpack(f"{self.order}2I", self.stream.read(8))
        return kind, size

    def element(self, most: int | None) -> bytes:
        """Return the data of the next element; most: largest allowed number of bytes, None to skip it."""
        kind, size = struct.unpack(f"{self.order}2I", tag := self.stream.read(8))
        if kind >> 16:  # small format: type and size in two halves, followed by the data
            return tag[4:4 + min(kind >> 16, 4)]
        padding = -size % 8
        if most is None:
            self.stream.skip(size + padding)
            return b""
        if size > most:
            raise _damaged(self.path, f"an array declares {size} bytes of names or dimensions")
        data = self.stream.read(size)
        if padding:
            self.stream.skip(padding)
        return data

    def matrix(self, depth: int) -> str:
        """Traverse an array whose tag was read, and return its name."""
        try:
            return self._matrix(depth)
        except (EOFError, struct.error, zlib.error):
            raise _damaged(self.path, "the file ends inside an array") from None

    def _matrix(self, depth: int) -> str:
        if depth > MAX_ARRAY_DEPTH:
            raise _damaged(self.path, f"arrays are nested more than {MAX_ARRAY_DEPTH} deep")
        flags = struct.unpack(f"{self.order}4I", self.stream.read(16))[2]
        kind, is_complex = flags & 0xFF, bool(flags >> 8 & 8)
        self._counted(1)
        if kind == _OPAQUE_CLASS:
            self.has_objects = True
            for _ in range(3):
                self.element(_MOST_NAMES)
            self._inner(depth)
            return ""
        data = self.element(4 * _MOST_DIMENSIONS)
        dimensions = struct.unpack(f"{self.order}{len(data) // 4}i", data[:len(data) // 4 * 4])
        name = self.element(_MOST_NAMES).decode("latin-1")
        if min(dimensions, default=0) < 0:
            raise _damaged(self.path, f"'{name[:40]}' has a negative dimension")
        self._content(kind, math.prod(dimensions), is_complex, depth)
        return name

    def _content(self, kind: int, size: int, is_complex: bool, depth: int) -> None:
        if kind in _NUMERIC_CLASSES or kind == _SPARSE_CLASS:
            for _ in range((2 if kind == _SPARSE_CLASS else 0) + 1 + is_complex):
                self.element(None)
        elif kind == _CELL_CLASS:
            self._counted(size)
            for _ in range(size):
                self._inner(depth)
        elif kind in (_STRUCT_CLASS, _OBJECT_CLASS):
            self.has_objects = self.has_objects or kind == _OBJECT_CLASS
            if kind == _OBJECT_CLASS:
                self.element(_MOST_NAMES)
            length = int.from_bytes(self.element(8)[:4], "little" if self.order == "<" else "big")
            names = self.element(_MOST_NAMES)
            fields = len(names) // length if length else 0
            self._counted(size * max(fields, 1))
            for _ in range(size * fields):
                self._inner(depth)
        elif kind == _FUNCTION_CLASS:
            self.has_objects = True
            self._inner(depth)
        else:
            raise _damaged(self.path, f"the file holds an array of the unknown class {kind}")

    def _inner(self, depth: int) -> None:
        kind, size = self.tag()
        if kind != _MATRIX_ELEMENT:
            raise _damaged(self.path, "a cell or field of the file is not an array")
        if size:
            self._matrix(depth + 1)

    def _counted(self, count: int) -> None:
        self.count += count
        if self.count > _MOST_ARRAYS:
            raise _damaged(self.path, f"the file declares more than {_MOST_ARRAYS} arrays")
