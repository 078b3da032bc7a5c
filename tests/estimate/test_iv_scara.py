"""Closed-loop methods on a virtual SCARA, where the truth is known (Janot, Vandanjon, Gautier, s. 4)."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from refusals import refused

from dynid.errors import ModelError, NotPossibleError
from dynid.estimate import Estimate, Problem, identify
from dynid.model import Coulomb, Model, RigidBodies, Scara, Stribeck, Viscous
from dynid.recording import Recording
from dynid.recording.sample_preparation import prepare
from dynid.regression import base_parameters
from dynid.regression.base import dry_columns
from dynid.robot import Robot
from dynid.simulation import PD, Poles, Reference, VirtualRobot, joint_inertia
from dynid.study import Study, run_study

ROBOT = Robot.builtin("scara2")
MODEL = Model(ROBOT, (RigidBodies(), Viscous(), Coulomb()))
THETA = np.array([p.nominal for p in MODEL.parameters], dtype=float)
BASE = base_parameters(MODEL)
TRUTH = BASE.reduce(THETA)
LAW = Poles([1.0, 10.0], 1.0)
INERTIAL = [0, 3, 4, 5]


@cache
def log() -> Recording:
    t = np.arange(8000) / 200.0
    q = np.column_stack([3 * np.sin(0.6 * t) + 4 * np.sin(1.5 * t + 0.4) - 4 * np.sin(0.4),
                         1.5 * np.sin(1.1 * t) + 0.8 * np.sin(2.7 * t)])
    # With this noise the torque error is about the document's 2 %.
    robot = VirtualRobot(MODEL, THETA, LAW, encoder=2 * np.pi / 40000, torque_noise=[0.5, 0.05])
    return robot.record(Reference.from_arrays(q, rate=200.0), seed=1)


@cache
def problem(filtered: bool) -> Problem:
    samples = prepare(log(), cutoff=20, decimate=20, slow=0.0) if filtered else \
        prepare(log(), method="none", torque_cutoff="none", slow=0.0)
    return Problem.from_model(MODEL, samples, base=BASE, recordings=log(), controller=LAW)


@cache
def instrumented(filtered: bool, method: str) -> Estimate:
    return identify(problem(filtered), method=method)


def score(estimate: Estimate) -> np.ndarray:
    return np.abs(estimate.values - TRUTH) / estimate.std


def test_well_filtered_least_squares_and_instruments_agree() -> None:
    ols, iv = identify(problem(True), method="ols"), instrumented(True, "iv")
    assert np.all(np.abs(ols.values - iv.values) < 2.0 * np.hypot(ols.std, iv.std))
    assert iv.diagnostics["iterations"] <= 3
    assert np.all(np.abs(iv.values - TRUTH)[INERTIAL] < 0.02 * np.abs(TRUTH)[INERTIAL])


def test_unfiltered_least_squares_is_lost_and_instruments_are_not() -> None:
    ols, iv = identify(problem(False), method="ols"), instrumented(False, "iv")
    assert abs(ols.values[0] / TRUTH[0] - 1.0) > 0.5
    assert abs(iv.values[0] / TRUTH[0] - 1.0) < 0.02
    assert np.all(score(iv) < 3.0)
    first, last = iv.iterations[0], iv.iterations[-1]
    assert first.change is None and last.change is not None and last.change < 0.005
    assert last.step is not None and last.step < 0.1 and first.motion is not None and last.motion is not None
    assert last.motion.tracking_error < 0.1 * first.motion.tracking_error


@pytest.mark.parametrize("friction", ["hard", "smooth"])
def test_noise_that_drowns_the_torques_is_no_reason_to_refuse_instruments(friction: str) -> None:
    # Second differences of these steps at 200 Hz make torques of 40 N m out of nothing; the motion has 5.
    dry: dict[str, Any] = {"kind": "coulomb"} if friction == "hard" else \
        {"kind": "coulomb", "sign": {"kind": "tanh", "width": 0.1}}
    study = Study.from_values({"robot": "scara2", "repetitions": 6, "duration": 8.0, "rate": 200.0, "seed": 1,
                               "controller": {"kind": "poles", "omega": [8.0, 12.0]}, "methods": ["iv"],
                               "model": {"friction": ["viscous"], "terms": [dry]},
                               "prepare": {"method": "none", "torque_cutoff": "none", "slow": 0.0},
                               "noise": {"encoder": 2e-4, "position": 1e-4, "torque": [0.1, 0.02]}})
    result = run_study(study, workers=1)
    found = result.score("iv")
    assert found.converged == 1.0
    assert np.sqrt(np.mean(((found.values - result.truth) / found.std) ** 2)) < 1.5


@pytest.mark.parametrize("method", ["pc-iv", "pc-didim"])
def test_consistent_methods_give_a_robot_that_can_exist(method: str) -> None:
    # The robot's own file holds the truth here: what motion leaves open must not come from it.
    estimate = identify(replace(problem(True), nominal=None), method=method)
    assert estimate.theta is not None and estimate.diagnostics["consistent"]
    # MY2, 0.014 kg m, has a deviation of 4 % in 40 s of this noise; the others stay within 3 % besides.
    assert np.all(score(estimate) < 3.0)
    assert np.all(np.abs(estimate.values - TRUTH)[INERTIAL[:3]] < 0.03 * np.abs(TRUTH)[INERTIAL[:3]])


@pytest.mark.parametrize("method", ["iv", "pc-iv", "didim"])
def test_what_is_known_stays_and_the_rest_gets_no_worse(method: str) -> None:
    exact = {name: float(THETA[MODEL.parameters.index(name)]) for name in ("Fv1", "Fc2")}
    known = Problem.from_model(MODEL, problem(True).data, base=BASE, known=exact, recordings=log(), controller=LAW)
    free, found = instrumented(True, method), identify(known, method=method)
    assert {name: found.full[MODEL.parameters.index(name)] for name in exact} == pytest.approx(exact, abs=1e-9)
    assert np.all(np.abs(found.values - known.base.reduce(THETA)) < 3.0 * found.std)
    shared = [BASE.names.index(name) for name in known.base.names]
    assert np.all(found.std < 1.05 * free.std[shared]) and np.mean(found.std / free.std[shared]) < 1.0


def test_half_the_bandwidth_is_forgiven_and_a_tenth_is_reported() -> None:
    half = identify(problem(True), method="iv", controller=LAW.slower(0.5))
    assert half.diagnostics["iterations"] <= 7
    assert abs(half.values[0] / TRUTH[0] - 1.0) < 0.02
    with refused(NotPossibleError, "no-instruments", "iv"):
        identify(problem(True), method="iv", controller=LAW.slower(0.1), max_iterations=5, tolerance=1e-4)


def test_references_as_instruments_and_other_starts() -> None:
    transfer = identify(problem(False), method="iv", instruments="transfer")
    assert np.all(np.abs(transfer.values - TRUTH)[INERTIAL] < 0.05 * np.abs(TRUTH)[INERTIAL])
    nominal = identify(problem(False), method="iv", start="nominal")
    regular = instrumented(False, "iv")
    assert np.allclose(nominal.values, regular.values, rtol=0.02, atol=0.01)


def test_without_reference_or_controller_it_says_so() -> None:
    samples = prepare(log(), cutoff=20, decimate=4, slow=0.0)
    estimate = identify(Problem.from_model(MODEL, samples, base=BASE), method="iv")
    assert abs(estimate.values[0] / TRUTH[0] - 1.0) < 0.02
    assert [note.code for note in estimate.diagnostics["notes"]] == ["controller-assumed", "reference-from-positions"]


@pytest.mark.parametrize("method", ["iv", pytest.param("didim", marks=pytest.mark.slow)])
def test_a_users_model_goes_the_same_way(method: str) -> None:
    short = log().between(0.0, 11.0)
    samples = prepare(short, cutoff=20, decimate=10, slow=0.0)
    mine = Scara()
    estimate = identify(Problem.from_model(mine, samples, recordings=short, controller=LAW), method=method,
                        transient=3.0, start="wls")
    truth = np.array([3.44, 0.03, 0.82, 0.062, 0.121, 0.007, 0.013, 0.137])
    assert np.all(np.abs(estimate.values - truth)[[0, 3, 4]] < 0.05 * truth[[0, 3, 4]])


def test_dry_columns_are_found_in_any_model() -> None:
    assert [name for name, dry in zip(BASE.names, dry_columns(MODEL, BASE), strict=True) if dry] == ["Fc1", "Fc2"]
    curved = Model(ROBOT, (RigidBodies(), Stribeck(joints=(1,))))
    base = base_parameters(curved)
    found = {name for name, dry in zip(base.names, dry_columns(curved, base), strict=True) if dry}
    assert found == {"Fc1", "Fsc1", "Fnl1"}


@pytest.mark.parametrize(("options", "words"), [
    ({"instruments": "luck"}, (ModelError, "unknown-instruments", "'simulation'")),
    ({"start": "zero"}, (ModelError, "unknown-start", "'regular'")),
    ({"transient": 1e3}, (NotPossibleError, "no-instruments", "'iv'")),
    ({"controller": lambda *_: [0.0, 0.0], "start": "regular"}, (ModelError, "gains-not-known", "'nominal'")),
    ({"controller": PD([10.0, 1.0], [1.0, 0.0])}, (ModelError, "no-feedback", "joint 2")),
])
def test_wrong_calls_are_one_sentence(options: dict[str, object], words: tuple[Any, ...]) -> None:
    with refused(*words):
        identify(problem(True), method="iv", **options)


def test_instruments_that_do_not_see_the_measured_motion_are_one_sentence() -> None:
    """A second joint that stood still, though its reference moved."""
    stuck = replace(log(), q=log().q * [1.0, 0.0])
    samples = prepare(stuck, cutoff=20, decimate=20, slow=0.0)
    blind = Problem.from_model(MODEL, samples, base=BASE, recordings=stuck, controller=LAW)
    with refused(NotPossibleError, "instruments-lost-rank", "iv", "1"):
        identify(blind, method="iv", instruments="reference")


def test_a_function_as_the_controller_needs_no_inertia() -> None:
    """The machine's own law, written as a function, gives what the law gives."""
    gains = LAW.tuned(joint_inertia(MODEL, THETA, log().reference)).law(2)

    def law(t: float, q: np.ndarray, dq: np.ndarray, qr: np.ndarray, dqr: np.ndarray, ddqr: np.ndarray) -> np.ndarray:
        return gains.kp * (qr - q) - gains.kd * dq

    short = log().between(0.0, 20.0)  # a function in Python takes long
    known = Problem.from_model(MODEL, prepare(short, cutoff=20, decimate=20, slow=0.0), base=BASE, recordings=short,
                               controller=LAW, nominal=THETA)
    same, own = (identify(known, method="iv", start="nominal", controller=one, max_iterations=4, transient=5.0)
                 for one in (LAW, law))
    assert np.all(np.abs(same.values - own.values) < 0.2 * own.std)


def test_recordings_must_match_samples() -> None:
    with refused(ModelError, "recordings-of-other-samples", "2", "1"):
        Problem.from_model(MODEL, problem(True).data, base=BASE, recordings=(log(), log()))
    half = log().between(0.0, 20.0)
    with refused(ModelError, "reference-too-short", "0", "20", "39.99"):
        identify(Problem.from_model(MODEL, problem(True).data, base=BASE, recordings=half, controller=LAW), method="iv")
