"""Drive gains against known truth: from targets in a log and with a known load."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from loads import FRAME, LOAD, MASS, arm

import dynid
from dynid.errors import ModelError, NotPossibleError, RecordingError
from dynid.estimate import Problem, identify
from dynid.recording import Recording, Samples
from dynid.robot import inertia as ten

TRUE = np.array([13.0, 14.5, 9.0, 9.5, 7.2, 6.1, 5.0])  # N m/A
KNOWN = dynid.KnownLoad.of(FRAME, 3.0, (0.0, 0.0, 0.03), 0.004 * np.eye(3))


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
                           gain_deviation=found.relative_covariance) for name, log in logs.items()}
    problem = Problem.of(model, ready["without"])
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
    found = dynid.gains_from_log(with_targets(arm().recording(1), 0.2))
    good = found.identified
    assert good[1:6].all()
    np.testing.assert_allclose(found.values[good], TRUE[good], rtol=0.02)
    assert np.all(np.abs(found.values - TRUE)[good] < 4 * found.std[good])
    done = found.applied(with_targets(arm().recording(1), 0.2))
    np.testing.assert_allclose(done.tau[:, 1], arm().recording(1).tau[:, 1], rtol=0.02)
    assert done.gain_deviation.shape == (7, 7)


def test_at_rest_the_ratio_is_the_gain_and_a_vertical_axis_has_none():
    t = np.arange(0.0, 5.0, 0.01)
    q = np.tile([0.3, 0.5, 0.1, -1.0, 0.2, 0.8, 0.1], (len(t), 1))
    machine = arm()
    torque = machine.model.inverse_dynamics(np.where(np.array([p.kind.group == "body" for p in
                                                               machine.model.parameters]), machine.theta, 0.0),
                                            q, 0 * q, 0 * q)
    log = Recording(t, q, torque / TRUE, target_torque=torque, target_current=torque / TRUE,
                    joints=machine.model.joint_names)
    found = dynid.gains_from_log(log)
    assert not found.identified[0]
    assert "zero throughout" in found.reasons["joint1"]
    np.testing.assert_allclose(found.values[1:6], TRUE[1:6], rtol=1e-9)


def test_what_is_missing_is_said(logs):
    with pytest.raises(RecordingError, match="no target torque and target current"):
        dynid.gains_from_log(arm().recording(1))
    with pytest.raises(NotPossibleError, match="a log without it and one with it"):
        dynid.payloads.gains_from_known_load(arm().model, [logs["without"]], [], KNOWN)
    with pytest.raises(ModelError, match="more than nothing"):
        dynid.KnownLoad.of(FRAME, 0.0)
    with pytest.raises(ModelError, match="cannot exist"):
        dynid.KnownLoad.of(FRAME, 1.0, inertia=np.diag([1.0, 0.1, 0.1]))
    with pytest.raises(RecordingError, match="holds currents whose drive gains are to be found"):
        dynid.prepare(replace(arm().recording(1), unscaled=True))
    with pytest.raises(RecordingError, match="needs target_torque and target_current"):
        dynid.Mapping.of({"current": "i{i}", "drive_gain": "from-log"})


def test_a_known_load_may_be_a_point():
    point = dynid.KnownLoad.of(FRAME, 2.0, (0.0, 0.1, 0.0))
    np.testing.assert_allclose(point.numbers, ten.from_central(2.0, np.array([0.0, 0.1, 0.0]), np.zeros((3, 3))))
