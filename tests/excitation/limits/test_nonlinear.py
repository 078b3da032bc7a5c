"""Limits that are not linear in a motion: torques and workspace, their values and gradients."""

from __future__ import annotations

import numpy as np
import pytest
from robots import random_robot

from dynid import dynamics
from dynid.excitation import HalfSpace, Information, Workspace
from dynid.excitation.limits.nonlinear import OVERLAP, TorqueLimit, WorkspaceLimit
from dynid.model import Model
from dynid.regression import base_parameters
from dynid.robot import Robot


def test_gradient_of_torques() -> None:
    rng = np.random.default_rng(9)
    robot = random_robot(rng, 4)
    model = Model(robot)
    base = base_parameters(model)
    q, dq, ddq = rng.normal(size=(3, 8, 4))
    limit = TorqueLimit(Information.from_model(model, base), base.reduce(robot.inertias.ravel()),
                        np.array([1.0, 2, 3, 4]), robot.joint_names)
    torques = dynamics.inverse_dynamics(robot, None, q, dq, ddq)
    np.testing.assert_allclose(limit.torques(q, dq, ddq), torques, atol=1e-8 * np.abs(torques).max())
    columns = np.arange(8)
    slope = limit.gradient(q, dq, ddq, columns)
    for which in range(3):
        for j in range(4):
            step = np.zeros((3, 8, 4))
            step[which, :, j] = 1e-6
            up, down = limit.values(*(np.array([q, dq, ddq]) + step)), limit.values(*(np.array([q, dq, ddq]) - step))
            expected = ((up - down) / 2e-6)[np.arange(8), columns]
            np.testing.assert_allclose(slope[:, which, j], expected, atol=1e-5 * (1 + np.abs(expected).max()))


def test_workspace_limit_is_the_overlap_and_its_slope() -> None:
    robot = Robot.builtin("arm3r")
    space = Workspace.from_robot(robot, radius=0.03, planes=[HalfSpace((0, 0, 1), -0.1, "table")])
    limit = WorkspaceLimit(space, margin=0.0)
    rng = np.random.default_rng(3)
    columns = np.arange(len(space.names))
    q = rng.normal(size=(len(columns), 3))
    zero = np.zeros_like(q)
    np.testing.assert_allclose(limit.values(q, zero, zero) * OVERLAP, -space.slack(q), atol=1e-12)
    slope = limit.gradient(q, zero, zero, columns)
    assert not slope[:, 1:].any()  # speed and acceleration do not touch
    for j in range(3):
        step = np.zeros_like(q)
        step[:, j] = 1e-6
        up, down = limit.values(q + step, zero, zero), limit.values(q - step, zero, zero)
        np.testing.assert_allclose(slope[:, 0, j], ((up - down) / 2e-6)[columns, columns], atol=1e-5)
    assert limit.tightened(0.1).values(q, zero, zero) == pytest.approx(limit.values(q, zero, zero) + 0.1)
