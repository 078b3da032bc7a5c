"""Apparent inertia: the inertia with which each joint's linear loop best reproduces the measured position.

q / qr = (kd follow s^2 + kp s + ki) / (J s^3 + kd s^2 + kp s + ki). Friction, gravity and coupling are neglected, so
this is only a scale for gains. The mean position is removed. A light joint in a stiff loop follows its reference for
any small inertia; the lower bound is kd T, the stability limit of the sampled loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from dynid.arrays import Array
from dynid.estimate.closed_loop.references import Log
from dynid.simulation.kernels import Law

_INERTIA_SEARCH_RATIO = 1e3  # times more or less than the inertia of a loop damped as kp and kd suggest, kd^2 / kp
# inertias tried over the whole range, and between the neighbours of the best
_COARSE_GRID_POINTS, _FINE_GRID_POINTS = 49, 21


@dataclass(frozen=True)
class JointLoop:
    """The gains of one joint's linear loop."""

    kp: float
    ki: float
    kd: float
    follow: float

    def response(self, inertia: float, reference: Array, rate: float) -> Array:
        """Return the positions (ticks,) of a joint with this inertia under a reference (ticks,) at `rate` Hz, from
        rest."""
        from scipy.signal import lfilter

        above, below = [0.0, self.kd * self.follow, self.kp], [inertia, self.kd, self.kp]
        if self.ki:
            above, below = [*above, self.ki], [*below, self.ki]
        steps = _trapezoidal(len(below) - 1, rate)
        b, a = np.array(above) @ steps, np.array(below) @ steps
        b, a = b / a[0], a / a[0]
        # Position and reference were equal and stood still: what the filter's delays then hold.
        state = reference[0] * np.cumsum((b - a)[:0:-1])[::-1]
        y, _ = lfilter(b, a, reference, zi=state)
        return np.asarray(y)


@cache
def _trapezoidal(order: int, rate: float) -> Array:
    """Return the polynomials in z (order + 1, order + 1), highest power first, that replace s^order, ..., s, 1 by the
    trapezoidal rule s = 2 rate (z - 1) / (z + 1), multiplied by (z + 1)^order.
    """
    rows = []
    for power in range(order, -1, -1):
        row = np.ones(1)
        for factor in power * [[2.0 * rate, -2.0 * rate]] + (order - power) * [[1.0, 1.0]]:
            row = np.convolve(row, factor)
        rows.append(row)
    return np.array(rows)


def apparent_inertia(gains: Law, logs: Sequence[Log]) -> Array:
    """Return the apparent inertia of each joint (dof,), kg m^2 or kg; at least kd T."""
    found = np.ones(len(gains.kp))
    for j, (kp, ki, kd, follow) in enumerate(zip(gains.kp, gains.ki, gains.kd, gains.follow, strict=True)):
        joint = JointLoop(float(kp), float(ki), float(kd), float(follow))
        least = float(kd) / min(log.reference.rate for log in logs)
        found[j] = max(_smallest(partial(_miss, joint, logs, j), np.log(kd / max(kp / kd, 1e-12))), least)
    return found


def _smallest(miss: partial[float], middle: float) -> float:
    """Return the inertia near exp(middle) with the smallest error, found on a coarse and a fine logarithmic grid."""
    grid = middle + np.linspace(-np.log(_INERTIA_SEARCH_RATIO), np.log(_INERTIA_SEARCH_RATIO), _COARSE_GRID_POINTS)
    values = [miss(x) for x in grid]
    best = int(np.nanargmin(np.where(np.isfinite(values), values, np.inf)))
    fine = np.linspace(grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)], _FINE_GRID_POINTS)
    return float(np.exp(fine[int(np.argmin([miss(x) for x in fine]))]))


def _miss(loop: JointLoop, logs: Sequence[Log], joint: int, log_inertia: float) -> float:
    """Return the squared distance between the joint's linear response and its measured positions, over all logs."""
    total = 0.0
    for log in logs:
        y = loop.response(float(np.exp(log_inertia)), log.reference.q[:, joint], log.reference.rate)
        there = np.interp(log.samples.t, log.reference.t, y)
        total += float(np.sum((there - log.samples.q[:, joint]) ** 2))
    return total
