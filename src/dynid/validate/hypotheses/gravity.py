"""The direction of gravity, from the torques.

The regressor is linear in gravity: a log that was recorded with another gravity in the base frame than the model's is
explained best by that one. Gravity the other way round can be met by masses below zero: among directions that fit alike
the one is taken for which bodies that can exist explain the torques.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import DynidError, NotPossibleError
from dynid.estimate import Problem, identify
from dynid.model import Model
from dynid.recording import Samples
from dynid.regression import BaseParameters, TorqueEquations, base_parameters, fold
from dynid.regression.equations import unmeasured_joints
from dynid.validate.hypotheses.trial import Trial, try_out
from dynid.validate.words import plain

_STEP = 0.03  # rad, of the slopes by differences
_ROUNDS = 6
_SETTLED = 0.002  # share of the misfit that a step has to take away for another one
_ALIKE = 1.25  # times the least misfit up to which a direction may be the right one
_EARTH = 9.81  # m/s^2, where the robot's file has no gravity
_SLANTING = np.array([0.48, 0.6, -0.64])  # of length one, along no axis of a robot


@dataclass(frozen=True, eq=False)
class Gravity:
    """The direction of gravity in the base frame. vector (3,): m/s^2. angle: degrees from what was given. std: degrees,
    deviation of the direction along its two axes (2,). misfit, given: what is left, in units of the joints' noise, with
    it and with the gravity given. consistent, consistent_given: relative errors of the best robot that can exist,
    percent, None where they were not asked for."""

    vector: Array
    angle: float
    std: Array
    misfit: float
    given: float
    consistent: float | None = None
    consistent_given: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return plain(vars(self))


def with_gravity(model: Model, gravity: Array) -> Model:
    """The same model, mounted otherwise."""
    return replace(model, robot=model.robot.with_gravity(gravity.tolist()))


def trial_with(problem: Problem, logs: tuple[Samples, ...], gravity: Array, noise: Array | None,
               base: BaseParameters) -> Trial:
    """The logs fitted with another gravity; base: parameters that serve for every direction."""
    model = with_gravity(_robotic(problem), gravity)
    return try_out(fold(TorqueEquations.of(model, logs, base), blocks=1, threads=problem.threads), noise)


def estimate_gravity(problem: Problem, logs: tuple[Samples, ...] | None = None, noise: Array | None = None) -> Gravity:
    """The direction of gravity that explains the problem's logs, its size that of the robot's own.

    The axes, the directions between them and the given one are tried, the best is refined by Newton's steps on the
    sphere, and where it and its opposite fit alike, bodies that can exist decide.
    """
    model, data = _robotic(problem), problem.data if logs is None else logs
    own = np.asarray(model.robot.gravity, dtype=float)
    size = float(np.linalg.norm(own)) or _EARTH
    start = own / size if np.any(own) else np.array([0.0, 0.0, -1.0])
    # In a slanting gravity every joint sees all that it can see in any; what a direction hides is left at zero.
    base = base_parameters(with_gravity(model, size * _SLANTING), unmeasured=unmeasured_joints(data))
    first = trial_with(problem, data, size * start, noise, base)
    noise = first.noise() if noise is None else noise

    def left(direction: Array) -> float:
        trial = trial_with(problem, data, size * direction, noise, base)
        return float(np.sum(trial.inside / noise ** 2) / max(float(trial.rows.sum()), 1.0))

    around = np.array([point for point in product((-1.0, 0.0, 1.0), repeat=3) if any(point)])
    around /= np.linalg.norm(around, axis=1)[:, None]
    axes = [start, -start, *(axis for axis in around if abs(axis @ start) < 0.999)]
    tried = sorted(((left(axis), k) for k, axis in enumerate(axes)))
    direction, misfit, std = _refined(axes[tried[0][1]], tried[0][0], left, float(first.rows.sum()))
    given = next(value for value, k in tried if k == 0)
    opposite = left(-direction)
    exists = {}
    if min(opposite, misfit) > max(opposite, misfit) / _ALIKE:
        exists = {sign: _exists(problem, data, sign * size * direction) for sign in (1.0, -1.0)}
        if exists[-1.0] is not None and (exists[1.0] is None or exists[-1.0] < exists[1.0] / _ALIKE):
            direction, misfit = -direction, opposite
    consistent = exists.get(1.0 if direction @ axes[tried[0][1]] > 0 else -1.0)
    angle = float(np.rad2deg(np.arccos(np.clip(direction @ start, -1.0, 1.0))))
    return Gravity(size * direction, angle, np.rad2deg(std), misfit, given, consistent,
                   _exists(problem, data, size * start) if exists else None)


def _refined(direction: Array, misfit: float, left: Any, rows: float) -> tuple[Array, float, Array]:
    """The direction of least misfit, that misfit, and the deviation (2,), rad, along the axes across it: Newton steps
    on a paraboloid through six points about it."""
    step, std = _STEP, np.full(2, np.nan)
    for _ in range(_ROUNDS):
        across = np.linalg.svd(direction[None])[2][1:]

        def at(x: float, y: float, direction: Array = direction, across: Array = across) -> Array:
            moved = direction + x * across[0] + y * across[1]
            return np.asarray(moved / np.linalg.norm(moved))

        f = {key: left(at(*(step * np.array(key)))) for key in ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1))}
        slope = np.array([f[1, 0] - f[-1, 0], f[0, 1] - f[0, -1]]) / (2.0 * step)
        curve = np.array([f[1, 0] + f[-1, 0] - 2.0 * misfit, f[0, 1] + f[0, -1] - 2.0 * misfit]) / step ** 2
        mixed = (f[1, 1] - f[1, 0] - f[0, 1] + misfit) / step ** 2
        values, vectors = np.linalg.eigh(np.array([[curve[0], mixed], [mixed, curve[1]]]))
        values = np.maximum(np.abs(values), 1e-9)
        move = -vectors @ ((vectors.T @ slope) / values)
        move *= min(1.0, 0.3 / max(float(np.linalg.norm(move)), 1e-12))
        std = np.sqrt(2.0 * misfit / rows / values)
        before = misfit
        for _ in range(3):
            new = at(*move)
            value = left(new)
            if value < misfit:
                direction, misfit = new, value
                break
            move *= 0.3
        if misfit > (1.0 - _SETTLED) * before:
            break
    return direction, misfit, std


def _exists(problem: Problem, logs: tuple[Samples, ...], gravity: Array) -> float | None:
    """Relative error, percent, of the best robot that can exist under some gravity; None where there is none."""
    model = with_gravity(_robotic(problem), gravity)
    try:
        return float(identify(Problem.of(model, logs, threads=problem.threads), method="pc-wls")
                     .diagnostics.relative_error)
    except NotPossibleError:
        return None


def _robotic(problem: Problem) -> Model:
    if not isinstance(problem.model, Model):
        raise DynidError("the direction of gravity can only be estimated for a robot, not for a model of one's own")
    return problem.model
