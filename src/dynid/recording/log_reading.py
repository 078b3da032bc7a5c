"""Read a log into a Recording."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Mapping as Dictionary
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array, Spool
from dynid.errors import ModelError, RecordingError, require_type
from dynid.recording.check import (
    Extremes,
    check_clock,
    check_rate,
    content_notes,
    timing_notes,
    unit_notes,
    velocity_notes,
)
from dynid.recording.clean import LISTED, cleaned
from dynid.recording.drive_gains import gain_covariance, gains_from_log
from dynid.recording.mapping import FROM_LOG, KNOWN_LOAD, Mapping, per_joint
from dynid.recording.measured import Measuring
from dynid.recording.recording import SIGNAL_ATTRIBUTES, DroppedRow, Recording
from dynid.recording.source import shared_file
from dynid.recording.whole_body import WHOLE_BODY_SIGNALS
from dynid.robot import Robot
from dynid.robot.followers import as_logged

MAX_PLAIN_REACH = 4.0 * np.pi  # rad: position-controlled servos rotate at most two turns to each side
MAX_NORMALISED = 100.0  # end of the normalised range of LeRobot
MIN_TICKS_REACH = 360.0  # larger whole numbers are ticks, not degrees
MIN_MOTION = 1e-3  # rad or m: a joint that moves less does not show whether it is commanded
SAME_SHARE = 0.99  # share of rows equal to the measured position above which a signal is no command
MAX_DUTY = 1.05  # rounding of registers may slightly exceed one
ROBOT_ENDINGS = (".urdf", ".xml", ".mjcf", ".xacro")  # of files that are no mappings
Paths = str | Path | Sequence[str | Path]


def read(path: Paths, mapping: Mapping | Dictionary[str, Any] | str | Path | None = None, robot: Robot | None = None,
         *, at_once: int | None = None, **overrides: Any) -> Recording:
    """Read one log as a `Recording`: joint side, SI units, in the joint order of the robot.

    Args:
        path: a file, a folder (a ROS 2 bag, or files that the mapping names), or several files of one log that follow
            each other in time.
        mapping: a `Mapping`, a table of its settings, or a TOML file with a [log] table. Missing settings are guessed
            from the column names.
        robot: robot whose joints are in the log.
        at_once: number of rows to read at a time, for a log larger than memory. The recording is then kept in temporary
            files (folder TMPDIR); the numbers are the same. CSV, Parquet, HDF5, MATLAB 7.3, bags and uncompressed NPZ
            and NPY are read piece by piece, other formats whole.
        overrides: single settings of the mapping.

    Returns:
        The recording. Its `notes` state guesses, ignored rows and possible problems.
    """
    require_type(path, (str, Path), "read", "read('log.csv', robot=robot)")
    require_type(robot, (Robot, type(None)), "read", "read('log.csv', robot=dynid.Robot.load('robot.urdf'))")
    if at_once is not None and at_once < 1:
        raise RecordingError(f"a log must be read at least one row at a time, got at_once = {at_once}",
                             code="bad-block-size")
    paths = [Path(one) for one in ([path] if isinstance(path, str | Path) else path)]
    rules = resolve_mapping(mapping, overrides)
    if not paths:
        raise RecordingError("the list of paths contains no file to read")
    shared_file(paths, rules)
    collect: Callable[[], list[Array] | Spool] = list if at_once is None else Spool
    time, signals, notes = collect(), dict[str, list[Array] | Spool](), list[str]()
    extremes: Extremes | None = None
    dropped, listed, until, repeated = 0, list[DroppedRow](), 0.0, 0
    measuring = None if robot is None or not (robot.measured or robot.driven) else Measuring(robot)
    walker = robot
    robot = robot.with_fixed_base() if robot is not None and robot.has_free_base else robot
    columns: Dictionary[str, tuple[str, ...]] = {}
    for part in cleaned(paths, rules, walker if measuring is None else as_logged(measuring.robot), at_once):
        columns = part.labels or columns
        if measuring is not None:
            part = replace(part, signals=measuring.own(part.signals, part.joints, part.lacking),
                           joints=measuring.robot.joint_names)
        time.append(part.t)
        until, repeated = max(until, part.until), repeated + part.repeated
        for name, array in part.signals.items():
            signals.setdefault(name, collect()).append(array)
        notes += part.notes
        dropped, listed = dropped + part.dropped, listed + list(part.dropped_rows)[:LISTED - len(listed)]
        if len(part.t):
            new = Extremes.from_signals(part.signals["position"], part.signals["torque"])
            extremes = new if extremes is None else extremes | new
            if part.torque_free and not part.unit_said and not columns:
                check_servo_units(part.signals["position"], part.joints, str(paths[0]))
            if robot is not None:  # degrees read as radians raise at once, not at the end of a long log
                unit_notes(extremes, robot, part.unit_said, str(paths[0]))
    window = window_text(rules)
    if extremes is None:
        end = f" {window}; the log ends at {until:.6g} s" if window else ""
        raise RecordingError(f"{paths[0]}: contains no row that can be used{end}",
                             code="empty-window" if window else "no-usable-row")
    t, arrays = _whole(time), {name: _whole(parts) for name, parts in signals.items()}
    if window_text(rules):
        notes.append(f"only rows {window_text(rules)} are used, {len(t)} of them; the log ends at {until:.6g} s")
    check_clock(t, repeated, str(paths[0]))
    check_rate(t, rules.time_unit is not None or rules.rate is not None, str(paths[0]))
    notes += timing_notes(t, arrays["position"])
    notes += velocity_notes(t, arrays["position"], arrays.get("velocity"))
    notes += content_notes(extremes, part.joints, part.joints if part.torque_free else rules.unmeasured)
    if robot is not None:
        notes += unit_notes(extremes, robot, part.unit_said, str(paths[0]))
    notes += [] if measuring is None else measuring.notes
    # Joints without names are named by their numbers, so that unmeasured ones can be listed.
    numbered = tuple(str(j + 1) for j in range(arrays["position"].shape[1])) if part.torque_free else ()
    joints = part.joints or numbered
    found = replace(make_recording(t, arrays, joints, paths, notes), dropped=dropped, dropped_rows=tuple(listed),
                    unmeasured=joints if part.torque_free else tuple(one for one in rules.unmeasured if one in joints),
                    measured=() if measuring is None else measuring.robot.measured, base_columns=columns)
    if part.torque_free and not columns:
        check_commands(found)
        check_duty(found)
    found = replace(found, notes=(*found.notes, f"the log contains {', '.join(found.signals)}"))
    if rules.gain_std is not None:
        given = rules.gain_std
        is_covariance = isinstance(given, list) and any(isinstance(row, list) for row in given)
        each: Any = given if is_covariance or isinstance(given, int | float) else per_joint(
            given, rules.joints or found.joints or None, found.dof, "gain_std", str(paths[0]))
        found = replace(found, gain_covariance=gain_covariance(each, found.dof))
    if rules.commanded:
        return commanded(found)
    if rules.drive_gain == FROM_LOG:
        return gains_from_log(found).applied(found)
    return replace(found, unscaled=True) if rules.drive_gain == KNOWN_LOAD else found


def window_text(rules: Mapping) -> str:
    """Return the time window of a mapping in words, such as "from 2 s to 10 s"; empty if all rows are used."""
    if rules.start is None and rules.stop is None:
        return ""
    end = "on" if rules.stop is None else f"to {rules.stop:g} s"
    return f"from {rules.start or 0.0:g} s {end}"


def _whole(parts: list[Array] | Spool) -> Array:
    """Return the array whose parts were collected in memory or in a temporary file."""
    return np.concatenate(parts) if isinstance(parts, list) else parts.array()


def make_recording(t: Array, signals: Dictionary[str, Array], joints: Sequence[str], paths: Sequence[Path],
                   notes: Sequence[str]) -> Recording:
    """Return a Recording from signals (samples, dof) by their names in the mapping."""
    arrays: dict[str, Any] = {SIGNAL_ATTRIBUTES.get(name, name): np.ascontiguousarray(array)
                              for name, array in signals.items() if name not in WHOLE_BODY_SIGNALS}
    base = {name: array for name, array in signals.items() if name in WHOLE_BODY_SIGNALS}
    return Recording(t=t, base_signals=base, joints=tuple(joints), source=", ".join(map(str, paths)),
                     notes=tuple(dict.fromkeys(notes)), **arrays)


def resolve_mapping(mapping: Mapping | Dictionary[str, Any] | str | Path | None,
                    overrides: Dictionary[str, Any]) -> Mapping:
    """Return a `Mapping` from a table of settings, a TOML file or None, with `overrides` of single settings."""
    require_type(mapping, (Mapping, Dictionary, str, Path, type(None)), "the mapping of a log",
                 "read('log.csv', robot=robot), or read('log.csv', mapping, robot)")
    if isinstance(mapping, str | Path):
        if Path(mapping).suffix.lower() in ROBOT_ENDINGS:
            raise ModelError(f"'{mapping}' is a robot, not the mapping of a log",
                             f"call read('log.csv', robot=dynid.Robot.load('{mapping}'))", "wrong-type")
        mapping = Mapping.load(mapping)
    return (mapping if isinstance(mapping, Mapping) else Mapping.from_settings(mapping or {})).having(**overrides)


def commanded(recording: Recording) -> Recording:
    """Return the log with commanded positions, velocities and torques in place of the measured ones.

    A model-based controller computes the torques from the motion by its own model (Ardiani, s. 2.3.6.1), which such a
    log identifies.
    """
    positions, torques = recording.reference, recording.target_torque
    if positions is None or torques is None:
        missing = [name for name, signal in (("reference", positions), ("target_torque", torques)) if signal is None]
        raise RecordingError(f"{recording.source}: commanded = true needs the commanded positions and torques; map "
                             f"{' and '.join(missing)} under [log], or with --set 'log.{missing[0]}=[...]'")
    return replace(recording, q=positions, dq=recording.reference_velocity, tau=torques, reference=None,
                   reference_velocity=None, target_torque=None, target_current=None, external_torque=None,
                   current=None, voltage=None, duty=None, motor_position=None, sensed_torque=None,
                   gain_covariance=None, unscaled=False, unmeasured=(),
                   notes=(*recording.notes, "commanded positions and torques are used instead of the measured ones"))


def check_servo_units(positions: Array, joints: Sequence[str], source: str) -> None:
    """Raise an error if positions (samples, joints) without a given unit are probably not in rad."""
    reach = np.max(np.abs(positions), axis=0, initial=0.0)
    j = int(np.argmax(reach))
    if reach[j] <= MAX_PLAIN_REACH:
        return
    what = f"{source}: positions of joint {joints[j] if joints else j + 1} reach {reach[j]:.4g}, too far for rad"
    if reach[j] > MIN_TICKS_REACH and np.all(positions == np.round(positions)):
        raise RecordingError(f"{what}, and are whole numbers: they are probably encoder ticks; add "
                             "--set log.unit=ticks --set log.offset=-2048", code="wrong-unit", where="log.unit")
    if np.max(reach) <= MAX_NORMALISED:
        raise RecordingError(f"{what}: they are in degrees (add --set log.unit=deg) or normalised to -100..100 (add "
                             "--set log.unit=normalised --set log.calibration=FILE.json)", code="wrong-unit",
                             where="log.unit")
    raise RecordingError(f"{what}: they are probably in degrees; add --set log.unit=deg, or --set log.unit=rad if they "
                         "are in radians", code="wrong-unit", where="log.unit")


def check_commands(recording: Recording) -> None:
    """Raise an error if the commands of a moving joint equal its measured positions in the same or in the next row."""
    if recording.reference is None or len(recording) < 3:
        return
    moving = np.flatnonzero(np.ptp(recording.q, axis=0) > MIN_MOTION)
    for j in moving.tolist():
        q, command = recording.q[:, j], recording.reference[:, j]
        changes = np.abs(np.diff(q)) > 0  # a joint at rest agrees with any reached command
        if np.sum(changes) < 2:
            continue
        same = np.mean(command[1:][changes] == q[1:][changes])
        later = np.mean(command[:-1][changes] == q[1:][changes])
        earlier = np.mean(command[1:][changes] == q[:-1][changes])
        if max(same, later, earlier) >= SAME_SHARE:
            which = "its measured position" + ("" if same >= SAME_SHARE else " one row later" if later >= SAME_SHARE
                                               else " one row earlier")
            name = recording.joints[j] if recording.joints else j + 1
            raise RecordingError(f"{recording.source}: the command of joint {name} equals {which}, so it was not the "
                                 "command that the servo received", "record the goal position that is sent to the "
                                 "servo, and map it with --set 'log.reference=[...]'", "command-is-position",
                                 where="log.reference")


def check_duty(recording: Recording) -> None:
    """Raise an error if duty cycles exceed one: they have another unit, or their sign bits were not decoded."""
    if recording.duty is None or not len(recording):
        return
    reach = np.max(np.abs(recording.duty), axis=0)
    j = int(np.argmax(reach))
    if reach[j] > MAX_DUTY:
        name = recording.joints[j] if recording.joints else j + 1
        raise RecordingError(f"{recording.source}: the duty cycle of joint {name} reaches {reach[j]:.4g}, but must be "
                             "between -1 and 1: it has another unit, or its sign bit was not decoded",
                             "give the factor with --set 'log.scale={duty=0.001}', or decode the sign bit in the "
                             "recorder", "duty-range", where="log.duty")
