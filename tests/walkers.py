"""Robots with a free base for tests, and their motions in the conventions of Pinocchio and MuJoCo."""

from __future__ import annotations

from typing import Any

import numpy as np
from robots import random_inertia, random_robot

from dynid.arrays import Array
from dynid.robot import BASE, Body, Robot
from dynid.robot import inertia as ten
from reproductions._walkers import humanoid, quadruped, small_humanoid

__all__ = ["configurations", "free_pinocchio", "free_tree", "humanoid", "quadruped", "small_humanoid", "to_mujoco"]


def free_tree(seed: int, dof: int) -> Robot:
    """A random tree on a free base."""
    rng = np.random.default_rng(seed)
    tree = random_robot(rng, dof)
    return Robot(tree.name, tree.joints, tree.bodies, tree.gravity, tree.frames,
                 root=Body("trunk", random_inertia(rng))).with_free_base()


def configurations(robot: Robot, samples: int, seed: int = 0, spread: float = 1.0) -> tuple[Array, Array, Array, Array]:
    """Random q (samples, 7 + n), and v, a, tau (samples, 6 + n)."""
    rng = np.random.default_rng(seed)
    q = rng.normal(size=(samples, robot.dof + 1)) * spread
    q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
    v, a, tau = rng.normal(size=(3, samples, robot.dof)) * 2.0
    return q, v, a, tau


def free_pinocchio(robot: Robot) -> Any:
    """The pin.Model of a robot with a free base, with a frame for each body and named frame; see `robots`."""
    import pinocchio as pin

    model = pin.Model()
    model.gravity.linear = np.asarray(robot.gravity)
    first = robot.free_coordinates
    root = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "root_joint")
    ids = {first - 1: root}
    model.appendBodyToJoint(root, pin.Inertia.FromDynamicParameters(ten.to_pinocchio(robot.inertias[first - 1])),
                            pin.SE3.Identity())
    for i in range(first, robot.dof):
        joint = robot.joints[i]
        carried = np.eye(4) if joint.parent < first else robot.joints[joint.parent].after
        motion = pin.JointModelPZ() if joint.prismatic else pin.JointModelRZ()
        ids[i] = model.addJoint(ids[joint.parent], motion, pin.SE3(carried @ joint.before), joint.name)
        moved = ten.to_pinocchio(ten.change_frame(joint.after) @ robot.inertias[i])
        model.appendBodyToJoint(ids[i], pin.Inertia.FromDynamicParameters(moved), pin.SE3.Identity())
    for frame in robot.frames:
        if frame.body != BASE:
            carried = np.eye(4) if frame.body < first else robot.joints[frame.body].after
            model.addFrame(pin.Frame(f"frame {frame.name}", ids[frame.body], 0, pin.SE3(carried @ frame.pose),
                                     pin.FrameType.OP_FRAME))
    return model


def to_mujoco(q: Array, v: Array, a: Array, turn: Array) -> tuple[Array, Array, Array]:
    """qpos, qvel and qacc of MuJoCo for one sample: its linear velocity is in world axes, its quaternion starts with
    w. turn (3, 3): rotation of the root."""
    qpos = np.concatenate([q[:3], q[[6, 3, 4, 5]], q[7:]])
    qvel, qacc = v.copy(), a.copy()
    qvel[:3] = turn @ v[:3]
    qacc[:3] = turn @ (a[:3] + np.cross(v[3:6], v[:3]))
    return qpos, qvel, qacc
