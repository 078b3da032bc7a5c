"""A robot as MJCF for MuJoCo: the tree with its joints and inertias, no shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import RobotError
from dynid.robot import inertia as ten
from dynid.robot.check import possible_inertias
from dynid.robot.followers import whole_tree
from dynid.robot.pose import inverse
from dynid.robot.robot import BASE, Joint, JointFields, Robot, joint_fields

_OWN = {"Ia": "armature", "Fv": "damping", "Fc": "frictionloss"}  # of a robot's own `values`
_FAR = 1e10  # MuJoCo's own largest number: the other end of a range that has one end


def to_mjcf(robot: Robot, inertias: ArrayLike | None = None, values: Mapping[str, float] | None = None, *,
            fields: JointFields | None = None, unchecked: bool = False,
            tell: Callable[[str], object] = lambda note: None) -> str:
    """MJCF of a robot with its own inertias or others (dof, 10); those of bodies on mimic joints may stand behind them.

    values: by name, become the attributes of joints that `fields` says where they are not negative; by default the
    robot's own, with Ia<j>, Fv<j> and Fc<j> as armature, damping and frictionloss. unchecked: write also bodies that
    cannot exist. tell: called with a sentence for each thing that a reader of the file should know.
    """
    values = robot.values if values is None else values
    places = joint_fields(robot.dof, _OWN) if fields is None else fields
    follow = _equalities(robot)
    whole, rows = whole_tree(robot, robot.inertias if inertias is None else inertias)
    places = {name: (whole.joint_index(robot.joint_names[j]), attribute) for name, (j, attribute) in places.items()}
    robot, numbers = whole, possible_inertias(whole, rows, unchecked=unchecked)
    head = [f"<mujoco model={quoteattr(robot.name)}>",
            '  <compiler angle="radian" inertiafromgeom="false"/>',
            f'  <option gravity="{_text(robot.gravity)}"/>',
            "  <worldbody>"]
    children: dict[int, list[int]] = {}
    for i, joint in enumerate(robot.joints):
        children.setdefault(joint.parent, []).append(i)

    def bodies(parent: int, indent: str) -> Iterator[str]:
        for i in children.get(parent, ()):
            joint, body = robot.joints[i], robot.bodies[i]
            pose = joint.before @ joint.after
            axes = np.concatenate([pose[:3, 0], pose[:3, 1]])
            yield f'{indent}<body name={quoteattr(body.name)} pos="{_text(pose[:3, 3])}" xyaxes="{_text(axes)}">'
            yield f"{indent}  {_inertial(numbers[i], body.name)}"
            yield f"{indent}  {_joint(joint, _joint_values(i, joint.name, values, places, tell))}"
            yield from bodies(i, indent + "  ")
            yield f"{indent}</body>"

    return "\n".join([*head, *bodies(BASE, "    "), "  </worldbody>", *follow, "</mujoco>", ""])


def _equalities(robot: Robot) -> list[str]:
    """Mimic joints as constraints, q = offset + multiplier q of the joint that they follow."""
    if robot.followers is None:
        return []
    lines = [f'    <joint joint1={quoteattr(name)} joint2={quoteattr(mimic.joint)} '
             f'polycoef="{_text([mimic.offset, mimic.multiplier, 0.0, 0.0, 0.0])}"/>'
             for name, mimic in robot.followers.mimics.items()]
    return ["  <equality>", *lines, "  </equality>"]


def _inertial(numbers: Array, link: str) -> str:
    if numbers[9] == 0 and np.any(numbers[6:9] != 0):
        raise RobotError(f"link '{link}' has first moments but no mass, which MJCF cannot say")
    mass, com, full = ten.to_mujoco(numbers)
    return f'<inertial pos="{_text(com)}" mass="{_text(mass)}" fullinertia="{_text(full)}"/>'


def _joint(joint: Joint, values: Mapping[str, float]) -> str:
    """About or along z of the joint's frame, which stands in the body frame at inverse(after)."""
    frame = inverse(joint.after)
    text = (f'<joint name={quoteattr(joint.name)} type="{"slide" if joint.prismatic else "hinge"}" '
            f'pos="{_text(frame[:3, 3])}" axis="{_text(frame[:3, 2])}"')
    limits = np.clip([joint.lower, joint.upper], -_FAR, _FAR)
    # A joint whose limits coincide has none that mean anything: MuJoCo takes only a range with an inside.
    if np.any(np.abs(limits) < _FAR) and limits[0] < limits[1]:
        text += f' limited="true" range="{_text(limits)}"'
    return text + "".join(f' {key}="{_text(value)}"' for key, value in values.items()) + "/>"


def _joint_values(i: int, joint: str, values: Mapping[str, float], places: JointFields,
                  tell: Callable[[str], object]) -> dict[str, float]:
    found = {}
    for name, (number, attribute) in places.items():
        value = values.get(name) if number == i else None
        if value is not None and value > 0:
            found[attribute] = value
        elif value:
            tell(f"{name} of joint '{joint}' is {value:.4g}, and a negative one is not written")
    return found


def _text(numbers: ArrayLike) -> str:
    """Numbers with all their digits, zeros without a sign."""
    return " ".join(repr(float(x) + 0.0) for x in np.atleast_1d(numbers))
