"""Comparison of the simulated motion of one step with the measured one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError, NotPossibleError
from dynid.estimate.closed_loop.references import Log
from dynid.estimate.iterations import POINTS, StepMotion
from dynid.estimate.problem import Problem
from dynid.recording import Samples
from dynid.signals import at_times
from dynid.simulation import Reference, TorqueDriven, simulate

_RESTART_SECONDS = 0.5  # s that a robot moves under measured torques before it starts anew from the measured state
_MAX_STEP = 1e-3  # s, of the integrator at most


def step_motion(logs: Sequence[Log], motions: Sequence[Samples], dropped: float, *, torques: bool) -> StepMotion:
    """Return the comparison of one step's motion with the measured one.

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
    found = _compared(logs[0].samples, motions[0].q, measured, simulated)
    torque = _shares([one[3] for one in measured], [one[3] for one in simulated]) if torques else None
    away = np.array([_shares([one[k] for one in asked], [one[k] for one in simulated], centred=k == 0)
                     for k in range(3)]) if len(asked) == len(logs) else None
    return StepMotion(*found[:4], away, torque, found[4])


def motion_under_torques(problem: Problem, logs: Sequence[Samples], beta: Array) -> StepMotion | None:
    """Simulate the robot of base values beta (base,) under the measured torques, restarted from the measured state
    every half second; None if it cannot be simulated."""
    theta = problem.base.expand(beta)
    try:
        motions = [_driven(problem, log, theta) for log in logs]
    except (ModelError, NotPossibleError):
        return None
    measured, simulated = ([[log.q, log.dq, log.ddq] for log in logs], motions)
    found = _compared(logs[0], motions[0][0], measured, simulated)
    return StepMotion(*found[:4], None, None, found[4])


def _driven(problem: Problem, log: Samples, theta: Array) -> list[Array]:
    """Return positions, velocities and accelerations (rows, dof) of a robot driven by a log's torques."""
    out = [log.q.copy(), log.dq.copy(), log.ddq.copy()]
    length = max(round(_RESTART_SECONDS * log.rate), 3)
    for start, stop in log.segments:
        for first in range(int(start), int(stop) - 2, length):
            rows = slice(first, min(first + length, int(stop)))
            path = Reference(log.q[rows], log.dq[rows], log.ddq[rows], log.rate, float(log.t[first]))
            torque = log.tau[rows].copy()  # sampled at the ticks, it acts between them as the mean of its two ends
            torque[:-1] = 0.5 * (torque[:-1] + torque[1:])
            run = simulate(problem.model, theta, TorqueDriven(torque), path, step=min(_MAX_STEP, 1.0 / log.rate))
            out[0][rows], out[1][rows] = run.q, run.dq
            out[2][rows] = np.gradient(run.dq, 1.0 / log.rate, axis=0)
    return out


def _signals(samples: Samples, late: Array) -> list[Array]:
    return [x[late] for x in (samples.q, samples.dq, samples.ddq, samples.tau)]


def _compared(first: Samples, q: Array, measured: Sequence[Sequence[Array]], simulated: Sequence[Sequence[Array]]
              ) -> tuple[Array, Array, Array, Array, float]:
    """Return times, measured and simulated positions of the first log at selected rows; errors (3, dof), and of all
    positions."""
    rows = np.unique(np.linspace(0, len(first.t) - 1, POINTS).round().astype(np.int64))
    errors = np.array([_shares([one[k] for one in measured], [one[k] for one in simulated], centred=k == 0)
                       for k in range(3)])
    miss = sum(float(np.sum((a[0] - b[0]) ** 2)) for a, b in zip(measured, simulated, strict=True))
    size = sum(float(np.sum((a[0] - a[0].mean(axis=0)) ** 2)) for a in measured)
    return first.t[rows], first.q[rows], q[rows], errors, 100.0 * float(np.sqrt(miss / size)) if size > 0 else 0.0


def _shares(measured: Sequence[Array], simulated: Sequence[Array], *, centred: bool = False) -> Array:
    """Return 100 |measured - simulated| / |measured| of each joint (dof,) over all logs, about the mean if centred;
    nan if nothing was measured."""
    miss = np.sum([np.sum((a - b) ** 2, axis=0) for a, b in zip(measured, simulated, strict=True)], axis=0)
    size = np.sum([np.sum((a - a.mean(axis=0)) ** 2 if centred else a ** 2, axis=0) for a in measured], axis=0)
    return np.where(size > 0, 100.0 * np.sqrt(miss / np.where(size > 0, size, 1.0)), np.nan)
