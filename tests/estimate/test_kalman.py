"""Kalman filters on state and parameters, where the truth is known and on the real EMPS."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from refusals import refused
from scipy.io import loadmat

from dynid.errors import ModelError, NotPossibleError
from dynid.estimate import Problem, identify
from dynid.model import Coulomb, Model, RigidBodies, Viscous, make_terms
from dynid.recording import Recording
from dynid.recording.sample_preparation import prepare
from dynid.regression import base_parameters
from dynid.robot import Robot
from dynid.simulation import PD, Reference, VirtualRobot

ROBOT = Robot.builtin("scara2")
MODEL = Model(ROBOT, (RigidBodies(), Viscous(), Coulomb()))
THETA = np.array([p.nominal for p in MODEL.parameters], dtype=float)
BASE = base_parameters(MODEL)
TRUTH = BASE.reduce(THETA)


@cache
def problem(scale: float = 0.7) -> Problem:
    t = np.arange(1600) / 200.0
    path = Reference.from_arrays(np.column_stack([1.5 * np.sin(1.3 * t) ** 2,
                                                  1.2 * np.sin(2.1 * t) - 0.4 * np.sin(4.3 * t)]),
                                 rate=200.0)
    machine = VirtualRobot(MODEL, THETA, PD([150.0, 6.0], [40.0, 0.9]), position_noise=1e-5, torque_noise=[0.05, 0.005])
    log = machine.record(path, seed=2)
    samples = prepare(log, method="none", torque_cutoff="none", slow=0.0)
    return Problem.from_model(MODEL, samples, base=BASE, nominal=scale * THETA)


@pytest.mark.parametrize("method", ["ekf", "ukf"])
def test_inertias_are_found_from_parameters_a_third_too_small(method: str) -> None:
    estimate = identify(problem(), method=method, start="nominal", position_noise=2e-5, torque_noise=0.05)
    big = [0, 3, 4]
    assert np.all(np.abs(estimate.values / TRUTH - 1.0)[big] < 0.05)
    assert np.all(estimate.std[big] < 0.1 * TRUTH[big])
    assert np.linalg.eigvalsh(estimate.covariance).min() > 0.0


@pytest.mark.parametrize("method", ["ekf", "ukf"])
def test_known_parameters_keep_their_values_and_their_torque(method: str) -> None:
    """Half of the truth is known: the other half comes out as from all of it, and what is known stays."""
    exact = {name: float(THETA[MODEL.parameters.index(name)]) for name in ("Fv1", "Fc1", "Fv2", "Fc2")}
    whole = problem()
    known = Problem.from_model(MODEL, whole.data, base=BASE, known=exact, nominal=0.7 * THETA)
    estimate = identify(known, method=method, start="nominal", position_noise=2e-5, torque_noise=0.05)
    assert {name: estimate.full[MODEL.parameters.index(name)] for name in exact} == exact
    truth = known.base.reduce(THETA)
    big = np.abs(truth) > 0.02 * np.abs(truth).max()
    assert np.all(np.abs(estimate.values / truth - 1.0)[big] < 0.05)
    with refused(ModelError, "needs-exact-values"):
        identify(Problem.from_model(MODEL, whole.data, base=BASE, known={"Fv1": (0.1, 0.01)}), method=method)


@cache
def coarse() -> tuple[Problem, np.ndarray]:
    """An arm with a light wrist, encoder counts and a filter that smooths them, and its true base values."""
    robot = Robot.builtin("arm3r")
    model = Model(robot, make_terms(robot, friction=("viscous", "coulomb", "offset")))
    theta, t = model.parameters.nominal, np.arange(2500) / 500.0
    path = Reference.from_arrays(np.column_stack([0.8 * np.sin(2.0 * t), 0.7 * np.sin(3.1 * t + 1.0),
                                                  0.9 * np.sin(4.3 * t)]),
                                 rate=500.0)
    log = VirtualRobot(model, theta, PD([50.0, 100.0, 10.0], [3.0, 6.0, 0.6]), encoder=5e-5,
                       torque_noise=[0.004, 0.03, 0.007]).record(path, seed=4)
    found = Problem.from_model(model, prepare(log), nominal=theta, recordings=log)
    return found, found.base.reduce(theta)


@pytest.mark.slow
def test_a_light_arm_is_found_from_counts_and_its_deviations_hold() -> None:
    found, truth = coarse()
    estimate = identify(found, method="ekf")
    assert np.linalg.norm(found.regression.stack().r @ (estimate.values - truth)) < 2e-3 * np.linalg.norm(
        found.regression.stack().r @ truth)
    assert np.mean(np.abs(estimate.values - truth) <= 1.96 * estimate.std) > 0.8


@pytest.mark.slow
def test_a_filter_that_goes_astray_says_so() -> None:
    with refused(NotPossibleError, "filter-astray"):
        identify(coarse()[0], method="ekf", start_std=3.0, passes=1)


def test_the_carriage_of_the_emps(data: Callable[..., Path]) -> None:
    file = loadmat(data("emps", "DATA_EMPS.mat"))
    t, q, command = (file[name].ravel().astype(float) for name in ("t", "qm", "vir"))
    log = Recording(t, q[:, None], float(file["gtau"].ravel()[0]) * command[:, None], source="DATA_EMPS.mat")
    robot = Robot.builtin("emps")
    model = Model(robot, make_terms(robot, friction=("viscous", "coulomb", "offset")))
    samples = prepare(log, cutoff=100, thin=5)
    nominal = np.array([{"M1": 60.0, "Fv1": 100.0, "Fc1": 10.0}.get(p.name, 0.0) for p in model.parameters])
    problem = Problem.from_model(model, samples, nominal=nominal)
    estimate = identify(problem, method="ekf", start="nominal", start_std=1.0)
    values = dict(zip(estimate.names, estimate.values, strict=True))
    assert values["M1"] == pytest.approx(95.1089, rel=0.03)
    assert values["Fc1"] == pytest.approx(20.3935, rel=0.15)
    # The model is not quite true, which shows in the innovations: the published values stay within what is stated.
    off = (estimate.values - [95.1089, 203.5034, 20.3935, -3.1648]) / estimate.std
    assert np.all(np.abs(off) < 2.0) and estimate.diagnostics["innovation_power"] > 4.0


@pytest.mark.parametrize(("options", "words"), [
    ({"passes": 0}, ("bad-filter-options", "'ekf'")), ({"start": "luck"}, ("unknown-start", "'wls'", "'nominal'")),
])
def test_wrong_calls_are_one_sentence(options: dict[str, object], words: tuple[str, ...]) -> None:
    with refused(ModelError, *words):
        identify(problem(), method="ekf", **options)
