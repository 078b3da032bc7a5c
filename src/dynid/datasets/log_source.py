"""One log of a dataset, its files and mapping, and the facts from reading it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from dynid.floating.whole_body import FloatingRules, whole_body_recording
from dynid.model import chosen as chosen_joints
from dynid.output_fields import output_fields
from dynid.recording import Recording
from dynid.recording.log_files import LogFile, content_hash
from dynid.recording.log_reading import read
from dynid.recording.mapping import Mapping as LogMapping
from dynid.recording.motor_side import add_motor_side
from dynid.recording.recording import DroppedRow
from dynid.robot import Robot

_PARTS_OF_PATH = 3  # last parts of a path that decide its place in the draw, so that moving the data changes nothing


@dataclass(frozen=True)
class LogSource:
    """One log of a dataset.

    Attributes:
        files: its file, or several that follow each other in time.
        mapping: how they are read.
        source: the name of the log in results and messages.
        has_both_sides: whether motor and link positions of flexible joints are both needed.
        flexible_joints: names of these joints; None for all of the robot's.
        rows_at_once: rows read at a time into temporary files, for logs larger than memory; None reads all at once.
        floating: choices of the equations of a robot with a free base.
        is_required: whether a log that cannot be used is an error. Otherwise it is left out and listed, as is usual
            for logs found in a folder.
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
        """Return the source of a log that was found in a folder and may turn out to be unusable."""
        return LogSource((file,), mapping or LogMapping(), file.source, is_required=False)

    @property
    def place(self) -> str:
        """Text that identifies files and mapping, by which a store recognises the log."""
        files = " + ".join(file.source for file in self.files)
        table = self.mapping.model_dump(mode="json", exclude_defaults=True)
        return files if not table else f"{files} {json.dumps(table, sort_keys=True)}"

    @property
    def draw(self) -> str:
        """Return a hash for selecting logs, independent of their order and location."""
        names = ("/".join(path.replace("\\", "/").split("/")[-_PARTS_OF_PATH:])
                 for path in (self.files[0].source, self.source))
        return hashlib.sha256("".join(names).encode()).hexdigest()

    def stamp(self) -> str:
        """Return size and time of the files, by which an unchanged log is recognised without reading it."""
        return "-".join(file.stamp() for file in self.files)

    def read(self, robot: Robot | None) -> Recording:
        """Return the recording that the log's files contain."""
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
    """Facts that reading a log gave: rows, duration, notes and rows that were dropped.

    Attributes:
        source: name of the log.
        role: "identification" or "validation".
        rows: samples that were read.
        seconds: duration.
        dropped: number of rows that could not be used.
        dropped_rows: the first of these.
        notes: sentences on what was assumed or looks wrong.
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
        """Return the facts on a log from plain data, as `to_dict` returns them."""
        return LogFacts(**{**table, "dropped_rows": tuple(DroppedRow(**one) for one in table["dropped_rows"]),
                           "notes": tuple(table["notes"]), "signals": tuple(table["signals"])})

    @property
    def sentence(self) -> str:
        """Return the dropped rows as a sentence; empty if there are none."""
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

