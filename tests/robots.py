"""Robots for tests: random trees, and any dynid robot as a Pinocchio model."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.robot import BASE, Body, Frame, Joint, Robot
from dynid.robot import inertia as ten


def random_pose(rng: np.random.Generator, reach: float = 0.5) -> Array:
    """A pose (4 x 4) with uniform rotation and a position within +-reach metres."""
    w, x, y, z = rng.normal(size=4)
    s = 2.0 / (w * w + x * x + y * y + z * z)
    pose = np.eye(4)
    pose[:3, :3] = [[1 - s * (y * y + z * z), s * (x * y - z * w), s * (x * z + y * w)],
                    [s * (x * y + z * w), 1 - s * (x * x + z * z), s * (y * z - x * w)],
                    [s * (x * z - y * w), s * (y * z + x * w), 1 - s * (x * x + y * y)]]
    pose[:3, 3] = rng.uniform(-reach, reach, 3)
    return pose


def random_inertia(rng: np.random.Generator, mass: float | None = None, points: int = 6, size: float = 0.2) -> Array:
    """Return the ten parameters of some point masses, which are physically consistent by construction."""
    masses = rng.uniform(0.1, 1.0, points)
    masses *= (rng.uniform(0.5, 10.0) if mass is None else mass) / masses.sum()
    places = rng.uniform(-size, size, (points, 3)) + rng.uniform(-size, size, 3)
    return ten.from_central(masses, places, np.zeros((points, 3, 3))).sum(axis=0)


def random_robot(rng: np.random.Generator, dof: int, prismatic: float = 0.3, branch: float = 0.3) -> Robot:
    """A tree with consistent bodies and arbitrary poses before and after each joint.

    prismatic: chance of a sliding joint. branch: chance that a joint hangs on any earlier body or
    the base rather than on the one before it.
    """
    joints, bodies = [], []
    for i in range(dof):
        parent = int(rng.integers(BASE, i)) if rng.random() < branch else i - 1
        kind: Any = "prismatic" if rng.random() < prismatic else str(rng.choice(["revolute", "continuous"]))
        joints.append(Joint(f"joint{i + 1}", kind, parent, before=random_pose(rng), after=random_pose(rng, 0.2),
                            lower=-np.inf if kind == "continuous" else -2.0,
                            upper=np.inf if kind == "continuous" else 2.0,
                            velocity=3.0, acceleration=10.0, effort=100.0))
        bodies.append(Body(f"link{i + 1}", random_inertia(rng)))
    return Robot("random", tuple(joints), tuple(bodies), gravity=rng.normal(size=3) * 6.0,
                 frames=(Frame("tool", dof - 1, random_pose(rng)),), source="tests/robots.py")


def to_pinocchio(robot: Robot) -> Any:
    """Return the pin.Model of a robot with the same joint order and one coordinate per joint, also for continuous
    joints.

    Pinocchio's joint frame stands before `Joint.after`, dynid's body frame after it: poses and
    inertias are moved, so torques, inertia matrix and energies compare directly. Each dynid body
    frame and named frame is also a pin frame (BODY and OP_FRAME) with its own name.
    """
    import pinocchio as pin

    model = pin.Model()
    model.name = robot.name
    model.gravity.linear = np.asarray(robot.gravity)
    ids = []
    for joint, body in zip(robot.joints, robot.bodies, strict=True):
        carried = np.eye(4) if joint.parent == BASE else robot.joints[joint.parent].after
        parent = 0 if joint.parent == BASE else ids[joint.parent]
        motion = pin.JointModelPZ() if joint.prismatic else pin.JointModelRZ()
        index = model.addJoint(parent, motion, pin.SE3(carried @ joint.before), joint.name)
        model.addJointFrame(index)
        if body.inertia is not None:
            moved = ten.to_pinocchio(ten.change_frame(joint.after) @ body.inertia)
            model.appendBodyToJoint(index, pin.Inertia.FromDynamicParameters(moved), pin.SE3.Identity())
        model.addBodyFrame(body.name, index, pin.SE3(np.asarray(joint.after)), model.getFrameId(joint.name))
        ids.append(index)
    taken = set(robot.body_names) | set(robot.joint_names)
    for frame in robot.frames:
        if frame.name in taken:
            continue
        on = 0 if frame.body == BASE else ids[frame.body]
        carried = np.eye(4) if frame.body == BASE else robot.joints[frame.body].after
        model.addFrame(pin.Frame(frame.name, on, 0, pin.SE3(carried @ frame.pose), pin.FrameType.OP_FRAME))
    return model


def body_poses(robot: Robot, q: Array) -> Array:
    """Pose of every body in the base frame (dof, 4, 4) at q (dof,), by plain matrix products."""
    poses: list[Array] = []
    for joint, position in zip(robot.joints, q, strict=True):
        motion = np.eye(4)
        if joint.prismatic:
            motion[2, 3] = position
        else:
            c, s = np.cos(position), np.sin(position)
            motion[:2, :2] = [[c, -s], [s, c]]
        step = joint.before @ motion @ joint.after
        poses.append(step if joint.parent == BASE else poses[joint.parent] @ step)
    return np.array(poses)


def frame_pose(robot: Robot, name: str, q: Array) -> Array:
    """Pose (4 x 4) of a named frame in the base frame at q (dof,)."""
    frame = robot.frame(name)
    return frame.pose if frame.body == BASE else body_poses(robot, q)[frame.body] @ frame.pose


def exact_text(text: str) -> str:
    """A URDF with the angles and axes of its joints as exact as they are meant, for readers that take what is printed:
    what is within 1e-5 of a multiple of a right angle, or of zero."""
    def angles(hit: re.Match[str]) -> str:
        values = [float(word) for word in hit[1].split()]
        near = [np.pi / 2 * round(value / (np.pi / 2)) for value in values]
        return 'rpy="' + " ".join(repr(b if abs(a - b) < 1e-5 else a) for a, b in zip(values, near, strict=True)) + '"'

    def axis(hit: re.Match[str]) -> str:
        values = np.array([float(word) for word in hit[1].split()])
        kept = np.where(np.abs(values) < 1e-5 * np.linalg.norm(values), 0.0, values)
        return '<axis xyz="' + " ".join(repr(float(value)) for value in kept) + '"'

    def joint(hit: re.Match[str]) -> str:
        return re.sub(r'<axis\s+xyz="([^"]*)"', axis, re.sub(r'rpy="([^"]*)"', angles, hit[0]))

    return re.sub(r"<joint\b.*?</joint>", joint, text, flags=re.DOTALL)


def gripper(seed: int = 0) -> str:
    """URDF of two arm joints and a finger, and of a second finger, a knuckle on it and a thumb that follow."""
    rng = np.random.default_rng(seed)
    text = '<link name="l0"/>'
    for i in range(1, 7):
        mass, (x, y, z) = rng.uniform(0.5, 2), rng.uniform(-0.1, 0.1, 3)
        text += (f'<link name="l{i}"><inertial><origin xyz="{x} {y} {z}"/><mass value="{mass}"/><inertia ixx="0.02" '
                 'iyy="0.03" izz="0.025" ixy="0.001" ixz="0.002" iyz="-0.001"/></inertial></link>')
    for name, kind, parent, child, axis, inside in (
            ("arm", "revolute", 0, 1, "0 1 0", ""),
            ("left", "prismatic", 2, 4, "0 1 0", '<mimic joint="right" multiplier="-1.5" offset="0.01"/>'),
            ("wrist", "revolute", 1, 2, "1 0 0", ""),
            ("right", "prismatic", 2, 3, "0 1 0", ""),
            ("knuckle", "revolute", 4, 5, "0 0 1", '<mimic joint="left" multiplier="2"/>'),
            ("thumb", "revolute", 2, 6, "0 0 1", '<mimic joint="wrist" multiplier="0.5" offset="-0.2"/>')):
        text += (f'<joint name="{name}" type="{kind}"><origin xyz="0.2 0.0{child} 0.1" rpy="0.{child} 0.1 0.3"/>'
                 f'<parent link="l{parent}"/><child link="l{child}"/><axis xyz="{axis}"/>'
                 f'<limit lower="-2" upper="2" velocity="3" effort="4"/>{inside}</joint>')
    return f'<robot name="gripper">{text}</robot>'
