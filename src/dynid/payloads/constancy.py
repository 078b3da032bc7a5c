"""Test whether a load was constant during the logs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dynid.arrays import Array
from dynid.payloads.loaded import LoadedEquations
from dynid.payloads.ways import LinearPayloadFit, Nuisance, Unloaded, residual_fit
from dynid.regression import Regression

MIN_BLOCKS_PER_SIDE = 3  # blocks on either side
_MIN_LOAD_CHANGE = 0.3  # of the load: a smaller change cannot be distinguished from model errors
_SIGNIFICANT_STD = 5.0


@dataclass(frozen=True)
class LoadChange:
    """A change of the load: time, s of its log, and mass before and after, kg; std: scatter on both sides, relative."""

    log: str
    at: float
    before: float
    after: float
    std: float


def change_of(loaded: LoadedEquations, fit: LinearPayloadFit, unloaded: Unloaded) -> LoadChange | None:
    """Return a change of the load within the logs, or None.

    In every block of time the load's torque p is scaled to the residual r of the robot without load: alpha = <p, r> /
    <p, p>. The best single step in alpha is compared with its scatter on either side.
    """
    coefficients = fit.columns @ fit.x
    share, weight = [], []
    for block in loaded.regression.blocks:
        product = power = 0.0
        for w, factor in zip(loaded.weights, block.factors, strict=True):
            mine = np.isin(factor.columns, loaded.load)
            p = w * factor.r[:, :-1][:, mine] @ coefficients[factor.columns[mine]]
            rest = w * (factor.r[:, -1] - factor.r[:, :-1][:, ~mine] @ coefficients[factor.columns[~mine]])
            product, power = product + float(p @ rest), power + float(p @ p)
        share.append(product / power if power > 0 else 0.0)
        weight.append(power)
    alpha, weights = np.array(share), np.array(weight)
    if len(alpha) < 2 * MIN_BLOCKS_PER_SIDE or weights.sum() <= 0:
        return None
    places = range(MIN_BLOCKS_PER_SIDE, len(alpha) - MIN_BLOCKS_PER_SIDE + 1)
    best = max((_step(alpha, weights, k) for k in places), key=lambda one: one[0])
    gain, k, before, after, std = best
    if gain <= 0 or abs(after - before) < max(_MIN_LOAD_CHANGE * max(abs(after), abs(before)), _SIGNIFICANT_STD * std):
        return None
    span = loaded.regression.blocks[k].spans[0]
    return LoadChange(span.source, span.start, _mass(loaded, unloaded, slice(None, k)),
                  _mass(loaded, unloaded, slice(k, None)), std)


def _mass(loaded: LoadedEquations, unloaded: Unloaded, part: slice) -> float:
    """Return the mass, kg, that fits some blocks of time, for the robot without load."""
    regression = loaded.regression
    some = Regression.of(regression.base, regression.blocks[part], regression.joints, regression.sources)
    return float(residual_fit(replace(loaded, regression=some), unloaded, Nuisance.none()).theta[9])


def _step(alpha: Array, weights: Array, k: int) -> tuple[float, int, float, float, float]:
    """Return what a step before block k explains, k, the means on both sides and the standard error of their
    difference."""
    sides = [(alpha[part], weights[part]) for part in (slice(None, k), slice(k, None))]
    if any(w.sum() <= 0 for _, w in sides):
        return 0.0, k, 0.0, 0.0, np.inf
    means = [float(np.average(a, weights=w)) for a, w in sides]
    variance = sum(float(np.average((a - m) ** 2, weights=w)) * float(np.sum(w ** 2)) / float(w.sum()) ** 2
                   for (a, w), m in zip(sides, means, strict=True))
    both = float(weights[:k].sum() * weights[k:].sum() / weights.sum())
    return both * (means[1] - means[0]) ** 2, k, means[0], means[1], float(np.sqrt(variance))
