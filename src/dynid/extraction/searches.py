"""Searches by name, each of which minimises one loss inside a box from a start point."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.extraction.annealing import anneal, nelder_mead
from dynid.extraction.conditions import Conditions
from dynid.extraction.kernels import loss, losses
from dynid.extraction.space import SearchSpace

Search = Literal["annealing", "dual-annealing", "differential-evolution", "gradient"]
SEARCHES: dict[Search, str] = {
    "annealing": "simulated annealing, then Nelder-Mead (Simionato, algorithm 1)",
    "dual-annealing": "generalised simulated annealing with long jumps (Xiang et al. 1997)",
    "differential-evolution": "differential evolution (Storn and Price 1997)",
    "gradient": "multistart Levenberg-Marquardt"}
MIN_POPULATION = 15  # members of a population


@dataclass(frozen=True, eq=False)
class Landscape:
    """Loss function of a search for one weight of the physical conditions.

    matrix (k, parameters), values (k,): |matrix theta - values|^2 is part of it; without rows in the exact form.
    """

    space: SearchSpace
    conditions: Conditions
    matrix: Array
    values: Array
    weight: float

    @property
    def arrays(self) -> tuple[object, object, object]:
        """Return the arguments of the kernels after a candidate and the weight."""
        own = self.conditions
        whose, normals, offsets = own.planes
        round_whose, inverses, centres = own.spheres
        planes = np.column_stack([whose, normals, offsets]) if len(whose) else np.zeros((0, 5))
        spheres = np.column_stack([round_whose, centres, inverses.reshape(-1, 9)]) if len(round_whose) else np.zeros(
            (0, 13))
        conditions = (np.array([*own.box, own.scale]), np.array(own.rest_box), own.lightest, own.inertia,
                      own.inertia_scale, planes, spheres, own.whole_mass, own.inside)
        return self.space.arrays, (np.ascontiguousarray(self.matrix), self.values), conditions

    def loss(self, x: Array) -> float:
        """Return the loss of a candidate (variables,)."""
        return float(loss(np.ascontiguousarray(x), self.weight, *self.arrays))


Found = tuple[Array, int]  # the best candidate, and how many were tried


def _annealing(landscape: Landscape, start: Array, evaluations: int, rng: np.random.Generator) -> Found:
    space, arrays = landscape.space, landscape.arrays
    best, least, tried = anneal(start, space.low, space.high, landscape.weight, evaluations, rng, *arrays)
    if least == 0.0:
        return best, int(tried)
    finish, value, used = nelder_mead(best, space.low, space.high, landscape.weight, evaluations, *arrays)
    return (finish if value < least else best), int(tried) + int(used)


def _dual_annealing(landscape: Landscape, start: Array, evaluations: int, rng: np.random.Generator) -> Found:
    from scipy.optimize import dual_annealing

    arrays, weight, space = landscape.arrays, landscape.weight, landscape.space
    found = dual_annealing(lambda x: loss(x, weight, *arrays), list(zip(space.low, space.high, strict=True)), x0=start,
                           maxfun=evaluations, maxiter=evaluations, seed=rng, no_local_search=True)
    return np.asarray(found.x), int(found.nfev)


def _differential_evolution(landscape: Landscape, start: Array, evaluations: int, rng: np.random.Generator) -> Found:
    from scipy.optimize import differential_evolution

    arrays, weight, space = landscape.arrays, landscape.weight, landscape.space
    members = max(MIN_POPULATION, 2 * len(start))
    first = space.low + (space.high - space.low) * rng.random((members, len(start)))
    first[0] = start
    found = differential_evolution(
        lambda many: losses(np.ascontiguousarray(many.T), weight, *arrays),
        list(zip(space.low, space.high, strict=True)), init=first, maxiter=max(1, evaluations // members), seed=rng,
        polish=False, vectorized=True, updating="deferred", tol=0.0, atol=0.0)
    return np.asarray(found.x), int(found.nfev)


def _nowhere(landscape: Landscape, start: Array, evaluations: int, rng: np.random.Generator) -> Found:
    """Return the start point unchanged: only the local search follows."""
    return start, 0


_SOLVERS: dict[Search, Callable[[Landscape, Array, int, np.random.Generator], Found]] = {
    "annealing": _annealing, "dual-annealing": _dual_annealing, "differential-evolution": _differential_evolution,
    "gradient": _nowhere}


def search_of(name: str) -> Search:
    """Return a search by name; raise an error that lists the searches for an unknown name."""
    for one in get_args(Search):
        if one == name:
            return one
    raise ModelError(f"there is no search '{name}'; there are {', '.join(SEARCHES)}", code="unknown-search")


def solve(name: Search, landscape: Landscape, start: Array, evaluations: int, rng: np.random.Generator) -> Found:
    """Return the best candidate (variables,) of one search, and the number of evaluations."""
    width = landscape.space.high - landscape.space.low
    if not len(start) or not np.any(width > 0.0):
        return start, 0
    return _SOLVERS[name](landscape, start, evaluations, rng)
