"""Conversion of logged numbers to the robot's joints: units (also of servos), drive gains, gears, signs, order."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping as Dictionary
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import RecordingError
from dynid.files import read_small
from dynid.recording.columns import by_prefix, listed
from dynid.recording.mapping import OF_ROBOT, SI, Mapping, gears, per_joint
from dynid.robot import Robot

PERCENT, PERMILLE = "percent", "permille"  # units of a torque relative to a rated torque
_FORCES, _ARMS = {"": 1.0, "m": 1e-3, "k": 1e3}, {"m": 1.0, "cm": 1e-2, "mm": 1e-3}
# N m in each unit of torque that a column name may state; for a share of a rated torque the log does not state it
TORQUE_UNITS = {f"{prefix}N {arm}": force * length for prefix, force in _FORCES.items() for arm, length in _ARMS.items()
                } | {"mm": 1e-3, PERCENT: math.nan, PERMILLE: math.nan}
TICKS, NORMALISED = "ticks", "normalised"  # units of positions that depend on the servo
DEFAULT_TICKS_PER_TURN = 4096.0  # of Feetech STS and SMS, and of Dynamixel X and MX
_HALF_RANGE = 100.0  # LeRobot writes -100 to 100 for a joint, 0 to 100 for a gripper
# Signals that are converted like another one.
_CONVERTED_LIKE = {"reference": "position", "reference_velocity": "velocity", "target_current": "torque"}
_GRIPPER = "gripper"  # joint that LeRobot writes as 0 to 100


@dataclass(frozen=True, eq=False)
class Conversion:
    """Linear map from logged columns (samples, k) to the robot's joints (samples, dof).

    Attributes:
        position_scale, velocity_scale, torque_scale: (k,), factors from the logged unit to SI units.
        sign, torque_sign: (k,), 1 or -1.
        offset: (k,), added to positions, rad or m.
        inverse: R^-1, for positions and velocities of the motor side.
        gears: R, for torques of the motor side, tau_joint = R^T tau_motor.
        order, joints: the columns to keep, and their joints.
        motor_scale, motor_inverse: units (k,) and R^-1 of motor positions that are logged in addition to those of the
            links.
        factors: (k,) by signal, multiplied with the logged numbers before `joint_side`.
    """

    position_scale: Array
    velocity_scale: Array
    torque_scale: Array
    sign: Array
    torque_sign: Array
    offset: Array
    inverse: Array | None
    gears: Array | None
    order: tuple[int, ...]
    joints: tuple[str, ...]
    motor_scale: Array
    motor_inverse: Array | None
    factors: Dictionary[str, Array]

    def joint_side(self, signal: str, raw: Array) -> Array:
        """Return a signal of the log (samples, k) on the joint side, in SI units: (samples, dof)."""
        rules: dict[str, tuple[Array | float, Array | None, Array, Array | float]] = {
            "position": (self.position_scale, self.inverse, self.sign, self.offset),
            "velocity": (self.velocity_scale, self.inverse, self.sign, 0.0),
            "motor_position": (self.motor_scale, self.motor_inverse, self.sign, self.offset),
            "sensed_torque": (1.0, None, self.sign, 0.0),
            "torque": (self.torque_scale, None if self.gears is None else self.gears.T, self.torque_sign, 0.0)}
        # Torques of a controller are on the joint side already.
        unit, matrix, sign, offset = rules.get(_CONVERTED_LIKE.get(signal, signal), (1.0, None, self.torque_sign, 0.0))
        joint = raw * unit if matrix is None else (raw * unit) @ matrix.T
        return np.asarray((joint * sign + offset)[:, self.order])


def conversion(mapping: Mapping, count: int, names: Sequence[str] | None, robot: Robot | None,
               constants: Dictionary[str, Array], guessed: Dictionary[str, str], source: str,
               notes: list[str]) -> Conversion:
    """Return the conversion of `count` logged columns.

    Args:
        mapping: rules for reading the log.
        count: number of columns.
        names: joints of the columns, if known.
        robot: the robot, if known.
        constants: drive_gain and ratio from the file, if the mapping names their keys.
        guessed: units from column names, used if the mapping states none.
        source: name of the log for messages.
        notes: list to which notes are added.
    """
    if names is not None and len(names) != count:
        raise RecordingError(f"{source}: the setting joints lists {len(names)} joints, but the log has {count} columns "
                             "of positions; name the joint of each column with --set 'log.joints=[...]'",
                             where="log.joints")
    order = _order(names, count, robot, source, notes)
    if names is None and robot is not None:
        names = robot.joint_names if count == robot.dof else robot.source_joints
    units = _units(mapping, guessed.get("position"), count, names, robot, source, notes)
    speeds = per_joint(mapping.velocity_unit, names, count, "velocity_unit", source)
    if "velocity" in guessed and mapping.velocity_unit is None:
        speeds = [guessed["velocity"]] * count
    scale, shift = position_scales(units, mapping, names, source)
    numbers = {what: np.array(per_joint(getattr(mapping, what), names, count, what, source, default), dtype=float)
               for what, default in (("sign", 1.0), ("torque_sign", 1.0), ("offset", 0.0))}
    gain = constants.get("drive_gain")
    if gain is None:
        gain = np.array(per_joint(None if isinstance(mapping.drive_gain, str) else mapping.drive_gain,
                                  names, count, "drive_gain", source, 1.0), dtype=float)
    elif gain.size not in (1, count):
        raise RecordingError(f"{source}: drive_gain '{mapping.drive_gain}' has {gain.size} values for {count} joints; "
                             "it needs one value, or one per joint", where="log.drive_gain")
    if mapping.torque_scale is None and "torque" in guessed:
        gain = _unit_of_torque(guessed["torque"], source) * gain
    elif mapping.torque_scale is not None:
        gain = np.array(per_joint(mapping.torque_scale, names, count, "torque_scale", source), dtype=float)
        if not np.all(np.isfinite(gain) & (gain > 0)):
            raise RecordingError(f"{source}: torque_scale must be above zero for each "
                                 "joint; reverse a sign with torque_sign", where="log.torque_scale",
                                 code="bad-torque-scale")
    sides = mapping.side, mapping.torque_side or mapping.side, mapping.motor_side
    is_motor, is_torque_of_motor, has_motor_positions = (side == "motor" for side in sides)
    ratio = _reductions(names, robot, source) if mapping.ratio == OF_ROBOT else constants.get("ratio")
    matrix = gears(mapping, names, count, source, ratio) if "motor" in sides else None
    inverse = None if matrix is None else np.asarray(np.linalg.inv(matrix), dtype=float)
    turning = per_joint(mapping.unit, names, count, "unit", source)  # motors rotate, for any kind of joint
    turns = np.array([SI[unit] if unit in ("rad", "deg") else size if unit == "ticks" else 1.0
                      for unit, size in zip(turning, scale, strict=True)])
    return Conversion(
        position_scale=scale,
        velocity_scale=np.array([SI[speed] if speed else size for speed, size in zip(speeds, scale, strict=True)]),
        torque_scale=np.broadcast_to(np.asarray(gain, dtype=float).ravel(), (count,)),
        sign=numbers["sign"], torque_sign=numbers["sign"] * numbers["torque_sign"],
        offset=numbers["offset"] * np.abs(scale) + numbers["sign"] * shift,
        inverse=inverse if is_motor else None, gears=matrix if is_torque_of_motor else None, order=order,
        joints=robot.joint_names if robot is not None else tuple(names or ()),
        motor_scale=turns if has_motor_positions else scale, motor_inverse=inverse if has_motor_positions else None,
        factors={signal: np.array(per_joint(given, names, count, f"scale of {signal}", source, 1.0), dtype=float)
                 for signal, given in (mapping.scale or {}).items()})


def _reductions(names: Sequence[str] | None, robot: Robot | None, source: str) -> Array:
    """Return gear ratios (count,) of the columns' joints, from the transmissions of the robot file."""
    if robot is None or names is None:
        raise RecordingError(f"{source}: ratio = \"robot\" needs a robot whose file has transmissions",
                             "give the gear ratios as numbers with --set 'log.ratio=[...]'", where="log.ratio")
    known = {joint.name: joint.reduction for joint in robot.joints}
    missing = [name for name in names if known.get(name) is None]
    if missing:
        raise RecordingError(f"{source}: ratio = \"robot\", but the file of robot '{robot.name}' states no mechanical "
                             f"reduction of joint '{missing[0]}'",
                             "give ratio as numbers, for example --set 'log.ratio=[100, 100]'", where="log.ratio",
                             code="no-gear-ratio")
    return np.array([known[name] for name in names], dtype=float)


def _locks(joints: Sequence[str]) -> str:
    """Return the end of an error message: the options for joints that are not in the log; empty if all joints are."""
    options = " ".join(f"--lock {name}=POSITION" for name in joints)
    return f"; if joints that are not in the log stood still, add {options}" if joints else ""


def _order(names: Sequence[str] | None, count: int, robot: Robot | None, source: str, notes: list[str]) \
        -> tuple[int, ...]:
    """Return the logged column of each joint of the robot."""
    if robot is None:
        return tuple(range(count))
    if names is None:
        if robot.source_joints and count == len(robot.source_joints):
            return tuple(robot.source_joints.index(name) for name in robot.joint_names)
        if count != robot.dof:
            raise RecordingError(f"{source}: has {count} position columns, but robot '{robot.name}' has {robot.dof} "
                                 f"joints ({listed(robot.joint_names)}); name the joint of each column with --set "
                                 "'log.joints=[...]'" + _locks(robot.joint_names[count:]),
                                 where="log.position", code="joints-do-not-fit")
        return tuple(range(count))
    missing = [name for name in robot.joint_names if name not in names]
    if missing:
        raise RecordingError(f"{source}: joint '{missing[0]}' of robot '{robot.name}' is not in the log, "
                             f"which has {listed(list(names))}{_locks(missing)}", where="log.position")
    extra = [name for name in names if name not in (*robot.joint_names, *robot.source_joints)]
    if extra:
        notes.append(f"not used, because robot '{robot.name}' has no such joint: {listed(extra)}")
    order = tuple(list(names).index(name) for name in robot.joint_names)
    if list(order) != sorted(order):
        notes.append(f"columns are reordered to the joint order of the robot, {listed(robot.joint_names)}")
    return order


def _units(mapping: Mapping, guessed: str | None, count: int, names: Sequence[str] | None, robot: Robot | None,
           source: str, notes: list[str]) -> list[str]:
    """Return the unit of each position column.

    A unit that is given once for all columns applies to joints of its kind only: "mm" not to a revolute joint.
    """
    unit = mapping.unit if mapping.unit is not None else guessed
    prismatic = [robot is not None and names is not None and name in robot.joint_names
                 and robot.joints[robot.joint_index(name)].prismatic for name in names or [""] * count]
    if mapping.side == "motor":  # motors rotate, for any kind of joint
        return [item or "rad" for item in per_joint(unit, names, count, "unit", source)]
    natural = ["m" if slides else "rad" for slides in prismatic]
    given = [item or plain for item, plain in zip(per_joint(unit, names, count, "unit", source), natural, strict=True)]
    if robot is None:
        return given
    wrong = [i for i in range(count) if (given[i] in ("m", "mm")) != prismatic[i]
             and names is not None and names[i] in robot.joint_names]
    if wrong and isinstance(unit, str) and len(wrong) < count:
        left = [str(names[i]) for i in wrong] if names is not None else []
        notes.append(f"unit {unit} does not fit joint {listed(left)}, which is read in {natural[wrong[0]]}")
        return [natural[i] if i in wrong else given[i] for i in range(count)]
    if wrong and names is not None:
        raise RecordingError(f"{source}: unit {given[wrong[0]]} does not fit joint '{names[wrong[0]]}', which "
                             f"{'is prismatic' if prismatic[wrong[0]] else 'is revolute'}",
                             "give the unit of each joint with --set 'log.unit=[...]'", where="log.unit",
                             code="unit-does-not-fit")
    return given


def _unit_of_torque(unit: str, source: str) -> float:
    """Return the torque of one unit, N m. Raise an error for a share of a rated torque, which a log does not state."""
    if math.isnan(TORQUE_UNITS[unit]):
        share = 100 if unit == PERCENT else 1000
        raise RecordingError(f"{source}: the torques are in {unit} of a rated torque, as their column names state",
                             f"give rated torque / {share} of each joint in the robot's order, N m or N, with --set "
                             "'log.torque_scale=[...]'", where="log.torque_scale", code="relative-torque")
    return TORQUE_UNITS[unit]


@dataclass(frozen=True)
class ServoRange:
    """Range of motion of one servo.

    Attributes:
        low, high: encoder ticks at the ends of the range.
        is_reversed: whether the normalised value decreases as the ticks increase.
    """

    low: float
    high: float
    is_reversed: bool = False


def position_scales(units: Sequence[str], mapping: Mapping, names: Sequence[str] | None, source: str) \
        -> tuple[Array, Array]:
    """Return factors (joints,) of logged positions to rad or m, and offsets (joints,) to be added afterwards.

    Ticks are counted from zero; a servo whose middle is 2048 has `offset = -2048`. Normalised positions are measured
    from the middle of the range, those of a gripper from its lower end.
    """
    count = len(units)
    turns = per_joint(mapping.ticks_per_turn, names, count, "ticks_per_turn", source, DEFAULT_TICKS_PER_TURN)
    if not all(math.isfinite(one) and one > 0 for one in turns):
        raise RecordingError(f"{source}: the setting ticks_per_turn must be positive, such as 4096",
                             where="log.ticks_per_turn")
    scale, shift = np.ones(count), np.zeros(count)
    ranges = _ranges(mapping, names, source) if NORMALISED in units else {}
    for j, unit in enumerate(units):
        tick = 2.0 * math.pi / turns[j]
        if unit == TICKS:
            scale[j] = tick
        elif unit == NORMALISED:
            name = names[j] if names is not None else ""
            if name not in ranges:
                raise RecordingError(f"{source}: the calibration has no range of joint '{name}'; it has "
                                     f"{listed(list(ranges))}", where="log.calibration")
            one = ranges[name]
            is_gripper = name.endswith(_GRIPPER)
            whole = tick * (one.high - one.low)
            scale[j] = whole / (_HALF_RANGE if is_gripper else 2 * _HALF_RANGE) * (-1.0 if one.is_reversed else 1.0)
            shift[j] = whole if is_gripper and one.is_reversed else 0.0
        else:
            scale[j] = SI[unit]
    return scale, shift


def _ranges(mapping: Mapping, names: Sequence[str] | None, source: str) -> dict[str, ServoRange]:
    """Return ranges of motion by joint, from the calibration in the mapping."""
    given = mapping.calibration
    if given is None:
        raise RecordingError(f"{source}: normalised positions need the range of motion of each servo in ticks",
                             "add --set log.calibration=FILE.json, the calibration that LeRobot wrote below "
                             "~/.cache/huggingface/lerobot/calibration, or --set 'log.calibration={NAME=[LOW, HIGH]}'",
                             "no-calibration", where="log.calibration")
    if names is None:
        raise RecordingError(f"{source}: a calibration needs the names of the joints",
                             "add --set 'log.joints=[...]'", where="log.joints")
    found = _from_file(Path(given), Path(source)) if isinstance(given, str) else \
        {name: _range(name, {"range_min": ends[0], "range_max": ends[1]} if len(ends) == 2 else {}, "calibration")
         for name, ends in given.items()}
    other, _ = by_prefix(list(found), names, f"{source}: calibration")
    return {**found, **{joint: found[name] for joint, name in other.items()}}


def _from_file(given: Path, log: Path) -> dict[str, ServoRange]:
    """Return the ranges in a calibration file of LeRobot, next to the log or relative to the working folder."""
    folder = log if log.is_dir() else log.parent
    path = folder / given if (folder / given).is_file() else given
    try:
        table = json.loads(read_small(path))
    except OSError as problem:
        raise RecordingError(f"the calibration {path} cannot be read: {problem.strerror or problem}",
                             where="log.calibration") from None
    except (ValueError, RecursionError):
        raise RecordingError(f"the calibration {path} is not a valid JSON file", where="log.calibration") from None
    if not isinstance(table, dict) or not all(isinstance(one, dict) for one in table.values()):
        raise RecordingError(f"the calibration {path} is not a table of servos; give the calibration file that "
                             "LeRobot wrote",
                             where="log.calibration")
    return {name: _range(name, one, str(path)) for name, one in table.items()}


def _range(name: str, one: Dictionary[str, Any], source: str) -> ServoRange:
    low, high = one.get("range_min"), one.get("range_max")
    if not isinstance(low, int | float) or not isinstance(high, int | float) or not low < high:
        raise RecordingError(f"{source}: joint '{name}' has no range_min, in ticks, that is below its range_max",
                             "calibrate the servo again", where="log.calibration")
    return ServoRange(float(low), float(high), bool(one.get("drive_mode", 0)))
