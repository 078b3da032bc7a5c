"""Reader of MJCF elements: attributes with defaults, numbers, orientations, and the inertias of geoms as in MuJoCo."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element

import numpy as np

from dynid.arrays import Array
from dynid.errors import RobotError
from dynid.quantities import LARGEST
from dynid.robot import inertia as ten
from dynid.robot.pose import rotation_matrices, rotation_x, rotation_y, rotation_z

ACTUATORS = ("general", "motor", "position", "velocity", "intvelocity", "damper", "cylinder", "muscle", "dcmotor",
             "pid", "orientation")
MAX_XML_DEPTH = 200  # elements inside each other
_REFUSED_ELEMENTS = {
    "include": "give the file itself, beside the files it includes", "replicate": "write out what it repeats",
    "attach": "write out what it attaches", "composite": "write out its bodies", "flexcomp": "leave it out"}
ORIENTATIONS = ("quat", "axisangle", "xyaxes", "zaxis", "euler")
_AXIS_ROTATIONS = {"x": rotation_x, "y": rotation_y, "z": rotation_z}

Attributes = Mapping[str, str]
_DEFAULT_DENSITY = 1000.0  # kg/m^3, for a geom without mass and density
_GEOMS_WITHOUT_MASS = ("plane", "hfield")  # surfaces without volume
SIZE_COUNTS = {"sphere": 1, "capsule": 2, "cylinder": 2, "box": 3, "ellipsoid": 3}
_DEFAULT_GROUP_RANGE = (0.0, 5.0)  # default groups of the geoms that have mass


@dataclass(frozen=True, eq=False)
class ElementPose:
    """An element inside a body, with the pose (4, 4) of the <frame> elements around it and its default class."""

    element: Element
    frame: Array
    childclass: str


@dataclass
class MjcfText:
    """Reader of the attributes of an MJCF file.

    Attributes:
        file: name of the file at the beginning of every message.
        root: root element of the file.
        warnings: warnings for the user, collected while reading.
        defaults: default attributes by class and tag, including those of parent classes.
        compiler: attributes of <compiler>.
    """

    file: str
    root: Element
    warnings: list[str] = field(default_factory=list)
    defaults: dict[str, dict[str, dict[str, str]]] = field(default_factory=lambda: {"main": {}})
    compiler: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._refuse()
        for element in self.root.findall("compiler"):
            self.compiler.update(element.attrib)
        for k, element in enumerate(self.root.findall("default")):
            self._read_defaults(element, "main", outermost=True)
            if k == 0:  # the first one applies everywhere, under any name
                self.defaults["main"] = self.defaults[element.get("class", "main")]
        angle = self.compiler.get("angle", "degree")
        if angle not in ("degree", "radian"):
            raise self.error(f'<compiler> has angle="{angle}"; it must be degree or radian')
        self.unit = math.pi / 180 if angle == "degree" else 1.0
        self.sequence = self.compiler.get("eulerseq", "xyz")
        if len(self.sequence) != 3 or set(self.sequence.lower()) - set("xyz"):
            raise self.error(f'<compiler> has eulerseq="{self.sequence}"; it must be three of x, y, z, X, Y, Z')
        self.autolimits = self.flag(self.compiler, "autolimits", True, "<compiler>")

    def error(self, message: str, code: str | None = None) -> RobotError:
        return RobotError(f"{self.file}: {message}", code=code)

    def _refuse(self) -> None:
        """Raise an error for elements that generate others, and for files that are nested too deeply."""
        stack = [(self.root, 1)]
        while stack:
            element, depth = stack.pop()
            tag = element.tag if isinstance(element.tag, str) else ""
            if tag in _REFUSED_ELEMENTS:
                raise self.error(f"<{tag}> is not supported; {_REFUSED_ELEMENTS[tag]}, as MuJoCo does when it saves a "
                                 "compiled model (mj_saveLastXML)")
            if depth > MAX_XML_DEPTH:
                raise self.error(f"<{tag}> is nested in more than {MAX_XML_DEPTH} other elements, which is not "
                                 "supported")
            stack.extend((child, depth + 1) for child in element)

    def _read_defaults(self, element: Element, parent: str, outermost: bool = False) -> None:
        name = element.get("class") or ("main" if outermost else "")
        if not name:
            raise self.error(f"a <default> inside <default class=\"{parent}\"> has no class")
        if not outermost and name in self.defaults:
            raise self.error(f"two <default> elements have the class '{name}'")
        own = {tag: dict(attributes) for tag, attributes in self.defaults.get(name, self.defaults[parent]).items()}
        for child in element:
            if child.tag != "default":
                own.setdefault("actuator" if child.tag in ACTUATORS else child.tag, {}).update(child.attrib)
        self.defaults[name] = own
        for child in element.findall("default"):
            self._read_defaults(child, name)

    def attributes(self, element: Element, kind: str, where: str, childclass: str = "main") -> dict[str, str]:
        """Return the attributes of an element, completed by the defaults of its class; kind: tag of its defaults."""
        name = element.get("class", childclass)
        if name not in self.defaults:
            raise self.error(f"{where} has the class '{name}', but no <default> has that class")
        return {**self.defaults[name].get(kind, {}), **element.attrib}

    def contents(self, parent: Element, childclass: str, frame: Array | None = None) -> Iterator[ElementPose]:
        """Yield everything inside a body in the order of the file, including the content of <frame> elements."""
        pose = np.eye(4) if frame is None else frame
        for element in parent:
            if element.tag == "frame":
                inner = pose @ self.pose(element.attrib, "a <frame>")
                yield from self.contents(element, element.get("childclass", childclass), inner)
            else:
                yield ElementPose(element, pose, childclass)

    # -- numbers -----------------------------------------------------------------------------------
    def numbers(self, attributes: Attributes, key: str, count: int, where: str,
                default: tuple[float, ...] | None = None) -> Array:
        """Return an attribute that must consist of `count` finite numbers (count,)."""
        text = attributes.get(key)
        if text is None:
            if default is None:
                raise self.error(f"{where} has no attribute '{key}'")
            return np.array(default)
        try:
            values = np.array([float(word) for word in text.split()])
        except ValueError:
            raise self.error(f"'{key}' of {where} must be numbers, got \"{text[:60]}\"") from None
        if len(values) != count or not np.all(np.abs(values) <= LARGEST):
            raise self.error(f"'{key}' of {where} needs {count} finite number{'s' if count > 1 else ''}, got "
                             f"\"{text[:60]}\"")
        return values

    def positive(self, attributes: Attributes, key: str, where: str) -> float:
        """Return an attribute that must be a non-negative number; zero if it is missing.

        The attribute may have several numbers, which are the coefficients of a polynomial in the speed. All except the
        first must then be zero.
        """
        words = attributes.get(key, "0").split()
        value, *others = self.numbers(attributes, key, max(len(words), 1), where, (0.0,))
        if value < 0:
            raise self.error(f"'{key}' of {where} is negative; it must be zero or more")
        if any(others):
            raise self.error(f"'{key}' of {where} is a polynomial, and only its first coefficient is supported; "
                             "remove the others")
        return float(value)

    def flag(self, attributes: Attributes, key: str, default: bool, where: str) -> bool:
        text = attributes.get(key)
        if text is None:
            return default
        if text not in ("true", "false"):
            raise self.error(f"'{key}' of {where} must be true or false, got \"{text[:60]}\"")
        return text == "true"

    # -- poses -------------------------------------------------------------------------------------
    def pose(self, attributes: Attributes, where: str) -> Array:
        """Return the pose (4, 4) of an element in the surrounding frame, from its position and one orientation."""
        given = [key for key in ORIENTATIONS if key in attributes]
        if len(given) > 1:
            raise self.error(f"{where} has both {given[0]} and {given[1]}; remove one of them")
        pose = self._turn(attributes, given[0], where) if given else np.eye(4)
        pose[:3, 3] = self.numbers(attributes, "pos", 3, where, (0.0, 0.0, 0.0))
        return pose

    def _turn(self, attributes: Attributes, key: str, where: str) -> Array:
        if key == "euler":
            return self._euler(self.numbers(attributes, key, 3, where) * self.unit)
        if key == "quat":
            return from_quat(self.direction(self.numbers(attributes, key, 4, where), key, where))
        if key == "axisangle":
            *axis, angle = self.numbers(attributes, key, 4, where)
            return _about(self.direction(np.array(axis), key, where), float(angle) * self.unit)
        if key == "zaxis":
            return zaxis_pose(self.direction(self.numbers(attributes, key, 3, where), key, where))
        six = self.numbers(attributes, key, 6, where)
        first = self.direction(six[:3], key, where)
        second = self.direction(six[3:] - first * (first @ six[3:]), key, where)
        pose = np.eye(4)
        pose[:3, :3] = np.column_stack([first, second, np.cross(first, second)])
        return pose

    def _euler(self, angles: Array) -> Array:
        """Return the rotation of Euler angles: lower case letters are intrinsic, upper case letters extrinsic
        rotations."""
        pose = np.eye(4)
        for letter, angle in zip(self.sequence, angles, strict=True):
            turn = _AXIS_ROTATIONS[letter.lower()](float(angle))
            pose = pose @ turn if letter.islower() else turn @ pose
        return pose

    def direction(self, vector: Array, key: str, where: str) -> Array:
        """Return a vector scaled to length one; raise an error for a zero vector."""
        largest = float(np.abs(vector).max())
        if largest < 1e-12:
            raise self.error(f"'{key}' of {where} has no direction: it is zero or its vectors are parallel")
        unit = vector / largest
        return np.asarray(unit / np.linalg.norm(unit))


def unique_name(kind: str, given: str | None, taken: set[str]) -> str:
    """Return the given name of an element, or a new name such as body3, and add it to the names `taken`."""
    number, name = len(taken), given or f"{kind}{len(taken)}"
    while name in taken:
        number += 1
        name = f"{kind}{number}"
    taken.add(name)
    return name


def from_quat(quat: Array) -> Array:
    """Return the pose (4, 4) of a rotation by a unit quaternion (4,) in the order w, x, y, z."""
    pose = np.eye(4)
    pose[:3, :3] = rotation_matrices(quat[None, [1, 2, 3, 0]])[0]
    return pose


def _about(axis: Array, angle: float) -> Array:
    return from_quat(np.array([math.cos(angle / 2), *(math.sin(angle / 2) * axis)]))


def zaxis_pose(axis: Array) -> Array:
    """Return the pose (4, 4) of the smallest rotation that turns the z axis to a unit vector (3,)."""
    x, y, z = axis
    level = math.hypot(x, y)
    return _about(np.array([-y, x, 0.0]) / level, math.atan2(level, z)) if level > 1e-15 else \
        rotation_x(0.0 if z > 0 else math.pi)


def geoms_inertia(text: MjcfText, places: Sequence[ElementPose], where: str, saved: str) -> Array | None:
    """Return the ten inertial parameters (10,) of a body in its frame, from its geoms; None if no geom has mass.

    saved: advice on how MuJoCo writes inertias to a file, for messages.
    """
    low, high = text.numbers(text.compiler, "inertiagrouprange", 2, "<compiler>", _DEFAULT_GROUP_RANGE)
    known: list[Array] = []
    for place in places:
        if place.element.tag == "geom":
            name = place.element.get("name")
            what = f"geom '{name}' of {where}" if name else f"a <geom> of {where}"
            attributes = text.attributes(place.element, "geom", what, place.childclass)
            if low <= float(text.numbers(attributes, "group", 1, what, (0.0,))[0]) <= high:
                known += _geom_inertia(text, place, attributes, what, saved)
    return np.sum(known, axis=0) if known else None


def _geom_inertia(text: MjcfText, place: ElementPose, attributes: dict[str, str], what: str,
                  saved: str) -> Iterator[Array]:
    """Yield the ten inertial parameters (10,) of a geom in the frame of its body, if the geom has mass."""
    kind = attributes.get("type", "sphere")
    key = "mass" if "mass" in attributes else "density"
    given = text.positive(attributes, key, what) if key in attributes else _DEFAULT_DENSITY
    if given == 0.0 or kind in _GEOMS_WITHOUT_MASS:
        return
    if kind not in SIZE_COUNTS or "mesh" in attributes:
        raise text.error(f"{what} is a {kind}, and its body has no <inertial>: mesh files are not opened, so the "
                         f"inertia cannot be computed from them; give the body an <inertial>, {saved}")
    if text.flag(attributes, "shellinertia", False, what):
        raise text.error(f'{what} has shellinertia="true", which is not supported; give its body an <inertial>, '
                         f"{saved}")
    own = {key for key in ORIENTATIONS if key in place.element.attrib}
    if own:  # an orientation of the geom replaces that of its class
        attributes = {key: value for key, value in attributes.items() if key not in ORIENTATIONS or key in own}
    pose, size = placed_geom(text, attributes, kind, what)
    pose = place.frame @ pose
    volume, shape = _SHAPE_INERTIAS[kind](size)
    mass = given if key == "mass" else given * volume
    turn = pose[:3, :3]
    yield ten.from_central(mass, pose[:3, 3], turn @ np.diag(mass * shape) @ turn.T)


def placed_geom(text: MjcfText, attributes: dict[str, str], kind: str, what: str) -> tuple[Array, Array]:
    """Return the pose (4, 4) of a geom, and its half sizes in m, as many as `SIZE_COUNTS` states for its kind."""
    words = max(len(attributes.get("size", "").split()), 1)
    given = text.numbers(attributes, "size", words, what)
    if "fromto" in attributes and kind != "sphere":
        ends = text.numbers(attributes, "fromto", 6, what).reshape(2, 3)
        along = ends[1] - ends[0]
        pose = zaxis_pose(-text.direction(along, "fromto", what))  # as MuJoCo turns it
        pose[:3, 3] = ends.mean(axis=0)
        half = 0.5 * float(np.linalg.norm(along))
        size = np.array([given[0], half] if SIZE_COUNTS[kind] == 2 else [given[0], given[0], half])
    else:
        pose, size = text.pose(attributes, what), given[:SIZE_COUNTS[kind]]
    if len(size) < SIZE_COUNTS[kind] or np.any(size <= 0.0):
        raise text.error(f"'size' of {what} needs {SIZE_COUNTS[kind]} numbers above zero, got "
                         f"\"{attributes.get('size', '')[:60]}\"")
    return pose, size


def _capsule(size: Array) -> tuple[float, Array]:
    r, h = size
    barrel, caps = 2.0 * math.pi * r ** 2 * h, 4.0 / 3.0 * math.pi * r ** 3
    share = barrel / (barrel + caps)
    across = share * (r ** 2 / 4.0 + h ** 2 / 3.0) + (1.0 - share) * (0.4 * r ** 2 + h ** 2 + 0.75 * h * r)
    along = share * r ** 2 / 2.0 + (1.0 - share) * 0.4 * r ** 2
    return barrel + caps, np.array([across, across, along])


def _cylinder(size: Array) -> tuple[float, Array]:
    r, h = size
    across = r ** 2 / 4.0 + h ** 2 / 3.0
    return 2.0 * math.pi * r ** 2 * h, np.array([across, across, r ** 2 / 2.0])


def _box(size: Array, volume: float = 8.0, divisor: float = 3.0) -> tuple[float, Array]:
    x, y, z = size ** 2
    return float(volume * np.prod(size)), np.array([y + z, x + z, x + y]) / divisor


def _ellipsoid(size: Array) -> tuple[float, Array]:
    return _box(size, 4.0 / 3.0 * math.pi, 5.0)


# For each shape: its volume, m^3, and its moments of inertia about its axes for unit mass, m^2, from its half sizes.
_SHAPE_INERTIAS: dict[str, Callable[[Array], tuple[float, Array]]] = {
    "sphere": lambda size: _ellipsoid(np.repeat(size, 3)), "capsule": _capsule, "cylinder": _cylinder, "box": _box,
    "ellipsoid": _ellipsoid}
