"""Writer of a robot as SDFormat 1.9 for Gazebo and Drake: the tree with its joints and inertias, no shapes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from dynid.errors import RobotError
from dynid.escape import xml_attribute, xml_text
from dynid.robot import inertia as ten
from dynid.robot.check import possible_inertias
from dynid.robot.pose import inverse, to_rpy
from dynid.robot.robot import BASE, Robot
from dynid.robot.urdf_text import digits


def to_sdf(robot: Robot, inertias: ArrayLike | None = None, values: Mapping[str, Mapping[str, float]] | None = None, *,
           unchecked: bool = False) -> str:
    """Return the text of an SDFormat file of a robot.

    Args:
        robot: a tree without closed loops.
        inertias: ten inertial parameters of every body (dof, 10). Default: those of the robot.
        values: "damping" (N m s/rad), "friction" (N m) and "armature" (kg m^2) by joint. The armature is written as
            tags that only Drake reads.
        unchecked: write also bodies that are not physically consistent.

    Raises:
        RobotError: if the robot has dependent joints, which this writer does not support.
    """
    if robot.followers is not None:
        raise RobotError(f"robot '{robot.name}' has mimic joints or closed chains, which are not written as SDFormat",
                         "write MJCF with --for mjcf", code="closed-chain")
    if robot.has_free_base:
        raise RobotError(f"robot '{robot.name}' has a free base, which is not written as SDFormat",
                         "write MJCF with --for mjcf", code="free-base-unsupported")
    numbers = possible_inertias(robot, np.asarray(robot.inertias if inertias is None else inertias),
                                unchecked=unchecked)
    is_drake = any("armature" in own for own in (values or {}).values())
    namespace = ' xmlns:drake="http://drake.mit.edu"' if is_drake else ""
    lines = ['<?xml version="1.0"?>', f'<sdf version="1.9"{namespace}>', f"  <model name={xml_attribute(robot.name)}>",
             f"    <link name={xml_attribute(robot.base)}/>",
             '    <joint name="world_fixed" type="fixed">', "      <parent>world</parent>",
             f"      <child>{xml_text(robot.base)}</child>", "    </joint>"]
    joint_lines: list[str] = []
    for joint, body, row in zip(robot.joints, robot.bodies, numbers, strict=True):
        parent = robot.base if joint.parent == BASE else robot.body_names[joint.parent]
        pose = joint.before @ joint.after
        mass, com, inertia = ten.to_central(row)
        if body.virtual or mass == 0:
            raise RobotError(f"link '{body.name}' has no mass, which SDFormat cannot describe",
                             "write MJCF with --for mjcf")
        entries = zip(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), ten.entries(inertia), strict=True)
        lines += [f"    <link name={xml_attribute(body.name)}>",
                  f"      <pose relative_to={xml_attribute(parent)}>{_pose(pose)}</pose>",
                  "      <inertial>", f"        <pose>{digits(*com, 0.0, 0.0, 0.0)}</pose>",
                  f"        <mass>{digits(float(mass))}</mass>",
                  "        <inertia>" + "".join(f"<{key}>{digits(x)}</{key}>" for key, x in entries) + "</inertia>",
                  "      </inertial>", "    </link>"]
        own = (values or {}).get(joint.name, {})
        limits = {"lower": joint.lower, "upper": joint.upper, "effort": joint.effort, "velocity": joint.velocity}
        limit_tags = "".join(f"<{key}>{digits(value)}</{key}>" for key, value in limits.items() if np.isfinite(value))
        kind = "prismatic" if joint.prismatic else "revolute"
        joint_lines += [f'    <joint name={xml_attribute(joint.name)} type="{kind}">',
                        f"      <pose>{_pose(inverse(joint.after))}</pose>",
                        f"      <parent>{xml_text(parent)}</parent>", f"      <child>{xml_text(body.name)}</child>",
                        "      <axis>", "        <xyz>0 0 1</xyz>",
                        f"        <dynamics><damping>{digits(own.get('damping', 0.0))}</damping>"
                        f"<friction>{digits(own.get('friction', 0.0))}</friction></dynamics>",
                        f"        <limit>{limit_tags}</limit>", "      </axis>"]
        if "armature" in own:
            joint_lines += [f"      <drake:rotor_inertia>{digits(own['armature'])}</drake:rotor_inertia>",
                            "      <drake:gear_ratio>1</drake:gear_ratio>"]
        joint_lines.append("    </joint>")
    return "\n".join([*lines, *joint_lines, "  </model>", "</sdf>", ""])


def _pose(pose: ArrayLike) -> str:
    matrix = np.asarray(pose, dtype=float)
    return digits(*matrix[:3, 3], *to_rpy(matrix))
