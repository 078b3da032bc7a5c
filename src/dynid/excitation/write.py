"""Motions as files for controllers: CSV, NPZ, and ROS 2 trajectory_msgs/JointTrajectory in YAML."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dynid.errors import DynidError
from dynid.excitation.trajectory import Trajectory, times
from dynid.files import write_whole
from dynid.robot import numbered_joints


def write_trajectory(trajectory: Trajectory, path: str | Path, *, rate: float = 100.0,
                     joints: Sequence[str] | None = None) -> None:
    """By the ending: .csv (t, q_NAME .., dq_NAME .., ddq_NAME ..), .npz (t, q, dq, ddq, joints) or .yaml (ROS 2)."""
    target = Path(path)
    names = tuple(joints) if joints is not None else numbered_joints(trajectory.dof)
    if len(names) != trajectory.dof:
        raise DynidError(f"the motion has {trajectory.dof} joints, got {len(names)} names")
    writers = {".csv": _csv, ".npz": _npz, ".yaml": _yaml, ".yml": _yaml}
    writer = writers.get(target.suffix.lower())
    if writer is None:
        raise DynidError(f"{target} should end in {', '.join(writers)}: CSV, NumPy or ROS 2 JointTrajectory")
    writer(trajectory, target, rate, names)


def _csv(trajectory: Trajectory, path: Path, rate: float, names: tuple[str, ...]) -> None:
    t = times(trajectory, rate)
    motion = trajectory.at(t)
    head = ["t", *(f"{what}_{name}" for what in ("q", "dq", "ddq") for name in names)]
    with write_whole(path) as file:
        file.write(",".join(head) + "\n")
        for row in np.column_stack([t, motion.q, motion.dq, motion.ddq]):
            file.write(",".join(f"{x:.12g}" for x in row) + "\n")


def _npz(trajectory: Trajectory, path: Path, rate: float, names: tuple[str, ...]) -> None:
    t = times(trajectory, rate)
    motion = trajectory.at(t)
    with write_whole(path, "wb") as file:
        np.savez_compressed(file, t=t, q=motion.q, dq=motion.dq, ddq=motion.ddq, joints=np.array(names))


def _yaml(trajectory: Trajectory, path: Path, rate: float, names: tuple[str, ...]) -> None:
    """What `ros2 topic pub` and rosidl_runtime_py read: header, joint_names, points with time_from_start."""
    t = times(trajectory, rate)
    motion = trajectory.at(t)

    def numbers(row: np.ndarray) -> str:
        return "[" + ", ".join(repr(float(f"{x:.12g}")) for x in row) + "]"

    with write_whole(path) as file:
        file.write("header:\n  stamp: {sec: 0, nanosec: 0}\n  frame_id: ''\njoint_names:\n")
        for name in names:
            file.write("- '" + name.replace("'", "''") + "'\n")
        file.write("points:\n")
        for k, moment in enumerate(t):
            nanoseconds = round(float(moment) * 1e9)
            file.write(f"- positions: {numbers(motion.q[k])}\n  velocities: {numbers(motion.dq[k])}\n"
                       f"  accelerations: {numbers(motion.ddq[k])}\n  effort: []\n"
                       f"  time_from_start: {{sec: {nanoseconds // 10 ** 9}, nanosec: {nanoseconds % 10 ** 9}}}\n")
