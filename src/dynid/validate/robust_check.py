"""Does a robust method predict what it has not seen better than weighted least squares?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynid.arrays import Array, Bools
from dynid.errors import DynidError
from dynid.estimate import Problem, identify
from dynid.recording import Samples
from dynid.validate.reconstruct import reconstruct
from dynid.validate.thinned import thinned

_STRETCHES = 10  # of time, even ones predicted from odd ones and the other way round
_BETTER = 0.01  # share by which the typical residual has to shrink
_MOST = 0.7  # share of the stretches in which it has to


def robust_predicts_better(problem: Problem, method: str = "irls") -> Bools:
    """For each joint (dof,) bool: whether `method` predicts stretches of time left out better than `wls` does.

    By the median of the absolute residual, which outliers do not move: what counts is how well ordinary rows are met.
    """
    dof, logs = problem.model.dof, thinned(problem.data)
    ratios: list[Array] = []
    for part in (0, 1):
        fitted = tuple(_half(log, part) for log in logs)
        held = tuple(_half(log, 1 - part) for log in logs)
        try:
            half = Problem.of(problem.model, fitted, base=problem.base, blocks=4, nominal=problem.nominal,
                              threads=problem.threads)
            plain, robust = (reconstruct(identify(half, method=name), held) for name in ("wls", method))
        except DynidError:
            return np.zeros(dof, dtype=bool)
        for before, after in zip(plain.series, robust.series, strict=True):
            for rows in np.array_split(np.arange(len(before.t)), _STRETCHES):
                keep = before.keep[rows]
                if keep.any():
                    ratios.append(_typical(after.residual[rows], keep) / _typical(before.residual[rows], keep))
    if not ratios:
        return np.zeros(dof, dtype=bool)
    found = np.array(ratios)
    known = np.isfinite(found)
    better = np.sum(known & (found < 1.0), axis=0) >= _MOST * np.maximum(known.sum(axis=0), 1)
    return better & (np.nanmedian(np.where(known, found, np.nan), axis=0) < 1.0 - _BETTER)


def _typical(residual: Array, keep: Bools) -> Array:
    """Median absolute residual of each joint (dof,), nan where there are hardly rows."""
    return np.array([np.median(np.abs(residual[keep[:, j], j])) if keep[:, j].sum() > 10 else np.nan
                     for j in range(residual.shape[1])])


def _half(log: Samples, part: int) -> Samples:
    """The log with every second of its stretches kept."""
    stretch = np.arange(len(log)) * _STRETCHES // max(len(log), 1)
    return replace(log, keep=log.keep & (stretch % 2 == part)[:, None])
