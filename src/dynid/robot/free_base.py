"""A free root joint: the base of a robot that walks, floats or flies, and the detection of robots that walk.

The free joint is six coordinates in front of the robot's own joints: translation of the root link along x, y and z of
its own frame, and rotation about these axes. The six coordinates are used for velocities only: the velocity of a robot
with a free base is the twist of its root link in the root's axes, linear part first, and then the joint velocities. Its
configuration is the position of the root in the world, a unit quaternion (x, y, z, w) and the joint positions, as in
Pinocchio. There are no angles of orientation. Each coordinate moves one body: five virtual bodies, then the root link.
"""

from __future__ import annotations

import re
from dataclasses import replace
from difflib import SequenceMatcher

import numpy as np

from dynid.errors import RobotError
from dynid.robot.locked_joints import renumbered
from dynid.robot.pose import inverse, turn_z_to
from dynid.robot.robot import BASE, FREE_COORDINATES, Body, Frame, Joint, Robot

ROOT = FREE_COORDINATES - 1  # number of the root link among the bodies
ABOUT_FIXED_BASES = ("fixed to the base", "--floating-base")  # endings of warnings that a free base makes invalid
BASE_ROWS = ("base_x", "base_y", "base_z", "base_rx", "base_ry", "base_rz")
_LEG_NAME = re.compile(r"(?:^|[^a-z])(?:leg|foot|feet|ankle|knee|thigh|calf|shank|hip|haa|hfe|kfe)(?:[^a-z]|$)")
_LEG_JOINTS = 3  # smallest number of joints of a leg


def free_joints() -> tuple[Joint, ...]:
    """Return the six coordinates of a free joint: translation along x, y, z and rotation about x, y, z of the root."""
    turns = [turn_z_to(axis) for axis in np.eye(3)]
    return tuple(Joint(name, "prismatic" if k < 3 else "continuous", k - 1, turns[k % 3], inverse(turns[k % 3]))
                 for k, name in enumerate(BASE_ROWS))


def free_bodies(root: Body) -> tuple[Body, ...]:
    """Return the five virtual bodies of a free joint, followed by the root link."""
    return (*(Body(f"{root.name} on {name}", np.zeros(10), virtual=True) for name in BASE_ROWS[:-1]), root)


def frame_names(robot: Robot, near: str) -> list[str]:
    """Return the frame names of a robot file, without bodies that dynid adds, the most similar to `near` first."""
    added = {body.name for joint, body in zip(robot.joints, robot.bodies, strict=True)
             if body.virtual and body.name.endswith(f" on {joint.name}")}
    dependent = robot.followers.names if robot.followers is not None else ()
    names = {*(frame.name for frame in robot.frames), *robot.body_names, *dependent} - added
    names |= set() if robot.has_free_base else {robot.base}
    return sorted(sorted(names), key=lambda name: -SequenceMatcher(None, name.lower(), near.lower()).ratio())


def freed(robot: Robot) -> Robot:
    """Return the robot with a free root joint: its root link moves and has ten parameters."""
    if robot.has_free_base:
        return robot
    if robot.root is None:
        raise RobotError(f"robot '{robot.name}' has no root link that could move", "add root = {link = \"trunk\", "
                         "inertia = {..}} to its robot file", code="no-root-link")
    if robot.followers is not None:
        raise RobotError(f"robot '{robot.name}' has dependent joints, so it cannot get a free base after it was read",
                         "write a floating joint into its file", code="free-base-dependent-joints")

    def moved(body: int) -> int:
        return ROOT if body == BASE else body + FREE_COORDINATES

    joints = (*free_joints(), *(replace(joint, parent=moved(joint.parent)) for joint in robot.joints))
    frames = tuple(replace(frame, body=moved(frame.body)) for frame in robot.frames)
    renamed = {str(k + 1): str(k + 1 + FREE_COORDINATES) for k in range(robot.dof)}
    return replace(robot, joints=joints, bodies=(*free_bodies(robot.root), *robot.bodies), frames=frames, base="world",
                   values=renumbered(robot.values, renamed), has_free_base=True,
                   warnings=tuple(text for text in robot.warnings if not text.endswith(ABOUT_FIXED_BASES)))


def fixed(robot: Robot) -> Robot:
    """Return the robot with its root link fixed to the ground; gravity is then along the axes of the root."""
    if not robot.has_free_base:
        return robot

    def moved(body: int) -> int:
        return body - FREE_COORDINATES if body > ROOT else BASE

    own = robot.joints[FREE_COORDINATES:]
    root = robot.bodies[ROOT]
    frames = tuple(Frame(frame.name, moved(frame.body), frame.pose) for frame in robot.frames if frame.body != BASE)
    renamed = {str(k + 1 + FREE_COORDINATES): str(k + 1) for k in range(len(own))}
    return replace(robot, joints=tuple(replace(joint, parent=moved(joint.parent)) for joint in own),
                   bodies=robot.bodies[FREE_COORDINATES:], frames=frames, base=root.name, root=root,
                   values=renumbered(robot.values, renamed), has_free_base=False)


def refuse_free_base(robot: Robot, purpose: str) -> None:
    """Raise an error if a robot with a free base is given to a part of dynid that supports only fixed bases.

    Args:
        robot: the robot.
        purpose: a noun phrase that names the part, such as "excitation design".

    Raises:
        RobotError: code "free-base-unsupported".
    """
    if robot.has_free_base:
        raise RobotError(f"robot '{robot.name}' has a free base, which {purpose} does not support",
                         "if its base was clamped, add --fixed-base (in a run file fixed_base = true, in Python "
                         "Robot.load(.., fixed_base=True))",
                         code="free-base-unsupported")


def base_warnings(robot: Robot) -> tuple[str, ...]:
    """Return a warning if a robot with a fixed base seems to have legs, otherwise an empty tuple.

    A robot seems to have legs if at least two chains of three or more joints with names such as "knee" start at its
    base, or at least four such chains with any names.
    """
    if robot.has_free_base:
        return ()
    chains: dict[int, list[str]] = {}
    first: list[int] = []
    for i, joint in enumerate(robot.joints):
        first.append(i if joint.parent == BASE else first[joint.parent])
        chains.setdefault(first[i], []).extend((joint.name, robot.bodies[i].name))
    long = [names for names in chains.values() if len(names) >= 2 * _LEG_JOINTS]
    legs = [names for names in long if any(_LEG_NAME.search(name.lower()) for name in names)]
    if len(legs) < 2 and len(long) < 4:
        return ()
    return (f"The base '{robot.base}' carries {len(long)} chains of joints, as on a legged machine. The base is "
            "assumed to be fixed to the ground, so use logs in which it was clamped, or --floating-base",)
