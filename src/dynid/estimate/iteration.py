"""Iterations of closed-loop methods: simulate the robot and solve the equations of its motion, until convergence.

A method implements the three steps of a `Procedure`; stopping rule, damping and error handling are common.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError, NotPossibleError
from dynid.estimate.closed_loop.loop import Log
from dynid.estimate.iterations import POINTS, Iteration, StepMotion, numbered
from dynid.estimate.problem import Problem
from dynid.plain import finite
from dynid.quantities import percent_text
from dynid.recording import Samples
from dynid.regression import BaseParameters
from dynid.signals import at_times
from dynid.simulation import Reference, TorqueDriven, simulate

_SMALL_STEP = 0.1  # largest change of a parameter in the last iteration, in standard errors
# Relative to the tolerance: with smaller changes of the torques, the iteration has converged for any data.
SETTLED_SHARE_OF_TOLERANCE = 1e-3
_UNDAMPED_RATIO = 0.7  # ratio of successive changes below which iterations need no damping

State = TypeVar("State")
Detail = TypeVar("Detail")


@dataclass(frozen=True, eq=False)
class Values:
    """Base values beta (base,), and all parameters theta (parameters,) if a constrained solver gave them."""

    beta: Array
    theta: Array | None = None

    def parameters(self, base: BaseParameters) -> Array:
        """Return all standard parameters (parameters,): theta, or a vector with the base values beta."""
        return base.expand(self.beta) if self.theta is None else self.theta

    def halfway(self, other: Values) -> Values:
        """Return the mean of two sets of parameter values; the mean of two consistent robots is consistent."""
        theta = None if self.theta is None or other.theta is None else 0.5 * (self.theta + other.theta)
        return Values(0.5 * (self.beta + other.beta), theta)


@dataclass(frozen=True, eq=False)
class Past:
    """Summary of the previous iterations: the last values, the relative changes of the torques so far, and the last
    step in standard errors. The step is infinite until the torques settle."""

    last: Values | None = None
    changes: tuple[float, ...] = ()
    step: float = np.inf

    @property
    def may_select_rows(self) -> bool:
        """Whether the set of valid rows may still change; near convergence, changes would cause oscillation."""
        return self.step > 1.0

    def damped(self, new: Values, change: float) -> Values:
        """Return the new values, or their mean with the last ones if iterations do not converge. Dry friction of joints
        near standstill can make the estimate alternate between two solutions."""
        if self.last is None or not self.changes or change < _UNDAMPED_RATIO * self.changes[-1]:
            return new
        return new.halfway(self.last)

    def after(self, found: Solved[Any]) -> Past:
        """Return the summary of all iterations, including one more solution."""
        changes = (*self.changes, found.change) if np.isfinite(found.change) else self.changes
        return Past(found.values, changes, found.step)


@dataclass(frozen=True, eq=False)
class Solved(Generic[Detail]):
    """Solution of one iteration of a closed-loop method.

    Attributes:
        values: the values after damping.
        move: change from the last values before damping (base,).
        change: relative change of the torques, infinite at first.
        covariance: (base, base), None while the torques change by more than the tolerance.
        seen: the record of the step.
        detail: data of the method.
    """

    values: Values
    move: Array
    change: float
    covariance: Array | None
    seen: Iteration
    detail: Detail

    @property
    def step(self) -> float:
        """Largest change of a parameter in standard errors; infinite while these are not computed."""
        return np.inf if self.covariance is None else step_size(self.move, self.covariance)

    def iteration(self) -> Iteration:
        """Return the record of this iteration for the estimate."""
        std = None if self.covariance is None else np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        return replace(self.seen, change=finite(self.change), step=finite(self.step), std=std)


class Procedure(Protocol[State, Detail]):
    """The steps of a closed-loop method.

    Attributes:
        name: name of the method.
        advice: sentence on how to reach convergence.
    """

    @property
    def name(self) -> str: ...

    @property
    def advice(self) -> str: ...

    def start(self) -> State:
        """Return the first simulated run of the robot, with the data for the first solution."""

    def solve(self, state: State, past: Past) -> Solved[Detail]:
        """Return the solution of the equations of a simulated run."""

    def advance(self, state: State, found: Solved[Detail]) -> State:
        """Return the next simulated run, with the parameters of the solution."""


@dataclass(frozen=True, eq=False)
class Settled(Generic[State, Detail]):
    """Result of converged iterations: last simulated run, its solution, covariance (base, base), and all steps."""

    state: State
    found: Solved[Detail]
    covariance: Array
    iterations: tuple[Iteration, ...]


def iterate(procedure: Procedure[State, Detail], tolerance: float, max_iterations: int) -> Settled[State, Detail]:
    """Iterate until convergence (`has_settled`) and return the last iteration; raise an error without convergence.

    tolerance: relative change of the torques; infinite for equations that do not depend on the estimate.
    """
    if max_iterations < 1:
        raise ModelError(f"method '{procedure.name}' needs max_iterations of at least 1, got {max_iterations}")
    with iteration_errors(procedure.name, 1):
        state = procedure.start()
    past = Past()
    steps: list[Iteration] = []
    for iteration in range(1, max_iterations + 1):
        with iteration_errors(procedure.name, iteration):
            found = procedure.solve(state, past)
        steps.append(found.iteration())
        if found.covariance is not None and has_settled(found.change, tolerance, found.step):
            return Settled(state, found, found.covariance, numbered(steps))
        with iteration_errors(procedure.name, iteration + 1):
            state = procedure.advance(state, found)
        past = past.after(found)
    moved = f" and a parameter by {past.step:.2g} of its standard error" if np.isfinite(past.step) else ""
    raise NotPossibleError(f"method '{procedure.name}' did not converge in {max_iterations} iterations: the last "
                           f"one changed the torques by {percent_text(100.0 * found.change)}{moved}", procedure.advice,
                           "not-settled")


def step_size(move: Array, covariance: Array) -> float:
    """Return the largest parameter change of move (base,), in standard errors of a covariance (base, base)."""
    deviation = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    live = (move != 0.0) & (deviation > 0.0)
    return float(np.max(np.abs(move[live]) / deviation[live], initial=0.0))


def has_settled(change: float, tolerance: float, step: float) -> bool:
    """Return whether iterations may stop: the torques changed by less than the tolerance (Janot, Vandanjon, Gautier, s.
    3.4), and either no parameter by more than a tenth of its standard error, or the torques by less than a thousandth
    of the tolerance.

    The first rule alone would stop before joints with small torques converge, such as those of a wrist.
    """
    return change <= tolerance and (step <= _SMALL_STEP or change <= SETTLED_SHARE_OF_TOLERANCE * tolerance)


@contextmanager
def iteration_errors(method: str, iteration: int) -> Iterator[None]:
    """Context manager that adds the method and the iteration to error messages."""
    try:
        yield
    except NotPossibleError as error:
        raise NotPossibleError(f"method '{method}' stopped at iteration {iteration}: {error.reason}", error.advice,
                               error.code) from None


_RESTART_SECONDS = 0.5  # s of simulation under measured torques before a restart from the measured state
_MAX_STEP = 1e-3  # s, largest integration step


def step_motion(logs: Sequence[Log], motions: Sequence[Samples], dropped: float, *, torques: bool) -> StepMotion:
    """Return the comparison of the simulated motion of one iteration with the measured motion.

    Args:
        logs: measured samples.
        motions: simulated motions, one per log at the rows of its samples.
        dropped: time excluded at the start of each log, s.
        torques: whether the torques of the motions are those of a simulated controller.
    """
    measured, simulated, asked = [], [], []
    for log, motion in zip(logs, motions, strict=True):
        late = log.samples.t >= log.samples.t[0] + dropped
        measured.append(_signals(log.samples, late))
        simulated.append(_signals(motion, late))
        if not log.from_positions:
            path = log.reference
            asked.append([at_times(log.samples.t[late], path.t, x) for x in (path.q, path.dq, path.ddq)])
    torque = _shares([signals[3] for signals in measured], [signals[3] for signals in simulated]) if torques else None
    away = np.array([_shares([signals[k] for signals in asked], [signals[k] for signals in simulated], centred=k == 0)
                     for k in range(3)]) if len(asked) == len(logs) else None
    return replace(_compared(logs[0].samples, motions[0].q, measured, simulated), from_reference=away,
                   torque_error=torque)


def motion_under_torques(problem: Problem, logs: Sequence[Samples], beta: Array) -> StepMotion | None:
    """Simulate the robot of base values beta (base,) under the measured torques, restarted from the measured state
    every half second; None if it cannot be simulated."""
    theta = problem.base.expand(beta)
    try:
        motions = [_under_torques(problem, log, theta) for log in logs]
    except (ModelError, NotPossibleError):
        return None
    return _compared(logs[0], motions[0][0], [[log.q, log.dq, log.ddq] for log in logs], motions)


def _under_torques(problem: Problem, log: Samples, theta: Array) -> list[Array]:
    """Return positions, velocities and accelerations (rows, dof) of a simulated robot driven by a log's torques."""
    out = [log.q.copy(), log.dq.copy(), log.ddq.copy()]
    length = max(round(_RESTART_SECONDS * log.rate), 3)
    for start, stop in log.segments:
        for first in range(int(start), int(stop) - 2, length):
            rows = slice(first, min(first + length, int(stop)))
            path = Reference(log.q[rows], log.dq[rows], log.ddq[rows], log.rate, float(log.t[first]))
            torque = log.tau[rows].copy()  # between two samples, the mean of both acts
            torque[:-1] = 0.5 * (torque[:-1] + torque[1:])
            run = simulate(problem.model, theta, TorqueDriven(torque), path, step=min(_MAX_STEP, 1.0 / log.rate))
            out[0][rows], out[1][rows] = run.q, run.dq
            out[2][rows] = np.gradient(run.dq, 1.0 / log.rate, axis=0)
    return out


def _signals(samples: Samples, late: Array) -> list[Array]:
    return [x[late] for x in (samples.q, samples.dq, samples.ddq, samples.tau)]


def _compared(first: Samples, q: Array, measured: Sequence[Sequence[Array]], simulated: Sequence[Sequence[Array]]
              ) -> StepMotion:
    """Return the comparison of simulated positions, velocities and accelerations with measured ones, over all logs. q
    (samples, dof): simulated positions of the first log."""
    rows = np.unique(np.linspace(0, len(first.t) - 1, POINTS).round().astype(np.int64))
    errors = np.array([_shares(*([signals[k] for signals in logs] for logs in (measured, simulated)), centred=k == 0)
                       for k in range(3)])
    miss = sum(float(np.sum((a[0] - b[0]) ** 2)) for a, b in zip(measured, simulated, strict=True))
    size = sum(float(np.sum((a[0] - a[0].mean(axis=0)) ** 2)) for a in measured)
    return StepMotion(first.t[rows], first.q[rows], q[rows], errors, None, None,
                      100.0 * float(np.sqrt(miss / size)) if size > 0 else 0.0)


def _shares(measured: Sequence[Array], simulated: Sequence[Array], *, centred: bool = False) -> Array:
    """Return 100 |measured - simulated| / |measured| of each joint (dof,), about the mean if centred; nan at rest."""
    miss = np.sum([np.sum((a - b) ** 2, axis=0) for a, b in zip(measured, simulated, strict=True)], axis=0)
    size = np.sum([np.sum((a - a.mean(axis=0)) ** 2 if centred else a ** 2, axis=0) for a in measured], axis=0)
    return np.where(size > 0, 100.0 * np.sqrt(miss / np.where(size > 0, size, 1.0)), np.nan)
