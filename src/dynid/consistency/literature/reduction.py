"""Removal of parameters until least squares is consistent (Diaz-Rodriguez et al. 2010; Sousa, s. 6.4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array
from dynid.consistency.consistency import Consistency
from dynid.consistency.feasibility import TOLERANCE, nearest
from dynid.consistency.fit import Fit
from dynid.consistency.literature.shared import as_fit
from dynid.regression import BaseParameters, Stacked


@dataclass(frozen=True, eq=False)
class Step:
    """One model of the reduction: number of removed base parameters, misfit, distance from the set, and values."""

    removed: int
    misfit: float
    distance: float
    beta: Array


def reduction(consistency: Consistency, base: BaseParameters, stacked: Stacked, *, every: int = 1,
              tolerance: float = TOLERANCE) -> list[Step]:
    """Return least squares with ever fewer base parameters, the least certain removed first, until it is consistent.

    every: number of removals between two computations of the distance.
    """
    kept = list(range(len(base)))
    steps: list[Step] = []
    while kept:
        beta, deviation = _least_squares(stacked, kept, len(base))
        removed = len(base) - len(kept)
        if removed % every == 0 or len(kept) == 1:
            distance = nearest(consistency, beta, base, tolerance=tolerance).distance
            steps.append(Step(removed, stacked.misfit(beta), distance, beta))
            if distance <= tolerance:
                break
        uncertain = deviation[kept] / np.maximum(np.abs(beta[kept]), 1e-300)
        kept.pop(int(np.argmax(uncertain)))
    return steps


def fit_reduced(consistency: Consistency, base: BaseParameters, stacked: Stacked, *, every: int = 1,
                tolerance: float = TOLERANCE) -> Fit:
    """Return the first consistent model of the reduction, with full parameters."""
    steps = reduction(consistency, base, stacked, every=every, tolerance=tolerance)
    found = nearest(consistency, steps[-1].beta, base, tolerance=tolerance)
    return as_fit(consistency, base, stacked, found.theta, len(steps))


def _least_squares(stacked: Stacked, kept: list[int], count: int) -> tuple[Array, Array]:
    """Return values and standard deviations (count,) with zeros for removed parameters."""
    r = stacked.r[:, kept]
    solution, *_ = np.linalg.lstsq(r, stacked.rho, rcond=None)
    beta, deviation = np.zeros(count), np.zeros(count)
    beta[kept] = solution
    variance = stacked.misfit(beta) / max(stacked.rows - len(kept), 1)
    deviation[kept] = np.sqrt(np.maximum(np.diag(np.linalg.pinv(r.T @ r)), 0.0) * variance)
    return beta, deviation
