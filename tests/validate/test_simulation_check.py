"""Validation by simulation: true parameters follow the log, wrong ones do not, and what breaks off says why."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from refusals import refused

from dynid.errors import ModelError, NotPossibleError, RecordingError
from dynid.estimate import Estimate, Problem, identify
from dynid.model import Coulomb, Model, RigidBodies, Sign, Viscous
from dynid.recording import Recording, Samples
from dynid.recording.sample_preparation import prepare
from dynid.robot import Robot
from dynid.simulation import PD, Reference, VirtualRobot
from dynid.validate.simulation_check import closed_loop, simulation_checks, torque_driven

ROBOT = Robot.builtin("scara2")
MODEL = Model(ROBOT, (RigidBodies(), Viscous(), Coulomb(sign=Sign("tanh", 0.05))))
THETA = np.array([p.nominal for p in MODEL.parameters], dtype=float)
LAW = PD([300.0, 8.0], [60.0, 1.0])


@cache
def log() -> Recording:
    t = np.arange(6000) / 1000.0
    path = Reference.from_arrays(np.column_stack([np.sin(1.5 * t) ** 2, 0.8 * np.sin(2.2 * t) ** 2]), rate=1000.0)
    return VirtualRobot(MODEL, THETA, LAW).record(path)


def estimate(scale: float = 1.0) -> Estimate:
    found = identify(Problem.from_model(MODEL, prepare(log(), cutoff=50)), method="wls")
    return replace(found, values=scale * found.base.reduce(THETA))


def test_true_parameters_follow_the_log() -> None:
    check = closed_loop(estimate(), log(), LAW, step=2.5e-4)
    assert check.position_rms.max() < 1e-9
    assert check.torque_error < 3.0  # the log holds means over two ticks
    driven = torque_driven(estimate(), prepare(log(), cutoff=50), horizon=0.5)
    assert driven.reached == 1.0
    assert driven.position_error.max() < 1.0
    assert len(driven.windows) == 12


def test_wrong_parameters_do_not() -> None:
    good, bad = (closed_loop(estimate(scale), log(), LAW) for scale in (1.0, 1.3))
    assert np.all(bad.position_error > 10.0 * good.position_error)
    samples = prepare(log(), cutoff=50)
    true, wrong = (torque_driven(estimate(scale), samples).position_error.max() for scale in (1.0, 1.3))
    assert wrong > 5.0 * true


def test_what_cannot_be_done_is_said() -> None:
    with refused(RecordingError, "no-reference"):
        closed_loop(estimate(), replace(log(), reference=None), LAW)
    samples = prepare(log(), cutoff=50)
    for horizon, code in ((1e-4, "horizon-too-short"), (-0.5, "horizon-not-positive"), (60.0, "horizon-too-long")):
        with refused(ModelError, code, f"{horizon:g} s"):
            torque_driven(estimate(), samples, horizon=horizon)


# -- against closed forms ----------------------------------------------------------------------------
SLIDE = Model(Robot.builtin("emps"), (RigidBodies(),))


def pushed(mass: float, *, force: float = 12.0, rate: float = 500.0, seconds: float = 2.0) -> Samples:
    """A carriage without friction under a constant force: q = F t^2 / (2 m)."""
    t = np.arange(int(seconds * rate)) / rate
    a = force / mass
    return Samples.from_arrays(*(x[:, None] for x in (0.5 * a * t ** 2, a * t, np.full_like(t, a),
                                                      np.full_like(t, force))),
                               t=t, rate=rate, source="pushed.csv")


def carriage(mass: float) -> Estimate:
    """An estimate that says so."""
    found = identify(Problem.from_model(SLIDE, pushed(3.0)), method="ols")
    theta = SLIDE.parameters.vector({name: mass if name == "M1" else 0.0 for name in SLIDE.parameters.names})
    return replace(found, values=found.base.reduce(theta))


def test_a_wrong_mass_is_off_by_the_formula() -> None:
    """From each start on, positions part as (F/m' - F/m) t^2 / 2."""
    found = torque_driven(carriage(4.0), pushed(3.0), horizon=0.5)
    t = np.arange(250) / 500.0
    expected = np.sqrt(np.mean((0.5 * (12.0 / 4.0 - 12.0 / 3.0) * t ** 2) ** 2))
    assert found.position_rms == pytest.approx([expected], rel=1e-9)
    motion = np.std(pushed(3.0).q)
    assert found.position_error == pytest.approx([100.0 * expected / motion], rel=1e-9)
    assert found.total_error == pytest.approx(found.position_error[0])
    assert found.windows.tolist() == [[0, 250], [250, 500], [500, 750], [750, 1000]]
    assert torque_driven(carriage(3.0), pushed(3.0)).position_rms.max() < 1e-12


def test_some_windows_stand_evenly_for_all() -> None:
    found = torque_driven(carriage(4.0), pushed(3.0, seconds=5.0), horizon=0.5, most=3)
    assert found.possible == 10 and len(found.windows) == 3 and found.reached == 1.0
    starts = found.t[found.windows[:, 0]]
    assert starts.tolist() == [0.0, 2.0, 4.5]


def test_pieces_of_a_log_are_one_log() -> None:
    piece = pushed(3.0)
    found = torque_driven(carriage(4.0), [piece, replace(piece, t=piece.t + 2.0)], horizon=0.5)
    assert found.possible == len(found.windows) == 8
    assert found.position_rms == pytest.approx(torque_driven(carriage(4.0), piece).position_rms)


def test_ends_that_no_joint_uses_are_not_simulated() -> None:
    samples = pushed(3.0)
    keep = samples.keep.copy()
    keep[:100] = keep[-50:] = False
    assert torque_driven(carriage(3.0), replace(samples, keep=keep)).t[[0, -1]].tolist() == [0.2, 949 / 500]


def test_a_mass_below_zero_cannot_be_simulated() -> None:
    (check,) = simulation_checks(carriage(-3.0), [((pushed(3.0),), None)])
    assert check.log is None and check.reason.code == "inertia-indefinite"
    assert "joint carriage" in check.reason.text and "pc-" in check.reason.text  # who it is, and what to do
    said = check.to_dict()
    assert said["reached"] == 0.0 and said["position_error_per_joint"] is None
    assert said["reason"] == {"code": "inertia-indefinite", "text": check.reason.text, "evidence": {}}
    with pytest.raises(NotPossibleError) as refused:
        torque_driven(carriage(-3.0), pushed(3.0))
    assert refused.value.code == "inertia-indefinite"


def test_a_joint_that_stands_still_has_no_percent() -> None:
    still = Samples.from_arrays(*np.zeros((4, 1000, 1)), rate=500.0)
    (check,) = simulation_checks(carriage(3.0), [((still,), None)])
    assert check.to_dict()["position_error_per_joint"] == [None] and check.to_dict()["position_error"] is None
    assert check.to_dict()["position_rms_per_joint"] == [0.0]


def test_a_log_that_begins_in_the_middle_of_a_motion() -> None:
    """Cut where the loop lags its reference, the simulation begins where the machine was."""
    half = log().between(1.0, 6.0)
    assert half.reference is not None and np.abs(half.q[0] - half.reference[0]).max() > 1e-3
    assert closed_loop(estimate(), half, LAW, step=2.5e-4).position_rms.max() < 1e-5


def test_reasons_of_the_closed_loop_are_said() -> None:
    samples = prepare(log(), cutoff=50)
    for recording, law, code in ((None, LAW, "no-recording"), (replace(log(), reference=None), LAW, "no-reference"),
                                 (log(), PD([-3e5, 8.0], [-60.0, 1.0]), "unstable-controller")):
        driven, check = simulation_checks(estimate(), [((samples,), recording)], controller=law)
        assert driven.log is not None and check.mode == "closed-loop" and check.log is None
        assert check.reason.code == code
