"""Description of a robot: a tree of bodies and joints from URDF, MJCF, DH or modified DH tables, or built in."""

from dynid.robot.check import inertia_problems
from dynid.robot.inertia import InertiaProblem
from dynid.robot.robot import BASE, FREE_COORDINATES, Body, Frame, Joint, Part, Robot, Shape, Symmetry, numbered_joints
from dynid.robot.robot_files import builtin_names

__all__ = ["BASE", "FREE_COORDINATES", "Body", "Frame", "InertiaProblem", "Joint", "Part", "Robot", "Shape",
           "Symmetry", "builtin_names", "inertia_problems", "numbered_joints"]
