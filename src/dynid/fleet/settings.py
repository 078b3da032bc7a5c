"""Settings of a fleet: one TOML file that names its robots, their logs, and common parameters."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from dynid.files import is_path
from dynid.fleet.shared import OWN_GROUPS
from dynid.recording.log_files import LogFile, find_logs
from dynid.runs.settings import ModelSettings, RunSettings, SettingsFile, moved_path


class RobotLogs(BaseModel):
    """One robot of a fleet and its logs: a [[robots]] table of the settings file.

    Attributes:
        name: name of the robot.
        logs: files, folders, patterns or addresses.
        motions: name of the commanded motion of each log, if robots made the same motions.
    """

    model_config = ConfigDict(frozen=True, defer_build=True, extra="forbid")

    name: str = Field(min_length=1)
    logs: tuple[str, ...] = Field(min_length=1)
    motions: tuple[str, ...] = ()


class FleetSettings(SettingsFile):
    """Settings of a fleet. Paths are relative to the file that contains them.

    Attributes:
        file_kind: kind of the file in messages.
        robot, model, log, prepare, gravity, only, lock, known: settings of the robot type, as in a run file; known
            values must be exact.
        robots: robots with their logs, one [[robots]] table each.
        logs: files, folders, patterns or addresses of logs in folders named robot=NAME, in addition to `robots`.
        own: groups or names of parameters that differ between robots; all others are common in the joint estimate.
        gains: relative standard deviation of drive gains between robots; None for equal gains, which are not estimated.
        consistent: whether the joint estimate is constrained to be physically consistent.
        rate: false discovery rate of robots that are reported as different.
    """

    file_kind: ClassVar[str] = "fleet file"

    robot: str
    robots: tuple[RobotLogs, ...] = ()
    logs: tuple[str, ...] = ()
    model: ModelSettings = Field(default_factory=ModelSettings)
    log: dict[str, Any] = Field(default_factory=dict)
    prepare: dict[str, Any] = Field(default_factory=dict)
    gravity: tuple[float, float, float] | None = None
    only: tuple[str, ...] = ()
    lock: dict[str, float] = Field(default_factory=dict)
    known: dict[str, float | tuple[float, float]] = Field(default_factory=dict)
    own: tuple[str, ...] = OWN_GROUPS
    gains: float | None = Field(default=None, gt=0.0, lt=1.0)
    consistent: bool = False
    rate: float = Field(default=0.01, gt=0.0, lt=1.0)

    @model_validator(mode="after")
    def _has_logs(self) -> Self:
        if not self.robots and not self.logs:
            raise ValueError("a fleet needs [[robots]] with their logs, or logs = [...] with folders named robot=NAME")
        names = [one.name for one in self.robots]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"two robots have the name '{twice}'; rename one")
        return self

    def moved(self, origin: Path, target: Path) -> Self:
        """Return the settings with paths converted from relative to `origin` to relative to `target`."""
        def move(name: str) -> str:
            return name if "://" in name else moved_path(name, origin, target)

        is_file = is_path(origin, self.robot)
        robots = tuple(one.model_copy(update={"logs": tuple(map(move, one.logs))}) for one in self.robots)
        model = self.model if self.model.python is None else self.model.model_copy(
            update={"python": move(self.model.python)})
        return self.model_copy(update={"robot": move(self.robot) if is_file else self.robot, "robots": robots,
                                       "logs": tuple(map(move, self.logs)), "model": model})

    def find(self) -> tuple[LogFile, ...]:
        """Return all log files of the fleet, in the order of robots and names."""
        files: dict[str, LogFile] = {}
        for one in self.robots:
            logs = find_logs(one.logs)
            motions = one.motions if len(one.motions) == len(logs) else ("",) * len(logs)
            for log, motion in zip(logs, motions, strict=True):
                files.setdefault(log.source, replace(log, robot=one.name, motion=motion or log.motion))
        for log in find_logs(self.logs) if self.logs else ():
            files.setdefault(log.source, replace(log, robot=log.robot or Path(log.source).parent.name))
        return tuple(files.values())

    def run_settings(self, sources: tuple[str, ...], prepare: dict[str, Any]) -> RunSettings:
        """Return the settings of a run on the logs `sources`, with the robot, model and log options of the fleet."""
        return RunSettings.from_values({"robot": self.robot, "logs": list(sources), "method": "wls",
                                        "model": self.model.model_dump(mode="json", exclude_none=True,
                                                                       exclude_defaults=True),
                                        "log": self.log, "prepare": prepare, "gravity": self.gravity,
                                        "only": list(self.only), "lock": self.lock, "known": self.known},
                                       self.file_kind, trust=self.trust)
