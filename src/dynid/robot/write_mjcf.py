"""Writers of MJCF for MuJoCo: a new file with joints and inertias but no shapes, or edits of a user's file.

Edits leave everything else unchanged, byte for byte. If several <body> elements of the file form one rigid body (bodies
without joints), the whole inertia is written to the body that the joint moves. The other elements get an <inertial> of
zero, so that no inertia counts twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import RobotError
from dynid.escape import xml_attribute
from dynid.robot import inertia as ten
from dynid.robot.check import possible_inertias
from dynid.robot.followers import whole_tree
from dynid.robot.loops import Closure
from dynid.robot.pose import inverse
from dynid.robot.robot import BASE, FREE_COORDINATES, Frame, Joint, JointFields, Robot, joint_fields
from dynid.robot.urdf_text import MUJOCO_INFINITY, Edit, XmlElement, XmlPage, digits, parse_xml

_MJCF_ATTRIBUTES = {"Ia": "armature", "Fv": "damping", "Fc": "frictionloss"}  # by symbol in `Robot.values`
_ORIENTATION = ("diaginertia", "quat", "axisangle", "xyaxes", "zaxis", "euler")
_ZERO_INERTIAL = {"pos": "0 0 0", "mass": "0", "diaginertia": "0 0 0"}


def to_mjcf(robot: Robot, inertias: ArrayLike | None = None, values: Mapping[str, float] | None = None, *,
            fields: JointFields | None = None, actuators: Mapping[str, str] | None = None, unchecked: bool = False,
            add_note: Callable[[str], object] = lambda note: None) -> str:
    """Return the text of an MJCF file of a robot.

    Args:
        robot: the robot.
        inertias: ten inertial parameters of every body (dof, 10), optionally followed by those of bodies on dependent
            joints. Default: those of the robot.
        values: parameter values by name, written to joint attributes unless they are negative. Default: the values of
            the robot.
        fields: joint and attribute of each parameter. Default: Ia<j>, Fv<j> and Fc<j> are armature, damping and
            frictionloss.
        actuators: an element for <actuator>, by joint.
        unchecked: also write bodies that are not physically consistent.
        add_note: called with a sentence for each note to a reader of the file.
    """
    values = robot.values if values is None else values
    places = joint_fields(robot.dof, _MJCF_ATTRIBUTES) if fields is None else fields
    follow, closures = [*_equalities(robot), *_driven(robot, actuators or {})], _closures(robot)
    whole, rows = whole_tree(robot, robot.inertias if inertias is None else inertias)
    places = {name: (whole.joint_index(robot.joint_names[j]), attribute) for name, (j, attribute) in places.items()}
    robot, numbers = whole, possible_inertias(whole, rows, unchecked=unchecked, add_note=add_note)
    head = [f"<mujoco model={xml_attribute(robot.name)}>",
            '  <compiler angle="radian" inertiafromgeom="false"/>',
            f'  <option gravity="{digits(robot.gravity)}"/>',
            "  <worldbody>"]
    children: dict[int, list[int]] = {}
    for i, joint in enumerate(robot.joints):
        children.setdefault(joint.parent, []).append(i)

    def bodies(parent: int, indent: str, carried: tuple[tuple[int, Array], ...] = ()) -> Iterator[str]:
        """Yield the lines of the bodies on a parent body. carried: joints of massless bodies between a body and its
        parent, each with the pose (4, 4) of the parent in the frame of the joint."""
        for i in children.get(parent, ()):
            joint, body = robot.joints[i], robot.bodies[i]
            pose = joint.before @ joint.after
            before = tuple((k, at @ pose) for k, at in carried)
            if body.virtual:
                if len(children.get(i, ())) != 1:
                    raise RobotError(f"link '{body.name}' has no mass and carries {len(children.get(i, ()))} links, "
                                     "which MJCF cannot express", code="no-mass")
                yield from bodies(i, indent, (*before, (i, np.eye(4))))
                continue
            frame = whole_pose(i)
            yield (f'{indent}<body name={xml_attribute(body.name)} pos="{digits(frame[:3, 3])}" '
                   f'xyaxes="{digits(np.concatenate([frame[:3, 0], frame[:3, 1]]))}">')
            yield f"{indent}  {_inertial(_inertial_values(numbers[i]))}"
            is_root = robot.has_free_base and i == FREE_COORDINATES - 1
            if is_root:
                yield f"{indent}  <freejoint/>"
            for k, at in () if is_root else (*before, (i, np.eye(4))):
                own = _joint_values(k, robot.joints[k].name, values, places, add_note)
                yield f"{indent}  {_joint(robot.joints[k], at, own)}"
            yield from _sites(closures, i, indent + "  ")
            yield from bodies(i, indent + "  ")
            yield f"{indent}</body>"

    def whole_pose(i: int) -> Array:
        """Return the pose (4, 4) of a body in the nearest body with mass that carries it, with all joints at zero."""
        joint = robot.joints[i]
        pose = joint.before @ joint.after
        while joint.parent != BASE and robot.bodies[joint.parent].virtual:
            joint = robot.joints[joint.parent]
            pose = joint.before @ joint.after @ pose
        return pose

    return "\n".join([*head, *_sites(closures, BASE, "    "), *bodies(BASE, "    "), "  </worldbody>", *follow,
                      "</mujoco>", ""])


def _equalities(robot: Robot) -> list[str]:
    """Return the lines of mimic joints and closures as equality constraints of MuJoCo, between the sites of `_sites`.

    A point closure is a `connect`, an axis closure is two `connect` one metre from each other, and a rigid closure is
    a `weld`. A rod is a tendon, whose length is relative to the length with all joints at zero.
    """
    followers = robot.followers
    if followers is None:
        return []
    lines = [f'    <joint joint1={xml_attribute(name)} joint2={xml_attribute(mimic.joint)} '
             f'polycoef="{digits([mimic.offset, mimic.multiplier, 0.0, 0.0, 0.0])}"/>'
             for name, mimic in followers.mimics.items()]
    rods = []
    for closure in _closures(robot):
        ends = [_site(closure, side) for side in ("first", "second")]
        if closure.kind == "rod":
            rods += [f"    <spatial name={xml_attribute(closure.name)}>",
                     *(f"      <site site={end}/>" for end in ends), "    </spatial>"]
            offset = _at_zero(followers.tree, closure.first) - _at_zero(followers.tree, closure.second)
            zero = float(np.linalg.norm(offset))
            lines.append(f'    <tendon name={xml_attribute(closure.name)} tendon1={xml_attribute(closure.name)} '
                         f'polycoef="{digits([closure.length - zero, 0.0, 0.0, 0.0, 0.0])}"/>')
            continue
        kind = "weld" if closure.kind == "rigid" else "connect"
        lines.append(f"    <{kind} name={xml_attribute(closure.name)} site1={ends[0]} site2={ends[1]}/>")
        if closure.kind == "axis":
            lines.append(f"    <connect site1={_site(closure, 'first', 'along')} "
                         f"site2={_site(closure, 'second', 'along')}/>")
    tendons = ["  <tendon>", *rods, "  </tendon>"] if rods else []
    return [*tendons, "  <equality>", *lines, "  </equality>"]


def _driven(robot: Robot, actuators: Mapping[str, str]) -> list[str]:
    """Return the lines of the actuators. A closed chain has motors on its independent joints, and a <key> with a
    posture that selects the assembly branch."""
    followers = robot.followers
    if followers is None or followers.loops is None:
        lines = [f"    {element}" for element in actuators.values()]
        return ["  <actuator>", *lines, "  </actuator>"] if actuators else []
    tree, order, children = followers.tree, list[int](), [BASE]
    while children:  # MuJoCo numbers joints depth-first: a body, then all bodies on it
        body = children.pop()
        order += [body] if body != BASE else []
        children += [i for i in reversed(range(tree.dof)) if tree.joints[i].parent == body]
    motors = [f"    {actuators.get(name, f'<motor joint={xml_attribute(name)}/>')}" for name in robot.joint_names]
    return ["  <actuator>", *motors, "  </actuator>", "  <keyframe>",
            f'    <key name="closed" qpos="{digits(followers.loops.posture[order])}"/>', "  </keyframe>"]


def _closures(robot: Robot) -> tuple[Closure, ...]:
    return () if robot.followers is None or robot.followers.loops is None else robot.followers.loops.closures


def _site(closure: Closure, side: str, more: str = "") -> str:
    return xml_attribute(" ".join(part for part in (closure.name, side, more) if part))


def _sites(closures: Sequence[Closure], body: int, indent: str) -> Iterator[str]:
    """Yield the lines of the sites of closures on a body, by index of the body."""
    for closure in closures:
        for side, end in (("first", closure.first), ("second", closure.second)):
            if end.body != body:
                continue
            axes, place = np.concatenate([end.pose[:3, 0], end.pose[:3, 1]]), end.pose[:3, 3]
            yield f'{indent}<site name={_site(closure, side)} pos="{digits(place)}" xyaxes="{digits(axes)}"/>'
            if closure.kind == "axis":
                yield (f'{indent}<site name={_site(closure, side, "along")} pos="{digits(place + end.pose[:3, 2])}" '
                       f'xyaxes="{digits(axes)}"/>')


def _at_zero(tree: Robot, place: Frame) -> Array:
    """Return the position (3,) of a frame of the tree in the base frame, with all joints at zero."""
    pose, body = place.pose, place.body
    while body != BASE:
        joint = tree.joints[body]
        pose, body = joint.before @ joint.after @ pose, joint.parent
    return np.asarray(pose[:3, 3])


def _inertial(values: Mapping[str, str]) -> str:
    return "<inertial" + "".join(f' {key}="{value}"' for key, value in values.items()) + "/>"


def _joint(joint: Joint, body: Array, values: Mapping[str, float]) -> str:
    """Return the text of a <joint> element.

    body (4, 4): pose of the body that contains the element, in the frame of the joint's own body. values: further
    attributes.
    """
    frame = inverse(joint.after @ body)
    text = (f'<joint name={xml_attribute(joint.name)} type="{"slide" if joint.prismatic else "hinge"}" '
            f'pos="{digits(frame[:3, 3])}" axis="{digits(frame[:3, 2])}"')
    limits = np.clip([joint.lower, joint.upper], -MUJOCO_INFINITY, MUJOCO_INFINITY)
    # Equal limits are not written, because MuJoCo requires a lower limit below the upper one.
    if np.any(np.abs(limits) < MUJOCO_INFINITY) and limits[0] < limits[1]:
        text += f' limited="true" range="{digits(limits)}"'
    if 0.0 < joint.effort < MUJOCO_INFINITY:
        text += f' actuatorfrcrange="{digits([-joint.effort, joint.effort])}"'
    return text + "".join(f' {key}="{digits(value)}"' for key, value in values.items()) + "/>"


def _joint_values(i: int, joint: str, values: Mapping[str, float], places: JointFields,
                  add_note: Callable[[str], object]) -> dict[str, float]:
    """Return the attributes of joint number i from values by name; places: joint and attribute of each parameter."""
    attributes = {}
    for name, (number, attribute) in places.items():
        value = values.get(name) if number == i else None
        if value is not None and value > 0:
            attributes[attribute] = value
        elif value:
            add_note(f"{name} of joint '{joint}' is {value:.4g}: negative values are not written")
    return attributes


def mjcf_with_inertias(text: str, robot: Robot, inertias: ArrayLike, values: Mapping[str, Mapping[str, float]], *,
                       actuators: Mapping[str, str] | None = None, keeps_actuators: bool = False,
                       unchecked: bool = False, add_note: Callable[[str], object] = lambda note: None) -> str:
    """Return an MJCF with the ten parameters of every moving body (dof, 10) and the values of joints replaced.

    Args:
        text: the MJCF; it must describe this robot and include no other file.
        robot: robot with these bodies.
        inertias: ten inertial parameters of every body (dof, 10), optionally followed by those of dependent bodies.
        values: attributes that are set, by joint, such as {"joint1": {"armature": 0.1}}.
        actuators: an element for <actuator>, by joint; it replaces an actuator of the joint in the file.
        keeps_actuators: whether joints with an actuator in the file keep it.
        unchecked: also write bodies that are not physically consistent.
        add_note: called with a sentence for each note to a reader of the file.

    Raises:
        RobotError: if the file describes another robot, or has bodies or joints without a name.
    """
    from dynid.robot.mjcf import read_mjcf  # not needed to write a URDF
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
    numbers = possible_inertias(tree, rows, unchecked=unchecked, add_note=add_note)
    page = _MjcfPage.from_text(text)
    root = page.root()
    edits: list[Edit] = []
    bodies = page.named(root, "body")
    for body, row in zip(tree.bodies, numbers, strict=True):
        if body.virtual:
            continue
        edits += page.inertial(_find_element(bodies, body.name, "body"), _inertial_values(row))
        merged = [part.link for part in body.parts if part.link != body.name and part.inertia is not None]
        for link in merged:
            edits += page.inertial(_find_element(bodies, link, "body"), _ZERO_INERTIAL)
        if merged:
            add_note(f"the inertia of {', '.join(merged)}, fixed to '{body.name}', is part of that body now")
    edits += page.joints(root, values)
    edits += page.own_inertias(root, add_note)
    edits += page.actuators(root, actuators or {}, keeps_actuators, add_note)
    return page.edited(edits)


def mjcf_with_joints(text: str, values: Mapping[str, Mapping[str, float]], *,
                     actuators: Mapping[str, str] | None = None, keeps_actuators: bool = False,
                     add_note: Callable[[str], object] = lambda note: None) -> str:
    """Return an MJCF with the values of some of its joints replaced; bodies, other joints and a free base are
    unchanged.

    Args:
        text: the MJCF, which must not include other files.
        values, actuators, keeps_actuators, add_note: as for `mjcf_with_inertias`.

    Raises:
        RobotError: if the file does not have a joint of `values`.
    """
    _check_one_file(text)
    page = _MjcfPage.from_text(text)
    root = page.root()
    return page.edited([*page.joints(root, values),
                        *page.actuators(root, actuators or {}, keeps_actuators, add_note)])


def _check_one_file(text: str) -> None:
    if "<include" in text:
        raise RobotError("the MJCF includes other files, so that values cannot be written into it in place",
                         "save it as one file in MuJoCo with mj_saveLastXML, and give that file with --source FILE")


def _find_element(elements: Mapping[str, XmlElement], name: str, kind: str) -> XmlElement:
    if name not in elements:
        raise RobotError(f"{kind} '{name}' has no name in the MJCF, so that its values cannot be written in "
                         "place", f"give every {kind} a name", "not-in-file")
    return elements[name]


def _inertial_values(row: Array) -> dict[str, str]:
    return {key: digits(*np.atleast_1d(value)) for key, value in ten.to_mujoco_attributes(row).items()}


@dataclass(frozen=True)
class _MjcfPage(XmlPage):
    """The bytes of an MJCF file, and methods that return edits of its bodies, joints and actuators."""

    def named(self, element: XmlElement, tag: str) -> dict[str, XmlElement]:
        """Return the elements inside <worldbody> with a tag and a name, by name, at any depth."""
        named: dict[str, XmlElement] = {}
        for world in element.all("worldbody"):
            stack = list(world.children)
            while stack:
                inner = stack.pop()
                if inner.tag == tag and "name" in inner.attributes:
                    named[inner.attributes["name"]] = inner
                stack += inner.children
        return named

    def inertial(self, body: XmlElement, values: Mapping[str, str]) -> Iterator[Edit]:
        """Yield the edits that write the inertia of a body into its <inertial>, which is created if necessary."""
        inertial = body.first("inertial")
        for frame in body.all("frame"):  # an <inertial> inside a <frame> is replaced by that of the body
            yield from ((inner.start, inner.end, b"") for inner in frame.all("inertial"))
        if inertial is not None:
            given = set(inertial.attributes)
            yield from self.without(inertial, ((set(_ORIENTATION) | {"fullinertia"}) & given) - set(values))
            yield from self.set(inertial, values)
            return
        outer = self.space(body)
        inner = self.space(body.children[0]) if body.children else (outer + b"  " if outer else b"")
        yield self.prepended(body, inner + _inertial(values).encode())

    def joints(self, root: XmlElement, values: Mapping[str, Mapping[str, float]]) -> Iterator[Edit]:
        """Yield the edits that set attributes of joints; values: attributes by joint."""
        joints = self.named(root, "joint")
        for name, attributes in values.items():
            texts = {key: digits(value) for key, value in attributes.items()}
            yield from self.set(_find_element(joints, name, "joint"), texts)

    def own_inertias(self, root: XmlElement, add_note: Callable[[str], object]) -> Iterator[Edit]:
        """Yield the edits that stop MuJoCo from computing inertias from shapes, because the file now contains
        inertias."""
        for compiler in root.all("compiler"):
            if compiler.attributes.get("inertiafromgeom") == "true":
                yield from self.set(compiler, {"inertiafromgeom": "auto"})
                add_note('inertiafromgeom is "auto" now: MuJoCo would otherwise ignore the identified inertias')

    def actuators(self, root: XmlElement, wanted: Mapping[str, str], keeps: bool,
                  add_note: Callable[[str], object]) -> Iterator[Edit]:
        """Yield the edits that add the wanted actuators, by joint.

        An actuator of the file on the same joint is replaced under its name, so that sensors still refer to it, or with
        `keeps` it stays in place of the wanted one.
        """
        sections = root.all("actuator")
        present: dict[str, list[XmlElement]] = {}
        for own in (one for section in sections for one in section.children):
            present.setdefault(own.attributes.get("joint", ""), []).append(own)
        old = {name: present[name] for name in wanted if name in present}
        if old:
            if keeps:
                _note_kept_actuators(old, add_note)
            else:
                yield from self._replaced(root, old, wanted, add_note)
        new = [element for name, element in wanted.items() if name not in old]
        if not new:
            return
        if sections:
            inner = self.space(sections[-1].children[-1]) if sections[-1].children else self.newline + b"    "
            yield self.appended(sections[-1], b"".join(inner + one.encode() for one in new))
            return
        lines = ["  <actuator>", *(f"    {one}" for one in new), "  </actuator>"]
        yield root.closed, root.closed, self.newline.join(line.encode() for line in lines) + self.newline

    def _replaced(self, root: XmlElement, old: Mapping[str, Sequence[XmlElement]], wanted: Mapping[str, str],
                  add_note: Callable[[str], object]) -> Iterator[Edit]:
        several = next((name for name, own in old.items() if len(own) > 1), None)
        if several is not None:
            raise RobotError(f"joint '{several}' has {len(old[several])} actuators in the MJCF, which one drive cannot "
                             "replace", "remove all but one from the file, or keep them with --actuators keep",
                             "several-actuators")
        for name, (own,) in old.items():
            kept = {key: own.attributes[key] for key in ("name", "group") if key in own.attributes}
            tag, _, rest = wanted[name].partition(" ")
            rest = rest.removeprefix(f"name={xml_attribute(name)} ") if "name" in kept else rest
            words = [tag, *(f"{key}={xml_attribute(value)}" for key, value in kept.items()), rest]
            yield own.start, own.end, " ".join(words).encode()
        is_new = [name for name, (own,) in old.items() if own.tag != "position"]
        add_note(f"the identified drives replace the actuators of {', '.join(old)} in the file; --actuators keep "
                 "keeps those of the file" + (". Their commands are positions now, rad or m, and not those of a "
                 f"<{old[is_new[0]][0].tag}>" if is_new else ""))
        keys = [key for section in root.all("keyframe") for key in section.all("key") if "ctrl" in key.attributes]
        if keys and is_new:
            add_note("the controls of the keyframes were for the replaced actuators and are removed")
            for key in keys:
                yield from self.without(key, ("ctrl",))


def _note_kept_actuators(old: Mapping[str, Sequence[XmlElement]], add_note: Callable[[str], object]) -> None:
    takes_force = [name for name, own in old.items() if any(one.tag == "motor" for one in own)]
    meaning = (" The command of a <motor> is a torque: a program that commands positions must compute the torque of "
               f"the identified drive for {', '.join(takes_force)} itself" if takes_force else "")
    add_note(f"the actuators of {', '.join(old)} are those of the file, so gains, limits, delays and offsets of the "
             f"identified drives are not in it.{meaning}")


def actuator_limits(text: str) -> dict[str, float]:
    """Return the largest force of the actuators on the joints of an MJCF, N m or N, by joint; joints without a limit
    are left out."""
    from dynid.robot.mjcf_text import ACTUATORS, MjcfText  # not needed to write a URDF

    reader, limits = MjcfText("the MJCF", parse_xml(text, "MJCF")[0]), dict[str, float]()
    for element in (one for section in reader.root.findall("actuator") for one in section):
        joint = element.get("joint")
        if joint is None or element.tag not in ACTUATORS:
            continue
        where = f"the actuator of joint '{joint}'"
        own = reader.attributes(element, "actuator", where)
        gear = float(np.abs(np.array(own.get("gear", "1").split()[:1], dtype=float)).max(initial=0.0))
        for kind, key in (("force", "forcerange"), *([("ctrl", "ctrlrange")] if element.tag == "motor" else [])):
            limited = own.get(f"{kind}limited", "auto")
            if key in own and (limited == "true" or (limited == "auto" and reader.autolimits)):
                reach = gear * float(np.abs(reader.numbers(own, key, 2, where)).max())
                limits[joint] = min(limits.get(joint, np.inf), reach)
    return limits
