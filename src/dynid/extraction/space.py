"""Variables of a search, and the standard parameters that each point represents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dynid.arrays import Array, Ints
from dynid.errors import ModelError
from dynid.extraction.conditions import Conditions
from dynid.extraction.extraction import BaseValues
from dynid.extraction.kernels import full_vector

Form = Literal["exact", "penalty"]
_LARGEST_BOUND = 1e3  # replaces an infinite bound, because a search needs a box


@dataclass(frozen=True, eq=False)
class SearchSpace:
    """Variables x of a search, and the standard parameters theta that they represent.

    In the exact form, x are free standard parameters with low <= x <= high, and theta = offset + spread x has the given
    base values for every x. In the penalty form, x are mass, centre of mass and central inertia of each body, and the
    other parameters.

    Attributes:
        exact: whether the space has the exact form.
        offset, spread: offset (parameters,) and matrix (parameters, variables) of the exact form.
        places, rest: indices of the parameters of bodies, and of the others.
        low, high: bounds of x (variables,).
        corners: lower and upper bounds of the variables of the penalty form.
        nearest: matrix (variables, parameters) that maps standard parameters to the nearest point with the base values,
            in units of the interval widths.
    """

    exact: bool
    offset: Array
    spread: Array
    places: Ints
    rest: Ints
    low: Array
    high: Array
    corners: tuple[Array, Array]
    nearest: Array

    @property
    def arrays(self) -> tuple[bool, Array, Array, Ints, Ints]:
        """Return the arguments that describe this space to the compiled loss functions."""
        return self.exact, self.offset, self.spread, self.places, self.rest

    def theta(self, x: Array) -> Array:
        """Return the standard parameters (parameters,) of a point x (variables,) of the search."""
        return np.asarray(full_vector(x, *self.arrays))

    def random(self, rng: np.random.Generator) -> Array:
        """Return a uniformly random point (variables,) within the bounds (Simionato, algorithm 1); in the exact form,
        the nearest point with the given base values."""
        low, high = self.corners
        drawn = low + (high - low) * rng.random(len(low))
        if not self.exact:
            return drawn
        theta = full_vector(drawn, False, self.offset, self.spread, self.places, self.rest)
        return np.asarray(np.clip(self.nearest @ (theta - self.offset), self.low, self.high))


def make_space(given: BaseValues, conditions: Conditions, form: Form) -> SearchSpace:
    """Return the variables of a search and their bounds, in the exact or in the penalty form."""
    low, high = _standard_intervals(conditions)
    least, most = conditions.box
    corners = (np.concatenate([least.ravel(), low[conditions.rest]]),
               np.concatenate([most.ravel(), high[conditions.rest]]))
    if form == "exact":
        offset, spread, free = eliminated(given)
        width = np.maximum(high - low, 1e-9)[:, None]
        nearest = np.linalg.pinv(spread / width) / width.T
        return SearchSpace(True, offset, spread, conditions.places, conditions.rest, low[free], high[free], corners,
                           nearest)
    if len(given.free) < len(given.known):
        raise ModelError("the penalty form of extraction does not support known parameters; use form = 'exact'")
    return SearchSpace(False, np.zeros(len(low)), np.zeros((len(low), 1)), conditions.places, conditions.rest, *corners,
                       corners, np.zeros((0, len(low))))


def eliminated(given: BaseValues) -> tuple[Array, Array, Ints]:
    """Return offset (parameters,), spread (parameters, free) and the indices of the free standard parameters.

    The parameters offset + spread x have the base values for every x. One standard parameter per base value is
    eliminated; pivoting selects the parameters with the largest coefficients.
    """
    from scipy.linalg import lu_factor, lu_solve, qr

    places, count = given.free, len(given.values)
    matrix = given.matrix[:, places]
    # Rows to equal size, so that small combinations pick their parameters too.
    _, _, order = qr(matrix / np.linalg.norm(matrix, axis=1)[:, None], pivoting=True, mode="economic")
    bound, free = np.sort(order[:count]), np.sort(order[count:])
    factor = lu_factor(matrix[:, bound])
    offset = np.where(np.isnan(given.known), 0.0, given.known)
    spread = np.zeros((len(offset), len(free)))
    target = given.values - given.matrix @ offset
    offset[places[bound]] = lu_solve(factor, target)
    spread[places[bound]] = -lu_solve(factor, matrix[:, free])
    spread[places[free], np.arange(len(free))] = 1.0
    return offset, spread, places[free]


def _standard_intervals(conditions: Conditions) -> tuple[Array, Array]:
    """Return intervals of standard parameters (parameters,) for masses, centres and inertias within their bounds."""
    low, high = np.empty(len(conditions.consistency.parameters)), np.empty(len(conditions.consistency.parameters))
    least, most, _ = conditions.rest_box
    low[conditions.rest] = np.clip(least, -_LARGEST_BOUND, _LARGEST_BOUND)
    high[conditions.rest] = np.clip(most, -_LARGEST_BOUND, _LARGEST_BOUND)
    for place, under, over in zip(conditions.places, conditions.bounds.low, conditions.bounds.high, strict=True):
        corners = np.array([m * c for m in (under[0], over[0]) for c in (under[1:4], over[1:4])])
        far = np.maximum(np.abs(under[1:4]), np.abs(over[1:4]))
        heavy = max(abs(under[0]), abs(over[0]))
        x, y, z = far
        up = heavy * np.array([y * y + z * z, x * y, x * z, x * x + z * z, y * z, x * x + y * y])
        down = np.where([True, False, False, True, False, True], 0.0, -up)
        low[place] = np.concatenate([under[4:] + down, corners.min(axis=0), under[:1]])
        high[place] = np.concatenate([over[4:] + up, corners.max(axis=0), over[:1]])
    return low, high
