"""URDF of a robot that comes from a table of Denavit-Hartenberg parameters: links and joints, no shapes."""

from __future__ import annotations

import numpy as np

from dynid.escape import xml_attribute
from dynid.robot.pose import to_rpy
from dynid.robot.robot import BASE, Robot


def plain_urdf(robot: Robot) -> str | None:
    """Return the URDF of a robot without its inertias, or None where a URDF cannot describe it.

    A link's frame is at its joint in a URDF, so that tables in the modified convention can be written, those in the
    standard convention cannot. Neither can mimic joints and closed loops.
    """
    if robot.followers is not None or robot.locked or not all(np.array_equal(one.after, np.eye(4)) for one in
                                                              robot.joints):
        return None
    base = robot.base
    links = [base, *robot.body_names]
    lines = [f"<robot name={xml_attribute(robot.name)}>", *(f"  <link name={xml_attribute(name)}/>" for name in links)]
    for joint, body in zip(robot.joints, robot.body_names, strict=True):
        parent = base if joint.parent == BASE else robot.body_names[joint.parent]
        # An unlimited revolute joint is called continuous; a prismatic one is unlimited where it has no limits.
        bounded = np.isfinite([joint.lower, joint.upper]).all()
        kind = "prismatic" if joint.prismatic else "revolute" if bounded else "continuous"
        limits = {"lower": joint.lower, "upper": joint.upper, "effort": joint.effort, "velocity": joint.velocity,
                  "acceleration": joint.acceleration}
        said = " ".join(f'{key}="{_text(value)}"' for key, value in limits.items() if np.isfinite(value))
        lines += [f'  <joint name={xml_attribute(joint.name)} type="{kind}">',
                  f'    <origin xyz="{_text(*joint.before[:3, 3])}" rpy="{_text(*to_rpy(joint.before))}"/>',
                  f"    <parent link={xml_attribute(parent)}/>", f"    <child link={xml_attribute(body)}/>",
                  '    <axis xyz="0 0 1"/>', *([f"    <limit {said}/>"] if said else []), "  </joint>"]
    return "\n".join([*lines, "</robot>", ""])


def _text(*numbers: float) -> str:
    return " ".join(repr(float(x) + 0.0) for x in numbers)
