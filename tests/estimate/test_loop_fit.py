"""Loops and controllers that logs show, on machines whose controller is known and on loops in closed form."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from dynid.errors import ModelError, RecordingError
from dynid.estimate.loop_fit import fit_loops, identify_controller
from dynid.model import Model, RigidBodies
from dynid.recording import Recording
from dynid.recording.log_reading import read
from dynid.robot import Robot
from dynid.simulation import PD, Cascade, ControlLaw, Poles, Reference, VirtualRobot

MASS, RATE = 95.0, 1000.0
SPEEDS, SIZES = (2.0, 7.0, 15.0), (0.1, 0.05, 0.02)


@cache
def carriage() -> Model:
    return Model(Robot.builtin("emps"), (RigidBodies(),))


def recorded(law: ControlLaw, noise: float = 0.0) -> Recording:
    """A carriage of 95 kg without friction that begins in the middle of a motion."""
    t = np.arange(8000) / RATE
    path = sum(size * np.sin(speed * t + speed) for speed, size in zip(SPEEDS, SIZES, strict=True))
    theta = np.zeros(10)
    theta[9] = MASS
    machine = VirtualRobot(carriage(), theta, law, position_noise=noise)
    return machine.record(Reference.from_arrays(np.asarray(path)[:, None], rate=RATE), seed=3)


@pytest.mark.parametrize("law", [Cascade(40.0, 100.0, 35.0), Cascade(12.0, 60.0, 35.0), PD(5000.0, 900.0),
                                 PD(160_000.0, 3000.0)])
@pytest.mark.parametrize("noise", [0.0, 2e-5])
def test_known_controllers_are_found_from_reference_and_response(law: ControlLaw, noise: float) -> None:
    gains = law.gains(1)
    assert gains is not None
    found = identify_controller(recorded(law, noise), MASS)
    # A torque held for a tick of 1 ms is half a tick late: kd seems smaller by up to kp / 2000, 2.7 % at most here.
    assert found.kp == pytest.approx(gains.kp, rel=0.01)
    assert found.kd == pytest.approx(gains.kd, rel=0.03)
    assert found.follow == pytest.approx(gains.follow, abs=0.02)
    ratio = found.pole_ratio(law)
    assert ratio is not None and ratio == pytest.approx(1.0, abs=0.005)
    again = found.law.gains(1)
    assert again is not None and again.kp == pytest.approx(found.kp) and again.follow == gains.follow


def test_a_loop_of_known_transfer_function_and_what_references_are_worth_in_it() -> None:
    """Sines through (b1 jw + 1) / (1 - a2 w^2 + a1 jw) in closed form: no integrator, no controller."""
    a2, a1, b1, t = 1.0 / 30.0 ** 2, 2.0 * 0.7 / 30.0, 0.04, np.arange(20000) / RATE
    asked, done, ddone, dasked = (np.zeros(len(t)) for _ in range(4))
    for speed, size in zip(SPEEDS, SIZES, strict=True):
        wave = size * np.exp(1j * (speed * t + speed))
        gain = (b1 * 1j * speed + 1.0) / (1.0 - a2 * speed ** 2 + a1 * 1j * speed)
        asked, done = asked + wave.imag, done + (gain * wave).imag
        dasked, ddone = dasked - speed ** 2 * wave.imag, ddone - speed ** 2 * (gain * wave).imag
    log = Recording(t, done[:, None], np.zeros((len(t), 1)), reference=asked[:, None])
    (loop,) = fit_loops(log)
    assert loop.natural_frequency == pytest.approx(30.0, rel=1e-3) and loop.damping == pytest.approx(0.7, rel=1e-3)
    assert loop.b1 == pytest.approx(b1, rel=1e-2) and loop.fit > 99.99
    plain = 100.0 * (1.0 - np.linalg.norm(done - asked) / np.linalg.norm(done - done.mean()))
    assert loop.reference_fit == pytest.approx(plain, abs=0.01)
    gap = 100.0 * np.linalg.norm(ddone - dasked) / np.linalg.norm(ddone)
    correlation = ddone @ dasked / np.linalg.norm(ddone) / np.linalg.norm(dasked)
    assert loop.acceleration_gap == pytest.approx(gap, rel=0.02)
    assert loop.growth == pytest.approx(100.0 * (1.0 / correlation - 1.0), rel=0.03)
    assert loop.serves == "as-instruments" and loop.seen


def test_references_serve_as_they_are_where_the_loop_is_fast_and_not_at_all_where_it_is_slow() -> None:
    stiff = PD(MASS * 300.0 ** 2, 2.0 * MASS * 300.0)
    fast, slow = (fit_loops(recorded(law))[0] for law in (stiff, Poles(5.0).tuned(np.array([MASS]))))
    assert fast.serves == "as-they-are" and fast.reference_fit > 98.0
    assert slow.serves == "no" and slow.fit > 99.9 and slow.growth > 10.0 and slow.reference_fit < 0.0


def test_a_joint_that_others_move_shows_no_loop() -> None:
    rng, t = np.random.default_rng(0), np.arange(4000) / RATE
    asked = np.sin(3.0 * t)
    pushed = asked + 0.4 * np.interp(t, t[::200], rng.normal(size=20))
    (loop,) = fit_loops(Recording(t, pushed[:, None], np.zeros((len(t), 1)), reference=asked[:, None]))
    assert loop.fit < 95.0 and not loop.seen and loop.serves == "unknown"
    assert loop.to_dict()["natural_frequency"] is None


def test_joints_at_rest_have_no_loop_and_logs_without_references_are_refused() -> None:
    log = recorded(PD(5000.0, 900.0))
    assert log.reference is not None
    two = Recording(log.t, np.hstack([log.q, 0 * log.q]), np.hstack([log.tau, log.tau]),
                    reference=np.hstack([log.reference, 0 * log.reference]), joints=("moves", "rests"))
    found = identify_controller(two, [MASS, 1.0])
    assert [loop.joint for loop in found.loops] == ["moves"] and found.kp.shape == (1,)
    with refused(ModelError, "joint-at-rest", "1", "2"):
        _ = found.law
    with refused(ModelError, "inertia-not-positive", "2"):
        identify_controller(two, [MASS, 0.0])
    with refused(RecordingError, "no-reference"):
        fit_loops(Recording(log.t, log.q, log.tau))


def test_the_loop_of_a_real_drive_has_the_poles_of_its_published_gains_and_mass(data: Callable[..., Path]) -> None:
    """EMPS: kp = 160.18, kv = 243.45, gain = 35.15, M = 95.11 kg; its speed is a tick of 1 ms old, which acts as an
    inertia smaller by 1 ms times kd."""
    columns = {"time": "t", "position": "qm", "reference": "qg", "current": "vir", "drive_gain": "gtau"}
    emps_log = read(data("emps", "DATA_EMPS.mat"), columns, Robot.builtin("emps"))
    kd = 243.45 * 35.15
    seen = np.sqrt(160.18 * kd / (95.11 - 1e-3 * kd))
    (loop,) = fit_loops(emps_log)
    assert loop.natural_frequency == pytest.approx(seen, rel=0.01) and loop.fit > 99.9
    ratio = identify_controller(emps_log, 95.11).pole_ratio(Cascade(160.18, 243.45, 35.15))
    assert ratio is not None and ratio[0] == pytest.approx(np.sqrt(95.11 / (95.11 - 1e-3 * kd)), rel=0.01)
