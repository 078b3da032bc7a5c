"""The robot itself: what it answers and what it refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from refusals import refused
from robots import random_robot

from dynid.errors import RobotError
from dynid.robot import BASE, Body, Joint, Robot


def tree() -> Robot:
    """Joint 1 on the base, 2 and 3 on link 1, 4 on link 3, 5 on the base."""
    parents = [BASE, 0, 0, 2, BASE]
    joints = tuple(Joint(f"j{i + 1}", "revolute", parent) for i, parent in enumerate(parents))
    return Robot("tree", joints, tuple(Body(f"b{i + 1}") for i in range(5)))


def test_who_carries_whom() -> None:
    robot = tree()
    expected = np.array([[1, 1, 1, 1, 0], [0, 1, 0, 0, 0], [0, 0, 1, 1, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 1]], bool)
    assert np.array_equal(robot.supports, expected)
    assert not robot.serial and robot.dof == 5


def test_joints_by_name_and_number() -> None:
    robot = tree()
    assert robot.joint_index("j3") == 2 and robot.joint_index(3) == 2
    with refused(RobotError, "unknown-joint", "elbow", "j1", "j2"):
        robot.joint_index("elbow")
    with refused(RobotError, "no-joint", "1", "5", "0"):
        robot.joint_index(0)


def test_frames() -> None:
    robot = random_robot(np.random.default_rng(0), 3)
    assert robot.frame("tool").body == 2 and robot.frame("link2").body == 1 and robot.frame("base").body == BASE
    with refused(RobotError, "unknown-frame", "hand", "link1"):
        robot.frame("hand")


def test_variations() -> None:
    robot = random_robot(np.random.default_rng(0), 3)
    assert robot.with_gravity([0, 0, 0]).gravity.tolist() == [0, 0, 0]
    np.testing.assert_array_equal(robot.with_inertias(2 * robot.inertias).inertias, 2 * robot.inertias)
    with refused(RobotError, "bad-inertias", "3", "2"):
        robot.with_inertias(np.zeros((2, 10)))
    with refused(RobotError, "bad-gravity"):
        robot.with_gravity([0, 0, np.nan])


def test_what_is_no_robot() -> None:
    robot = tree()
    with refused(RobotError, "joints-without-bodies", "5", "4"):
        replace(robot, bodies=robot.bodies[:4])
    with refused(RobotError, "duplicate-name", "'b1'"):
        replace(robot, bodies=(robot.bodies[0], *robot.bodies[:4]))
    with refused(RobotError, "bad-robot", "'j1'", "'tree'"):
        replace(robot, joints=(replace(robot.joints[0], parent=3), *robot.joints[1:]))
    with refused(RobotError, "no-moving-joint"):
        Robot("nothing", (), ())
