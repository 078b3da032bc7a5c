"""Location of logs: files, folders, patterns and object stores, with stamps that show whether a file has changed."""

from __future__ import annotations

import glob
import hashlib
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from dynid.errors import NotPossibleError, RecordingError
from dynid.files import open_file
from dynid.recording.lerobot import is_dataset

SUFFIXES = (".csv", ".tsv", ".txt", ".dat", ".jsonl", ".parquet", ".npz", ".npy", ".h5", ".hdf5", ".mat", ".bag",
            ".mcap")
_DATE_IN_NAME = re.compile(r"(?<!\d)(\d{4})-?(\d{2})-?(\d{2})(?:[T_ ](\d{2})[-:]?(\d{2})(?:[-:]?(\d{2}))?)?(?!\d)")
_BYTES_AT_ONCE = 1 << 20
_WILDCARD = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class LogFile:
    """One log file, in a folder or in an object store.

    Attributes:
        source: a path or an address such as s3://bucket/log.parquet.
        robot, date, motion: names of the robot and of its motion, and date of the log (ISO 8601), from the path of the
            log or from a fleet file; empty if unknown.
    """

    source: str
    robot: str = ""
    date: str = ""
    motion: str = ""

    @property
    def remote(self) -> bool:
        return "://" in self.source

    def stamp(self) -> str:
        """Return a text that changes with the file: its size and date, or their equivalent in an object store."""
        if self.remote:
            system, path = _system(self.source)
            with _sentences(f"there is no log {self.source} that can be read"):
                return f"store-{system.ukey(path)}"
        try:
            parts = [path.stat() for path in _files(Path(self.source))]
        except OSError as problem:
            raise RecordingError(f"there is no log {self.source} that can be read: {problem.strerror}",
                                 code="no-such-file") from None
        return "-".join(f"{one.st_size}.{one.st_mtime_ns}" for one in parts)

    @contextmanager
    def local(self) -> Iterator[Path]:
        """Yield a path to read the log from; for an object store, that of a temporary copy."""
        if not self.remote:
            yield Path(self.source)
            return
        system, path = _system(self.source)
        with tempfile.TemporaryDirectory(prefix="dynid-log-") as folder:
            copy = Path(folder) / Path(path).name
            with _sentences(f"{self.source} cannot be fetched"):
                system.get_file(path, str(copy))
            yield copy


def content_hash(path: Path) -> str:
    """Return the SHA-256 of a log's bytes; for a folder, of all its files in order."""
    digest = hashlib.sha256()
    try:
        for one in _files(path):
            with open_file(one) as file:
                while chunk := file.read(_BYTES_AT_ONCE):
                    digest.update(chunk)
    except OSError as problem:
        raise RecordingError(f"there is no log {path} that can be read: {problem.strerror}",
                             code="no-such-file") from None
    return digest.hexdigest()


def find_logs(sources: str | Path | Sequence[str | Path]) -> tuple[LogFile, ...]:
    """Return the logs of some sources, sorted by name, without repetition.

    A source is a file; a folder, with all files below it that have a log's extension, such as a Parquet dataset; a
    pattern ("logs/2026-*/**/*.csv"); or an address of an object store if fsspec is installed. Folders named robot=NAME,
    date=DATE and motion=NAME apply to the logs below; a date may also be in a file name.
    """
    given = [sources] if isinstance(sources, str | Path) else list(sources)
    found: dict[str, LogFile] = {}
    for source in given:
        text = str(source)
        names = _remote(text) if "://" in text else _local(text)
        if not names:
            raise RecordingError(f"there is no log in {text}; logs end in {', '.join(SUFFIXES)}")
        for name in names:
            # Absolute, so that a log is recognised from any working folder.
            place = name if "://" in name else os.path.abspath(name)
            found.setdefault(place, _described(place))
    return tuple(found.values())


def _described(name: str) -> LogFile:
    keys = dict(part.split("=", 1) for part in re.split(r"[/\\]", name) if part.count("=") == 1)
    dated = _DATE_IN_NAME.search(keys.get("date", "")) or _DATE_IN_NAME.search(Path(name).name)
    date = ""
    if dated:
        year, month, day, hour, minute, second = dated.groups()
        if 1 <= int(month) <= 12 and 1 <= int(day) <= 31:
            date = f"{year}-{month}-{day}" + (f"T{hour}:{minute}:{second or '00'}" if hour else "")
    return LogFile(name, keys.get("robot", ""), date, keys.get("motion", ""))


def _local(text: str) -> list[str]:
    if os.path.isdir(text):
        if _is_bag(Path(text)) or is_dataset(Path(text)):
            return [text]
        return sorted(str(path) for path in Path(text).rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())
    if not os.path.exists(text) and _WILDCARD.search(text):
        return sorted(name for name in glob.glob(text, recursive=True) if os.path.isfile(name) or _is_bag(Path(name)))
    return [text]


def _remote(text: str) -> list[str]:
    system, path = _system(text)
    scheme = text.split("://", 1)[0]
    with _sentences(f"{text} cannot be listed"):
        if _WILDCARD.search(path):
            names = system.glob(path)
        elif system.isdir(path):
            names = system.find(path)
        else:
            return [text]
    return sorted(f"{scheme}://{name}" for name in names if Path(str(name)).suffix.lower() in SUFFIXES)


@contextmanager
def _sentences(what: str) -> Iterator[None]:
    """Convert any exception of an object store's package to a RecordingError."""
    try:
        yield
    except Exception as problem:
        raise RecordingError(f"{what}: {type(problem).__name__}: {problem}") from None


def _system(text: str) -> tuple[Any, str]:
    """Return the file system of an address, and the path in it."""
    try:
        import fsspec
    except ModuleNotFoundError:
        raise NotPossibleError(f"{text} is in an object store, which needs fsspec; pip install fsspec and its package "
                               "for that store") from None
    try:
        system, path = fsspec.core.url_to_fs(text)
    except (ImportError, ValueError, OSError) as problem:
        raise NotPossibleError(f"{text} cannot be reached: {problem}") from None
    return system, path


def _is_bag(path: Path) -> bool:
    return (path / "metadata.yaml").is_file()


def _files(path: Path) -> list[Path]:
    return sorted(one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path]


def short_name(source: str, among: Iterable[str] = ()) -> str:
    """Return the last part of a log's path, with the folders that distinguish it from the others."""
    others = [other for other in dict.fromkeys(among) if other != source]
    longest = max(len(PurePath(part).parts) for part in source.split(", "))
    for count in range(1, longest + 1):
        name = _tail(source, count)
        if name and all(name != _tail(other, count) for other in others):
            return name
    return source


def short_names(sources: Iterable[str]) -> dict[str, str]:
    """Return the names of `short_name` of many logs by their sources, in linear time."""
    remaining, found = list(dict.fromkeys(sources)), dict[str, str]()
    longest = max((len(PurePath(part).parts) for source in remaining for part in source.split(", ")), default=0)
    for count in range(1, longest + 1):
        tails = {source: _tail(source, count) for source in remaining}
        counts = Counter(tails.values())
        found.update({source: tail for source, tail in tails.items() if tail and counts[tail] == 1})
        remaining = [source for source in remaining if source not in found]
    return {**found, **{source: source for source in remaining}}


def _tail(source: str, count: int) -> str:
    """Return the last `count` parts of each path in a source, which may consist of several files."""
    return ", ".join(str(PurePath(*PurePath(part).parts[-count:])) for part in source.split(", "))


def distinct(sources: Sequence[str]) -> tuple[str, ...]:
    """Return names without repetition: the second log of a name is called 'name (2)'."""
    counts: Counter[str] = Counter()
    found = []
    for source in sources:
        counts[source] += 1
        found.append(source if counts[source] == 1 else f"{source} ({counts[source]})")
    return tuple(found)
