"""Closed loops in Python, for user-defined control functions, models and terms.

The steps are those of `kernels.run`, the compiled loop, so the motion is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from dynid.arrays import Array
from dynid.dynamics import Wrench, wrench_torques
from dynid.dynamics.kinematics import series
from dynid.errors import ModelError, NotPossibleError
from dynid.model import LinearModel, complete
from dynid.simulation import kernels
from dynid.simulation.kernels import DIVERGED, DONE, SINGULAR, Law, RunBuffers
from dynid.simulation.plant import Plant
from dynid.simulation.reference import Reference
from dynid.simulation.sensors import Sensors, lagged, see

Command = Callable[[int, Array, Array], Array]
Outside = Callable[[Array, float], Array]

EMPTY = np.zeros((0, 0))
NO_PLANT = Plant(np.zeros(0, dtype=np.int64), np.zeros(3), np.zeros(0), EMPTY, EMPTY, np.zeros(0), np.zeros(0), EMPTY,
                 EMPTY, np.zeros(0, dtype=np.int64), np.zeros(0), EMPTY, EMPTY, EMPTY, EMPTY, EMPTY, EMPTY,
                 np.zeros((1, 0, 6)))


class SteppedMachine(Protocol):
    """Protocol of a robot in a simulated control loop, with state y.

    `at` sets the tick. `derivative` computes the derivative dy under torques tau and returns False for a singular
    inertia matrix. `advance` advances the state by a period, s, and returns a status.
    """

    dof: int

    def at(self, tick: int) -> None: ...

    def derivative(self, tau: Array, y: Array, dy: Array) -> bool: ...

    def advance(self, tau: Array, y: Array, dy: Array, period: float) -> int: ...


class CompiledBody:
    """A simulated robot that is integrated by compiled code."""

    def __init__(self, plant: Plant, work: RunBuffers, steps: int, tolerance: float, period: float) -> None:
        self.plant, self.work, self.steps, self.tolerance = plant, work, steps, tolerance
        self.step = period / max(steps, 1)
        self.dof = plant.dof

    def at(self, tick: int) -> None:
        self.work.clock[0] = tick
        kernels.act(self.plant, 0.0, self.work)

    def derivative(self, tau: Array, y: Array, dy: Array) -> bool:
        if len(self.work.signs):
            return bool(kernels.derivative_held(self.plant, tau, y, self.step, dy, self.work))
        return bool(kernels.derivative(self.plant, tau, y, dy, self.work))

    def advance(self, tau: Array, y: Array, dy: Array, period: float) -> int:
        if self.steps > 0:
            return int(kernels.advance_rk4(self.plant, tau, y, dy, period / self.steps, self.steps, self.work))
        return int(kernels.advance_adaptive(self.plant, tau, y, dy, period, self.tolerance, self.work))


class ModelBody:
    """A simulated robot with any model that is linear in its parameters, integrated by RK4 through the model's methods.

    outside: function that returns joint torques (dof,) of external wrenches from positions (dof,) and the time in
    sampling periods.
    """

    def __init__(self, model: LinearModel, theta: Array, steps: int, outside: Outside | None = None) -> None:
        self.model, self.theta, self.steps, self.dof = complete(model), theta, max(steps, 1), model.dof
        self.outside, self.tick, self.share = outside, 0, 0.0

    def at(self, tick: int) -> None:
        self.tick, self.share = tick, 0.0

    def derivative(self, tau: Array, y: Array, dy: Array) -> bool:
        n = self.dof
        if self.outside is not None:
            tau = tau + self.outside(y[:n], self.tick + self.share)
        try:
            dy[n:] = np.asarray(self.model.forward_dynamics(self.theta, y[:n], y[n:], tau)).reshape(n)
        except (NotPossibleError, np.linalg.LinAlgError):
            return False
        dy[:n] = y[n:]
        return bool(np.isfinite(dy).all())

    def advance(self, tau: Array, y: Array, dy: Array, period: float) -> int:
        h = period / self.steps
        k = np.empty((4, len(y)))
        for step in range(self.steps):
            self.share = step / self.steps
            if step == 0:
                k[0] = dy
            elif not self.derivative(tau, y, k[0]):
                return SINGULAR
            for stage in range(1, 4):
                self.share = (step + 0.5 * ((stage + 1) // 2)) / self.steps
                if not self.derivative(tau, y + (h if stage == 3 else 0.5 * h) * k[stage - 1], k[stage]):
                    return SINGULAR
            y += h / 6.0 * (k[0] + 2.0 * k[1] + 2.0 * k[2] + k[3])
        return DONE


def outside_torques(model: LinearModel, wrenches: Sequence[Wrench], t: Array) -> Outside | None:
    """Return a function for the joint torques of external wrenches, linear between times t (ticks,), s; None without
    wrenches."""
    robot = complete(model).robot
    if not wrenches:
        return None
    if robot is None:
        raise ModelError("wrenches act on frames of a robot, but this model has no robot")
    values = series(wrenches, t)

    def torques(q: Array, tick: float) -> Array:
        before = min(int(tick), len(t) - 2)
        now = values[before] + (tick - before) * (values[before + 1] - values[before])
        present = [Wrench(wrench.frame, x, axes=wrench.axes) for wrench, x in zip(wrenches, now, strict=True)]
        return wrench_torques(robot, present, q)
    return torques


def law_command(law: Law, plant: Plant | None, reference: Reference, dof: int, work: RunBuffers) -> Command:
    """Return a compiled control law as a Python function of the tick and of measured positions and velocities."""
    integral, out = np.zeros(dof), np.zeros(dof)
    period = 1.0 / reference.rate
    machine = NO_PLANT if plant is None else plant

    def torque(tick: int, seen: Array, speed: Array) -> Array:
        kernels.command(law, machine, tick, period, seen, speed, reference.q[tick], reference.dq[tick],
                        reference.ddq[tick], integral, out, work)
        return out.copy()
    return torque


def function_command(function: Any, reference: Reference, dof: int) -> Command:
    """Return a user's control function f(t, q, dq, qr, dqr, ddqr) as a function of the tick and of measured positions
    and velocities."""
    times = reference.t

    def torque(tick: int, seen: Array, speed: Array) -> Array:
        asked = reference.q[tick], reference.dq[tick], reference.ddq[tick]
        answer = np.asarray(function(float(times[tick]), seen.copy(), speed.copy(), *asked), dtype=float)
        if answer.shape != (dof,):
            raise ModelError(f"the control function returned torques of shape {answer.shape}, expected {(dof,)}")
        if not np.isfinite(answer).all():
            raise ModelError("the control function returned a torque that is not finite for joint "
                             f"{int(np.argmin(np.isfinite(answer))) + 1} at {times[tick]:.4g} s", code="not-finite")
        return answer
    return torque


def run(body: SteppedMachine, command: Command, delay: int, lag: float, sensors: Sensors, reference: Reference,
        y: Array, fastest: Array, seat: tuple[int, int], out: Array, measured: Array) -> tuple[int, int]:
    """Simulate the closed loop in Python, with the same results as `kernels.run`. seat: index of the first measured
    position in the state, and index of the first measured velocity."""
    n, period = body.dof, 1.0 / reference.rate
    seen, speed, dy = np.zeros(n), np.zeros(n), np.zeros(len(y))
    held: list[Array] = []
    past, old = np.zeros((int(lag) + 2, n)), np.zeros(n)
    for tick in range(len(reference)):
        see(sensors, tick, period, y[seat[0]:seat[0] + n], y[seat[1]:seat[1] + n], seen, speed)
        lagged(past, tick, lag, speed, old)
        held.append(command(tick, seen, old))
        tau = held[max(tick - delay, 0)]
        body.at(tick)
        if not body.derivative(tau, y, dy):
            return SINGULAR, tick
        out[0, tick], out[1, tick], out[2, tick], out[3, tick] = y[:n], y[n:2 * n], dy[n:2 * n], tau
        measured[tick] = seen
        if len(out) > 4:
            out[4, tick], out[5, tick] = y[seat[0]:seat[0] + n], y[seat[1]:seat[1] + n]
            out[6, tick] = dy[seat[1]:seat[1] + n]
        if not np.all(np.abs(y[n:2 * n]) < fastest):
            return DIVERGED, tick
        if tick + 1 < len(reference):
            ended = body.advance(tau, y, dy, period)
            if ended != DONE:
                return ended, tick
    return DONE, len(reference)
