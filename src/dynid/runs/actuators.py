"""Identification of a robot's actuators from logs without torques: settings, logs, estimate and result files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import Field

from dynid.actuators import ActuatorEstimate, ActuatorLog, bam_log, bench_law, identify_actuators, pendulum
from dynid.errors import DynidError, RecordingError
from dynid.files import free_paths, toml_file, write_json
from dynid.findings import Note
from dynid.output_fields import output_fields
from dynid.progress import ProgressCallback, silent
from dynid.quantities import finite_number
from dynid.recording import Recording
from dynid.recording.layout import NOT_REQUESTED
from dynid.recording.lerobot import episode_settings, is_dataset
from dynid.recording.log_files import find_logs
from dynid.recording.log_reading import read
from dynid.report import write_page
from dynid.report.pages.actuators import ACTUATORS, ActuatorData
from dynid.robot import Robot
from dynid.runs.arguments import assign, merged, source_kind
from dynid.runs.settings import SettingsFile, moved_path

POSTERIOR = "posterior.json"  # file with values and covariance in a result folder, for `dynid export`
FILES = {"actuators": "actuators.json", "posterior": POSTERIOR, "report": "report.html"}  # files of a result folder
PENDULUM = "pendulum"  # name in place of a robot
BENCH_ALSO = ["bias"]  # extra unknown of BAM's logs: its pendulum is zeroed by eye, and BAM estimates this bias too


class ActuatorSettings(SettingsFile):
    """Settings of `dynid actuators`: the [actuators] table of a run file, with `robot`, `logs` and [log].

    Attributes:
        robot: a URDF, MJCF or robot TOML, or "pendulum".
        logs: logs with positions and commands.
        log: the [log] table, how to read the logs.
        pendulum: mass, length and arm_mass of a pendulum, kg and m.
        law: drive law.
        gains: known parameters of the law: a number, one per joint, or a table by joint.
        friction: "auto" or "m1" to "m6".
        delay: delay of the commands, s; estimated if not given.
        also: further parameters to estimate.
    """

    file_kind: ClassVar[str] = "run file"

    robot: str = PENDULUM
    logs: tuple[str, ...] = Field(min_length=1)
    log: dict[str, Any] = Field(default_factory=dict)
    pendulum: dict[str, float] = Field(default_factory=dict)
    law: str = "pd"
    gains: dict[str, float | list[float] | dict[str, float]] = Field(default_factory=dict)
    friction: str = "auto"
    delay: float | None = None
    also: tuple[str, ...] = ()

    def moved(self, origin: Path, target: Path) -> Self:
        """Return the settings with paths converted from relative to `origin` to relative to `target`."""
        is_file = self.robot != PENDULUM and ("." in self.robot or "/" in self.robot)
        return self.model_copy(update={
            "robot": moved_path(self.robot, origin, target) if is_file else self.robot,
            "logs": tuple(moved_path(log, origin, target) for log in self.logs)})


def actuator_settings(source: str, logs: Sequence[str], given: Mapping[str, Any],
                      assignments: Sequence[str] = ()) -> ActuatorSettings:
    """Return settings from a run file, or from a robot and logs, overridden by the given ones.

    A run file holds `robot`, `logs`, a [log] table and the other settings in an [actuators] table.
    """
    values: dict[str, Any]
    if not logs and source.endswith(".toml") and source_kind(source) == "settings":
        table = toml_file(Path(source), ActuatorSettings.file_kind)
        values = {**{key: table[key] for key in ("robot", "logs", "log") if key in table}, **table.get("actuators", {})}
        settings = ActuatorSettings.from_values(values, source).moved(Path(source).parent, Path())
        values = settings.model_dump(mode="json", exclude_none=True)
    elif source == PENDULUM or given.get("pendulum") or _is_bench(source):
        names = list(logs) if source == PENDULUM else [source, *logs]
        values = {"robot": PENDULUM, "logs": names}
    else:
        values = {"robot": source, "logs": list(logs)}
    values = merged(values, given)
    for assignment in assignments:
        values = assign(values, assignment)
    if values.get("robot") == PENDULUM and "law" not in values and not values.get("pendulum") \
            and all(map(_is_bench, values.get("logs", []))):
        values.setdefault("also", BENCH_ALSO)
        values["law"] = bench_law([file for log in values.get("logs", []) for file in _bench_files(log)])
    if not values.get("logs"):
        raise DynidError("no log is given", "write dynid actuators ROBOT LOG...", "no-log")
    return ActuatorSettings.from_values(values, source)


def number_table(texts: Sequence[str], option: str) -> dict[str, Any]:
    """Return numbers by name from texts such as 'kp=20', 'kp=20,30,40' or 'mass=0.5'; 'kp:knee=30' is for one joint."""
    table: dict[str, Any] = {}
    for text in texts:
        name, equals, numbers = text.partition("=")
        try:
            found = [finite_number(one) for one in numbers.split(",")]
        except ValueError:
            found = []
        if not equals or not name.strip() or not found:
            raise DynidError(f"{option} takes NAME=VALUE such as kp=20, got '{text}'", code="wrong-gain")
        name, _, joint = name.strip().partition(":")
        if joint:
            table.setdefault(name, {})[joint] = found[0]
        else:
            table[name] = found[0] if len(found) == 1 else found
    return table


@dataclass(frozen=True, eq=False)
class FoundActuators:
    """An estimate of actuators with its robot and settings."""

    estimate: ActuatorEstimate
    robot: Robot
    settings: ActuatorSettings

    @output_fields(ActuatorEstimate, settings=dict[str, Any])
    def to_dict(self) -> dict[str, Any]:
        """Return the identified actuators as plain data for JSON."""
        return {"settings": self.settings.model_dump(mode="json", exclude_none=True), **self.estimate.to_dict()}


def _is_bench(log: str) -> bool:
    """Return whether a path is a log of a pendulum test bench of BAM (Rhoban/bam), or a folder of such logs."""
    path = Path(log)
    return path.suffix.lower() == ".json" or (path.is_dir() and not is_dataset(path) and bool(_bench_files(log)))


def _bench_files(log: str) -> list[str]:
    path = Path(log)
    return sorted(str(one) for one in path.glob("*.json")) if path.is_dir() else [log]


def _benches(settings: ActuatorSettings) -> tuple[list[ActuatorLog], list[str]]:
    """Return logs of BAM's test benches (Rhoban/bam) with their pendulums and gains, and sentences on unreadable logs.

    Both lists are empty if other logs or a pendulum are given.
    """
    if settings.robot != PENDULUM or settings.pendulum or not all(map(_is_bench, settings.logs)):
        return [], []
    found, problems = list[ActuatorLog](), list[RecordingError]()
    for log in settings.logs:
        for file in _bench_files(log):
            try:
                found.append(bam_log(file, tuple(settings.gains)))
            except RecordingError as problem:
                problems.append(problem)
    if not found:
        raise problems[0]
    return found, [f"Left out: {problem.reason}" for problem in problems]


def actuator_robot(settings: ActuatorSettings) -> Robot:
    """Return the robot, or the pendulum, whose actuators are to be identified."""
    return _bench_robot(settings, _benches(settings)[0])


def _bench_robot(settings: ActuatorSettings, benches: Sequence[ActuatorLog]) -> Robot:
    if benches and benches[0].robot is not None:  # logs of BAM state their own pendulums and gains
        return benches[0].robot
    if settings.robot != PENDULUM:
        return Robot.load(settings.robot)
    unknown = [name for name in settings.pendulum if name not in ("mass", "length", "arm_mass")]
    missing = [name for name in ("mass", "length") if name not in settings.pendulum]
    if unknown or missing:
        what = f"has no '{unknown[0]}'" if unknown else f"needs its {missing[0]}"
        raise DynidError(f"the pendulum {what}", "write --pendulum mass=0.5,length=0.15, in kg and m",
                         "wrong-pendulum")
    return pendulum(settings.pendulum["mass"], settings.pendulum["length"], settings.pendulum.get("arm_mass", 0.0))


def find_actuators(settings: ActuatorSettings, progress: ProgressCallback = silent, *,
                   diagnose: bool = True) -> FoundActuators:
    """Read the logs and identify the actuators."""
    benches, remarks = _benches(settings)
    robot = _bench_robot(settings, benches)
    progress("reading the logs")
    table = {"torque_free": True, **settings.log} if not {"torque", "current"} & settings.log.keys() else settings.log
    joints = {} if settings.robot != PENDULUM else {"joints": list(robot.joint_names)}
    logs = benches or [ActuatorLog(read(file.source, {**joints, **table, **own}, robot))
                       for file in find_logs(settings.logs) for own in episode_settings(file.source, table)]
    if settings.robot == PENDULUM:
        _check_one_joint([log.recording for log in logs])
    estimate = identify_actuators(robot, logs, law=settings.law, gains=settings.gains, friction=settings.friction,
                                  delay=settings.delay, also=settings.also, diagnose=diagnose, progress=progress)
    estimate = replace(estimate, notes=(*(Note("log", remark) for remark in remarks), *estimate.notes))
    return FoundActuators(estimate, robot, settings)


def _check_one_joint(logs: Sequence[Recording]) -> None:
    """Raise an error if a log has positions of several joints, of which none is chosen for the pendulum."""
    for log in logs:
        if any(NOT_REQUESTED in note for note in log.notes):
            raise RecordingError(f"{log.source}: has positions of several joints, but a pendulum has one",
                                 "choose its columns with --set 'log.position=[\"...\"]' --set "
                                 "'log.reference=[\"...\"]'", "several-joints")


def save_actuators(found: FoundActuators, folder: str | Path, command: str = "", *, force: bool = False) \
        -> dict[str, str]:
    """Write the estimate and its report into a folder; return the path of each file by its kind."""
    paths = free_paths(folder, FILES, force)
    write_json(paths["actuators"], found.to_dict())
    if found.estimate.posterior is not None:
        moved = found.settings.moved(Path(), Path(folder))
        found.estimate.posterior.save(paths["posterior"], moved.model_dump(mode="json", exclude_none=True))
    write_page(ACTUATORS, ActuatorData(f"{found.robot.name}: actuators", found.estimate, command), paths["report"])
    return {what: str(path) for what, path in paths.items()}
