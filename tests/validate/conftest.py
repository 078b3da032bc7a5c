"""Simulated logs with known truth: sums of sines, torques by inverse dynamics, white noise added."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest

from dynid.arrays import Array
from dynid.estimate import Estimate, Problem, identify
from dynid.model import LinearModel, Model, make_terms
from dynid.recording import Samples
from dynid.robot import Robot


@dataclass(frozen=True, eq=False)
class Log:
    """Samples of a model and the parameters behind them."""

    model: LinearModel
    theta: Array
    samples: Samples

    def problem(self, model: LinearModel | None = None, **options: object) -> Problem:
        return Problem.from_model(model or self.model, self.samples, **options)

    def fitted(self, method: str = "wls", model: LinearModel | None = None) -> tuple[Problem, Estimate]:
        problem = self.problem(model)
        return problem, identify(problem, method=method)

    def with_torque(self, tau: Array) -> Log:
        return replace(self, samples=replace(self.samples, tau=tau))


def motion(dof: int, rows: int = 2000, rate: float = 200.0, seed: int = 0, size: float = 1.0,
           frozen: tuple[int, ...] = (), speed: float = 1.0) -> tuple[Array, Array, Array, Array]:
    """t (rows,), q, dq, ddq (rows, dof): five sines a joint with their derivatives in closed form."""
    rng = np.random.default_rng(seed)
    t = np.arange(rows) / rate
    q, dq, ddq = np.zeros((3, rows, dof))
    for j in range(dof):
        for k in range(1, 6):
            w, a, phase = 2 * np.pi * 0.1 * k * speed, size * rng.uniform(0.1, 0.35), rng.uniform(0, 2 * np.pi)
            q[:, j] += a * np.sin(w * t + phase)
            dq[:, j] += a * w * np.cos(w * t + phase)
            ddq[:, j] -= a * w ** 2 * np.sin(w * t + phase)
    q += rng.uniform(-0.3, 0.3, dof)
    for j in frozen:
        q[:, j], dq[:, j], ddq[:, j] = 0.4, 0.0, 0.0
    return t, q, dq, ddq


def simulated(model: LinearModel, theta: Array, *, noise: float = 0.02, seed: int = 0, source: str = "simulated",
              **how: object) -> Log:
    """Torques along a motion with white noise of `noise` times each joint's RMS torque."""
    t, q, dq, ddq = motion(model.dof, seed=seed, **how)
    tau = model.regressor(q, dq, ddq) @ theta
    scale = np.sqrt(np.mean(tau ** 2, axis=0))
    tau = tau + noise * scale * np.random.default_rng(seed + 1).normal(size=tau.shape)
    rate = 1.0 / (t[1] - t[0])
    return Log(model, theta, Samples.from_arrays(q, dq, ddq, tau, t=t, rate=rate, source=source))


def robot_model(name: str, friction: tuple[str, ...] = ("viscous", "coulomb", "offset")) -> Model:
    robot = Robot.builtin(name)
    return Model(robot, make_terms(robot, friction=friction))


@pytest.fixture(scope="session")
def simulate() -> Callable[..., Log]:
    """simulate("arm3r", ...): a log of a built-in robot with its published parameters, changes={"Fv2": -0.3} of them;
    simulate(model, theta=...): of any model."""
    def make(name: str | LinearModel, *, friction: tuple[str, ...] = ("viscous", "coulomb", "offset"),
             changes: dict[str, float] | None = None, theta: Array | None = None, **how: object) -> Log:
        if not isinstance(name, str):
            return simulated(name, np.asarray(theta, dtype=float), **how)
        model = robot_model(name, friction)
        theta = np.array([0.0 if value.nominal is None else value.nominal for value in model.parameters])
        if name == "kuka-lwr4":  # the document's own Fv6 is below zero
            theta[model.parameters.index("Fv6")] = 0.0132
        for parameter, value in (changes or {}).items():
            theta[model.parameters.index(parameter)] = value
        return simulated(model, theta, **how)

    return make
