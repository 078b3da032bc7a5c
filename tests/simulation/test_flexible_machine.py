"""Simulated flexible joints: against scipy, against rigid ones, and what a virtual robot logs of them."""

from __future__ import annotations

import numpy as np
from flexible_arm import LAW, flexible_arm, motion
from refusals import refused
from scipy.integrate import solve_ivp

from dynid.errors import ModelError
from dynid.model import Model, make_terms
from dynid.robot import Robot
from dynid.simulation import Flexible, Reference, TorqueDriven, VirtualRobot, simulate
from dynid.simulation.plant import flexible_machine


def test_a_carriage_on_a_spring_moves_as_scipy_says() -> None:
    """Two masses, spring, damper, viscous friction on either: steps are chosen by themselves."""
    emps = Robot.builtin("emps")
    model = Model(emps, make_terms(emps, friction=["viscous"]))
    theta = np.array([{"M": 95.0, "Fv": 20.0}.get(p.symbol, 0.0) for p in model.parameters])
    t = np.arange(500) / 1000.0  # some twenty periods of the spring
    force = 50.0 * np.sin(20.0 * t)
    still = np.zeros((len(t), 1))
    ours = simulate(model, theta, TorqueDriven(force[:, None]), Reference(still, still, still, 1000.0),
                    flexible=Flexible(2e6, 300.0, rotor=40.0, viscous=15.0))

    def rates(time: float, y: np.ndarray) -> list[float]:
        spring = 2e6 * (y[1] - y[0]) + 300.0 * (y[3] - y[2])
        held = force[min(int(time * 1000.0 + 1e-9), len(force) - 1)]
        return [y[2], y[3], (spring - 20.0 * y[2]) / 95.0, (held - spring - 15.0 * y[3]) / 40.0]

    theirs = solve_ivp(rates, (0.0, t[-1]), np.zeros(4), t_eval=t, rtol=1e-9, atol=1e-12, max_step=2e-4).y
    assert ours.motors is not None
    assert np.abs(ours.q[:, 0] - theirs[0]).max() < 2e-3 * np.abs(theirs[0]).max()
    bend, expected = ours.motors[0][:, 0] - ours.q[:, 0], theirs[1] - theirs[0]
    assert np.abs(bend - expected).max() < 0.02 * np.ptp(expected)


def test_infinite_stiffness_is_a_rigid_joint() -> None:
    model, theta = flexible_arm()
    links, values, _ = flexible_machine(model, theta)
    rigid = Model(links.robot, (*links.terms, *make_terms(links.robot, rotor=True)[1:]))
    own = np.array([{"Ia": 0.2}.get(p.symbol, dict(zip(links.parameters.names, values, strict=True)).get(p.name, 0.0))
                    for p in rigid.parameters])
    path = motion(seconds=1.0)
    plain = simulate(rigid, own, LAW, path, step=2.5e-4)
    mixed = simulate(rigid, own, LAW, path, step=2.5e-4, flexible=Flexible(np.inf, rotor=None))
    np.testing.assert_allclose(mixed.q, plain.q, atol=1e-12)
    assert mixed.motors is not None
    np.testing.assert_allclose(mixed.motors[0], plain.q, atol=1e-12)


def test_noise_free_logs_of_both_sides_hold_the_equations() -> None:
    model, theta = flexible_arm(Fcm=0.0)
    run = simulate(model, theta, LAW, motion(seconds=2.0))
    assert run.motors is not None
    state = [np.hstack(pair) for pair in zip((run.q, run.dq, run.ddq), run.motors, strict=True)]
    np.testing.assert_allclose(model.inverse_dynamics(theta, *state), np.hstack([run.tau, run.tau]), atol=1e-6)


def test_a_virtual_robot_logs_both_encoders_and_sensors() -> None:
    model, theta = flexible_arm()
    log = VirtualRobot(model, theta, LAW, sensor_noise=0.0).record(motion(seconds=1.0))
    assert log.motor_position is not None and log.sensed_torque is not None
    bend = log.motor_position - log.q
    assert np.corrcoef(bend[100:, 1], log.sensed_torque[100:, 1])[0, 1] > 0.99
    motors = VirtualRobot(model, theta, LAW, link_encoders=False).record(motion(seconds=1.0))
    assert motors.motor_position is None
    np.testing.assert_allclose(motors.q, log.motor_position, atol=1e-12)
    late = VirtualRobot(model, theta, LAW, skew=0.002).record(motion(seconds=1.0))
    assert late.motor_position is not None
    np.testing.assert_allclose(late.motor_position[102:], log.motor_position[100:-2], atol=1e-7)


def test_springs_that_cannot_be_are_refused() -> None:
    model, theta = flexible_arm()
    links, values, _ = flexible_machine(model, theta)
    with refused(ModelError, "bad-flexible-joint"):
        simulate(links, values, LAW, motion(seconds=0.1), flexible=Flexible(-1.0, rotor=0.1))
