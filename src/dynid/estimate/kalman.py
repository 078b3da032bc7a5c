"""Methods ekf and ukf: Kalman filters for states and parameters in square-root form.

The state is (q, dq, beta): positions and velocities driven by the measured torques, and constant base parameters.
Positions are measured. Both filters propagate a triangular factor S of the covariance P = S S', which keeps P positive.

A filter assumes white innovations of known power. With an inexact model they are neither, and P is far too small. The
reported covariance is P times the power of the innovations at the lowest frequencies relative to the expected power.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError, NotPossibleError
from dynid.estimate.estimate import Diagnostics, Estimate
from dynid.estimate.iteration import motion_under_torques
from dynid.estimate.iterations import Iteration
from dynid.estimate.least_squares import weighted_least_squares
from dynid.estimate.problem import Problem, method
from dynid.estimate.uncertainty import OnDemand, Uncertainty
from dynid.lapack import solve_triangular
from dynid.model import split_regressor
from dynid.recording import Samples
from dynid.regression.autocorrelation import autocovariance
from dynid.regression.factor import triangular

Start = Literal["wls", "nominal"]
_DIFFERENCE_STEP = 1e-6  # finite-difference step of positions and velocities
_SIGMA_DISTANCE = 1.0  # distance of the sigma points in standard deviations, times the root of the number of states
# relative to the error of least squares plus one percent: with a larger error the filter has diverged
_DIVERGED_ERROR_RATIO = 3.0
_SMOOTH_SIGN = 1e-2  # share of the top speed over which the sign of dry friction is smoothed
_STORED_MOMENTS = 20  # times of a pass at which values and standard errors are recorded
_START_SHARES = (1.0, 0.3, 0.1)  # of the initial standard deviation, which may be too large for a light arm


@method("ekf", "extended Kalman filter on state and parameters", needs={"data", "exact", "torques"},
        depends_on={"order"})
def extended_kalman(problem: Problem, *, start: Start = "wls", start_std: float = 0.1, passes: int = 2,
                    position_noise: float | None = None, torque_noise: float | None = None) -> Estimate:
    """Return the estimate of an extended Kalman filter with exact derivatives by the parameters.

    Args:
        problem: the identification problem.
        start: initial parameters.
        start_std: standard deviation of initial parameters, relative to the value that alone explains the torques.
        passes: number of passes through the log.
        position_noise, torque_noise: standard deviations; by default from the third differences of the positions and
            from the residuals of the start.
    """
    options = FilterOptions(start, start_std, passes, position_noise, torque_noise)
    return _estimate(problem, "ekf", _extended_step, options)


@method("ukf", "unscented Kalman filter on state and parameters", needs={"data", "exact", "torques"},
        depends_on={"order"})
def unscented_kalman(problem: Problem, *, start: Start = "wls", start_std: float = 0.1, passes: int = 1,
                     position_noise: float | None = None, torque_noise: float | None = None) -> Estimate:
    """Return the estimate of an unscented Kalman filter, which propagates sigma points without derivatives.

    The method suits robots with few parameters: each step needs two points per state and parameter. Options: see `ekf`.
    """
    options = FilterOptions(start, start_std, passes, position_noise, torque_noise)
    return _estimate(problem, "ukf", _unscented_step, options)


@dataclass(frozen=True)
class FilterOptions:
    """Options of both Kalman filters, documented at `extended_kalman`."""

    start: Start
    start_std: float
    passes: int
    position_noise: float | None
    torque_noise: float | None


@dataclass(frozen=True, eq=False)
class FilterNoise:
    """Standard deviations (dof,) of the noise of measured positions, rad or m, and of input torques, N m or N."""

    position: Array
    torque: Array


@dataclass(frozen=True, eq=False)
class Gaussian:
    """Normal distribution with a mean (states,) and the triangular factor S (states, states) of its covariance S S'."""

    mean: Array
    factor: Array


@dataclass(frozen=True, eq=False)
class Interval:
    """One sampling interval: torque (dof,) during `period` seconds, and measured position (dof,) at its end."""

    torque: Array
    position: Array
    period: float


class Dynamics:
    """Inertia matrices and bias torques for many states, each with its own base parameters, from one regressor call.

    Signs of dry friction are smoothed over a small fraction of the top speed (dof,).
    """

    def __init__(self, problem: Problem, top_speed: Array) -> None:
        self.model, self.columns, self.dof = problem.model, problem.base.independent, problem.model.dof
        self.known = problem.base.known_vector
        self.sign_width = _SMOOTH_SIGN * np.maximum(top_speed, 1e-6)

    def regressors(self, q: Array, dq: Array) -> tuple[Array, Array]:
        """Return regressors (points, n, columns) without acceleration, and those of unit accelerations of each joint k
        (points, k, n, columns). Columns are base parameters and, if parameters are known, their torque (`with_known`).

        The regressors without acceleration are averaged over two nearby velocities: a filter needs continuous friction.
        """
        points = len(q)
        moving = self.model.regressor(np.vstack([q, q]), np.vstack([dq - self.sign_width, dq + self.sign_width]),
                                      np.zeros((2 * points, self.dof)))
        _, units = split_regressor(self.model, q, np.zeros_like(q))
        return self._columns(0.5 * (moving[:points] + moving[points:])), self._columns(units)

    def _columns(self, regressor: Array) -> Array:
        """Return the base columns of regressors (..., n, parameters), and the torque of known parameters."""
        base = regressor[..., self.columns]
        return np.concatenate([base, (regressor @ self.known)[..., None]], axis=-1) if self.known.any() else base

    def parts(self, q: Array, dq: Array, beta: Array) -> tuple[Array, Array]:
        """Return inertia matrices (points, n, n) and bias torques (points, n) for base values beta (points, base)."""
        (without, units), values = self.regressors(q, dq), self.with_known(beta)
        return np.einsum("pkjb,pb->pjk", units, values), np.einsum("pjb,pb->pj", without, values)

    def with_known(self, beta: Array) -> Array:
        """Return the values of all columns of the regressors (..., columns) from base values (..., base)."""
        return np.append(beta, np.ones((*beta.shape[:-1], 1)), axis=-1) if self.known.any() else beta


Step = Callable[[Dynamics, Gaussian, Interval, FilterNoise], tuple[Gaussian, Array]]


def _extended_step(dynamics: Dynamics, state: Gaussian, interval: Interval, noise: FilterNoise
                   ) -> tuple[Gaussian, Array]:
    """Return the state after one interval, with the model linearised about the mean, and the whitened innovation."""
    x, n, m, h = state.mean, dynamics.dof, len(state.mean), interval.period
    dq, beta = x[n:2 * n], x[2 * n:]
    moved = np.tile(x[:2 * n], (2 * n + 1, 1))
    moved[1:] += _DIFFERENCE_STEP * np.eye(2 * n)
    without, units = dynamics.regressors(moved[:, :n], moved[:, n:])
    values = dynamics.with_known(beta)
    matrix = np.swapaxes(units @ values, 1, 2)
    ddq = np.linalg.solve(matrix, (interval.torque - without @ values)[:, :, None])[:, :, 0]
    inverse = np.linalg.inv(matrix[0])
    slope = np.zeros((n, m))
    slope[:, :2 * n] = ((ddq[1:] - ddq[0]) / _DIFFERENCE_STEP).T
    slope[:, 2 * n:] = -inverse @ (without[0] + np.tensordot(ddq[0], units[0], axes=1))[:, :len(beta)]
    jacobian = np.eye(m)
    jacobian[n:2 * n] += h * slope
    jacobian[:n, n:2 * n] += h * np.eye(n)
    jacobian[:n] += 0.5 * h * h * slope
    ahead = x.copy()
    ahead[:n] += h * dq + 0.5 * h * h * ddq[0]
    ahead[n:2 * n] += h * ddq[0]
    factor = triangular(np.hstack([jacobian @ state.factor, _process_noise(m, h * inverse * noise.torque, h)]).T).T
    return _measure(Gaussian(ahead, factor), interval.position, noise)


def _unscented_step(dynamics: Dynamics, state: Gaussian, interval: Interval, noise: FilterNoise
                    ) -> tuple[Gaussian, Array]:
    """Return the state after one interval, propagated with sigma points, and the whitened innovation (dof,)."""
    n, m, h = dynamics.dof, len(state.mean), interval.period
    reach = _SIGMA_DISTANCE * np.sqrt(m)
    points = np.vstack([state.mean + reach * state.factor.T, state.mean - reach * state.factor.T])
    q, dq, beta = points[:, :n], points[:, n:2 * n], points[:, 2 * n:]
    matrix, bias = dynamics.parts(q, dq, beta)
    ddq = np.linalg.solve(matrix, (interval.torque - bias)[:, :, None])[:, :, 0]
    ahead = points.copy()
    ahead[:, :n] += h * dq + 0.5 * h * h * ddq
    ahead[:, n:2 * n] += h * ddq
    mean = ahead.mean(axis=0)
    process = _process_noise(m, h * np.linalg.inv(matrix.mean(axis=0)) * noise.torque, h)
    factor = triangular(np.vstack([(ahead - mean) / np.sqrt(2.0 * m) / _SIGMA_DISTANCE, process.T])).T
    return _measure(Gaussian(mean, factor), interval.position, noise)


def _process_noise(states: int, speed: Array, h: float) -> Array:
    """Return the effect (states, dof) of torque noise on the state in h s. speed (dof, dof): that on velocities."""
    n = len(speed)
    out = np.zeros((states, n))
    out[n:2 * n] = speed
    out[:n] = 0.5 * h * speed
    return out


def _measure(state: Gaussian, position: Array, noise: FilterNoise) -> tuple[Gaussian, Array]:
    """Return the state after an update with positions (dof,) by a triangular factor, and the whitened innovation."""
    n, m = len(position), len(state.mean)
    array = np.zeros((n + m, n + m))
    array[:n, :n] = np.diag(noise.position)
    array[:n, n:] = state.factor[:n]
    array[n:, n:] = state.factor
    lower = triangular(array.T).T
    whitened = solve_triangular(lower[:n, :n], position - state.mean[:n], lower=True)
    return Gaussian(state.mean + lower[n:, :n] @ whitened, lower[n:, n:]), whitened


@dataclass(frozen=True, eq=False)
class Filter:
    """A Kalman filter for an identification problem: its step function, the dynamics, the unfiltered logs, and the base
    values of weighted least squares (base,) for comparison."""

    name: str
    problem: Problem
    step: Step
    options: FilterOptions
    dynamics: Dynamics
    parts: tuple[Samples, ...]
    least_squares: Array

    def run(self, first: Array, start_std: float) -> Estimate:
        """Return the estimate after all passes, from base values first (base,) and their relative standard deviation.
        An error is raised if the torque error is much larger than that of least squares."""
        problem, beta = self.problem, first
        regression, alone = problem.regression, problem.lone_values()
        scale = start_std * np.maximum(np.abs(first), 0.1 * alone)
        steps: list[Iteration] = []
        for number in range(self.options.passes):
            state, power, trail = self._once(Gaussian(beta, np.diag(scale)))
            beta = state.mean
            self._refuse_astray(regression.relative_error(beta))
            steps += self._kept(trail, state, power, number)
        facts = Diagnostics.from_fit(
            regression, beta, rank=len(beta), iterations=self.options.passes, converged=True,
            start_std=start_std, innovation_power=power, standard_errors=f"of the filter, times {np.sqrt(power):.3g} "
            "for innovations that are not the white noise it expects")
        known = OnDemand.known(Uncertainty(power * state.factor @ state.factor.T, "innovations"))
        return Estimate(self.name, problem.model, problem.base, beta, alone > 0, known, diagnostics=facts,
                        iterations=tuple(steps))

    def _kept(self, trail: Sequence[Gaussian], end: Gaussian, power: float, before: int) -> list[Iteration]:
        """Return the record of one pass through the logs: parameters at some times, and the final simulated motion
        under the measured torques. power: innovation power, which scales standard errors. before: earlier passes."""
        found = [Iteration(state.mean, self.problem.regression.relative_errors(state.mean),
                           before + k / (len(trail) + 1), np.sqrt(power * np.sum(state.factor ** 2, axis=1)))
                 for k, state in enumerate([*trail, end], start=1)]
        return [*found[:-1], replace(found[-1], motion=motion_under_torques(self.problem, self.parts, end.mean))]

    def _once(self, state: Gaussian) -> tuple[Gaussian, float, list[Gaussian]]:
        """Return parameters after all logs, the largest low-frequency innovation power, and intermediate parameters."""
        power, trail, every = 0.0, list[Gaussian](), max(sum(map(len, self.parts)) // _STORED_MOMENTS, 1)
        for part in self.parts:
            noise = _noise(self.problem, part, state.mean, self.options)
            for first, last in part.segments:
                state, innovations, on_the_way = self._segment(part, range(int(first), int(last)), state, noise, every)
                trail += on_the_way
                power = max(power, *(_slow_power(column) for column in innovations.T))
        return state, power, trail

    def _segment(self, part: Samples, rows: range, parameters: Gaussian, noise: FilterNoise, every: int
                 ) -> tuple[Gaussian, Array, list[Gaussian]]:
        """Return parameters after one segment, whitened innovations (rows, dof), and intermediate parameters."""
        n, first, last = self.dynamics.dof, rows.start, rows.stop
        size = 2 * n + len(parameters.mean)
        factor = np.zeros((size, size))
        factor[:n, :n] = np.diag(10.0 * noise.position)
        factor[n:2 * n, n:2 * n] = np.diag(0.01 + 0.1 * np.abs(part.dq).max(axis=0))
        factor[2 * n:, 2 * n:] = parameters.factor
        state = Gaussian(np.concatenate([part.q[first], part.dq[first], parameters.mean]), factor)
        torque = 0.5 * (part.tau[first:last - 1] + part.tau[first + 1:last])  # mean torque between two rows
        innovations, trail = np.zeros((last - first - 1, n)), list[Gaussian]()
        for k in range(len(innovations)):
            interval = Interval(torque[k], part.q[first + k + 1], 1.0 / part.rate)
            try:
                state, innovations[k] = self.step(self.dynamics, state, interval, noise)
            except np.linalg.LinAlgError:
                state = Gaussian(np.full(size, np.nan), state.factor)
            if not np.isfinite(state.mean).all():
                raise NotPossibleError(f"method '{self.name}' diverged from the motion of {part.source} at "
                                       f"{part.t[first + k]:.4g} s", "start from better parameters, or give a smaller "
                                       "start_std or larger noise", "filter-astray")
            if (k + 1) % every == 0 and k + 1 < len(innovations):
                trail.append(Gaussian(state.mean[2 * n:], state.factor[2 * n:]))
        return Gaussian(state.mean[2 * n:], triangular(state.factor[2 * n:].T).T), innovations, trail

    def _refuse_astray(self, relative_error: float) -> None:
        reached = self.problem.regression.relative_error(self.least_squares)
        if not relative_error < _DIVERGED_ERROR_RATIO * reached + 1.0:
            raise NotPossibleError(f"method '{self.name}' diverged: its torque error of {relative_error:.3g} % is far "
                                   f"above that of least squares, {reached:.3g} %",
                                   "start from better parameters, or give a smaller start_std", code="filter-astray")


def _estimate(problem: Problem, name: str, step: Step, options: FilterOptions) -> Estimate:
    """Return the estimate of a Kalman filter; if it diverges, with a smaller initial standard deviation."""
    parts = problem.as_logged()
    if options.passes < 1 or not options.start_std > 0:
        raise ModelError(f"method '{name}' needs at least one pass and a start_std above zero",
                         code="bad-filter-options")
    least = weighted_least_squares(problem).values
    if options.start == "nominal":
        first = problem.base.reduce(problem.need_nominal(name))
    elif options.start == "wls":
        first = least
    else:
        raise ModelError(f"method '{name}' starts from 'wls' or 'nominal', not '{options.start}'", code="unknown-start")
    dynamics = Dynamics(problem, np.max([np.abs(part.dq).max(axis=0) for part in parts], axis=0))
    runner = Filter(name, problem, step, options, dynamics, parts, least)
    for share in _START_SHARES[:-1]:
        try:
            return runner.run(first, share * options.start_std)
        except NotPossibleError:
            continue
    return runner.run(first, _START_SHARES[-1] * options.start_std)


def _slow_power(innovation: Array) -> float:
    """Return the power of one joint's innovations (rows,) at the lowest frequencies, or overall if that is larger."""
    c = autocovariance(innovation, np.ones(len(innovation), dtype=bool))
    return float(max(c[0], c[0] + 2.0 * c[1:].sum()))


def _noise(problem: Problem, part: Samples, beta: Array, options: FilterOptions) -> FilterNoise:
    """Return the noise of the filter: given values, or, for positions, from their third differences, and, for torques,
    from the residuals of the initial parameters beta (base,)."""
    third = np.diff(part.q, n=3, axis=0)
    rough = np.sqrt(np.mean(third ** 2, axis=0) / 20.0)  # white noise has twenty times its power in third differences
    miss = problem.regression.residual_std(beta)
    n, position, torque = part.dof, options.position_noise, options.torque_noise
    return FilterNoise(np.full(n, position) if position is not None else np.maximum(rough, 1e-9),
                 np.full(n, torque) if torque is not None else np.maximum(miss, 1e-9))
