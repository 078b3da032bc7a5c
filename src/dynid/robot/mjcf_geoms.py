"""Inertias from the geoms of an MJCF: spheres, capsules, cylinders, boxes and ellipsoids, as in MuJoCo."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from dynid.arrays import Array
from dynid.robot import inertia as ten
from dynid.robot.mjcf_text import ORIENTATIONS, ElementPose, MjcfText
from dynid.robot.pose import turn_z_to

_DEFAULT_DENSITY = 1000.0  # kg/m^3 where a geom says neither mass nor density
_GEOMS_WITHOUT_MASS = ("plane", "hfield")  # no bodies
_SIZE_COUNTS = {"sphere": 1, "capsule": 2, "cylinder": 2, "box": 3, "ellipsoid": 3}
_DEFAULT_GROUP_RANGE = (0.0, 5.0)  # of geoms that count, where <compiler> does not say it


def geoms_inertia(text: MjcfText, places: Sequence[ElementPose], where: str, saved: str) -> Array | None:
    """Return ten parameters of a body in its frame from its geoms; None if none of them has mass.

    saved: advice on how MuJoCo writes inertias to a file, for messages.
    """
    low, high = text.numbers(text.compiler, "inertiagrouprange", 2, "<compiler>", _DEFAULT_GROUP_RANGE)
    total: Array | None = None
    for place in places:
        if place.element.tag != "geom":
            continue
        name = place.element.get("name")
        what = f"geom '{name}' of {where}" if name else f"a <geom> of {where}"
        attributes = text.attributes(place.element, "geom", what, place.childclass)
        if not low <= float(text.numbers(attributes, "group", 1, what, (0.0,))[0]) <= high:
            continue
        found = _of_geom(text, place, attributes, what, saved)
        if found is not None:
            total = found if total is None else total + found
    return total


def _of_geom(text: MjcfText, place: ElementPose, attributes: dict[str, str], what: str, saved: str) -> Array | None:
    kind = attributes.get("type", "sphere")
    key = "mass" if "mass" in attributes else "density"
    given = text.positive(attributes, key, what) if key in attributes else _DEFAULT_DENSITY
    if given == 0.0 or kind in _GEOMS_WITHOUT_MASS:
        return None
    if kind not in _SIZE_COUNTS or "mesh" in attributes:
        raise text.error(f"{what} is a {kind}, and its body has no <inertial>: mesh files are not opened, so the "
                         f"inertia cannot be computed from them; give the body an <inertial>, {saved}")
    if text.flag(attributes, "shellinertia", False, what):
        raise text.error(f'{what} has shellinertia="true", which is not supported; give its body an <inertial>, '
                         f"{saved}")
    own = {one for one in ORIENTATIONS if one in place.element.attrib}
    if own:  # a turn of its own goes before that of its class
        attributes = {one: value for one, value in attributes.items() if one not in ORIENTATIONS or one in own}
    pose, size = _placed(text, attributes, kind, what)
    pose = place.frame @ pose
    volume, shape = _BODIES[kind](size)
    mass = given if key == "mass" else given * volume
    turn = pose[:3, :3]
    return ten.from_central(mass, pose[:3, 3], turn @ np.diag(mass * shape) @ turn.T)


def _placed(text: MjcfText, attributes: dict[str, str], kind: str, what: str) -> tuple[Array, Array]:
    """Return pose (4, 4) and half sizes of a geom."""
    words = max(len(attributes.get("size", "").split()), 1)
    given = text.numbers(attributes, "size", words, what)
    if "fromto" in attributes and kind != "sphere":
        ends = text.numbers(attributes, "fromto", 6, what).reshape(2, 3)
        along = ends[1] - ends[0]
        pose = turn_z_to(text.direction(along, "fromto", what))
        pose[:3, 3] = ends.mean(axis=0)
        half = 0.5 * float(np.linalg.norm(along))
        size = np.array([given[0], half] if _SIZE_COUNTS[kind] == 2 else [given[0], given[0], half])
    else:
        pose, size = text.pose(attributes, what), given[:_SIZE_COUNTS[kind]]
    if len(size) < _SIZE_COUNTS[kind] or np.any(size <= 0.0):
        raise text.error(f"'size' of {what} needs {_SIZE_COUNTS[kind]} numbers above zero, got "
                         f"\"{attributes.get('size', '')[:60]}\"")
    return pose, size


def _sphere(size: Array) -> tuple[float, Array]:
    (r,) = size
    return 4.0 / 3.0 * math.pi * r ** 3, np.full(3, 0.4 * r ** 2)


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


def _box(size: Array) -> tuple[float, Array]:
    x, y, z = size ** 2
    return float(8.0 * np.prod(size)), np.array([y + z, x + z, x + y]) / 3.0


def _ellipsoid(size: Array) -> tuple[float, Array]:
    x, y, z = size ** 2
    return float(4.0 / 3.0 * math.pi * np.prod(size)), np.array([y + z, x + z, x + y]) / 5.0


_BODIES: dict[str, Callable[[Array], tuple[float, Array]]] = {  # volume, and moments about the axes for unit mass
    "sphere": _sphere, "capsule": _capsule, "cylinder": _cylinder, "box": _box, "ellipsoid": _ellipsoid}
