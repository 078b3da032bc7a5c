"""Editing of inertias and joint values in a user's MJCF; everything else is unchanged, byte for byte.

If the file builds a body from several (bodies without joints), the whole inertia is written on the one that the joint
moves. The others get an <inertial> of zero, so that they do not count twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import RobotError
from dynid.robot import inertia as ten
from dynid.robot.check import possible_inertias
from dynid.robot.followers import whole_tree
from dynid.robot.mjcf import read_mjcf
from dynid.robot.robot import Robot
from dynid.robot.xml_page import Edit, XmlElement, XmlPage

_ORIENTATION = ("diaginertia", "quat", "axisangle", "xyaxes", "zaxis", "euler")
_ZERO_INERTIAL = {"pos": "0 0 0", "mass": "0", "diaginertia": "0 0 0"}


def mjcf_with_inertias(text: str, robot: Robot, inertias: ArrayLike, values: Mapping[str, Mapping[str, float]], *,
                       actuators: Mapping[str, str] | None = None, unchecked: bool = False,
                       tell: Callable[[str], object] = lambda note: None) -> str:
    """Return an MJCF with the ten parameters of every moving body (dof, 10) and the values of joints replaced.

    Args:
        text: the MJCF; it must describe this robot and include no other file.
        robot: robot with these bodies.
        inertias: (dof, 10), followed by those of bodies on dependent joints.
        values: by joint, the attributes that are set, such as {"joint1": {"armature": 0.1}}.
        actuators: by joint, an element for <actuator>; a joint that has an actuator in the file keeps that one.
        unchecked: also write bodies that are not physically consistent.
        tell: called with a sentence for each note to a reader of the file.

    Raises:
        RobotError: if the file describes another robot, or has bodies or joints without a name.
    """
    _check_one_file(text)
    own = read_mjcf(text)
    if robot.locked:
        raise RobotError(f"joint '{next(iter(robot.locked))}' was fixed during the identification, which cannot be "
                         "written into an MJCF in place")
    if own.joint_names != robot.joint_names or own.body_names != robot.body_names:
        raise RobotError(f"the MJCF does not belong to robot '{robot.name}': it has the joints "
                         f"{', '.join(own.joint_names)}, the robot has {', '.join(robot.joint_names)}",
                         code="other-robot")
    tree, rows = whole_tree(own, inertias)
    numbers = possible_inertias(tree, rows, unchecked=unchecked)
    page = _MjcfPage.of(text)
    root = page.root()
    edits: list[Edit] = []
    bodies, joints = page.named(root, "body"), page.named(root, "joint")
    for body, row in zip(tree.bodies, numbers, strict=True):
        if body.virtual:
            continue
        edits += page.inertial(_of(bodies, body.name, "body"), _full(row, body.name))
        merged = [part.link for part in body.parts if part.link != body.name and part.inertia is not None]
        for link in merged:
            edits += page.inertial(_of(bodies, link, "body"), _ZERO_INERTIAL)
        if merged:
            tell(f"the inertia of {', '.join(merged)}, fixed to '{body.name}', is part of that body now")
    for name, attributes in values.items():
        edits += page.set(_of(joints, name, "joint"), {key: _text(value) for key, value in attributes.items()})
    edits += page.own_inertias(root, tell)
    edits += page.actuators(root, actuators or {}, tell)
    return page.text_with(edits, text)


def mjcf_with_joints(text: str, values: Mapping[str, Mapping[str, float]], *,
                     actuators: Mapping[str, str] | None = None,
                     tell: Callable[[str], object] = lambda note: None) -> str:
    """Return an MJCF with the values of some of its joints replaced; bodies, other joints and a free base are
    unchanged.

    Args:
        text: the MJCF, which must not include other files.
        values, actuators, tell: as for `mjcf_with_inertias`.

    Raises:
        RobotError: if the file does not have a joint of `values`.
    """
    _check_one_file(text)
    page = _MjcfPage.of(text)
    root = page.root()
    joints = page.named(root, "joint")
    edits: list[Edit] = []
    for name, attributes in values.items():
        edits += page.set(_of(joints, name, "joint"), {key: _text(value) for key, value in attributes.items()})
    edits += page.actuators(root, actuators or {}, tell)
    return page.text_with(edits, text)


def _check_one_file(text: str) -> None:
    if "<include" in text:
        raise RobotError("the MJCF includes other files, so that values cannot be written into it in place",
                         "save it as one file in MuJoCo with mj_saveLastXML, and name that file")


def _of(elements: Mapping[str, XmlElement], name: str, kind: str) -> XmlElement:
    if name not in elements:
        raise RobotError(f"{kind} '{name}' has no name of its own in the MJCF, so that its values cannot be written in "
                         "place", f"give every {kind} a name", "not-in-file")
    return elements[name]


def _full(row: Array, body: str) -> dict[str, str]:
    if row[9] == 0 and np.any(row[6:9] != 0):
        raise RobotError(f"body '{body}' has first moments but no mass, which MJCF cannot express", code="no-mass")
    return {key: _text(*np.atleast_1d(value)) for key, value in ten.to_mujoco_attributes(row).items()}


def _text(*numbers: float) -> str:
    return " ".join(repr(float(x) + 0.0) for x in numbers)


@dataclass(frozen=True)
class _MjcfPage(XmlPage):
    """The bytes of an MJCF file, and functions that write numbers into it."""

    @classmethod
    def of(cls, text: str) -> _MjcfPage:
        data = text[max(text.find("<"), 0):].encode()
        return cls(data, b"\r\n" if b"\r\n" in data else b"\n")

    def text_with(self, edits: Sequence[Edit], text: str) -> str:
        """Return the text of the file with the edited XML, including any text before it."""
        return text[:max(text.find("<"), 0)] + self.edited(edits).decode()

    def named(self, element: XmlElement, tag: str) -> dict[str, XmlElement]:
        """Return the elements of <worldbody> with a name, by name, at any depth."""
        found: dict[str, XmlElement] = {}
        for world in element.all("worldbody"):
            stack = list(world.children)
            while stack:
                one = stack.pop()
                if one.tag == tag and "name" in one.attributes:
                    found[one.attributes["name"]] = one
                stack += one.children
        return found

    def inertial(self, body: XmlElement, values: Mapping[str, str]) -> Iterator[Edit]:
        """Yield the edits that write the inertia of a body into its <inertial>, which is created if necessary."""
        found = body.first("inertial")
        for frame in body.all("frame"):  # counts in the frame; the one of the body takes its place
            yield from ((one.start, one.end, b"") for one in frame.all("inertial"))
        if found is not None:
            given = set(found.attributes)
            yield from self.without(found, ((set(_ORIENTATION) | {"fullinertia"}) & given) - set(values))
            yield from self.set(found, values)
            return
        outer = self.space(body)
        inner = self.space(body.children[0]) if body.children else (outer + b"  " if outer else b"")
        said = " ".join(f'{key}="{value}"' for key, value in values.items())
        made = inner + f"<inertial {said}/>".encode()
        if self.empty(body):
            yield body.opened - 2, body.opened, b">" + made + outer + b"</body>"
        else:
            yield body.opened, body.opened, made

    def own_inertias(self, root: XmlElement, tell: Callable[[str], object]) -> Iterator[Edit]:
        """Yield the edits that stop the compiler from computing inertias from shapes, since the file now
        contains them."""
        for compiler in root.all("compiler"):
            if compiler.attributes.get("inertiafromgeom") == "true":
                yield from self.set(compiler, {"inertiafromgeom": "auto"})
                tell('inertiafromgeom is "auto" now: MuJoCo would otherwise ignore the identified inertias')

    def actuators(self, root: XmlElement, wanted: Mapping[str, str], tell: Callable[[str], object]) -> Iterator[Edit]:
        """Yield the edits that add actuators for joints that have none in the file."""
        sections = root.all("actuator")
        driven = {one.attributes.get("joint") for section in sections for one in section.children}
        kept = [name for name in wanted if name in driven]
        if kept:
            tell(f"the actuators of {', '.join(kept)} are those of the file; remove them there to have identified ones")
        new = [element for name, element in wanted.items() if name not in driven]
        if not new:
            return
        if sections:
            inner = self.space(sections[-1].children[-1]) if sections[-1].children else self.newline + b"    "
            yield self.appended(sections[-1], b"".join(inner + one.encode() for one in new))
            return
        lines = ["  <actuator>", *(f"    {one}" for one in new), "  </actuator>"]
        yield root.closed, root.closed, self.newline.join(line.encode() for line in lines) + self.newline


def joint_attributes(names: Sequence[str], **columns: Array) -> dict[str, dict[str, float]]:
    """Return the attributes of each joint from arrays (dof,) by attribute."""
    return {name: {key: float(values[j]) for key, values in columns.items()} for j, name in enumerate(names)}
