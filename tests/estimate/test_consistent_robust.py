"""pc-irls and pc-ml: each step is cvxpy's optimum, and both are better where their noise is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from consistency.problems import oracle
from motions import arm, low_passed, motion
from refusals import refused

from dynid.arrays import Array
from dynid.consistency import Consistency
from dynid.errors import ModelError
from dynid.estimate import Estimate, Problem, identify
from dynid.estimate.consistent import constrained_fit
from dynid.estimate.likelihood import whitened
from dynid.estimate.linear import fit_repeatedly
from dynid.estimate.robust import huber, reweighted
from dynid.model import Model
from dynid.recording import Samples
from dynid.regression import base_parameters

DEVIATIONS = np.array([0.3, 0.2, 0.05])
MIX = np.array([[1.0, 0.0, 0.0], [0.9, 0.44, 0.0], [-0.7, 0.5, 0.51]]) * DEVIATIONS[:, None]


def noisy(model: Model, clean: Samples, noise: Array) -> Problem:
    samples = Samples.from_arrays(clean.q, clean.dq, clean.ddq, clean.tau + noise, rate=200.0)
    return Problem.from_model(model, samples, base=base_parameters(model), blocks=1)


@pytest.mark.parametrize("kind", ["robust", "likelihood"])
def test_the_last_step_is_cvxpys_optimum_with_its_weights(kind: str) -> None:
    model, theta = arm()
    rng = np.random.default_rng(0)
    clean = motion(model, theta, seconds=10.0)
    problem = noisy(model, clean, 3.0 * rng.standard_t(2.5, clean.tau.shape) @ MIX.T)
    consistency, scale = Consistency(model.parameters), DEVIATIONS
    start = identify(problem, method="wls").values

    def equations(beta: Array):
        return reweighted(problem, huber(), beta, scale) if kind == "robust" else whitened(problem, beta)

    end = fit_repeatedly(kind, start, equations, 50, 1e-6, lambda regression, weights: constrained_fit(
        problem, regression, weights, consistency)[0].beta)
    stacked = end.regression.stack(end.weights)
    matrix = stacked.r @ problem.base.matrix
    least = oracle(consistency, matrix, stacked.rho)
    assert end.steps < 50
    assert stacked.misfit(end.beta) - stacked.rest == pytest.approx(least, rel=1e-5)
    # It is a fixed point: weights from its own residuals give the same equations.
    again = equations(end.beta)[0].stack(end.weights)
    np.testing.assert_allclose(again.r.T @ again.r, stacked.r.T @ stacked.r, rtol=1e-4,
                               atol=1e-5 * np.abs(stacked.r.T @ stacked.r).max())


def test_a_tenth_of_outliers_does_not_spoil_it() -> None:
    model, theta = arm()
    rng = np.random.default_rng(1)
    clean = motion(model, theta, seconds=10.0)
    noise = low_passed(rng, clean.tau.shape, DEVIATIONS, 10.0, 200.0)
    hit = rng.random(clean.tau.shape) < 0.1
    bad = np.where(hit, 5.0 * np.abs(clean.tau).max() * rng.uniform(0.5, 1.0, hit.shape), 0.0)
    unspoilt = identify(noisy(model, clean, noise), method="pc-wls")
    problem = noisy(model, clean, noise + bad)
    truth = problem.base.reduce(theta)
    plain, tough = identify(problem, method="pc-wls"), identify(problem, method="pc-irls")
    assert tough.theta is not None and tough.diagnostics["consistent"] and tough.diagnostics["converged"]
    assert Consistency(model.parameters).slack(tough.theta) >= 0.0

    def miss(one: Estimate) -> float:
        return float(np.sqrt(np.mean(((one.values - truth) / identify(problem, method="irls").std) ** 2)))

    assert miss(tough) < 0.1 * miss(plain)
    assert miss(tough) < 1.5 * max(miss(unspoilt), 1.0)
    np.testing.assert_allclose(tough.diagnostics["outlier_share_per_joint"], 0.1, atol=0.02)


def test_noise_that_joints_share_is_used_and_stated() -> None:
    model, theta = arm()
    clean = motion(model, theta, seconds=10.0)
    rng = np.random.default_rng(2)
    truth = base_parameters(model).reduce(theta)
    together, apart, free, inside = [], [], [], []
    for _ in range(6):
        problem = noisy(model, clean, low_passed(rng, clean.tau.shape, 1.0, 15.0, 200.0) @ MIX.T)
        best, unit = identify(problem, method="pc-ml"), identify(problem, method="wls").std
        together.append((best.values - truth) / unit)
        apart.append((identify(problem, method="pc-wls").values - truth) / unit)
        free.append((identify(problem, method="ml").values - truth) / unit)
        inside.append(np.abs(best.values - truth) <= 2.0 * best.std)
        assert best.diagnostics["residual_correlation"][0][1] > 0.7
    assert np.linalg.norm(together) < 0.7 * np.linalg.norm(apart)
    assert np.linalg.norm(together) < np.linalg.norm(free)
    assert np.mean(inside) > 0.88


@pytest.mark.parametrize("method", ["pc-irls", "pc-ml"])
def test_rows_that_some_joints_leave_out(method: str) -> None:
    model, theta = arm()
    rng = np.random.default_rng(3)
    samples = motion(model, theta, rng.normal(size=(2000, 3)) @ MIX.T, seconds=10.0)
    keep = rng.random((2000, 3)) < 0.9
    problem = Problem.from_model(model, replace(samples, keep=keep),
                                 known={"M3": (theta[model.parameters.index("M3")], 0.01)})
    found = identify(problem, method=method)
    assert found.theta is not None and found.diagnostics["consistent"]
    assert abs(found.theta[model.parameters.index("M3")] - theta[model.parameters.index("M3")]) < 0.05
    assert np.mean(np.abs(found.values - problem.base.reduce(theta)) <= 3.0 * found.std) > 0.9


def test_a_loss_it_does_not_have_and_no_iteration_are_refused() -> None:
    model, theta = arm()
    problem = Problem.from_model(model, motion(model, theta, seconds=5.0))
    with refused(ModelError, "unknown-loss"):
        identify(problem, method="pc-irls", loss="cauchy")
    with refused(ModelError, "no-iterations"):
        identify(problem, method="pc-ml", iterations=0)
