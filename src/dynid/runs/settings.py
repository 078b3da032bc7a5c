"""Settings of a run: one TOML file for a whole identification, from robot and logs to method and output."""

from __future__ import annotations

import difflib
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, field_validator, model_validator

from dynid.errors import DynidError, RecordingError, did_you_mean
from dynid.files import is_path, toml_file
from dynid.recording.mapping import Mapping as LogMapping
from dynid.recording.preparation.options import Preparation
from dynid.runs.logs import LogEntry, LogSettings, log_entry
from dynid.runs.toml import dumps

Settings = TypeVar("Settings", bound=BaseModel)
Trust = bool | Literal["model"]

# TOML can represent infinity, as in [prepare] saturation, so written settings keep it.
FINITE_NUMBERS = ConfigDict(frozen=True, defer_build=True, extra="forbid", allow_inf_nan=False,
                            ser_json_inf_nan="constants")
MOST_BLOCKS = 100  # blocks of cross-validation, each with its own fit; ten are usual


def checked(kind: type[Settings], values: Mapping[str, Any], source: str) -> Settings:
    """Return settings of the class `kind` from a dictionary; errors name `source` and the setting."""
    where = _not_a_number(values)
    if where is not None:
        raise DynidError(f"{source}: setting '{where}' is not a number (nan); give a number, or remove the setting",
                         code="wrong-setting", where=where)
    try:
        return kind.model_validate(dict(values))
    except ValidationError as problem:
        first = problem.errors(include_url=False)[0]
        # Parts with brackets are the types of a choice, as in gravity.tuple[float, float, float].
        name = ".".join(str(part) for part in first["loc"] if not isinstance(part, int) and "[" not in part) \
            or "the file"
        if first["type"] == "extra_forbidden":
            known = f"; {_likely_setting(name, kind)}" if len(first["loc"]) == 1 else ""
            raise DynidError(f"{source}: there is no setting '{name}'{known}", code="unknown-setting",
                             where=name) from None
        if first["type"] in ("model_type", "dict_type"):
            raise DynidError(f"{source}: setting '{name}' is wrong: it is a table of settings, not {first['input']!r}; "
                             f"write [{name}] in a run file, --set {name}.SETTING=VALUE, or in Python "
                             f"{name}={{\"SETTING\": VALUE}}", code="wrong-setting", where=name) from None
        message = str(first["msg"]).removeprefix("Value error, ")
        raise DynidError(f"{source}: setting '{name}' is wrong: {message[0].lower()}{message[1:]}",
                         code="wrong-setting", where=name) from None


def _likely_setting(name: str, kind: type[BaseModel]) -> str:
    """Return the end of a sentence on an unknown setting: the table that has it, a similar name, or all settings."""
    annotations = {table: field.annotation for table, field in kind.model_fields.items()}
    tables: dict[str, Iterable[str]] = {table: settings.model_fields for table, settings in annotations.items()
                                        if isinstance(settings, type) and issubclass(settings, BaseModel)}
    tables |= {table: fields.model_fields for table, fields in (("log", LogMapping), ("prepare", Preparation))
               if table in kind.model_fields}
    places = {setting: table for table, settings in tables.items() for setting in settings}
    close = difflib.get_close_matches(name, [*kind.model_fields, *places], n=1)
    if not close or close[0] in kind.model_fields:
        return did_you_mean(name, kind.model_fields, "the settings are")
    setting, table = close[0], places[close[0]]
    start = f"'{setting}' is a setting of the table [{table}]"
    return f"{start}; write --set {table}.{setting}=VALUE, or in Python {table}={{\"{setting}\": VALUE}}"


def _not_a_number(value: Any) -> str | None:
    """Return the name, such as log.position, of a nan in nested tables and lists; None if there is none."""
    if isinstance(value, float):
        return "" if math.isnan(value) else None
    inner = value.items() if isinstance(value, Mapping) else (("", item) for item in value) \
        if isinstance(value, list | tuple) else ()
    for key, item in inner:
        found = _not_a_number(item)
        if found is not None:
            return ".".join(part for part in (str(key), found) if part)
    return None


class SettingsFile(BaseModel):
    """Settings in one TOML file, with paths relative to the file. file_kind: name of the kind of file in messages.

    A Python file with a model, which the settings or their prior name, is run only with trust=True. With trust="model"
    only the file in the [model] table of the settings is run. A settings file cannot grant trust.
    """

    model_config = FINITE_NUMBERS

    file_kind: ClassVar[str] = "settings"
    _trust: Trust = PrivateAttr(default=False)

    @classmethod
    def from_values(cls, values: Mapping[str, Any], source: str | None = None, *, trust: Trust = False) -> Self:
        """Return settings from a mapping; errors name `source` and the setting."""
        settings = checked(cls, values, source or cls.file_kind)
        settings._trust = trust
        return settings

    @classmethod
    def load(cls, path: str | Path, *, trust: Trust = False) -> Self:
        """Return settings from a TOML file; its paths become relative to the working directory."""
        path = Path(path)
        return cls.from_values(toml_file(path, cls.file_kind), str(path), trust=trust).moved(path.parent, Path())

    @property
    def trust(self) -> Trust:
        """Python files that may be run: all that are named (True), only that of [model] ("model"), or none (False)."""
        return self._trust

    def moved(self, origin: Path, target: Path) -> Self:
        """Return the settings with paths converted from relative to `origin` to relative to `target`."""
        return self

    def as_toml(self, comment: str = "") -> str:
        """Return the settings as the text of a TOML file."""
        values = self.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
        head = "".join(f"# {line}\n" for line in comment.splitlines())
        return head + dumps(values)


def moved_path(name: str, origin: Path, target: Path) -> str:
    """Return a path relative to `origin`, or an absolute one, as a path relative to `target`."""
    return name if Path(name).is_absolute() else os.path.relpath(origin / name, target)


class FlexibleSettings(BaseModel):
    """The [model.flexible] table: flexible joints, see `FlexibleModel`.

    Attributes:
        joints: names of the flexible joints; default: all.
        friction: kinds of the motors' friction; `friction` of [model] is then that of the links.
        skew: also identify the time offset between the encoders.
    """

    model_config = FINITE_NUMBERS

    joints: tuple[str, ...] | None = None
    friction: tuple[str, ...] = ("viscous", "coulomb")
    skew: bool = False


class ModelSettings(BaseModel):
    """The [model] table: terms to identify in addition to the rigid bodies.

    Attributes:
        friction: kinds at every joint, or "auto" (chosen per joint from the logs), or "none"; by default the robot
            file's, or chosen.
        rotor: reflected rotor inertia.
        own_terms: whether to use the terms of the robot file; by default if nothing else is requested.
        terms: tables of further terms, as in robot files.
        python: a user's Python file, which is run: its registered terms (`register_term`) are available by kind, and
            its `model(robot)`, if defined, is the model.
        flexible: the [model.flexible] table, for logs with positions of motors and links.
    """

    model_config = FINITE_NUMBERS

    python: str | None = None
    friction: tuple[str, ...] = ()
    rotor: bool = False
    own_terms: bool | None = None
    terms: tuple[dict[str, Any], ...] = ()
    flexible: FlexibleSettings | None = None


class FloatingSettings(BaseModel):
    """The [floating] table: identification of a robot with a free base.

    Attributes:
        equations: kind of the equations, see `dynid.floating.prepare_floating`; by default chosen from the signals of
            each log.
        base_motion: signals from which the motion of the base is computed; by default an IMU, otherwise a pose.
        guard: time before and after a contact in which the foot is treated as standing, s.
        total_mass: kg, with or without its standard deviation (default 0.5 %).
        symmetry: whether left and right links are mirror images (true: pairs are found from names and places), or the
            pairs {left = right}; by default as [symmetry] of the robot file states.
        symmetry_std: relative standard deviation of their difference; by default that of the robot file, or 0.01.
        noise: standard deviations of the 6 + n equations, by which projected rows are whitened; by default from the
            residuals of a first fit.
    """

    model_config = FINITE_NUMBERS

    equations: Literal["wrenches", "base", "projected", "flight"] | None = None
    base_motion: Literal["imu", "pose", "velocity"] | None = None
    guard: float = Field(default=0.03, ge=0.0)
    total_mass: float | tuple[float, float] | None = None
    symmetry: bool | dict[str, str] | None = None
    symmetry_std: float | None = Field(default=None, gt=0.0)
    noise: tuple[float, ...] | None = None


class SimulationSettings(BaseModel):
    """The [simulation] table: validation by simulation.

    Attributes:
        run: whether to simulate.
        horizon: time after which a simulation under the log's own torques restarts from the measured state, s.
    """

    model_config = FINITE_NUMBERS

    run: bool = True
    horizon: float = Field(default=0.5, gt=0.0)


class OutputSettings(BaseModel):
    """The [output] table. code: languages in which the identified model is written (see `dynid generate`)."""

    model_config = FINITE_NUMBERS

    code: tuple[Literal["c", "python", "python-plain", "julia", "latex", "cuda", "cupy", "jax", "torch",
                        "rust"], ...] = ()


class EssentialSettings(BaseModel):
    """The [essential] table: `rule` and `threshold` for removing parameters (see `dynid.estimate.essential`),
    and the significance level `alpha` of an F-test."""

    model_config = FINITE_NUMBERS

    rule: Literal["standard-error", "ratio", "f-test", "smallest", "r", "singular"] = "standard-error"
    threshold: float | None = Field(default=None, gt=0.0)
    alpha: float = Field(default=0.05, gt=0.0, lt=1.0)


class PayloadSettings(BaseModel):
    """A [payloads.NAME] table: a load of some logs.

    Attributes:
        frame: frame of the load; default: the flange.
        mass: weighed mass, kg, with or without its standard deviation.
        centre: centre of mass in the frame, m, if known, to estimate drive gains.
        inertia: XX XY XZ YY YZ ZZ about the centre of mass, kg m^2, if known, to estimate drive gains.
        method: see `dynid.payload`.
    """

    model_config = FINITE_NUMBERS

    frame: str | None = None
    mass: float | tuple[float, float] | None = None
    centre: tuple[float, float, float] | None = None
    inertia: tuple[float, float, float, float, float, float] | None = None
    method: Literal["residual", "difference", "same-motion", "together"] | None = None

    @property
    def known(self) -> bool:
        """Whether mass, centre and inertia are known well enough to estimate drive gains."""
        return self.mass is not None and self.centre is not None


class CompareSettings(BaseModel):
    """The [compare] table of `dynid compare`.

    options: options of each method by its name, [compare.options.METHOD]; they override those of [options].
    """

    model_config = FINITE_NUMBERS

    options: dict[str, dict[str, Any]] = Field(default_factory=dict)


class RunSettings(SettingsFile):
    """Settings of a run. Paths are relative to the file that names them.

    Attributes:
        robot: a URDF, MJCF or robot TOML, or a built-in name.
        logs: logs to identify from. A list holds consecutive parts of one log; a table ([[logs]], see `LogSettings`)
            holds a log with its own reading rules.
        validate_on: logs to validate the result on, in the same form.
        method: estimation method.
        options: the [options] table of the method.
        log: the [log] table, how to read the logs.
        prepare: the [prepare] table, from logs to samples.
        controller: the [controller] table, the control law, for methods and validation that simulate the closed loop.
        floating: the [floating] table, for a robot with a free base.
        simulation: the [simulation] table, validation by simulation.
        compare: the [compare] table.
        output: the [output] table, further files to write.
        essential: the [essential] table, for a model with the significant parameters only.
        gravity: gravity in the base frame, m/s^2, instead of the robot's own; "estimate" for its direction from the
            logs.
        only: joints that take part; the others are locked at zero.
        lock: the [lock] table, joints made fixed with their positions, rad or m. Logs may have their columns too.
        fixed_base: whether the root link is fixed to the ground (true) or moves freely (false); by default the robot
            file decides.
        known: the [known] table, known standard parameters by name: a value, or a value and its standard deviation.
        fixed_inertias: links whose inertia is taken from the robot file and not identified.
        payloads: the [payloads] tables, loads that logs name with payload = "...".
        prior: folder of an earlier result (of a robot or a fleet) whose parameters with their covariance serve as a
            prior.
        blocks: number of blocks of time for cross-validation.
        stream_rows: number of rows to read at a time, for logs larger than memory.
    """

    file_kind: ClassVar[str] = "run file"

    robot: str
    logs: tuple[LogEntry, ...] = Field(min_length=1)
    validate_on: tuple[LogEntry, ...] = ()
    method: str = "auto"
    options: dict[str, Any] = Field(default_factory=dict)
    model: ModelSettings = Field(default_factory=ModelSettings)
    log: dict[str, Any] = Field(default_factory=dict)
    prepare: dict[str, Any] = Field(default_factory=dict)
    controller: dict[str, Any] | None = None
    floating: FloatingSettings = Field(default_factory=FloatingSettings)
    simulation: SimulationSettings = Field(default_factory=SimulationSettings)
    compare: CompareSettings = Field(default_factory=CompareSettings)
    output: OutputSettings = Field(default_factory=OutputSettings)
    essential: EssentialSettings | None = None
    gravity: tuple[float, float, float] | Literal["estimate"] | None = None
    only: tuple[str, ...] = ()
    lock: dict[str, float] = Field(default_factory=dict)
    fixed_base: bool | None = None
    known: dict[str, float | tuple[float, float]] = Field(default_factory=dict)
    fixed_inertias: tuple[str, ...] = ()
    payloads: dict[str, PayloadSettings] = Field(default_factory=dict)
    prior: str | None = None
    blocks: int = Field(default=10, ge=1, le=MOST_BLOCKS)
    stream_rows: int | None = Field(default=None, ge=1)

    @field_validator("logs", "validate_on", mode="before")
    @classmethod
    def _entries(cls, logs: Any) -> Any:
        return tuple(map(log_entry, logs, range(1, len(logs) + 1))) if isinstance(logs, list | tuple) else logs

    @model_validator(mode="after")
    def _logs_fit(self) -> Self:
        """Check that log names are distinct and their settings valid before any log is read."""
        tables = [one for one in (*self.logs, *self.validate_on) if isinstance(one, LogSettings)]
        missing = next((one.payload for one in tables if one.payload and one.payload not in self.payloads), None)
        if missing is not None:
            raise ValueError(f"a log names payload '{missing}', but there is no [payloads.{missing}] table; add this "
                             "table, which may be empty")
        if any(isinstance(one, LogSettings) and one.payload for one in self.validate_on):
            raise ValueError("the setting validate_on takes logs without a payload; list logs with a payload under "
                             "the setting logs")
        if all(isinstance(one, LogSettings) and one.payload for one in self.logs):
            raise ValueError("every log has a payload; identifying the robot needs at least one log without a payload")
        names = [one.name for one in tables if one.name is not None]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ValueError(f"two logs have the name '{twice}'; rename one")
        try:
            for one in tables:
                one.mapping(self.log)
        except RecordingError as problem:
            raise ValueError(str(problem)) from None
        return self

    @property
    def unloaded(self) -> tuple[LogEntry, ...]:
        """The logs without a payload, which the robot is identified from."""
        return tuple(log for log in self.logs if not (isinstance(log, LogSettings) and log.payload))

    def with_payload(self, name: str) -> tuple[LogEntry, ...]:
        """Return the logs of the run that were recorded with a payload."""
        return tuple(log for log in self.logs if isinstance(log, LogSettings) and log.payload == name)

    def moved(self, origin: Path, target: Path) -> Self:
        """Return the run with paths that were relative to `origin` made relative to `target`."""
        def move(name: str) -> str:
            return moved_path(name, origin, target)

        def each(logs: tuple[LogEntry, ...]) -> tuple[LogEntry, ...]:
            return tuple(log.model_copy(update={"file": moved_files(log.file)}) if isinstance(log, LogSettings)
                         else moved_files(log) for log in logs)

        def moved_files(files: str | tuple[str, ...]) -> str | tuple[str, ...]:
            return move(files) if isinstance(files, str) else tuple(map(move, files))

        is_file = is_path(origin, self.robot)
        model = self.model if self.model.python is None else self.model.model_copy(
            update={"python": move(self.model.python)})
        return self.model_copy(update={"robot": move(self.robot) if is_file else self.robot, "logs": each(self.logs),
                                       "validate_on": each(self.validate_on), "model": model,
                                       "prior": None if self.prior is None else move(self.prior)})
