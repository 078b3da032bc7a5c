"""Kalman filters on state and parameters together: ekf and ukf, both in square-root form.

The state is (q, dq, beta): positions and velocities driven by the measured torques, base parameters that stand still.
Positions are measured. Both filters carry a triangular factor S of the covariance P = S S' and never P itself, so that
it stays positive however many steps are made.

A filter takes its innovations for white and of the power it expects; with a model that is not quite true they are
neither, and P comes out far too small. So the covariance stated is P times the power of the innovations at the lowest
frequencies, where parameters live, in units of the power expected.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from scipy.linalg import solve_triangular

from dynid.arrays import Array
from dynid.errors import ModelError, NotPossibleError
from dynid.estimate.estimate import Estimate
from dynid.estimate.least_squares import weighted_least_squares
from dynid.estimate.problem import Problem, method
from dynid.model import split_regressor
from dynid.recording import Samples
from dynid.regression.fold import triangular
from dynid.regression.residuals import autocovariance

Start = Literal["wls", "nominal"]
_MOVE = 1e-6  # by which a position or velocity is moved for a derivative
_SPREAD = 1.0  # distance of the sigma points in deviations, times the root of the number of states
_LOST = 3.0  # times the relative error of least squares, plus one percent, above which the filter went astray
_BLUNT = 1e-2  # share of the top speed over which the sign of dry friction is blunted


@dataclass(frozen=True, eq=False)
class Noise:
    """One-sigma: position (dof,), rad or m, of a measurement; torque (dof,), N m or N, of an input row."""

    position: Array
    torque: Array


@method("ekf", "extended Kalman filter on state and parameters")
def extended_kalman(problem: Problem, *, start: Start = "wls", doubt: float = 0.1, passes: int = 2,
                    position_noise: float | None = None, torque_noise: float | None = None) -> Estimate:
    """Derivatives in the parameters are exact: M dddq = -Y dbeta, as the model is linear in them.

    start: parameters to begin with; doubt: their deviation, a share of what each could explain alone. passes: how often
    the log is gone through. Noise: one-sigma, default from how rough the positions and the residuals of the start are.
    """
    return _filter(problem, "ekf", _extended_step, start, doubt, passes, position_noise, torque_noise)


@method("ukf", "unscented Kalman filter on state and parameters")
def unscented_kalman(problem: Problem, *, start: Start = "wls", doubt: float = 0.1, passes: int = 1,
                     position_noise: float | None = None, torque_noise: float | None = None) -> Estimate:
    """Sigma points through the model itself, no derivatives; for robots of few parameters, as each step moves two
    points for every state and parameter. Options as those of `ekf`."""
    return _filter(problem, "ukf", _unscented_step, start, doubt, passes, position_noise, torque_noise)


class Machine:
    """Accelerations of many states with parameters of their own, from the regressor."""

    def __init__(self, problem: Problem, speed: Array) -> None:
        self.model, self.columns, self.dof = problem.model, problem.base.independent, problem.model.dof
        self.blunt = _BLUNT * np.maximum(speed, 1e-6)

    def regressors(self, q: Array, dq: Array) -> tuple[Array, Array]:
        """Of many states: regressors without acceleration (points, n, base), and what a unit
        acceleration of joint k adds to them (points, k, n, base).

        The first are the mean of those at velocities a little lower and higher: a filter needs friction without jumps.
        """
        points = len(q)
        every = self.model.regressor(np.vstack([q, q]), np.vstack([dq - self.blunt, dq + self.blunt]),
                                     np.zeros((2 * points, self.dof)))[:, :, self.columns]
        _, units = split_regressor(self.model, q, np.zeros_like(q))
        return 0.5 * (every[:points] + every[points:]), units[..., self.columns]

    def parts(self, q: Array, dq: Array, beta: Array) -> tuple[Array, Array]:
        """Inertia matrices (points, n, n) and bias torques (points, n); beta (points, base)."""
        without, units = self.regressors(q, dq)
        return np.einsum("pkjb,pb->pjk", units, beta), np.einsum("pjb,pb->pj", without, beta)


Step = Callable[[Machine, Array, Array, Array, Array, Noise, float], tuple[Array, Array, Array]]


def _extended_step(machine: Machine, x: Array, s: Array, tau: Array, seen: Array, noise: Noise,
                   h: float) -> tuple[Array, Array, Array]:
    n, m = machine.dof, len(x)
    dq, beta = x[n:2 * n], x[2 * n:]
    moved = np.tile(x[:2 * n], (2 * n + 1, 1))
    moved[1:] += _MOVE * np.eye(2 * n)
    without, units = machine.regressors(moved[:, :n], moved[:, n:])
    matrix = np.swapaxes(units @ beta, 1, 2)
    ddq = np.linalg.solve(matrix, (tau - without @ beta)[:, :, None])[:, :, 0]
    inverse = np.linalg.inv(matrix[0])
    slope = np.zeros((n, m))
    slope[:, :2 * n] = ((ddq[1:] - ddq[0]) / _MOVE).T
    slope[:, 2 * n:] = -inverse @ (without[0] + np.tensordot(ddq[0], units[0], axes=1))
    jacobian = np.eye(m)
    jacobian[n:2 * n] += h * slope
    jacobian[:n, n:2 * n] += h * np.eye(n)
    jacobian[:n] += 0.5 * h * h * slope
    ahead = x.copy()
    ahead[:n] += h * dq + 0.5 * h * h * ddq[0]
    ahead[n:2 * n] += h * ddq[0]
    driven = np.zeros((m, n))
    driven[n:2 * n] = h * inverse * noise.torque
    driven[:n] = 0.5 * h * driven[n:2 * n]
    root = triangular(np.hstack([jacobian @ s, driven]).T).T
    return _update(ahead, root, np.eye(n, m), seen - ahead[:n], noise)


def _update(x: Array, s: Array, h: Array, innovation: Array, noise: Noise) -> tuple[Array, Array, Array]:
    """Measurement by one triangular factor of [[R 0], [H S S]] (Potter's idea for many measurements); also the
    innovation in units of what was expected (n,)."""
    n, m = h.shape
    array = np.zeros((n + m, n + m))
    array[:n, :n] = np.diag(noise.position)
    array[:n, n:] = h @ s
    array[n:, n:] = s
    lower = triangular(array.T).T
    news = solve_triangular(lower[:n, :n], innovation, lower=True)
    return x + lower[n:, :n] @ news, lower[n:, n:], news


def _unscented_step(machine: Machine, x: Array, s: Array, tau: Array, seen: Array, noise: Noise,
                    h: float) -> tuple[Array, Array, Array]:
    n, m = machine.dof, len(x)
    reach = _SPREAD * np.sqrt(m)
    points = np.vstack([x + reach * s.T, x - reach * s.T])
    q, dq, beta = points[:, :n], points[:, n:2 * n], points[:, 2 * n:]
    matrix, bias = machine.parts(q, dq, beta)
    ddq = np.linalg.solve(matrix, (tau - bias)[:, :, None])[:, :, 0]
    ahead = points.copy()
    ahead[:, :n] += h * dq + 0.5 * h * h * ddq
    ahead[:, n:2 * n] += h * ddq
    mean = ahead.mean(axis=0)
    driven = np.zeros((m, n))
    driven[n:2 * n] = h * np.linalg.inv(matrix.mean(axis=0)) * noise.torque
    driven[:n] = 0.5 * h * driven[n:2 * n]
    root = triangular(np.vstack([(ahead - mean) / np.sqrt(2.0 * m) / _SPREAD, driven.T])).T
    return _update(mean, root, np.eye(n, m), seen - mean[:n], noise)


def _filter(problem: Problem, name: str, step: Step, start: Start, doubt: float, passes: int,
            position_noise: float | None, torque_noise: float | None) -> Estimate:
    parts = problem.as_logged(name)
    if passes < 1 or not doubt > 0:
        raise ModelError(f"method '{name}' needs at least one pass and a doubt above zero")
    least = weighted_least_squares(problem).values
    if start == "nominal":
        first = problem.base.reduce(problem.need_nominal(name))
    elif start == "wls":
        first = least
    else:
        raise ModelError(f"method '{name}' starts from 'wls' or 'nominal', not '{start}'")
    machine = Machine(problem, np.max([np.abs(part.dq).max(axis=0) for part in parts], axis=0))
    # What a doubt stands for may be too far for the slopes of a light arm: then a filter that doubts less goes on.
    go = partial(_passes, problem, name, step, machine, parts, first, least, passes,
                 lambda part, beta: _noise(problem, part, beta, position_noise, torque_noise))
    for less in (1.0, 0.3):
        try:
            return go(less * doubt)
        except NotPossibleError:
            continue
    return go(0.1 * doubt)


def _passes(problem: Problem, name: str, step: Step, machine: Machine, parts: Sequence[Samples], beta: Array,
            least: Array, passes: int, noise_of: Callable[[Samples, Array], Noise], doubt: float) -> Estimate:
    """The filter through all logs, again and again; refused where it ends far from what least squares explain."""
    regression, alone = problem.regression, problem.alone()
    scale = doubt * np.maximum(np.abs(beta), 0.1 * alone)
    history: list[dict[str, Any]] = []
    root, power = np.diag(scale), 0.0
    for _ in range(passes):
        root, power = np.diag(scale), 0.0
        for part in parts:
            noise = noise_of(part, beta)
            for first, last in part.segments:
                beta, root, news = _segment(machine, name, step, part, int(first), int(last), beta, root, noise)
                power = max(power, *(_slow_power(column) for column in news.T))
        history.append({"values": beta.tolist(), "relative_error": regression.relative_error(beta)})
        reached = regression.relative_error(least)
        if not history[-1]["relative_error"] < _LOST * reached + 1.0:
            raise NotPossibleError(f"method '{name}' lost the parameters: they explain the torques to "
                                   f"{history[-1]['relative_error']:.3g} %, least squares to {reached:.3g} %; start "
                                   "from better parameters or give less doubt")
    facts = {"relative_error": regression.relative_error(beta), "iterations": passes, "converged": True,
             "relative_error_per_joint": regression.relative_errors(beta).tolist(), "history": history,
             "rank": len(beta), "rows_per_joint": list(regression.rows), "joints": list(regression.joints),
             "doubt": doubt, "innovation_power": power,
             "deviation": f"of the filter, times {np.sqrt(power):.3g} for innovations that are not the white noise it "
                          "expects"}
    return Estimate(name, problem.model, problem.base, beta, power * root @ root.T, alone > 0, diagnostics=facts)


def _segment(machine: Machine, name: str, step: Step, part: Samples, first: int, last: int, beta: Array, root: Array,
             noise: Noise) -> tuple[Array, Array, Array]:
    """Through one run of rows: the parameters and the factor of their covariance come out again, and the innovations
    (rows, n)."""
    n, h = machine.dof, 1.0 / part.rate
    x = np.concatenate([part.q[first], part.dq[first], beta])
    s = np.zeros((len(x), len(x)))
    s[:n, :n], s[n:2 * n, n:2 * n] = np.diag(10.0 * noise.position), np.diag(0.01 + 0.1 * np.abs(part.dq).max(axis=0))
    s[2 * n:, 2 * n:] = root
    torque = 0.5 * (part.tau[first:last - 1] + part.tau[first + 1:last])  # what acted between two rows
    news = np.zeros((last - first - 1, n))
    for k in range(len(news)):
        try:
            x, s, news[k] = step(machine, x, s, torque[k], part.q[first + k + 1], noise, h)
        except np.linalg.LinAlgError:
            x = np.full(len(x), np.nan)
        if not np.isfinite(x).all():
            raise NotPossibleError(f"method '{name}' lost the motion of {part.source} at {part.t[first + k]:.4g} s; "
                                   "start from better parameters, give less doubt, or more noise")
    cut = triangular(s[2 * n:].T).T
    return x[2 * n:], cut, news


def _slow_power(innovation: Array) -> float:
    """Power of one joint's innovations (rows,) at the lowest frequencies, or over all if that is more."""
    c = autocovariance(innovation, np.ones(len(innovation), dtype=bool))
    return float(max(c[0], c[0] + 2.0 * c[1:].sum()))


def _noise(problem: Problem, part: Samples, beta: Array, position: float | None, torque: float | None) -> Noise:
    """Given, or from the log: third differences of the positions and the residuals of the first parameters."""
    third = np.diff(part.q, n=3, axis=0)
    rough = np.sqrt(np.mean(third ** 2, axis=0) / 20.0)  # white noise has twenty times its power in third differences
    rows = np.maximum(np.array(problem.regression.rows, dtype=float), 1.0)
    miss = np.sqrt(problem.regression.misfits(beta) / rows)
    n = part.dof
    return Noise(np.full(n, position) if position is not None else np.maximum(rough, 1e-9),
                 np.full(n, torque) if torque is not None else np.maximum(miss, 1e-9))
