"""Information matrix of a motion on the base columns, its derivatives, and the expected torque noise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg.blas import dgemm, dsyrk

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.excitation.limits.motion_limits import Limits
from dynid.model import LinearModel, complete
from dynid.regression import BaseParameters, Regression
from dynid.regression.equations import Layout
from dynid.regression.factor import triangular
from dynid.robot import Robot

# Friction torque is the parameter times this power of the speed, by the unit of the parameter.
SPEED_POWER = {"N m": 0, "N": 0, "N m s/rad": 1, "N s/m": 1, "N m s^2/rad^2": 2, "N s^2/m^2": 2}


@dataclass(frozen=True, eq=False)
class Information:
    """Fisher information matrix A = D (K' K + sum_j w_j^2 Y_j' Y_j) D of a motion; Y_j: base regressor of joint j.

    Attributes:
        layout: order of the base columns.
        weights: w_j (dof,), 1 / standard deviation of the noise of each joint's torque.
        scale: prior magnitude of each base parameter (base,), the diagonal of D.
        known: K (base, base), triangular factor of the information of earlier logs, or None.
    """

    layout: Layout
    weights: Array
    scale: Array
    known: Array | None = None

    @staticmethod
    def from_model(model: LinearModel, base: BaseParameters, *, noise: Array | float | None = None,
                   scale: Array | None = None, known: Regression | None = None) -> Information:
        """Return the Fisher information of motions of a model.

        noise: standard deviation of the torque noise, one number or (dof,). known: compressed regression of earlier
        logs.
        """
        weights = np.ones(model.dof) if noise is None else 1.0 / _positive("noise", noise, model.dof)
        scales = np.ones(len(base)) if scale is None else _positive("scale", scale, len(base))
        matrix = None
        if known is not None:
            if known.base.expressions != base.expressions:
                raise ModelError("the earlier logs were compressed with another model than the model of the motion; "
                                 "use the same robot and terms")
            matrix = known.stack(weights).r
        return Information(Layout.from_model(model, base), weights, scales, matrix)

    @cached_property
    def _before(self) -> Array:
        """Fisher information of earlier logs (base, base), zero without earlier logs."""
        b = len(self.layout.base)
        return np.zeros((b, b)) if self.known is None else self.known.T @ self.known

    def entries(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Return the base regressor of all joints (layout.rows, samples); a joint's last row (torque) is not set."""
        out = np.empty((self.layout.rows, len(q)))
        complete(self.layout.model).fill(q, dq, ddq, self.layout.place, out)
        return out

    def _rows(self, j: int) -> slice:
        rows = self.layout.joint(j)
        return slice(rows.start, rows.stop - 1)

    def matrix(self, entries: Array) -> Array:
        """Return the information matrix A (base, base) from the regressor entries of a motion."""
        total = self._before.copy()
        for j, columns in enumerate(self.layout.columns):
            part = dsyrk(self.weights[j] ** 2, entries[self._rows(j)].T, trans=1, lower=1)
            total[np.ix_(columns, columns)] += part + np.tril(part, -1).T
        return self.scale[:, None] * total * self.scale

    def slope(self, q: Array, dq: Array, ddq: Array, entries: Array, by_matrix: Array) -> Array:
        """Return derivatives (3, samples, dof) by q, dq, ddq of a function of the information matrix A; by_matrix
        (base, base): derivative of the function by A."""
        full = self.scale[:, None] * by_matrix * self.scale
        weights = np.empty_like(entries)
        for j, columns in enumerate(self.layout.columns):
            # d tr(S Y'Y) = 2 tr(S Y' dY)
            weights[self._rows(j)] = dgemm(2.0 * self.weights[j] ** 2, entries[self._rows(j)].T,
                                           full[np.ix_(columns, columns)].T).T
        return complete(self.layout.model).pull_back(q, dq, ddq, self.layout.place, weights)

    def factor(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Return the triangular factor (base, base) of the scaled, weighted base regressor along a motion, which is
        more accurate than the information matrix."""
        b = len(self.layout.base)
        tall = [] if self.known is None else [self.known]
        entries = self.entries(q, dq, ddq)
        for j, columns in enumerate(self.layout.columns):
            rows = np.zeros((len(columns), b))
            rows[:, columns] = triangular(entries[self._rows(j)].T)[:len(columns)] * self.weights[j]
            tall.append(rows)
        return triangular(np.vstack(tall) * self.scale)

    def standard_errors(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Return the expected standard errors (base,) after a log of a motion; all are infinite if the motion does not
        excite a parameter."""
        r = self.factor(q, dq, ddq)
        diagonal = np.abs(np.diag(r))
        if diagonal.min() <= 1e-13 * diagonal.max():
            return np.full(len(r), np.inf)
        inverse = np.linalg.solve(r, np.eye(len(r)))
        return self.scale * np.sqrt(np.sum(inverse ** 2, axis=1))


def _positive(what: str, values: Array | float, count: int) -> Array:
    array = np.broadcast_to(np.asarray(values, dtype=float), (count,)).copy() if np.size(values) in (1, count) else None
    if array is None or not np.isfinite(array).all() or not (array > 0).all():
        raise ModelError(f"{what} must be one number above zero, or {count} such numbers, got {values}")
    return array


def nominal_base_values(base: BaseParameters) -> Array:
    """Return the nominal values of the base parameters (base,), nan if a component is unknown."""
    nominal = np.array([np.nan if p.nominal is None else p.nominal for p in base.parameters])
    return np.array([row[row != 0] @ nominal[row != 0] for row in base.matrix])


def relative_errors(base: BaseParameters, std: Array) -> Array:
    """Return standard errors (base,) in percent of the nominal base parameters; infinite if unknown or zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = 100.0 * std / np.abs(nominal_base_values(base))
    return np.where(np.isfinite(relative), relative, np.inf)


def magnitudes(base: BaseParameters, robot: Robot | None = None) -> Array:
    """Return the prior magnitude of every base parameter (base,): its nominal value, and at least a tenth of the RMS of
    nominal values of the same unit. If no nominal value of a unit is known, friction is a twentieth of the joint's
    torque limit at its top speed, and other parameters are 1."""
    beta = nominal_base_values(base)
    units = np.array(base.units)
    scale = np.empty(len(beta))
    for unit in set(base.units):
        rows = units == unit
        known = beta[rows][np.isfinite(beta[rows])]
        typical = float(np.sqrt(np.mean(known ** 2))) if len(known) and np.any(known) else np.nan
        guess = np.full(rows.sum(), typical) if np.isfinite(typical) else _friction(base, robot)[rows]
        scale[rows] = np.where(np.isfinite(beta[rows]), np.maximum(np.abs(beta[rows]), 0.1 * guess), guess)
    return scale


def _friction(base: BaseParameters, robot: Robot | None) -> Array:
    """Return assumed friction (base,) from the limits of the joints; 1 for parameters that are not friction."""
    guess = np.ones(len(base))
    if robot is None:
        return guess
    effort, speed = robot.limit("effort"), robot.limit("velocity")
    for k, column in enumerate(base.independent):
        parameter = base.parameters.items[column]
        if parameter.unit not in SPEED_POWER:
            continue
        share = 0.05 * effort[parameter.owner] / speed[parameter.owner] ** SPEED_POWER[parameter.unit]
        guess[k] = share if 0 < share < np.inf else 1.0
    return guess


NOISE_SHARE = 0.02  # standard deviation of the torque noise relative to a joint's typical torque
_SHARE_OF_LIMIT = 0.3  # typical torque relative to its limit, if inertias are not known
_DRAWN_STATES = 256  # random states over which the typical torque is the RMS
_TOP_SPEED_RATE = 3.0  # 1/s: a joint without a limit of acceleration reaches its top speed in a third of a second


def assumed_noise(model: LinearModel, limits: Limits, theta: Array | None) -> Array:
    """Return assumed standard deviations of the torque noise (dof,), N m or N: a fiftieth of each joint's typical
    torque. The typical torque is the RMS over random states within the limits for nominal parameters theta
    (parameters,), a share of the torque limit if theta is None, or 1 without any limit."""
    dof = limits.dof
    limited = np.where(np.isfinite(limits.torque), _SHARE_OF_LIMIT * limits.torque, np.nan)
    found = np.full(dof, np.nan)
    if theta is not None:
        rng = np.random.default_rng(0)
        turn = np.isfinite(limits.upper - limits.lower)
        low, high = np.where(turn, limits.lower, -np.pi), np.where(turn, limits.upper, np.pi)
        speed = np.where(np.isfinite(limits.velocity), limits.velocity, 1.0)
        hard = np.where(np.isfinite(limits.acceleration), limits.acceleration, _TOP_SPEED_RATE * speed)
        q = rng.uniform(low, high, (_DRAWN_STATES, dof))
        dq, ddq = (top * rng.uniform(-1.0, 1.0, (_DRAWN_STATES, dof)) for top in (speed, hard))
        tau = complete(model).inverse_dynamics(theta, q, dq, ddq)
        found = np.sqrt(np.mean(np.minimum(np.abs(tau), limits.torque) ** 2, axis=0))
    known = np.where(np.isfinite(found) & (found > 0), found, limited)
    largest = float(np.nanmax(known)) if np.isfinite(known).any() else 1.0
    # The torque of a joint without load has noise, too.
    typical = np.maximum(np.where(np.isfinite(known), known, largest), 1e-3 * largest)
    return np.asarray(NOISE_SHARE * typical, dtype=float)
