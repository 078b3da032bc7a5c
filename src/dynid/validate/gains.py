"""Do the joints' torques agree on their scale? A wrong drive gain shows where joints share parameters.

A link's parameters show in the torque of every joint that carries it. If joint j's torque is g times what it should
be, its equations want those parameters g times larger than the other joints do. g is found with the parameters:

    minimise  sum_{i != j} w_i^2 |tau_i - Y_i beta|^2 + w_j^2 |tau_j - g Y_j beta|^2   over beta and g,

on the triangular factors alone. A nominal model gives a second opinion: tau_j = g Y_j beta_nominal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.estimate import Estimate, Problem
from dynid.estimate.least_squares import joint_weights
from dynid.regression import Regression
from dynid.regression.fold import triangular
from dynid.robot.inertia import Array
from dynid.validate.words import plain

_STEPS = 12  # of Gauss-Newton; it takes four or five
_EXPLAINED = 0.8  # share of the torque that the nominal model times one number has to explain to be believed
_BY_GRAVITY = 0.7  # and share of gravity in it
_ROWS = 300  # of the recorded motion that gravity is computed on
_TOLD = 0.1  # deviation of a gain up to which it counts as known
_APART = 1e-6  # share of the scaled torque that no parameter imitates, below which the gain cannot be known


@dataclass(frozen=True)
class Gain:
    """The scale of one joint's torque: measured over what it should be.

    gain and std against the other joints (None where they share too little), improvement: share of the excess
    misfit (over each joint fitted alone) that this gain removes. nominal: against the nominal model, where there is
    one, and nominal_share: share of the joint's torque that one scale explains then. gravity: share of gravity in the
    variation of the nominal torque; with little of it, inertia that the nominal model lacks looks like a gain.
    """

    joint: str
    gain: float | None
    std: float | None
    improvement: float
    nominal: float | None = None
    nominal_share: float | None = None
    gravity: float | None = None

    @property
    def by_nominal(self) -> float | None:
        """The gain that the nominal model's gravity tells, where it explains the torque."""
        told = (self.nominal_share or 0.0) > _EXPLAINED and (self.gravity or 0.0) > _BY_GRAVITY
        return self.nominal if told else None

    def to_dict(self) -> dict[str, Any]:
        return plain(vars(self))


def drive_gains(problem: Problem, estimate: Estimate) -> tuple[Gain, ...]:
    """The scale of every joint's torque, each with all others taken as right, and against the nominal model."""
    regression = problem.regression
    inflation = max(1.0, float(estimate.diagnostics.get("deviation_inflation", 1.0)))
    weights = joint_weights(regression)
    nominal, gravity = _nominal(problem), _gravity(problem)
    found = []
    for j, name in enumerate(regression.joints):
        gain, std, improvement = _against_others(regression, weights, j)
        known = std is not None and std * inflation < _TOLD
        found.append(Gain(name, gain if known else None, std * inflation if known and std is not None else None,
                          improvement if known else 0.0, *nominal[j], gravity[j]))
    return tuple(found)


def corrected(problem: Problem, j: int, gain: float) -> Problem:
    """The problem with joint j's torque divided by a gain; its samples are left out."""
    def scale(factors: Any) -> Any:
        changed = list(factors)
        r = changed[j].r.copy()
        r[:, -1] /= gain
        changed[j] = replace(changed[j], r=r)
        return tuple(changed)

    regression = replace(problem.regression, factors=scale(problem.regression.factors),
                         blocks=tuple(scale(block) for block in problem.regression.blocks))
    return replace(problem, regression=regression, samples=())


def _against_others(regression: Regression, weights: Array, j: int) -> tuple[float | None, float | None, float]:
    """Gain of joint j, its deviation for independent rows, and the share of the excess misfit it removes."""
    own = regression.factors[j]
    if own.rows <= len(own.columns) or own.power <= 0 or regression.dof < 2:
        return None, None, 0.0
    others = replace(regression, factors=tuple(f for i, f in enumerate(regression.factors) if i != j))
    rest = others.stack(np.delete(weights, j))
    if not np.any(rest.r):
        return None, None, 0.0
    b = len(regression.base)
    mine = np.zeros((len(own.r), b + 1))
    mine[:, own.columns], mine[:, b] = weights[j] * own.r[:, :-1], weights[j] * own.r[:, -1]
    top = np.column_stack([rest.r, rest.rho])
    alone = sum((w * f.r[-1, -1]) ** 2 for w, f in zip(weights, regression.factors, strict=True))

    before, _ = _solve(top, mine, 1.0)
    excess = before + rest.rest - alone
    if excess <= 0:
        return None, None, 0.0
    best: tuple[float, float, float] | None = None
    for start in (1.0, -1.0):
        gain, misfit, std = _newton(top, mine, start)
        if std is not None and (best is None or misfit < best[1]):
            best = (gain, misfit, std)
    if best is None:
        return None, None, 0.0
    return best[0], best[2], float(np.clip((before - best[1]) / excess, 0.0, 1.0))


def _solve(top: Array, mine: Array, gain: float) -> tuple[float, Array]:
    """Misfit (without what no beta explains in the others) and beta at a fixed gain."""
    matrix = np.vstack([top[:, :-1], gain * mine[:, :-1]])
    target = np.concatenate([top[:, -1], mine[:, -1]])
    beta = np.linalg.lstsq(matrix, target, rcond=1e-12)[0]
    return float(np.sum((target - matrix @ beta) ** 2)), beta


def _newton(top: Array, mine: Array, gain: float) -> tuple[float, float, float | None]:
    """Gain, misfit and deviation by Gauss-Newton on the profile over beta; no deviation: not to be told."""
    target = np.concatenate([top[:, -1], mine[:, -1]])
    misfit, beta = _solve(top, mine, gain)
    for _ in range(_STEPS):
        matrix = np.vstack([top[:, :-1], gain * mine[:, :-1]])
        scaled = np.concatenate([np.zeros(len(top)), mine[:, :-1] @ beta])  # d(g Y beta) / dg
        size = float(np.linalg.norm(scaled))
        r = triangular(np.column_stack([matrix, scaled, target - matrix @ beta]))
        b = matrix.shape[1]
        left = float(r[b, b])  # what of the scaled torque no parameter imitates
        if size <= 0 or left < _APART * size:
            return gain, misfit, None
        step = float(r[b, b + 1] / left)
        new_misfit, new_beta = _solve(top, mine, gain + step)
        while new_misfit > misfit * (1.0 + 1e-12) and abs(step) > 1e-9:
            step *= 0.5
            new_misfit, new_beta = _solve(top, mine, gain + step)
        gain, misfit, beta = gain + step, new_misfit, new_beta
        if abs(step) < 1e-6 * max(1.0, abs(gain)):
            break
    return gain, misfit, 1.0 / left


def _nominal(problem: Problem) -> list[tuple[float | None, float | None]]:
    """For each joint the scale of the nominal torque in the measured one, and how much of the torque it explains.

    Base parameters with a part that is no rigid body's (friction, offsets, rotors) or has no nominal value are left
    free: they are what a nominal model knows least.
    """
    base, regression = problem.base, problem.regression
    values, missing = _bodies(problem)
    beta = base.matrix @ values
    free = (base.matrix[:, missing] != 0).any(axis=1) if missing.any() else np.zeros(len(base), dtype=bool)
    beta[free] = 0.0
    found: list[tuple[float | None, float | None]] = []
    for factor in regression.factors:
        torque = factor.r[:, :-1] @ beta[factor.columns]
        open_columns = factor.r[:, :-1][:, free[factor.columns]]
        if factor.power <= 0 or factor.rows <= open_columns.shape[1] + 1 or not np.any(torque):
            found.append((None, None))
            continue
        if open_columns.shape[1]:
            size = np.maximum(np.linalg.norm(open_columns, axis=0), 1e-300)
            basis, _ = np.linalg.qr(open_columns / size)
            torque = torque - basis @ (basis.T @ torque)
        measured = factor.r[:, -1]
        power = float(torque @ torque)
        if power < 1e-4 * factor.power:
            found.append((None, None))  # the nominal model says next to nothing of this joint
            continue
        gain = float(torque @ measured) / power
        rest = measured if not open_columns.shape[1] else measured - basis @ (basis.T @ measured)
        found.append((gain, gain ** 2 * power / float(rest @ rest) if np.any(rest) else None))
    return found


def _bodies(problem: Problem) -> tuple[Array, NDArray[np.bool_]]:
    """Nominal values of the rigid bodies (parameters,), zero for the others, and which are those others."""
    parameters = problem.model.parameters
    values = [p.nominal for p in parameters] if problem.nominal is None else problem.nominal.tolist()
    missing = np.array([value is None or p.body is None for value, p in zip(values, parameters, strict=True)])
    return np.array([0.0 if out else value for value, out in zip(values, missing, strict=True)], dtype=float), missing


def _gravity(problem: Problem) -> list[float | None]:
    """For each joint the share of gravity in the variation of the nominal torque along the recorded motion."""
    values, missing = _bodies(problem)
    if not problem.samples or missing.all():
        return [None] * problem.model.dof
    part = max(problem.samples, key=len)
    rows = np.linspace(0, len(part) - 1, min(_ROWS, len(part))).astype(int)
    q, dq, ddq = part.q[rows], part.dq[rows], part.ddq[rows]
    still = np.zeros_like(q)
    whole = (problem.model.regressor(q, dq, ddq) @ values).var(axis=0)
    resting = (problem.model.regressor(q, still, still) @ values).var(axis=0)
    return [float(min(part / total, 1.0)) if total > 0 else None for part, total in zip(resting, whole, strict=True)]
