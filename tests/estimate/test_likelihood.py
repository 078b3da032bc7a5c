"""Maximum likelihood against dense generalised least squares, and what it gains when joints share their noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from motions import arm, low_passed, motion
from refusals import refused

from dynid.errors import ModelError, NotPossibleError
from dynid.estimate import Problem, identify
from dynid.recording import Samples
from dynid.regression import base_parameters

MIX = np.array([[1.0, 0.0, 0.0], [0.9, 0.44, 0.0], [-0.7, 0.5, 0.51]]) * np.array([[0.3], [0.2], [0.05]])


def test_it_is_dense_generalised_least_squares_at_its_own_covariance() -> None:
    model, theta = arm()
    rng = np.random.default_rng(0)
    samples = motion(model, theta, rng.normal(size=(2000, 3)) @ MIX.T, seconds=10.0)
    keep = rng.random((2000, 3)) < 0.95
    problem = Problem.from_model(model, replace(samples, keep=keep))
    estimate = identify(problem, method="ml", tolerance=1e-9, iterations=100)
    common = keep.all(axis=1)
    x = model.regressor(samples.q, samples.dq, samples.ddq)[common][:, :, problem.base.independent]
    tau = samples.tau[common]
    beta = np.linalg.lstsq(x.reshape(-1, x.shape[2]), tau.ravel())[0]
    for _ in range(60):
        residual = tau - x @ beta
        precision = np.linalg.inv(residual.T @ residual / len(tau))
        heavy = np.einsum("ij,sjc->sic", precision, x).reshape(-1, x.shape[2])
        beta = np.linalg.solve(heavy.T @ x.reshape(-1, x.shape[2]), heavy.T @ tau.ravel())
    np.testing.assert_allclose(estimate.values, beta, rtol=1e-7, atol=1e-8)
    residual = tau - x @ beta
    np.testing.assert_allclose(estimate.diagnostics["residual_correlation"], np.corrcoef(residual.T), atol=5e-3)
    spread = residual.T @ residual / len(tau)
    expected = -0.5 * len(tau) * (np.linalg.slogdet(2 * np.pi * spread)[1] + 3)
    assert estimate.diagnostics["log_likelihood"] == pytest.approx(expected, rel=1e-6)
    assert estimate.diagnostics["common_rows"] == common.sum()


def test_shared_noise_makes_it_better_than_weights_alone_and_its_deviations_are_right() -> None:
    model, theta = arm()
    clean = motion(model, theta, seconds=10.0)
    base = base_parameters(model)
    truth = base.reduce(theta)
    rng = np.random.default_rng(1)
    ml, wls = [], []
    stated = []
    for _ in range(40):
        noise = low_passed(rng, clean.tau.shape, 1.0, 15.0, 200.0) @ MIX.T
        samples = Samples.from_arrays(clean.q, clean.dq, clean.ddq, clean.tau + noise, rate=200.0)
        problem = Problem.from_model(model, samples, base=base, blocks=1)
        estimate = identify(problem, method="ml")
        ml.append(estimate.values - truth)
        stated.append(estimate.std)
        wls.append(identify(problem, method="wls").values - truth)
    spread, weighted = np.std(ml, axis=0), np.std(wls, axis=0)
    assert np.median(spread / weighted) < 0.8
    off = np.array(ml) / np.array(stated)
    assert np.sqrt(np.mean(off ** 2)) == pytest.approx(1.0, abs=0.12)
    assert np.mean(np.abs(off) < 3.0) >= 0.985


def test_without_shared_noise_it_is_weighted_least_squares_within_its_deviations() -> None:
    model, theta = arm()
    rng = np.random.default_rng(2)
    problem = Problem.from_model(model, motion(model, theta, np.array([0.3, 0.2, 0.05]) * rng.normal(size=(4000, 3))))
    ml, wls = identify(problem, method="ml"), identify(problem, method="wls")
    assert np.abs((ml.values - wls.values) / wls.std).max() < 0.3
    np.testing.assert_allclose(ml.std, wls.std, rtol=0.1)
    assert ml.diagnostics["converged"]


def test_rows_without_all_joints_are_refused_by_name() -> None:
    model, theta = arm()
    samples = motion(model, theta, seconds=3.0)
    turns = np.zeros((600, 3), dtype=bool)
    turns[np.arange(600), np.arange(600) % 3] = True
    with refused(NotPossibleError, "too-few-common-rows"):
        identify(Problem.from_model(model, replace(samples, keep=turns)), method="ml")
    with refused(ModelError, "no-iterations"):
        identify(Problem.from_model(model, samples), method="ml", iterations=0)
