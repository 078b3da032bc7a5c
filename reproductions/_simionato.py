"""Bounds of the published extractions: Simionato, tables A.5 (KUKA LWR IV+, seven joints) and A.6 (arm of three)."""

from __future__ import annotations

from typing import Literal

import numpy as np

from dynid.consistency import Box
from dynid.errors import ModelError
from dynid.extraction import Bounds
from dynid.robot import Robot

Width = Literal["loose", "normal", "tight"]
_COLUMN = {"loose": 0, "normal": 1, "tight": 2}
_FRICTION = {"Fv": ((0, 100), (0, 50), (0, 1)), "Fc": ((0, 100), (0, 50), (0, 1)),
             "Fo": ((-100, 100), (-50, 50), (-1, 1))}

# Of each link (low, high) loose, normal, tight: mass, then the centre of mass along x, y, z.
_THREE_MASS = (((0, 50), (0, 5), (3, 4)), ((0, 7), (0, 2), (0.5, 1)), ((0, 12), (0, 3), (0.8, 1.5)))
_THREE_CENTRE = (
    (((-0.2, 0.2), (-0.04, 0.04), (-0.0005, 0.0015)), ((-0.5, 0.1), (-0.3, 0), (-0.15, -0.07)),
     ((-0.2, 0.2), (-0.04, 0.04), (0.001, 0.003))),
    (((-0.4, 0.1), (-0.22, 0), (-0.1, -0.06)), ((-0.2, 0.2), (-0.035, 0.035), (-0.0005, 0.0015)),
     ((-0.2, 0.2), (-0.035, 0.035), (0.001, 0.003))),
    (((-0.3, 0.1), (-0.15, 0), (-0.08, -0.04)), ((-0.2, 0.2), (-0.03, 0.03), (0.001, 0.003)),
     ((-0.2, 0.2), (-0.03, 0.03), (0.002, 0.004))),
)
_NARROW = ((-0.4, 0.4), (-0.1, 0.1), (-0.05, 0.05))
_WIDE = ((-0.6, 0.6), (-0.2, 0.2), (-0.1, 0.1))
_UP = ((-0.4, 0.9), (-0.1, 0.4), (-0.05, 0.2))
_SEVEN_CENTRE = (
    (_NARROW, ((-0.8, 0), (-0.4, 0), (-0.2, 0.05)), _WIDE), (_NARROW, _WIDE, _UP), (_NARROW, _UP, _WIDE),
    (_NARROW, _WIDE, _UP), (_NARROW, ((-0.9, 0.4), (-0.4, 0.1), (-0.2, 0.05)), _WIDE), (_NARROW, _WIDE, _WIDE),
    (_NARROW, _NARROW, ((0.4, 0.6), (0.1, 0.2), (0.05, 0.1))),
)
# Diagonal entries from zero to the first number, products of inertia up to the second either way.
_THREE_INERTIA = ((1, 1), (0.5, 0.5), (0.1, 0.1))
_SEVEN_INERTIA = ((1, 1), (0.5, 0.5), (0.05, 0.005))
_SIXTH_INERTIA = ((1, 1), (0.1, 0.2), (0.01, 0.002))


# What the whole arm weighs by its data sheet, kg (eq. 2.31): the document gives no numbers. By its text (s. 5.1) these
# limits are part of the full loss with all three widths of bounds.
_WHOLE = {"arm3r": (4.5, 6.5), "kuka-lwr4": (13.0, 17.0)}


def published_bounds(robot: Literal["arm3r", "kuka-lwr4"], width: Width) -> Bounds:
    """The bounds of table A.6 (arm3r) or A.5 (kuka-lwr4): loose, normal or tight.

    Contours are the normal boxes, which are the links' own geometry (s. 5.1): table 5.4 calls c7z of the tight set
    p_32, between 0.05 and 0.1 m, out of bounds, and only the normal ones, 0.1 to 0.2 m, say so.
    """
    if width not in _COLUMN or robot not in ("arm3r", "kuka-lwr4"):
        raise ModelError(f"there are loose, normal and tight bounds of arm3r and kuka-lwr4, not '{width}' of '{robot}'")
    table, geometry = _table(robot, width), _table(robot, "normal")
    contours = {name: Box(row[1:4, 0], row[1:4, 1])
                for name, row in zip(Robot.builtin(robot).body_names, geometry, strict=True)}
    return Bounds(table[:, :, 0], table[:, :, 1], {kind: pairs[_COLUMN[width]] for kind, pairs in _FRICTION.items()},
                  contours, _WHOLE[robot], width)


def whole_mass(robot: Literal["arm3r", "kuka-lwr4"]) -> tuple[float, float]:
    """Lower and upper mass of the whole arm, kg."""
    return _WHOLE[robot]


def _table(robot: str, width: Width) -> np.ndarray:
    """Intervals (links, 10, 2) of mass, centre of mass and inertia about it."""
    k, three, rows = _COLUMN[width], robot == "arm3r", []
    for link, centre in enumerate(_THREE_CENTRE if three else _SEVEN_CENTRE):
        mass = _THREE_MASS[link][k] if three else ((0, 30), (0, 12), (0, 6))[k]
        diagonal, product = (_THREE_INERTIA if three else _SIXTH_INERTIA if link == 5 else _SEVEN_INERTIA)[k]
        on, off = (0, diagonal), (-product, product)
        rows.append([mass, *(axis[k] for axis in centre), on, off, off, on, off, on])
    return np.array(rows, dtype=float)
