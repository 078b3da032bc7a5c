"""Rules for reading a log: columns, units, and side of the gears."""

from __future__ import annotations

from collections.abc import Mapping as Dictionary
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from dynid.arrays import Array
from dynid.errors import RecordingError, did_you_mean
from dynid.files import toml_file
from dynid.quantities import RATE
from dynid.recording.presets import find_preset, overlaid
from dynid.recording.whole_body import WHOLE_BODY_SIGNALS

Names = str | int | list[str | int]
PerJoint = float | list[float] | dict[str, float]
Unit = Literal["rad", "deg", "m", "mm", "ticks", "normalised"]
VelocityUnit = Literal["rad", "deg", "m", "mm", "rpm"]
TimeUnit = Literal["s", "ms", "us", "ns"]
Side = Literal["joint", "motor"]
Rate = Annotated[float, Field(ge=RATE.low, le=RATE.high, allow_inf_nan=False)]

SECONDS: Dictionary[str, float] = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
SI: Dictionary[str, float] = {"rad": 1.0, "deg": np.pi / 180.0, "m": 1.0, "mm": 1e-3, "rpm": np.pi / 30.0}
SIGNALS = ("position", "velocity", "torque", "current", "reference", "reference_velocity", "wrench", "temperature",
           "motor_position", "sensed_torque", "target_torque", "target_current", "external_torque", "motor_current",
           "supply_voltage", "duty", *WHOLE_BODY_SIGNALS)
UNSCALED_SIGNALS = ("position", "torque", "current", "reference", "wrench", *WHOLE_BODY_SIGNALS)  # without `scale`
FROM_LOG, KNOWN_LOAD = "from-log", "known-load"  # drive gains that are estimated, not given
OF_ROBOT = "robot"  # gear ratios from the transmissions of the robot's file


class SignalPlace(BaseModel):
    """Location of a signal in another file, array or topic.

    Attributes:
        columns: as in `Mapping`; default all columns of the file.
        file: path relative to the log's folder; {stem} is replaced by the log's file name without its extension.
        width: lines per sample, for a file with one number per line.
        array: key of an array (samples, k) with several signals; `columns` are then its columns, by number or name.
        topic: topic of the bag, if it differs from that of the positions.
        time: time column of the file, whose signals are then interpolated at the times of the log.
    """

    model_config = ConfigDict(frozen=True, defer_build=True, extra="forbid")

    columns: Names | None = None
    file: str | None = None
    width: Annotated[int, Field(gt=0, le=10_000)] | None = None
    array: str | None = None
    topic: str | None = None
    time: str | None = None

    @model_validator(mode="after")
    def _flat_or_columns(self) -> Self:
        if self.width is not None and (self.columns is not None or self.array is not None):
            raise ValueError("the settings columns and width exclude each other; remove one of them")
        if self.time is not None and (self.file is None or self.columns is None or self.width is not None):
            raise ValueError("the setting time of a signal is a column of its own file; give file and columns as well")
        if self.topic is not None and (self.file is not None or self.width is not None or self.array is not None):
            raise ValueError("the setting topic selects a topic of the log's bag; combine it only with columns")
        return self


class Mapping(BaseModel):
    """Rules for reading a log. Missing rules are guessed from the file, and the notes state the guesses.

    A signal is given as a column name, a list of names, a column number from 1, a range "2-8", a pattern "q{i}" or
    "q_{joint}", the key of an array (samples, joints), or a `SignalPlace`. Lists by joint are in the order of `joints`,
    or of the robot if that is not given; a table {name = value} needs no order.

    Attributes:
        preset: name of a `Preset`, whose settings are used where none are given here.
        time: time column. Two columns are seconds and nanoseconds.
        time_unit: "s", "ms", "us" or "ns".
        rate: Hz, for a log without a time column.
        position, velocity, torque, current: measured signals.
        reference, reference_velocity: commanded positions and velocities.
        wrench: force and moment of a sensor.
        temperature: temperature of each joint; one column is used for all joints.
        target_torque, target_current: torque and current that the controller computes.
        external_torque: external torque that the controller estimates, joint side.
        motor_current: measured currents, A, for `dynid actuators`. Unlike `current` they do not replace the torques.
        supply_voltage: supply voltage of each drive, V; one column is used for all joints.
        duty: PWM duty cycle of each drive, -1 to 1.
        base_position, base_orientation: pose of the root link in the world, m and a unit quaternion (`quaternion`).
        base_velocity, base_angular_velocity: velocity of the root link's origin (`base_velocity_axes`), m/s, and its
            angular velocity in its own axes, rad/s.
        imu_angular_rate, imu_specific_force: of an IMU at `imu_frame` in its axes, rad/s and m/s^2.
        foot_force: forces (1 or 3 columns) or forces and moments (6) of each foot, in the order of `feet`.
        contact: one column per foot, not zero where it stands; "always" or "never" for all feet of the log.
        quaternion: order of the columns of base_orientation, "xyzw" or "wxyz". Default: from their names, or the data.
        base_velocity_axes: "world", or "base" for the axes of the root link.
        imu_frame: frame of the IMU on the root link. Default: a frame named like an IMU, or the root link.
        feet: frames of the feet, in the order of the columns. Default: from the names.
        foot_kind: "point", "line" or "sole", see `dynid.floating.Contact`.
        foot_radius: radius of round feet, m.
        foot_force_axes: "frame" for the axes of each foot, or "world".
        contact_threshold: normal force above which a foot stands, N or the unit of the column. Default: from the data.
        wrench_frame: frame on which the sensor of `wrench` acts, for a base that is suspended from it.
        scale: factors by signal from the numbers of the log, such as {supply_voltage = 0.1} for tenths of a volt.
        torque_free: whether the log has no torques: positions and commands only, for `dynid actuators`.
        drive_gain: torque per unit of `current`: a number, one per joint, the key of a value in the file, "from-log"
            for an estimate from target_torque and target_current, or "known-load" for logs with and without a known
            load.
        torque_scale: N m (or N) per unit of `torque`, such as 1e-3 for mN m.
        gain_std: relative standard deviation of drive gains or torque sensors, for the uncertainty of payloads:
            one number, one per joint, or a covariance as a list of rows.
        unit, velocity_unit: units of positions and velocities; one for all, or one per joint. Positions of servos may
            also be in "ticks" of their encoders or "normalised" to -100..100 as LeRobot does it.
        ticks_per_turn: ticks of one turn of the joint. Default: 4096.
        calibration: range of motion in ticks for "normalised": a JSON file of LeRobot, or a table by joint of
            [low, high].
        side: "motor" if the log holds motor positions and torques.
        torque_side: the same for torques, if it differs.
        motor_position: encoders of the motors, if `position` holds those of the links; in `unit`.
        motor_side: "motor" if the values of `motor_position` are to be divided by the gear ratio.
        sensed_torque: joint torque sensors, joint side.
        ratio: motor turns per joint turn: a number, one per joint, the key of a value in the file, or "robot" for the
            transmissions of the robot file.
        coupling: square matrix R with q_motor = R q_joint and tau_joint = R^T tau_motor, instead of a ratio.
        sign: -1 for a joint that the log counts in the other direction (positions, velocities and torques).
        torque_sign: the same for torques alone.
        offset: added to joint positions after the sign, in `unit`.
        joints: joint names of the columns, in their order.
        unmeasured: names of joints whose torque is not known. Their torque columns may be missing or zero. They move
            and carry load, but give no equation.
        topic: topic of a bag.
        delimiter, decimal, header, skip: format of a text file; `skip` counts lines.
        array: array of a file whose columns are counted from 1.
        axis: axis of time of the arrays: 0 for one row per sample, 1 for one column per sample. Default: from their
            shapes.
        commanded: whether to use reference, reference_velocity and target_torque instead of the measured signals.
        start, stop: s; only rows with start <= t < stop are used. t is 0 in the first row of the log.
        episode: use only rows whose `episode_column` holds this number.
        episode_column: column that numbers the runs of a file.
        enabled: column that is zero where the drive is switched off. These rows are left out.
        bad_rows: "drop" leaves out unusable rows and states which; "error" stops at the first.
    """

    model_config = ConfigDict(frozen=True, defer_build=True, extra="forbid", allow_inf_nan=False)

    preset: str | None = None
    time: Names | SignalPlace | None = None
    time_unit: TimeUnit | None = None
    rate: Rate | None = None
    position: Names | SignalPlace | None = None
    velocity: Names | SignalPlace | None = None
    torque: Names | SignalPlace | None = None
    torque_scale: PerJoint | None = None
    current: Names | SignalPlace | None = None
    drive_gain: str | PerJoint | None = None
    gain_std: PerJoint | list[list[float]] | None = None
    reference: Names | SignalPlace | None = None
    reference_velocity: Names | SignalPlace | None = None
    wrench: Names | SignalPlace | None = None
    temperature: Names | SignalPlace | None = None
    motor_position: Names | SignalPlace | None = None
    sensed_torque: Names | SignalPlace | None = None
    target_torque: Names | SignalPlace | None = None
    target_current: Names | SignalPlace | None = None
    external_torque: Names | SignalPlace | None = None
    motor_current: Names | SignalPlace | None = None
    supply_voltage: Names | SignalPlace | None = None
    duty: Names | SignalPlace | None = None
    base_position: Names | SignalPlace | None = None
    base_orientation: Names | SignalPlace | None = None
    base_velocity: Names | SignalPlace | None = None
    base_angular_velocity: Names | SignalPlace | None = None
    imu_angular_rate: Names | SignalPlace | None = None
    imu_specific_force: Names | SignalPlace | None = None
    foot_force: Names | SignalPlace | None = None
    contact: Names | SignalPlace | None = None
    quaternion: Literal["xyzw", "wxyz"] | None = None
    base_velocity_axes: Literal["world", "base"] = "world"
    imu_frame: str | None = None
    feet: list[str] | None = None
    foot_kind: Literal["point", "line", "sole"] = "point"
    foot_radius: Annotated[float, Field(ge=0, lt=10)] = 0.0
    foot_force_axes: Literal["frame", "world"] = "frame"
    contact_threshold: float | None = None
    wrench_frame: str | None = None
    scale: dict[str, PerJoint] | None = None
    torque_free: bool = False
    unit: Unit | list[Unit] | dict[str, Unit] | None = None
    velocity_unit: VelocityUnit | list[VelocityUnit] | dict[str, VelocityUnit] | None = None
    ticks_per_turn: PerJoint | None = None
    calibration: str | dict[str, list[float]] | None = None
    side: Side = "joint"
    torque_side: Side | None = None
    motor_side: Side = "joint"
    ratio: str | PerJoint | None = None
    coupling: list[list[float]] | None = None
    sign: PerJoint | None = None
    torque_sign: PerJoint | None = None
    offset: PerJoint | None = None
    joints: list[str] | None = None
    unmeasured: list[str] = Field(default_factory=list)
    topic: str | None = None
    delimiter: str | None = None
    decimal: Literal[".", ","] | None = None
    header: bool | None = None
    skip: Annotated[int, Field(ge=0)] = 0
    array: str | None = None
    axis: Literal[0, 1] | None = None
    start: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    stop: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    episode: Annotated[int, Field(ge=0)] | None = None
    episode_column: str = "episode_index"
    enabled: str | None = None
    bad_rows: Literal["error", "drop"] = "error"
    commanded: bool = False

    @model_validator(mode="before")
    @classmethod
    def _by_preset(cls, given: Any) -> Any:
        if not isinstance(given, dict) or given.get("preset") is None:
            return given
        preset = find_preset(given["preset"])
        if preset.refusal:
            raise ValueError(preset.refusal)
        found = overlaid(preset.settings, given)
        for setting, why in preset.needs.items():
            if found.get(setting) is None:
                raise ValueError(why)
        if found.get("torque") is None and found.get("current") is None and not found.get("torque_free"):
            raise ValueError(f"the setting drive_gain is for currents, but logs of preset '{preset.name}' have torques")
        return found

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.time is not None and self.rate is not None:
            raise ValueError("the settings time and rate exclude each other; give only one of them")
        if self.torque is not None and self.current is not None:
            raise ValueError("the settings torque and current exclude each other; give only one of them")
        if self.current is not None and self.drive_gain is None:
            raise ValueError("the setting current needs drive_gain, N m/A: add --set 'log.drive_gain=[...]', or "
                             "from-log if the log has the controller's own torques and currents; see also dynid gains")
        if self.drive_gain == FROM_LOG and (self.target_torque is None or self.target_current is None):
            raise ValueError('the setting drive_gain = "from-log" needs target_torque and target_current, the '
                             "controller's own torques and currents")
        unknown = [name for name in self.scale or {} if name not in SIGNALS or name in UNSCALED_SIGNALS]
        if unknown:
            raise ValueError(f"the setting scale has no signal '{unknown[0]}'; positions are scaled by unit, torques "
                             "by torque_scale and currents by drive_gain")
        if self.torque_free and (self.torque is not None or self.current is not None):
            raise ValueError("the setting torque_free is for logs without torques; remove it, or torque and current")
        if self.drive_gain is not None and self.torque is not None:
            raise ValueError("the setting drive_gain applies to currents; for torques, use torque_scale")
        if self.torque_scale is not None and self.current is not None:
            raise ValueError("the setting torque_scale applies to torques; for currents, use drive_gain")
        if self.motor_position is not None and self.side == "motor":
            raise ValueError("the setting motor_position is used together with link positions; without them, give "
                             'position and side = "motor"')
        geared = "motor" in (self.side, self.torque_side, self.motor_side)
        if self.ratio is not None and self.coupling is not None:
            raise ValueError("the settings ratio and coupling exclude each other, because the diagonal of coupling "
                             "contains the ratios; remove one of them")
        if not geared and (self.ratio is not None or self.coupling is not None):
            raise ValueError("the settings ratio and coupling need motor positions; add --set log.side=motor")
        if geared and self.ratio is None and self.coupling is None:
            raise ValueError('the setting side, torque_side or motor_side = "motor" needs ratio or coupling; '
                             "add --set 'log.ratio=[...]', one gear ratio per joint")
        for name in ("sign", "torque_sign"):
            value = getattr(self, name)
            numbers = value.values() if isinstance(value, dict) else np.atleast_1d(1.0 if value is None else value)
            if any(abs(number) != 1.0 for number in numbers):
                raise ValueError(f"the setting {name} must be 1 or -1 for each joint")
        if self.joints is not None and len(set(self.joints)) < len(self.joints):
            twice = next(name for name in self.joints if self.joints.count(name) > 1)
            raise ValueError(f"the setting joints lists joint '{twice}' twice; name each joint once")
        if self.unmeasured and self.coupling is not None:
            raise ValueError("the settings unmeasured and coupling cannot be combined, because the torque of one "
                             "motor acts on several joints")
        if self.start is not None and self.stop is not None and self.start >= self.stop:
            raise ValueError(f"the window is empty: start = {self.start:g} s is not before stop = {self.stop:g} s")
        if self.delimiter is not None and len(self.delimiter) != 1:
            raise ValueError('the setting delimiter must be one character, or omitted; " " means any white space')
        return self

    @staticmethod
    def from_settings(settings: Dictionary[str, Any], source: str = "mapping") -> Mapping:
        """Return a mapping from a dictionary; `source` is its name in messages."""
        try:
            return Mapping(**settings)
        except ValidationError as problem:
            place = problem.errors(include_url=False)[0]["loc"]
            raise RecordingError(f"{source}: {sentence(problem)}", code="wrong-setting",
                                 where=f"log.{place[0]}" if place else "log") from None

    @staticmethod
    def load(path: str | Path) -> Mapping:
        """Return a mapping from the [log] table of a TOML file."""
        table = toml_file(Path(path), "mapping", RecordingError, unreadable="unreadable-mapping")
        if not isinstance(table.get("log"), dict):
            raise RecordingError(f"{path}: has no [log] table; put the settings of the log there", code="no-log-table")
        return Mapping.from_settings(table["log"], f"{path} [log]")

    def having(self, **overrides: Any) -> Mapping:
        """Return the mapping with some settings changed, validated again."""
        if not overrides:
            return self
        settings = overlaid({name: getattr(self, name) for name in self.model_fields_set}, overrides)
        return Mapping.from_settings({name: value for name, value in settings.items() if value is not None})

    def may_lack(self, signal: str) -> bool:
        """Return whether a log may lack this signal, because a preset names it and it is not required."""
        if self.preset is None or signal in ("time", "position", "torque", "current"):
            return False
        if self.drive_gain == FROM_LOG and signal in ("target_torque", "target_current"):
            return False
        told = find_preset(self.preset).settings.get(signal)
        return (SignalPlace(**told) if isinstance(told, dict) else told) == getattr(self, signal)

    @property
    def main_topic(self) -> str | None:
        """Topic of a bag that provides the time stamps: the given one, or that of the positions."""
        place = self.position
        return self.topic if self.topic is not None or not isinstance(place, SignalPlace) else place.topic

    @property
    def names_signals(self) -> bool:
        """Whether any signal of the joints is named; no preset is then recognised."""
        return any(getattr(self, name) is not None for name in SIGNALS if name not in WHOLE_BODY_SIGNALS)


def sentence(problem: ValidationError) -> str:
    """Return the first pydantic error as one sentence that names the setting; errors of dynid have priority."""
    errors = problem.errors(include_url=False)
    first = next((error for error in errors if error["type"] == "value_error"), errors[0])
    name = str(first["loc"][0]) if first["loc"] else ""
    if first["type"] == "extra_forbidden":
        if len(first["loc"]) > 1:
            return f"'{name}' has no setting '{first['loc'][-1]}'; it has {', '.join(SignalPlace.model_fields)}"
        return f"there is no setting '{name}'; {did_you_mean(name, Mapping.model_fields, 'the settings are')}"
    text = str(first["msg"]).removeprefix("Value error, ")
    text = text[:1].lower() + text[1:]
    if first["type"] == "value_error":
        return f"'{name}': {text}" if name else text
    wanted = dict.fromkeys(("time", *SIGNALS),
                           "column names, a pattern, an array key or {file, columns, time, width, array, topic}")
    wanted |= {name: "a number, one number per joint, or a key of the file" for name in ("drive_gain", "ratio")}
    wanted["axis"] = "0 (one row per sample) or 1 (one column per sample)"
    if name in wanted:
        return f"'{name}' must be {wanted[name]}, got {first['input']!r}"
    return f"'{name}': {text}, got {first['input']!r}"


def per_joint(value: Any, names: Sequence[str] | None, count: int, what: str, source: str,
              default: Any = None) -> list[Any]:
    """Return one value per joint (count,) from one for all, a list, or a table by joint name."""
    if value is None:
        return [default] * count
    if isinstance(value, dict):
        if names is None:
            raise RecordingError(f"{source}: {what} is given by joint name, but the joints of the log have no names; "
                                 "add --set 'log.joints=[...]' or give a robot")
        unknown = [name for name in value if name not in names]
        if unknown:
            raise RecordingError(f"{source}: {what} contains joint '{unknown[0]}'; the joints of the log are "
                                 f"{', '.join(names)}", where=f"log.{what}")
        missing = [name for name in names if name not in value]
        if missing and default is None:
            raise RecordingError(f"{source}: {what} has no entry for joint '{missing[0]}'", "add one",
                                 where=f"log.{what}")
        return [value.get(name, default) for name in names]
    if isinstance(value, list):
        if len(value) != count:
            raise RecordingError(f"{source}: {what} has {len(value)} entries for {count} joints; give one per joint",
                                 where=f"log.{what}")
        return list(value)
    return [value] * count


def gears(mapping: Mapping, names: Sequence[str] | None, count: int, source: str, ratio: Array | None = None) -> Array:
    """Return the matrix R (count, count) with q_motor = R q_joint; ratio: values from the file, if any."""
    if ratio is not None and ratio.size not in (1, count):
        raise RecordingError(f"{source}: ratio '{mapping.ratio}' has {ratio.size} numbers for {count} joints; it "
                             "needs one number, or one per joint")
    if ratio is not None:
        matrix = np.diag(np.broadcast_to(ratio.ravel(), (count,)))
    elif mapping.coupling is None:
        matrix = np.diag(np.array(per_joint(mapping.ratio, names, count, "ratio", source), dtype=float))
    else:
        rows = mapping.coupling
        if len(rows) != count or any(len(row) != count for row in rows):
            raise RecordingError(f"{source}: coupling must be {count} x {count}, one row per motor",
                                 where="log.coupling")
        matrix = np.array(rows, dtype=float)
    if not np.all(np.isfinite(matrix)) or np.linalg.matrix_rank(matrix) < count:
        raise RecordingError(f"{source}: {'ratio' if mapping.coupling is None else 'coupling'} is singular, so joint "
                             "positions cannot be computed from motor positions", code="singular-coupling")
    return matrix
