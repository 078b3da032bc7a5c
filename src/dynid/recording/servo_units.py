"""Units of servos: encoder ticks, and the normalised positions of LeRobot with their calibration."""

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
from dynid.recording.mapping import SI, Mapping, per_joint

TICKS, NORMALISED = "ticks", "normalised"  # units of positions that depend on the servo
DEFAULT_TICKS_PER_TURN = 4096.0  # of Feetech STS and SMS, and of Dynamixel X and MX
_HALF_RANGE = 100.0  # LeRobot writes -100 to 100 for a joint, 0 to 100 for a gripper
_GRIPPER = "gripper"  # the joint that LeRobot writes as 0 to 100


@dataclass(frozen=True)
class ServoRange:
    """Range of motion of one servo.

    Attributes:
        low, high: encoder ticks at its ends.
        is_reversed: whether the normalised value falls as the ticks grow.
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
        raise RecordingError(f"{source}: ticks_per_turn must be above zero", where="log.ticks_per_turn")
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
    """Return the ranges in a calibration file of LeRobot, beside the log or relative to the working folder."""
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
        raise RecordingError(f"the calibration {path} is not a table of servos, as LeRobot writes it",
                             where="log.calibration")
    return {name: _range(name, one, str(path)) for name, one in table.items()}


def _range(name: str, one: Dictionary[str, Any], source: str) -> ServoRange:
    low, high = one.get("range_min"), one.get("range_max")
    if not isinstance(low, int | float) or not isinstance(high, int | float) or not low < high:
        raise RecordingError(f"{source}: joint '{name}' has no range_min below its range_max, in ticks",
                             where="log.calibration")
    return ServoRange(float(low), float(high), bool(one.get("drive_mode", 0)))
