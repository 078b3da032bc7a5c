"""Methods cloe and clie: closed-loop output error and input error, with the simulated loop fitted to the log."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError, NotPossibleError
from dynid.estimate.closed_loop.loop import Log, Loop, at_samples, closed_loop_facts, make_loop, tracking
from dynid.estimate.closed_loop.start import LoopOptions
from dynid.estimate.direct import direct_inverse
from dynid.estimate.estimate import Diagnostics, Estimate
from dynid.estimate.instrumental import instrumental_variables
from dynid.estimate.instruments.projection import low_decimation
from dynid.estimate.iteration import iteration_errors, step_motion
from dynid.estimate.iterations import Iteration, numbered
from dynid.estimate.least_squares import weighted_least_squares
from dynid.estimate.linear import positive_std, solve
from dynid.estimate.problem import Problem, method
from dynid.estimate.uncertainty import OnDemand, Uncertainty
from dynid.plain import finite
from dynid.recording import Samples
from dynid.recording.decimate import decimate_columns
from dynid.regression.autocorrelation import autocovariance
from dynid.simulation import simulate, simulate_many

Start = Literal["iv", "didim", "wls", "nominal"]
Output = Literal["position", "torque"]
_SENSITIVITY_STEP = 1e-4  # finite-difference step relative to a parameter's scale
_MIN_SCALE = 0.01  # smallest scale of a parameter, relative to the value that alone explains the torques
_MAX_STEP_REDUCTIONS = 12  # attempts with a shorter step before an iteration ends


@method("cloe", "output error in closed loop: simulated positions fitted to the measured ones",
        needs={"data", "exact", "rigid", "torques"}, options_of=[LoopOptions])
def output_error(problem: Problem, *, start: Start = "iv", tolerance: float = 1e-3, max_iterations: int = 20,
                 **loop: Any) -> Estimate:
    """Return the closed-loop output-error estimate, by Gauss-Newton on the positions of the simulated loop.

    Derivatives need one simulation per parameter, which run in parallel. start: an estimate by this method, or
    "nominal". Other options are those of `iv`.
    """
    options = LoopOptions(start, tolerance, max_iterations, **loop)
    return _gauss_newton(problem, "cloe", "position", options)


@method("clie", "input error in closed loop: simulated torques fitted to the measured ones",
        needs={"data", "exact", "rigid", "torques"}, options_of=[LoopOptions])
def input_error(problem: Problem, *, start: Start = "iv", tolerance: float = 1e-3, max_iterations: int = 20,
                **loop: Any) -> Estimate:
    """Return the closed-loop input-error estimate, by Gauss-Newton on the torques of the simulated loop.

    Unlike `didim`, this method includes the change of the simulated motion with the parameters.
    """
    options = LoopOptions(start, tolerance, max_iterations, **loop)
    return _gauss_newton(problem, "clie", "torque", options)


@dataclass(frozen=True, eq=False)
class OutputCriterion:
    """Misfit between simulated and measured output of the closed loops, without the first `dropped` seconds.

    scale (base,): scale of each base parameter.
    """

    problem: Problem
    loop: Loop
    output: Output
    dropped: float
    scale: Array

    def output_of(self, motion: Samples) -> Array:
        """Return the compared output (samples, dof) of a measured or simulated motion."""
        return motion.q if self.output == "position" else motion.tau

    def low_rate(self, log: Log, series: Array) -> Array:
        """Return a series (samples, ...) of a log decimated to the low rate, without the initial transient."""
        decimation = low_decimation(log.samples)
        late = log.samples.t >= log.samples.t[0] + self.dropped
        if decimation is not None:
            series = decimate_columns(series, decimation, log.samples.segments)
            late = np.concatenate([late[a:b:decimation.total] for a, b in log.samples.segments])
        return series[late]

    def runs(self, beta: Array) -> list[Samples]:
        """Return the simulated motion of every log with base values beta (base,), at the times of its samples."""
        theta = self.problem.base.expand(beta)
        law = self.loop.machine_law(theta)
        return [at_samples(log.samples, simulate(self.loop.model, theta, law, log.reference, step=self.loop.step))
                for log in self.loop.logs]

    def cost(self, beta: Array, weights: Array) -> float:
        """Return the weighted sum of squared errors with base values beta (base,); infinite if the simulation fails."""
        try:
            motions = self.runs(beta)
        except NotPossibleError:
            return np.inf
        errors = [self.low_rate(log, self.output_of(log.samples) - self.output_of(motion))
                  for log, motion in zip(self.loop.logs, motions, strict=True)]
        return sum(float(np.sum((error * weights) ** 2)) for error in errors)

    def at(self, beta: Array) -> Linearisation:
        """Return output errors and their derivatives at base values beta (base,), by central differences."""
        base, loop = self.problem.base, self.loop
        law = loop.machine_law(base.expand(beta))
        moves = _SENSITIVITY_STEP * np.diag(self.scale)
        moved = np.vstack([beta, *(beta + sign * move for move in moves for sign in (1.0, -1.0))])
        thetas = np.array([base.expand(row) for row in moved])
        residual, jacobian, here = [], [], []
        for log in loop.logs:
            motions = [at_samples(log.samples, motion) for motion in simulate_many(
                loop.model, thetas, law, log.reference, step=loop.step, threads=self.problem.threads)]
            here.append(motions[0])
            series = [self.output_of(motion) for motion in motions]
            slopes = [(a - b) / (2.0 * _SENSITIVITY_STEP * size)
                      for a, b, size in zip(series[1::2], series[2::2], self.scale, strict=True)]
            stack = self.low_rate(log, np.stack([self.output_of(log.samples) - series[0], *slopes], axis=2))
            residual.append(stack[:, :, 0])
            jacobian.append(stack[:, :, 1:])
        return Linearisation(np.concatenate(residual), np.concatenate(jacobian), tuple(here), tuple(map(len, residual)))


@dataclass(frozen=True, eq=False)
class Linearisation:
    """Output errors of the simulated closed loops and their derivatives, at the low rate.

    Attributes:
        residual: measured minus simulated output (rows, dof).
        jacobian: derivatives by the base parameters (rows, dof, base).
        motions: simulated motions, one per log at the times of its samples.
        log_rows: number of rows of each log.
    """

    residual: Array
    jacobian: Array
    motions: tuple[Samples, ...]
    log_rows: tuple[int, ...]

    @property
    def residual_std(self) -> Array:
        """RMS difference of measured and simulated output of each joint (dof,)."""
        return np.sqrt(np.mean(self.residual ** 2, axis=0))

    @property
    def weights(self) -> Array:
        """Weight of each joint (dof,): 1 / standard deviation of its error."""
        return 1.0 / positive_std(self.residual_std)


def _gauss_newton(problem: Problem, name: str, output: Output, options: LoopOptions) -> Estimate:
    beta = _first(problem, options)
    loop = make_loop(replace(problem, data=problem.as_logged()), name, options.controller, options.step)
    scale = np.maximum(np.maximum(np.abs(beta), _MIN_SCALE * problem.lone_values()), 1e-12)
    criterion = OutputCriterion(problem, loop, output, options.dropped(loop.settling), scale)
    steps: list[Iteration] = []
    change, damping = np.inf, 0.0
    for iteration in range(1, options.max_iterations + 1):
        with iteration_errors(name, iteration):
            here = criterion.at(beta)
        steps.append(Iteration(beta, problem.regression.relative_errors(beta), change=finite(change),
                               motion=step_motion(loop.logs, here.motions, criterion.dropped, torques=True)))
        if change <= options.tolerance:
            return _estimate(criterion, name, beta, here, numbered(steps))
        shift, change, damping = _step(criterion, beta, here, damping)
        beta = beta + shift
    raise NotPossibleError(f"method '{name}' did not converge in {options.max_iterations} iterations",
                           "check the controller, or start from another estimate", "not-settled")


def _step(criterion: OutputCriterion, beta: Array, here: Linearisation, damping: float) -> tuple[Array, float, float]:
    """Return a Gauss-Newton step (base,) that does not increase the error, or zero; the relative change of the error;
    and the damping for the next step. damping: initial Levenberg damping, which may grow."""
    weights, scale = here.weights, criterion.scale
    moves = (here.jacobian * weights[None, :, None]).reshape(-1, len(beta)) * scale
    miss = (here.residual * weights).ravel()
    u, s, vt = np.linalg.svd(moves, full_matrices=False)
    live = s > 1e-9 * s[0]
    cost = float(miss @ miss)
    shift = np.zeros_like(beta)
    for _ in range(_MAX_STEP_REDUCTIONS):
        trial = vt[live].T @ ((u[:, live].T @ miss) * (s[live] / (s[live] ** 2 + damping * s[0] ** 2))) * scale
        if criterion.cost(beta + trial, weights) < cost * (1.0 + 1e-9):
            shift = trial
            break
        damping = max(10.0 * damping, 1e-6)
    change = float(np.linalg.norm(moves @ (shift / scale)) / np.sqrt(cost)) if cost > 0 else 0.0
    return shift, change, damping / 10.0


def _first(problem: Problem, options: LoopOptions) -> Array:
    """Return the initial base parameters (base,) of the Gauss-Newton search."""
    start = options.start
    if start == "iv":
        return instrumental_variables(problem, controller=options.controller, step=options.step).values
    if start == "didim":
        return direct_inverse(problem, controller=options.controller, step=options.step).values
    if start == "wls":
        return weighted_least_squares(problem).values
    if start == "nominal":
        return problem.base.reduce(problem.need_nominal("cloe"))
    raise ModelError(f"output error can start from 'iv', 'didim', 'wls' or 'nominal', not '{start}'")


def _estimate(criterion: OutputCriterion, name: str, beta: Array, here: Linearisation,
              steps: tuple[Iteration, ...]) -> Estimate:
    problem, (rows, dof, _) = criterion.problem, here.jacobian.shape
    normal, middle = _moments(here)
    size = np.sqrt(np.diag(normal))
    seen = size > 1e-9 * size.max()
    inverse = np.zeros_like(normal)
    inverse[np.ix_(seen, seen)] = np.linalg.pinv(normal[np.ix_(seen, seen)], hermitian=True)
    covariance = inverse @ (0.5 * (middle + middle.T)) @ inverse
    facts = Diagnostics.from_fit(
        problem.regression, beta, rank=int(seen.sum()), weights=here.weights.tolist(), rows_per_joint=[rows] * dof,
        condition=float(np.linalg.cond(normal[np.ix_(seen, seen)] / np.outer(size[seen], size[seen])) ** 0.5),
        tracking_error=tracking(criterion.loop.logs, criterion.runs(beta)),
        **closed_loop_facts(criterion.loop, len(steps), criterion.dropped))
    # A joint at rest may move in the simulated loop, but the log does not determine its friction.
    known = seen & solve(problem.regression, problem.regression.stack()).identified
    return Estimate(name, problem.model, problem.base, beta, known,
                    OnDemand.known(Uncertainty(covariance, "correlated")), diagnostics=facts, iterations=steps)


def _moments(here: Linearisation) -> tuple[Array, Array]:
    """Return J'W^2 J and the covariance of J'W^2 residual (base, base), J the Jacobian, for autocorrelated
    residuals."""
    from scipy.signal import oaconvolve

    (_, dof, b), gap = here.jacobian.shape, max(here.log_rows) // 5  # longest lag of the autocovariances
    # Logs are independent: rows of zeros between them make products of different logs vanish.
    starts = np.cumsum([0, *(count + gap for count in here.log_rows[:-1])])
    at = np.concatenate([start + np.arange(count) for start, count in zip(starts, here.log_rows, strict=True)])
    rows = int(at[-1]) + 1
    keep = np.isin(np.arange(rows), at)
    normal, middle, weights = np.zeros((b, b)), np.zeros((b, b)), here.weights
    for j in range(dof):
        x, residual = np.zeros((b, rows)), np.zeros(rows)
        x[:, at], residual[at] = here.jacobian[:, j, :].T, here.residual[:, j]
        normal += weights[j] ** 2 * (x @ x.T)
        shape = autocovariance(residual, keep)
        kernel = np.concatenate([shape[:0:-1], shape])
        spread = oaconvolve(x, kernel[None], mode="full", axes=1)[:, len(shape) - 1:len(shape) - 1 + rows]
        middle += weights[j] ** 4 * (x @ spread.T)
    return normal, middle
