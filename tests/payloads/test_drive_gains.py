"""Drive gains against known truth: from targets in a log and with a known load."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from loads import CENTRE, FRAME, LOAD, MASS, arm, controller_targets
from loads import GAINS as TRUE
from refusals import refused

import dynid
from dynid.errors import ModelError, NotPossibleError, RecordingError
from dynid.estimate import Problem, identify
from dynid.recording import Recording, Samples
from dynid.recording.drive_gains import DriveGains
from dynid.robot import inertia as ten
from dynid.runs.drive_gains import gain_table, pooled, with_own_gains
from dynid.runs.settings import RunSettings

KNOWN = dynid.payloads.KnownLoad.from_mass(FRAME, 3.0, (0.0, 0.0, 0.03), 0.004 * np.eye(3))


def currents(log: Samples) -> Samples:
    return replace(log, tau=log.tau / TRUE)


@pytest.fixture(scope="module")
def logs() -> dict[str, Samples]:
    machine = arm()
    return {"without": machine.log(1), "known": machine.log(2, machine.loaded(np.array(KNOWN.numbers))),
            "load": machine.log(3, machine.loaded(LOAD))}


def test_a_known_load_gives_the_gains_and_the_mass_of_another(logs):
    model = arm().model
    found = dynid.payloads.gains_from_known_load(model, [currents(logs["without"])], [currents(logs["known"])], KNOWN)
    good = found.identified
    assert list(good) == [False, True, True, True, True, True, False]
    off = found.values[good] / TRUE[good] - 1.0
    assert np.all(np.abs(off) < 4 * found.relative_std[good])
    assert np.abs(off).max() < 0.06
    assert "vertical" in found.reasons["joint1"]
    scale = np.where(good, found.values, 0.0)
    ready = {name: replace(log, tau=log.tau / TRUE * scale, keep=log.keep & good, unmeasured=("joint1", "joint7"),
                           gain_covariance=found.relative_covariance) for name, log in logs.items()}
    problem = Problem.from_model(model, ready["without"])
    payload = dynid.payload(identify(problem, method="wls"), ready["load"], FRAME, unloaded=problem)
    assert abs(payload.mass / MASS - 1.0) < 0.035
    assert abs(payload.mass - MASS) < 3 * payload.mass_std < 0.3


def test_without_noise_a_known_load_gives_them_exactly():
    machine = arm()
    quiet = {"noise": 0.0}
    without, known = machine.log(1, **quiet), machine.log(2, machine.loaded(np.array(KNOWN.numbers)), **quiet)
    found = dynid.payloads.gains_from_known_load(machine.model, [currents(without)], [currents(known)], KNOWN)
    good = found.identified
    # What filters leave of the motion's error is all.
    np.testing.assert_allclose(found.values[good], TRUE[good], rtol=2e-3)


def with_targets(log: Recording, friction: float) -> Recording:
    """Targets of a controller that makes up for friction."""
    machine = arm()
    dq = np.gradient(log.q, log.t, axis=0)
    torque = machine.model.inverse_dynamics(machine.theta, log.q, dq, np.gradient(dq, log.t, axis=0))
    current = torque / TRUE + friction * np.tanh(dq / 0.03) + 0.3 * friction * dq
    return replace(log, tau=log.tau / TRUE, dq=dq, target_torque=torque, target_current=current)


def test_targets_in_the_log_give_the_gains():
    found = dynid.payloads.gains_from_log(with_targets(arm().recording(1), 0.2))
    good = found.identified
    assert good[1:6].all()
    np.testing.assert_allclose(found.values[good], TRUE[good], rtol=0.02)
    assert np.all(np.abs(found.values - TRUE)[good] < 4 * found.std[good])
    done = found.applied(with_targets(arm().recording(1), 0.2))
    np.testing.assert_allclose(done.tau[:, 1], arm().recording(1).tau[:, 1], rtol=0.02)
    assert done.gain_covariance.shape == (7, 7)


def test_at_rest_the_ratio_is_the_gain_and_a_vertical_axis_has_none():
    t = np.arange(0.0, 5.0, 0.01)
    q = np.tile([0.3, 0.5, 0.1, -1.0, 0.2, 0.8, 0.1], (len(t), 1))
    machine = arm()
    torque = machine.model.inverse_dynamics(np.where(np.array([p.kind.group == "body" for p in
                                                               machine.model.parameters]), machine.theta, 0.0),
                                            q, 0 * q, 0 * q)
    log = Recording(t, q, torque / TRUE, target_torque=torque, target_current=torque / TRUE,
                    joints=machine.model.joint_names)
    found = dynid.payloads.gains_from_log(log)
    assert not found.identified[0]
    assert "always zero" in found.reasons["joint1"]
    np.testing.assert_allclose(found.values[1:6], TRUE[1:6], rtol=1e-9)


def test_what_is_missing_is_said(logs):
    with refused(RecordingError, "no-targets"):
        dynid.payloads.gains_from_log(arm().recording(1))
    with refused(NotPossibleError, "no-log-with-load"):
        dynid.payloads.gains_from_known_load(arm().model, [logs["without"]], [], KNOWN)
    with refused(ModelError, "not-above-zero"):
        dynid.payloads.KnownLoad.from_mass(FRAME, 0.0)
    with refused(ModelError, "load-not-consistent"):
        dynid.payloads.KnownLoad.from_mass(FRAME, 1.0, inertia=np.diag([1.0, 0.1, 0.1]))
    with refused(RecordingError, "gains-undetermined"):
        dynid.prepare(replace(arm().recording(1), unscaled=True))
    with refused(RecordingError, "wrong-setting", "target_torque", "target_current"):
        dynid.Mapping.from_settings({"current": "i{i}", "drive_gain": "from-log"})


def test_a_known_load_may_be_a_point():
    point = dynid.payloads.KnownLoad.from_mass(FRAME, 2.0, (0.0, 0.1, 0.0))
    np.testing.assert_allclose(point.numbers, ten.from_central(2.0, np.array([0.0, 0.1, 0.0]), np.zeros((3, 3))))


def test_gains_of_several_logs_carry_the_scatter_that_joints_share():
    """All gains 3 % lower in one of two equally sure logs: relative scatter 1.5 % about the mean, common to all."""
    std = 0.005 * TRUE
    one, two = (DriveGains(arm().model.joint_names, TRUE * factor, std, "from targets", {}) for factor in (1.0, 0.97))
    found = pooled([one, two])
    np.testing.assert_allclose(found.values, 0.985 * TRUE)
    common = (0.015 / 0.985) ** 2
    np.testing.assert_allclose(found.relative_covariance, common + np.diag(np.full(7, (0.005 / 0.985) ** 2)), rtol=1e-6)
    table = gain_table(found)
    np.testing.assert_allclose(table["gain_std"], found.relative_covariance, rtol=1e-5)


def test_a_loaded_log_whose_own_targets_give_other_gains_widens_the_covariance():
    log = with_targets(arm().recording(1), 0.2)
    log = replace(log, target_current=log.target_current * TRUE)  # as it is read: converted by the given gains
    other = replace(log, target_current=log.target_current / 0.97)  # 3 % less torque per current
    settings = RunSettings.from_values({"robot": "kuka-iiwa14", "logs": ["x.csv"], "log": gain_table(
        DriveGains(log.joints, TRUE, 0.005 * TRUE, "from targets", {}))})
    samples = replace(dynid.prepare(log, cutoff=8.0), gain_covariance=0.005 ** 2 * np.eye(7))
    widened = with_own_gains(other, samples, settings).gain_covariance
    assert widened[1, 2] == pytest.approx(0.5 * 0.03 ** 2, rel=0.15)  # common to the joints
    same = with_own_gains(log, samples, settings).gain_covariance
    assert abs(same[1, 2]) < 0.1 * widened[1, 2]


@pytest.mark.slow
@pytest.mark.parametrize("source", ["targets", "known load"])
def test_payload_intervals_hold_with_gains_from_the_same_log(source):
    """95 % intervals of mass and centre over 60 machines whose gains are found from the log of the unloaded robot."""
    machine, held = arm(), []
    for k in range(60):
        log, loaded = machine.recording(9000 + 3 * k), machine.recording(9001 + 3 * k, machine.loaded(LOAD))
        if source == "targets":
            gains = dynid.payloads.gains_from_log(controller_targets(log, k))
        else:
            known = machine.recording(9002 + 3 * k, machine.loaded(np.array(KNOWN.numbers)))
            gains = dynid.payloads.gains_from_known_load(
                machine.model, *([currents(dynid.prepare(one, cutoff=8.0))] for one in (log, known)), KNOWN)
        good = gains.identified
        both = [dynid.prepare(replace(one, tau=one.tau / TRUE * np.where(good, gains.values, 0.0)), cutoff=8.0)
                for one in (log, loaded)]
        silent = tuple(name for name, yes in zip(machine.model.joint_names, good, strict=True) if not yes)
        both = [replace(one, keep=one.keep & good, unmeasured=silent, gain_covariance=gains.relative_covariance)
                for one in both]
        problem = Problem.from_model(machine.model, both[0])
        found = dynid.payload(identify(problem, method="wls"), both[1], FRAME, unloaded=problem)
        low, high = found.conf_int().T
        held.append((low < np.append(MASS, CENTRE)) & (np.append(MASS, CENTRE) < high))
    share = np.mean(held, axis=0)
    assert 0.9 <= share[0] <= 0.99, share
    assert 0.9 <= share.mean() <= 0.99, share
    assert share.min() >= 0.85, share
