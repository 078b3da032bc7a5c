"""Consistent fits of data without noise: what motion leaves open stays of the robot's size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from refusals import refused

from dynid.consistency import Consistency, nearest
from dynid.errors import NotPossibleError
from dynid.estimate import Problem, identify
from dynid.model import Model, make_terms
from dynid.recording import Samples
from dynid.robot import Robot


def problem(name: str, noise: float = 0.0) -> tuple[Problem, np.ndarray]:
    """A robot that can exist, along sums of sines, with noise of a share of each joint's torque; its parameters."""
    robot = Robot.builtin(name)
    model = Model(robot, make_terms(robot, friction=("viscous", "coulomb")))
    theta = np.array([0.1 if item.body is None else item.nominal for item in model.parameters], dtype=float)
    consistency = Consistency(model.parameters)
    if consistency.slack(theta) <= 0:
        theta = nearest(consistency, theta).theta
    rng = np.random.default_rng(0)
    t = np.arange(2000)[:, None] / 200.0
    q, dq, ddq = np.zeros((3, 2000, robot.dof))
    for k in range(1, 6):
        w, a, phase = 0.2 * np.pi * k, rng.uniform(0.1, 0.35, robot.dof), rng.uniform(0, 2 * np.pi, robot.dof)
        q += a * np.sin(w * t + phase)
        dq += a * w * np.cos(w * t + phase)
        ddq -= a * w ** 2 * np.sin(w * t + phase)
    tau = model.inverse_dynamics(theta, q, dq, ddq)
    tau = tau + noise * np.sqrt(np.mean(tau ** 2, axis=0)) * rng.normal(size=tau.shape)
    return Problem.from_model(model, Samples.from_arrays(q, dq, ddq, tau, rate=200.0)), theta


@pytest.mark.parametrize("noise", [0.0, 1e-7])
@pytest.mark.parametrize("name", ["arm3r", "kuka-lwr4", "ur10", "staubli-tx40"])
def test_masses_stay_those_of_a_robot(name: str, noise: float) -> None:
    made, theta = problem(name, noise)
    masses = [places[9] for places in made.model.parameters.bodies.values()]
    truth = made.base.reduce(theta)
    for fill in ("auto", "central"):
        found = identify(made, method="pc-wls", fill_with=fill)
        assert found.theta is not None and found.diagnostics["filled_with"] != "none"
        assert found.theta[masses].sum() < 2.0 * theta[masses].sum()
        np.testing.assert_allclose(found.values, truth, atol=1e-6 * np.abs(truth).max() + 4.0 * found.std.max())
        assert found.diagnostics.relative_error < 1e-4 + 200.0 * noise


def test_torques_in_another_unit_are_still_refused() -> None:
    made, _ = problem("arm3r")
    large = [replace(part, tau=1e5 * part.tau) for part in made.data]
    with refused(NotPossibleError, "robot-too-heavy"):
        identify(Problem.from_model(made.model, large), method="pc-wls")
