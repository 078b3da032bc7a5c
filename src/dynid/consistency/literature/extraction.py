"""Full parameters out of base values by global search (Simionato, algorithm 1): simulated annealing within bounds, a
penalty on violations that grows, and a Nelder-Mead finish. The variables are mass, centre of mass and central inertia.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array, Ints
from dynid.consistency.consistency import Consistency
from dynid.consistency.limits import Box
from dynid.errors import ModelError
from dynid.regression import BaseParameters
from dynid.robot import inertia as ten

# Order of a body's variables: m, cx, cy, cz, Ixx, Ixy, Ixz, Iyy, Iyz, Izz about the centre of mass.
BODY = ("m", "cx", "cy", "cz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")


@dataclass(frozen=True, eq=False)
class Bounds:
    """low, high (bodies, 10) of each body's variables, and of the other parameters by kind ("Fv": (0, 50))."""

    low: Array
    high: Array
    others: Mapping[str, tuple[float, float]]


@dataclass(frozen=True, eq=False)
class Extraction:
    """theta (parameters,), its distance |K theta - beta| and what is wrong with it; run: which of the runs was best."""

    theta: Array
    distance: float
    violations: tuple[str, ...]
    run: int

    @property
    def feasible(self) -> bool:
        return not self.violations


def extract(consistency: Consistency, base: BaseParameters, beta: Array, bounds: Bounds, *, full: bool = True,
            centres: Mapping[str, Box] | None = None, mass: tuple[float, float] | None = None, runs: int = 5,
            iterations: int = 6, evaluations: int = 4000, seed: int = 0) -> Extraction:
    """The best of several runs of algorithm 1.

    full: penalise negative masses, inertias that are not positive definite or break the triangle inequality, centres
    of mass outside `centres` (boxes by link) and a whole mass outside `mass` (eq. 2.22-2.31); without it only the
    distance counts (the partial loss). evaluations: of the loss by the annealing, each iteration.
    """
    from scipy.optimize import dual_annealing, minimize

    places = consistency.places
    rest = np.setdiff1d(np.arange(len(consistency.parameters), dtype=np.int64), places.ravel())
    low, high = _limits(consistency, bounds, rest)
    boxes = [(centres or {}).get(body) for body in consistency.bodies]
    matrix = base.matrix

    def expand(x: Array) -> Array:
        theta = np.empty(len(consistency.parameters))
        own = x[:places.size].reshape(-1, 10)
        theta[places] = ten.from_central(own[:, 0], own[:, 1:4], ten.symmetric(own[:, 4:]))
        theta[rest] = x[places.size:]
        return theta

    def internal(x: Array) -> float:
        return float(np.sum((matrix @ expand(x) - beta) ** 2))

    def external(x: Array) -> float:
        own = x[:places.size].reshape(-1, 10)
        moments = np.linalg.eigvalsh(ten.symmetric(own[:, 4:]))
        wrong = np.maximum(-own[:, 0], 0.0).sum() + np.maximum(-moments[:, 0], 0.0).sum()
        wrong += np.maximum(moments[:, 2] - moments[:, 1] - moments[:, 0], 0.0).sum()
        wrong += sum(box.outside(com) for box, com in zip(boxes, own[:, 1:4], strict=True) if box is not None)
        if mass is not None:
            whole = own[:, 0].sum()
            wrong += max(mass[0] - whole, whole - mass[1], 0.0)
        return float(wrong)

    best: tuple[float, Array, int] | None = None
    rng = np.random.default_rng(seed)
    for run in range(runs):
        x, weight = low + (high - low) * rng.random(len(low)), 0.0
        for _ in range(iterations):
            def loss(x: Array, weight: float = weight) -> float:
                return internal(x) + (weight * external(x) if full else 0.0)
            annealed = dual_annealing(loss, list(zip(low, high, strict=True)), x0=x, maxfun=evaluations, seed=rng,
                                      no_local_search=True, maxiter=evaluations)
            finish = minimize(loss, annealed.x, method="Nelder-Mead", bounds=list(zip(low, high, strict=True)),
                              options={"maxfev": 2 * evaluations, "adaptive": True, "xatol": 1e-9, "fatol": 1e-12})
            x = finish.x if finish.fun <= loss(x) else x
            weight = 10.0 if weight == 0.0 else 10.0 * weight
        score = internal(x) + (weight * external(x) if full else 0.0)
        if best is None or score < best[0]:
            best = (score, x, run)
    if best is None:
        raise ModelError(f"extraction needs at least one run, got {runs}")
    theta = expand(best[1])
    found = [violation.message for violation in Consistency(
        consistency.parameters, margin=0.0, centres=dict(centres or {})).violations(theta)]
    return Extraction(theta, float(np.sqrt(internal(best[1]))), tuple(found), best[2])


def _limits(consistency: Consistency, bounds: Bounds, rest: Ints) -> tuple[Array, Array]:
    count = len(consistency.bodies)
    if bounds.low.shape != (count, 10) or bounds.high.shape != (count, 10) or np.any(bounds.low > bounds.high):
        raise ModelError(f"bounds of an extraction need {count} x 10 lower values ({' '.join(BODY)} a body) and as "
                         "many upper ones that are not below them")
    others = []
    for k in rest:
        kind = consistency.parameters.items[k].symbol
        if kind not in bounds.others:
            raise ModelError(f"the extraction has no bounds for parameters of kind '{kind}'")
        others.append(bounds.others[kind])
    pairs = np.array(others, dtype=float).reshape(-1, 2)
    return np.concatenate([bounds.low.ravel(), pairs[:, 0]]), np.concatenate([bounds.high.ravel(), pairs[:, 1]])
