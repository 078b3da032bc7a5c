"""Bounds: between what the search for full parameters looks, body by body."""

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
        """The bounds of centres of mass as boxes, by body."""
        return {body: Box(low[1:4], high[1:4]) for body, low, high in zip(bodies, self.low, self.high, strict=True)}

    def of_others(self, parameters: Parameters, places: Ints) -> tuple[Array, Array]:
        """Lower and upper bounds of parameters that belong to no body, infinite where none are given."""
        low, high = np.full(len(places), -np.inf), np.full(len(places), np.inf)
        for k, place in enumerate(places):
            item = parameters.items[place]
            low[k], high[k] = self.others.get(item.name, self.others.get(item.symbol, (-np.inf, np.inf)))
        return low, high
