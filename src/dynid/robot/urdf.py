"""Reader of URDF.

- Revolute, continuous, prismatic and fixed joints with any axis are read, and trees with branches. A <mimic> joint is a
  dependent joint (`dynid.robot.followers`). Joints are ordered depth-first from the root link, children in the order of
  the file.
- A link that is fixed to another link is merged into its body, with inertia and collision shapes. It remains a frame.
- The frame of a body is its link frame in the URDF, whatever the joint's axis.
- Links without <inertial> are allowed: such a robot can be identified but not simulated.
- Collision boxes, cylinders, spheres and capsules are read. Meshes are listed by name and not opened.
- <dynamics damping friction> become `Robot.values` Fv<j>, Fc<j>. Unknown tags are ignored.
- <transmission> elements, also inside <ros2_control>, give `Joint.reduction`.
- A floating joint of the root link is a free base (`dynid.robot.free_base`), or is treated as fixed, with a warning, if
  `fixed_base` is set. A planar joint of the root link is always treated as fixed, with a warning.
- Angles and axes of joints that are printed with few digits (1.5708) are replaced by the exact values that they
  represent, and a warning lists them; see `dynid.robot.pose`.
- XML with a DTD, entities or external references is refused, and so are incomplete elements. The message names the file
  and the element.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast
from xml.etree.ElementTree import Element

import numpy as np

from dynid.arrays import Array
from dynid.errors import RobotError
from dynid.quantities import LARGEST, NO_LIMIT, is_physical
from dynid.robot import inertia as ten
from dynid.robot.followers import Mimic, followed
from dynid.robot.free_base import base_warnings
from dynid.robot.pose import exact_angle, exact_axis, from_xyz_rpy, inverse, rounded_warnings, turn_z_to
from dynid.robot.robot import (
    BASE,
    Body,
    Frame,
    Joint,
    JointKind,
    MeshShape,
    Part,
    Robot,
    Shape,
    ShapeKind,
    checked_sizes,
    merged_inertia,
)
from dynid.robot.urdf_text import SHAPE_SIZES, parse_urdf, reductions


def read_urdf(source: str | Path, *, gravity: Sequence[float] | None = None, fixed_base: bool = False) -> Robot:
    """Return a robot from a URDF file, or from URDF text (anything that starts with '<').

    gravity: (3,) in the frame of the root link, or of the world for a free base, m/s^2; default (0, 0, -9.81).
    fixed_base: treat a floating root joint as fixed.
    """
    root, file, stem, text = parse_urdf(source)
    is_text = isinstance(source, str) and source.lstrip().startswith("<")
    reader = _Reader(file, fixed_base, None if is_text else Path(source).parent)
    reader.reductions = reductions(root, file)
    with np.errstate(over="ignore", invalid="ignore"):
        links = reader.links(root)
    edges = reader.edges(root, links)
    base = reader.root(links, edges)
    reader.warnings += rounded_warnings(reader.rounded)
    reader.check_mimics(edges)
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # numbers that large are refused below
            robot = replace(reader.robot(root.get("name") or stem, base, links, edges), text=text)
            robot = robot.with_free_base() if reader.floating else robot
        robot = followed(checked_sizes(robot), reader.mimics)
    except RobotError as problem:
        raise reader.error(str(problem).removeprefix(f"{file}: "), problem.code) from None
    robot = replace(robot, warnings=(*robot.warnings, *base_warnings(robot)))
    return robot if gravity is None else robot.with_gravity(gravity)


@dataclass(frozen=True, eq=False)
class _Edge:
    """A joint element of the file between a parent and a child link; a fixed joint has None as `joint`.

    origin (4, 4): pose of the child link in the parent link at zero. damping: N m s/rad. friction: N m.
    """

    name: str
    parent: str
    child: str
    origin: Array
    joint: Joint | None
    damping: float = 0.0
    friction: float = 0.0


class _Reader:
    """Converter of URDF elements to a robot. It collects warnings; `file` is at the beginning of every message."""

    def __init__(self, file: str, fixed_base: bool, folder: Path | None) -> None:
        self.file = file
        self.fixed_base = fixed_base
        self.folder = folder  # of the file, None for text
        self.floating: _Edge | None = None  # the joint of a free base
        self.warnings: list[str] = []
        self.mimics: dict[str, Mimic] = {}
        self.children: set[str | None] = set()  # links that are the child of a joint
        self.reductions: dict[str, float] = {}  # gear ratios, by joint
        self.rounded: dict[str, list[float]] = {}  # by joint: rounding error of each angle, rad

    # -- numbers -----------------------------------------------------------------------------------
    def error(self, message: str, code: str | None = None) -> RobotError:
        return RobotError(f"{self.file}: {message}", code=code)

    def numbers(self, text: str, count: int, what: str, *, infinite: bool = False) -> list[float]:
        """Return the `count` numbers of a text, separated by spaces. what: name of the attribute in messages; infinite:
        whether infinite numbers are allowed."""
        words = text.split()
        if len(words) != count:
            raise self.error(f"{what} needs {count} number{'s' if count > 1 else ''}, got \"{text}\"")
        try:
            values = [float(word) for word in words]
        except ValueError:
            raise self.error(f"{what} must be {'numbers' if count > 1 else 'a number'}, got \"{text}\"",
                             code="not-a-number") from None
        if any(math.isnan(v) or (math.isinf(v) and not infinite) for v in values):
            raise self.error(f"{what} must be finite, got \"{text}\"", code="not-a-number")
        if not infinite and any(abs(v) > LARGEST for v in values):
            raise self.error(f'{what} has a number above {LARGEST:g}, which is not plausible for a robot, got "{text}"')
        if infinite:  # limits: some files write 1e16, or the largest double, for none
            return [math.copysign(math.inf, v) if abs(v) > NO_LIMIT else v for v in values]
        return [v if is_physical(v) else 0.0 for v in values]

    def attribute(self, element: Element, key: str, where: str, count: int = 1) -> list[float]:
        text = element.get(key)
        if text is None:
            raise self.error(f"<{element.tag}> of {where} has no attribute '{key}'")
        return self.numbers(text, count, f"'{key}' in <{element.tag}> of {where}")

    def optional(self, element: Element | None, key: str, where: str, default: float) -> float:
        """Return the number of an optional attribute, which may be infinite, or a default value."""
        text = None if element is None else element.get(key)
        if element is None or text is None:
            return default
        return self.numbers(text, 1, f"'{key}' in <{element.tag}> of {where}", infinite=True)[0]

    def origin(self, element: Element, where: str, joint: str | None = None) -> Array:
        """Return the pose (4, 4) of an element's <origin>; if a joint is named, its rounded angles are made exact."""
        origin = element.find("origin")
        xyz, rpy = ([0.0] * 3 if origin is None or origin.get(key) is None else self.attribute(origin, key, where, 3)
                    for key in ("xyz", "rpy"))
        if joint is None:
            return from_xyz_rpy(xyz, rpy)
        exact = [exact_angle(angle) for angle in rpy]
        self.rounded[joint] = [abs(printed - meant) for printed, meant in zip(rpy, exact, strict=True)]
        return from_xyz_rpy(xyz, exact)

    def named(self, root: Element, tag: str) -> Iterator[tuple[str, Element]]:
        """Yield the links or joints of the file with their names; raise an error for missing and repeated names."""
        names: set[str] = set()
        for i, element in enumerate(root.findall(tag), 1):
            name = element.get("name")
            if not name or name in names:
                raise self.error(f"two {tag}s have the name '{name}'" if name else f"{tag} {i} of the file has no name")
            names.add(name)
            yield name, element

    # -- links -------------------------------------------------------------------------------------
    def links(self, root: Element) -> dict[str, Body]:
        links: dict[str, Body] = {}
        for name, element in self.named(root, "link"):
            where = f"link '{name}'"
            collisions = element.findall("collision")
            shapes = [shape for collision in collisions for shape in self.shapes(collision, name, where)]
            meshes = [mesh for collision in collisions for mesh in self.meshes(collision, name, where)]
            links[name] = Body(name, self.inertia(element, where), tuple(shapes), meshes=tuple(meshes))
        if not links:
            raise self.error("<link> is missing", code="no-link")
        return links

    def inertia(self, link: Element, where: str) -> Array | None:
        """Return the ten inertial parameters (10,) of a link in its frame, or None without <inertial>."""
        inertial = link.find("inertial")
        if inertial is None:
            return None
        mass, matrix = inertial.find("mass"), inertial.find("inertia")
        if mass is None or matrix is None:
            raise self.error(f"<inertial> of {where} has no <{'mass' if mass is None else 'inertia'}>")
        value = self.attribute(mass, "value", where)[0]
        six = [self.attribute(matrix, key, where)[0] for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")]
        pose = self.origin(inertial, f"<inertial> of {where}")
        turn = pose[:3, :3]
        return ten.from_central(value, pose[:3, 3], turn @ ten.symmetric(six) @ turn.T)

    def shapes(self, collision: Element, link: str, where: str) -> list[Shape]:
        """Return the primitive shapes of a <collision> element; meshes are left out."""
        geometry = collision.find("geometry")
        if geometry is None:
            raise self.error(f"<collision> of {where} has no <geometry>")
        pose = self.origin(collision, f"<collision> of {where}")
        shapes = []
        for element in geometry:
            if element.tag not in SHAPE_SIZES:
                continue
            count = 3 if element.tag == "box" else 1
            size = [x for key in SHAPE_SIZES[element.tag] for x in self.attribute(element, key, where, count)]
            if min(size) < 0:
                raise self.error(f"<{element.tag}> of {where} has a negative size")
            shapes.append(Shape(cast(ShapeKind, element.tag), tuple(size), pose, link))
        return shapes

    def meshes(self, collision: Element, link: str, where: str) -> Iterator[MeshShape]:
        """Yield the meshes of a <collision> element, whose files are not opened here."""
        pose = self.origin(collision, f"<collision> of {where}")
        for mesh in collision.iterfind("geometry/mesh"):
            try:
                scale = tuple(map(float, mesh.get("scale", "1 1 1").split()))
            except ValueError:
                scale = ()
            is_known = len(scale) == 3 and all(map(math.isfinite, scale))
            yield MeshShape(mesh.get("filename", ""), scale if is_known else None, pose, link, self.folder)

    # -- joints ------------------------------------------------------------------------------------
    def edges(self, root: Element, links: dict[str, Body]) -> list[_Edge]:
        edges: list[_Edge] = []
        child_of: dict[str, str] = {}
        self.children = {child.get("link") for joint in root.findall("joint") for child in joint.findall("child")}
        for name, element in self.named(root, "joint"):
            edge = self.edge(element, name, links)
            if edge.child in child_of:
                raise self.error(f"link '{edge.child}' is the child of two joints, "
                                 f"'{child_of[edge.child]}' and '{name}'; a URDF is a tree")
            child_of[edge.child] = name
            edges.append(edge)
        return self.freed(edges, links)

    def freed(self, edges: list[_Edge], links: dict[str, Body]) -> list[_Edge]:
        """Return the joints without the floating joint of a free base, and remove its parent link, the world."""
        floating = self.floating
        if floating is None:
            return edges
        if [edge.name for edge in edges if edge.parent == floating.parent] != [floating.name]:
            raise self.error(f"link '{floating.parent}' has other joints in addition to the floating joint "
                             f"'{floating.name}'; the parent link of a free base can have only that joint")
        del links[floating.parent]
        return [edge for edge in edges if edge is not floating]

    def edge(self, element: Element, name: str, links: dict[str, Body]) -> _Edge:
        where = f"joint '{name}'"
        ends = []
        for tag in ("parent", "child"):
            end = element.find(tag)
            link = None if end is None else end.get("link")
            if not link:
                raise self.error(f"{where} has no <{tag} link=...>")
            if link not in links:
                raise self.error(f"{where} has the {tag} link '{link}', which is not in the file", code="unknown-link")
            ends.append(link)
        kind = element.get("type")
        if kind == "floating" and ends[0] not in self.children and not self.fixed_base:
            self.floating = _Edge(name, ends[0], ends[1], np.eye(4), None)
            return self.floating
        if kind in ("floating", "planar") and ends[0] not in self.children:
            self.warnings.append(f"{where} is a floating base ({kind}), but the base is assumed to be fixed: use logs "
                                 "in which it was clamped")
            kind = "fixed"
        if kind not in ("revolute", "continuous", "prismatic", "fixed"):
            raise self.error(f"{where} has the type '{kind}'; it must be revolute, continuous, prismatic or fixed"
                             if kind else f"{where} has no type")
        origin = self.origin(element, where, name)
        if kind == "fixed":
            return _Edge(name, ends[0], ends[1], origin, None)
        self.mimic(element, name, where)
        turn = turn_z_to(self.axis(element, name, where))
        joint = Joint(name, cast(JointKind, kind), BASE, origin @ turn, inverse(turn),
                      reduction=self.reductions.get(name))
        dynamics = element.find("dynamics")
        return _Edge(name, ends[0], ends[1], origin, self.limited(joint, element.find("limit"), where),
                     self.optional(dynamics, "damping", where, 0.0), self.optional(dynamics, "friction", where, 0.0))

    def mimic(self, element: Element, name: str, where: str) -> None:
        """Store the joint that a joint mimics, if the joint has a <mimic> element."""
        mimic = element.find("mimic")
        if mimic is None:
            return
        other = mimic.get("joint")
        if not other:
            raise self.error(f"<mimic> of {where} names no joint")
        numbers = [self.numbers(mimic.get(key, default), 1, f"'{key}' in <mimic> of {where}")[0]
                   for key, default in (("multiplier", "1"), ("offset", "0"))]
        self.mimics[name] = Mimic(other, *numbers)

    def axis(self, element: Element, name: str, where: str) -> Array:
        axis = element.find("axis")
        if axis is None:
            return np.array([1.0, 0.0, 0.0])  # URDF's default
        xyz = np.array(self.attribute(axis, "xyz", where, 3))
        length = float(np.linalg.norm(xyz))
        if length < 1e-9:
            raise self.error(f"{where} has a zero axis", "zero-axis")
        exact = exact_axis(xyz.tolist())
        self.rounded[name].append(float(np.linalg.norm(np.cross(xyz / length, exact))))
        return exact

    def limited(self, joint: Joint, limit: Element | None, where: str) -> Joint:
        """Return the joint with its limits. A limit that is missing, or a zero velocity or effort, means unlimited.

        The attribute acceleration is not in the URDF standard, but some files have it.
        """
        if limit is None:
            if joint.kind != "continuous":
                self.warnings.append(f"{where} has no <limit>, so it is assumed to be unlimited")
            return joint
        lower, upper = self.optional(limit, "lower", where, -np.inf), self.optional(limit, "upper", where, np.inf)
        if joint.kind == "continuous":
            lower, upper = -np.inf, np.inf
        elif limit.get("lower") is None or limit.get("upper") is None:
            self.warnings.append(f"{where} has a <limit> without lower or upper, so it is assumed to be unlimited "
                                 "there")
        elif lower == upper:
            self.warnings.append(f"{where} has lower and upper limit {lower:g}, so it cannot move")
        most = {key: self.optional(limit, key, where, np.inf) for key in ("velocity", "acceleration", "effort")}
        for key, value in most.items():
            if value < 0:
                raise self.error(f"{where} has a negative limit {key}=\"{value:g}\"; it must be zero or more")
            if value == 0:
                self.warnings.append(f'{where} has the limit {key}="0", so it is treated as unknown')
                most[key] = np.inf
        return replace(joint, lower=lower, upper=upper, velocity=most["velocity"],
                       acceleration=most["acceleration"], effort=most["effort"])

    def check_mimics(self, edges: Sequence[_Edge]) -> None:
        """Raise an error if a mimic joint depends on a joint that does not exist."""
        names = {edge.name for edge in edges}
        for name, mimic in self.mimics.items():
            if mimic.joint not in names:
                raise self.error(f"joint '{name}' mimics joint '{mimic.joint}', which is not in the file")

    # -- the tree ----------------------------------------------------------------------------------
    def root(self, links: dict[str, Body], edges: list[_Edge]) -> str:
        children = {edge.child for edge in edges}
        roots = [name for name in links if name not in children]
        if not roots:
            raise self.error("every link is the child of some joint, so there is a loop and no root link",
                             "no-root-link")
        if len(roots) > 1:
            raise self.error(f"links '{roots[0]}' and '{roots[1]}' both have no parent joint; a URDF has one root link")
        return roots[0]

    def robot(self, name: str, base: str, links: dict[str, Body], edges: list[_Edge]) -> Robot:
        """Return the robot with the root link `base`; links on fixed joints belong to the body of their parent."""
        leaving: dict[str, list[_Edge]] = {}
        for edge_from in edges:
            leaving.setdefault(edge_from.parent, []).append(edge_from)
        joints: list[Joint] = []
        bodies: list[tuple[str, list[Part], list[Shape], list[MeshShape]]] = []
        frames: list[Frame] = []
        values: dict[str, float] = {}
        # Parts and collision geometry of the root link and the links fixed to it.
        rooted: tuple[list[Part], list[Shape], list[MeshShape]] = [], [], []
        # Entries are a link, the body of its parent link, the parent link's pose in that body, and the joint between
        # both links. The next link in the order of the file is on top.
        stack: list[tuple[str, int, Array, _Edge | None]] = [(base, BASE, np.eye(4), None)]
        while stack:
            link_name, body, pose, edge = stack.pop()
            if edge is not None and edge.joint is not None:
                # `pose` is that of the parent link in the parent body.
                joints.append(replace(edge.joint, parent=body, before=pose @ edge.joint.before))
                body, pose = len(joints) - 1, np.eye(4)
                bodies.append((link_name, [], [], []))
                values.update({f"{term}{body + 1}": value for term, value in
                               (("Fv", edge.damping), ("Fc", edge.friction)) if value})
            elif edge is not None:
                pose = pose @ edge.origin
            link = links[link_name]
            frames.append(Frame(link_name, body, pose))
            parts, shapes, meshes = rooted if body == BASE else bodies[body][1:]
            parts.append(Part(link_name, pose, link.inertia))
            shapes.extend(replace(shape, pose=pose @ shape.pose) for shape in link.shapes)
            meshes.extend(replace(mesh, pose=pose @ mesh.pose) for mesh in link.meshes)
            stack.extend((after.child, body, pose, after) for after in reversed(leaving.get(link_name, [])))
        reached = {frame.name for frame in frames}
        for link_name in links:
            if link_name not in reached:
                raise self.error(f"link '{link_name}' is part of a loop of joints that is not connected to the root "
                                 f"'{base}'")
        idle = [part.link for part in rooted[0] if part.inertia is not None]
        if idle and self.floating is None:
            self.warnings.append(f"the inertia of {', '.join(idle)} has no effect because "
                                 f"{'it is' if len(idle) == 1 else 'they are'} fixed to the base")
        under, *made = (Body(body_name, merged_inertia(parts), tuple(shapes), tuple(parts), meshes=tuple(meshes))
                        for body_name, parts, shapes, meshes in [(base, *rooted), *bodies])
        try:
            return Robot(name, tuple(joints), tuple(made), frames=tuple(frames), base=base, values=values,
                         source=self.file.removeprefix("URDF '").removesuffix("'"), warnings=tuple(self.warnings),
                         root=under)
        except RobotError as problem:
            raise self.error(str(problem), problem.code) from None
