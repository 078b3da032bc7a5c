"""Robust least squares: nothing lost without outliers, nothing spoilt by a tenth of gross ones."""

from __future__ import annotations

import numpy as np
import pytest
from motions import arm, low_passed, motion
from refusals import refused

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.estimate import Problem, identify
from dynid.estimate.robust import huber, tukey
from dynid.recording import Samples
from dynid.regression import base_parameters

DEVIATIONS = np.array([0.3, 0.2, 0.05])


def outliers(rng: np.random.Generator, kind: str, shape: tuple[int, int], size: float) -> Array:
    """Gross errors (samples, joints) in a tenth of all rows: of either sign, of one sign, or in bursts."""
    if kind == "bursts":
        hit = np.repeat(rng.permutation(shape[0] // 40) < shape[0] // 400, 40)[:, None] & np.ones(shape, dtype=bool)
    else:
        hit = rng.random(shape) < 0.1
    sign = rng.choice([-1.0, 1.0], shape) if kind == "either" else np.ones(shape)
    return np.where(hit, size * sign * rng.uniform(0.5, 1.0, shape), 0.0)


@pytest.mark.parametrize("kind", ["either", "one", "bursts"])
def test_a_tenth_of_gross_outliers_is_survived(kind: str) -> None:
    model, theta = arm()
    clean = motion(model, theta, seconds=20.0)
    rng = np.random.default_rng(0)
    base = base_parameters(model)
    noise = low_passed(rng, clean.tau.shape, DEVIATIONS, 10.0, 200.0)
    bad = outliers(rng, kind, clean.tau.shape, 5.0 * np.abs(clean.tau).max())
    truth = base.reduce(theta)

    def run(name: str, tau: Array, **options: object):
        samples = Samples.from_arrays(clean.q, clean.dq, clean.ddq, tau, rate=200.0)
        return identify(Problem.from_model(model, samples, base=base), method=name, **options)

    without = run("wls", clean.tau + noise)
    spoilt, tough = run("wls", clean.tau + noise + bad), run("irls", clean.tau + noise + bad)
    unit = without.std
    assert np.abs((spoilt.values - truth) / unit).max() > 10
    # As good as least squares on data without the outliers.
    assert np.sqrt(np.mean(((tough.values - truth) / unit) ** 2)) < 1.5
    assert np.abs((tough.values - truth) / tough.std).max() < 4
    np.testing.assert_allclose(tough.diagnostics["outlier_share_per_joint"], 0.1, atol=0.015)
    np.testing.assert_allclose(tough.diagnostics["noise_std_per_joint"], DEVIATIONS, rtol=0.25)
    assert tough.diagnostics["converged"]
    bounded = run("irls", clean.tau + noise + bad, loss="huber")
    assert np.linalg.norm((bounded.values - truth) / unit) < 0.2 * np.linalg.norm((spoilt.values - truth) / unit)


def test_without_outliers_it_is_nearly_least_squares() -> None:
    model, theta = arm()
    rng = np.random.default_rng(1)
    problem = Problem.from_model(model, motion(model, theta, DEVIATIONS * rng.normal(size=(4000, 3))))
    plain = identify(problem, method="wls")
    for loss in ("huber", "tukey"):
        tough = identify(problem, method="irls", loss=loss)
        assert np.abs(tough.values - plain.values).max() < 1.0 * plain.std.max()
        # 95 % efficient at the normal distribution, so deviations grow by 1 / sqrt(0.95).
        assert np.median(tough.std / plain.std) == pytest.approx(1 / np.sqrt(0.95), abs=0.04)
    wide = identify(problem, method="irls", loss="huber", tuning=1e3)
    weights = 1 / np.array(wide.diagnostics["noise_std_per_joint"])
    np.testing.assert_allclose(weights, wide.diagnostics["weights"])
    # Bent nowhere, it is least squares with its own scales.
    stacked = problem.regression.stack(weights)
    np.testing.assert_allclose(wide.values, np.linalg.solve(stacked.r, stacked.rho), rtol=1e-6)


def test_weighted_equations_hold_at_the_solution() -> None:
    """The sum over all joints of X' psi(r) is zero where Huber's estimate stands."""
    model, theta = arm()
    rng = np.random.default_rng(2)
    noise = DEVIATIONS * rng.standard_t(2.5, size=(3000, 3))
    problem = Problem.from_model(model, motion(model, theta, noise, seconds=15.0))
    estimate = identify(problem, method="irls", loss="huber", tolerance=1e-8, iterations=200)
    samples, scale = problem.data[0], np.array(estimate.diagnostics["noise_std_per_joint"])
    x = model.regressor(samples.q, samples.dq, samples.ddq)[:, :, problem.base.independent] / scale[:, None]
    r = samples.tau / scale - x @ estimate.values
    score = np.einsum("sjc,sj->c", x, np.clip(r, -1.345, 1.345))
    assert np.abs(score / np.linalg.norm(x, axis=(0, 1))).max() < 1e-6


def test_deviations_are_right_with_outliers_and_filtered_noise() -> None:
    model, theta = arm()
    clean = motion(model, theta, seconds=10.0)
    base = base_parameters(model)
    truth = base.reduce(theta)
    rng = np.random.default_rng(3)
    off = []
    for _ in range(40):
        noise = low_passed(rng, clean.tau.shape, DEVIATIONS, 15.0, 200.0)
        tau = clean.tau + noise + outliers(rng, "either", clean.tau.shape, 20.0)
        problem = Problem.from_model(model, Samples.from_arrays(clean.q, clean.dq, clean.ddq, tau, rate=200.0),
                                     base=base, blocks=1)
        estimate = identify(problem, method="irls")
        off.append((estimate.values - truth) / estimate.std)
    assert np.sqrt(np.mean(np.square(off))) == pytest.approx(1.0, abs=0.15)
    assert np.mean(np.abs(off) < 3.0) >= 0.985


def test_weights_and_slopes_belong_to_the_same_loss() -> None:
    u = np.linspace(-8.0, 8.0, 4001)
    for loss in (huber(), tukey()):
        influence = u * loss.weight(u)
        inside = np.abs(np.abs(u) - loss.tuning) > 0.01
        np.testing.assert_allclose(np.gradient(influence, u)[inside], loss.slope(u)[inside], atol=1e-3)
        assert influence.max() <= loss.tuning + 1e-12


def test_wrong_options_are_refused() -> None:
    model, theta = arm()
    problem = Problem.from_model(model, motion(model, theta, seconds=1.0))
    with refused(ModelError, "unknown-loss", "cauchy"):
        identify(problem, method="irls", loss="cauchy")
    with refused(ModelError, "bad-tuning", "1"):
        identify(problem, method="irls", tuning=-1)
    with refused(ModelError, "no-iterations"):
        identify(problem, method="irls", iterations=0)
