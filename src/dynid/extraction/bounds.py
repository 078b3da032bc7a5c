"""Bounds of the search for full parameters, body by body."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from dynid.arrays import Array, Ints
from dynid.consistency import Box
from dynid.consistency.limits import CentreLimit
from dynid.errors import ModelError
from dynid.model import Parameters

# Order of a body's variables: mass, centre of mass, inertia about it.
BODY = ("m", "cx", "cy", "cz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
BODY_UNITS = ("kg",) + ("m",) * 3 + ("kg m^2",) * 6
Interval = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Bounds:
    """Intervals of the inertial variables of every body and of all other parameters (Simionato, tables A.5 and A.6).

    Attributes:
        low, high: (bodies, 10), mass, centre of mass and inertia about it, in the order of `BODY`, kg and m.
        others: intervals of other parameters, by name or by symbol ("Fv": (0, 50)).
        contours: shape that must contain the centre of mass, by body: a box, a hull or an ellipsoid.
        mass: interval of the total mass, kg.
        name: name in tables.
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
        """Return lower and upper limits of standard parameters, by name, from those of bodies by parallel axes.

        A body's inertia about its frame is that about its centre of mass and `m (c.c 1 - c c')`. The limits are the
        smallest intervals that hold every body inside the bounds.
        """
        found: dict[str, Interval] = {}
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
            found |= {parameters.items[c].name: (float(a), float(b))
                      for c, a, b in zip(columns, least, most, strict=True)}
        places = np.array([k for k, item in enumerate(parameters.items) if item.body is None], dtype=np.int64)
        for k, a, b in zip(places, *self.of_others(parameters, places), strict=True):
            if np.isfinite(a) or np.isfinite(b):
                found[parameters.items[k].name] = (float(a), float(b))
        return found

    def of_others(self, parameters: Parameters, places: Ints) -> tuple[Array, Array]:
        """Return lower and upper bounds of parameters that do not belong to a body, infinite if not given."""
        low, high = np.full(len(places), -np.inf), np.full(len(places), np.inf)
        for k, place in enumerate(places):
            item = parameters.items[place]
            low[k], high[k] = self.others.get(item.name, self.others.get(item.symbol, (-np.inf, np.inf)))
        return low, high
