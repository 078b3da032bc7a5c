"""Contents of an HDF5 or MATLAB 7.3 file, provided that all data are in the file and unpack to their declared size.

The HDF5 library follows external links, raw data in other files and virtual datasets without asking, and unpacks a
chunk to any size. Logs need none of this, so such files are refused.
"""

from __future__ import annotations

import math
import zlib
from pathlib import Path
from typing import Any

from dynid.errors import RecordingError
from dynid.recording.unpacking import check_size

_MOST_OBJECTS = 10_000  # groups and datasets of one file
MAX_GROUP_DEPTH = 32  # groups inside each other
_DEFLATE_RATIO = 1032  # most bytes that one byte of deflate can stand for
_UNCHECKED_CHUNK = 64 << 20  # bytes that a chunk may unpack to at worst without being measured before
_MAX_FILTER_OVERHEAD_BYTES = 1024  # bytes that other filters may add to a chunk
_BYTES_AT_ONCE = 1 << 16


def datasets_of(h5py: Any, file: Any, path: Path) -> dict[str, Any]:
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
            one = item.get(key) if isinstance(link, h5py.HardLink) else None  # soft links name what is listed anyway
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
    """Refuse a chunk that unpacks to more than its size."""
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
    except zlib.error:  # not compressed, or damaged: the library finds out
        return False
    return total > size
