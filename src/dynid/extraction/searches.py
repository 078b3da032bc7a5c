"""Global searches such as simulated annealing, which minimise a loss function inside a box."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.extraction.conditions import Conditions
from dynid.extraction.kernels import loss, losses
from dynid.extraction.space import SearchSpace
from dynid.kernel_store import njit

Search = Literal["annealing", "dual-annealing", "differential-evolution", "gradient"]
SEARCHES: dict[Search, str] = {
    "annealing": "simulated annealing, then Nelder-Mead (Simionato, algorithm 1)",
    "dual-annealing": "generalised simulated annealing with long jumps (Xiang et al. 1997)",
    "differential-evolution": "differential evolution (Storn and Price 1997)",
    "gradient": "multistart Levenberg-Marquardt"}
MIN_POPULATION = 15  # smallest number of members of the population in differential evolution
COOLING = 8.0  # decades by which the temperature falls
NARROWING = 4.0  # decades by which steps become shorter


@dataclass(frozen=True, eq=False)
class Landscape:
    """Loss function of a search for one weight of the physical conditions.

    Attributes:
        space: variables of the search.
        conditions: conditions whose squared violations are part of the loss.
        matrix, values: coefficients (k, parameters) and values (k,); |matrix theta - values|^2 is part of the loss.
        weight: weight of the physical conditions.
    """

    space: SearchSpace
    conditions: Conditions
    matrix: Array
    values: Array
    weight: float

    @property
    def arrays(self) -> tuple[object, object, object]:
        """Arguments of the compiled loss functions after the first two, which are the candidate and the weight."""
        own = self.conditions
        whose, normals, offsets = own.planes
        round_whose, inverses, centres = own.spheres
        planes = np.column_stack([whose, normals, offsets])
        spheres = np.column_stack([round_whose, centres, inverses.reshape(-1, 9)])
        conditions = (np.array([*own.box, own.scale]), np.array(own.rest_box), own.lightest, own.inertia,
                      own.inertia_scale, planes, spheres, own.whole_mass, own.inside)
        return self.space.arrays, (np.ascontiguousarray(self.matrix), self.values), conditions


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


_SOLVERS: dict[Search, Callable[[Landscape, Array, int, np.random.Generator], Found]] = {
    "annealing": _annealing, "dual-annealing": _dual_annealing, "differential-evolution": _differential_evolution}


def find_search(name: str) -> Search:
    """Return a search by name; raise an error that lists the searches for an unknown name."""
    if name not in SEARCHES:
        raise ModelError(f"there is no search '{name}'; there are {', '.join(SEARCHES)}", code="unknown-search")
    return name


def solve(name: Search, landscape: Landscape, start: Array, evaluations: int, rng: np.random.Generator) -> Found:
    """Return the best candidate (variables,) of a search by its name, and the number of evaluations. The search
    "gradient" returns the start (variables,), because only a local search follows."""
    if name == "gradient" or not np.any(landscape.space.high > landscape.space.low):
        return start, 0
    return _SOLVERS[name](landscape, start, evaluations, rng)


@njit(cache=True)
def anneal(start: Any, low: Any, high: Any, weight: float, steps: int, rng: Any, space: Any, base: Any,
           conditions: Any) -> Any:
    """Return the best point (variables,) of simulated annealing, its loss, and the number of evaluated points.

    One variable is changed at a time; worse points are accepted with the Metropolis probability at a temperature that
    decreases from the loss of the start.
    """
    x, width = start.copy(), high - low
    now = loss(x, weight, space, base, conditions)
    best, least = x.copy(), now
    begin, tried = now, 1
    for k in range(steps):
        if least == 0.0:
            break
        tried += 1
        share = k / steps
        temperature = 0.1 * begin * 10.0 ** (-COOLING * share)
        reach = 0.5 * 10.0 ** (-NARROWING * share)
        j = int(rng.random() * len(x))
        before = x[j]
        x[j] = min(high[j], max(low[j], before + reach * width[j] * rng.normal()))
        after = loss(x, weight, space, base, conditions)
        if after <= now or (temperature > 0.0 and rng.random() < math.exp((now - after) / temperature)):
            now = after
            if now < least:
                least = now
                best[:] = x
        else:
            x[j] = before
    return best, least, tried


@njit(cache=True, is_storable=False)
def nelder_mead(start: Any, low: Any, high: Any, weight: float, evaluations: int, space: Any, base: Any,
                conditions: Any) -> Any:
    """Return the best point (variables,) of a simplex search inside the box, its loss, and the number of evaluations.

    Coefficients are adapted to the number of variables (Gao and Han 2012); a standard simplex of thirty variables
    stagnates.
    """
    n = len(start)
    expand, contract, shrink = 1.0 + 2.0 / n, 0.75 - 0.5 / n, 1.0 - 1.0 / n
    points, values = np.empty((n + 1, n)), np.empty(n + 1)
    for i in range(n + 1):
        points[i] = start
        if i > 0:
            step = 0.05 * (high[i - 1] - low[i - 1])
            points[i, i - 1] += step if start[i - 1] + step <= high[i - 1] else -step
        values[i] = loss(points[i], weight, space, base, conditions)
    used = n + 1
    while used < evaluations:
        order = np.argsort(values)
        points, values = points[order], values[order]
        if values[0] == 0.0 or values[n] - values[0] <= 1e-15 * abs(values[0]):
            break
        middle = points[:n].sum(axis=0) / n
        mirrored = np.minimum(high, np.maximum(low, 2.0 * middle - points[n]))
        found = loss(mirrored, weight, space, base, conditions)
        used += 1
        if found < values[0]:
            further = np.minimum(high, np.maximum(low, middle + expand * (middle - points[n])))
            there = loss(further, weight, space, base, conditions)
            used += 1
            if there < found:
                mirrored, found = further, there
        elif found >= values[n - 1]:
            toward = mirrored if found < values[n] else points[n]
            mirrored = middle + contract * (toward - middle)
            there = loss(mirrored, weight, space, base, conditions)
            used += 1
            if there >= min(found, values[n]):
                for i in range(1, n + 1):
                    points[i] = points[0] + shrink * (points[i] - points[0])
                    values[i] = loss(points[i], weight, space, base, conditions)
                used += n
                continue
            found = there
        points[n], values[n] = mirrored, found
    k = np.argmin(values)
    return points[k].copy(), values[k], used
