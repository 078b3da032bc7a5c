"""Limit on the unpacked size of a compressed log, checked while it is unpacked.

One limit applies to all formats, on the command line and in the studio. It counts eight bytes per number. Text takes
about four times as much space, so a quarter of its bytes count.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from dynid.errors import RecordingError
from dynid.files import open_file

LIMIT_VARIABLE = "DYNID_MAX_UNPACKED_MB"  # environment variable that replaces both limits below
FREE_BYTES = 256 << 20  # unpacked size allowed for every file: half an hour of seven joints at 1 kHz
BYTES_PER_BYTE = 16  # ratio of unpacked to packed size allowed for larger files; real logs have two to six
_TEXT_BYTES_PER_NUMBER_BYTE = 4
_BYTES_AT_ONCE = 1 << 16  # bytes unpacked at once

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_COMPRESSED_TEXT: dict[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}


def unpacked_limit(packed: int) -> int:
    """Return the bytes that a file of `packed` bytes may unpack to."""
    given = os.environ.get(LIMIT_VARIABLE)
    if not given:
        return max(FREE_BYTES, BYTES_PER_BYTE * packed)
    if not given.strip().isdecimal() or len(given) > 12 or not int(given):
        raise RecordingError(f"{LIMIT_VARIABLE} is '{given[:40]}', expected a whole number of megabytes",
                             f"for example {LIMIT_VARIABLE}=2000", code="bad-memory-limit")
    return max(int(given) << 20, packed)


def check_size(path: Path, declared: int) -> None:
    """Refuse a file that declares too many bytes of numbers, before they are read."""
    packed = path.stat().st_size if path.is_file() else 0
    if declared > unpacked_limit(packed):
        raise RecordingError(f"{path}: declares {declared / 1000000.0:.4g} MB of numbers in a file "
                             f"of {packed / 1000000.0:.4g} MB, so it is damaged or compressed too "
                             "strongly", _advice(declared), code="too-large")


def _advice(size: int) -> str:
    return ("write the log without compression or in parts; if the size is right, set the environment variable "
            f"{LIMIT_VARIABLE}={-(-2 * size // (1 << 20))}")


class Measure:
    """Counter of unpacked bytes; raises an error when they exceed the limit.

    Attributes:
        path: the file, for the message.
        limit: largest number of bytes.
        total: bytes unpacked so far.
    """

    def __init__(self, path: Path, limit: int | None = None) -> None:
        self.path = path
        packed = path.stat().st_size if path.is_file() else sum(
            one.stat().st_size for one in path.iterdir() if one.is_file())
        self.limit = unpacked_limit(packed) if limit is None else limit
        self.total = 0

    def add(self, size: int) -> None:
        """Add to the number of unpacked bytes; raise an error beyond the limit."""
        self.total += size
        if self.total > self.limit:
            raise RecordingError(f"{self.path}: unpacks to more than {self.limit / 1e6:.4g} MB, more than a log of its "
                                 "size has, so reading was stopped", _advice(self.limit), code="too-large")


def unpacked(decompressor: Any, packed: bytes, measure: Measure) -> bytes:
    """Return the unpacked bytes of a bz2, lz4 or zstd decompressor, with the size checked step by step."""
    parts = []
    while not decompressor.eof:
        part = decompressor.decompress(packed, max_length=_BYTES_AT_ONCE)
        measure.add(len(part))
        parts.append(part)
        packed = b""
        if not part and decompressor.needs_input:
            raise EOFError("the compressed data are cut off")
    return b"".join(parts)


class _Measured(io.RawIOBase):
    """A stream of unpacked bytes that are counted as they are read."""

    def __init__(self, stream: IO[bytes], measure: Measure, packed: IO[bytes] | None) -> None:
        self._stream, self._measure, self._packed = stream, measure, packed

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        found = self._stream.read(len(buffer))
        self._measure.add(len(found))
        buffer[:len(found)] = found
        return len(found)

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
            if self._packed is not None:
                self._packed.close()
        super().close()


def measured(stream: IO[bytes], measure: Measure, packed: IO[bytes] | None = None) -> IO[bytes]:
    """Return a stream of unpacked bytes that raises an error if they are too many.

    packed: the file that is unpacked, which is closed with the stream.
    """
    return io.BufferedReader(_Measured(stream, measure, packed), 1 << 20)


def is_compressed_text(path: Path) -> bool:
    """Return whether a file was written by gzip, bzip2 or xz. Refuses zstd, and a file that unpacks to too much, which
    is measured by unpacking it once."""
    with open_file(path) as file:
        start = file.read(8)
    if start.startswith(_ZSTD_MAGIC):
        raise RecordingError(f"{path}: is compressed by zstd, which is not read for text tables",
                             "unpack it first: zstd -d FILE", code="compressed-text")
    if not start.startswith(tuple(_COMPRESSED_TEXT)):
        return False
    facts = path.stat()
    _measure_text(path, facts.st_size, facts.st_mtime_ns, unpacked_limit(facts.st_size))
    return True


@lru_cache(maxsize=64)
def _measure_text(path: Path, size: int, changed: int, limit: int) -> None:
    """Raise an error if a compressed text table is too large, by unpacking it once without storing it.

    Size, time of change and limit are arguments, so that the result of an unchanged file is kept.
    """
    with open_compressed_text(path) as file:
        while file.read(1 << 20):
            pass


def open_compressed_text(path: Path) -> IO[bytes]:
    """Return the unpacked bytes of a text table, measured as they are read."""
    file = open_file(path)
    start = file.read(8)
    file.seek(0)
    opener = next(opener for magic, opener in _COMPRESSED_TEXT.items() if start.startswith(magic))
    measure = Measure(path)
    measure.limit *= _TEXT_BYTES_PER_NUMBER_BYTE
    return measured(opener(file), measure, file)
