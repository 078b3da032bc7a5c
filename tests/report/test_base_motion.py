"""Drawings of a base that moves: angles, displacement, and the robot at some instants."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from walkers import quadruped

from dynid.dynamics import frame_pose
from dynid.recording import Samples
from dynid.report import geometry
from dynid.report.pages.identification.base_motion import euler_angles, path_figure, signal_figure
from dynid.robot import Robot


@pytest.fixture(scope="module")
def log() -> Samples:
    """A quadruped that goes forward and turns."""
    t = np.linspace(0.0, 4.0, 400)
    q = np.zeros((len(t), 18))
    q[:, 6:] = np.tile([0.0, 0.8, -1.6], 4) + 0.1 * np.sin(t)[:, None]
    turn = Rotation.from_rotvec(np.column_stack([0.1 * np.sin(t), 0.05 * t, t])).as_quat()
    samples = Samples.from_arrays(q, 0.0 * q, 0.0 * q, 0.0 * q, t=t, rate=100.0)
    return replace(samples, base_pose=np.column_stack([0.5 * t + 2.0, 0.1 * t, np.full(len(t), 0.31), turn]))


def test_angles_against_scipy(log: Samples) -> None:
    assert log.base_pose is not None
    expected = Rotation.from_quat(log.base_pose[:, 3:]).as_euler("ZYX", degrees=True)[:, ::-1]
    found = euler_angles(log.base_pose[:, 3:])
    np.testing.assert_allclose(found, np.degrees(np.unwrap(np.radians(expected), axis=0)), atol=1e-9)


def test_signals_of_a_pose_and_without(log: Samples) -> None:
    traces = signal_figure(log).data
    assert len(traces) == 12
    x = np.array(traces[0]["y"])
    assert x[0] == 0.0 and x[-1] == pytest.approx(2.0, abs=0.01)  # displacement, not position
    assert len(signal_figure(replace(log, base_pose=None)).data) == 6


def test_robot_is_drawn_along_its_path(log: Samples) -> None:
    robot = Robot.load(quadruped())
    traces = path_figure(robot, log).data
    path = traces[-1]
    assert path["name"] == "path of the base"
    assert path["x"][0] == pytest.approx(2.0) and path["x"][-1] == pytest.approx(4.0)
    last = np.array([[np.nan if v is None else v for v in traces[4][axis]] for axis in "xyz"])
    q = geometry.configurations(robot, log.q[-1:], log.base_pose[-1:])
    toe = frame_pose(robot, "RR_toe", q)[0, :3, 3]
    assert np.nanmin(np.linalg.norm(last - toe[:, None], axis=0)) < 1e-4


def test_robot_without_a_position_stands_on_the_ground(log: Samples) -> None:
    robot = Robot.load(quadruped())
    q = geometry.configurations(robot, log.q, None)
    lowest = min(frame_pose(robot, f"{leg}_toe", q[:1])[0, 2, 3] for leg in ("FL", "FR", "RL", "RR"))
    assert lowest == pytest.approx(0.0, abs=1e-9) and (q[:, 3:7] == [0.0, 0.0, 0.0, 1.0]).all()
