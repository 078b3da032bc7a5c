"""Types of arrays in signatures, and arrays in temporary files for data larger than memory."""

from __future__ import annotations

import math
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import IO, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Result = TypeVar("Result")

_MOST_READING_ATTEMPTS = 5  # attempts to read a file if other threads disturb the parser, see `parsed`


def on_disk(shape: int | tuple[int, ...], dtype: Any = np.float64) -> NDArray[Any]:
    """Return a new array of zeros in a temporary file, which is deleted with the last array that uses it."""
    shape = (shape,) if isinstance(shape, int) else shape
    if 0 in shape:
        return np.zeros(shape, dtype)
    with tempfile.TemporaryFile(prefix="dynid-") as file:
        return np.memmap(file, dtype=dtype, mode="w+", shape=shape)


def true_ranges(mask: Bools) -> Ints:
    """Return the half-open row ranges (k, 2) in which a mask (samples,) is true."""
    return np.flatnonzero(np.diff(mask.astype(np.int8), prepend=0, append=0)).reshape(-1, 2)


class Spool:
    """An array that grows in a temporary file, part by part along its first axis."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="dynid-")
        self._rows, self._rest, self._dtype = 0, (), np.dtype(np.float64)

    def append(self, part: NDArray[Any]) -> None:
        """Append rows (k, ...); all appended arrays have the same columns and type."""
        self._rows, self._rest, self._dtype = self._rows + len(part), part.shape[1:], part.dtype
        self._file.write(np.ascontiguousarray(part).tobytes())

    def array(self) -> NDArray[Any]:
        """Return all rows, mapped from the file; no rows can be added afterwards."""
        self._file.flush()
        shape = (self._rows, *self._rest)
        with self._file:
            return np.memmap(self._file, self._dtype, "r+", shape=shape) if self._rows else np.zeros(shape, self._dtype)


def lies_on_disk(array: NDArray[Any]) -> bool:
    """Return whether an array, or the array that it is a view of, is mapped from a file."""
    part: object = array
    while isinstance(part, np.ndarray):
        if isinstance(part, np.memmap):
            return True
        part = part.base
    return False


def like(array: NDArray[Any], shape: int | tuple[int, ...] | None = None, dtype: Any = None) -> NDArray[Any]:
    """Return a new array of zeros, in a temporary file if the given array is in one, otherwise in memory."""
    shape, dtype = array.shape if shape is None else shape, array.dtype if dtype is None else dtype
    return on_disk(shape, dtype) if lies_on_disk(array) else np.zeros(shape, dtype)


def first_not_finite(array: NDArray[Any], at_once: int = 262_144) -> tuple[int, ...] | None:
    """Return the index of the first entry that is not finite, or None; `at_once` rows are checked at a time."""
    for start in range(0, len(array), at_once):
        part = array[start:start + at_once]
        if math.isfinite(np.vdot(part, part)):  # a non-finite number makes the product non-finite
            continue
        wrong = np.argwhere(~np.isfinite(part))
        if len(wrong):
            row, *rest = wrong[0]
            return int(row) + start, *map(int, rest)
    return None


def save_arrays(file: IO[bytes], arrays: Mapping[str, Any]) -> None:
    """Write arrays to an open .npz file with the fastest compression: numpy's default takes twice as long for little
    gain."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


def parsed(read: Callable[[], Result]) -> Result:
    """Return the result of a function that reads arrays from the start of a file; a failed call is repeated.

    numpy parses the headers of arrays with `ast.literal_eval`, which in Python 3.11 raises SystemError at random if
    several threads call `literal_eval` at once (python/cpython issue 106905).
    """
    for _ in range(_MOST_READING_ATTEMPTS - 1):
        with suppress(SystemError):
            return read()
    return read()
