"""Kinematic tree of a robot as arrays for the compiled kernels."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dynid.arrays import Array, Ints
from dynid.robot import Joint, Robot

FREE_ROOT = -2  # parent of the first coordinate of a free base


class Tree(NamedTuple):
    """Kinematic tree of a robot with n joints as arrays.

    Attributes:
        parent: parent body of each joint (n,), -1 for the base, FREE_ROOT for the first coordinate of a free base.
        pose: four 3 x 4 matrices (n, 48) of the pose of a body in its parent, which is affine in (cos q, sin q, q) for
            revolute and prismatic joints: T(q) = T0 + cos(q) Tc + sin(q) Ts + q Tq.
        axis: angular velocity and velocity of the body's origin for unit joint velocity, body frame (n, 6).
        gravity: gravity in the base frame (3,), m/s^2; zero for a free base, where the root's acceleration includes it.
    """

    parent: Ints
    pose: Array
    axis: Array
    gravity: Array


def joint_pose(joint: Joint) -> Array:
    """Return the constants T0, Tc, Ts, Tq (4, 3, 4) of a joint's pose T0 + cos(q) Tc + sin(q) Ts + q Tq."""
    fixed, cos, sin, slide = np.zeros((4, 4, 4))
    if joint.prismatic:
        fixed[:] = np.eye(4)
        slide[2, 3] = 1.0
    else:
        fixed[2, 2] = fixed[3, 3] = 1.0
        cos[0, 0] = cos[1, 1] = 1.0
        sin[0, 1], sin[1, 0] = -1.0, 1.0
    return np.array([(joint.before @ part @ joint.after)[:3] for part in (fixed, cos, sin, slide)])


def joint_axis(joint: Joint) -> Array:
    """Return the angular velocity of a body and the velocity of its origin (6,) for unit joint velocity, body frame."""
    rotation, origin = joint.after[:3, :3], joint.after[:3, 3]
    z = rotation[2]
    if joint.prismatic:
        return np.concatenate([np.zeros(3), z])
    return np.concatenate([z, np.cross(z, rotation.T @ origin)])


@lru_cache(maxsize=256)
def robot_tree(robot: Robot) -> Tree:
    """Return the kinematic tree of a robot as arrays for the compiled kernels; it is computed once per robot."""
    pose = np.array([joint_pose(joint).ravel() for joint in robot.joints])
    axis = np.array([joint_axis(joint) for joint in robot.joints])
    parent, gravity = robot.parents.astype(np.int64), np.array(robot.gravity, dtype=float)
    if robot.has_free_base:
        parent[0], gravity = FREE_ROOT, np.zeros(3)
    return Tree(parent, pose, axis, gravity)
