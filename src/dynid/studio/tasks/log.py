"""A log of the run for plots and replay: its signals, the mapping of its columns, marks, and problems."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array, Bools, true_ranges
from dynid.dynamics import gravity
from dynid.errors import DynidError, RecordingError
from dynid.recording import Recording
from dynid.recording.check import hanging_positions
from dynid.recording.layout import LogLayout, lay_out
from dynid.recording.mapping import SIGNALS
from dynid.recording.mapping import Mapping as LogMapping
from dynid.recording.preparation.selection import at_limit, found_limits, longer_than, moving_joints, moving_speeds
from dynid.recording.presets import find_preset, recognised
from dynid.recording.source import Source, open_source
from dynid.report.figure import thinned_rows
from dynid.report.geometry import configurations
from dynid.robot import Robot
from dynid.runs.loading import read_logs
from dynid.runs.logs import LogSettings, log_settings
from dynid.runs.models import make_robot
from dynid.runs.settings import RunSettings
from dynid.studio.confinement import Confinement
from dynid.studio.tasks.numbers import plain
from dynid.studio.tasks.robot import base_coordinates, tree_positions
from dynid.studio.tasks.settings import run_settings
from dynid.studio.voice import ProgressChannel

# points of a plot; rate, Hz, and number of postures of a replay
_PLOT_POINTS, _REPLAY_HZ, _MAX_REPLAY_POSES, _PLOT_DIGITS = 4000, 50.0, 6000, 6
_BASE_COLUMNS = {"pose": ("base x", "base y", "base z", *(f"base quaternion {axis}" for axis in "xyzw")),
                 "velocity": ("base velocity x", "base velocity y", "base velocity z",
                              *(f"base quaternion {axis}" for axis in "xyzw")),
                 "imu": (*(f"IMU specific force {axis}" for axis in "xyz"), *(f"IMU rate {axis}" for axis in "xyz"))}
GAP_INTERVALS = 5.0  # intervals
_MIN_SLOW_TIME = 0.1  # s: shorter slow motion is a reversal
_MIN_REST_TIME = 0.25  # s: shortest rest of all joints
MAX_MARKS = 200  # marks of one kind
# share of gravity in a joint's largest torque, above which its torque at rest is compared
_MIN_GRAVITY_SHARE = 0.05
# share of gravity in the torque at rest: nearly none, or with the wrong sign
_NO_GRAVITY_SHARE, _WRONG_SIGN_SHARE = 0.25, -0.25


def chosen_log(params: Mapping[str, Any], settings: RunSettings) -> LogSettings:
    """Return the log with the requested number among the logs for identification or for validation."""
    which = "validate_on" if params.get("role") == "validation" else "logs"
    logs, index = getattr(settings, which), params.get("log", 0)
    if not isinstance(index, int) or not 0 <= index < len(logs):
        raise DynidError(f"the run has {len(logs)} {'validation ' if which == 'validate_on' else ''}logs, but no log "
                         f"number {str(index)[:20]}", where=which)
    return log_settings(logs[index])


def log(params: Mapping[str, Any], voice: ProgressChannel, bounds: Confinement) -> dict[str, Any]:
    """Return a log of the run for the page: its guessed mapping, decimated curves, a replay and remarks."""
    settings = run_settings(bounds)
    chosen = chosen_log(params, settings)
    with bounds.trusting(settings.robot, *chosen.files):
        robot = make_robot(settings, allows_free_base=True)
        bounds.check_files(chosen.files)
        (recording,) = read_logs([chosen], settings, robot)
        read_as = _read_as(chosen, settings, robot)
    return {**log_facts(recording, robot), **read_as}


def columns(params: Mapping[str, Any], voice: ProgressChannel, bounds: Confinement) -> dict[str, Any]:
    """Return the names of a log's columns or arrays, independent of the settings."""
    settings = run_settings(bounds)
    chosen = chosen_log(params, settings)
    with bounds.trusting(*chosen.files):
        bounds.check_files(chosen.files)
        source = open_source(Path(chosen.files[0]), _reading(chosen, settings))
        try:
            fields = source.fields
            shapes = {name: list(shape) for name, shape in fields.items() if len(shape) > 1}
            return {"columns": _names(source), "preset_fits": [one.name for one in recognised(fields)],
                    "guessed": _guessed(chosen, settings, bounds), "shapes": shapes or None}
        finally:
            source.close()


def _guessed(chosen: LogSettings, settings: RunSettings, bounds: Confinement) -> Any:
    """Return the mapping that would be used, even if reading fails later; None if the columns are ambiguous."""
    try:
        with bounds.trusting(settings.robot):
            return _read_as(chosen, settings, make_robot(settings, allows_free_base=True))["guessed"]
    except DynidError:
        return None


def _reading(chosen: LogSettings, settings: RunSettings) -> LogMapping:
    """Return the settings for opening a file, without the mapping of its columns."""
    kept = ("topic", "delimiter", "decimal", "header", "skip", "array", "axis")
    table = {**(settings.log if chosen.inherit else {}), **chosen.own}
    return LogMapping.from_settings({key: table[key] for key in kept if table.get(key) is not None})


def _names(source: Source) -> list[str]:
    return [name for name, shape in source.fields.items() if shape != ()]


def _read_as(chosen: LogSettings, settings: RunSettings, robot: Robot) -> dict[str, Any]:
    """Return the columns of a log file, the mapping used, and the origin of each setting of this mapping."""
    given = chosen.mapping(settings.log)
    layout = lay_out(Path(chosen.files[0]), given, robot)
    try:
        used = layout.mapping
        preset = None if used.preset is None else find_preset(used.preset)
        preset_keys = set() if preset is None else set(preset.settings)
        named = {*settings.log, *chosen.own}

        def origin(key: str) -> str:
            return "given" if key in named else "preset" if key in preset_keys else "guessed"

        shown = {key: {"value": _signal_columns(layout, key), "from": origin(key)} for key in ("time", *SIGNALS)
                 if key in layout.columns and not (key == "torque" and used.current is not None)}
        if used.current is not None:
            shown["current"] = {"value": _signal_columns(layout, "torque"), "from": origin("current")}
        others = [key for key in used.model_fields_set if key not in shown and key not in SIGNALS]
        shown |= {key: {"value": getattr(used, key), "from": origin(key)} for key in others
                  if key not in ("preset", "time") and getattr(used, key) is not None}
        if layout.time_unit is not None:
            shown["time_unit"] = {"value": layout.time_unit, "from": origin("time_unit")}
        main = layout.sources[0]
        return {"columns": _names(main), "guessed": shown, "preset": used.preset,
                "preset_fits": [one.name for one in recognised(main.fields)]}
    finally:
        layout.close()


def _signal_columns(layout: LogLayout, signal: str) -> Any:
    """Return the column names of a signal, one per joint, or the key of its array."""
    fields = [one.field for one in layout.columns[signal]]
    return fields[0] if len(set(fields)) == 1 else fields


def log_facts(recording: Recording, robot: Robot) -> dict[str, Any]:
    """Return a recording as plain data for the plots of the page."""
    dq = speeds(recording)
    rows = thinned_rows(np.hstack([recording.q, recording.tau]), _PLOT_POINTS)
    findings = marks(recording, dq)
    present = ["position", "torque", *(name for name in ("reference", "wrench", "temperature", "motor_position",
               "sensed_torque", "target_torque", "target_current") if getattr(recording, name) is not None)]
    if recording.dq is not None:
        present.append("velocity")
    return {
        "name": recording.source, "rows": len(recording), "seconds": recording.duration, "rate": recording.rate,
        "signals": present, "joints": _column_names(recording), "notes": list(recording.notes),
        "dropped": recording.dropped,
        "dropped_rows": [{"file": Path(one.file).name, "row": one.row, "why": one.why}
                         for one in recording.dropped_rows],
        "t": plain(recording.t[rows], 9), "q": plain(recording.q[rows].T, _PLOT_DIGITS),
        "dq": plain(dq[rows].T, _PLOT_DIGITS), "tau": plain(recording.tau[rows].T, _PLOT_DIGITS),
        "reference": None if recording.reference is None else plain(recording.reference[rows].T, _PLOT_DIGITS),
        **_recording_replay(robot, recording), "marks": findings,
        "standstill": standstill(recording, dq, robot),
        "findings": [{"code": one["kind"], "text": one["sentence"]} for one in findings]}


def _column_names(recording: Recording) -> list[str]:
    """Return names of the plotted columns: those of a free base, then the joints."""
    log = getattr(recording.to_samples, "log", None)
    base = () if log is None else _BASE_COLUMNS[log.base_motion]
    return [*base, *recording.joints[len(base):]]


def _recording_replay(robot: Robot, recording: Recording) -> dict[str, Any]:
    """Return the replay of a recording, with the logged pose of a free base."""
    log = getattr(recording.to_samples, "log", None)
    if not robot.has_free_base or log is None:
        return replay(robot, recording.t, recording.q)
    q = np.hstack([np.zeros((len(recording.t), robot.free_coordinates)), recording.q[:, recording.base_width:]])
    return replay(robot, recording.t, q, log.pose_at(recording.t))


def replay(robot: Robot, t: Array, q: Array, base_pose: Array | None = None) -> dict[str, Any]:
    """Return positions of all joints of the tree at up to 50 Hz, one row per time, None if loops do not close.

    Shapes: t (samples,), q (samples, dof), base_pose (samples, 7) of a free base, see `Samples`.
    """
    step = max(1.0 / _REPLAY_HZ, (t[-1] - t[0]) / _MAX_REPLAY_POSES)
    at = np.unique(np.searchsorted(t, np.arange(t[0], t[-1], step)).clip(0, len(t) - 1))
    q = np.ascontiguousarray(q[at])
    if robot.has_free_base:
        shown = configurations(robot, q, None if base_pose is None else base_pose[at])
        q = np.hstack([base_coordinates(shown[:, :7]), q[:, robot.free_coordinates:]])
    try:
        poses = tree_positions(robot, q)
    except (DynidError, RecordingError):
        return {"t_replay": None, "q_tree": None}
    return {"t_replay": plain(t[at], 9), "q_tree": plain(poses, _PLOT_DIGITS)}


def speeds(recording: Recording) -> Array:
    """Return velocities (samples, dof): as logged, or by differences over a few samples."""
    if recording.dq is not None:
        return recording.dq
    if len(recording) < 3:
        return np.zeros_like(recording.q)
    raw = np.gradient(recording.q, recording.t, axis=0)
    width = max(1, round(0.02 * recording.rate))
    kernel = np.ones(width) / width
    return np.stack([np.convolve(column, kernel, mode="same") for column in raw.T], axis=1)


def marks(recording: Recording, dq: Array) -> list[dict[str, Any]]:
    """Return time intervals of a log to mark in plots, each with a remark."""
    return [*_gaps(recording), *_saturated(recording), *_hanging(recording), *_slow(recording, dq),
            *_dropped(recording)]


def _mark(kind: str, joint: str | None, start: float, stop: float, sentence: str) -> dict[str, Any]:
    return {"kind": kind, "joint": joint, "start": float(start), "stop": float(stop), "sentence": sentence}


def _gaps(one: Recording) -> list[dict[str, Any]]:
    steps = np.diff(one.t)
    if not len(steps):
        return []
    found = np.flatnonzero(steps > GAP_INTERVALS * np.median(steps))[:MAX_MARKS]
    return [_mark("gap", None, one.t[k], one.t[k + 1], f"no sample for {steps[k]:.3g} s from {one.t[k]:.4g} s on")
            for k in found]


def _stretches(one: Recording, mask: Bools) -> list[tuple[float, float]]:
    return [(float(one.t[a]), float(one.t[b - 1])) for a, b in true_ranges(mask)][:MAX_MARKS]


def _saturated(one: Recording) -> list[dict[str, Any]]:
    lower, upper = found_limits(one.tau, 5)
    hit, made = at_limit(one.tau, lower, upper, 5), []
    for j, name in enumerate(one.joints):
        limit = " and ".join(f"{x:.4g}" for x in (lower[j], upper[j]) if np.isfinite(x))
        made += [_mark("saturation", name, a, b, f"the torque of {name} is at its limit of {limit} from {a:.4g} to "
                                                 f"{b:.4g} s: these rows are not used")
                 for a, b in _stretches(one, hit[:, j])]
    return made


def _hanging(one: Recording) -> list[dict[str, Any]]:
    return [_mark("stuck", one.joints[hang.joint], one.t[hang.start], one.t[hang.stop - 1],
                  f"the position of {one.joints[hang.joint]} does not change from {one.t[hang.start]:.4g} s on while "
                  "the joint probably moves: the encoder may be stuck")
            for hang in hanging_positions(one.t, one.q)[:MAX_MARKS]]


def _slow(one: Recording, dq: Array) -> list[dict[str, Any]]:
    moving = moving_joints(one.q)
    slow, made = moving_speeds(dq, np.ones(dq.shape, dtype=bool)), []
    rows = max(2, round(_MIN_SLOW_TIME * one.rate))
    for j in np.flatnonzero(moving):
        name = one.joints[j]
        made += [_mark("slow", name, a, b, f"{name} hardly moves from {a:.4g} to {b:.4g} s: the sign of Coulomb "
                                           "friction is undefined there, so these rows are not used")
                 for a, b in _stretches(one, longer_than(np.abs(dq[:, j]) < slow[j], rows))]
    return made


def _dropped(one: Recording) -> list[dict[str, Any]]:
    """Return rows that could not be used; their times are unknown, so they are marked at the start of the log."""
    first = float(one.t[0]) if len(one) else 0.0
    return [_mark("dropped", None, first, first, f"row {row.row} is ignored: {row.why}") for row in one.dropped_rows]


def standstill(recording: Recording, dq: Array, robot: Robot) -> dict[str, Any] | None:
    """Compare the torque at rest with the gravity of the nominal model, for each joint; None without rest or inertias.
    The ratio is near one for correct torques, negative for a wrong sign, and near zero for torques without gravity."""
    if robot.bodies_without_inertia or robot.followers is not None or not len(recording):
        return None
    slow = np.maximum(moving_speeds(dq, np.ones(dq.shape, dtype=bool)), 1e-4)
    still = longer_than(np.all(np.abs(dq) < slow, axis=1), max(3, round(_MIN_REST_TIME * recording.rate)))
    if not still.any():
        return None
    stretches = true_ranges(still)
    tau = np.array([recording.tau[a:b].mean(axis=0) for a, b in stretches])
    weight = gravity(robot, robot.inertias, np.array([recording.q[a:b].mean(axis=0) for a, b in stretches]))
    joints, said = [], []
    top = np.abs(recording.tau).max(axis=0)
    for j, name in enumerate(recording.joints):
        power = float(weight[:, j] @ weight[:, j])
        loaded = np.sqrt(power / len(weight)) > _MIN_GRAVITY_SHARE * top[j] > 0.0
        share = float(tau[:, j] @ weight[:, j]) / power if loaded else None
        joints.append({"name": name, "torque": plain(tau[:, j].mean()), "gravity": plain(weight[:, j].mean()),
                       "share": share})
        if share is not None and share < _WRONG_SIGN_SHARE:
            said.append(f"the torque of {name} at rest has the opposite sign of gravity: set torque_sign to -1, or "
                        "sign to -1 if its position is reversed too")
        elif share is not None and share < _NO_GRAVITY_SHARE:
            said.append(f"the torque of {name} at rest contains almost no gravity torque: check whether the driver "
                        "removes it")
    sentence = "; ".join(said) or "the torques at rest agree with the weight of the robot"
    return {"seconds": float(sum(recording.t[b - 1] - recording.t[a] for a, b in stretches)), "joints": joints,
            "sentence": sentence, "problem": bool(said)}
