"""Read a log into a Recording."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Mapping as Dictionary
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array, Spool
from dynid.errors import RecordingError
from dynid.recording.check import Extremes, check_rate, content_notes, timing_notes, unit_notes
from dynid.recording.clean import LISTED, cleaned
from dynid.recording.commanded import commanded
from dynid.recording.drive_gains import gain_covariance, gains_from_log
from dynid.recording.layout import shared_file
from dynid.recording.mapping import FROM_LOG, KNOWN_LOAD, Mapping, per_joint
from dynid.recording.measured import Measuring
from dynid.recording.recording import SIGNAL_ATTRIBUTES, DroppedRow, Recording
from dynid.recording.servo_checks import check_commands, check_duty, check_servo_units
from dynid.recording.whole_body import WHOLE_BODY_SIGNALS
from dynid.robot import Robot
from dynid.robot.roles import as_logged

Paths = str | Path | Sequence[str | Path]


def read(path: Paths, mapping: Mapping | Dictionary[str, Any] | str | Path | None = None, robot: Robot | None = None,
         *, at_once: int | None = None, **overrides: Any) -> Recording:
    """Read one log as a `Recording`: joint side, SI units, in the joint order of the robot.

    Args:
        path: a file, a folder (a ROS 2 bag, or files that the mapping names), or several files of one log that follow
            each other in time.
        robot: robot whose joints the log holds.
        mapping: a `Mapping`, a table of its settings, or a TOML file with a [log] table. Missing settings are guessed
            from the column names.
        at_once: number of rows to read at a time, for a log larger than memory. The recording is then kept in temporary
            files (folder TMPDIR); the numbers are the same. CSV, Parquet, HDF5, MATLAB 7.3, bags and uncompressed NPZ
            and NPY are read piece by piece, other formats whole.
        overrides: single settings of the mapping.

    Returns:
        The recording. Its `notes` state what was guessed, left out or looks wrong.
    """
    if at_once is not None and at_once < 1:
        raise RecordingError(f"a log must be read at least one row at a time, got at_once = {at_once}",
                             code="bad-block-size")
    paths, rules = paths_of(path), mapping_of(mapping, overrides)
    shared_file(paths, rules)
    collect: Callable[[], _Collected | Spool] = _Collected if at_once is None else Spool
    time, signals, notes = collect(), dict[str, _Collected | Spool](), list[str]()
    extremes: Extremes | None = None
    dropped, listed, until = 0, list[DroppedRow](), 0.0
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
        until = max(until, part.until)
        for name, array in part.signals.items():
            signals.setdefault(name, collect()).append(array)
        notes += part.notes
        dropped, listed = dropped + part.dropped, listed + list(part.dropped_rows)[:LISTED - len(listed)]
        if len(part.t):
            new = Extremes.of(part.signals["position"], part.signals["torque"])
            extremes = new if extremes is None else extremes | new
            if part.torque_free and not part.unit_said and not columns:
                check_servo_units(part.signals["position"], part.joints, str(paths[0]))
            if robot is not None:  # degrees read as radians stop at once, not at the end of a long log
                unit_notes(extremes, robot, part.unit_said, str(paths[0]))
    if extremes is None and window_of(rules):
        raise RecordingError(f"{paths[0]}: has no row {window_of(rules)} that can be used; the log ends at "
                             f"{until:.6g} s", code="empty-window")
    if extremes is None:
        raise RecordingError(f"{paths[0]}: contains no row that can be used", code="no-usable-row")
    t, arrays = time.array(), {name: spool.array() for name, spool in signals.items()}
    if window_of(rules):
        notes.append(f"only rows {window_of(rules)} are used, {len(t)} of them; the log ends at {until:.6g} s")
    check_rate(t, rules.time_unit is not None or rules.rate is not None, str(paths[0]))
    notes += timing_notes(t, arrays["position"])
    notes += content_notes(extremes, part.joints, part.joints if part.torque_free else rules.unmeasured)
    if robot is not None:
        notes += unit_notes(extremes, robot, part.unit_said, str(paths[0]))
    notes += [] if measuring is None else measuring.notes
    # Joints without names are called by their numbers: which of them have no torque is stated by name.
    numbered = tuple(str(j + 1) for j in range(arrays["position"].shape[1])) if part.torque_free else ()
    found = replace(recording_of(t, arrays, part.joints or numbered, paths, notes),
                    dropped=dropped, dropped_rows=tuple(listed),
                    unmeasured=part.joints or numbered if part.torque_free else
                    tuple(name for name in rules.unmeasured if name in part.joints),
                    measured=() if measuring is None else measuring.robot.measured)
    found = replace(found, base_columns=columns)
    if part.torque_free and not columns:
        check_commands(found)
        check_duty(found)
    found = replace(found, notes=(*found.notes, f"the log contains {', '.join(found.signals)}"))
    if rules.gain_deviation is not None:
        given = rules.gain_deviation
        is_covariance = isinstance(given, list) and any(isinstance(row, list) for row in given)
        each: Any = given if is_covariance or isinstance(given, int | float) else per_joint(
            given, rules.joints or found.joints or None, found.dof, "gain_deviation", str(paths[0]))
        found = replace(found, gain_deviation=gain_covariance(each, found.dof))
    if rules.commanded:
        return commanded(found)
    if rules.drive_gain == FROM_LOG:
        return gains_from_log(found).applied(found)
    return replace(found, unscaled=True) if rules.drive_gain == KNOWN_LOAD else found


def window_of(rules: Mapping) -> str:
    """Return the time window of a mapping in words; empty for all."""
    if rules.start is None and rules.stop is None:
        return ""
    end = "on" if rules.stop is None else f"to {rules.stop:g} s"
    return f"from {rules.start or 0.0:g} s {end}"


class _Collected:
    """An array in memory to which parts are appended, with the interface of `Spool`."""

    def __init__(self) -> None:
        self._parts: list[Array] = []

    def append(self, part: Array) -> None:
        self._parts.append(part)

    def array(self) -> Array:
        return np.concatenate(self._parts)


def recording_of(t: Array, signals: Dictionary[str, Array], joints: Sequence[str], paths: Sequence[Path],
                 notes: Sequence[str]) -> Recording:
    """Return a Recording from signals (samples, dof) by their names in the mapping."""
    arrays: dict[str, Any] = {SIGNAL_ATTRIBUTES.get(name, name): np.ascontiguousarray(array)
                              for name, array in signals.items() if name not in WHOLE_BODY_SIGNALS}
    base = {name: array for name, array in signals.items() if name in WHOLE_BODY_SIGNALS}
    return Recording(t=t, base_signals=base, joints=tuple(joints), source=", ".join(map(str, paths)),
                     notes=tuple(dict.fromkeys(notes)), **arrays)


def paths_of(path: Paths) -> list[Path]:
    """Return one or several paths as a list; raise an error if it is empty."""
    paths = [Path(path)] if isinstance(path, str | Path) else [Path(item) for item in path]
    if not paths:
        raise RecordingError("the list of paths contains no file to read")
    return paths


def mapping_of(mapping: Mapping | Dictionary[str, Any] | str | Path | None, overrides: Dictionary[str, Any]) -> Mapping:
    """Return the Mapping of a table, a file or None, with some settings changed."""
    if mapping is None:
        rules = Mapping()
    elif isinstance(mapping, Mapping):
        rules = mapping
    elif isinstance(mapping, str | Path):
        rules = Mapping.load(mapping)
    else:
        rules = Mapping.of(mapping)
    return rules.having(**overrides)
