"""Scale of each joint's torque relative to the others and the nominal model, which reveals a wrong drive gain.

A link's parameters affect the torque of every joint that carries it. If joint j's torque is g times its true value, its
equations require parameters g times larger than those of the other joints. g is estimated with the parameters:

    minimise  sum_{i != j} w_i^2 |tau_i - Y_i beta|^2 + w_j^2 |tau_j - g Y_j beta|^2   over beta and g,

from the triangular factors alone. The gravity of a nominal model gives a second estimate, if there is one: nominal
masses are more reliable than friction and rotor inertias.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np

from dynid.arrays import Array, Bools
from dynid.estimate import Estimate, Problem
from dynid.estimate.linear import joint_weights
from dynid.lapack import column_space, least_squares
from dynid.model import CompleteModel, complete
from dynid.plain import PlainFields
from dynid.regression import Regression
from dynid.regression.factor import triangular
from dynid.threads import side_by_side
from dynid.validate.thresholds import NOMINAL_EXPLAINS, NOMINAL_GRAVITY, SCALE_KNOWN

_GAUSS_NEWTON_STEPS = 12  # largest number of iterations; four or five usually suffice
_NOMINAL_ROWS = 2000  # recorded rows that are compared with the nominal model
_MIN_GAIN_SHARE = 1e-6  # share of the scaled torque orthogonal to all columns, below which the gain is not determined


@dataclass(frozen=True)
class Gain(PlainFields):
    """Scale of one joint's torque: measured over expected.

    Attributes:
        joint: name of the joint.
        gain, std: scale relative to the other joints, None if they have too few parameters in common.
        improvement: share of the excess error (over each joint fitted alone) that this gain removes.
        nominal: measured torque over the nominal model's gravity, with a separate scale for accelerations.
        nominal_share: share of the joint's torque that nominal gravity and accelerations explain.
        gravity: share of the joint's torque that nominal gravity alone explains.
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
        """Gain relative to the nominal model's gravity if that explains the torque; otherwise None."""
        reliable = (self.nominal_share or 0.0) > NOMINAL_EXPLAINS and (self.gravity or 0.0) > NOMINAL_GRAVITY
        return self.nominal if reliable else None


def drive_gains(problem: Problem, estimate: Estimate) -> tuple[Gain, ...]:
    """Return the scale of every joint's torque relative to the other joints and to the nominal model."""
    inflation = max(1.0, float(estimate.uncertainty.facts.get("std_inflation", 1.0)))
    if problem not in _gains_of_independent_rows:
        _gains_of_independent_rows[problem] = _for_independent_rows(problem)

    def one(found: Gain) -> Gain:
        if found.std is None or found.std * inflation > SCALE_KNOWN:
            return replace(found, gain=None, std=None, improvement=0.0)
        return replace(found, std=found.std * inflation)

    return tuple(map(one, _gains_of_independent_rows[problem]))


def nominal_gains(problem: Problem) -> tuple[Gain, ...]:
    """Return the scale of every joint's torque relative to the nominal model alone."""
    [nominal] = side_by_side(_nominal, [problem], threads=1)
    return tuple(Gain(name, None, None, 0.0, *one)
                 for name, one in zip(problem.regression.joints, nominal, strict=True))


# Nominal gains do not depend on the estimate, so a second fit of the same data reuses them.
_gains_of_independent_rows: WeakKeyDictionary[Problem, tuple[Gain, ...]] = WeakKeyDictionary()


def _for_independent_rows(problem: Problem) -> tuple[Gain, ...]:
    """Return the torque scale of every joint, with standard errors that ignore the autocorrelation of rows."""
    regression = problem.regression
    weights = joint_weights(regression)
    [nominal] = side_by_side(_nominal, [problem], threads=1)
    return tuple(side_by_side(lambda j: Gain(regression.joints[j], *_against_others(regression, weights, j),
                                             *nominal[j]), range(regression.dof), threads=1))


def _against_others(regression: Regression, weights: Array, j: int) -> tuple[float | None, float | None, float]:
    """Return the torque scale of joint j, its standard error if rows were independent, and the share of the excess
    error that the scale removes."""
    own = regression.factors[j]
    if own.rows <= len(own.columns) or own.power <= 0 or regression.dof < 2:
        return None, None, 0.0
    others = replace(regression, factors=tuple(f for i, f in enumerate(regression.factors) if i != j))
    rest = others.stack(np.delete(weights, j))
    if not np.any(rest.r):
        return None, None, 0.0
    unseen = np.delete(np.arange(len(regression.base)), own.columns)
    order = np.concatenate([unseen, own.columns])
    top = triangular(np.column_stack([rest.r[:, order], rest.rho]))[:-1]
    mine = np.hstack([np.zeros((len(own.r), len(unseen))), weights[j] * own.r])
    # Parameters without effect on joint j fit the first rows exactly if these determine them, so these rows are
    # dropped.
    met = np.abs(np.diag(top)[:len(unseen)]) > _MIN_GAIN_SHARE * np.linalg.norm(top[:, :len(unseen)], axis=0)
    first = len(unseen) if met.all() else 0
    top, mine = top[first:, first:], mine[:, first:]
    alone = sum(w ** 2 * f.least_misfit for w, f in zip(weights, regression.factors, strict=True))

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
    """Return the squared error and the parameters beta of the fit at a fixed torque gain of one joint."""
    matrix = np.vstack([top[:, :-1], gain * mine[:, :-1]])
    target = np.concatenate([top[:, -1], mine[:, -1]])
    beta = least_squares(matrix, target, 1e-12)
    return float(np.sum((target - matrix @ beta) ** 2)), beta


def _newton(top: Array, mine: Array, gain: float) -> tuple[float, float, float | None]:
    """Return gain, squared error and standard error by Gauss-Newton on the profile over beta; the standard error is
    None if the data do not determine the gain."""
    target = np.concatenate([top[:, -1], mine[:, -1]])
    misfit, beta = _solve(top, mine, gain)
    for _ in range(_GAUSS_NEWTON_STEPS):
        matrix = np.vstack([top[:, :-1], gain * mine[:, :-1]])
        scaled = np.concatenate([np.zeros(len(top)), mine[:, :-1] @ beta])  # d(g Y beta) / dg
        size = float(np.linalg.norm(scaled))
        r = triangular(np.column_stack([matrix, scaled, target - matrix @ beta]))
        b = matrix.shape[1]
        left = float(r[b, b])  # part of the scaled torque that is orthogonal to all columns
        if size <= 0 or left < _MIN_GAIN_SHARE * size:
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


def _nominal(problem: Problem) -> list[tuple[float | None, float | None, float | None]]:
    """Return three numbers per joint: the scale of nominal gravity in the measured torque, the share of the torque that
    nominal gravity and accelerations explain with separate scales, and the share that gravity alone explains.

    Parameters that do not belong to rigid bodies or have no nominal value are free. So are a rotor inertia, usual
    friction and an offset of the joint, even if the model does not have them.
    """
    model, unknown = problem.model, (None, None, None)
    bodies, is_known = nominal_bodies(problem)
    free = ~is_known
    if not problem.data or free.all():
        return [unknown] * model.dof
    part = max(problem.data, key=len)
    rows = np.linspace(0, len(part) - 1, min(_NOMINAL_ROWS, len(part))).astype(int)
    motion, still = (part.q[rows], part.dq[rows], part.ddq[rows]), np.zeros((len(rows), model.dof))
    whole_model = complete(model)
    gravity = whole_model.inverse_dynamics(bodies, motion[0], still, still)
    moving = whole_model.inverse_dynamics(bodies, *motion) - gravity
    y = chosen_columns(whole_model, free, *motion)
    found: list[tuple[float | None, float | None, float | None]] = []
    for j in range(model.dof):
        keep = part.keep[rows, j]
        dq, ddq = part.dq[rows[keep], j], part.ddq[rows[keep], j]
        others = np.column_stack([np.ones_like(dq), dq, np.sign(dq), ddq, moving[keep, j], y[keep, j]])
        others = others[:, np.any(others, axis=0)]
        tau, own = part.tau[rows[keep], j], gravity[keep, j]
        whole = own + moving[keep, j]
        if len(tau) < 3 * (others.shape[1] + 1) or not np.any(tau) or own @ own <= 1e-9 * float(whole @ whole):
            found.append(unknown)
            continue
        basis = column_space(others, 1e-9)
        alone = own - basis @ (basis.T @ own)
        power, size = float(alone @ alone), float(tau @ tau)
        if power < 1e-6 * float(own @ own):
            found.append(unknown)  # friction and offset explain the gravity torque as well, so it is no evidence
            continue
        gain = float(alone @ tau) / power
        rest = tau - basis @ (basis.T @ tau) - gain * alone
        found.append((gain, 1.0 - float(rest @ rest) / size, gain ** 2 * power / size))
    return found


def nominal_bodies(problem: Problem) -> tuple[Array, Bools]:
    """Return the nominal parameters of the rigid bodies (parameters,), zero for all other parameters, and a mask of the
    rigid-body parameters with a nominal value."""
    items = problem.model.parameters
    values = [p.nominal for p in items] if problem.nominal is None else problem.nominal.tolist()
    is_known = np.array([p.body is not None and value is not None for p, value in zip(items, values, strict=True)])
    return np.array([value if yes else 0.0 for value, yes in zip(values, is_known, strict=True)], dtype=float), is_known


def chosen_columns(model: CompleteModel, chosen: Bools, q: Array, dq: Array, ddq: Array) -> Array:
    """Return columns (samples, dof, k) of the regressor for the chosen parameters (parameters,)."""
    count, place = int(chosen.sum()), np.full((model.dof, len(chosen)), -1, dtype=np.int64)
    place[:, chosen] = np.arange(model.dof * count).reshape(model.dof, count)
    place[~model.structure] = -1
    out = np.zeros((model.dof * count, len(q)))
    model.fill(q, dq, ddq, place, out)
    return np.ascontiguousarray(out.reshape(model.dof, count, len(q)).transpose(2, 0, 1))
