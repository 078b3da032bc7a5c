"""Bounds of standard parameters in the extraction: by body, from nominal bodies, or from a bounds file.

A bounds file is TOML with intervals that replace those of the robot:

    width = "normal"               # default bounds: loose, normal (default) or tight
    mass = [4.5, 6.5]              # the whole robot, kg
    [links.link1]
    mass = [0, 5]                  # kg
    centre = {low = [-0.04, -0.3, -0.04], high = [0.04, 0, 0.04]}    # m, in the link's frame
    inertia = {diagonal = [0, 0.5], product = [-0.5, 0.5]}           # about the centre of mass, kg m^2
    contour = {centre = [0, 0, 0.05], radius = 0.08}                 # a sphere; or low and high, points, axes
    [parameters]
    Fv = [0, 50]                   # viscous friction of all joints; Fv3 for one joint
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from dynid.arrays import Array, Ints
from dynid.consistency import Box, Ellipsoid, limits_from_shapes, limits_from_tables
from dynid.consistency.limits import CentreLimit, Hull
from dynid.errors import ModelError
from dynid.files import read_small, toml_table
from dynid.model import Model, Parameters
from dynid.robot import Robot
from dynid.robot import inertia as ten

# Order of a body's variables: mass, centre of mass, inertia about the centre of mass.
BODY = ("m", "cx", "cy", "cz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
BODY_UNITS = ("kg",) + ("m",) * 3 + ("kg m^2",) * 6
Interval = tuple[float, float]
# Interval of a mass, as multiples of the nominal mass, similar to Simionato's tables A.5 and A.6: upper bounds are 9 to
# 14 times the true masses (loose), or 1.4 to 2.5 times (normal).
_MASS_FACTORS: dict[Width, Interval] = {"loose": (0.0, 10.0), "normal": (0.0, 2.5), "tight": (0.7, 1.3)}
_LOOSE_BOX_SCALE = 3.0  # size of loose bounds of a centre of mass, as a multiple of the link's box
TIGHT_BOX_SHARE = 0.15  # tight bounds: distance from the nominal centre of mass, as a share of the link's box
_TOTAL_MASS_WIDTH: dict[Width, float] = {"normal": 0.2, "tight": 0.1}  # relative tolerance of the total mass
# Bounds of friction and other parameters of no body, as multiples of their nominal or identified values.
_OTHER_WIDTH: dict[Width, float] = {"loose": 100.0, "normal": 50.0, "tight": 3.0}
# Density, kg/m^3, of a link without nominal mass: its box is filled with steel (loose) or aluminium.
_MAX_DENSITY: dict[Width, float] = {"loose": 8000.0, "normal": 2700.0, "tight": 2700.0}
# half thickness of a link without a known shape: m, and relative to its length
_MIN_HALF_THICKNESS, _HALF_THICKNESS_OF_LENGTH = 0.02, 0.15
_BOX_STD = 2.0  # half edge of a link's box, in standard deviations of its mass distribution
_DIAGONAL = np.array([True, False, False, True, False, True])  # which of XX XY XZ YY YZ ZZ are on the diagonal
_NOMINAL_MARGIN = 1.5  # smallest upper bound of an inertia, relative to the nominal inertia
_FILE_KEYS = {"width", "mass", "links", "parameters"}
_LINK_KEYS = {"mass", "centre", "inertia", "contour", *BODY[4:]}
MAX_BOUND = 1e6  # largest number in a bounds file, in kg, m, kg m^2 and units of other parameters
_DIAGONAL_PLACES, _PRODUCT_PLACES = (4, 7, 9), (5, 6, 8)


@dataclass(frozen=True, eq=False)
class Bounds:
    """Intervals of the inertial variables of every body and of all other parameters (Simionato, tables A.5 and A.6).

    Attributes:
        low, high: bounds of mass, centre of mass and central inertia (bodies, 10), in the order of `BODY`, kg and m.
        others: intervals of other parameters, by name or by symbol ("Fv": (0, 50)).
        contours: shape that must contain the centre of mass, by body: a box, a hull or an ellipsoid.
        mass: interval of the total mass, kg.
        name: name of the bounds in tables.
    """

    low: Array
    high: Array
    others: Mapping[str, Interval] = field(default_factory=dict)
    contours: Mapping[str, CentreLimit] = field(default_factory=dict)
    mass: Interval | None = None
    name: str = ""

    def __post_init__(self) -> None:
        shape = np.shape(self.low)
        if len(shape) != 2 or shape[1] != 10 or np.shape(self.high) != shape:
            raise ModelError(f"bounds need ten lower and ten upper values per body ({' '.join(BODY)}), got shapes "
                             f"{shape} and {np.shape(self.high)}")
        if not (np.isfinite(self.low).all() and np.isfinite(self.high).all()):
            raise ModelError("bounds of bodies must be finite numbers")
        if np.any(self.low > self.high):
            body, k = (int(x) for x in np.argwhere(self.low > self.high)[0])
            raise ModelError(f"the lower bound of {BODY[k]} of body {body + 1} is above its upper bound: "
                             f"{self.low[body, k]:g} to {self.high[body, k]:g} {BODY_UNITS[k]}")
        for name, (low, high) in (*self.others.items(), *([] if self.mass is None else [("the mass", self.mass)])):
            if not low <= high:
                raise ModelError(f"the lower bound of {name} is above its upper bound: {low:g} to {high:g}")

    def boxes(self, bodies: Mapping[str, Ints]) -> dict[str, CentreLimit]:
        """Return the bounds of centres of mass as boxes, by body."""
        return {body: Box(low[1:4], high[1:4]) for body, low, high in zip(bodies, self.low, self.high, strict=True)}

    def standard_limits(self, parameters: Parameters) -> dict[str, Interval]:
        """Return lower and upper limits of standard parameters by name, from the bounds by the parallel axis theorem.

        The inertia of a body about its frame is that about its centre of mass plus `m (c.c 1 - c c')`. The limits are
        the smallest intervals that contain every body inside the bounds.
        """
        limits: dict[str, Interval] = {}
        for columns, low, high in zip(parameters.bodies.values(), self.low, self.high, strict=True):
            ends = [np.array([low[k], high[k]]) for k in range(10)]
            squares = [(0.0 if c[0] <= 0.0 <= c[1] else float(np.min(c ** 2)), float(np.max(c ** 2)))
                       for c in ends[1:4]]
            least, most = np.zeros(10), np.zeros(10)
            for k, (i, j) in enumerate(((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))):
                if i == j:
                    others = [squares[n] for n in range(3) if n != i]
                    shift = np.outer(ends[0], [sum(one[0] for one in others), sum(one[1] for one in others)])
                else:
                    shift = -np.multiply.outer(ends[0], np.outer(ends[1 + i], ends[1 + j]))
                least[k], most[k] = low[4 + k] + shift.min(), high[4 + k] + shift.max()
            for k in range(3):
                product = np.outer(ends[0], ends[1 + k])
                least[6 + k], most[6 + k] = product.min(), product.max()
            least[9], most[9] = low[0], high[0]
            limits |= {parameters.items[c].name: (float(a), float(b))
                       for c, a, b in zip(columns, least, most, strict=True)}
        places = np.array([k for k, item in enumerate(parameters.items) if item.body is None], dtype=np.int64)
        for k, a, b in zip(places, *self.of_others(parameters, places), strict=True):
            if np.isfinite(a) or np.isfinite(b):
                limits[parameters.items[k].name] = (float(a), float(b))
        return limits

    def of_others(self, parameters: Parameters, places: Ints) -> tuple[Array, Array]:
        """Return lower and upper bounds of parameters that belong to no body, infinite if not given. places: indices
        (k,) of these parameters; both results are (k,)."""
        low, high = np.full(len(places), -np.inf), np.full(len(places), np.inf)
        for k, place in enumerate(places):
            item = parameters.items[place]
            low[k], high[k] = self.others.get(item.name, self.others.get(item.symbol, (-np.inf, np.inf)))
        return low, high


Width = Literal["loose", "normal", "tight"]
WIDTHS: tuple[Width, ...] = get_args(Width)


def robot_bounds(model: Model, width: Width = "normal", values: Array | None = None) -> Bounds:
    """Return bounds of the parameters of a robot from its file.

    `values` (parameters,) are identified values, for the size of friction and other parameters that belong to no body.
    Boxes of links come from collision shapes, or else from the positions of joints and the nominal mass distribution.
    Bounds of masses come from nominal masses, or else from solid metal that fills the box. Inertias are at most those
    of the mass inside the box.
    """
    if width not in WIDTHS:
        raise ModelError(f"the bounds of an extraction must be loose, normal or tight, got '{width}'")
    boxes = contour_boxes(model)
    nominal = _nominal_bodies(model)
    if width == "tight" and not nominal:
        raise ModelError(f"tight bounds need nominal masses, but the file of {model.robot.name} gives none; use "
                         "normal or loose bounds, or a bounds file")
    rows = [_body_bounds(box, nominal.get(name), width) for name, box in boxes.items()]
    low, high = (np.array([row[k] for row in rows]).reshape(-1, 10) for k in range(2))
    whole = sum(float(numbers[9]) for numbers in nominal.values()) if len(nominal) == len(boxes) else None
    share = _TOTAL_MASS_WIDTH.get(width)
    mass = None if whole is None or share is None else ((1.0 - share) * whole, (1.0 + share) * whole)
    hulls = limits_from_shapes(model.robot)
    contours: dict[str, CentreLimit] = {name: hulls.get(name, box) for name, box in boxes.items()}
    return Bounds(low, high, _others(model, width, values), contours, mass, width)


def contour_boxes(model: Model) -> dict[str, Box]:
    """Return a box around the link of each body of the model, in the link frame, m."""
    hulls = limits_from_shapes(model.robot)
    nominal = _nominal_bodies(model)
    found = {}
    for name in model.parameters.bodies:
        hull = hulls.get(name)
        points = hull.points if isinstance(hull, Hull) else _skeleton(model.robot, name, nominal.get(name))
        low, high = points.min(axis=0), points.max(axis=0)
        thickness = max(_MIN_HALF_THICKNESS, _HALF_THICKNESS_OF_LENGTH * float((high - low).max()))
        thin = np.full(3, 0.0 if name in hulls else thickness)
        middle, half = 0.5 * (low + high), np.maximum(0.5 * (high - low), thin)
        found[name] = Box(middle - half, middle + half)
    return found


def _nominal_bodies(model: Model) -> dict[str, Array]:
    """Return nominal inertial parameters (10,) by name of the body, if all ten are known and the mass is positive."""
    found = {}
    for name, columns in model.parameters.bodies.items():
        values = [model.parameters.items[c].nominal for c in columns]
        if all(value is not None for value in values) and (values[9] or 0.0) > 0.0:
            found[name] = np.array(values, dtype=float)
    return found


def _skeleton(robot: Robot, name: str, numbers: Array | None) -> Array:
    """Return points (k, 3), m, that span a link without collision shapes: origin, joints, and most of its mass."""
    points: list[Array] = [np.zeros(3)]
    if name in robot.body_names:
        own = robot.body_names.index(name)
        points.append(np.asarray(np.linalg.inv(robot.joints[own].after)[:3, 3], dtype=float))
        points += [joint.before[:3, 3] for joint in robot.joints if joint.parent == own]
    if numbers is not None:
        mass, com, inertia = ten.to_central(numbers)
        second = np.maximum(np.diag(0.5 * np.trace(inertia) * np.eye(3) - inertia) / mass, 0.0)
        points += [com - _BOX_STD * np.sqrt(second), com + _BOX_STD * np.sqrt(second)]
    return np.array(points)


def _body_bounds(box: Box, numbers: Array | None, width: Width) -> tuple[Array, Array]:
    """Return lower and upper bounds (10,) of the inertial variables of one body, in the order of `BODY`. box: box
    around its link. numbers: nominal inertial parameters (10,), or None."""
    middle, half = 0.5 * (box.low + box.high), 0.5 * (box.high - box.low)
    com, inertia = middle, np.zeros((3, 3))
    if numbers is not None:
        mass, com, inertia = ten.to_central(numbers)
        masses = (_MASS_FACTORS[width][0] * float(mass), _MASS_FACTORS[width][1] * float(mass))
    else:
        masses = (0.0, _MAX_DENSITY[width] * float(np.prod(2.0 * half)))
    if width == "loose":
        low, high = middle - _LOOSE_BOX_SCALE * half, middle + _LOOSE_BOX_SCALE * half
    elif width == "tight" and numbers is not None:
        low, high = com - 2.0 * TIGHT_BOX_SHARE * half, com + 2.0 * TIGHT_BOX_SHARE * half
    else:
        low, high = np.minimum(box.low, com), np.maximum(box.high, com)
    reach = 0.5 * (high - low) if width == "loose" else half
    # No mass in a box of half edges r has more than m (ry^2 + rz^2) about x, or m rx ry as product.
    most = masses[1] * np.array([reach[1] ** 2 + reach[2] ** 2, reach[0] * reach[1], reach[0] * reach[2],
                                 reach[0] ** 2 + reach[2] ** 2, reach[1] * reach[2], reach[0] ** 2 + reach[1] ** 2])
    most = np.maximum(most, _NOMINAL_MARGIN * np.abs(ten.entries(inertia)))
    least = np.where(_DIAGONAL, 0.0, -most)
    return np.concatenate([[masses[0]], low, least]), np.concatenate([[masses[1]], high, most])


def _others(model: Model, width: Width, values: Array | None) -> dict[str, Interval]:
    """Return intervals of parameters that belong to no body, by name: a multiple of their size on either side of zero.
    Intervals of non-negative parameters start at zero. The size is the larger of nominal and identified value."""
    found: dict[str, Interval] = {}
    for k, item in enumerate(model.parameters):
        if item.body is None:
            size = max(abs(item.nominal or 0.0), 0.0 if values is None else abs(float(values[k])))
            size = _OTHER_WIDTH[width] * (size or 1.0)
            found[item.name] = (0.0 if item.positive else max(-size, item.bounds[0]), min(size, item.bounds[1]))
    return found


def load_bounds(path: str | Path, model: Model, values: Array | None = None) -> Bounds:
    """Return the bounds of a model from a bounds file; values (parameters,): identified values, see `robot_bounds`."""
    path = Path(path)
    try:
        table = toml_table(read_small(path).decode("utf-8"))
    except OSError as problem:
        raise ModelError(f"cannot read the bounds file '{path}': {problem.strerror}; give {', '.join(WIDTHS)}, or the "
                         "path of a bounds file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise ModelError(f"the bounds file {path} is not a TOML file: {problem}", code="not-toml") from None
    return bounds_from_table(table, model, str(path), values)


def bounds_from_table(table: Mapping[str, Any], model: Model, source: str = "bounds",
                      values: Array | None = None) -> Bounds:
    """Return bounds from the table of a bounds file; missing entries have the default bounds of its `width`. source:
    name of the file in error messages. values (parameters,): identified values, see `robot_bounds`."""
    _refuse(table, _FILE_KEYS, source)
    _check_numbers(table, source)
    width = next((one for one in WIDTHS if one == table.get("width", "normal")), None)
    if width is None:
        raise ModelError(f"{source}: width must be one of {', '.join(WIDTHS)}, got '{table['width']}'")
    found = robot_bounds(model, width, values)
    low, high, contours = found.low.copy(), found.high.copy(), dict(found.contours)
    names = list(model.parameters.bodies)
    for name, link in _table(table, "links", source).items():
        if name not in names:
            raise ModelError(f"{source} contains link '{name}', which is not in the model; its links are "
                             f"{', '.join(names)}")
        where = f"{source}, link '{name}'"
        _refuse(link, _LINK_KEYS, where)
        k = names.index(name)
        _set_link(low[k], high[k], link, where)
        if shape := link.get("contour", link.get("centre")):
            contours[name] = _contour(name, shape, where)
    others = dict(found.others)
    for name, pair in _table(table, "parameters", source).items():
        same = [item.name for item in model.parameters if item.body is None and name in (item.name, item.symbol)]
        if not same:
            raise ModelError(f"{source} contains parameter '{name}', which is not a parameter of the model "
                             "outside its bodies")
        others |= {one: _interval(pair, f"{source}, parameter '{name}'") for one in same}
    mass = _interval(table["mass"], f"{source}, mass") if "mass" in table else found.mass
    return replace(found, low=low, high=high, others=others, contours=contours, mass=mass, name=Path(source).stem)


def _set_link(low: Array, high: Array, link: Mapping[str, Any], where: str) -> None:
    """Set the lower and upper bounds (10,), (10,) of one link from its table."""
    if "mass" in link:
        low[0], high[0] = _interval(link["mass"], f"{where}, mass")
    if "centre" in link:
        sides = [_table(link, "centre", where).get(side) for side in ("low", "high")]
        if not all(isinstance(side, list) and len(side) == 3 and all(map(_is_number, side)) for side in sides):
            raise ModelError(f"{where}: centre needs low and high, three numbers each, in m")
        low[1:4], high[1:4] = sides
    inertia = _table(link, "inertia", where)
    _refuse(inertia, {"diagonal", "product"}, f"{where}, inertia")
    for kind, places in (("diagonal", _DIAGONAL_PLACES), ("product", _PRODUCT_PLACES)):
        if kind in inertia:
            low[list(places)], high[list(places)] = _interval(inertia[kind], f"{where}, {kind}")
    for k, name in enumerate(BODY[4:], 4):
        if name in link:
            low[k], high[k] = _interval(link[name], f"{where}, {name}")


def _contour(name: str, table: Mapping[str, Any], where: str) -> CentreLimit:
    """Return the region for the centre of mass of a link from a table; a sphere is an ellipsoid with equal axes."""
    if not isinstance(table, Mapping):
        raise ModelError(f"{where}: a contour, the region for the centre of mass of a link, must be a table with "
                         "centre and radius, low and high, points, or centre and axes")
    if set(table) != {"centre", "radius"}:
        return limits_from_tables({name: table}, ())[0][name]
    radius = table["radius"]
    if not _is_number(radius):
        raise ModelError(f"{where}: the radius of a contour must be a number, in m, got {radius!r}")
    return Ellipsoid(table["centre"], np.full(3, float(radius)))


def _interval(pair: Any, where: str) -> Interval:
    if not isinstance(pair, list | tuple) or len(pair) != 2 or not all(map(_is_number, pair)) or not pair[0] <= pair[1]:
        raise ModelError(f"{where}: an interval must be two numbers, the smaller number first, got {pair!r}")
    return float(pair[0]), float(pair[1])


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check_numbers(value: Any, where: str) -> None:
    """Raise an error for numbers in a table that are not finite or not plausible."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            _check_numbers(item, f"{where}, {key}")
    elif isinstance(value, list | tuple):
        for item in value:
            _check_numbers(item, where)
    elif isinstance(value, int | float) and not abs(value) <= MAX_BOUND:
        raise ModelError(f"{where}: {value:g} is not plausible for a robot; use SI units, at most {MAX_BOUND:g}")


def _table(table: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    found = table.get(key, {})
    if not isinstance(found, Mapping):
        raise ModelError(f"{where}: '{key}' must be a table, got {found!r}")
    return found


def _refuse(table: Mapping[str, Any], known: set[str], where: str) -> None:
    unknown = [key for key in table if key not in known]
    if unknown:
        raise ModelError(f"{where} has no setting '{unknown[0]}'; its settings are {', '.join(sorted(known))}")
