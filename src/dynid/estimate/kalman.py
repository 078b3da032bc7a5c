"""Kalman filters on state and parameters together: ekf and ukf, both in square-root form.

The state is (q, dq, beta): positions and velocities driven by the measured torques, base parameters that stand still.
Positions are measured. Both filters carry a triangular factor S of the covariance P = S S' and never P itself, so that
it stays positive however many steps are made.

A filter takes its innovations for white and of the power it expects; with a model that is not quite true they are
neither, and P comes out far too small. So the covariance stated is P times the power of the innovations at the lowest
frequencies, where parameters live, in units of the power expected.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.linalg import solve_triangular

from dynid.arrays import Array
from dynid.errors import ModelError, NotPossibleError
from dynid.estimate.diagnostics import Diagnostics
from dynid.estimate.estimate import Estimate
from dynid.estimate.least_squares import weighted_least_squares
from dynid.estimate.problem import Problem, method
from dynid.model import split_regressor
from dynid.recording import Samples
from dynid.regression.correlation import autocovariance
from dynid.regression.factor import triangular

Start = Literal["wls", "nominal"]
_MOVE = 1e-6  # by which a position or velocity is moved for a derivative
_SPREAD = 1.0  # distance of the sigma points in deviations, times the root of the number of states
_LOST = 3.0  # times the relative error of least squares, plus one percent, above which the filter went astray
_BLUNT = 1e-2  # share of the top speed over which the sign of dry friction is blunted
_CAUTION = (1.0, 0.3, 0.1)  # of the start's deviation, tried in turn: it may be too far for the slopes of a light arm


@method("ekf", "extended Kalman filter on state and parameters", needs={"data", "exact"})
def extended_kalman(problem: Problem, *, start: Start = "wls", start_deviation: float = 0.1, passes: int = 2,
                    position_noise: float | None = None, torque_noise: float | None = None) -> Estimate:
    """Derivatives in the parameters are exact: M dddq = -Y dbeta, as the model is linear in them.

    start: parameters to begin with; start_deviation: theirs, a share of what each could explain alone. passes: how
    often the log is gone through. Noise: one-sigma, default from how rough the positions and the residuals of the start
    are.
    """
    options = Options(start, start_deviation, passes, position_noise, torque_noise)
    return _estimate(problem, "ekf", _extended_step, options)


@method("ukf", "unscented Kalman filter on state and parameters", needs={"data", "exact"})
def unscented_kalman(problem: Problem, *, start: Start = "wls", start_deviation: float = 0.1, passes: int = 1,
                     position_noise: float | None = None, torque_noise: float | None = None) -> Estimate:
    """Sigma points through the model itself, no derivatives; for robots of few parameters, as each step moves two
    points for every state and parameter. Options as those of `ekf`."""
    options = Options(start, start_deviation, passes, position_noise, torque_noise)
    return _estimate(problem, "ukf", _unscented_step, options)


@dataclass(frozen=True)
class Options:
    """Options of both filters, as the methods describe them."""

    start: Start
    start_deviation: float
    passes: int
    position_noise: float | None
    torque_noise: float | None


@dataclass(frozen=True, eq=False)
class Noise:
    """One-sigma: position (dof,), rad or m, of a measurement; torque (dof,), N m or N, of an input row."""

    position: Array
    torque: Array


@dataclass(frozen=True, eq=False)
class Belief:
    """A mean (states,) and the triangular factor S (states, states) of its covariance S S'."""

    mean: Array
    factor: Array


@dataclass(frozen=True, eq=False)
class Tick:
    """What happens from one row to the next: the torque (dof,) that acts for `period` seconds, and the position (dof,)
    measured at its end."""

    torque: Array
    position: Array
    period: float


class Dynamics:
    """Inertia matrices and bias torques of many states with base parameters of their own, from one call of the
    regressor; the signs of dry friction are blunted over a small share of the top speed (dof,)."""

    def __init__(self, problem: Problem, top_speed: Array) -> None:
        self.model, self.columns, self.dof = problem.model, problem.base.independent, problem.model.dof
        self.known = problem.base.known_vector
        self.blunt = _BLUNT * np.maximum(top_speed, 1e-6)

    def regressors(self, q: Array, dq: Array) -> tuple[Array, Array]:
        """Of many states: regressors without acceleration (points, n, columns), and what a unit acceleration of joint k
        adds to them (points, k, n, columns); columns: those of the base parameters and, where parameters are known, one
        with their torque (`with_known`).

        The first are the mean of those at velocities a little lower and higher: a filter needs friction without jumps.
        """
        points = len(q)
        moving = self.model.regressor(np.vstack([q, q]), np.vstack([dq - self.blunt, dq + self.blunt]),
                                      np.zeros((2 * points, self.dof)))
        _, units = split_regressor(self.model, q, np.zeros_like(q))
        return self._columns(0.5 * (moving[:points] + moving[points:])), self._columns(units)

    def _columns(self, regressor: Array) -> Array:
        """Of regressors (..., n, parameters) the base columns, and the torque of known parameters where there are."""
        base = regressor[..., self.columns]
        return np.concatenate([base, (regressor @ self.known)[..., None]], axis=-1) if self.known.any() else base

    def parts(self, q: Array, dq: Array, beta: Array) -> tuple[Array, Array]:
        """Inertia matrices (points, n, n) and bias torques (points, n); beta (points, base)."""
        (without, units), values = self.regressors(q, dq), self.with_known(beta)
        return np.einsum("pkjb,pb->pjk", units, values), np.einsum("pjb,pb->pj", without, values)

    def with_known(self, beta: Array) -> Array:
        """Values of all columns of the regressors (.., columns) from base values (.., base)."""
        return np.append(beta, np.ones((*beta.shape[:-1], 1)), axis=-1) if self.known.any() else beta


Step = Callable[[Dynamics, Belief, Tick, Noise], tuple[Belief, Array]]


def _extended_step(dynamics: Dynamics, belief: Belief, tick: Tick, noise: Noise) -> tuple[Belief, Array]:
    """One tick with the model linearised about the mean; also the whitened innovation (dof,)."""
    x, n, m, h = belief.mean, dynamics.dof, len(belief.mean), tick.period
    dq, beta = x[n:2 * n], x[2 * n:]
    moved = np.tile(x[:2 * n], (2 * n + 1, 1))
    moved[1:] += _MOVE * np.eye(2 * n)
    without, units = dynamics.regressors(moved[:, :n], moved[:, n:])
    values = dynamics.with_known(beta)
    matrix = np.swapaxes(units @ values, 1, 2)
    ddq = np.linalg.solve(matrix, (tick.torque - without @ values)[:, :, None])[:, :, 0]
    inverse = np.linalg.inv(matrix[0])
    slope = np.zeros((n, m))
    slope[:, :2 * n] = ((ddq[1:] - ddq[0]) / _MOVE).T
    slope[:, 2 * n:] = -inverse @ (without[0] + np.tensordot(ddq[0], units[0], axes=1))[:, :len(beta)]
    jacobian = np.eye(m)
    jacobian[n:2 * n] += h * slope
    jacobian[:n, n:2 * n] += h * np.eye(n)
    jacobian[:n] += 0.5 * h * h * slope
    ahead = x.copy()
    ahead[:n] += h * dq + 0.5 * h * h * ddq[0]
    ahead[n:2 * n] += h * ddq[0]
    factor = triangular(np.hstack([jacobian @ belief.factor, _driven(m, h * inverse * noise.torque, h)]).T).T
    return _measure(Belief(ahead, factor), tick.position, noise)


def _unscented_step(dynamics: Dynamics, belief: Belief, tick: Tick, noise: Noise) -> tuple[Belief, Array]:
    """One tick with sigma points through the model; also the whitened innovation (dof,)."""
    n, m, h = dynamics.dof, len(belief.mean), tick.period
    reach = _SPREAD * np.sqrt(m)
    points = np.vstack([belief.mean + reach * belief.factor.T, belief.mean - reach * belief.factor.T])
    q, dq, beta = points[:, :n], points[:, n:2 * n], points[:, 2 * n:]
    matrix, bias = dynamics.parts(q, dq, beta)
    ddq = np.linalg.solve(matrix, (tick.torque - bias)[:, :, None])[:, :, 0]
    ahead = points.copy()
    ahead[:, :n] += h * dq + 0.5 * h * h * ddq
    ahead[:, n:2 * n] += h * ddq
    mean = ahead.mean(axis=0)
    driven = _driven(m, h * np.linalg.inv(matrix.mean(axis=0)) * noise.torque, h)
    factor = triangular(np.vstack([(ahead - mean) / np.sqrt(2.0 * m) / _SPREAD, driven.T])).T
    return _measure(Belief(mean, factor), tick.position, noise)


def _driven(states: int, speed: Array, h: float) -> Array:
    """What noise of the torques moves (states, dof) in h seconds if it moves the velocities by `speed` (dof, dof)."""
    n = len(speed)
    out = np.zeros((states, n))
    out[n:2 * n] = speed
    out[:n] = 0.5 * h * speed
    return out


def _measure(belief: Belief, position: Array, noise: Noise) -> tuple[Belief, Array]:
    """Measured positions (dof,) taken in by one triangular factor of [[R 0], [H S S]] (Potter's idea for many
    measurements); also the innovation in units of what was expected (dof,)."""
    n, m = len(position), len(belief.mean)
    array = np.zeros((n + m, n + m))
    array[:n, :n] = np.diag(noise.position)
    array[:n, n:] = belief.factor[:n]
    array[n:, n:] = belief.factor
    lower = triangular(array.T).T
    whitened = solve_triangular(lower[:n, :n], position - belief.mean[:n], lower=True)
    return Belief(belief.mean + lower[n:, :n] @ whitened, lower[n:, n:]), whitened


@dataclass(frozen=True, eq=False)
class Filter:
    """A filter for a problem: its step, the dynamics, the logs as measured, and the base values of weighted least
    squares (base,), which it must not fall far behind."""

    name: str
    problem: Problem
    step: Step
    options: Options
    dynamics: Dynamics
    parts: tuple[Samples, ...]
    least_squares: Array

    def run(self, first: Array, deviation: float) -> Estimate:
        """Through all logs, again and again, from base values first (base,) and their deviation, a share of what each
        could explain alone; refused where it ends far from what least squares explain."""
        problem, beta = self.problem, first
        regression, alone = problem.regression, problem.lone_values()
        scale = deviation * np.maximum(np.abs(first), 0.1 * alone)
        history: list[dict[str, Any]] = []
        for _ in range(self.options.passes):
            belief, power = self._once(Belief(beta, np.diag(scale)))
            beta = belief.mean
            history.append({"values": beta.tolist(), "relative_error": regression.relative_error(beta)})
            self._refuse_lost(history[-1]["relative_error"])
        facts = Diagnostics.of_fit(
            regression, beta, rank=len(beta), iterations=len(history), converged=True, history=history,
            start_deviation=deviation, innovation_power=power, deviation=f"of the filter, times {np.sqrt(power):.3g} "
            "for innovations that are not the white noise it expects")
        return Estimate(self.name, problem.model, problem.base, beta, power * belief.factor @ belief.factor.T,
                        alone > 0, diagnostics=facts, uncertainty="innovations")

    def _once(self, belief: Belief) -> tuple[Belief, float]:
        """Base parameters after all logs, and the largest slow power of an innovation."""
        power = 0.0
        for part in self.parts:
            noise = _noise(self.problem, part, belief.mean, self.options)
            for first, last in part.segments:
                belief, innovations = self._segment(part, range(int(first), int(last)), belief, noise)
                power = max(power, *(_slow_power(column) for column in innovations.T))
        return belief, power

    def _segment(self, part: Samples, rows: range, parameters: Belief, noise: Noise) -> tuple[Belief, Array]:
        """Base parameters after one run of rows, and the whitened innovations (rows, dof)."""
        n, first, last = self.dynamics.dof, rows.start, rows.stop
        size = 2 * n + len(parameters.mean)
        factor = np.zeros((size, size))
        factor[:n, :n] = np.diag(10.0 * noise.position)
        factor[n:2 * n, n:2 * n] = np.diag(0.01 + 0.1 * np.abs(part.dq).max(axis=0))
        factor[2 * n:, 2 * n:] = parameters.factor
        belief = Belief(np.concatenate([part.q[first], part.dq[first], parameters.mean]), factor)
        torque = 0.5 * (part.tau[first:last - 1] + part.tau[first + 1:last])  # what acted between two rows
        innovations = np.zeros((last - first - 1, n))
        for k in range(len(innovations)):
            tick = Tick(torque[k], part.q[first + k + 1], 1.0 / part.rate)
            try:
                belief, innovations[k] = self.step(self.dynamics, belief, tick, noise)
            except np.linalg.LinAlgError:
                belief = Belief(np.full(size, np.nan), belief.factor)
            if not np.isfinite(belief.mean).all():
                raise NotPossibleError(f"method '{self.name}' lost the motion of {part.source} at "
                                       f"{part.t[first + k]:.4g} s", "start from better parameters, give a smaller "
                                       "start_deviation, or more noise", "filter-astray")
        return Belief(belief.mean[2 * n:], triangular(belief.factor[2 * n:].T).T), innovations

    def _refuse_lost(self, relative_error: float) -> None:
        reached = self.problem.regression.relative_error(self.least_squares)
        if not relative_error < _LOST * reached + 1.0:
            raise NotPossibleError(f"method '{self.name}' lost the parameters: they explain the torques to "
                                   f"{relative_error:.3g} %, least squares to {reached:.3g} %", "start from better "
                                   "parameters or give a smaller start_deviation", "filter-astray")


def _estimate(problem: Problem, name: str, step: Step, options: Options) -> Estimate:
    """The estimate of a filter; one that goes astray is run again with a start that is held to be surer."""
    parts = problem.as_logged()
    if options.passes < 1 or not options.start_deviation > 0:
        raise ModelError(f"method '{name}' needs at least one pass and a start_deviation above zero")
    least = weighted_least_squares(problem).values
    if options.start == "nominal":
        first = problem.base.reduce(problem.need_nominal(name))
    elif options.start == "wls":
        first = least
    else:
        raise ModelError(f"method '{name}' starts from 'wls' or 'nominal', not '{options.start}'")
    dynamics = Dynamics(problem, np.max([np.abs(part.dq).max(axis=0) for part in parts], axis=0))
    runner = Filter(name, problem, step, options, dynamics, parts, least)
    for share in _CAUTION[:-1]:
        try:
            return runner.run(first, share * options.start_deviation)
        except NotPossibleError:
            continue
    return runner.run(first, _CAUTION[-1] * options.start_deviation)


def _slow_power(innovation: Array) -> float:
    """Power of one joint's innovations (rows,) at the lowest frequencies, or over all if that is more."""
    c = autocovariance(innovation, np.ones(len(innovation), dtype=bool))
    return float(max(c[0], c[0] + 2.0 * c[1:].sum()))


def _noise(problem: Problem, part: Samples, beta: Array, options: Options) -> Noise:
    """Given, or from the log: third differences of the positions and the residuals of the first parameters."""
    third = np.diff(part.q, n=3, axis=0)
    rough = np.sqrt(np.mean(third ** 2, axis=0) / 20.0)  # white noise has twenty times its power in third differences
    rows = np.maximum(np.array(problem.regression.rows, dtype=float), 1.0)
    miss = np.sqrt(problem.regression.misfits(beta) / rows)
    n, position, torque = part.dof, options.position_noise, options.torque_noise
    return Noise(np.full(n, position) if position is not None else np.maximum(rough, 1e-9),
                 np.full(n, torque) if torque is not None else np.maximum(miss, 1e-9))
