"""Torque over bend: stiffness, damping and hysteresis from sensors; a resonance where only motors were logged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from flexible_arm import LAW, ROBOT, flexible_arm, motion

from dynid.estimate import Estimate, Problem, identify
from dynid.model import Model, make_terms
from dynid.recording import Recording, Samples
from dynid.recording.measured import add_motor_side
from dynid.recording.sample_preparation import prepare
from dynid.simulation import PD, VirtualRobot
from dynid.validate import deflections, reconstruct, verdict
from dynid.validate.resonance import resonances


def _rigid(log: Recording) -> tuple[Problem, Estimate, Samples]:
    model = Model(ROBOT, make_terms(ROBOT, friction=["viscous", "coulomb"], rotor=True))
    samples = prepare(log)
    problem = Problem.from_model(model, samples, recordings=log)
    return problem, identify(problem, method="wls"), samples


def test_sensors_give_stiffness_and_hysteresis_without_a_flexible_model() -> None:
    """0.2 N m of hysteresis on top of the simulated spring of the second joint."""
    model, theta = flexible_arm()
    log = VirtualRobot(model, theta, LAW, position_noise=2e-6, torque_noise=0.02, sensor_noise=0.05).record(motion())
    clean = VirtualRobot(model, theta, LAW).run(motion())
    assert clean.motors is not None and log.sensed_torque is not None
    sensed = log.sensed_torque.copy()
    sensed[:, 1] += 0.2 * np.sign(clean.motors[1] - clean.dq)[:, 1]
    log = replace(log, sensed_torque=sensed)
    _, estimate, samples = _rigid(log)
    found = {one.joint: one for one in deflections(estimate, (samples,), (log,))}
    assert set(found) == set(ROBOT.joint_names) and {one.origin for one in found.values()} == {"sensor"}
    for one in found.values():
        assert one.stiffness[0] == pytest.approx(1000.0, rel=0.01)
        assert one.to_dict()["skew"] is None
    assert found["joint2"].hysteresis[0] == pytest.approx(0.2, abs=0.03)
    for name in ("joint1", "joint3"):
        assert abs(found[name].hysteresis[0]) <= max(4.0 * found[name].hysteresis[1], 0.01)


def test_without_sensors_the_torque_is_that_of_the_motor_less_its_own() -> None:
    model, _ = flexible_arm(skew=True)
    machine, truth = flexible_arm()
    log = add_motor_side(VirtualRobot(machine, truth, LAW, position_noise=2e-6, torque_noise=0.02).record(motion()),
                     model.bending)
    samples = prepare(log)
    estimate = identify(Problem.from_model(model, samples, recordings=log), method="wls")
    found = deflections(estimate, (samples,), (log,))
    assert [one.joint for one in found] == list(ROBOT.joint_names) and found[0].origin == "model"
    assert found[1].stiffness[0] == pytest.approx(1000.0, rel=0.02)
    assert found[1].skew is not None and abs(found[1].skew[0]) <= 4.0 * found[1].skew[1]


def test_without_both_positions_there_is_nothing_to_show() -> None:
    model, theta = flexible_arm()
    log = VirtualRobot(model, theta, LAW, link_encoders=False).record(motion(seconds=5.0))
    _, estimate, samples = _rigid(log)
    assert deflections(estimate, (samples,), (log,)) == ()


@pytest.mark.parametrize("bends", [True, False])
def test_a_resonance_of_motors_is_named_and_only_where_there_is_one(bends: bool) -> None:
    """Hardly damped joints in a soft loop swing after every reversal, between 16 and 20 Hz over the postures; the same
    robot with rigid joints does not."""
    model, theta = flexible_arm(D=0.2, Fv=0.02)
    soft = PD(np.full(3, 100.0), np.full(3, 10.0))
    noise = {"encoder": 2.0 * np.pi / 2 ** 18, "position_noise": 5e-6, "torque_noise": 0.02}
    machine = VirtualRobot(model, theta, soft, link_encoders=False, **noise) if bends else \
        VirtualRobot(model.rigid, model.rigid_values(theta), soft, **noise)
    log = machine.record(motion(31, seconds=15.0), seed=1)
    problem, estimate, samples = _rigid(log)
    found = resonances(estimate, (samples,), (log,))
    assert bool(found) == bends
    assert all(14.0 < one.frequency < 21.0 for one in found)
    said = [one for one in verdict(estimate, problem, reconstruction=reconstruct(estimate, samples)).findings
            if one.code == "resonance"]
    assert len(said) == bends
    if said:
        assert said[0].severity == "info" and "joint2" in said[0].joints
