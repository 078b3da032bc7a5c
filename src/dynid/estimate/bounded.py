"""Bounded least squares: minimise |r x - rho|^2 with lower and upper bounds of x."""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array, Bools
from dynid.lapack import solve_triangular

MIN_BOUND_SLOPE = 1e-10  # relative to the largest gradient: with a smaller one, a parameter stays at its bound


def bounded_least_squares(r: Array, rho: Array, low: Array, high: Array, start: Array | None = None) -> Array:
    """Return x (k,) that minimises |r x - rho|^2 with low <= x <= high, r (m, k) of full column rank.

    Columns without a bound are eliminated; the others are solved by an active-set method (Stark, Parker:
    Bounded-variable least squares, 1995). start (k,): a guess of the solution, which gives the first active set.
    """
    bound = np.isfinite(low) | np.isfinite(high)
    order = np.concatenate([np.flatnonzero(~bound), np.flatnonzero(bound)])
    open_ = int((~bound).sum())
    q, upper = np.linalg.qr(r[:, order])
    right = q.T @ rho
    x = np.empty(len(order))
    own = order[open_:]
    guess = None if start is None else start[own]
    x[own] = _active_set(upper[open_:, open_:], right[open_:], low[own], high[own], guess)
    if open_:
        x[order[:open_]] = solve_triangular(upper[:open_, :open_], right[:open_] - upper[:open_, open_:] @ x[own])
    return x


def nearest_within(values: Array, covariance: Array, low: Array, high: Array) -> Array:
    """Return the values within bounds (k,) that are nearest to given values in the metric of their covariance."""
    known = np.diag(covariance) > 0
    size = np.sqrt(np.where(known, np.diag(covariance), 1.0))
    spread, vectors = np.linalg.eigh((covariance / np.outer(size, size))[np.ix_(known, known)])
    root = (vectors / np.sqrt(np.maximum(spread, 1e-12 * spread.max(initial=1.0)))).T / size[known]
    moved = np.clip(values, low, high)
    moved[known] = bounded_least_squares(root, root @ values[known], low[known], high[known])
    return moved


def _active_set(r: Array, rho: Array, low: Array, high: Array, start: Array | None) -> Array:
    """Return the bounded least-squares solution (k,) for the case that every column has a bound."""
    if not r.shape[1]:
        return np.empty(0)
    norms = np.linalg.norm(r, axis=0)
    scale = np.where(norms > 0, norms, 1.0)
    floor, ceiling = low, high
    a, low, high = r / scale, low * scale, high * scale
    x = np.clip(np.linalg.lstsq(a, rho, rcond=None)[0] if start is None else start * scale, low, high)
    at_low, at_high = x <= low, x >= high
    for _ in range(20 * len(x) + 20):
        x, at_low, at_high = _free_best(a, rho, low, high, x, at_low, at_high)
        slope = a.T @ (rho - a @ x)  # negative gradient
        least = MIN_BOUND_SLOPE * max(float(np.abs(a.T @ rho).max()), 1e-300)
        gain = np.where(at_low, slope, np.where(at_high, -slope, -np.inf))
        best = int(np.argmax(gain))
        if not gain[best] > least:
            break
        at_low[best] = at_high[best] = False
    return np.clip(x / scale, floor, ceiling)  # against rounding errors of the scaling


def _free_best(a: Array, rho: Array, low: Array, high: Array, x: Array, at_low: Bools,
               at_high: Bools) -> tuple[Array, Bools, Bools]:
    """Return the least-squares solution over the entries not at a bound, and masks of entries at each bound."""
    x, at_low, at_high = x.copy(), at_low.copy(), at_high.copy()
    x[at_low], x[at_high] = low[at_low], high[at_high]
    while True:
        free = np.flatnonzero(~(at_low | at_high))
        if not len(free):
            return x, at_low, at_high
        fixed = np.delete(np.arange(len(x)), free)
        aim = np.linalg.lstsq(a[:, free], rho - a[:, fixed] @ x[fixed], rcond=None)[0]
        under, over = aim < low[free], aim > high[free]
        if not np.any(under | over):
            x[free] = aim
            return x, at_low, at_high
        border = np.where(under, low[free], high[free])
        out = under | over
        moved = np.where(out, aim - x[free], 1.0)
        share = np.where(out, np.where(moved != 0, (border - x[free]) / np.where(moved != 0, moved, 1.0), 0.0), np.inf)
        step = float(np.clip(share.min(), 0.0, 1.0))
        x[free] += step * (aim - x[free])
        met = out & (share <= step + 1e-12)
        at_low[free[met & under]], at_high[free[met & over]] = True, True
        x[free[met]] = border[met]
