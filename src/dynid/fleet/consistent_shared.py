"""Estimate of a fleet with physically consistent links and non-negative friction.

Own parameters with the right sign are eliminated as without constraints. The others are fixed at zero and released
again according to their multipliers: an active-set method for one convex problem, in which only the links need a cone
programme.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dynid.arrays import Array, Bools
from dynid.consistency import Consistency, fit
from dynid.errors import NotPossibleError
from dynid.fleet.robot_fold import RobotFold
from dynid.fleet.shared import (
    OWN_GROUPS,
    Eliminated,
    SharedEstimate,
    check_alike,
    completed,
    shared_columns,
    summed,
)
from dynid.regression import BaseParameters, Stacked

_MOST_ROUNDS = 60
_MIN_MULTIPLIER_SHARE = 1e-9  # share of the torques' squares that a multiplier must be worth


def consistent_shared_estimate(robots: Sequence[RobotFold], own: Sequence[str] = OWN_GROUPS,
                               gains: float | None = None) -> SharedEstimate:
    """Return least squares of a whole fleet over consistent parameters; standard errors are those without
    constraints.

    An own base parameter that is a single positive standard parameter is kept non-negative.
    """
    check_alike(robots)
    base = robots[0].regression.base
    shared = shared_columns(base, own)
    alone = np.count_nonzero(base.matrix, axis=1) == 1
    positive = [int(c) for c in np.flatnonzero(~shared & alone) if base.parameters.items[base.independent[c]].positive]
    held: list[set[int]] = [set() for _ in robots]
    for _ in range(_MOST_ROUNDS):
        parts = [Eliminated.of(robot, shared, gains, sorted(zero)) for robot, zero in zip(robots, held, strict=True)]
        total = summed(parts)
        theta, values = _links(base, shared, total, own)
        if not _changed(robots, parts, held, values, positive, shared):
            found = completed(robots, parts, total, shared, values, gains, theta)
            rows = found.values.copy()
            for row, zero in zip(rows, held, strict=True):
                row[sorted(zero)] = 0.0
            return replace(found, values=rows)
    raise NotPossibleError("the consistent estimate of the fleet did not converge on which friction is zero")


def _links(base: BaseParameters, shared: Bools, total: Stacked, own: Sequence[str]) -> tuple[Array, Array]:
    """Return standard parameters (parameters,) of the type, with zeros for parameters of individual robots, and shared
    values."""
    places = np.flatnonzero(shared)
    r, rho = np.zeros((len(base), len(base))), np.zeros(len(base))
    r[:len(places), places], rho[:len(places)] = total.r, total.rho
    items = base.parameters.items
    mine = {item.name: 0.0 for item in items if item.kind.group in own or item.name in own}
    consistency = Consistency(base.parameters, known={**mine, **base.known})
    theta = fit(consistency, base, Stacked(r, rho, total.rest, total.rows)).theta
    return theta, (base.matrix @ theta)[places]


def _changed(robots: Sequence[RobotFold], parts: Sequence[Eliminated], held: list[set[int]], shared_values: Array,
             positive: Sequence[int], shared: Bools) -> bool:
    """Fix negative parameters at zero and release those that would become positive. Return whether anything changed."""
    changed = False
    for robot, part, zero in zip(robots, parts, held, strict=True):
        values = dict(zip(part.columns.tolist(), part.values(shared_values).tolist(), strict=True))
        below = {c for c in positive if values.get(c, 0.0) < 0.0}
        full = np.zeros(len(shared))
        full[np.flatnonzero(shared)] = shared_values
        for c, value in values.items():
            if c < len(full):
                full[c] = value
        stacked = robot.stacked
        slope = stacked.r.T @ (stacked.rho - stacked.r @ full)  # of half the misfit, downwards
        size = np.linalg.norm(stacked.r, axis=0) * np.sqrt(float(stacked.rho @ stacked.rho) + stacked.rest)
        back = {c for c in zero if slope[c] > _MIN_MULTIPLIER_SHARE * size[c]} if not below else set()
        zero -= back
        zero |= below
        changed = changed or bool(below or back)
    return changed
