"""Conversion of the equality constraints of an MJCF file to mimic joints and loop closures.

- <joint>: joint1 depends linearly on joint2, or joint2 on joint1 if only joint1 is driven. A single joint is fixed.
- <connect>: a closure of kind "point"; two <connect> between the same two bodies are a closure of kind "axis".
- <weld>: a closure of kind "rigid". Both <connect> and <weld> connect bodies or sites.
- <tendon>: a spatial tendon of fixed length between two sites is a closure of kind "rod".
- Joints of loops without an actuator are dependent. The posture of the first <key> selects the assembly branch; without
  a <key>, the initial posture of the model does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

import numpy as np

from dynid.arrays import Array
from dynid.robot.followers import Mimic, followed, resolved
from dynid.robot.loops import Closure, ClosureKind, closed
from dynid.robot.mjcf_text import ACTUATORS, MjcfText, from_quat
from dynid.robot.pose import inverse, translation, turn_z_to
from dynid.robot.robot import Frame, Robot

_SAME_POINT = 1e-6  # m: smallest distance of two different points, and relative tolerance of equal distances


@dataclass(frozen=True, eq=False)
class Spot:
    """The location of a body frame or site of the file on a body of the kinematic tree.

    Attributes:
        body: index of the body, BASE for the world.
        pose: pose (4, 4) of the location in the body frame.
        drawn: pose (4, 4) of the location in the world, in the initial posture of the file.
        mocap: whether the location is on a mocap body, which the user of the simulator moves.
    """

    body: int
    pose: Array
    drawn: Array
    mocap: bool = False


Spots = Mapping[tuple[str, str], Spot]


def close_loops(tree: Robot, text: MjcfText, spots: Spots, refs: Sequence[float], addresses: Sequence[int]) -> Robot:
    """Return the robot whose joints are the joints of the tree that the constraints of the file leave independent.

    spots: locations of bodies and sites; refs: initial position of each joint, rad or m; addresses: index of each
    joint's position in a <key>.
    """
    reader = _Constraints(tree, text, spots, dict(zip(tree.joint_names, refs, strict=True)))
    driven = reader.driven()
    for section in text.root.findall("equality"):
        for element in section:
            attributes = text.attributes(element, "equality", f"<{element.tag}> in <equality>")
            if text.flag(attributes, "active", True, f"<{element.tag}> in <equality>"):
                reader.read(element, attributes, driven)
    closures = _with_axes(reader.closures)
    following = reader.following(closures, driven)
    if closures and driven is None:
        raise text.error(f"constraint '{closures[0].name}' closes a loop, but no actuator specifies which joints are "
                         "driven; add <actuator> with a <motor> for each driven joint, or describe the robot in a "
                         "TOML file with closures")
    robot = (closed(tree, closures, following, reader.posture(addresses), reader.mimics) if closures
             else followed(tree, reader.mimics))
    lost = [name for j, name in enumerate(tree.joint_names) if name in (*following, *reader.mimics)
            and any(f"{symbol}{j + 1}" in tree.values for symbol in ("Ia", "Fv", "Fc"))]
    if lost:
        text.warnings.append(f"armature, damping and frictionloss of {', '.join(lost)} are ignored, because "
                             f"{'it is a dependent joint' if len(lost) == 1 else 'they are dependent joints'}")
    return robot


class _Constraints:
    """Converter of equality constraints to mimic joints and closures; refs: initial positions of joints, rad or m."""

    def __init__(self, tree: Robot, text: MjcfText, spots: Spots, refs: Mapping[str, float]) -> None:
        self.tree, self.text, self.spots, self.refs = tree, text, spots, refs
        self.mimics: dict[str, Mimic] = {}
        self.closures: list[Closure] = []
        self.tendons = {tendon.get("name"): tendon for section in text.root.findall("tendon") for tendon in section}

    def driven(self) -> set[str] | None:
        """Return the names of the joints that actuators drive, directly or through tendons; None without actuators."""
        names: set[str] = set()
        elements = [element for section in self.text.root.findall("actuator") for element in section
                    if element.tag in ACTUATORS]
        for element in elements:
            where = f"actuator '{element.get('name', '')}'"
            attributes = self.text.attributes(element, "actuator", where)
            name = attributes.get("joint", attributes.get("jointinparent"))
            if name is not None:
                names.add(self.joint(name, where))
            elif attributes.get("tendon") in self.tendons:
                tendon = self.tendons[attributes["tendon"]]
                names |= {self.joint(joint.get("joint", ""), where) for joint in tendon.findall("joint")}
            if any(attributes.get(key, "0") not in ("0", "0.0") for key in ("armature", "damping")):
                self.text.warnings.append(f"armature and damping of {where} are ignored; set them on its joint")
        return names if elements else None

    def joint(self, name: str, where: str) -> str:
        if name not in self.tree.joint_names:
            raise self.text.error(f"{where} names joint '{name}', which is not a hinge or slide joint of the file")
        return name

    def read(self, element: Element, attributes: Mapping[str, str], driven: set[str] | None) -> None:
        name = element.get("name") or f"{element.tag}{len(self.closures) + len(self.mimics) + 1}"
        where = f"<{element.tag}> '{name}' in <equality>"
        if element.tag == "joint":
            self.mimic(attributes, where, driven or set())
        elif element.tag in ("connect", "weld"):
            self.closure(element.tag, attributes, name, where)
        elif element.tag == "tendon":
            self.rod(attributes, name, where)
        else:
            raise self.text.error(f"{where} is not supported; supported are connect, weld, joint and tendon")

    def coefficients(self, attributes: Mapping[str, str], where: str) -> Array:
        """Return the coefficients (5,) of a polynomial, with MuJoCo's defaults for missing coefficients."""
        count = min(max(len(attributes.get("polycoef", "0").split()), 1), 5)
        values = np.array([0.0, 1.0, 0.0, 0.0, 0.0])
        values[:count] = self.text.numbers(attributes, "polycoef", count, where, (0.0,))
        return values

    def mimic(self, attributes: Mapping[str, str], where: str, driven: set[str]) -> None:
        """Add a mimic joint with the positions q1 - ref1 = a0 + a1 (q2 - ref2), where a0 and a1 are coefficients."""
        coefficients = self.coefficients(attributes, where)
        first = self.joint(attributes.get("joint1", ""), where)
        if "joint2" not in attributes:
            others = [name for name in self.tree.joint_names if name != first]
            if not others:
                raise self.text.error(f"{where} fixes the only joint '{first}', so there is nothing to identify")
            self.follow(first, Mimic(others[0], 0.0, self.refs[first] + float(coefficients[0])), where)
            return
        second = self.joint(attributes["joint2"], where)
        if np.any(coefficients[2:]):
            raise self.text.error(f"{where} couples joint '{first}' to '{second}' by a polynomial of higher order; "
                                  "only linear couplings, with two coefficients, are supported")
        slope = float(coefficients[1])
        offset = self.refs[first] + float(coefficients[0]) - slope * self.refs[second]
        if first in driven and second not in driven and slope != 0.0:
            self.follow(second, Mimic(first, 1.0 / slope, -offset / slope), where)
        else:
            self.follow(first, Mimic(second, slope, offset), where)

    def follow(self, name: str, mimic: Mimic, where: str) -> None:
        if name in self.mimics or name == mimic.joint:
            raise self.text.error(f"{where} makes joint '{name}' depend on '{mimic.joint}', but " + (
                "a joint cannot depend on itself" if name == mimic.joint else
                f"'{name}' depends on '{self.mimics[name].joint}' already") + "; remove the constraint")
        self.mimics[name] = mimic

    def spot(self, kind: str, name: str, where: str) -> Spot:
        if (kind, name) not in self.spots:
            raise self.text.error(f"{where} names the {kind} '{name}', which is not in the file")
        return self.spots[kind, name]

    def closure(self, tag: str, attributes: Mapping[str, str], name: str, where: str) -> None:
        kind = "site" if "site1" in attributes else "body"
        first = self.spot(kind, attributes.get(f"{kind}1", ""), where)
        second = self.spot(kind, attributes.get(f"{kind}2", "world" if kind == "body" else ""), where)
        if first.mocap or second.mocap:
            self.text.warnings.append(f"{where} attaches a body to a mocap body, which the user of the simulator "
                                      "moves; it is ignored")
            return
        if tag == "weld" and float(self.text.numbers(attributes, "torquescale", 1, where, (1.0,))[0]) == 0.0:
            raise self.text.error(f'{where} has torquescale="0"; use <connect> instead')
        places = [first.pose, second.pose]
        if kind == "body":
            # If only one attachment frame is given, the other one follows from the initial posture.
            across = inverse(second.drawn) @ first.drawn
            if tag == "connect":
                at = translation(*self.text.numbers(attributes, "anchor", 3, where))
                places = [first.pose @ at, second.pose @ across @ at]
            else:
                pose = self.text.numbers(attributes, "relpose", 7, where, (0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0))
                between = inverse(across)
                if "relpose" in attributes and np.any(pose[3:]):
                    turn = from_quat(self.text.direction(pose[3:], "relpose", where))
                    between = translation(*pose[:3]) @ turn
                places = [first.pose @ between, second.pose]
        self.hold(name, "point" if tag == "connect" else "rigid", (first.body, second.body), places)

    def hold(self, name: str, kind: ClosureKind, bodies: Sequence[int], places: Sequence[Array],
             length: float = 0.0) -> None:
        ends = [Frame(f"{name} {side}", body, place)
                for side, body, place in zip(("first", "second"), bodies, places, strict=True)]
        self.closures.append(Closure(name, kind, ends[0], ends[1], length))

    def rod(self, attributes: Mapping[str, str], name: str, where: str) -> None:
        """Add a rod whose length is the distance of its ends in the initial posture plus the coefficient a0."""
        tendon = self.tendons.get(attributes.get("tendon1"))
        sites = [] if tendon is None else [site.get("site", "") for site in tendon]
        if tendon is None or "tendon2" in attributes or tendon.tag != "spatial" or len(sites) != 2:
            raise self.text.error(f"{where} is not supported; the only supported tendon is a spatial tendon between "
                                  "two sites, which acts as a rod")
        first, second = (self.spot("site", site, where) for site in sites)
        drawn = float(np.linalg.norm(first.drawn[:3, 3] - second.drawn[:3, 3]))
        self.hold(name, "rod", (first.body, second.body), (first.pose, second.pose),
                  drawn + float(self.coefficients(attributes, where)[0]))

    def following(self, closures: Sequence[Closure], driven: set[str] | None) -> list[str]:
        """Return the names of the joints in loops that are neither driven by an actuator nor by another joint."""
        tree, names = self.tree, self.tree.joint_names
        inside = np.zeros(tree.dof, dtype=bool)
        for closure in closures:
            inside |= closure.joints(tree)
        # If a joint in a loop is a mimic joint, the joint that it depends on belongs to the loop too.
        in_loop = {resolved(name, self.mimics, tree).joint if name in self.mimics else name
                   for name, is_inside in zip(names, inside, strict=True) if is_inside}
        return [name for name in names if name in in_loop and name not in (driven or set())]

    def posture(self, addresses: Sequence[int]) -> dict[str, float]:
        """Return the positions of all joints in the first <key> with positions, otherwise in the initial posture."""
        for key in (key for section in self.text.root.findall("keyframe") for key in section.findall("key")):
            words = key.get("qpos", "").split()
            if words:
                q = self.text.numbers(key.attrib, "qpos", len(words), f"<key> '{key.get('name', '')}'")
                if len(q) <= max(addresses):
                    raise self.text.error(f"<key> '{key.get('name', '')}' has {len(q)} positions, fewer than there "
                                          "are joints")
                return {name: float(q[i]) for name, i in zip(self.tree.joint_names, addresses, strict=True)}
        return dict(self.refs)


def _with_axes(closures: Sequence[Closure]) -> list[Closure]:
    """Return the closures in which two closures of kind "point" between the same two bodies are replaced by one closure
    of kind "axis" through both points."""
    combined: list[Closure] = []
    for closure in closures:
        for k, other in enumerate(combined):
            if other.kind == closure.kind == "point" and (other.first.body, other.second.body) == (
                    closure.first.body, closure.second.body):
                along = [b.pose[:3, 3] - a.pose[:3, 3] for a, b in
                         ((other.first, closure.first), (other.second, closure.second))]
                lengths = [float(np.linalg.norm(vector)) for vector in along]
                if min(lengths) > _SAME_POINT and abs(lengths[0] - lengths[1]) <= _SAME_POINT * max(lengths):
                    first, second = (
                        Frame(end.name, end.body, translation(*end.pose[:3, 3]) @ turn_z_to(vector / length))
                        for end, vector, length in zip((other.first, other.second), along, lengths, strict=True))
                    combined[k] = Closure(other.name, "axis", first, second)
                    break
        else:
            combined.append(closure)
    return combined
