"""Reader of MJCF, the file format of MuJoCo: the tree, its inertias and its constraints.

- Hinges and slides, any axis, several per body (with massless bodies between them), `ref`, limits, and the effort of
  `actuatorfrcrange`. A free joint of a body on the world is a free base (`dynid.robot.free_base`), or is fixed, with a
  warning, if `fixed_base` is set; ball joints are refused.
- A body without joints is merged into its parent: inertia, and a named frame. Sites are frames too.
- armature, damping and frictionloss become `Robot.values` Ia<j>, Fv<j>, Fc<j>; stiffness is ignored, with a warning.
- Default classes, childclass, <frame>, the compiler's angle, autolimits and eulerseq, and gravity are as in MuJoCo.
- Inertias are in the file, or are those of geoms that are spheres, capsules, cylinders, boxes or ellipsoids; meshes
  are not opened. Included files are read if they are in the folder of the model.
- Equality constraints become dependent joints or closures; see `dynid.robot.mjcf_loops`.
- Angles are used as printed, so that torques equal those of MuJoCo.
- Elements that generate other elements (replicate, attach and similar) are refused; the error names file and element.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from xml.etree.ElementTree import Element

import numpy as np

from dynid.arrays import Array
from dynid.errors import RobotError
from dynid.robot import inertia as ten
from dynid.robot.free_base import BASE_ROWS, ROOT, base_warnings, free_bodies, free_joints
from dynid.robot.mjcf_loops import Spot, close_loops
from dynid.robot.mjcf_text import MAX_XML_DEPTH, ORIENTATIONS, ElementPose, MjcfText, geoms_inertia, unique_name
from dynid.robot.pose import inverse, rotation_z, translation, turn_z_to
from dynid.robot.robot import BASE, FREE_COORDINATES, Body, Frame, Joint, Part, Robot, checked_sizes, merged_inertia
from dynid.robot.urdf_text import MUJOCO_INFINITY, parse_xml

_ROOT_TAGS = ("mujoco", "mujocoinclude")
MAX_INCLUDED_FILES = 200  # files
_SAVED_MODEL_HINT = ("as MuJoCo does when it saves a compiled model "
                     "(saveinertial=\"true\" in <compiler>, then mj_saveLastXML)")
_CHANGES_MASS = ("boundmass", "boundinertia", "settotalmass", "balanceinertia")


def read_mjcf(source: str | Path, *, gravity: Sequence[float] | None = None, fixed_base: bool = False) -> Robot:
    """Return a robot from an MJCF file, or from MJCF text (anything that starts with '<').

    gravity: (3,) in the world frame, m/s^2; default that of the file. fixed_base: treat a free joint as fixed.
    """
    root, file, stem, _ = parse_xml(source, "MJCF")
    if root.tag != "mujoco":
        raise RobotError(f"{file} has <{root.tag}> as its root element; an MJCF file has <mujoco>",
                         code="wrong-root-element")
    if isinstance(source, Path) or not source.lstrip().startswith("<"):
        folder = Path(source).parent
        _expand(root, file, folder, folder, set(), 1)
    text = MjcfText(file, root)
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # numbers that large are refused below
            tree = _Tree(text, fixed_base)
            tree.read()
            robot = checked_sizes(tree.robot(root.get("model") or stem))
        robot = close_loops(robot, text, tree.spots, tree.refs, tree.addresses)
    except RobotError as problem:
        raise text.error(str(problem).removeprefix(f"{file}: "), problem.code) from None
    robot = replace(robot, warnings=(*text.warnings, *base_warnings(robot)))
    return robot if gravity is None else robot.with_gravity(gravity)


@dataclass
class _Tree:
    """Reader of <worldbody>: joints, bodies, frames and parameter values in the order of the file.

    Attributes:
        text: reader of the attributes of elements.
        fixed_base: whether a free joint is treated as fixed.
        parts: links of the file that belong to each body, by index of the body.
        spots: locations of bodies and sites in the tree, by ("body" or "site", name).
        refs: position of each joint in the initial posture of the file, rad or m.
        addresses: index of each joint's position among the positions of a <key>.
        names: names in use, by kind of element.
    """

    text: MjcfText
    fixed_base: bool = False
    joints: list[Joint] = field(default_factory=list)
    bodies: list[Body] = field(default_factory=list)
    parts: dict[int, list[Part]] = field(default_factory=lambda: {BASE: []})
    frames: list[Frame] = field(default_factory=list)
    values: dict[str, float] = field(default_factory=dict)
    spots: dict[tuple[str, str], Spot] = field(default_factory=dict)
    refs: list[float] = field(default_factory=list)
    addresses: list[int] = field(default_factory=list)
    positions: int = 0  # number of positions in a <key>, so far
    names: dict[str, set[str]] = field(default_factory=lambda: {"body": {"world"}, "joint": set(), "site": set()})

    def read(self) -> None:
        """Read the bodies, joints and sites of the whole MJCF file."""
        text = self.text
        worlds = text.root.findall("worldbody")
        if not worlds:
            raise text.error("<worldbody> is missing")
        if text.compiler.get("inertiafromgeom", "auto") not in ("true", "false", "auto"):
            raise text.error("<compiler> has inertiafromgeom=\"" + text.compiler["inertiafromgeom"][:60]
                             + "\", it must be true, false or auto")
        for key in _CHANGES_MASS:
            if text.compiler.get(key, "0") not in ("0", "-1", "false"):
                text.warnings.append(f"<compiler {key}> is ignored: inertias are used as given")
        self.spots["body", "world"] = Spot(BASE, np.eye(4), np.eye(4))
        self.frames.append(Frame("world", BASE, np.eye(4)))
        for world in worlds:
            self.inside(world, "main", self.spots["body", "world"], "the world")

    def inside(self, element: Element, childclass: str, spot: Spot, where: str) -> None:
        """Read the sites and bodies inside a body."""
        for place in self.text.contents(element, childclass):
            if place.element.tag == "site":
                self.site(place, spot)
            elif place.element.tag == "body":
                self.body(place, spot, where)

    def name(self, kind: str, given: str | None) -> str:
        """Return the given name of an element or a generated name; raise an error for a name that is used twice."""
        if given and given in self.names[kind]:
            raise self.text.error(f"two {kind} elements have the name '{given}'")
        return unique_name(kind, given, self.names[kind])

    def site(self, place: ElementPose, spot: Spot) -> None:
        given = place.element.get("name")
        attributes = self.text.attributes(place.element, "site", f"site '{given}'", place.childclass)
        name = self.name("site", given)
        pose = place.frame @ self.text.pose(attributes, f"site '{name}'")
        self.spots["site", name] = Spot(spot.body, spot.pose @ pose, spot.drawn @ pose)
        if given:
            self.frames.append(Frame(name, spot.body, spot.pose @ pose))

    def body(self, place: ElementPose, parent: Spot, parent_name: str) -> None:
        """Read a body with everything inside it."""
        text, element = self.text, place.element
        name = self.name("body", element.get("name"))
        where = f"body '{name}'"
        childclass = element.get("childclass", place.childclass)
        if childclass not in text.defaults:
            raise text.error(f"{where} has the childclass '{childclass}', but no <default> has that class")
        pose = place.frame @ text.pose(element.attrib, where)
        drawn = parent.drawn @ pose
        inside = list(text.contents(element, childclass))
        moving = [child for child in inside if child.element.tag in ("joint", "freejoint")]
        if any(self.kind(child) == "free" for child in moving):
            if parent_name != "the world" or len(moving) > 1:
                raise text.error(f"a free joint of {where} must be the only joint of a body that is attached to the "
                                 "world")
            moving = []
            if self.free(name, where):
                parent, pose = Spot(ROOT, np.eye(4), parent.drawn), np.eye(4)
        spot = Spot(parent.body, parent.pose @ pose, drawn)
        for k, child in enumerate(moving):
            self.joint(child, spot, name, last=k == len(moving) - 1)
            spot = Spot(len(self.joints) - 1, np.eye(4), drawn)
        self.spots["body", name] = spot
        self.frames.append(Frame(name, spot.body, spot.pose))
        inertia = self.inertia(inside, where, spot.body == BASE)
        self.parts.setdefault(spot.body, []).append(Part(name, spot.pose, inertia))
        if element.get("mocap") == "true":
            self.spots["body", name] = replace(spot, mocap=True)
        if float(text.numbers(element.attrib, "gravcomp", 1, where, (0.0,))[0]):
            text.warnings.append(f"gravcomp of {where} is a feature of the simulator and is ignored")
        self.inside(element, childclass, self.spots["body", name], where)

    def free(self, name: str, where: str) -> bool:
        """Add the six coordinates of a free joint and return True; return False if the base is treated as fixed."""
        self.positions += 7
        if self.fixed_base:
            self.text.warnings.append(f"{where} is a floating base, but the base is assumed to be fixed: use logs in "
                                      "which it was clamped")
            return False
        if self.joints:
            raise self.text.error(f"{where} has a free joint, but there are joints before it; a free base must be the "
                                  "only moving body on the world")
        self.names["joint"] |= set(BASE_ROWS)
        self.joints += free_joints()
        self.bodies += free_bodies(Body(name))
        self.refs += [0.0] * FREE_COORDINATES
        self.addresses += range(FREE_COORDINATES)
        return True

    def kind(self, place: ElementPose) -> str:
        if place.element.tag == "freejoint":
            return "free"
        named = f"joint '{place.element.get('name', '')}'"
        return self.text.attributes(place.element, "joint", named, place.childclass).get("type", "hinge")

    def joint(self, place: ElementPose, spot: Spot, body: str, last: bool) -> None:
        """Read one joint of a body. Every joint except the last moves a massless body, which carries the next joint."""
        text = self.text
        name = self.name("joint", place.element.get("name"))
        where = f"joint '{name}'"
        attributes = text.attributes(place.element, "joint", where, place.childclass)
        kind = attributes.get("type", "hinge")
        if kind not in ("hinge", "slide"):
            raise text.error(f"{where} has the type '{kind}'; it must be hinge or slide; write a ball as three hinges")
        sliding = kind == "slide"
        unit = 1.0 if sliding else text.unit
        ref = unit * float(text.numbers(attributes, "ref", 1, where, (0.0,))[0])
        axis = text.direction(text.numbers(attributes, "axis", 3, where, (0.0, 0.0, 1.0)), "axis", where)
        position = text.numbers(attributes, "pos", 3, where, (0.0, 0.0, 0.0))
        own = place.frame @ translation(*position) @ turn_z_to(axis)
        back = translation(0.0, 0.0, -ref) if sliding else rotation_z(-ref)
        lower, upper = self.limits(attributes, unit, where)
        effort = float(np.abs(text.numbers(attributes, "actuatorfrcrange", 2, where, (0.0, 0.0))).max())
        limited = np.isfinite([lower, upper]).any()
        self.joints.append(Joint(name, "prismatic" if sliding else "revolute" if limited else "continuous", spot.body,
                                 spot.pose @ own @ back, inverse(own), lower, upper, effort=effort or np.inf))
        # No element of the file has the generated name of a massless body.
        self.bodies.append(Body(body) if last else Body(f"{body} on {name}", np.zeros(10), virtual=True))
        for symbol, key in (("Ia", "armature"), ("Fv", "damping"), ("Fc", "frictionloss")):
            value = text.positive(attributes, key, where)
            if value:
                self.values[f"{symbol}{len(self.joints)}"] = value
        if np.any(text.numbers(attributes, "stiffness", len(attributes.get("stiffness", "0").split()), where, (0.0,))):
            text.warnings.append(f"the stiffness of {where} is ignored; add a spring term to identify it")
        self.refs.append(ref)
        self.addresses.append(self.positions)
        self.positions += 1

    def limits(self, attributes: dict[str, str], unit: float, where: str) -> tuple[float, float]:
        text = self.text
        lower, upper = text.numbers(attributes, "range", 2, where, (0.0, 0.0))
        limited = attributes.get("limited", "auto")
        if limited not in ("true", "false", "auto"):
            raise text.error(f"'limited' of {where} must be true, false or auto, got \"{limited}\"")
        if limited == "false" or (limited == "auto" and (lower >= upper or not text.autolimits)):
            return -np.inf, np.inf
        if lower >= upper:
            raise text.error(f"'range' of {where} has a lower end {lower:g} that is not below its upper end {upper:g}")
        return (-np.inf if lower <= -MUJOCO_INFINITY else float(lower) * unit,
                np.inf if upper >= MUJOCO_INFINITY else float(upper) * unit)

    def inertia(self, inside: Sequence[ElementPose], where: str, still: bool) -> Array | None:
        """Return the ten inertial parameters (10,) of a body in its frame; None if it has neither an <inertial> nor a
        geom with mass.

        still: whether the body cannot move, so that an unknown inertia of its geoms is accepted.
        """
        text = self.text
        inertials = [place for place in inside if place.element.tag == "inertial"]
        if len(inertials) > 1:
            raise text.error(f"{where} has {len(inertials)} <inertial> elements; a body has at most one")
        mode = text.compiler.get("inertiafromgeom", "auto")
        if not still and (mode == "true" or (mode == "auto" and not inertials)):
            return geoms_inertia(text, inside, where, _SAVED_MODEL_HINT)
        if not inertials:
            return None
        attributes, what = inertials[0].element.attrib, f"<inertial> of {where}"
        pose = inertials[0].frame @ text.pose(attributes, what)
        mass = text.numbers(attributes, "mass", 1, what)[0]
        if "fullinertia" in attributes:
            if "diaginertia" in attributes or set(attributes) & set(ORIENTATIONS):
                raise text.error(f"{what} has both fullinertia and diaginertia or an orientation; remove one of them")
            xx, yy, zz, xy, xz, yz = text.numbers(attributes, "fullinertia", 6, what)
            matrix = ten.symmetric([xx, xy, xz, yy, yz, zz])
        else:
            matrix = np.diag(text.numbers(attributes, "diaginertia", 3, what))
        turn = pose[:3, :3]
        return ten.from_central(mass, pose[:3, 3], turn @ matrix @ turn.T)

    def robot(self, name: str) -> Robot:
        """Return the kinematic tree of the file in which every joint is independent."""
        is_free = bool(self.joints) and self.joints[0].name == BASE_ROWS[0] and self.bodies[0].virtual
        if len(self.joints) == (FREE_COORDINATES if is_free else 0):
            raise self.text.error("no body has a hinge or a slide, so there is nothing to identify", "no-moving-joint")
        if is_free and sum(joint.parent == BASE for joint in self.joints) > 1:
            raise self.text.error("the world has other moving bodies in addition to the free base")
        idle = [part.link for part in self.parts[BASE] if part.inertia is not None]
        if idle:
            self.text.warnings.append(f"the inertia of {', '.join(idle)} has no effect because "
                                      f"{'it is' if len(idle) == 1 else 'they are'} fixed to the world")
        bodies = [body if body.virtual else replace(body, inertia=merged_inertia(self.parts[i]),
                                                    parts=tuple(self.parts[i])) for i, body in enumerate(self.bodies)]
        return Robot(name, tuple(self.joints), tuple(bodies), self.gravity(), tuple(self.frames), "world",
                     values=self.values, source=self.text.file.removeprefix("MJCF '").removesuffix("'"),
                     has_free_base=is_free)

    def gravity(self) -> Array:
        text, down = self.text, np.array([0.0, 0.0, -9.81])
        for option in text.root.findall("option"):
            down = text.numbers(option.attrib, "gravity", 3, "<option>", tuple(down))
            if any(flag.get("gravity") == "disable" for flag in option.findall("flag")):
                return np.zeros(3)
        return down


def _expand(element: Element, file: str, folder: Path, top: Path, seen: set[Path], depth: int) -> None:
    """Replace every <include> inside an element by the content of the included file.

    folder: folder of the file that contains the element; top: folder of the model; seen: files included so far.
    """
    if depth > MAX_XML_DEPTH:
        return  # `MjcfText` raises the error
    for place, child in reversed(list(enumerate(element))):
        if child.tag != "include":
            _expand(child, file, folder, top, seen, depth + 1)
            continue
        inner, name, home = _included(child, file, folder, top, seen)
        _expand(inner, name, home, top, seen, depth)
        element[place:place + 1] = list(inner)


def _included(element: Element, file: str, folder: Path, top: Path, seen: set[Path]) -> tuple[Element, str, Path]:
    """Return the root element of an included file, its name in messages, and its folder."""
    name = element.get("file", "")
    choices = [base / name for base in (folder, top)]
    try:
        path = next((choice for choice in choices if choice.is_file()), choices[0]).resolve()
    except (OSError, ValueError):
        raise RobotError(f"{file}: <include> names '{name[:60]}', which is not a valid file name") from None
    if not name or not path.is_relative_to(top.resolve()):
        raise RobotError(f"{file}: <include> names '{name}', which is not inside the folder of the model; copy the "
                         "file into this folder")
    if path in seen or len(seen) >= MAX_INCLUDED_FILES:
        raise RobotError(f"{file}: <include> names '{name}', which is included already; include each file once")
    seen.add(path)
    root, called, _, _ = parse_xml(path, "MJCF")
    if root.tag not in _ROOT_TAGS:
        raise RobotError(f"{called} has <{root.tag}> as its root element; an included file has <mujocoinclude> or "
                         "<mujoco>")
    return root, called, path.parent
