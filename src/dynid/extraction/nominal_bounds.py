"""Bounds of any robot from its own file, loose, normal or tight, from nominal bodies and geometry."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from dynid.arrays import Array
from dynid.consistency import limits_from_shapes
from dynid.consistency.limits import Box, CentreLimit, Hull
from dynid.errors import ModelError
from dynid.extraction.bounds import Bounds, Interval
from dynid.model import Model
from dynid.robot import Robot
from dynid.robot import inertia as ten

Width = Literal["loose", "normal", "tight"]
WIDTHS: tuple[Width, ...] = get_args(Width)

# As in Simionato's tables A.5 and A.6, where loose masses go to 9 to 14 times the true ones, normal ones to 1.4 to 2.5.
# Interval of a mass, times the nominal one.
_MASS_FACTORS: dict[Width, Interval] = {"loose": (0.0, 10.0), "normal": (0.0, 2.5), "tight": (0.7, 1.3)}
_LOOSE_BOX_SCALE = 3.0  # loose boxes, times the link's own
TIGHT_BOX_SHARE = 0.15  # tight boxes, share of the link's box either way from the nominal centre of mass
_TOTAL_MASS_WIDTH: dict[Width, float] = {"normal": 0.2, "tight": 0.1}  # share by which the whole mass may be off
# Friction and the like, times their size.
_OTHER_WIDTH: dict[Width, float] = {"loose": 100.0, "normal": 50.0, "tight": 3.0}
# Where a link has no nominal mass, kg/m^3: a block of steel, of aluminium.
_MAX_DENSITY: dict[Width, float] = {"loose": 8000.0, "normal": 2700.0, "tight": 2700.0}
# half thickness of a link whose shape nobody tells: m, and share of its length
_MIN_HALF_THICKNESS, _HALF_THICKNESS_OF_LENGTH = 0.02, 0.15
_BOX_STD = 2.0  # deviations of the mass about its centre that a link's box reaches
_DIAGONAL = np.array([True, False, False, True, False, True])  # of XX XY XZ YY YZ ZZ
_NOMINAL_MARGIN = 1.5  # times the nominal inertia, which bounds never cut off


def robot_bounds(model: Model, width: Width = "normal", values: Array | None = None) -> Bounds:
    """Return bounds of the bodies of a robot from its file.

    `values` (parameters,) are identified values, for the size of friction and other parameters that belong to no body.
    Boxes of links come from collision shapes, or else from the positions of joints and the nominal mass distribution.
    Masses come from the nominal ones, or else from solid metal that fills the box. Inertias are at most those of the
    mass inside the box.
    """
    if width not in WIDTHS:
        raise ModelError(f"bounds are loose, normal or tight, not '{width}'")
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
    """Return for each body of the model a box around its link, in its frame, m."""
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
    """Return the ten parameters of the bodies with complete nominal values and a mass."""
    found = {}
    for name, columns in model.parameters.bodies.items():
        values = [model.parameters.items[c].nominal for c in columns]
        if all(value is not None for value in values) and (values[9] or 0.0) > 0.0:
            found[name] = np.array(values, dtype=float)
    return found


def _skeleton(robot: Robot, name: str, numbers: Array | None) -> Array:
    """Return points (k, 3) of a link without shapes: its frame, its joints, and the region of most of its mass."""
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
    """Return lower and upper values (10,) of one body."""
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
    """Return intervals of parameters that do not belong to a body: a multiple of their size to either side.

    They start at zero for non-negative parameters. The size is the larger one of nominal and identified value.
    """
    found: dict[str, Interval] = {}
    for k, item in enumerate(model.parameters):
        if item.body is None:
            size = max(abs(item.nominal or 0.0), 0.0 if values is None else abs(float(values[k])))
            size = _OTHER_WIDTH[width] * (size or 1.0)
            found[item.name] = (0.0 if item.positive else max(-size, item.bounds[0]), min(size, item.bounds[1]))
    return found
