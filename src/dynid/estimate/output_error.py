"""Closed-loop output error (cloe) and input error (clie): the simulated loop itself is fitted to the log."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError, NotPossibleError
from dynid.estimate import closed_loop
from dynid.estimate.closed_loop import Log, Loop, at_samples, make_loop, stopped, tracking
from dynid.estimate.diagnostics import Diagnostics
from dynid.estimate.direct import direct_inverse
from dynid.estimate.estimate import Estimate
from dynid.estimate.instrumental import instrumental_variables
from dynid.estimate.instruments import low_decimation
from dynid.estimate.least_squares import weighted_least_squares
from dynid.estimate.problem import Problem, method
from dynid.recording.decimate import decimate_columns
from dynid.regression.correlation import autocovariance
from dynid.simulation import Controller, Simulation, simulate, simulate_many

Start = Literal["iv", "didim", "wls", "nominal"]
Output = Literal["position", "torque"]
_STEP = 1e-4  # share of a parameter's scale by which it is moved for a sensitivity
_DAMPINGS = 12  # tries of a shorter step before an iteration gives up


@method("cloe", "output error in closed loop: simulated positions fitted to the measured ones", needs={"data"})
def output_error(problem: Problem, *, start: Start = "iv", tolerance: float = 1e-3, max_iterations: int = 20,
                 step: float | None = None, controller: Controller | None = None,
                 transient: float | None = None) -> Estimate:
    """Gauss-Newton on the positions of the simulated loop, one simulation a parameter, side by side.

    start: an estimate by this method, or "nominal". Other options as those of `iv`.
    """
    return _gauss_newton(problem, "cloe", "position", start, tolerance, max_iterations, step, controller, transient)


@method("clie", "input error in closed loop: simulated torques fitted to the measured ones", needs={"data"})
def input_error(problem: Problem, *, start: Start = "iv", tolerance: float = 1e-3, max_iterations: int = 20,
                step: float | None = None, controller: Controller | None = None,
                transient: float | None = None) -> Estimate:
    """Gauss-Newton on the torques of the simulated loop, the way of its motion included (unlike didim)."""
    return _gauss_newton(problem, "clie", "torque", start, tolerance, max_iterations, step, controller, transient)


@dataclass(frozen=True, eq=False)
class Fitted:
    """Misfit and its sensitivities at the low rate: residual (rows, dof), jacobian (rows, dof, base)."""

    residual: Array
    jacobian: Array


def _gauss_newton(problem: Problem, name: str, output: Output, start: Start, tolerance: float, max_iterations: int,
                  step: float | None, controller: Controller | None, transient: float | None) -> Estimate:
    beta = _first(problem, start, controller, step)
    loop = make_loop(replace(problem, data=problem.as_logged()), name, controller, step)
    dropped = loop.settled if transient is None else transient
    scale = _scales(problem, beta)
    history: list[dict[str, Any]] = []
    change, damping = np.inf, 0.0
    for iteration in range(1, max_iterations + 1):
        try:
            here = _fitted(problem, loop, beta, scale, output, dropped)
        except NotPossibleError as error:
            raise stopped(name, iteration, error) from None
        deviation = np.sqrt(np.mean(here.residual ** 2, axis=0))
        weights = 1.0 / np.maximum(deviation, 1e-9 * max(float(deviation.max()), 1e-300))
        moves = (here.jacobian * weights[None, :, None]).reshape(-1, len(beta)) * scale
        miss = (here.residual * weights).ravel()
        history.append({"values": beta.tolist(), "change": None if not np.isfinite(change) else change,
                        "deviation": deviation.tolist()})
        if change <= tolerance:
            break
        u, s, vt = np.linalg.svd(moves, full_matrices=False)
        live = s > 1e-9 * s[0]
        cost = float(miss @ miss)
        for _ in range(_DAMPINGS):
            shift = vt[live].T @ ((u[:, live].T @ miss) * (s[live] / (s[live] ** 2 + damping * s[0] ** 2))) * scale
            try:
                better = _cost(problem, loop, beta + shift, output, dropped, weights)
            except NotPossibleError:
                better = np.inf
            if better < cost * (1.0 + 1e-9):
                break
            damping = max(10.0 * damping, 1e-6)
        else:
            shift = np.zeros_like(beta)
        change = float(np.linalg.norm(moves @ (shift / scale)) / np.sqrt(cost)) if cost > 0 else 0.0
        beta, damping = beta + shift, damping / 10.0
    else:
        raise NotPossibleError(f"method '{name}' did not settle in {max_iterations} iterations; check the controller, "
                               "or start from another estimate")
    return _estimate(problem, name, loop, beta, here, weights, history, dropped)


def _first(problem: Problem, start: Start, controller: Controller | None, step: float | None) -> Array:
    if start == "iv":
        return instrumental_variables(problem, controller=controller, step=step).values
    if start == "didim":
        return direct_inverse(problem, controller=controller, step=step).values
    if start == "wls":
        return weighted_least_squares(problem).values
    if start == "nominal":
        return problem.base.reduce(problem.need_nominal("cloe"))
    raise ModelError(f"output error starts from 'iv', 'didim', 'wls' or 'nominal', not '{start}'")


def _scales(problem: Problem, beta: Array) -> Array:
    """A size for each base parameter: a hundredth of the torque it could explain alone, or its own value."""
    return np.maximum(np.maximum(np.abs(beta), 0.01 * problem.lone_values()), 1e-12)


def _fitted(problem: Problem, loop: Loop, beta: Array, scale: Array, output: Output, dropped: float) -> Fitted:
    """Central differences: the loop is as smooth in its parameters as its friction."""
    law = loop.law(problem.base.expand(beta))
    moves = _STEP * np.diag(scale)
    moved = np.vstack([beta, *(beta + sign * move for move in moves for sign in (1.0, -1.0))])
    thetas = np.array([problem.base.expand(row) for row in moved])
    residual, jacobian = [], []
    for log in loop.logs:
        runs = simulate_many(problem.model, thetas, law, log.reference, step=loop.step, threads=problem.threads)
        series = [getattr(at_samples(log.samples, run), "q" if output == "position" else "tau") for run in runs]
        measured = log.samples.q if output == "position" else log.samples.tau
        slopes = [(a - b) / (2.0 * _STEP * size) for a, b, size in zip(series[1::2], series[2::2], scale, strict=True)]
        stack = _late(log, np.stack([measured - series[0], *slopes], axis=2), dropped)
        residual.append(stack[:, :, 0])
        jacobian.append(stack[:, :, 1:])
    return Fitted(np.concatenate(residual), np.concatenate(jacobian))


def _late(log: Log, series: Array, dropped: float) -> Array:
    """Series over the samples of a log (samples, ..) at the low rate, without the start that is dropped, s."""
    decimation = low_decimation(log.samples)
    late = log.samples.t >= log.samples.t[0] + dropped
    if decimation is not None:
        series = decimate_columns(series, decimation, log.samples.segments)
        late = np.concatenate([late[a:b:decimation.total] for a, b in log.samples.segments])
    return series[late]


def _runs(loop: Loop, theta: Array) -> list[Simulation]:
    law = loop.law(theta)
    return [simulate(loop.model, theta, law, log.reference, step=loop.step) for log in loop.logs]


def _cost(problem: Problem, loop: Loop, beta: Array, output: Output, dropped: float, weights: Array) -> float:
    theta = problem.base.expand(beta)
    total = 0.0
    for log, run in zip(loop.logs, _runs(loop, theta), strict=True):
        there = at_samples(log.samples, run)
        miss = log.samples.q - there.q if output == "position" else log.samples.tau - there.tau
        total += float(np.sum((_late(log, miss, dropped) * weights) ** 2))
    return total


def _estimate(problem: Problem, name: str, loop: Loop, beta: Array, here: Fitted, weights: Array,
              history: list[dict[str, Any]], dropped: float) -> Estimate:
    from scipy.signal import oaconvolve

    rows, dof, b = here.jacobian.shape
    normal, middle = np.zeros((b, b)), np.zeros((b, b))
    for j in range(dof):
        x = here.jacobian[:, j, :].T
        normal += weights[j] ** 2 * (x @ x.T)
        shape = autocovariance(here.residual[:, j], np.ones(rows, dtype=bool))
        kernel = np.concatenate([shape[:0:-1], shape])
        spread = oaconvolve(x, kernel[None], mode="full", axes=1)[:, len(shape) - 1:len(shape) - 1 + rows]
        middle += weights[j] ** 4 * (x @ spread.T)
    size = np.sqrt(np.diag(normal))
    seen = size > 1e-9 * size.max()
    inverse = np.zeros((b, b))
    inverse[np.ix_(seen, seen)] = np.linalg.pinv(normal[np.ix_(seen, seen)], hermitian=True)
    covariance = inverse @ (0.5 * (middle + middle.T)) @ inverse
    runs = _runs(loop, problem.base.expand(beta))
    facts = Diagnostics.of_fit(
        problem.regression, beta, rank=int(seen.sum()), weights=weights.tolist(), tracking_error=tracking(loop, runs),
        condition=float(np.linalg.cond(normal[np.ix_(seen, seen)] / np.outer(size[seen], size[seen])) ** 0.5),
        rows_per_joint=[rows] * dof, **closed_loop.facts(loop, history, dropped))
    return Estimate(name, problem.model, problem.base, beta, covariance, seen, diagnostics=facts)
