"""Limits on centres of mass and masses of links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.robot import Robot
from dynid.robot.robot import Shape

_POLYGON_CORNERS = 12  # corners of the circumscribed polygon that approximates a circle


def _three(values: Sequence[float] | Array, what: str) -> Array:
    vector = np.asarray(values, dtype=float)
    if vector.shape != (3,) or not np.isfinite(vector).all():
        raise ModelError(f"{what} must be three finite numbers, got {values}")
    return vector


@dataclass(frozen=True, eq=False)
class Box:
    """Box that contains a centre of mass: lowest and highest corner (3,) in the link frame, m (Sousa, eq. 4.38)."""

    low: Array
    high: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", _three(self.low, "the lower corner of a box"))
        object.__setattr__(self, "high", _three(self.high, "the upper corner of a box"))
        if np.any(self.low > self.high):
            raise ModelError(f"the box from {self.low.tolist()} to {self.high.tolist()} m has a lower corner above "
                             "its upper corner")

    @property
    def planes(self) -> tuple[Array, Array]:
        """Return A (k, 3) and b (k,) of the faces: a point c (3,) is inside if A c + b >= 0."""
        return np.vstack([np.eye(3), -np.eye(3)]), np.concatenate([-self.low, self.high])

    def outside(self, com: Array) -> float:
        """Return the distance (m) of a point from the box, 0 inside."""
        return float(np.linalg.norm(np.maximum(np.maximum(self.low - com, com - self.high), 0.0)))


@dataclass(frozen=True, eq=False)
class Hull:
    """Convex hull of points (k, 3) in the link frame, m, that contains a centre of mass."""

    points: Array
    planes: tuple[Array, Array] = field(init=False)  # A (k, 3), b (k,): a point c is inside if A c + b >= 0

    def __post_init__(self) -> None:
        from scipy.spatial import ConvexHull, QhullError

        points = np.asarray(self.points, dtype=float)
        if points.ndim != 2 or points.shape[1] != 3 or len(points) < 4 or not np.isfinite(points).all():
            raise ModelError(f"a hull needs at least four points of three finite numbers, got shape {points.shape}")
        try:
            hull = ConvexHull(points)
        except QhullError:
            raise ModelError("the points of a hull lie in one plane; give points around a volume, or a box") from None
        equations = np.unique(np.round(hull.equations, 12), axis=0)
        object.__setattr__(self, "points", points[hull.vertices])
        object.__setattr__(self, "planes", (-equations[:, :3], -equations[:, 3]))

    def outside(self, com: Array) -> float:
        """Return the largest distance (m) of a point beyond one of the hull's planes, 0 inside."""
        normals, offsets = self.planes
        return max(0.0, float(-(normals @ com + offsets).min()))


@dataclass(frozen=True, eq=False)
class Ellipsoid:
    """Ellipsoid in the link frame, m, that contains a centre of mass c: |diag(1/axes) turn' (c - centre)| <= 1."""

    centre: Array
    axes: Array
    turn: Array | None = None  # (3, 3), columns are the directions of the axes

    def __post_init__(self) -> None:
        object.__setattr__(self, "centre", _three(self.centre, "the centre of an ellipsoid"))
        object.__setattr__(self, "axes", _three(self.axes, "the half axes of an ellipsoid"))
        object.__setattr__(self, "turn", np.eye(3) if self.turn is None else np.asarray(self.turn, dtype=float))
        if np.any(self.axes <= 0):
            raise ModelError(f"the half axes of an ellipsoid must be above zero, got {self.axes.tolist()}")

    @property
    def inverse(self) -> Array:
        """Matrix (3, 3) that converts link coordinates to coordinates along the axes, in units of the half axes."""
        return (np.eye(3) if self.turn is None else self.turn).T / self.axes[:, None]

    def outside(self, com: Array) -> float:
        """Return the distance (m) of a point from the ellipsoid along the line to its centre, 0 inside."""
        away = float(np.linalg.norm(self.inverse @ (com - self.centre)))
        return 0.0 if away <= 1.0 else float(np.linalg.norm(com - self.centre) * (1.0 - 1.0 / away))


CentreLimit = Box | Hull | Ellipsoid


@dataclass(frozen=True)
class MassLimit:
    """Limits of the total mass of links, kg; low == high is an exact mass. bodies: names of links; empty means all."""

    low: float | None = None
    high: float | None = None
    bodies: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.low is None and self.high is None:
            raise ModelError("a limit on mass needs a lower or an upper value")
        for value in (self.low, self.high):
            if value is not None and not np.isfinite(value):
                raise ModelError(f"a limit on mass must be a finite number of kilograms, got {value}",
                                 code="wrong-mass-limit")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ModelError(f"the mass of {self.whose} cannot be above {self.low:g} kg and below {self.high:g} kg")

    @property
    def whose(self) -> str:
        if not self.bodies:
            return "the whole robot"
        names = ", ".join(f"'{body}'" for body in self.bodies)
        return f"link {names}" if len(self.bodies) == 1 else f"links {names}"

    @property
    def equal(self) -> bool:
        return self.low is not None and self.low == self.high

    @property
    def text(self) -> str:
        if self.equal:
            return f"mass of {self.whose} = {self.low:g} kg"
        low = [] if self.low is None else [f">= {self.low:g} kg"]
        high = [] if self.high is None else [f"<= {self.high:g} kg"]
        return f"mass of {self.whose} " + " and ".join(low + high)


def limits_from_shapes(robot: Robot) -> dict[str, CentreLimit]:
    """Return limits on the centres of mass, by link: the convex hull of the link's collision primitives. Round shapes
    are replaced by circumscribed prisms."""
    return {body.name: Hull(np.vstack([_corners(shape) for shape in body.shapes])) for body in robot.bodies
            if body.shapes}


def _corners(shape: Shape) -> Array:
    """Return points (k, 3) in the body frame, m, whose convex hull contains a collision shape."""
    if shape.kind == "box":
        half = np.array(shape.size) / 2
    elif shape.kind == "sphere":
        half = np.full(3, shape.size[0])
    else:
        radius = shape.size[0] / np.cos(np.pi / _POLYGON_CORNERS)  # of a polygon around the circle
        reach = shape.size[1] / 2 + (shape.size[0] if shape.kind == "capsule" else 0.0)
        angle = 2 * np.pi * np.arange(_POLYGON_CORNERS) / _POLYGON_CORNERS
        ring = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
        local = np.vstack([np.column_stack([ring, np.full(_POLYGON_CORNERS, z)]) for z in (-reach, reach)])
        return local @ shape.pose[:3, :3].T + shape.pose[:3, 3]
    signs = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T
    return (signs * half) @ shape.pose[:3, :3].T + shape.pose[:3, 3]


Limits = tuple[dict[str, CentreLimit], tuple[MassLimit, ...]]


def limits_from_tables(centres: Mapping[str, Any], masses: Sequence[Any]) -> Limits:
    """Return limits from tables of a run file: {link3: {low: [..], high: [..]}} and [{bodies: [..], high: 27}]."""
    found: dict[str, CentreLimit] = {}
    for body, table in centres.items():
        if not isinstance(table, Mapping):
            found[body] = table
        elif {"low", "high"} == set(table):
            found[body] = Box(table["low"], table["high"])
        elif {"points"} == set(table):
            found[body] = Hull(np.asarray(table["points"], dtype=float))
        elif {"centre", "axes"} <= set(table) <= {"centre", "axes", "turn"}:
            found[body] = Ellipsoid(table["centre"], table["axes"], table.get("turn"))
        else:
            raise ModelError(f"the limit on the centre of mass of link '{body}' has the keys {', '.join(table)}; "
                             "it takes low and high, or points, or centre and axes")
    weights = []
    for table in masses:
        if not isinstance(table, Mapping):
            weights.append(table)
            continue
        if not set(table) <= {"bodies", "low", "high", "equal"}:
            raise ModelError(f"a limit on mass has the keys {', '.join(table)}; it takes bodies, low, high, equal")
        equal = table.get("equal")
        weights.append(MassLimit(table.get("low", equal), table.get("high", equal), tuple(table.get("bodies", ()))))
    return found, tuple(weights)
