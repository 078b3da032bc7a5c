"""What control laws answer about their own loop, against the polynomials of a joint under them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dynid.errors import ModelError
from dynid.model import Model, RotorInertia
from dynid.robot import Robot
from dynid.simulation import PD, PID, Cascade, ComputedTorque, ControlLaw, Poles, Reference, TorqueDriven, control_law

MODEL = Model(Robot.builtin("scara2"), (RotorInertia(),))
OMEGA, DAMPING = np.array([4.0, 9.0]), np.array([0.7, 1.2])
MACHINE = np.array([3.0, 0.2])
# Gains that put the poles of joints of these inertias at OMEGA and DAMPING.
KP, KD = MACHINE * OMEGA ** 2, 2.0 * MACHINE * DAMPING * OMEGA
LAWS = {
    "pd": PD(KP, KD), "cascade": Cascade(KP / KD, KD / 2.0, gain=2.0), "poles": Poles(OMEGA, DAMPING),
    "computed torque": ComputedTorque(MODEL, [1.0, 1.0], OMEGA ** 2, 2.0 * DAMPING * OMEGA),
}


def motion() -> Reference:
    t = np.arange(2000) / 500.0
    q = np.column_stack([np.sin(2.0 * t), 0.3 * np.cos(5.0 * t)])
    dq = np.column_stack([2.0 * np.cos(2.0 * t), -1.5 * np.sin(5.0 * t)])
    ddq = np.column_stack([-4.0 * np.sin(2.0 * t), -7.5 * np.cos(5.0 * t)])
    return Reference(q, dq, ddq, 500.0, 1.5)


@pytest.mark.parametrize("name", LAWS)
def test_poles_stay_with_another_inertia(name: str) -> None:
    inertia = np.array([1.0, 7.0])
    law = LAWS[name].with_poles(inertia, MACHINE).law(2)
    assert law is not None
    assert np.allclose(law.kp / inertia, OMEGA ** 2, rtol=1e-12)
    assert np.allclose(law.kd / inertia, 2.0 * DAMPING * OMEGA, rtol=1e-12)


@pytest.mark.parametrize("name", LAWS)
def test_settling_is_five_time_constants_of_the_slowest_pole(name: str) -> None:
    slowest = min(np.min(-np.roots([1.0, 2.0 * d * w, w * w]).real) for w, d in zip(OMEGA, DAMPING, strict=True))
    # Poles and computed torque state them by frequency and damping: exact where damping is at most one.
    exact = 5.0 / slowest if name in ("pd", "cascade") else 5.0 / (OMEGA * (DAMPING if name == "poles" else 1.0)).min()
    assert LAWS[name].settling(MACHINE) == pytest.approx(exact, rel=1e-12)


def test_the_reference_of_known_poles_asks_for_the_motions_acceleration() -> None:
    path = motion()
    asked = LAWS["poles"].follows(path)
    law = Poles(OMEGA, DAMPING).tuned(np.ones(2)).law(2)
    assert np.allclose(law.kp * (asked.q - path.q) - law.kd * path.dq, path.ddq, atol=1e-12)
    assert asked.start == 1.5 and asked.rate == 500.0
    assert LAWS["pd"].follows(path) is path


def test_the_reference_of_a_cascade_gives_the_torques_asked_for() -> None:
    path, torque = motion(), np.random.default_rng(0).normal(size=(2000, 2))
    law = Cascade([3.0, 4.0], [20.0, 0.5], gain=[1.0, 6.0])
    asked = law.follows_with(path, torque)
    assert asked is not None
    drive = np.array([20.0, 3.0])
    assert np.allclose(drive * ([3.0, 4.0] * (asked.q - path.q) - path.dq), torque, atol=1e-9)
    assert Cascade(3.0, 20.0, feedforward=True).follows_with(path, torque) is None
    assert PD(3.0, 20.0).follows_with(path, torque) is None


def test_only_laws_with_gains_of_their_own_show_them() -> None:
    known = {name for name, law in LAWS.items() if law.gains(2) is not None}
    assert known == {"pd", "cascade"}
    assert np.array_equal(PID(KP, 2.0, KD).scaled(np.array([2.0, 3.0])).law(2).ki, [4.0, 6.0])
    assert PD(KP, KD, limit=3.0, delay=2).lagging(1.5).law(2).speed_lag == 1.5


@pytest.mark.parametrize("controller", [lambda *_: [0.0, 0.0], TorqueDriven(np.zeros((3, 2)))])
def test_a_law_of_which_nothing_is_known(controller: Any) -> None:
    law = control_law(controller)
    assert isinstance(law, ControlLaw) and law.gains(2) is None and not law.needs_inertia
    assert law.settling(None) == 0.5
    with pytest.raises(ModelError):
        law.with_poles(np.ones(2), None)


def test_what_is_no_controller_is_refused() -> None:
    with pytest.raises(ModelError):
        control_law("pd")
