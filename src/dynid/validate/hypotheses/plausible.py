"""Torques too large for a robot of this size, which indicate a wrong unit even without a nominal model."""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array
from dynid.estimate import Estimate, Problem
from dynid.model import complete
from dynid.robot import Robot

_STEEL_DENSITY = 7850.0  # kg/m^3
_LINK_THICKNESS = 1.0 / 6.0  # thickness over length of a link
_CHECKED_ROWS = 200  # rows of the longest log


def times_solid_steel(problem: Problem, estimate: Estimate) -> float | None:
    """Return the ratio of the first moment of gravity to that of a solid steel bar as long as the robot's reach and a
    sixth as thick; None without robot, reach or gravity.

    Industrial arms with their load stay below a tenth, short and heavy test benches below one.
    """
    robot = complete(problem.model).robot
    if robot is None or not problem.data or not np.any(robot.gravity):
        return None
    reach = robot_reach(robot)
    if reach <= 0:
        return None
    part = max(problem.data, key=len)
    q = part.q[np.linspace(0, len(part) - 1, min(_CHECKED_ROWS, len(part))).astype(int)]
    still, base = np.zeros_like(q), estimate.base
    bodies = np.array([problem.model.parameters.items[i].body is not None for i in base.independent])
    y = problem.model.regressor(q, still, still)[:, :, base.independent[bodies]]
    turning = np.array([not joint.prismatic for joint in robot.joints])
    torque = (y @ estimate.values[bodies])[:, turning]
    if not torque.size:
        return None
    moment = float(np.max(np.ptp(torque, axis=0))) / 2.0 / float(np.linalg.norm(robot.gravity))
    solid = _STEEL_DENSITY * np.pi * (_LINK_THICKNESS * reach / 2.0) ** 2 * reach
    return moment / (solid * 0.5 * reach)


def robot_reach(robot: Robot) -> float:
    """Return the distance from the first joint to the end of the longest chain, m, with the last body as long as the
    longest of the others; prismatic joints count with their range."""
    far = np.zeros(robot.dof)
    length = np.zeros(robot.dof)
    for i, joint in enumerate(robot.joints):
        own = float(np.linalg.norm(_offset(joint.before)) if joint.parent >= 0 else 0.0)
        own += float(np.linalg.norm(_offset(joint.after)))
        width = joint.upper - joint.lower
        length[i] = own + (width if joint.prismatic and np.isfinite(width) else 0.0)
        far[i] = length[i] + (far[joint.parent] if joint.parent >= 0 else 0.0)
    return float(far.max() + length.max())


def _offset(pose: Array) -> Array:
    return np.asarray(pose[:3, 3])
