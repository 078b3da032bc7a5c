"""Closed loops in Python, for what the compiled loop does not know: a user's control function, a user's model or term.

Tick by tick the same steps as `kernels.run`, so that both give the same motion.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError, NotPossibleError
from dynid.model import LinearModel, complete
from dynid.simulation import kernels
from dynid.simulation.kernels import DIVERGED, DONE, SINGULAR, Law, Sensors, Space
from dynid.simulation.plant import Plant
from dynid.simulation.reference import Reference

Derivative = Callable[[Array, Array, Array], bool]
Command = Callable[[int, Array, Array], Array]

_NONE = np.zeros((0, 0))
NO_PLANT = Plant(np.zeros(0, dtype=np.int64), np.zeros(3), np.zeros(0), _NONE, _NONE, np.zeros(0), np.zeros(0), _NONE,
                 _NONE, np.zeros(0, dtype=np.int64), np.zeros(0), _NONE, _NONE, _NONE, _NONE)


class Body(Protocol):
    """A machine that a loop can step: derivative(tau, y, dy) and advance(tau, y, dy, period) -> how it ended."""

    dof: int

    def derivative(self, tau: Array, y: Array, dy: Array) -> bool: ...

    def advance(self, tau: Array, y: Array, dy: Array, period: float) -> int: ...


class CompiledBody:
    """A plant stepped by the kernels."""

    def __init__(self, plant: Plant, work: Space, steps: int, tolerance: float, period: float) -> None:
        self.plant, self.work, self.steps, self.tolerance = plant, work, steps, tolerance
        self.step = period / max(steps, 1)
        self.dof = plant.dof

    def derivative(self, tau: Array, y: Array, dy: Array) -> bool:
        if len(self.work.signs):
            return bool(kernels.derivative_held(self.plant, tau, y, self.step, dy, self.work))
        return bool(kernels.derivative(self.plant, tau, y, dy, self.work))

    def advance(self, tau: Array, y: Array, dy: Array, period: float) -> int:
        if self.steps > 0:
            return int(kernels.advance_rk4(self.plant, tau, y, dy, period / self.steps, self.steps, self.work))
        return int(kernels.advance_adaptive(self.plant, tau, y, dy, period, self.tolerance, self.work))


class ModelBody:
    """Any model linear in its parameters, stepped through its own methods. Always RK4."""

    def __init__(self, model: LinearModel, theta: Array, steps: int) -> None:
        self.model, self.theta, self.steps, self.dof = complete(model), theta, max(steps, 1), model.dof

    def derivative(self, tau: Array, y: Array, dy: Array) -> bool:
        n = self.dof
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
            if step == 0:
                k[0] = dy
            elif not self.derivative(tau, y, k[0]):
                return SINGULAR
            for stage in range(1, 4):
                if not self.derivative(tau, y + (h if stage == 3 else 0.5 * h) * k[stage - 1], k[stage]):
                    return SINGULAR
            y += h / 6.0 * (k[0] + 2.0 * k[1] + 2.0 * k[2] + k[3])
        return DONE


def law_command(law: Law, plant: Plant | None, reference: Reference, dof: int, work: Space) -> Command:
    """A compiled law as a Python function of tick, position and speed seen."""
    integral, out = np.zeros(dof), np.zeros(dof)
    period = 1.0 / reference.rate
    machine = NO_PLANT if plant is None else plant

    def torque(tick: int, seen: Array, speed: Array) -> Array:
        kernels.command(law, machine, tick, period, seen, speed, reference.q[tick], reference.dq[tick],
                        reference.ddq[tick], integral, out, work)
        return out.copy()
    return torque


def function_command(function: Any, reference: Reference, dof: int) -> Command:
    """A user's function f(t, q, dq, qr, dqr, ddqr) -> torques (dof,)."""
    times = reference.t

    def torque(tick: int, seen: Array, speed: Array) -> Array:
        asked = reference.q[tick], reference.dq[tick], reference.ddq[tick]
        answer = np.asarray(function(float(times[tick]), seen.copy(), speed.copy(), *asked), dtype=float)
        if answer.shape != (dof,):
            raise ModelError(f"the control function gave torques of shape {answer.shape}, expected {(dof,)}")
        if not np.isfinite(answer).all():
            raise ModelError(f"the control function gave a torque that is not finite for joint "
                             f"{int(np.argmin(np.isfinite(answer))) + 1} at {times[tick]:.4g} s")
        return answer
    return torque


def run(body: Body, command: Command, delay: int, lag: float, sensors: Sensors, reference: Reference, y: Array,
        fastest: Array, seat: tuple[int, int], out: Array, measured: Array) -> tuple[int, int]:
    """As `kernels.run`; seat: where in the state the measured position and velocity begin."""
    n, period = body.dof, 1.0 / reference.rate
    seen, speed, dy = np.zeros(n), np.zeros(n), np.zeros(len(y))
    held: list[Array] = []
    past, old = np.zeros((int(lag) + 2, n)), np.zeros(n)
    for tick in range(len(reference)):
        kernels.see(sensors, tick, period, y[seat[0]:seat[0] + n], y[seat[1]:seat[1] + n], seen, speed)
        kernels.lagged(past, tick, lag, speed, old)
        held.append(command(tick, seen, old))
        tau = held[max(tick - delay, 0)]
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
