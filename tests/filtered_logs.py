"""Recordings of simulated arms for tests of filtered equations: sums of sines with noise of positions and torques."""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array
from dynid.model import Model, make_terms
from dynid.recording import Recording
from dynid.robot import Robot


def simulated(name: str, *, seed: int = 0, seconds: float = 20.0, rate: float = 1000.0, positions: float = 0.0,
              torques: float = 0.0) -> tuple[Model, Array, Recording]:
    """A built-in robot with friction, its parameters, and a log: five sines of any frequency between 0.1 and 0.7 Hz a
    joint, noise of positions (rad) and of torques (share of each joint's deviation)."""
    robot = Robot.builtin(name)
    model = Model(robot, make_terms(robot, friction=("viscous", "coulomb", "offset")))
    stand_in = {"Fv": 2.0, "Fc": 3.0, "Fo": 0.3}
    theta = np.array([stand_in.get(p.symbol, 0.0) if p.nominal is None else p.nominal for p in model.parameters])
    rng, t = np.random.default_rng(100), np.arange(int(seconds * rate)) / rate
    q, dq, ddq = np.zeros((3, len(t), robot.dof))
    for _ in range(5):
        w, (a, b) = 2 * np.pi * rng.uniform(0.1, 0.7, robot.dof), 0.4 * rng.normal(size=(2, robot.dof))
        s, c = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
        q += a * s + b * c
        dq += w * (a * c - b * s)
        ddq -= w ** 2 * (a * s + b * c)
    tau, noise = model.inverse_dynamics(theta, q, dq, ddq), np.random.default_rng(seed)
    tau = tau + noise.normal(size=tau.shape) * torques * tau.std(axis=0)
    return model, theta, Recording(t=t, q=q + noise.normal(size=q.shape) * positions, tau=tau, joints=robot.joint_names)
