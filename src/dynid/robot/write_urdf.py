"""Writers of URDF: edits of inertias and rotor inertias in a user's file, and new files.

Edits leave everything else unchanged, byte for byte. If several links of the file form one rigid body (fixed joints),
the whole inertia is written to the link that the joint moves. The links fixed to it lose their <inertial>, so that no
inertia counts twice. Inertias are about the centre of mass in the axes of the link frame, with all digits.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import AnyStr

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import RobotError
from dynid.escape import xml_attribute
from dynid.robot import inertia as ten
from dynid.robot.check import possible_inertias
from dynid.robot.followers import whole_tree
from dynid.robot.locked_joints import pose_at
from dynid.robot.pose import from_xyz_rpy, inverse, to_rpy
from dynid.robot.robot import BASE, Joint, JointFields, Robot, joint_fields
from dynid.robot.urdf import read_urdf
from dynid.robot.urdf_text import Edit, XmlElement, XmlPage, digits

_Values = Mapping[str, tuple[int, str, float]]  # by name: joint, attribute and value

_DECLARED = re.compile(rb"""<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")
_BYTE_ORDER_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"),
          (b"<\x00", "utf-16-le"), (b"\x00<", "utf-16-be"))
_INERTIA_ATTRIBUTES = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
# Attributes of <dynamics> in a URDF, by symbol in `Robot.values`.
_URDF_ATTRIBUTES = {"Fv": "damping", "Fc": "friction"}
DRAKE_NAMESPACE = "http://drake.mit.edu"


def urdf_with_inertias(text: AnyStr, robot: Robot, inertias: ArrayLike, values: Mapping[str, float] | None = None, *,
                       fields: JointFields | None = None, unchecked: bool = False,
                       add_note: Callable[[str], object] = lambda note: None) -> AnyStr:
    """Return a URDF with the inertial parameters of every moving body replaced, as text or bytes like the given URDF.

    Args:
        text: the URDF.
        robot: the robot of this URDF.
        inertias: ten inertial parameters of every body (dof, 10), optionally followed by those of bodies on mimic
            joints.
        values: parameter values by name, written to attributes of <dynamics> unless they are negative.
        fields: joint and attribute of each parameter. Default: Fv<j> is damping and Fc<j> is friction.
        unchecked: also write bodies that are not physically consistent.
        add_note: called with a sentence for each note to a reader of the file.
    """
    places: JointFields = joint_fields(robot.dof, _URDF_ATTRIBUTES) if fields is None else fields
    given = (values or {}).items()
    wanted = {name: (places[name][0], places[name][1], value) for name, value in given if name in places}
    if isinstance(text, bytes):
        encoding = xml_encoding(text)
        try:
            plain = text.decode(encoding)
        except (LookupError, UnicodeDecodeError):
            raise RobotError(f"the bytes of the URDF of robot '{robot.name}' are not valid in its encoding {encoding}",
                             code="bad-encoding") from None
        return _write(plain, robot, inertias, wanted, unchecked, add_note).encode(encoding)
    return _write(text, robot, inertias, wanted, unchecked, add_note)


def xml_encoding(text: str | bytes) -> str:
    """Return the encoding of an XML file from its byte order mark or its declaration; UTF-8 without either."""
    data = text[:200].encode("ascii", "replace") if isinstance(text, str) else text
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return encoding
    declared = _DECLARED.match(data.lstrip())
    return declared[1].decode() if declared else "utf-8"


def _write(text: str, robot: Robot, inertias: ArrayLike, values: _Values, unchecked: bool,
           add_note: Callable[[str], object]) -> str:
    page = _UrdfPage.from_text(text)
    whole = read_urdf(text[len(page.before):])  # refuses DTDs and entities, so that plain expat is safe below
    if robot.has_free_base:
        whole = whole.with_free_base()
    own = whole.lock(robot.locked)
    _same_robot(own, robot)
    tree, rows = whole_tree(own, inertias)
    numbers = possible_inertias(tree, rows, unchecked=unchecked, add_note=add_note)
    root = page.root()
    links, joints = ({child.attributes["name"]: child for child in root.all(tag)} for tag in ("link", "joint"))
    edits: list[Edit] = []
    for i, (joint, body, row) in enumerate(zip(tree.joints, tree.bodies, numbers, strict=True)):
        if i < tree.free_coordinates - 1:
            continue  # a virtual body of the free joint
        edits += page.inertial(links[body.name], row)
        merged = [part.link for part in body.parts if part.link != body.name and part.inertia is not None]
        edits += [(inner.start, inner.end, b"") for link in merged for inner in links[link].all("inertial")]
        if merged:
            add_note(f"the inertia of link{'s' if len(merged) > 1 else ''} {', '.join(merged)}, fixed to "
                     f"'{body.name}', is part of that link now")
        if joint.name in own.joint_names and i >= tree.free_coordinates:
            edits += page.dynamics(joints[joint.name], _friction(own, joint.name, values, add_note))
    for name, position in robot.locked.items():
        edits += page.fixed(joints[name], whole.tree.joints[whole.tree.joint_index(name)], position)
        add_note(f"joint '{name}' is fixed at {position:g} in this file, as during the identification")
    return page.edited(edits)


def _same_robot(own: Robot, robot: Robot) -> None:
    """Raise an error unless the robot of the URDF, `own`, has the same joints and bodies as `robot`."""
    for what, theirs, ours in (("joints", own.joint_names, robot.joint_names),
                               ("links", own.body_names, robot.body_names)):
        if theirs != ours:
            raise RobotError(f"the URDF does not belong to robot '{robot.name}': it has the {what} "
                             f"{', '.join(theirs)}, the robot has {', '.join(ours)}", code="other-robot")
    for a, b in zip(own.joints, robot.joints, strict=True):
        if a.prismatic != b.prismatic or a.parent != b.parent or not (
                np.allclose(a.before, b.before, atol=1e-9) and np.allclose(a.after, b.after, atol=1e-9)):
            raise RobotError(f"the URDF does not belong to robot '{robot.name}': its joint '{a.name}' has another pose",
                             code="other-robot")


def _friction(robot: Robot, joint: str, values: _Values, add_note: Callable[[str], object]) -> dict[str, str]:
    """Return the attributes of <dynamics> of a joint; values: joint, attribute and value of each parameter."""
    attributes = {}
    for name, (number, attribute, value) in values.items():
        if number == robot.joint_index(joint) and value >= 0:
            attributes[attribute] = digits(value)
        elif number == robot.joint_index(joint):
            add_note(f"{name} of joint '{joint}' is {value:.4g}: negative friction is not written")
    return attributes


# -- the file as bytes -------------------------------------------------------------------------------
@dataclass(frozen=True)
class _UrdfPage(XmlPage):
    """The bytes of a URDF (UTF-8), and methods that return edits of its links and joints."""

    def inertial(self, link: XmlElement, row: Array) -> Iterator[Edit]:
        """Yield the edits that write ten inertial parameters (10,) into a link's <inertial>, created if necessary."""
        mass, com, about_com = ten.to_central(row)
        xyz, six = digits(*com), zip(_INERTIA_ATTRIBUTES, ten.entries(about_com), strict=True)
        entries = {key: digits(x) for key, x in six}
        inertial = link.first("inertial")
        if inertial is None:
            yield self._new_inertial(link, xyz, digits(mass), entries)
            return
        origin, weight, inertia = (inertial.first(tag) for tag in ("origin", "mass", "inertia"))
        assert weight is not None and inertia is not None  # the reader requires both
        if origin is None:
            made = self.space(inertial.children[0]) + f'<origin xyz="{xyz}"/>'.encode()
            yield inertial.opened, inertial.opened, made
        else:
            turned = any(float(x) != 0 for x in origin.attributes.get("rpy", "").split())
            yield from self.set(origin, {"xyz": xyz, **({"rpy": "0 0 0"} if turned else {})})
        yield from self.set(weight, {"value": digits(mass)})
        yield from self.set(inertia, entries)

    def _new_inertial(self, link: XmlElement, xyz: str, mass: str, entries: Mapping[str, str]) -> Edit:
        outer = self.space(link)
        unit = (outer.removeprefix(self.newline) or b"  ") if outer else b""
        inner, deep = outer + unit, outer + 2 * unit
        six = " ".join(f'{key}="{value}"' for key, value in entries.items())
        made = (inner + b"<inertial>" + deep + f'<origin xyz="{xyz}"/>'.encode() + deep
                + f'<mass value="{mass}"/>'.encode() + deep + f"<inertia {six}/>".encode() + inner + b"</inertial>")
        return self.prepended(link, made)

    def fixed(self, element: XmlElement, joint: Joint, position: float) -> Iterator[Edit]:
        """Yield the edits that make a joint fixed at a position, rad or m."""
        origin = element.first("origin")
        given = {key: [float(x) for x in (origin.attributes if origin else {}).get(key, "0 0 0").split()]
                 for key in ("xyz", "rpy")}
        at_joint = from_xyz_rpy(given["xyz"], given["rpy"]) @ inverse(joint.after)
        pose = pose_at(replace(joint, before=at_joint), position)
        placed = {"xyz": digits(*pose[:3, 3]), "rpy": digits(*to_rpy(pose))}
        yield from self.set(element, {"type": "fixed"})
        if origin is not None:
            yield from self.set(origin, placed)
        else:
            made = f'<origin xyz="{placed["xyz"]}" rpy="{placed["rpy"]}"/>'.encode()
            yield element.opened, element.opened, self.space(element.children[0]) + made
        yield from ((inner.start, inner.end, b"") for tag in ("mimic", "dynamics") for inner in element.all(tag))

    def dynamics(self, joint: XmlElement, values: Mapping[str, str]) -> Iterator[Edit]:
        """Yield the edits that set attributes of a joint's <dynamics>, which is created unless all values are zero."""
        dynamics = joint.first("dynamics")
        if dynamics is not None:
            yield from self.set(dynamics, values)
        elif any(float(value) for value in values.values()):
            last = joint.children[-1]
            made = "".join(f' {key}="{value}"' for key, value in values.items())
            yield last.end, last.end, self.space(last) + f"<dynamics{made}/>".encode()


def with_rotor_inertias(text: str, armature: Mapping[str, float]) -> str:
    """Return a URDF with a transmission of ratio one for every joint, whose actuator has a rotor inertia, kg m^2.

    Args:
        text: the URDF.
        armature: reflected rotor inertia by joint, kg m^2. A transmission of the joint in the file is extended.
    """
    page = XmlPage.from_text(text)
    root = page.root()
    present = {joint.attributes.get("name"): transmission for transmission in root.all("transmission")
               for joint in transmission.all("joint")}
    edits: list[Edit] = []
    if b"xmlns:drake=" not in page.data[root.start:root.opened]:
        edits += page.set(root, {"xmlns:drake": DRAKE_NAMESPACE})
    new = b""
    for joint, value in armature.items():
        tags = f'<drake:rotor_inertia value="{value!r}"/><drake:gear_ratio value="1"/>'
        actuator = present[joint].first("actuator") if joint in present else None
        if actuator is not None:
            edits.append(page.appended(actuator, tags.encode()))
            continue
        new += (f'  <transmission name={xml_attribute(joint + "_transmission")}>\n'
                "    <type>transmission_interface/SimpleTransmission</type>\n"
                f"    <joint name={xml_attribute(joint)}>"
                "<hardwareInterface>hardware_interface/EffortJointInterface</hardwareInterface></joint>\n"
                f'    <actuator name={xml_attribute(joint + "_actuator")}>{tags}'
                "<mechanicalReduction>1</mechanicalReduction></actuator>\n"
                "  </transmission>\n").encode()
    edits.append((root.closed, root.closed, new))
    return page.edited(edits)


def plain_urdf(robot: Robot) -> str | None:
    """Return the text of a URDF of a robot without its inertias, or None if a URDF cannot describe the robot.

    In a URDF, the frame of a link is at its joint. Robots from a modified DH table can be written, robots from a
    standard DH table cannot. Robots with mimic joints, closed loops or locked joints are not written either.
    """
    if robot.followers is not None or robot.locked or any(np.any(joint.after != np.eye(4)) for joint in robot.joints):
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
        limit_text = " ".join(f'{key}="{digits(value)}"' for key, value in limits.items() if np.isfinite(value))
        lines += [f'  <joint name={xml_attribute(joint.name)} type="{kind}">',
                  f'    <origin xyz="{digits(*joint.before[:3, 3])}" rpy="{digits(*to_rpy(joint.before))}"/>',
                  f"    <parent link={xml_attribute(parent)}/>", f"    <child link={xml_attribute(body)}/>",
                  '    <axis xyz="0 0 1"/>', *([f"    <limit {limit_text}/>"] if limit_text else []), "  </joint>"]
    return "\n".join([*lines, "</robot>", ""])
