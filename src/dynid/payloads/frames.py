"""Default frame of a robot on which a payload is mounted."""

from __future__ import annotations

from dynid.errors import ModelError
from dynid.robot import BASE, Robot

# Usual names of the mounting place of tools, the most specific first.
USUAL = ("flange", "tool0", "tool", "ee_link", "link_eef", "end_effector", "panda_link8", "fr3_link8", "lbr_link_ee")


def mounting_frame(robot: Robot, name: str | None = None) -> str:
    """Return the named frame after a check; without a name the robot's flange by its usual names, or its last link.

    The default of a robot with a free base is its root link.
    """
    if name is not None:
        if robot.frame(name).body == BASE:
            raise ModelError(f"a payload on frame '{name}' is fixed to the base and cannot be identified",
                             "choose a frame that moves", code="frame-of-the-base")
        return name
    if robot.has_free_base:
        return robot.bodies[robot.free_coordinates - 1].name
    moving = [frame.name for frame in robot.frames if frame.body == robot.dof - 1]
    for usual in USUAL:
        for own in moving:
            if own == usual or own.endswith(("_" + usual, "-" + usual)):
                return own
    return robot.bodies[-1].name
