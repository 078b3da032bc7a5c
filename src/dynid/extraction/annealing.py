"""Simulated annealing inside a box with a Nelder-Mead finish, compiled (Simionato, algorithm 1)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dynid.extraction.kernels import loss
from dynid.kernel_store import njit

COOLING = 8.0  # decades by which the temperature falls
NARROWING = 4.0  # decades by which steps become shorter


@njit(cache=True)
def anneal(start: Any, low: Any, high: Any, weight: float, steps: int, rng: Any, space: Any, base: Any,
           conditions: Any) -> Any:
    """Return the best point (variables,) found, its loss, and the number of evaluated points.

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


@njit(cache=True)
def nelder_mead(start: Any, low: Any, high: Any, weight: float, evaluations: int, space: Any, base: Any,
                conditions: Any) -> Any:
    """Return the best point (variables,) of a simplex search inside the box, its loss, and the number of evaluations.

    Coefficients are adapted to the number of variables (Gao and Han 2012), without which a simplex of thirty variables
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
