"""Violations of bounds and physical conditions by a full parameter vector, with exact derivatives.

A violation is zero if its condition holds, and about one if a variable is outside its interval by the interval's width.
The squares of different violations are therefore comparable (Simionato, eq. 2.22-2.31).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dynid.arrays import Array, Ints
from dynid.consistency import Consistency
from dynid.consistency.limits import Ellipsoid
from dynid.errors import ModelError
from dynid.extraction.bounds import Bounds
from dynid.robot import inertia as ten

INSIDE = 1e-7  # relative margin of intervals in the search, against rounding errors
_MIN_MASS_SHARE = 1e-3  # lower bound of a mass in the computation of a centre of mass, as a share of its upper bound
_MIN_INTERVAL_WIDTH = 1e-9  # SI units: assumed width of an interval that is a single value
_ROW, _COLUMN = np.array([0, 0, 0, 1, 1, 2]), np.array([0, 1, 2, 1, 2, 2])


@dataclass(frozen=True, eq=False)
class Conditions:
    """Conditions that a loss function penalises: bounds, and optionally consistent inertias, contours and total mass.

    Attributes:
        consistency, bounds: the consistent set and the bounds.
        inertia: whether to require tr(I)/2 - I > 0 about the centre of mass (eq. 2.26), which implies eq. 2.24.
        contours: whether to require centres of mass inside their links.
        whole: whether to require the total mass.
        inside: relative margin by which each condition is made stricter.
    """

    consistency: Consistency
    bounds: Bounds
    inertia: bool = True
    contours: bool = True
    whole: bool = True
    inside: float = INSIDE

    def __post_init__(self) -> None:
        if len(self.bounds.low) != len(self.consistency.bodies):
            raise ModelError(f"the bounds cover {len(self.bounds.low)} bodies, but the model has "
                             f"{len(self.consistency.bodies)}: {', '.join(self.consistency.bodies)}")
        unknown = [body for body in self.bounds.contours if body not in self.consistency.bodies]
        if unknown:
            raise ModelError(f"a contour is given for link '{unknown[0]}', which is not in the model; its links are "
                             f"{', '.join(self.consistency.bodies)}")

    # -- arrays for the kernels ------------------------------------------------------
    @cached_property
    def places(self) -> Ints:
        return self.consistency.places

    @cached_property
    def rest(self) -> Ints:
        """Indices of the parameters that do not belong to a body."""
        return np.setdiff1d(np.arange(len(self.consistency.parameters), dtype=np.int64), self.places.ravel())

    @cached_property
    def scale(self) -> Array:
        """Width of the interval of each inertial variable (bodies, 10)."""
        return np.maximum(self.bounds.high - self.bounds.low, _MIN_INTERVAL_WIDTH)

    @cached_property
    def box(self) -> tuple[Array, Array]:
        """Lower and upper bounds of the inertial variables (bodies, 10), slightly inside the given bounds."""
        room = self.inside * (self.bounds.high - self.bounds.low)
        return self.bounds.low + room, self.bounds.high - room

    @cached_property
    def rest_box(self) -> tuple[Array, Array, Array]:
        """Lower bounds, upper bounds and interval widths of the parameters that belong to no body (k,); the width of an
        infinite interval is one."""
        low, high = self.bounds.of_others(self.consistency.parameters, self.rest)
        finite = np.isfinite(low) & np.isfinite(high)
        return low, high, np.where(finite, np.maximum(high - low, _MIN_INTERVAL_WIDTH), 1.0)

    @cached_property
    def lightest(self) -> Array:
        """Smallest mass (bodies,), kg, by which the first moment is divided in the computation of a centre of mass."""
        return np.maximum(_MIN_MASS_SHARE * self.bounds.high[:, 0], 1e-6)

    @cached_property
    def inertia_scale(self) -> Array:
        """Scale of each body's inertia (bodies,), kg m^2."""
        return np.maximum(self.bounds.high[:, [4, 7, 9]].max(axis=1), 1e-9)

    @cached_property
    def planes(self) -> tuple[Ints, Array, Array]:
        """Plane contours: body (k,), normals (k, 3) and offsets (k,), in units of the widths of the body's box. A point
        c is inside if normal c + offset >= 0."""
        whose, normals, offsets = list[int](), list[Array](), list[float]()
        for body, limit in self.bounds.contours.items() if self.contours else ():
            if not isinstance(limit, Ellipsoid):
                index = list(self.consistency.bodies).index(body)
                size = float(self.scale[index, 1:4].max())
                for normal, offset in zip(*limit.planes, strict=True):
                    whose.append(index)
                    normals.append(normal / size)
                    offsets.append(float(offset) / size - self.inside)
        return np.array(whose, dtype=np.int64), np.array(normals).reshape(-1, 3), np.array(offsets)

    @cached_property
    def spheres(self) -> tuple[Ints, Array, Array]:
        """Round contours: body (k,), inverses (k, 3, 3) and centres (k, 3). A point c is inside if |inverse (c -
        centre)| <= 1 (s. 5.3)."""
        found = [(list(self.consistency.bodies).index(body), limit) for body, limit in self.bounds.contours.items()
                 if self.contours and isinstance(limit, Ellipsoid)]
        return (np.array([k for k, _ in found], dtype=np.int64),
                np.array([one.inverse * (1.0 + self.inside) for _, one in found]).reshape(-1, 3, 3),
                np.array([one.centre for _, one in found]).reshape(-1, 3))

    @cached_property
    def whole_mass(self) -> Array:
        """Lower bound, upper bound and interval width of the total mass (3,), kg."""
        if not self.whole or self.bounds.mass is None:
            return np.array([-np.inf, np.inf, 1.0])
        low, high = self.bounds.mass
        room = self.inside * (high - low)
        return np.array([low + room, high - room, max(high - low, 0.01 * abs(high), _MIN_INTERVAL_WIDTH)])

    # -- violations and their derivatives -------------------------------------------------
    def central(self, theta: Array) -> tuple[Array, Array]:
        """Return mass, centre of mass and central inertia of every body (bodies, 10), and their derivatives by the ten
        standard parameters of the body (bodies, 10, 10)."""
        numbers = theta[self.places]
        mass = np.maximum(numbers[:, 9], self.lightest)
        free = (numbers[:, 9] > self.lightest).astype(float)  # where the mass is above its lower bound
        h = numbers[:, 6:9]
        found, slopes = np.empty_like(numbers), np.zeros((len(numbers), 10, 10))
        found[:, 0], slopes[:, 0, 9] = numbers[:, 9], 1.0
        found[:, 1:4] = h / mass[:, None]
        slopes[:, [1, 2, 3], [6, 7, 8]] = 1.0 / mass[:, None]
        slopes[:, 1:4, 9] = -free[:, None] * h / mass[:, None] ** 2
        # I = J - (h.h 1 - h h') / m
        outer = h[:, :, None] * h[:, None, :]
        moved = np.einsum("bii->b", outer)[:, None, None] * np.eye(3) - outer
        found[:, 4:] = numbers[:, :6] - ten.entries(moved) / mass[:, None]
        slopes[:, 4 + np.arange(6), np.arange(6)] = 1.0
        slopes[:, 4:, 9] = free[:, None] * ten.entries(moved) / mass[:, None] ** 2
        for axis in range(3):
            unit = np.eye(3)[axis]
            turned = 2.0 * h[:, axis, None, None] * np.eye(3) - h[:, :, None] * unit - unit[:, None] * h[:, None, :]
            slopes[:, 4:, 6 + axis] = -ten.entries(turned) / mass[:, None]
        return found, slopes

    def residuals(self, theta: Array) -> tuple[Array, Array, int]:
        """Return the violations (rows,) by a full parameter vector theta, their derivatives by theta (rows,
        parameters), and the number of rows that are bounds. The other rows are physical conditions."""
        central, slopes = self.central(theta)
        values, rows = self._bound_rows(theta, central, slopes)
        count = len(values)
        more = [self._inertia_rows(central, slopes), self._plane_rows(central, slopes),
                self._sphere_rows(central, slopes), self._whole_rows(theta)]
        return (np.concatenate([values, *(one for one, _ in more)]), np.vstack([rows, *(one for _, one in more)]),
                count)

    def _spread(self, whose: Ints, rows: Array) -> Array:
        """Return derivatives by all parameters (rows, parameters) from derivatives (rows, 10) by the ten parameters of
        the body `whose` (rows,) of each row."""
        wide = np.zeros((len(rows), len(self.consistency.parameters)))
        wide[np.arange(len(rows))[:, None], self.places[whose]] = rows
        return wide

    def _bound_rows(self, theta: Array, central: Array, slopes: Array) -> tuple[Array, Array]:
        low, high = self.box
        out = (np.maximum(central - high, 0.0) - np.maximum(low - central, 0.0)) / self.scale
        rows = np.where(out != 0.0, 1.0 / self.scale, 0.0)[:, :, None] * slopes
        body = np.repeat(np.arange(len(central)), 10)
        least, most, width = self.rest_box
        other = theta[self.rest]
        beyond = (np.maximum(other - most, 0.0) - np.maximum(least - other, 0.0)) / width
        wide = np.zeros((len(self.rest), len(theta)))
        wide[np.arange(len(self.rest)), self.rest] = np.where(beyond != 0.0, 1.0 / width, 0.0)
        return (np.concatenate([out.ravel(), beyond]), np.vstack([self._spread(body, rows.reshape(-1, 10)), wide]))

    def _inertia_rows(self, central: Array, slopes: Array) -> tuple[Array, Array]:
        if not self.inertia or not len(central):
            return np.empty(0), np.empty((0, len(self.consistency.parameters)))
        tensors = ten.symmetric(central[:, 4:])
        second = 0.5 * np.trace(tensors, axis1=1, axis2=2)[:, None, None] * np.eye(3) - tensors
        moments, axes = np.linalg.eigh(second)
        short = np.minimum(moments / self.inertia_scale[:, None] - self.inside, 0.0)
        # derivative of an eigenvalue v' S v: tr(dI)/2 - v' dI v, off-diagonal entries twice
        twice = np.where(_ROW == _COLUMN, 1.0, 2.0)
        by_inertia = (0.5 * (_ROW == _COLUMN)
                      - twice * axes[:, _ROW, :].swapaxes(1, 2) * axes[:, _COLUMN, :].swapaxes(1, 2))
        active = np.where(short < 0.0, 1.0 / self.inertia_scale[:, None], 0.0)
        rows = active[:, :, None] * np.einsum("bke,ben->bkn", by_inertia, slopes[:, 4:])
        return short.ravel(), self._spread(np.repeat(np.arange(len(central)), 3), rows.reshape(-1, 10))

    def _plane_rows(self, central: Array, slopes: Array) -> tuple[Array, Array]:
        whose, normals, offsets = self.planes
        short = np.minimum(np.einsum("ki,ki->k", normals, central[whose, 1:4]) + offsets, 0.0)
        rows = np.where(short < 0.0, 1.0, 0.0)[:, None] * np.einsum("ki,kin->kn", normals, slopes[whose, 1:4])
        return short, self._spread(whose, rows)

    def _sphere_rows(self, central: Array, slopes: Array) -> tuple[Array, Array]:
        whose, inverses, centres = self.spheres
        away = np.einsum("kij,kj->ki", inverses, central[whose, 1:4] - centres)
        size = np.linalg.norm(away, axis=1)
        over = np.maximum(size - 1.0, 0.0)
        direction = np.einsum("kij,ki->kj", inverses, away) / np.maximum(size, 1e-12)[:, None]
        rows = np.where(over > 0.0, 1.0, 0.0)[:, None] * np.einsum("ki,kin->kn", direction, slopes[whose, 1:4])
        return over, self._spread(whose, rows)

    def _whole_rows(self, theta: Array) -> tuple[Array, Array]:
        low, high, size = self.whole_mass
        mass = float(theta[self.places[:, 9]].sum())
        out = (max(mass - high, 0.0) - max(low - mass, 0.0)) / size
        row = np.zeros((1, len(theta)))
        row[0, self.places[:, 9]] = 1.0 / size if out != 0.0 else 0.0
        return np.array([out]), row
