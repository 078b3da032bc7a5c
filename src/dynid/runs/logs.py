"""The logs of a run: which files each is, how it is read, and what reading it gave."""

from __future__ import annotations

import difflib
from collections.abc import Mapping as Dictionary
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from dynid.errors import RecordingError
from dynid.recording import Recording
from dynid.recording.layout import shared_file
from dynid.recording.mapping import Mapping
from dynid.recording.names import distinct
from dynid.recording.presets import overlaid
from dynid.recording.read import window_of
from dynid.recording.recording import DroppedRow


class LogSettings(BaseModel):
    """One log of a run, a [[logs]] or [[validate_on]] table.

    file: its file or folder, or a list of files that follow each other in time. name: what it is called in results,
    instead of its path. payload: of the run's [payloads], the one the robot carried; such a log says what the payload
    is, and is no part of the robot's own identification. inherit: whether what it leaves out is as [log] says. All
    other keys are those of [log], for this log alone.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    file: str | tuple[str, ...]
    name: str | None = None
    payload: str | None = None
    inherit: bool = True

    @model_validator(mode="after")
    def _known(self) -> Self:
        if not self.files or (self.name is not None and not self.name.strip()):
            raise ValueError("a log needs a file, and a name that is not empty where it has one")
        for key in self.own:
            if key not in Mapping.model_fields:
                known = [*type(self).model_fields, *Mapping.model_fields]
                close = difflib.get_close_matches(key, known, n=1)
                raise ValueError(f"a log has no setting '{key}'"
                                 + (f"; did you mean '{close[0]}'?" if close else f"; it knows {', '.join(known)}"))
        return self

    @property
    def files(self) -> tuple[str, ...]:
        return (self.file,) if isinstance(self.file, str) else self.file

    @property
    def own(self) -> dict[str, Any]:
        """The settings of [log] that this log has for itself."""
        return dict(self.model_extra or {})

    @property
    def label(self) -> str:
        """Its name, or its files."""
        return self.name or ", ".join(map(str, self.files))

    def mapping(self, common: Dictionary[str, Any]) -> Mapping:
        """How this log is read: its own settings over those of [log]."""
        own = self.own
        table = dict(common) if self.inherit else {}
        if own.get("side") == "joint" and own.get("torque_side", "joint") == "joint":
            table = {key: value for key, value in table.items() if key not in ("torque_side", "ratio", "coupling")}
        return Mapping.of(overlaid(table, own), f"log {self.label}" if own else "[log]")


LogEntry = str | tuple[str, ...] | LogSettings


def log_entry(value: Any, number: int) -> LogEntry:
    """An entry of `logs` as it stands in a run file, checked. number: counted from 1, for messages."""
    if isinstance(value, Dictionary):
        try:
            return LogSettings(**value)
        except (ValidationError, TypeError) as problem:
            raise ValueError(f"log {number}: {_complaint(problem)}") from None
    if isinstance(value, list | tuple):
        if not value or not all(isinstance(part, str) for part in value):
            raise ValueError(f"log {number}: the parts of one log are a list of file names")
        return tuple(value)
    if not isinstance(value, str | LogSettings):
        raise ValueError(f"log {number} must be a file, a list of files that follow each other, or a table with file = "
                         f"...; got {str(value)[:80]}")
    return value


def _complaint(problem: ValidationError | TypeError) -> str:
    if isinstance(problem, TypeError):
        return "its keys must be words"
    first = problem.errors(include_url=False)[0]
    if first["type"] == "missing":
        return "its table needs file = \"...\""
    text = str(first["msg"]).removeprefix("Value error, ")
    return text if first["type"] == "value_error" else f"'{first['loc'][0]}' is wrong: {text[0].lower()}{text[1:]}"


def log_settings(log: LogEntry) -> LogSettings:
    """An entry of `logs` as a table, whatever way it was written."""
    return log if isinstance(log, LogSettings) else LogSettings(file=log)


def labels(logs: Sequence[LogSettings], common: Dictionary[str, Any]) -> tuple[str, ...]:
    """What each log is called: its name or its files, with its window where the same file is there twice."""
    names = [log.label for log in logs]
    windows = [window_of(log.mapping(common)) for log in logs]
    return distinct([f"{name} {window}" if window and names.count(name) > 1 else name
                     for name, window in zip(names, windows, strict=True)])


def check_files(logs: Sequence[LogSettings], common: Dictionary[str, Any]) -> None:
    """Raise where two logs would read a signal from one and the same other file: one of them is paired wrongly."""
    read: dict[tuple[str, Path], LogSettings] = {}
    for log in logs:
        for signal, file in shared_file([Path(path) for path in log.files], log.mapping(common)):
            other = read.setdefault((signal, file), log)
            if other.files != log.files:
                raise RecordingError(
                    f"the {signal} of {other.label} and of {log.label} would both be read from {file}; give each log "
                    f"its own file, with {{stem}} in its name or by [[logs]] tables with {signal} = {{file = \"...\"}}")


@dataclass(frozen=True)
class LogFacts:
    """What reading a log gave. role: "identification" or "validation". signals: it holds. dropped: how many rows could
    not be used, and dropped_rows: the first of them."""

    source: str
    role: str
    rows: int
    seconds: float
    dropped: int
    dropped_rows: tuple[DroppedRow, ...]
    notes: tuple[str, ...]
    signals: tuple[str, ...] = ()

    @staticmethod
    def of(recording: Recording, role: str) -> LogFacts:
        return LogFacts(recording.source, role, len(recording), recording.duration, recording.dropped,
                        recording.dropped_rows, recording.notes, recording.signals)

    @property
    def sentence(self) -> str:
        """What was left out, empty where nothing was."""
        if not self.dropped:
            return ""
        first, last = self.dropped_rows[0], self.dropped_rows[-1]
        where = f"row {first.row}" if self.dropped == 1 else f"{self.dropped} rows from {first.row} to " + (
            str(last.row) if self.dropped == len(self.dropped_rows) else "beyond")
        return (f"{self.source}: left out {where}, of {self.rows + self.dropped}; "
                f"{'it' if self.dropped == 1 else 'the first'}: {first.why}")

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "dropped_rows": [asdict(one) for one in self.dropped_rows], "notes": list(self.notes),
                "signals": list(self.signals)}
