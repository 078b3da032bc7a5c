"""Motions that excite one effect after the other: inertia of single joints, and coupling between joints."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import DynidError
from dynid.excitation.limits.motion_limits import Limits
from dynid.excitation.postures import home_posture, ranges, spread_postures
from dynid.excitation.trajectories.polynomial import Piecewise
from dynid.excitation.waypoints import quintics_within, trapezoids


def inertia_sweep(limits: Limits, *, home: ArrayLike | None = None, postures: int = 3, times: int = 3,
                  reach: float = 0.8, seed: int = 0) -> Piecewise:
    """Return a motion of one joint at a time, back and forth with constant acceleration, the others at rest.

    See Ardiani, C.4.2.1. times: number of repetitions. postures: of the other joints, home first and then random ones,
    so that the inertia varies. A stroke is limited by a triangular speed profile, or by `reach` of the range.
    """
    others = [home_posture(home, limits)]
    if postures > 1:
        others += list(spread_postures(limits, max(postures - 1, 2), np.random.default_rng(seed), reach)[:postures - 1])
    rows: list[Array] = []
    for at in others:
        for j in range(limits.dof):
            low, high = _triangle(limits, j, float(at[j]), reach)
            rows += _visited(at, (j,), [(low,), (high,)] * times)
    return _through(rows, limits)


def coupling_sweep(limits: Limits, *, home: ArrayLike | None = None, joints: Sequence[Sequence[int]] | None = None,
                   reach: float = 0.6) -> Piecewise:
    """Return a motion of two joints at a time, in the same and in opposite directions, with the others at rest.

    It excites inertial and centrifugal coupling (Ardiani, s. 1.4.1.3). joints: pairs (from 0), default all.
    """
    at = home_posture(home, limits)
    pairs = list(combinations(range(limits.dof), 2)) if joints is None else [tuple(pair) for pair in joints]
    for pair in pairs:
        if len(pair) != 2 or not all(0 <= j < limits.dof for j in pair) or pair[0] == pair[1]:
            raise DynidError(f"a pair of joints is two different numbers from 0 to {limits.dof - 1}, got {pair}",
                             code="bad-pair-of-joints")
    rows: list[Array] = []
    for i, j in pairs:
        (a, b), (c, d) = (_triangle(limits, k, float(at[k]), reach) for k in (i, j))
        rows += _visited(at, (i, j), [(b, d), (a, c), (b, c), (a, d)])
    return _through(rows, limits)


def _triangle(limits: Limits, j: int, middle: float, reach: float) -> tuple[float, float]:
    """Return the ends of a stroke of joint j about a position, on which it just reaches its top speed."""
    low, high = (float(side[j]) for side in ranges(limits, reach))
    far = high - low
    if np.isfinite(limits.velocity[j]) and np.isfinite(limits.acceleration[j]):
        far = min(far, float(limits.velocity[j] ** 2 / limits.acceleration[j]))
    first = float(np.clip(middle - 0.5 * far, low, high - far))
    return first, first + far


def _visited(home: Array, joints: tuple[int, ...], places: Sequence[tuple[float, ...]]) -> list[Array]:
    """Return a sequence of postures: home, then one joint after the other at given positions, then home again."""
    rows = [home]
    for place in places:
        row = home.copy()
        row[list(joints)] = place
        rows.append(row)
    return [*rows, home]


def _through(rows: Sequence[Array], limits: Limits) -> Piecewise:
    """Return the motion through a sequence of postures, without postures that repeat the previous one."""
    kept = [rows[0], *(row for before, row in pairwise(rows) if np.any(row != before))]
    points = np.array(kept)
    return quintics_within(points, limits) if np.isfinite(limits.jerk).any() else trapezoids(points, limits)
