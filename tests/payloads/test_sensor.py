"""A force-torque sensor: its columns against Pinocchio, and what hangs behind it against known truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from loads import CENTRE, FRAME, LOAD, MASS, arm
from refusals import refused
from robots import to_pinocchio
from scipy.spatial.transform import Rotation

import dynid
from dynid.errors import ModelError, NotPossibleError
from dynid.payloads import fused
from dynid.payloads.sensor import wrench_columns
from dynid.recording import Samples


def with_wrench(log: Samples, turn: np.ndarray, sign: float, seed: int) -> Samples:
    rng = np.random.default_rng(seed)
    wrench = wrench_columns(arm().model.robot, FRAME, log) @ LOAD
    wrench = sign * np.hstack([wrench[:, :3] @ turn.T, wrench[:, 3:] @ turn.T]) + [3.0, -2.0, 5.0, 0.1, 0.2, -0.1]
    return replace(log, wrench=wrench + rng.normal(size=wrench.shape) * np.array([0.3] * 3 + [0.02] * 3))


def test_columns_are_the_wrench_that_pinocchio_gives():
    robot = arm().model.robot
    model = to_pinocchio(robot)
    rng = np.random.default_rng(0)
    q, dq, ddq = rng.normal(size=(3, 5, 7))
    found = wrench_columns(robot, FRAME, dynid.Samples.from_arrays(q, dq, ddq, 0 * q)) @ LOAD
    place = robot.frame(FRAME)
    data = model.createData()
    inertia = pin.Inertia.FromDynamicParameters(dynid.robot.inertia.to_pinocchio(LOAD))
    for k in range(5):
        pin.forwardKinematics(model, data, q[k], dq[k], ddq[k])
        frame = pin.SE3(place.pose[:3, :3], place.pose[:3, 3])
        joint = model.njoints - 1
        speed, turn = frame.actInv(data.v[joint]), (data.oMi[joint] * frame).rotation
        change = frame.actInv(data.a[joint])
        change.linear -= turn.T @ robot.gravity
        force = inertia * change + speed.cross(inertia * speed)
        np.testing.assert_allclose(found[k], np.concatenate([force.linear, force.angular]), atol=1e-9)


@pytest.mark.parametrize(("angles", "sign"), [((0.0, 0.0, 0.0), 1.0), ((0.1, -0.2, 0.8), -1.0), ((0, 0, 1.57), 1.0)])
def test_what_hangs_behind_the_sensor(angles, sign):
    turn = Rotation.from_rotvec(angles).as_matrix()
    log = with_wrench(arm().log(11), turn, sign, 1)
    found, mounting = dynid.payloads.sensor_payload(arm().model.robot, log, FRAME)
    assert abs(found.mass - MASS) < 3.5 * found.mass_std < 0.05
    assert np.all(np.abs(found.centre - CENTRE) < np.maximum(3.5 * found.centre_std, 2e-4))
    assert mounting.sign == sign
    assert mounting.straight == (angles == (0.0, 0.0, 0.0))
    np.testing.assert_allclose(mounting.rotation, turn, atol=5e-3)
    np.testing.assert_allclose(mounting.bias, [3.0, -2.0, 5.0, 0.1, 0.2, -0.1], atol=0.05)


def test_torques_and_sensor_together_are_at_least_as_sure_as_either():
    machine = arm()
    problem = dynid.Problem.from_model(machine.model, machine.log(1))
    log = with_wrench(machine.log(2, machine.loaded(LOAD)), np.eye(3), 1.0, 2)
    torques = dynid.payload(dynid.identify(problem, method="wls"), log, FRAME, unloaded=problem)
    sensor, _ = dynid.payloads.sensor_payload(machine.model.robot, log, FRAME)
    both = fused(torques, sensor)
    assert both.mass_std <= min(torques.mass_std, sensor.mass_std) * (1 + 1e-9)
    assert abs(both.mass - MASS) < 4 * both.mass_std
    with refused(ModelError, "frames-differ"):
        fused(torques, replace(sensor, frame="link7"))


def test_preparation_carries_the_wrench():
    recording = arm().recording(1)
    slow = np.sin(recording.t)[:, None] * np.arange(1.0, 7.0)
    samples = dynid.prepare(replace(recording, wrench=slow), cutoff=8.0)
    inside = slice(200, -200)
    np.testing.assert_allclose(samples.wrench[inside], slow[inside], atol=1e-4)
    thin = dynid.prepare(replace(recording, wrench=slow), cutoff=8.0, thin=3)
    assert thin.wrench.shape == (len(thin), 6)


def test_what_is_missing_is_said():
    log = arm().log(1)
    with refused(ModelError, "no-wrench"):
        dynid.payloads.sensor_payload(arm().model.robot, log, FRAME)
    still = dynid.Samples.from_arrays(np.tile(log.q[:1], (50, 1)), *(np.zeros((50, 7)),) * 3)
    with refused(NotPossibleError, "sensor-rotates-too-little"):
        dynid.payloads.sensor_payload(arm().model.robot, replace(still, wrench=np.ones((50, 6))), FRAME)
