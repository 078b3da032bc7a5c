"""A robot's dynamics as JSON with the attribute names and units of USD physics, to be set on a stage by a script."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.estimate.simulators.joint_values import SimulatedJoint
from dynid.robot import Robot
from dynid.robot import inertia as ten
from dynid.robot.pose import quaternion
from dynid.version import __version__

_RAD_PER_DEGREE = float(np.pi / 180.0)


def usd_json(robot: Robot, inertias: Array, joints: Sequence[SimulatedJoint]) -> str:
    """Return JSON with the attributes of every link (by name) and joint that UsdPhysics and PhysX have a name for.

    Lengths are metres, masses kilograms. USD states angles in degrees: limits, velocities, and gains of revolute joints
    per degree. A friction torque has no attribute of UsdPhysics; it is `dynid:frictionTorque`, N m.

    Args: robot: the robot.
        inertias: (dof, 10), about the link frames.
        joints: passive values and drives.
    """
    links: dict[str, dict[str, Any]] = {}
    for body, row in zip(robot.bodies, inertias, strict=True):
        if body.virtual:
            continue
        mass, com, inertia = ten.to_central(row)
        values, axes = np.linalg.eigh(inertia)
        axes = axes * np.array([1.0, 1.0, np.sign(np.linalg.det(axes))])
        links[body.name] = {"physics:mass": float(mass), "physics:centerOfMass": com.tolist(),
                            "physics:diagonalInertia": values.tolist(),
                            "physics:principalAxes": quaternion(axes).tolist()}
    return json.dumps({
        "dynid": __version__, "robot": robot.name, "metersPerUnit": 1.0, "kilogramsPerUnit": 1.0,
        "quaternions": "w x y z", "physics:gravity": np.asarray(robot.gravity, dtype=float).tolist(), "links": links,
        "joints": {one.name: _joint(one, joint.prismatic, joint.lower, joint.upper)
                   for one, joint in zip(joints, robot.joints, strict=True)}}, indent=1) + "\n"


def _joint(one: SimulatedJoint, is_prismatic: bool, lower: float, upper: float) -> dict[str, Any]:
    """Attributes of one joint; angles in degrees."""
    unit = 1.0 if is_prismatic else _RAD_PER_DEGREE
    drive = "linear" if is_prismatic else "angular"
    found: dict[str, Any] = {"type": "PhysicsPrismaticJoint" if is_prismatic else "PhysicsRevoluteJoint",
                             "physxJoint:armature": one.armature, "dynid:frictionTorque": one.frictionloss,
                             "dynid:viscousFriction": one.damping}
    given = {"physics:lowerLimit": lower / unit, "physics:upperLimit": upper / unit,
             "physxJoint:maxJointVelocity": one.velocity_limit / unit,
             f"drive:{drive}:physics:maxForce": one.force_limit}
    found |= {key: value for key, value in given.items() if np.isfinite(value)}
    for key, gain in (("stiffness", one.stiffness), ("damping", one.kd)):
        if gain is not None:
            found[f"drive:{drive}:physics:{key}"] = gain * unit
    return found
