"""Half-spaces that bodies must stay in: a table, a wall, the sides of a box."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import DynidError


@dataclass(frozen=True, eq=False)
class HalfSpace:
    """Points p with normal . p >= offset, base frame: a table, a wall, a side of a box. The normal points inward."""

    normal: Array
    offset: float
    name: str

    def __post_init__(self) -> None:
        normal = np.array(self.normal, dtype=float)
        size = float(np.linalg.norm(normal)) if normal.shape == (3,) else 0.0
        if not 0 < size < np.inf or not np.isfinite(self.offset):
            raise DynidError(f"half-space '{self.name}' needs a normal of three numbers, not all zero, and an offset")
        object.__setattr__(self, "normal", normal / size)
        object.__setattr__(self, "offset", float(self.offset) / size)


def inside_box(lower: ArrayLike, upper: ArrayLike, name: str = "workspace") -> tuple[HalfSpace, ...]:
    """Return the sides of a box that bodies must stay in, without infinite sides."""
    low, high = np.asarray(lower, dtype=float), np.asarray(upper, dtype=float)
    if low.shape != (3,) or high.shape != (3,) or not (low < high).all():
        raise DynidError(f"box '{name}' needs three lower bounds below its three upper bounds, got {low} and {high}")
    sides = []
    for k, axis in enumerate("xyz"):
        unit = np.eye(3)[k]
        sides += [HalfSpace(unit, low[k], f"{name} {axis} >= {low[k]:g}")] if np.isfinite(low[k]) else []
        sides += [HalfSpace(-unit, -high[k], f"{name} {axis} <= {high[k]:g}")] if np.isfinite(high[k]) else []
    return tuple(sides)
