"""Friction from load on closed chains: the gear of a driven joint carries the bodies that follow too."""

from __future__ import annotations

import numpy as np
import pytest

from dynid import dynamics
from dynid.dynamics.following import closed_chain
from dynid.model import Model, RigidBodies
from dynid.model.load_friction import LoadFriction
from dynid.robot import Robot
from dynid.simulation import ComputedTorque, Reference, simulate


@pytest.mark.parametrize("name", ["delta", "palletiser"])
def test_it_is_a_share_of_the_torque_of_all_bodies(name: str) -> None:
    robot = Robot.builtin(name)
    model = Model(robot, (RigidBodies(), LoadFriction()))
    begin, t = closed_chain(robot).begin[:robot.dof], np.arange(300)[:, None] / 1000.0
    speed = 4.0 + np.arange(robot.dof)
    q, dq = begin + 0.1 * np.sin(speed * t), 0.1 * speed * np.cos(speed * t)
    ddq = -0.1 * speed ** 2 * np.sin(speed * t)
    theta = np.array([0.2 if one.nominal is None else one.nominal for one in model.parameters.items])
    bodies = dynamics.inverse_dynamics(robot, None, q, dq, ddq)
    np.testing.assert_allclose(model.inverse_dynamics(theta, q, dq, ddq), bodies + 0.2 * np.abs(bodies) * np.sign(dq),
                               atol=1e-9 * np.abs(bodies).max())
    # A machine that turns one way only: its sign is that of the log, and the simulated motion obeys the same equation.
    reference = Reference.from_arrays(begin + 0.2 * t + 0.02 * t * np.sin(speed * t), rate=1000.0)
    bare = Model(robot)
    found = simulate(model, theta, ComputedTorque(bare, bare.parameters.nominal, 900.0, 60.0), reference, step=2.5e-4)
    moving = np.abs(found.dq).min(axis=1) > 0.05
    assert moving.sum() > 100
    wanted = model.inverse_dynamics(theta, found.q, found.dq, found.ddq)
    np.testing.assert_allclose(wanted[moving], found.tau[moving], atol=1e-6 * np.abs(found.tau).max())
