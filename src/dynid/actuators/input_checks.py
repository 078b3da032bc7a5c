"""Checks of the logs for actuator identification: joints, units, motion, commands and missing rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from dynid.actuators.chains import robot_chains
from dynid.actuators.laws import DriveLaw
from dynid.actuators.problem import ActuatorLog
from dynid.arrays import Array, Ints
from dynid.errors import ModelError, RecordingError
from dynid.recording import Recording
from dynid.robot import Robot

_MIN_ROWS = 50  # smallest number of rows of a log
MIN_MOTION = 5e-3  # rad: a motion below a few counts of a 12-bit encoder identifies nothing
_MIN_ERROR = 1e-6  # rad: commands that differ less from the positions are copies of the positions
_MAX_TURNS = 4.0 * np.pi  # rad: larger positions are implausible for an arm or a leg
_NORMALISED_REACH = 100.0  # largest position in the normalised units -100..100 of some recorders
_MAX_MISSING_SHARE = 0.2  # share of missing rows, beyond which the closed loop cannot be simulated
_ENCODER_JUMP = 1.8 * np.pi  # rad between two rows: no joint moves so far, but a single-turn encoder wraps around
MAX_SIMULATED_TIME = 480.0  # s of all logs together, times joints; identification of an arm then takes half a minute
# pieces of a log that alone exceeds MAX_SIMULATED_TIME; each piece has its own initial state
_PIECES_PER_LONG_LOG = 8
_GOLDEN_SECTION = 0.6180339887  # its multiples modulo 1 are spread evenly for any number of logs
GAP_INTERVALS = 3.5  # median intervals between two rows beyond which rows are missing


def check_log(log: Recording, robot: Robot, law: DriveLaw) -> list[str]:
    """Return remarks on a log; raise RecordingError if actuators cannot be identified from the log."""
    source = log.source
    if log.dof != robot.dof:
        raise RecordingError(f"{source} has {log.dof} joints, but robot '{robot.name}' has {robot.dof}",
                             "name the joints of the columns with --set 'log.joints=[...]'", "wrong-joints")
    if len(log) < _MIN_ROWS:
        ignored = next((f" ({note})" for note in log.notes if " are ignored" in note), "")
        raise RecordingError(f"{source} has only {len(log)} rows{ignored}; at least {_MIN_ROWS} are needed",
                             "record several seconds", "too-short")
    if log.reference is None and law.name != "current":
        raise RecordingError(f"{source} has no commanded positions, which drive law '{law.name}' needs",
                             "map their columns with --set 'log.reference=[...]'", "no-command")
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
                                 "record the command that is sent to the drive, not the position that the drive "
                                 "reports; map the command with --set 'log.reference=[...]'", "command-is-position")
    return _missing_rows(log)


def log_entries(logs: Recording | ActuatorLog | Sequence[Recording | ActuatorLog]) -> list[ActuatorLog]:
    """Return the given logs (at least one) as a list of `ActuatorLog`."""
    given = [logs] if isinstance(logs, Recording | ActuatorLog) else list(logs)
    if not given:
        raise ModelError("no log is given", "give at least one log with positions and commands", "no-log")
    return [one if isinstance(one, ActuatorLog) else ActuatorLog(one) for one in given]


def usable_logs(entries: Sequence[ActuatorLog], robot: Robot, law: DriveLaw) -> tuple[list[ActuatorLog], list[str]]:
    """Return the usable logs, shortened if they are long, and remarks on all logs; raise an error if none is usable."""
    usable, remarks, problems = list[ActuatorLog](), list[str](), list[RecordingError]()
    for log in entries:
        try:
            recording, jumps = unwrapped(log.recording, log.robot or robot)
            remarks += [*check_log(recording, log.robot or robot, law), *jumps]
            if recording.reference is None:  # the law has no position loop, so the simulation uses no commands
                recording = replace(recording, reference=recording.q)
            usable.append(replace(log, recording=recording))
        except RecordingError as problem:
            problems.append(problem)
            remarks.append(f"A log is left out: {problem.reason}")
    if not usable:
        raise problems[0]
    limit = MAX_SIMULATED_TIME / max(len(chain.joints) for chain in robot_chains(robot))
    whole = sum(_duration(log) for log in usable)
    if whole > limit:
        pieces = [piece for log in usable for piece in
                  _pieces(log, limit / _PIECES_PER_LONG_LOG if _duration(log) > limit else limit)]
        pieces = [piece for piece in pieces if len(piece.recording) >= _MIN_ROWS
                  and np.any(np.ptp(piece.recording.q, axis=0) >= MIN_MOTION)]
        order = np.argsort((np.arange(len(pieces)) * _GOLDEN_SECTION) % 1.0)
        seconds = np.array([_duration(piece) for piece in pieces])
        kept = sorted(order[:max(int(np.searchsorted(np.cumsum(seconds[order]), limit)), 1)])
        remarks.append(f"{len(kept)} of {len(pieces)} {'logs' if len(pieces) == len(usable) else 'parts of the logs'} "
                       f"are used ({seconds[kept].sum():.0f} of {whole:.0f} s), evenly spread, because simulating all "
                       "takes long. Give fewer logs, or --start and --stop, to choose other parts.")
        usable = [pieces[k] for k in kept]
    return usable, remarks


def unwrapped(log: Recording, robot: Robot) -> tuple[Recording, list[str]]:
    """Return a log without jumps of one turn in positions and commands, which occur at the end of an encoder's range,
    and remarks on the joints that were unwrapped."""
    if log.dof != robot.dof or len(log) < 2:
        return log, []
    q, command, remarks = log.q.copy(), None if log.reference is None else log.reference.copy(), list[str]()
    for j, joint in enumerate(robot.joints):
        own = [array for array in (q, command) if array is not None]
        counts = [int(np.sum(np.abs(np.diff(array[:, j])) > _ENCODER_JUMP)) for array in own]
        if joint.prismatic or not any(counts) or max(float(np.ptp(array[:, j])) for array in own) > _MAX_TURNS:
            continue  # positions beyond two turns are degrees or ticks, which are refused
        for array in own:
            array[:, j] = np.unwrap(array[:, j])
        if command is not None:
            command[:, j] += 2.0 * np.pi * np.round((q[0, j] - command[0, j]) / (2.0 * np.pi))
        remarks.append(f"{log.source}: the position of {_name(log, j)} jumps by a turn {max(counts)} times at the end "
                       "of the encoder's range; the jumps are removed")
    return (replace(log, q=q, reference=command), remarks) if remarks else (log, [])


def _duration(log: ActuatorLog) -> float:
    """Return the time from the first row of a log to the last, s."""
    return float(log.recording.t[-1] - log.recording.t[0])


def _pieces(log: ActuatorLog, longest: float) -> list[ActuatorLog]:
    """Return a log divided into equal pieces of at most `longest` s."""
    count = int(np.ceil(_duration(log) / longest))
    bounds = np.linspace(0, len(log.recording), count + 1).astype(int)
    return [log] if count < 2 else [replace(log, recording=log.recording[a:b]) for a, b in pairwise(bounds)]


def still_joints(logs: Sequence[Recording]) -> Ints:
    """Return the indices of the joints that do not move in any log."""
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
            if array is log.reference:  # the positions are in a plausible unit
                raise RecordingError(f"{log.source}: commands of {_name(log, j)} reach {reach:.4g}, but its positions "
                                     f"only {np.max(np.abs(log.q[:, j])):.4g} rad: their units are not the same",
                                     "convert the commands to the unit of the positions", "wrong-unit")
            _refuse_unit(log, f"{what} of {_name(log, j)} reach {reach:.4g}", own, reach)
    if log.reference is not None:
        far = np.median(np.abs(log.reference - log.q), axis=0) > np.pi
        if far.any():
            j = int(np.argmax(far))
            raise RecordingError(f"{log.source}: commands and positions of {_name(log, j)} differ by more than half a "
                                 "turn: their units or zero positions differ",
                                 "convert both to radians with the same zero position", "wrong-unit")


def _refuse_unit(log: Recording, reason: str, own: Array, reach: float) -> None:
    if np.all(own == np.round(own)) and reach > 360.0:
        raise RecordingError(f"{log.source}: {reason} and are whole numbers: they are probably encoder ticks",
                             "convert the ticks to radians first, by 2 pi / 4096 for a 12-bit encoder", "wrong-unit")
    if reach <= _NORMALISED_REACH * 1.001 and reach > 0.9 * _NORMALISED_REACH:
        raise RecordingError(f"{log.source}: {reason}: they are probably normalised to -100..100, or degrees",
                             "record degrees (use_degrees in LeRobot) and add --set log.unit=deg", "wrong-unit")
    raise RecordingError(f"{log.source}: {reason} rad: they are probably in degrees", "add --set log.unit=deg",
                         "wrong-unit")


def _missing_rows(log: Recording) -> list[str]:
    """Return remarks on missing rows; raise an error if too many are missing for a simulation."""
    intervals = np.diff(log.t)
    usual = float(np.median(intervals))
    long = intervals > GAP_INTERVALS * usual
    lost = float(np.sum(intervals[intervals > 1.5 * usual] / usual - 1.0))
    share = lost / (lost + len(log))
    if share > _MAX_MISSING_SHARE:
        raise RecordingError(f"{log.source}: {100 * share:.0f} % of the rows are missing, at the median interval of "
                             f"{1e3 * usual:.3g} ms", "record again at a rate that the bus can follow, or resample "
                             "the log", "dropped-packets")
    if not long.any():
        return []
    first = int(np.argmax(long))
    return [f"{log.source}: {int(long.sum())} gaps of more than {GAP_INTERVALS:g} intervals, the first after row "
            f"{first + 1} ({log.t[first]:.4g} s); the simulation restarts after each gap"]


def _name(log: Recording, j: int) -> str:
    return log.joints[j] if log.joints else f"joint {j + 1}"
