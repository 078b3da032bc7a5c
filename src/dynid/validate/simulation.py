"""Validation by simulation: does a robot with these parameters move as the log says, under feedback or without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dynid.errors import ModelError, NotPossibleError
from dynid.estimate import Estimate
from dynid.recording import Recording, Samples
from dynid.robot.inertia import Array
from dynid.simulate import Controller, Reference, TorqueDriven, simulate

Mode = Literal["closed-loop", "torque-driven"]


@dataclass(frozen=True, eq=False)
class SimulatedLog:
    """A log and its simulation, row by row: t (rows,), positions and torques (rows, dof), measured and simulated.

    windows (k, 2): rows between which the simulation ran on without a look at the log. reached: share of the log that
    was simulated; below 1 where the simulation broke off, for the reason given.
    """

    mode: Mode
    t: Array
    q: Array
    simulated_q: Array
    tau: Array
    simulated_tau: Array
    windows: Array
    joints: tuple[str, ...]
    reached: float = 1.0
    reason: str = ""

    @property
    def position_deviation(self) -> Array:
        """Root mean square of measured minus simulated position (dof,), rad or m."""
        return np.sqrt(np.mean((self.q - self.simulated_q) ** 2, axis=0))

    @property
    def position_error(self) -> Array:
        """The same in percent of each joint's own motion about its mean (dof,)."""
        motion = np.sqrt(np.mean((self.q - self.q.mean(axis=0)) ** 2, axis=0))
        return np.where(motion > 0, 100.0 * self.position_deviation / np.where(motion > 0, motion, 1.0), 0.0)

    @property
    def torque_error(self) -> float:
        """100 |tau - simulated| / |tau| over all joints, percent; 0 under the log's own torques."""
        size = float(np.linalg.norm(self.tau))
        return 100.0 * float(np.linalg.norm(self.tau - self.simulated_tau)) / size if size > 0 else 0.0


def closed_loop(estimate: Estimate, recording: Recording, controller: Controller, *, step: float | str | None = None
                ) -> SimulatedLog:
    """The estimate under the machine's control law along the log's own reference.

    step: of the integrator, s, or "adaptive".
    """
    reference = Reference.from_recording(recording)
    run = simulate(estimate.model, estimate.full, controller, reference, step=step)
    q, tau = (np.column_stack([np.interp(recording.t, run.t, x[:, j]) for j in range(x.shape[1])])
              for x in (run.q, run.tau))
    return SimulatedLog("closed-loop", recording.t, recording.q, q, recording.tau, tau,
                        np.array([[0, len(recording)]]), _names(recording.joints, recording.dof))


def torque_driven(estimate: Estimate, samples: Samples, *, horizon: float = 0.5, step: float | str | None = None
                  ) -> SimulatedLog:
    """The estimate under the log's torques, started anew from the filtered state every `horizon` seconds.

    Without feedback every error grows, gravity's fastest: a short horizon tells good parameters from bad ones, a long
    one only tells that arms fall (Lomakin, Deutscher, fig. 3 has a horizon of its whole motion).
    """
    length = round(horizon * samples.rate)
    if length < 2:
        raise ModelError(f"a horizon of {horizon:g} s is shorter than two samples at {samples.rate:.4g} Hz")
    simulated, windows, reason = np.full(samples.q.shape, np.nan), [], ""
    for start, stop in samples.segments:
        for first in range(int(start), int(stop) - 1, length):
            last = min(first + length, int(stop))
            rows = slice(first, last)
            motion = samples.q[rows], samples.dq[rows], samples.ddq[rows]
            path = Reference(*motion, rate=samples.rate, start=float(samples.t[first]))
            # A torque sampled at the ticks acts between them as the mean of its two ends.
            torque = samples.tau[rows].copy()
            torque[:-1] = 0.5 * (torque[:-1] + torque[1:])
            try:
                run = simulate(estimate.model, estimate.full, TorqueDriven(torque), path, step=step)
            except NotPossibleError as error:
                reason = reason or str(error)
                continue
            simulated[rows] = run.q
            windows.append((first, last))
    done = np.isfinite(simulated).all(axis=1)
    if not done.any():
        raise NotPossibleError(f"{samples.source}: not a single window could be simulated: {reason}")
    return SimulatedLog("torque-driven", samples.t[done], samples.q[done], simulated[done], samples.tau[done],
                        samples.tau[done], np.array(windows), _names(samples.joints, samples.dof),
                        float(done.mean()), reason)


def _names(joints: tuple[str, ...], dof: int) -> tuple[str, ...]:
    return joints or tuple(f"joint{j + 1}" for j in range(dof))
