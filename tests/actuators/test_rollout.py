"""The compiled rollout: order of its error at stops and reversals, open windings, encoders in the loop."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid.actuators import ActuatorLog, pendulum
from dynid.actuators.chains import robot_chains
from dynid.actuators.encoder import encoder_count
from dynid.actuators.laws import LAWS
from dynid.actuators.problem import ChainLog, ChainProblem
from dynid.actuators.refinement import jacobian, scales
from reproductions._mujoco_servos import Machine
from reproductions._servos import Servo, motions, simulate

RATE, ROWS, COUNT = 100.0, 300, 2 * np.pi / 4096
GAINS = {"kp": 8.0, "kd": 0.15}
LOAD = {"coulomb": 0.05, "viscous": 0.05, "stribeck": 0.04, "stribeck_speed": 0.3, "load_motor": 0.15,
        "load_external": 0.05, "stribeck_load_motor": 0.08, "stribeck_load_external": 0.05}
KNOWN = {"armature": 0.01, "delay": 0.02, **LOAD, **GAINS}


def problem_of(law="pd", known=KNOWN, q=None, **other):
    command = motions(1, ROWS, RATE, 5)[0]
    q = np.full(ROWS, command[0]) if q is None else q
    log = dynid.Recording.from_commands(np.arange(ROWS) / RATE, q[:, None], command[:, None], joints=("j",), **other)
    chain = robot_chains(pendulum(0.5, 0.15))[0]
    one = ChainLog.from_log(chain, ActuatorLog(log), LAWS[law], 0.1, None)
    one.signals.first[:] = [[[command[0]], [0.0]]]
    return ChainProblem(LAWS[law], ("j",), (one,), (known,), ())


def every_position(problem, step, encoder=None):
    from dataclasses import replace
    return replace(problem, step=step).simulate(np.zeros(0), problem.logs[0], encoder)


def positions(problem, step, encoder=None):
    return every_position(problem, step, encoder)[:, 0]


def test_the_error_falls_with_the_square_of_the_step_and_plain_numpy_agrees():
    problem = problem_of()
    finest = positions(problem, 5e-5)
    errors = [np.sqrt(np.mean((positions(problem, step) - finest) ** 2)) for step in (2.5e-3, 1.25e-3, 6.25e-4)]
    assert errors[0] > 3.0 * errors[1] > 9.0 * errors[2]
    servo = Servo(0.5, 0.15, 0.01, "pd", GAINS, LOAD, delay=0.02)
    truth = simulate([servo], motions(1, ROWS, RATE, 5), RATE, bits=None)[0]
    assert np.sqrt(np.mean((finest - truth) ** 2)) < 3e-6  # rad; the motion is of 1 rad


def test_the_error_of_joints_that_move_each_other_falls_with_the_square_of_the_step():
    """With centrifugal and Coriolis torques of the start of a step it fell in proportion to the step."""
    machine = Machine.from_kind("arm", 3)
    robot = machine.robot()
    chain, law, names = robot_chains(robot)[0], LAWS["pd"], tuple(machine.truth)
    command = motions(len(names), ROWS, RATE, 5).T
    log = dynid.Recording.from_commands(np.arange(ROWS) / RATE, command, command, joints=names)
    one = ChainLog.from_log(chain, ActuatorLog(log), law, 0.1, None)
    one.signals.first[:] = [[command[0], np.zeros(len(names))]]
    problem = ChainProblem(law, names, (one,), tuple({**own, **machine.gains} for own in machine.truth.values()), ())
    finest = every_position(problem, 6.25e-5)
    errors = [np.sqrt(np.mean((every_position(problem, step) - finest) ** 2)) for step in (2e-3, 1e-3, 5e-4)]
    assert errors[0] > 3.0 * errors[1] > 9.0 * errors[2]


def test_a_drive_that_is_switched_off_lets_the_pendulum_swing():
    known = {"armature": 0.0, "coulomb": 0.0, "viscous": 0.0, "kp": 32.0, "gain": 0.04, "kt": 1.0, "resistance": 2.0}
    swing = positions(problem_of("voltage", known, voltage=np.zeros((ROWS, 1))), 5e-4)
    assert np.max(np.abs(swing)) == pytest.approx(abs(swing[0]), rel=1e-3)  # no back-EMF brakes it
    zero = np.flatnonzero(np.diff(np.sign(swing)) != 0)
    period, amplitude = 2 * np.mean(np.diff(zero)) / RATE, abs(swing[0])
    assert period == pytest.approx(2 * np.pi * np.sqrt(0.15 / 9.81) * (1 + amplitude ** 2 / 16 + 11 * amplitude ** 4
                                                                       / 3072), rel=0.02)


def test_an_encoder_rounds_what_the_log_and_the_drive_see():
    problem = problem_of()
    plain = positions(problem, 1e-3)
    rounded = positions(problem, 1e-3, (np.array([COUNT]), np.array([0.3 * COUNT])))
    counts = (rounded - 0.3 * COUNT) / COUNT
    np.testing.assert_allclose(counts, np.round(counts), atol=1e-9)
    assert 0.2 * COUNT < np.sqrt(np.mean((rounded - plain) ** 2)) < 2 * COUNT


@pytest.mark.parametrize("count", [COUNT, 2 * np.pi / 1024])
def test_the_count_of_an_encoder_is_found(count):
    q = motions(1, 500, RATE, 9)[0]
    assert encoder_count(np.round(q / count) * count) == pytest.approx(count, rel=1e-3)
    degrees = np.rad2deg(np.round(q / count) * count).astype(np.float32)
    assert encoder_count(np.deg2rad(degrees.astype(float))) == pytest.approx(count, rel=1e-2)
    assert encoder_count(q) == 0.0
    assert encoder_count(np.zeros(100)) == 0.0


def test_states_at_starts_share_simulations():
    """Sensitivities to the states of all segments come from one pair of simulations; alone they are the same."""
    from dataclasses import replace
    problem = problem_of()
    log = problem.logs[0]
    signals = replace(log.signals, starts=np.array([0, 100, 200]), first=np.repeat(log.signals.first, 3, axis=0))
    problem = replace(problem, logs=(replace(log, signals=signals),)).estimating(("armature",)).with_starts()
    x = problem.start([{"armature": 0.01}])
    assert len(x) == 7
    steps = 1e-3 * scales(problem, x)
    whole = jacobian(problem, x, scales(problem, x), 1e-3)
    for k, step in enumerate(np.diag(steps)):
        alone = (problem.coarse.residuals(x - step) - problem.coarse.residuals(x + step)) / (2.0 * steps[k])
        np.testing.assert_allclose(alone, whole[:, :, k], atol=1e-9)


def test_a_target_follows_its_command_at_the_limited_speed():
    """A step of 1 rad at 2 rad/s: a ramp of half a second, by hand."""
    command = np.where(np.arange(ROWS) < 100, 0.0, 1.0)
    log = dynid.Recording.from_commands(np.arange(ROWS) / RATE, np.zeros((ROWS, 1)), command[:, None], joints=("j",))
    signals = ChainLog.from_log(robot_chains(pendulum(0.5, 0.15))[0], ActuatorLog(log), LAWS["pd"], 0.1, None).signals
    target = signals.at_speeds(np.array([2.0]))
    assert signals.at_speeds(np.array([np.inf])) is signals
    expected = np.clip(2.0 * (np.arange(ROWS) - 100) / RATE, 0.0, 1.0)
    np.testing.assert_allclose(target.command[:, 0], expected, atol=1e-12)
    means = np.clip(2.0 * (np.arange(ROWS) + 0.5 - 100) / RATE, 0.0, 1.0)  # over each interval
    np.testing.assert_allclose(np.diff(target.total[:, 0]), means[:-1] / RATE, atol=1e-12)


def test_switching_off_arrives_with_the_delay_of_commands():
    """A pendulum is held until its drive is switched off at 1 s; with a delay it falls that much later."""
    voltage = np.where(np.arange(ROWS) < 100, 12.0, 0.0)[:, None]
    known = {"kp": 32.0, "gain": 0.166, "limit": 0.97, "vin": float("nan"), "kt": 1.0, "resistance": 2.0,
             "armature": 0.01, "coulomb": 0.01, "viscous": 0.01}
    log = dynid.Recording.from_commands(np.arange(ROWS) / RATE, np.full((ROWS, 1), 1.2), np.full((ROWS, 1), 1.25),
                                        joints=("j",), voltage=voltage)
    one = ChainLog.from_log(robot_chains(pendulum(0.5, 0.15))[0], ActuatorLog(log), LAWS["voltage"], 0.1, None)
    falls = []
    for delay in (0.0, 0.03):
        problem = ChainProblem(LAWS["voltage"], ("j",), (one,), ({**known, "delay": delay},), ())
        falls.append(positions(problem, 1e-3))
    assert np.ptp(falls[0][:100]) < 0.05 < np.ptp(falls[0][100:])
    np.testing.assert_allclose(falls[1][130:200], falls[0][127:197], atol=2e-3)  # three rows later


def replace_commands(one, command):
    log = dynid.Recording.from_commands(one.signals.t, one.signals.q, command[:, None], joints=("j",))
    found = ChainLog.from_log(one.chain, ActuatorLog(log), LAWS["pd"], 0.1, None)
    found.signals.first[:] = one.signals.first
    return found


def test_a_limited_target_moves_the_joint_as_a_ramp_of_many_small_steps_does():
    """The servo of the independent simulation gets the ramp itself, in commands of half a millisecond."""
    fine, every = 2000.0, 20
    t = np.arange(ROWS * every) / fine
    command = np.repeat(np.where((np.arange(ROWS) // 60) % 2 == 0, 0.3, -0.4), every)
    target, limit = np.empty_like(command), 1.7
    target[0] = command[0]
    for k in range(1, len(t)):
        target[k] = target[k - 1] + np.clip(command[k - 1] - target[k - 1], -limit / fine, limit / fine)
    servo = Servo(0.5, 0.15, 0.01, "pd", {"kp": 8.0, "kd": 0.15}, {"coulomb": 0.05, "viscous": 0.05})
    middle = np.append(0.5 * (target[1:] + target[:-1]), target[-1])  # means of the ramp
    truth = simulate([servo], middle[None], fine, bits=None)[0][::every]
    log = dynid.Recording.from_commands(np.arange(ROWS) / RATE, truth[:, None], command[::every, None], joints=("j",))
    one = ChainLog.from_log(robot_chains(pendulum(0.5, 0.15))[0], ActuatorLog(log), LAWS["pd"], 0.1, None)
    one.signals.first[:] = [[[command[0]], [0.0]]]
    known = {"kp": 8.0, "kd": 0.15, "armature": 0.01, "coulomb": 0.05, "viscous": 0.05, "speed_limit": limit}
    found = positions(ChainProblem(LAWS["pd"], ("j",), (one,), (known,), ()), 1e-3)
    held = replace_commands(one, middle.reshape(ROWS, every).mean(axis=1))
    means = positions(ChainProblem(LAWS["pd"], ("j",), (held,), ({**known, "speed_limit": np.inf},), ()), 1e-3)
    assert np.abs(found - truth).max() < 1e-5 < 0.1 * np.abs(means - truth).max()  # rad
