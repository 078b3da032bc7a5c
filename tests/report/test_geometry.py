"""A robot in space, against closed forms and an independent kinematics."""

from __future__ import annotations

import numpy as np
import pytest
from robots import body_poses

from dynid import dynamics
from dynid.report import geometry
from dynid.robot import Robot
from dynid.robot import inertia as ten


def test_ellipsoid_of_a_solid_ellipsoid() -> None:
    axes, mass, centre = np.array([0.3, 0.2, 0.1]), 4.0, np.array([0.1, -0.2, 0.3])
    turn = np.linalg.qr(np.random.default_rng(2).normal(size=(3, 3)))[0]
    principal = mass / 5 * (np.sum(axes ** 2) - axes ** 2)
    found, directions = geometry.half_axes(ten.from_central(mass, centre, turn @ np.diag(principal) @ turn.T))
    assert np.allclose(found, np.sort(axes))
    assert np.allclose(np.abs(directions.T @ turn), np.eye(3)[::-1], atol=1e-6)


def test_posture_is_one_of_the_log() -> None:
    q = np.zeros((100, 2))
    q[40] = 1.0, -0.5
    assert geometry.bent_posture(q).tolist() == [1.0, -0.5]
    assert geometry.bent_posture(np.ones((3, 2))).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("name", ["arm3r", "kuka-lwr4", "emps"])
def test_link_lines_pass_through_every_joint_and_body(name: str) -> None:
    robot = Robot.builtin(name)
    q = np.random.default_rng(0).uniform(-0.5, 0.5, robot.dof)
    poses = np.array(body_poses(robot, q))
    lines, frames = geometry.link_lines(robot, poses), geometry.joint_frames(robot, poses)
    assert frames.shape == (robot.dof, 4, 4) and np.isnan(lines[-1]).all() and np.array_equal(lines[0], np.zeros(3))
    for point in (*frames[:, :3, 3], *poses[:, :3, 3]):
        assert np.nanmin(np.linalg.norm(lines - point, axis=1)) < 1e-12
    # A joint turns about, or slides along, its own z axis: body and joint frame share it, and its line.
    for joint, frame, pose in zip(robot.joints, frames, poses, strict=True):
        moved = np.linalg.inv(frame) @ pose @ np.linalg.inv(joint.after)
        assert np.allclose(moved[:3, 2], [0.0, 0.0, 1.0]) and np.allclose(moved[:2, 3], 0.0)
    assert np.array_equal(geometry.last_point(lines), lines[-2])


def test_axis_lines_are_as_long_as_asked() -> None:
    frames = np.tile(np.eye(4), (2, 1, 1))
    frames[1, :3, 3] = 1.0, 2.0, 3.0
    lines = geometry.axis_lines(frames, 0.1)
    assert lines[:2].tolist() == [[0.0, 0.0, -0.1], [0.0, 0.0, 0.1]] and np.isnan(lines[[2, 5]]).all()
    assert np.allclose(lines[3:5].mean(axis=0), [1.0, 2.0, 3.0])
    low, high = geometry.bounds([lines, np.full((1, 3), 9.0)])
    assert np.allclose(low, [0.0, 0.0, -0.1]) and np.allclose(high, 9.0)


def test_surface_of_an_ellipsoid_is_closed_and_has_its_size() -> None:
    axes, mass = np.array([0.3, 0.2, 0.1]), 4.0
    body = ten.from_central(mass, np.array([0.1, -0.2, 0.3]), np.diag(mass / 5 * (np.sum(axes ** 2) - axes ** 2)))
    pose = np.eye(4)
    pose[:3, :3] = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    pose[:3, 3] = 1.0, 0.0, -1.0
    found = geometry.ellipsoid(body, pose, 1.0)
    assert found is not None
    assert np.allclose(found.centre, pose[:3, :3] @ [0.1, -0.2, 0.3] + pose[:3, 3])
    inside = (found.points - found.centre) @ pose[:3, :3] / axes  # on a unit sphere again
    assert np.allclose(np.linalg.norm(inside, axis=1), 1.0)
    # The triangles close: their signed volumes sum to that of the ellipsoid, less what flat faces cut off.
    corners = (found.points - found.centre)[found.triangles]
    volume = abs(np.sum(np.linalg.det(corners))) / 6.0
    assert 0.9 < volume / (4.0 / 3.0 * np.pi * np.prod(axes)) < 1.0
    assert geometry.ellipsoid(np.zeros(10), pose, 1.0) is None
    far = geometry.ellipsoid(ten.from_central(mass, np.array([50.0, 0.0, 0.0]), np.eye(3)), np.eye(4), 1.0)
    assert far is not None and np.linalg.norm(far.centre) == pytest.approx(1.5)


def test_square_lies_on_its_plane() -> None:
    normal = np.array([1.0, 2.0, 2.0]) / 3.0
    corners = geometry.plane_square(normal, 0.7, np.array([1.0, 1.0, 1.0]), 0.5)
    assert np.allclose(corners @ normal, 0.7)
    assert np.allclose(np.linalg.norm(np.diff(corners, axis=0), axis=1), 1.0)
    assert np.allclose(np.cross(np.array([1.0, 1.0, 1.0]) - corners.mean(axis=0), normal), 0.0)


def test_the_rods_of_a_delta_end_at_its_plate() -> None:
    robot = Robot.builtin("delta")
    q = np.array([0.1, -0.2, 0.3])
    poses = dynamics.forward_kinematics(robot, q)
    lines = geometry.link_lines(robot, poses)
    plate = dynamics.frame_pose(robot, "tool", q)
    for angle in (0.0, 2.0 * np.pi / 3.0, -2.0 * np.pi / 3.0):  # its corners, 45 mm from the middle
        corner = plate[:3, 3] + 0.045 * np.array([np.cos(angle), np.sin(angle), 0.0])
        close = np.linalg.norm(lines - corner, axis=1) < 1e-9
        assert close.sum() == 2  # a rod's end and the plate's place
    assert geometry.joint_frames(robot, poses).shape == (3, 4, 4)
    np.testing.assert_allclose(geometry.joint_frames(robot, poses)[0][:3, 3], [0.2, 0.0, 0.0], atol=1e-12)
