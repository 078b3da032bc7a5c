"""The iiwa 14 of iiwa_stack (Hennersperger et al. 2016), with which Ardiani compares, by the numbers of its file.

The numbers are those of iiwa_description/urdf/iiwa14.xacro in github.com/IFL-CAMP/iiwa_stack.
"""

from __future__ import annotations

import numpy as np

from dynid.robot import Robot
from dynid.robot import inertia as ten
from dynid.robot.robot import Body, Joint

DAMPING = 0.5  # N m s/rad, of every joint
# Of each joint: where its frame is on the link before (m) and how it is turned (roll, pitch, yaw in half turns).
_PLACES = np.array("""
0 0 0.1575 0 0 0        0 0 0.2025 0.5 0 1     0 0.2045 0 0.5 0 1    0 0 0.2155 0.5 0 0
0 0.1845 0 -0.5 1 0     0 0 0.2155 0.5 0 0     0 0.081 0 -0.5 1 0
""".split(), dtype=float).reshape(7, 6)
# Of each link: mass (kg), centre of mass (m) in the frame of its joint, inertia about it along the axes (kg m^2).
_LINKS = np.array("""
4 0 -0.03 0.12 0.1 0.09 0.02           4 0.0003 0.059 0.042 0.05 0.018 0.044
3 0 0.03 0.13 0.08 0.075 0.01          2.7 0 0.067 0.034 0.03 0.01 0.029
1.7 0.0001 0.021 0.076 0.02 0.018 0.005    1.8 0 0.0006 0.0004 0.005 0.0036 0.0047
0.3 0 0 0.02 0.001 0.001 0.001
""".split(), dtype=float).reshape(7, 7)


def iiwa_stack() -> Robot:
    """Return the robot with the frames and bodies of iiwa14.xacro, with the joint directions of the built-in
    `kuka-iiwa14`."""
    joints = tuple(Joint(f"joint{j + 1}", "revolute", j - 1, before=_pose(row)) for j, row in enumerate(_PLACES))
    bodies = tuple(Body(f"link{j + 1}", ten.from_central(row[0], row[1:4], np.diag(row[4:])))
                   for j, row in enumerate(_LINKS))
    return Robot("iiwa_stack", joints, bodies)


def _pose(row: np.ndarray) -> np.ndarray:
    (a, b, c), pose = np.pi * row[3:], np.eye(4)
    x = np.array([[1, 0, 0], [0, np.cos(a), -np.sin(a)], [0, np.sin(a), np.cos(a)]])
    y = np.array([[np.cos(b), 0, np.sin(b)], [0, 1, 0], [-np.sin(b), 0, np.cos(b)]])
    z = np.array([[np.cos(c), -np.sin(c), 0], [np.sin(c), np.cos(c), 0], [0, 0, 1]])
    pose[:3, :3], pose[:3, 3] = z @ y @ x, row[:3]
    return pose
