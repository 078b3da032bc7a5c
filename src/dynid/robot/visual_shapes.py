"""Visual shapes of a robot's bodies, as primitives and meshes from STL, OBJ and DAE files."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Literal, cast
from xml.etree.ElementTree import Element, ParseError

import numpy as np
from defusedxml import DefusedXmlException
from defusedxml.ElementTree import fromstring

from dynid.arrays import Array, Ints
from dynid.errors import RobotError
from dynid.files import read_file
from dynid.robot.mjcf_text import SIZE_COUNTS, ElementPose, MjcfText, placed_geom, unique_name
from dynid.robot.pose import from_xyz_rpy, rotation_z, turn_z_to
from dynid.robot.robot import BASE, MeshShape, Robot
from dynid.robot.robot_files import PACKAGE_SCHEME, find_in_package
from dynid.robot.urdf_text import SHAPE_SIZES, parse_urdf, parse_xml

VisualKind = Literal["box", "cylinder", "capsule", "sphere", "ellipsoid", "mesh"]
Color = tuple[float, float, float, float]

_DEFAULT_COLOR: Color = (0.62, 0.65, 0.70, 1.0)
_DRAWN_GROUPS = 3  # MuJoCo's own viewer shows the groups 0, 1 and 2; others are for collisions
MAX_MESH_BYTES = 256 << 20  # bytes
_STL_FACET = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
_MAX_DAE_DEPTH, _MAX_DAE_NODES = 100, 10_000  # nodes inside nodes, and placed nodes, of a COLLADA scene
_STL_HEADER_BYTES = 84  # bytes of a binary STL before its triangles


@dataclass(frozen=True, eq=False)
class Visual:
    """A visual shape of a body.

    Attributes:
        body: index of the body in the tree of all joints, BASE for the base.
        link: name of the link in the robot file.
        kind: kind of the shape.
        size: sizes of a primitive, m, as in `Shape`, three half axes of an ellipsoid, or scale factors of a mesh.
        pose: pose (4, 4) in the body frame.
        color: red, green, blue and opacity, each from 0 to 1.
        mesh: name of the mesh in the robot file, or None.
    """

    body: int
    link: str
    kind: VisualKind
    size: tuple[float, ...]
    pose: Array
    color: Color = _DEFAULT_COLOR
    mesh: str | None = None


def visuals(robot: Robot, file: str | Path | None = None) -> tuple[Visual, ...]:
    """Return the visual shapes of a robot. file: the MJCF file of the robot, because a robot does not store MJCF text.

    A visual shape that cannot be read is skipped, because identification does not depend on it. For a robot without
    visual shapes, such as one from a DH table, the result is its collision shapes.
    """
    shapes: tuple[Visual, ...] = ()
    if robot.text is not None:
        shapes = _of_urdf(robot)
    elif file is not None and Path(file).suffix.lower() in (".xml", ".mjcf"):
        shapes = _of_mjcf(robot, Path(file))
    return shapes or tuple(Visual(i, shape.link or body.name, shape.kind, shape.size, shape.pose)
                           for i, body in enumerate(robot.tree.bodies) for shape in body.shapes)


def _places(robot: Robot) -> Mapping[str, tuple[int, Array]]:
    """Return, for every link, the index of its body in the whole tree, and the link's pose (4, 4) in that body."""
    tree = robot.tree
    known = {body.name: (i, np.eye(4)) for i, body in enumerate(tree.bodies)}
    known |= {part.link: (i, part.pose) for i, body in enumerate(tree.bodies) for part in body.parts}
    return {tree.base: (BASE, np.eye(4)), **known, **{frame.name: (frame.body, frame.pose) for frame in tree.frames}}


# -- URDF ------------------------------------------------------------------------------------------
def _of_urdf(robot: Robot) -> tuple[Visual, ...]:
    text = robot.text
    assert text is not None
    root = parse_urdf(text if isinstance(text, str) else text.decode("utf-8", "replace"))[0]
    named = {name: color for one in root.findall("material")
             if (name := one.get("name")) and (color := _urdf_color(one)) is not None}
    places, found = _places(robot), []
    for link in root.findall("link"):
        name = link.get("name", "")
        if name in places:
            found += [_urdf_visual(visual, name, *places[name], named) for visual in link.findall("visual")]
    return tuple(one for one in found if one is not None)


def _urdf_visual(visual: Element, link: str, body: int, pose: Array, named: Mapping[str, Color]) -> Visual | None:
    """Return a <visual> element of a link as a visual shape of body number `body`; None if it is incomplete.

    pose (4, 4): pose of the link in the body. named: colors of the materials with a name.
    """
    geometry, origin, material = visual.find("geometry"), visual.find("origin"), visual.find("material")
    if geometry is None or not len(geometry):
        return None
    own = np.eye(4)
    if origin is not None:
        xyz, rpy = _floats(origin.get("xyz", "0 0 0"), 3), _floats(origin.get("rpy", "0 0 0"), 3)
        if xyz is None or rpy is None:
            return None
        own = from_xyz_rpy(xyz, rpy)
    color = _DEFAULT_COLOR
    if material is not None:
        color = _urdf_color(material) or named.get(material.get("name", ""), _DEFAULT_COLOR)
    shape = geometry[0]
    if shape.tag == "mesh":
        scale, name = _floats(shape.get("scale", "1 1 1"), 3), shape.get("filename")
        return None if not name or scale is None else Visual(body, link, "mesh", scale, pose @ own, color, name)
    keys = SHAPE_SIZES.get(shape.tag, ())
    size = _floats(" ".join(shape.get(key, "") for key in keys), 3 if shape.tag == "box" else len(keys))
    return None if not size else Visual(body, link, cast(VisualKind, shape.tag), size, pose @ own, color)


def _urdf_color(material: Element) -> Color | None:
    color = material.find("color")
    values = None if color is None else _floats(color.get("rgba", ""), 4)
    return None if values is None else _clipped(values)


def _floats(text: str, count: int) -> tuple[float, ...] | None:
    """Return the numbers of a text if it consists of `count` finite numbers, otherwise None."""
    try:
        values = tuple(float(word) for word in text.split())
    except ValueError:
        return None
    return values if len(values) == count and all(np.isfinite(values)) else None


def _clipped(values: tuple[float, ...]) -> Color:
    r, g, b, a = (min(max(value, 0.0), 1.0) for value in values)
    return r, g, b, a


# -- MJCF ------------------------------------------------------------------------------------------
def _of_mjcf(robot: Robot, file: Path) -> tuple[Visual, ...]:
    root, label, _, _ = parse_xml(file, "MJCF")
    reader = _Geoms(MjcfText(label, root), _places(robot))
    for world in root.findall("worldbody"):
        reader.inside(world, "main", "world")
    return tuple(reader.found)


class _Geoms:
    """Collector of the visible geoms of an MJCF.

    Bodies without a name get the same generated names as in the reader of robots.
    """

    def __init__(self, text: MjcfText, places: Mapping[str, tuple[int, Array]]) -> None:
        self.text, self.places, self.found = text, places, list[Visual]()
        self.bodies = {"world"}
        assets = [one for asset in text.root.findall("asset") for one in asset]
        self.meshes = {one.get("name") or Path(one.get("file", "").replace("\\", "/")).stem: one
                       for one in assets if one.tag == "mesh"}
        self.materials = {one.get("name", ""): one for one in assets if one.tag == "material"}
        self.folder = text.compiler.get("meshdir", text.compiler.get("assetdir", ""))

    def inside(self, element: Element, childclass: str, body: str) -> None:
        for place in self.text.contents(element, childclass):
            if place.element.tag == "geom":
                try:
                    visual = self.geom(place, body)
                except RobotError:  # an incomplete geom is not drawn
                    continue
                if visual is not None:
                    self.found.append(visual)
            elif place.element.tag == "body":
                name = unique_name("body", place.element.get("name"), self.bodies)
                self.inside(place.element, place.element.get("childclass", place.childclass), name)

    def geom(self, place: ElementPose, link: str) -> Visual | None:
        text, where = self.text, f"a <geom> of body '{link}'"
        attributes = text.attributes(place.element, "geom", where, place.childclass)
        kind = attributes.get("type", "mesh" if "mesh" in attributes else "sphere")
        if link not in self.places or int(text.numbers(attributes, "group", 1, where, (0.0,))[0]) >= _DRAWN_GROUPS:
            return None
        body, pose = self.places[link]
        pose, color = pose @ place.frame, self.color(attributes, where)
        if kind == "mesh":
            return self.mesh(attributes, link, body, pose, color, where)
        if kind not in SIZE_COUNTS:
            return None  # planes and height fields are no part of a robot
        own, half = placed_geom(text, attributes, kind, where)
        size = half * np.array({"box": 2.0, "capsule": [1.0, 2.0], "cylinder": [1.0, 2.0]}.get(kind, 1.0))
        return Visual(body, link, cast(VisualKind, kind), tuple(map(float, size)), pose @ own, color)

    def mesh(self, attributes: Mapping[str, str], link: str, body: int, pose: Array, color: Color,
             where: str) -> Visual | None:
        """Return the visual shape of a mesh, with its refpos and refquat applied, or None if the mesh has no file."""
        asset = self.meshes.get(attributes.get("mesh", ""))
        if asset is None:
            return None
        own = self.text.attributes(asset, "mesh", where)
        if not own.get("file"):
            return None
        scale = self.text.numbers(own, "scale", 3, where, (1.0, 1.0, 1.0))
        frame = {key: own[f"ref{key}"] for key in ("pos", "quat") if f"ref{key}" in own}
        reference = np.linalg.inv(self.text.pose(frame, where))
        name = f"{self.folder}/{own['file']}" if self.folder else own["file"]
        placed = pose @ self.text.pose(attributes, where) @ reference
        return Visual(body, link, "mesh", tuple(map(float, scale)), placed, color, name)

    def color(self, attributes: Mapping[str, str], where: str) -> Color:
        if "rgba" in attributes:
            return _clipped(tuple(self.text.numbers(attributes, "rgba", 4, where)))
        material = self.materials.get(attributes.get("material", ""))
        own = {} if material is None else self.text.attributes(material, "material", where)
        return _clipped(tuple(self.text.numbers(own, "rgba", 4, where, _DEFAULT_COLOR)))


@dataclass(frozen=True, eq=False)
class Mesh:
    """A surface: points (points, 3), in the units of its file, and triangles (triangles, 3) between them."""

    points: Array
    triangles: Ints


def read_mesh(path: str | Path) -> Mesh:
    """Return the mesh of a file, by its extension, without materials and normals."""
    path = Path(path)
    reader = _MESH_READERS.get(path.suffix.lower())
    if reader is None:
        raise RobotError(f"mesh '{path.name}' has an unknown format; known formats are {', '.join(_MESH_READERS)}",
                         "convert it to STL", code="unknown-mesh-format")
    try:
        mesh = reader(path)
    except OSError as problem:
        if problem.errno == errno.EFBIG:
            raise RobotError(f"mesh '{path.name}' is larger than {MAX_MESH_BYTES >> 20} MB; use a mesh with fewer "
                             "triangles", code="mesh-too-large") from None
        raise RobotError(f"mesh '{path.name}' cannot be read: {problem.strerror or problem}",
                         code="unreadable-file") from None
    except (ValueError, IndexError, UnicodeDecodeError, OverflowError) as problem:
        raise RobotError(f"mesh '{path.name}' is damaged: {problem}", code="damaged-mesh") from None
    if not len(mesh.triangles):
        raise RobotError(f"mesh '{path.name}' contains no triangles", code="empty-mesh")
    if not np.all(np.isfinite(mesh.points)):
        raise RobotError(f"mesh '{path.name}' is damaged: a coordinate is not a finite number", code="damaged-mesh")
    if mesh.triangles.min() < 0 or mesh.triangles.max() >= len(mesh.points):
        raise RobotError(f"mesh '{path.name}' is damaged: a triangle refers to a vertex that does not exist",
                         code="damaged-mesh")
    return mesh


def mesh_hull(mesh: MeshShape) -> Array:
    """Return the corners (k, 3) of the convex hull of a collision mesh in its body's frame, m.

    Raises:
        RobotError: the file does not exist or cannot be read (code as in `read_mesh`, or "no-such-mesh").
    """
    from scipy.spatial import ConvexHull, QhullError

    if mesh.scale is None:
        raise RobotError(f"the scale of mesh '{mesh.name}' is not three numbers", code="damaged-mesh")
    points = read_mesh(find_mesh(mesh)).points * np.asarray(mesh.scale)
    try:
        points = points[ConvexHull(points).vertices]
    except (QhullError, ValueError):  # all points are in a plane
        points = np.unique(points, axis=0)
    return np.asarray(points @ mesh.pose[:3, :3].T + mesh.pose[:3, 3])


def find_mesh(mesh: MeshShape) -> Path:
    """Return the file of a collision mesh.

    A package:// address is searched in the folder of the robot file and in all folders above, then as
    `find_in_package` does. Other names are paths, relative to the folder of the robot file.
    """
    missing = RobotError(f"mesh file '{mesh.name}' does not exist", code="no-such-mesh")
    scheme, _, rest = mesh.name.rpartition("://")
    inside = PurePosixPath(rest)
    places: list[Path] = []
    if scheme in ("package", "model") and ".." not in inside.parts and len(inside.parts) > 1:
        for folder in () if mesh.folder is None else (mesh.folder.resolve(), *mesh.folder.resolve().parents):
            places.append(folder / inside)
            if folder.name == inside.parts[0]:
                places.append(folder.joinpath(*inside.parts[1:]))
    elif scheme in ("", "file") and rest and (mesh.folder is not None or inside.is_absolute()):
        places.append((mesh.folder or Path()) / inside)
    for place in places:
        try:
            if place.is_file():
                return place
        except (OSError, ValueError):  # a name that no file can have
            raise missing from None
    if scheme == "package":
        try:
            return find_in_package(PACKAGE_SCHEME + rest)
        except RobotError:
            raise missing from None
    raise missing


class MeshFiles:
    """Index of the mesh files below a folder, by the names that robot files use.

    The folder of a name such as package://arm_description/meshes/link1.stl is unknown: the file whose path has most
    folders at its end in common with the name is used. Files outside the folder are never used.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).resolve()
        self._paths: dict[str, list[Path]] = {}
        for path in sorted(self.folder.rglob("*")):
            inside = path.resolve().is_relative_to(self.folder)
            if inside and path.suffix.lower() in _MESH_READERS and path.is_file():
                self._paths.setdefault(path.name.lower(), []).append(path)

    def find(self, name: str) -> Path | None:
        """Return the mesh file that a robot file refers to by `name`; None if there is no such file."""
        wanted = _parts(name)
        if not wanted:
            return None
        paths = self._paths.get(wanted[-1].lower(), [])
        return max(paths, key=lambda path: _agreement(path.relative_to(self.folder).parts, wanted), default=None)


def _parts(name: str) -> tuple[str, ...]:
    """Return the folders and the file name in the name of a mesh, without a prefix such as package://."""
    plain = name.rpartition("://")[2].replace("\\", "/")
    return tuple(part for part in PurePosixPath(plain).parts if part not in ("/", ".", ".."))


def _agreement(parts: Iterable[str], wanted: tuple[str, ...]) -> int:
    """Return how many names at the ends of two paths are equal, upper or lower case."""
    count = 0
    for part, other in zip(reversed(tuple(parts)), reversed(wanted), strict=False):
        if part.lower() != other.lower():
            break
        count += 1
    return count


def _read_stl(path: Path) -> Mesh:
    data = read_file(path, MAX_MESH_BYTES)
    count = int.from_bytes(data[80:84], "little") if len(data) >= _STL_HEADER_BYTES else -1
    # A binary file may begin with the word "solid" too, so its length shows the format.
    if len(data) == _STL_HEADER_BYTES + count * _STL_FACET.itemsize:
        return _joined(np.frombuffer(data, _STL_FACET, count, _STL_HEADER_BYTES)["corners"].reshape(-1, 3))
    if not data.lstrip().startswith(b"solid"):
        raise ValueError(f"the header of the mesh states {count} triangles, which does not match the data")
    words = data.decode("ascii", "replace").lower().split()
    corners = [words[i + 1:i + 4] for i, word in enumerate(words) if word == "vertex"]
    if len(corners) % 3 or any(len(one) < 3 for one in corners):
        raise ValueError("a facet of the mesh does not have three vertices")
    return _joined(np.array(corners, dtype=float).reshape(-1, 3))


def _joined(corners: Array) -> Mesh:
    """Return the mesh of corners (3 triangles, 3), with equal corners merged to one point."""
    points, place = np.unique(corners, axis=0, return_inverse=True)
    return Mesh(points.astype(float), np.reshape(place, (-1, 3)).astype(np.int64))


def _read_obj(path: Path) -> Mesh:
    points: list[list[float]] = []
    triangles: list[tuple[int, int, int]] = []
    for line in read_file(path, MAX_MESH_BYTES).decode("utf-8", "replace").splitlines():
        words = line.split()
        if not words:
            continue
        if words[0] == "v":
            points.append([float(word) for word in words[1:4]])
        elif words[0] == "f":
            numbers = [int(word.partition("/")[0]) for word in words[1:]]
            # Points are counted from one, or backwards from the last point so far.
            face = [number - 1 if number > 0 else len(points) + number for number in numbers]
            triangles += [(face[0], face[k], face[k + 1]) for k in range(1, len(face) - 1)]
    return Mesh(np.array(points, dtype=float).reshape(-1, 3), np.array(triangles, dtype=np.int64).reshape(-1, 3))


def _read_dae(path: Path) -> Mesh:
    """Return the triangles of the visual scene of a COLLADA file. The unit of the file is applied. Its up axis is
    ignored, as in other viewers of robots."""
    try:
        root = fromstring(read_file(path, MAX_MESH_BYTES), forbid_dtd=True, forbid_entities=True, forbid_external=True)
    except (ParseError, DefusedXmlException, LookupError) as problem:
        raise ValueError(f"it is not readable as XML: {problem}") from None
    for element in root.iter():
        element.tag = str(element.tag).rpartition("}")[2]
    scene = _DaeScene({identity: element for element in root.iter() if (identity := element.get("id"))})
    unit = root.find("asset/unit")
    scale = 1.0 if unit is None else float(unit.get("meter", "1"))
    for instance in root.iterfind("scene/instance_visual_scene"):
        for node in scene.target(instance.get("url", "")).iterfind("node"):
            scene.place(node, np.diag([scale, scale, scale, 1.0]), 1)
    return Mesh(np.vstack([np.empty((0, 3)), *scene.points]),
                np.vstack([np.empty((0, 3), dtype=np.int64), *scene.triangles]))


@dataclass(eq=False)
class _DaeScene:
    """Reader of the placed geometries of a COLLADA scene; elements: elements of the file by their id."""

    elements: Mapping[str, Element]
    points: list[Array] = field(default_factory=list)
    triangles: list[Ints] = field(default_factory=list)
    corners: int = 0  # number of points so far
    instances: int = 0

    def target(self, url: str) -> Element:
        element = self.elements.get(url.removeprefix("#"))
        if element is None:
            raise ValueError(f"it refers to '{url[:60]}', which it does not contain")
        return element

    def place(self, node: Element, parent: Array, depth: int) -> None:
        """Add the geometries of a node with pose `parent` (4, 4) of its parent, and those of the nodes in it."""
        self.instances += 1
        if depth > _MAX_DAE_DEPTH or self.instances > _MAX_DAE_NODES:
            raise ValueError("its nodes are nested too deeply, or there are too many of them")
        pose = parent
        for element in node:
            if element.tag in ("matrix", "translate", "rotate", "scale"):
                pose = pose @ _dae_transform(element)
            elif element.tag in ("lookat", "skew"):
                raise ValueError(f"a node has the transformation <{element.tag}>, which is not supported")
        for element in node:
            if element.tag == "node":
                self.place(element, pose, depth + 1)
            elif element.tag == "instance_node":
                self.place(self.target(element.get("url", "")), pose, depth + 1)
            elif element.tag == "instance_geometry":
                self.add(self.target(element.get("url", "")), pose)

    def add(self, geometry: Element, pose: Array) -> None:
        """Add the triangles of a geometry with its pose (4, 4)."""
        for part in geometry.iterfind("mesh/*"):
            if part.tag not in ("triangles", "polylist", "polygons"):
                continue  # lines, and sources of points
            inputs = part.findall("input")
            vertex = next((one for one in inputs if one.get("semantic") == "VERTEX"), None)
            if vertex is None:
                continue
            step = 1 + max(int(one.get("offset", "0")) for one in inputs)
            places = [self.target(one.get("source", "")) for one in
                      self.target(vertex.get("source", "")).iterfind("input") if one.get("semantic") == "POSITION"]
            if not places:
                raise ValueError("its vertices have no positions")
            numbers = _words(places[0].find("float_array"), float)
            accessor = places[0].find("technique_common/accessor")
            width = 3 if accessor is None else int(accessor.get("stride", "3"))
            points = np.reshape(numbers, (-1, width))[:, :3]
            faces = [_words(p, int)[int(vertex.get("offset", "0"))::step] for p in part.findall("p")]
            if part.tag == "polylist":
                stops = np.cumsum(_words(part.find("vcount"), int))
                faces = np.split(faces[0], stops[:-1]) if faces else []
            elif part.tag == "triangles":
                faces = [face for p in faces for face in p.reshape(-1, 3)]
            fans = [np.column_stack([np.full(len(face) - 2, face[0]), face[1:-1], face[2:]])
                    for face in faces if len(face) > 2]
            if fans:
                self.points.append(points @ pose[:3, :3].T + pose[:3, 3])
                self.triangles.append(np.vstack(fans) + self.corners)
                self.corners += len(points)


def _dae_transform(element: Element) -> Array:
    """Return the transformation (4, 4) of a COLLADA element <matrix>, <translate>, <rotate> or <scale>."""
    values, out = _words(element, float), np.eye(4)
    if len(values) != {"matrix": 16, "rotate": 4}.get(element.tag, 3):
        raise ValueError(f"a <{element.tag}> has {len(values)} numbers")
    if element.tag == "matrix":
        return values.reshape(4, 4)
    if element.tag == "translate":
        out[:3, 3] = values
    elif element.tag == "scale":
        out[:3, :3] = np.diag(values)
    else:
        turn = turn_z_to(values[:3] / max(float(np.linalg.norm(values[:3])), 1e-300))
        out = turn @ rotation_z(np.radians(values[3])) @ turn.T
    return out


def _words(element: Element | None, kind: type) -> Array:
    """Return the numbers in the text of an XML element."""
    return np.array((element.text or "").split() if element is not None else [], dtype=kind)


_MESH_READERS: dict[str, Callable[[Path], Mesh]] = {".stl": _read_stl, ".obj": _read_obj, ".dae": _read_dae}
