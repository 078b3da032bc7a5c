"""The logs of a run: their files, and how they are read."""

from __future__ import annotations

import os
from collections.abc import Mapping as Dictionary
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from dynid.datasets import LogSource
from dynid.errors import RecordingError, did_you_mean
from dynid.floating.whole_body import FloatingRules
from dynid.recording.lerobot import episode_settings, is_dataset
from dynid.recording.log_files import LogFile, distinct, find_logs, short_names
from dynid.recording.log_reading import window_text
from dynid.recording.mapping import Mapping
from dynid.recording.presets import overlaid
from dynid.recording.source import shared_file

if TYPE_CHECKING:
    from dynid.runs.settings import RunSettings

_NAMED_LOGS = 6  # largest number of logs named in a sentence


class LogSettings(BaseModel):
    """One log of a run, a [[logs]] or [[validate_on]] table. All other keys are those of [log], for this log only.

    Attributes:
        file: its file or folder, or a list of files that follow each other in time.
        name: name of the log in results, instead of its path.
        payload: name of the load in the run's [payloads]; such a log identifies the payload and not the robot.
        inherit: whether missing keys are taken from [log].
    """

    model_config = ConfigDict(frozen=True, defer_build=True, extra="allow")

    file: str | tuple[str, ...]
    name: str | None = None
    payload: str | None = None
    inherit: bool = True

    @model_validator(mode="after")
    def _known(self) -> Self:
        if not self.files or (self.name is not None and not self.name.strip()):
            raise ValueError("a log needs a file, and its name must not be empty")
        for key in self.own:
            if key not in Mapping.model_fields:
                known = [*type(self).model_fields, *Mapping.model_fields]
                raise ValueError(f"a log has no setting '{key}'; {did_you_mean(key, known, 'its settings are')}")
        return self

    @property
    def files(self) -> tuple[str, ...]:
        return (self.file,) if isinstance(self.file, str) else self.file

    @property
    def own(self) -> dict[str, Any]:
        """Return the settings of [log] that are given for this log only."""
        return dict(self.model_extra or {})

    @property
    def label(self) -> str:
        """Name of the log in results: its given name, or its files."""
        return self.name or ", ".join(map(str, self.files))

    def mapping(self, common: Dictionary[str, Any]) -> Mapping:
        """Return the mapping of this log: its own settings over those of [log]."""
        own = self.own
        table = dict(common) if self.inherit else {}
        if own.get("side") == "joint" and own.get("torque_side", "joint") == "joint":
            table = {key: value for key, value in table.items() if key not in ("torque_side", "ratio", "coupling")}
        return Mapping.from_settings(overlaid(table, own), f"log {self.label}" if own else "[log]")


LogEntry = str | tuple[str, ...] | LogSettings


def log_entry(value: Any, number: int) -> LogEntry:
    """Return a checked entry of `logs` of a run file. number: counted from 1, for messages."""
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
    """Return an entry of `logs` as a table, for every allowed form of the entry."""
    return log if isinstance(log, LogSettings) else LogSettings(file=log)


def labels(logs: Sequence[LogSettings], common: Dictionary[str, Any]) -> tuple[str, ...]:
    """Return the name of each log: its name or files, with its time window if the same file occurs twice."""
    names = [log.label for log in logs]
    windows = [window_text(log.mapping(common)) for log in logs]
    return distinct([f"{name} {window}" if window and names.count(name) > 1 else name
                     for name, window in zip(names, windows, strict=True)])


def log_sources(logs: Sequence[LogEntry], settings: RunSettings) -> tuple[LogSource, ...]:
    """Return the sources of some logs of a run, each with its own settings over those of [log].

    A folder or pattern represents the logs in it, unless the folder is one log: a bag, or one whose mapping names its
    files. Logs found in a folder are excluded if they cannot be used; those named explicitly must exist.
    """
    found = [one for log in map(log_settings, logs) for one in _expanded(log, settings.log)]
    tables = [log for log, _ in found]
    check_files(tables, settings.log)
    bends, asked = settings.model.flexible, settings.floating
    rules = FloatingRules(asked.equations, asked.base_motion, asked.guard, asked.noise)
    return tuple(LogSource(tuple(map(LogFile, log.files)), log.mapping(settings.log), name, bends is not None,
                           None if bends is None else bends.joints, settings.stream_rows, is_named, rules)
                 for (log, is_named), name in zip(found, labels(tables, settings.log), strict=True))


def _expanded(log: LogSettings, common: Dictionary[str, Any]) -> list[tuple[LogSettings, bool]]:
    """Return the logs that a name, folder or pattern refers to, and whether each was named explicitly."""
    if not isinstance(log.file, str):
        return [(log, True)]
    if is_dataset(Path(log.file)) and log.mapping(common).episode is None:  # each episode of a dataset is a log
        return [(log.model_copy(update={**own, "name": f"{log.label} episode {own['episode']}"}), True)
                for own in episode_settings(log.file, {})]
    if not _holds_logs(log.file, log.mapping(common)):
        return [(log, True)]
    files = [short_path(one.source) for one in find_logs(log.file)]
    if len(files) == 1 and os.path.abspath(files[0]) == os.path.abspath(log.file):  # a bag, or a single address
        return [(log, True)]
    return [(log.model_copy(update={"file": file}), False) for file in files]


def _holds_logs(file: str, mapping: Mapping) -> bool:
    """Return whether a name is a folder, a pattern or an address, which may represent several logs."""
    is_folder = os.path.isdir(file) and not shared_file([Path(file)], mapping)
    is_pattern = not os.path.exists(file) and any(sign in file for sign in "*?[")
    return is_folder or is_pattern or "://" in file


def found_logs_sentence(settings: RunSettings, used: Sequence[str], left_out: Sequence[str]) -> str:
    """Return a sentence on the logs that were found in the folders or patterns of a run; empty for named files.

    Args:
        settings: settings of the run.
        used: names of the logs in the fit.
        left_out: names of logs that could not be used, or are copies of others.
    """
    from dynid.validate.words import listed  # imported here, because reading settings does not need validate

    tables = [log_settings(log) for log in settings.unloaded]
    places = [log.file for log in tables
              if isinstance(log.file, str) and _holds_logs(log.file, log.mapping(settings.log))]
    if not places or len(used) + len(left_out) < 2:
        return ""
    shown = short_names((*used, *left_out))
    names, without = [shown[one] for one in used], [shown[one] for one in left_out]
    return (f"Found in {listed(places)}, subfolders included, and fitted together: {listed(names, _NAMED_LOGS)}"
            + (f". Left out: {listed(without, _NAMED_LOGS)}" if without else "")
            + ". To use some of them only, give their files")


def short_path(path: str) -> str:
    """Return a path below the working directory relative to it; addresses and other paths unchanged."""
    if "://" in path:
        return path
    near = os.path.relpath(path)
    return path if near.startswith("..") else near


def check_files(logs: Sequence[LogSettings], common: Dictionary[str, Any]) -> None:
    """Raise an error if two logs would read a signal from the same additional file."""
    read: dict[tuple[str, Path], LogSettings] = {}
    for log in logs:
        for signal, file in shared_file([Path(path) for path in log.files], log.mapping(common)):
            other = read.setdefault((signal, file), log)
            if other.files != log.files:
                raise RecordingError(
                    f"the {signal} of {other.label} and of {log.label} would both be read from {file}; give each log "
                    f"its own file, with {{stem}} in its name or by [[logs]] tables with {signal} = {{file = \"...\"}}")
