"""Read and write trajectory files: CSV and NPZ; write ROS 2 trajectory_msgs/JointTrajectory as YAML."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import DynidError
from dynid.escape import csv_line, yaml_string
from dynid.excitation.trajectories.trajectory import Motion, Trajectory, times
from dynid.files import load_arrays, read_file, write_whole
from dynid.robot import numbered_joints
from dynid.simulation import Reference

MAX_MOTION_VALUE = 1e9  # largest plausible number in rad, rad/s and rad/s^2, or with m
Extra = Callable[[Array], Mapping[str, Array]]  # function of times (m,) that returns columns (m,) by name
_MOST_BYTES = 256 << 20  # of a motion in a file, hours at 1 kHz
_UNIFORM_TOLERANCE = 1e-3  # share of a sampling period by which time stamps may deviate from even spacing


def read_trajectory(path: str | Path, joints: Sequence[str]) -> Reference:
    """Return the motion of a trajectory file at its own rate, with the joints in the order of `joints`.

    The file is .csv (columns t, q_NAME, and optionally dq_NAME, ddq_NAME) or .npz (t, q, dq, ddq, joints).
    """
    path = Path(path)
    readers = {".csv": _read_csv, ".npz": _read_npz}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise DynidError(f"{path} should end in {' or '.join(readers)}, the formats that `dynid excite` writes",
                         code="unknown-extension")
    try:
        t, parts = reader(path, tuple(joints))
    except OSError as problem:
        raise DynidError(f"cannot read the motion {path}: {problem.strerror or problem}", code="no-such-file") from None
    if len(t) < 3 or not np.isfinite(t).all():
        raise DynidError(f"the motion {path} needs at least three rows with a finite time, got {len(t)}")
    period = (t[-1] - t[0]) / (len(t) - 1)
    if not period > 0 or np.abs(t - t[0] - period * np.arange(len(t))).max() > _UNIFORM_TOLERANCE * period:
        raise DynidError(f"the rows of {path} are not evenly spaced in time; write the motion at a fixed rate",
                         code="uneven-time")
    for name, values in parts.items():
        wrong = np.argwhere(~(np.abs(values) <= MAX_MOTION_VALUE))
        if len(wrong):
            row, j = wrong[0]
            raise DynidError(f"{path}: {name} of joint '{joints[j]}' is {values[row, j]:g} in row {row + 1}, which is "
                             "not plausible for a robot")
    return Reference.from_arrays(parts["q"], parts.get("dq"), parts.get("ddq"), rate=1.0 / period)


def _read_csv(path: Path, joints: tuple[str, ...]) -> tuple[Array, dict[str, Array]]:
    content = read_file(path, _MOST_BYTES)
    try:
        lines = io.StringIO(content.decode("utf-8"), newline="")
        head = next(csv.reader(lines), [])  # a quoted name may contain a line break
        numbers = lines.read()
        rows = np.loadtxt(io.StringIO(numbers), delimiter=",", ndmin=2) if numbers.strip() else np.zeros((0, len(head)))
    except (ValueError, csv.Error) as problem:
        raise DynidError(f"{path} is not a motion: {problem}", code="not-a-motion") from None
    if "t" not in head or rows.shape[1] != len(head):
        raise DynidError(f"{path} is not a motion: its first line should be t, q_NAME.., dq_NAME.., ddq_NAME..",
                         code="not-a-motion")
    parts = {}
    for kind in ("q", "dq", "ddq"):
        names = [f"{kind}_{joint}" for joint in joints]
        missing = [name for name in names if name not in head]
        if missing and (kind == "q" or len(missing) < len(names)):
            raise DynidError(f"{path} has no column '{missing[0]}' for a joint of the robot; its columns are "
                             f"{', '.join(name for name in head if name.startswith(f'{kind}_')) or ', '.join(head)}",
                             code="no-column")
        if not missing:
            parts[kind] = np.ascontiguousarray(rows[:, [head.index(name) for name in names]])
    return rows[:, head.index("t")], parts


def _read_npz(path: Path, joints: tuple[str, ...]) -> tuple[Array, dict[str, Array]]:
    try:
        file = load_arrays(path)
        names = tuple(map(str, file["joints"]))
        t, parts = np.asarray(file["t"], dtype=float), {kind: np.asarray(file[kind], dtype=float)
                                                        for kind in ("q", "dq", "ddq") if kind in file}
        position = parts["q"]
    except (KeyError, ValueError, TypeError):
        raise DynidError(f"{path} is not a motion: the file should contain t, q, dq, ddq and joints") from None
    missing = [name for name in joints if name not in names]
    if missing:
        raise DynidError(f"{path} has no joint '{missing[0]}' of the robot; its joints are {', '.join(names)}")
    if t.ndim != 1 or position.shape != (len(t), len(names)):
        raise DynidError(f"{path} is not a motion: q has the shape {position.shape}, but the file has {len(t)} times "
                         f"and {len(names)} joints")
    order = [names.index(name) for name in joints]
    return t, {kind: np.ascontiguousarray(values[:, order]) for kind, values in parts.items()}


def write_trajectory(trajectory: Trajectory, path: str | Path, *, rate: float = 100.0,
                     joints: Sequence[str] | None = None, extra: Extra | None = None) -> None:
    """Write a trajectory as .csv (t, q_NAME, dq_NAME, ddq_NAME), .npz (t, q, dq, ddq, joints) or .yaml (ROS 2).

    extra: function of time that returns more columns. In YAML, columns tau_NAME are written as effort; others are
    omitted.
    """
    target = Path(path)
    names = tuple(joints) if joints is not None else numbered_joints(trajectory.dof)
    if len(names) != trajectory.dof:
        raise DynidError(f"the motion has {trajectory.dof} joints, got {len(names)} names; give one name per joint",
                         code="wrong-number-of-names")
    writers = {".csv": _write_csv, ".npz": _write_npz, ".yaml": _write_yaml, ".yml": _write_yaml}
    writer = writers.get(target.suffix.lower())
    if writer is None:
        raise DynidError(f"{target} should end in {', '.join(writers)}: CSV, NumPy or ROS 2 JointTrajectory",
                         code="unknown-extension")
    t = times(trajectory, rate)
    writer(target, t, trajectory.at(t), names, {} if extra is None else extra(t))


def _write_csv(path: Path, t: Array, motion: Motion, names: tuple[str, ...], more: Mapping[str, Array]) -> None:
    head = ["t", *(f"{what}_{name}" for what in ("q", "dq", "ddq") for name in names), *more]
    with write_whole(path) as file:
        file.write(csv_line(head))
        for row in np.column_stack([t, motion.q, motion.dq, motion.ddq, *more.values()]):
            file.write(",".join(f"{x:.12g}" for x in row) + "\n")


def _write_npz(path: Path, t: Array, motion: Motion, names: tuple[str, ...], more: Mapping[str, Array]) -> None:
    arrays: dict[str, Any] = {"t": t, "q": motion.q, "dq": motion.dq, "ddq": motion.ddq, "joints": np.array(names),
                              **more}
    with write_whole(path, "wb") as file:
        np.savez_compressed(file, **arrays)


def _write_yaml(path: Path, t: Array, motion: Motion, names: tuple[str, ...], more: Mapping[str, Array]) -> None:
    """Write the YAML that `ros2 topic pub` and rosidl_runtime_py read: header, joint_names, points with
    time_from_start."""
    efforts = [more[f"tau_{name}"] for name in names if f"tau_{name}" in more]
    effort = np.column_stack(efforts) if efforts else np.zeros((len(t), 0))

    def numbers(row: np.ndarray) -> str:
        return "[" + ", ".join(repr(float(f"{x:.12g}")) for x in row) + "]"

    with write_whole(path) as file:
        file.write("header:\n  stamp: {sec: 0, nanosec: 0}\n  frame_id: ''\njoint_names:\n")
        for name in names:
            file.write(f"- {yaml_string(name)}\n")
        file.write("points:\n")
        for k, moment in enumerate(t):
            nanoseconds = round(float(moment) * 1e9)
            file.write(f"- positions: {numbers(motion.q[k])}\n  velocities: {numbers(motion.dq[k])}\n"
                       f"  accelerations: {numbers(motion.ddq[k])}\n  effort: {numbers(effort[k])}\n"
                       f"  time_from_start: {{sec: {nanoseconds // 10 ** 9}, nanosec: {nanoseconds % 10 ** 9}}}\n")
