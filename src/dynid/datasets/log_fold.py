"""One log of a dataset: its files and mapping, its compressed regression, and the store of compressed logs.

    STORE/KEY/manifest.json     all logs: file, hash, rows, span, robot, date
    STORE/KEY/HASH.npz          the compressed log, by the hash of its content

KEY identifies the model, the mapping and the requested preparation. Files are written atomically and found by
content: two concurrent runs write the same files, and no log counts twice under two names.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import DynidError, RecordingError
from dynid.files import MAX_SAVED_BYTES, load_arrays, open_file, read_file, write_whole
from dynid.floating.whole_body import FloatingRules, whole_body_recording
from dynid.model import LinearModel
from dynid.model import chosen as chosen_joints
from dynid.output_fields import output_fields
from dynid.recording import Recording
from dynid.recording.log_files import LogFile, content_hash
from dynid.recording.log_reading import read
from dynid.recording.mapping import Mapping as LogMapping
from dynid.recording.measured import add_motor_side
from dynid.recording.recording import DroppedRow
from dynid.regression import Regression
from dynid.robot import Robot

MANIFEST = "manifest.json"
_PARTS_OF_PATH = 3  # last parts of a path that are hashed for the selection of logs, independent of the folder


@dataclass(frozen=True)
class ManifestEntry:
    """Entry of one log in a manifest.

    Attributes:
        source: name of the log, usually its path.
        sha256: hash of its bytes and its mapping.
        rows: samples read.
        start, stop: first and last time of the log's own clock, s.
        robot: name of the robot in a fleet.
        date: date in ISO 8601; empty if it is not known.
        motion: name of the commanded motion, if it is known.
        stamp: size and time of the file, which identify an unchanged file without reading.
        facts: rows, duration and notes from reading the log.
    """

    source: str
    sha256: str
    rows: int
    start: float
    stop: float
    robot: str = ""
    date: str = ""
    motion: str = ""
    stamp: str = ""
    facts: LogFacts | None = None

    @property
    def span(self) -> float:
        """Duration of the log, s."""
        return self.stop - self.start

    @output_fields(own_fields=True, without=("facts",), span_s=float)
    def to_dict(self) -> dict[str, Any]:
        """Return the entry without internal fields as plain data for JSON."""
        table = {name: value for name, value in asdict(self).items() if name != "facts"}
        return {**table, "span_s": self.span}

    def stored(self) -> dict[str, Any]:
        """Return the complete entry as plain data for a manifest file."""
        return asdict(self)

    @staticmethod
    def from_table(table: dict[str, Any]) -> ManifestEntry:
        """Return an entry from the data of a manifest file, see `stored`."""
        known = {name: table[name] for name in ManifestEntry.__dataclass_fields__ if name in table}
        facts = known.get("facts")
        return ManifestEntry(**{**known, "facts": None if facts is None else LogFacts.from_table(facts)})


@dataclass(frozen=True, eq=False)
class LogFold:
    """The compressed regression of one log.

    Attributes:
        entry: record of the log.
        regression: triangular factors of the log's equations.
        noise: matrix X_j' C_j X_j of each joint j, with its regressor columns X_j and the covariance C_j of its torque
            noise; None if it was not computed.
    """

    entry: ManifestEntry
    regression: Regression
    noise: tuple[Array, ...] | None = None

    def packed(self) -> bytes:
        """Return the compressed log as bytes, for transfer and storage."""
        raw = BytesIO()
        arrays = {f"noise{j}": matrix for j, matrix in enumerate(self.noise or ())}
        self.regression.write(raw, entry=np.array(json.dumps(self.entry.stored())), **arrays)
        return raw.getvalue()

    @staticmethod
    def load(path: Path | bytes, model: LinearModel) -> LogFold:
        """Return a compressed log from `packed` bytes or their file, for the model with which it was compressed."""
        named = "the data of a worker" if isinstance(path, bytes) else path
        try:
            arrays = load_arrays(path)
            entry = ManifestEntry.from_table(json.loads(str(arrays["entry"])))
        except (OSError, KeyError, ValueError, EOFError, IndexError, TypeError):
            raise RecordingError(f"{named} is not a file with the compressed regression of a log") from None
        regression = Regression.from_arrays(arrays, model, named)
        noise = tuple(arrays[f"noise{j}"] for j in range(regression.dof)) if "noise0" in arrays else None
        return LogFold(entry, regression, noise)

    def of_entry(self, entry: ManifestEntry) -> LogFold:
        """Return the compressed log with another record: the same data under another path, robot or date."""
        regression = replace(self.regression, sources=(entry.source,), blocks=tuple(
            replace(block, spans=tuple(replace(span, source=entry.source) for span in block.spans))
            for block in self.regression.blocks))
        return LogFold(entry, regression, self.noise)


def signature(*parts: Any) -> str:
    """Return a hash, 24 hexadecimal digits, of values that JSON can represent."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:24]


class FoldStore:
    """Store of compressed logs in a folder, for one model and preparation."""

    def __init__(self, folder: str | Path, key: str) -> None:
        self.folder = Path(folder) / key
        self.entries: dict[str, ManifestEntry] = {}
        self._read()

    def _read(self) -> None:
        """Add the entries of the manifest file to those of this run, which take precedence."""
        path = self.folder / MANIFEST
        try:
            table = json.loads(read_file(path, MAX_SAVED_BYTES))
            found = {place: ManifestEntry.from_table(one) for place, one in table["logs"].items()}
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise DynidError(f"{path} is damaged: it is not a manifest of compressed logs; remove {self.folder}, then "
                             "all logs are read again") from None
        self.entries = {**found, **self.entries}

    def known(self, log: LogSource) -> ManifestEntry | None:
        """Return the entry of a compressed log whose file has not changed since; None if there is none."""
        entry = self.entries.get(log.place)
        if entry is None or entry.stamp != log.stamp() or not self.path(entry.sha256).is_file():
            return None
        first = log.files[0]
        return replace(entry, source=log.source, robot=first.robot, date=first.date, motion=first.motion)

    def path(self, sha256: str) -> Path:
        """Return the path of a compressed log in the store."""
        return self.folder / f"{sha256[:32]}.npz"

    def load(self, entry: ManifestEntry, model: LinearModel) -> LogFold:
        """Return a compressed log from its file, which other runs may write at the same time.

        Raises:
            DynidError: The file is missing, cannot be opened or is damaged. A damaged file is removed.
        """
        path = self.path(entry.sha256)
        while True:
            try:
                with open_file(path) as file:
                    packed, read_file = file.read(), os.fstat(file.fileno())
            except OSError as problem:
                raise DynidError(f"the compressed log of {entry.source} cannot be read from {path}: "
                                 f"{problem.strerror}", "repeat the call, which reads that log again") from None
            try:
                return LogFold.load(packed, model).of_entry(entry)
            except RecordingError:
                if not _is_file(path, read_file):
                    continue  # another run has written the file again
            path.unlink(missing_ok=True)  # the next call compresses the log again
            raise DynidError(f"the compressed log of {entry.source} in {path} is damaged and was removed",
                             "repeat the call, which reads that log again")

    def read_bytes(self, entry: ManifestEntry) -> bytes:
        """Return a compressed log as bytes; empty if its file is missing."""
        try:
            return read_file(self.path(entry.sha256), MAX_SAVED_BYTES)
        except OSError:
            return b""

    def keep(self, place: str, entry: ManifestEntry, packed: bytes) -> None:
        """Write the compressed log of a source (`LogSource.place`) atomically."""
        with write_whole(self.path(entry.sha256), "wb") as file:
            file.write(packed)
        self.entries[place] = entry

    def write(self) -> None:
        """Write the manifest, merged with entries of concurrent runs."""
        self._read()
        content: Mapping[str, Any] = {"logs": {place: entry.stored() for place, entry in sorted(self.entries.items())}}
        with write_whole(self.folder / MANIFEST) as file:
            json.dump(content, file, indent=1)


def _is_file(path: Path, file: os.stat_result) -> bool:
    """Return whether the file at a path is still the given one, not replaced, changed or removed by another process."""
    try:
        now = path.stat()
    except OSError:
        return False
    return os.path.samestat(now, file) and (now.st_mtime_ns, now.st_size) == (file.st_mtime_ns, file.st_size)


@dataclass(frozen=True)
class LogSource:
    """Files of one log of a dataset, and options for reading them.

    Attributes:
        files: the file of the log, or several that follow each other in time.
        mapping: names and units of the columns.
        source: name of the log in results and messages.
        has_both_sides: whether motor and link positions of flexible joints are both needed.
        flexible_joints: names of flexible joints; None for all joints.
        rows_at_once: rows read at a time into temporary files, for logs larger than memory; None reads all at once.
        floating: options of the equations of a robot with a floating base.
        is_required: whether an unusable log is an error. Otherwise it is excluded and listed, as for logs of a folder.
    """

    files: tuple[LogFile, ...]
    mapping: LogMapping = field(default_factory=LogMapping)
    source: str = ""
    has_both_sides: bool = False
    flexible_joints: tuple[str, ...] | None = None
    rows_at_once: int | None = None
    is_required: bool = True
    floating: FloatingRules = field(default_factory=FloatingRules)

    @staticmethod
    def from_file(file: LogFile, mapping: LogMapping | None = None) -> LogSource:
        """Return the source of a log that was found in a folder. Such a log is excluded if it cannot be used."""
        return LogSource((file,), mapping or LogMapping(), file.source, is_required=False)

    @property
    def place(self) -> str:
        """Text that identifies files and mapping, by which a store recognises the log."""
        files = " + ".join(file.source for file in self.files)
        table = self.mapping.model_dump(mode="json", exclude_defaults=True)
        return files if not table else f"{files} {json.dumps(table, sort_keys=True)}"

    @property
    def draw(self) -> str:
        """Hash by which the logs kept in memory are selected, independent of their order and location."""
        names = ("/".join(path.replace("\\", "/").split("/")[-_PARTS_OF_PATH:])
                 for path in (self.files[0].source, self.source))
        return hashlib.sha256("".join(names).encode()).hexdigest()

    def stamp(self) -> str:
        """Return size and time of the files, by which an unchanged log is recognised without reading it."""
        return "-".join(file.stamp() for file in self.files)

    def read(self, robot: Robot | None) -> Recording:
        """Return the recording in the files of the log."""
        return self.read_hashed(robot, hashed=False)[0]

    def read_hashed(self, robot: Robot | None, *, hashed: bool = True) -> tuple[Recording, str]:
        """Return the recording, and the SHA-256 of the files' bytes together with the mapping."""
        with ExitStack() as stack:
            paths = [stack.enter_context(file.local()) for file in self.files]
            digest = "".join(content_hash(path) for path in paths) if hashed else ""
            recording = read(paths, self.mapping, robot, at_once=self.rows_at_once)
        recording = replace(recording, source=self.source or recording.source)
        if robot is not None and robot.has_free_base:
            recording = whole_body_recording(recording, robot, self.mapping, self.floating)
        if self.has_both_sides and robot is not None:
            recording = add_motor_side(recording, chosen_joints(robot, self.flexible_joints))
        if not hashed:
            return recording, ""
        digest += json.dumps(self.mapping.model_dump(mode="json"), sort_keys=True)
        return recording, hashlib.sha256(digest.encode()).hexdigest()


@dataclass(frozen=True)
class LogFacts:
    """Rows, duration, notes and dropped rows of a log that was read.

    Attributes:
        source: name of the log.
        role: "identification" or "validation".
        rows: samples that were read.
        seconds: duration, s.
        dropped: number of rows that could not be used.
        dropped_rows: the first of the dropped rows, with reasons.
        notes: sentences on assumptions and possible errors.
        signals: names of the signals in the log.
    """

    source: str
    role: str
    rows: int
    seconds: float
    dropped: int
    dropped_rows: tuple[DroppedRow, ...]
    notes: tuple[str, ...]
    signals: tuple[str, ...] = ()

    @staticmethod
    def from_recording(recording: Recording, role: str) -> LogFacts:
        return LogFacts(recording.source, role, len(recording), recording.duration, recording.dropped,
                        recording.dropped_rows, recording.notes, recording.signals)

    @staticmethod
    def from_table(table: Mapping[str, Any]) -> LogFacts:
        """Return the facts on a log from plain data, see `to_dict`."""
        return LogFacts(**{**table, "dropped_rows": tuple(DroppedRow(**one) for one in table["dropped_rows"]),
                           "notes": tuple(table["notes"]), "signals": tuple(table["signals"])})

    @property
    def sentence(self) -> str:
        """Sentence that states which rows were dropped, and why the first one was; empty if there are none."""
        if not self.dropped:
            return ""
        first, last = self.dropped_rows[0], self.dropped_rows[-1]
        where = f"row {first.row}" if self.dropped == 1 else f"{self.dropped} rows from {first.row} to " + (
            str(last.row) if self.dropped == len(self.dropped_rows) else "beyond")
        return (f"{self.source}: ignored {where}, of {self.rows + self.dropped}; "
                f"{'it' if self.dropped == 1 else 'the first'}: {first.why}")

    @output_fields(own_fields=True)
    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "dropped_rows": [asdict(one) for one in self.dropped_rows], "notes": list(self.notes),
                "signals": list(self.signals)}
