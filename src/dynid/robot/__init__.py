"""What the machine is: a tree of bodies and joints, read from URDF, DH or modified DH, or built in."""

from dynid.robot.check import InertiaProblem, inertia_problems
from dynid.robot.robot import BASE, FREE_COORDINATES, Body, Frame, Joint, Part, Robot, Shape, numbered_joints
from dynid.robot.robot_files import builtin_names

__all__ = ["BASE", "FREE_COORDINATES", "Body", "Frame", "InertiaProblem", "Joint", "Part", "Robot", "Shape",
           "builtin_names", "inertia_problems", "numbered_joints"]
