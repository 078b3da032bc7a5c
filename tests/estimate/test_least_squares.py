"""Ordinary and weighted least squares against numpy and closed forms, and deviations against the spread they state."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from motions import arm, fourier, low_passed, motion
from refusals import refused

from dynid.errors import ModelError, NotPossibleError
from dynid.estimate import Problem, identify, methods
from dynid.estimate.covariance import naive_covariance
from dynid.estimate.linear import joint_weights, solve
from dynid.model import Model, Scara, make_terms
from dynid.recording import Samples
from dynid.regression import Regression, TorqueEquations, base_parameters, fold
from dynid.robot import Robot

DEVIATIONS = np.array([0.3, 0.2, 0.05])


def dense(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Columns (samples, dof, base) and torques of the problem's one log."""
    samples = problem.data[0]
    y = problem.model.regressor(samples.q, samples.dq, samples.ddq)
    return y[:, :, problem.base.independent], samples.tau


def noisy_arm(seed: int = 0, **options: float) -> Problem:
    model, theta = arm()
    clean = motion(model, theta, **options)
    rng = np.random.default_rng(seed)
    tau = clean.tau + DEVIATIONS * rng.normal(size=clean.tau.shape)
    return Problem.from_model(model, Samples.from_arrays(clean.q, clean.dq, clean.ddq, tau, rate=200.0))


@pytest.mark.parametrize("name", ["ols", "wls", "irls", "ml", "tls"])
@pytest.mark.parametrize("robot", ["arm3r", "kuka-lwr4"])
def test_exact_without_noise(robot: str, name: str) -> None:
    machine = Robot.builtin(robot)
    model = Model(machine, make_terms(machine, ("viscous", "coulomb", "offset")))
    theta = np.array([0.2 if p.nominal is None else p.nominal for p in model.parameters])
    problem = Problem.from_model(model, motion(model, theta, seconds=10.0))
    estimate = identify(problem, method=name)
    truth = problem.base.reduce(theta)
    assert len(truth) == {"arm3r": 24, "kuka-lwr4": 64}[robot]
    assert estimate.identified.all()
    np.testing.assert_allclose(estimate.values, truth, rtol=1e-9, atol=1e-9 * np.abs(truth).max())
    assert estimate.diagnostics["relative_error"] < 1e-9


def test_ordinary_is_numpys_and_weighted_is_each_joint_over_its_deviation() -> None:
    problem = noisy_arm()
    y, tau = dense(problem)
    expected = np.linalg.lstsq(y.reshape(-1, y.shape[2]), tau.ravel())[0]
    np.testing.assert_allclose(identify(problem, method="ols").values, expected, rtol=1e-9)
    deviations = []
    for j, factor in enumerate(problem.regression.factors):
        own = y[:, j, factor.columns]
        residual = tau[:, j] - own @ np.linalg.lstsq(own, tau[:, j])[0]
        deviations.append(np.linalg.norm(residual) / np.sqrt(len(own) - own.shape[1]))
    np.testing.assert_allclose(1 / joint_weights(problem.regression), deviations, rtol=1e-2)
    np.testing.assert_allclose(deviations, DEVIATIONS, rtol=0.05)
    weights = joint_weights(problem.regression)
    heavy = np.linalg.lstsq((y * weights[:, None]).reshape(-1, y.shape[2]), (tau * weights).ravel())[0]
    np.testing.assert_allclose(identify(problem, method="wls").values, heavy, rtol=1e-9)


def test_naive_covariance_is_the_textbook_one() -> None:
    """One joint, white noise: s^2 (X'X)^-1 with s^2 = |e|^2 / (n - p), as any statistics package has it."""
    rng = np.random.default_rng(0)
    robot = Robot.builtin("emps")
    model = Model(robot, make_terms(robot, ("viscous", "coulomb", "offset")))
    q, dq, ddq = fourier(1, seconds=5.0)
    theta = np.array([0.0] * 9 + [95.0, 200.0, 20.0, -3.0])
    problem = Problem.from_model(model, Samples.from_arrays(q, dq, ddq, model.inverse_dynamics(theta, q, dq, ddq)
                                                            + 5.0 * rng.normal(size=q.shape)))
    y, tau = dense(problem)
    x = y[:, 0]
    beta = np.linalg.lstsq(x, tau[:, 0])[0]
    variance = np.sum((tau[:, 0] - x @ beta) ** 2) / (len(x) - x.shape[1])
    expected = variance * np.linalg.inv(x.T @ x)
    solution = solve(problem.regression, problem.regression.stack())
    np.testing.assert_allclose(naive_covariance(problem.regression, solution, np.ones(1)), expected, rtol=1e-9)
    # White noise: the honest covariance says the same within its own scatter.
    honest = np.sqrt(np.diag(identify(problem, method="ols").covariance))
    np.testing.assert_allclose(honest, np.sqrt(np.diag(expected)), rtol=0.25)
    assert identify(problem, method="ols").uncertainty.facts["std_inflation"] == pytest.approx(1.0, abs=0.15)


@pytest.mark.parametrize(("robot", "name", "seconds", "cutoff"), [
    ("arm3r", "wls", 10.0, 5.0),
    pytest.param("arm3r", "wls", 20.0, 20.0, marks=pytest.mark.slow),
    pytest.param("arm3r", "ols", 20.0, 5.0, marks=pytest.mark.slow),
    pytest.param("kuka-lwr4", "wls", 20.0, 10.0, marks=pytest.mark.slow),
])
def test_deviations_are_right_under_filtered_noise(robot: str, name: str, seconds: float, cutoff: float) -> None:
    """Over 200 noisy repetitions 99 % of parameters are within three stated deviations, and spread as stated."""
    machine = Robot.builtin(robot)
    model = Model(machine, make_terms(machine, ("viscous", "coulomb", "offset")))
    theta = np.array([0.2 if p.nominal is None else p.nominal for p in model.parameters])
    size = DEVIATIONS if robot == "arm3r" else np.array([1.0, 1.0, 0.5, 0.5, 0.2, 0.1, 0.05])
    clean = motion(model, theta, seconds=seconds)
    base = base_parameters(model)
    truth = base.reduce(theta)
    rng = np.random.default_rng(1)
    off, inflation = [], []
    for _ in range(200):
        noise = low_passed(rng, clean.tau.shape, size, cutoff, 200.0)
        samples = Samples.from_arrays(clean.q, clean.dq, clean.ddq, clean.tau + noise, rate=200.0)
        estimate = identify(Problem.from_model(model, samples, base=base, blocks=1), method=name)
        off.append((estimate.values - truth) / estimate.std)
        inflation.append(estimate.uncertainty.facts["std_inflation"])
    off = np.array(off)
    assert np.mean(np.abs(off) < 3.0) >= 0.99
    assert np.sqrt(np.mean(off ** 2)) == pytest.approx(1.0, abs=0.1)
    # What naive deviations would have been: far off, and the estimate says by how much.
    assert np.median(inflation) > 2.0
    assert np.mean(np.abs(off) * np.array(inflation)[:, None] < 3.0) < 0.9


def test_diagnostics_are_those_of_the_torques() -> None:
    problem = noisy_arm()
    estimate = identify(problem, method="wls")
    y, tau = dense(problem)
    residual = tau - y @ estimate.values
    facts = estimate.diagnostics
    assert facts["relative_error"] == pytest.approx(100 * np.linalg.norm(residual) / np.linalg.norm(tau), rel=1e-9)
    np.testing.assert_allclose(facts["relative_error_per_joint"],
                               100 * np.linalg.norm(residual, axis=0) / np.linalg.norm(tau, axis=0), rtol=1e-9)
    np.testing.assert_allclose(facts["residual_std_per_joint"], residual.std(axis=0), rtol=1e-2)
    assert facts["rank"] == 24 and facts["confounded"] == {}
    samples = problem.data[0]
    np.testing.assert_allclose(estimate.predict(samples.q, samples.dq, samples.ddq), y @ estimate.values, atol=1e-9)


def test_motion_of_one_joint_says_what_it_does_not_excite() -> None:
    model, theta = arm()
    q, dq, ddq = fourier(3, seconds=10.0)
    q[:, :2], dq[:, :2], ddq[:, :2] = 0.3, 0.0, 0.0
    tau = model.inverse_dynamics(theta, q, dq, ddq)
    estimate = identify(Problem.from_model(model, Samples.from_arrays(q, dq, ddq, tau)), method="wls")
    assert estimate.identified.sum() <= estimate.diagnostics["rank"] < 24
    assert {"Fv1", "Fv2", "Fc1"} <= set(estimate.diagnostics["confounded"])
    assert np.isinf(estimate.std[~estimate.identified]).all()
    known = dict(zip(estimate.names, estimate.values, strict=True))
    assert known["Fv3"] == pytest.approx(theta[model.parameters.index("Fv3")], rel=1e-9)
    assert estimate.diagnostics["relative_error"] < 1e-9


def test_a_saved_fold_is_enough_and_states_deviations_from_its_blocks(tmp_path) -> None:
    problem = noisy_arm()
    problem.regression.save(tmp_path / "fold.npz")
    alone = Problem(problem.model, Regression.load(tmp_path / "fold.npz", problem.model))
    estimate = identify(alone, method="wls")
    np.testing.assert_allclose(estimate.values, identify(problem, method="wls").values, rtol=1e-12)
    whole = identify(problem, method="wls")
    assert estimate.cov_type == "blocks" and 4.0 < estimate.uncertainty.degrees_of_freedom < 9.0
    # White noise: the spectrum of the residuals is averaged over nearly all frequencies.
    assert whole.cov_type == "correlated" and 300.0 < whole.uncertainty.degrees_of_freedom < np.inf
    assert 0.7 < np.median(estimate.std / whole.std) < 1.3
    few = identify(replace(alone, regression=alone.regression.joined(2)), method="wls")
    assert few.cov_type == "independent" and "std_inflation" not in few.uncertainty.facts
    for name in ("irls", "ml", "sls"):
        with refused(ModelError, "needs-data", f"'{name}'"):
            identify(alone, method=name)


def test_too_few_equations_and_wrong_calls_are_refused_in_one_sentence() -> None:
    model, theta = arm()
    samples = motion(model, theta, seconds=0.04)
    with refused(NotPossibleError, "too-few-equations", "24"):
        identify(Problem.from_model(model, samples), method="wls")
    problem = noisy_arm(seconds=2.0)
    with refused(ModelError, "unknown-method", "least"):
        identify(problem, method="least")
    with refused(ModelError, "unknown-option", "speed"):
        identify(problem, method="wls", speed=1)
    still = np.zeros((100, 2))
    with refused(NotPossibleError, "nothing-excited"):
        identify(Problem.from_model(Scara(), Samples.from_arrays(still, still, still, still)), method="ols")


def test_all_methods_of_this_family_are_there_by_their_names() -> None:
    assert {"ols", "wls", "irls", "tls", "ml", "ridge", "sls"} <= set(methods())


def test_twice_the_same_is_the_same_to_the_last_bit() -> None:
    for name in ("wls", "irls", "ml", "tls", "ridge"):
        first, second = (identify(noisy_arm(seconds=5.0), method=name) for _ in range(2))
        np.testing.assert_array_equal(first.values, second.values)
        np.testing.assert_array_equal(first.covariance, second.covariance)


def test_two_logs_count_as_one_long_one() -> None:
    model, theta = arm()
    rng = np.random.default_rng(2)
    logs = [motion(model, theta, rng.normal(size=(2000, 3)), seconds=10.0, seed=k) for k in range(2)]
    both = identify(Problem.from_model(model, logs), method="ols")
    y = np.concatenate([model.regressor(s.q, s.dq, s.ddq)[:, :, both.base.independent] for s in logs])
    tau = np.concatenate([s.tau for s in logs])
    np.testing.assert_allclose(both.values, np.linalg.lstsq(y.reshape(-1, y.shape[2]), tau.ravel())[0], rtol=1e-9)
    single = identify(Problem.from_model(model, logs[0]), method="ols")
    assert np.median(both.std / single.std) < 0.95
    assert fold(TorqueEquations.from_model(model, logs)).rows == (4000,) * 3


def test_methods_are_loaded_when_one_is_asked_for() -> None:
    """A run by least squares does not pay for Kalman filters and closed loops, which are there by name."""
    code = ("import sys, dynid.estimate as e; from dynid.estimate.problem import find_method\n"
            "assert find_method('wls').title and 'dynid.estimate.kalman' not in sys.modules\n"
            "assert find_method('ekf').title and 'dynid.estimate.kalman' in sys.modules\n"
            "assert len(e.methods()) > 30")
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_name_that_a_method_not_loaded_yet_has_is_refused() -> None:
    code = ("import dynid.estimate as e\nfrom dynid.errors import ModelError\n"
            "try: e.method('ekf', 'another')(lambda problem: None)\n"
            "except ModelError as error: assert \"a method 'ekf' exists already\" in str(error)\n"
            "else: raise AssertionError")
    subprocess.run([sys.executable, "-c", code], check=True)


def test_textbook_standard_errors_are_those_of_the_equations() -> None:
    model, theta = arm()
    problem = Problem.from_model(model,
                                 motion(model, theta, DEVIATIONS * np.random.default_rng(5).normal(size=(4000, 3))))
    b, (rows, tau) = len(problem.base), dense(problem)
    for name in ("ols", "wls"):  # Ardiani, eq. 1.51-1.53 on the rows as they are weighted
        estimate = identify(problem, method=name)
        weights = np.ones(3) if name == "ols" else np.array(estimate.diagnostics["weights"])
        w, y = (rows * weights[:, None]).reshape(-1, b), (tau * weights).reshape(-1)
        values = np.linalg.lstsq(w, y, rcond=None)[0]
        variance = np.sum((y - w @ values) ** 2) / (len(y) - b)
        expected = np.sqrt(variance * np.diag(np.linalg.inv(w.T @ w)))
        assert np.allclose(estimate.uncertainty.facts["textbook_std"], expected, rtol=1e-6)
