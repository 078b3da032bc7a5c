"""What must hold of a log before actuators are identified from it, each with one sentence where it does not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.actuators.laws import DriveLaw
from dynid.arrays import Array, Ints
from dynid.errors import RecordingError
from dynid.recording import Recording
from dynid.robot import Robot

_MIN_ROWS = 50  # of a log
MIN_MOTION = 5e-3  # rad: a motion below a few counts of an encoder of 12 bits identifies nothing
_MIN_ERROR = 1e-6  # rad: commands as near as this to the positions are copies of them
_MAX_TURNS = 4.0 * np.pi  # rad: positions beyond are hardly those of an arm or a leg
_NORMALISED_REACH = 100.0  # of positions that a recorder has normalised
_MAX_MISSING_SHARE = 0.2  # of the rows: with more missing, a closed loop cannot be simulated between the others
GAP_INTERVALS = 3.5  # median intervals between two rows beyond which rows are missing


def check_log(log: Recording, robot: Robot, law: DriveLaw) -> list[str]:
    """Raise RecordingError where a log cannot be used; remarks on a log that can."""
    source = log.source
    if log.dof != robot.dof:
        raise RecordingError(f"{source}: has {log.dof} joints, but robot '{robot.name}' has {robot.dof}",
                             "name the joints of the columns with --set 'log.joints=[...]'", "wrong-joints")
    if len(log) < _MIN_ROWS:
        raise RecordingError(f"{source}: has only {len(log)} rows; at least {_MIN_ROWS} are needed",
                             "record several seconds", "too-short")
    if log.reference is None and law.name != "current":
        raise RecordingError(f"{source}: has no commanded positions, which drive law '{law.name}' needs",
                             "map them with --set 'log.reference=[...]'", "no-command")
    _check_units(log, robot)
    still = np.ptp(log.q, axis=0) < MIN_MOTION
    if still.all():
        raise RecordingError(f"{source}: no joint moves by more than {MIN_MOTION:g} rad, so nothing can be identified",
                             "record a motion, for example by `dynid excite`", "log-at-rest")
    if log.reference is not None and law.name != "current":
        same = np.max(np.abs(log.reference - log.q), axis=0) < _MIN_ERROR
        if same[~still].any():
            joint = _name(log, int(np.flatnonzero(same & ~still)[0]))
            raise RecordingError(f"{source}: the commanded position of {joint} equals its position in all rows",
                                 "record the command that is sent to the drive, not the position that it reports; "
                                 "map it with --set 'log.reference=[...]'", "command-is-position")
    return _missing_rows(log)


def still_joints(logs: Sequence[Recording]) -> Ints:
    """Return the numbers of the joints that move in no log."""
    return np.flatnonzero(np.all([np.ptp(log.q, axis=0) < MIN_MOTION for log in logs], axis=0))


def _check_units(log: Recording, robot: Robot) -> None:
    for what, array in (("Positions", log.q), ("Commands", log.reference)):
        if array is None:
            continue
        for j, joint in enumerate(robot.joints):
            if joint.prismatic:
                continue
            own = array[:, j]
            reach = float(np.max(np.abs(own)))
            limit = max(abs(joint.lower), abs(joint.upper))
            limit = limit if np.isfinite(limit) and limit > 0 else np.pi
            if reach <= max(_MAX_TURNS, 1.5 * limit) and (reach <= 2.0 * limit + 1.0 or np.ptp(own) <= 2.0 * np.pi):
                continue
            _refuse_unit(log, f"{what} of {_name(log, j)} reach {reach:.4g}", own, reach)
    if log.reference is not None:
        far = np.median(np.abs(log.reference - log.q), axis=0) > np.pi
        if far.any():
            j = int(np.argmax(far))
            raise RecordingError(f"{log.source}: commands and positions of {_name(log, j)} differ by more than half a "
                                 "turn: their units or zeros are not the same",
                                 "convert both to radians from the same zero", "wrong-unit")


def _refuse_unit(log: Recording, found: str, own: Array, reach: float) -> None:
    if np.all(own == np.round(own)) and reach > 360.0:
        raise RecordingError(f"{log.source}: {found} and are whole numbers: they are probably encoder ticks",
                             "convert them before, by 2 pi / 4096 for an encoder of 12 bits", "wrong-unit")
    if reach <= _NORMALISED_REACH * 1.001 and reach > 0.9 * _NORMALISED_REACH:
        raise RecordingError(f"{log.source}: {found}: they are probably normalised to -100..100, or degrees",
                             "record degrees (use_degrees in LeRobot) and add --set log.unit=deg", "wrong-unit")
    raise RecordingError(f"{log.source}: {found} rad: they are probably in degrees", "add --set log.unit=deg",
                         "wrong-unit")


def _missing_rows(log: Recording) -> list[str]:
    """Remarks on missing rows; an error where so many are missing that nothing can be simulated."""
    intervals = np.diff(log.t)
    usual = float(np.median(intervals))
    long = intervals > GAP_INTERVALS * usual
    lost = float(np.sum(intervals[intervals > 1.5 * usual] / usual - 1.0))
    share = lost / (lost + len(log))
    if share > _MAX_MISSING_SHARE:
        raise RecordingError(f"{log.source}: {100 * share:.0f} % of the rows are missing, at the usual interval of "
                             f"{1e3 * usual:.3g} ms",
                             "record again at a rate that the bus can follow, or resample the log", "dropped-packets")
    if not long.any():
        return []
    first = int(np.argmax(long))
    return [f"{log.source}: {int(long.sum())} gaps of more than {GAP_INTERVALS:g} intervals, the first after row "
            f"{first + 1} ({log.t[first]:.4g} s); the simulation starts anew after each"]


def _name(log: Recording, j: int) -> str:
    return log.joints[j] if log.joints else f"joint {j + 1}"
