"""Closed chains and mimic joints in compiled simulations: their equations, their energy, and where loops open."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refused

from dynid import dynamics
from dynid.arrays import Array
from dynid.dynamics.following import closed_chain
from dynid.errors import NotPossibleError
from dynid.model import Model, RigidBodies
from dynid.model.completion import can_compile
from dynid.model.terms import Spring
from dynid.robot import Body, Joint, Robot
from dynid.robot.followers import Mimic, followed
from dynid.robot.pose import translation
from dynid.simulation import PD, ComputedTorque, Reference, TorqueDriven, simulate

NAMES = ("delta", "four-bar", "palletiser")


def swing(robot: Robot, begin: Array, seconds: float = 0.5, size: float = 0.15) -> Reference:
    t = np.arange(round(1000 * seconds))[:, None] / 1000.0
    speed = 4.0 + np.arange(robot.dof)
    return Reference.from_arrays(begin + size * (1.0 - np.cos(speed * t)), rate=1000.0)


@pytest.mark.parametrize("name", NAMES)
def test_computed_torque_follows_and_the_equations_hold(name: str) -> None:
    robot = Robot.builtin(name)
    model = Model(robot)
    assert can_compile(model)
    theta = model.parameters.nominal
    reference = swing(robot, closed_chain(robot).begin[:robot.dof])
    found = simulate(model, theta, ComputedTorque(model, theta, 400.0, 40.0), reference)
    assert np.abs(found.q - reference.q).max() < 2e-3
    # The same equations by the kernels over batches, which are MuJoCo's to 1e-10.
    scale = np.abs(found.tau).max()
    np.testing.assert_allclose(model.inverse_dynamics(theta, found.q, found.dq, found.ddq), found.tau,
                               atol=1e-9 * scale)
    np.testing.assert_allclose(model.forward_dynamics(theta, found.q, found.dq, found.tau), found.ddq,
                               atol=1e-7 * np.abs(found.ddq).max())


def test_a_law_and_the_same_law_as_a_function_give_the_same_motion() -> None:
    robot = Robot.builtin("delta")
    model = Model(robot)
    theta, reference = model.parameters.nominal, swing(robot, closed_chain(robot).begin[:3], 0.2)
    law = simulate(model, theta, PD(200.0, 10.0), reference)
    function = simulate(model, theta, lambda t, q, dq, qr, dqr, ddqr: 200.0 * (qr - q) + 10.0 * (dqr - dq), reference)
    np.testing.assert_allclose(law.q, function.q, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_energy_is_kept_over_five_seconds(name: str) -> None:
    """Without torques; springs pull a machine with limits back, so that it does not fall to where branches meet."""
    robot = Robot.builtin(name)
    begin = closed_chain(robot).begin[:robot.dof]
    limited = [name for name, upper in zip(robot.joint_names, robot.limit("upper"), strict=True) if np.isfinite(upper)]
    stiffness = 400.0
    rest = dict(zip(robot.joint_names, begin + dynamics.gravity(robot, None, begin) / stiffness, strict=True))
    springs = tuple(Spring(name, rest=float(rest[name])) for name in limited)
    model = Model(robot, (RigidBodies(), *springs))
    theta = np.array([stiffness if one.nominal is None else one.nominal for one in model.parameters.items])
    still = np.zeros((5001, robot.dof))
    reference = Reference(np.tile(begin, (5001, 1)), still, still, 1000.0)
    found = simulate(model, theta, TorqueDriven(still), reference, step=5e-4,
                     start=[begin + 0.02, 0.1 * np.ones(robot.dof)])
    bodies = model.body_numbers(theta)
    kinetic = dynamics.kinetic_energy(robot, bodies, found.q, found.dq)
    energy = kinetic + dynamics.potential_energy(robot, bodies, found.q)
    for spring in springs:
        energy = energy + 0.5 * stiffness * (found.q[:, robot.joint_index(spring.joint)] - spring.rest) ** 2
    assert np.abs(found.dq).max() > 0.1
    assert np.abs(energy - energy[0]).max() < 1e-6 * max(abs(energy[0]), kinetic.max())


def test_where_loops_open_the_time_and_the_joints_are_said() -> None:
    robot = Robot.builtin("delta")
    model = Model(robot)
    reference = swing(robot, closed_chain(robot).begin[:3])
    push = np.tile([60.0, -60.0, 60.0], (len(reference), 1))
    with refused(NotPossibleError, "loops-open", "motor1"):
        simulate(model, model.parameters.nominal, TorqueDriven(push), reference, step=2.5e-4)


def test_mimic_joints_are_simulated_as_part_of_the_joint_they_follow() -> None:
    inertia = np.array([0.02, 0.0, 0.0, 0.03, 0.0, 0.05, 0.2, 0.1, 0.0, 1.5])
    tree = Robot("hand", tuple(Joint(name, "revolute", parent, translation(x, 0.0, 0.0)) for name, parent, x in
                               (("thumb", -1, 0.0), ("finger", 0, 0.3))),
                 (Body("a", inertia), Body("b", inertia)), gravity=np.array([0.0, -9.81, 0.0]))
    robot = followed(tree, {"finger": Mimic("thumb", -1.5, 0.2)})
    model = Model(robot)
    reference = swing(robot, np.array([0.3]))
    found = simulate(model, model.parameters.nominal, PD(50.0, 5.0), reference)
    np.testing.assert_allclose(model.inverse_dynamics(model.parameters.nominal, found.q, found.dq, found.ddq),
                               found.tau, atol=1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_a_push_on_a_body_that_follows(name: str) -> None:
    """By power, with no Jacobian of ours: torques less those without the push, times the speeds, are the push along
    the motion of its point, whose speed comes from positions alone."""
    robot = Robot.builtin(name)
    model, theta = Model(robot), Model(robot).parameters.nominal
    body = robot.followers.tree.body_names[robot.followers.bodies[0]]
    push = dynamics.Wrench(body, [3.0, -2.0, 5.0, 0.0, 0.0, 0.0])
    reference = swing(robot, closed_chain(robot).begin[:robot.dof], 0.2)
    found = simulate(model, theta, ComputedTorque(model, theta, 400.0, 40.0), reference, wrenches=(push,))
    free = model.inverse_dynamics(theta, found.q, found.dq, found.ddq)
    step = 1e-6
    ahead, back = (dynamics.frame_pose(robot, body, found.q + side * step * found.dq)[:, :3, 3] for side in (1, -1))
    speed = (ahead - back) / (2.0 * step)
    power = np.sum((free - found.tau) * found.dq, axis=1)
    np.testing.assert_allclose(power, speed @ [3.0, -2.0, 5.0], atol=1e-6 * np.abs(power).max() + 1e-9)
    assert np.abs(power).max() > 0.01
