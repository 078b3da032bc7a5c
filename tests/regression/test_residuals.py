"""Residuals and their correlation in time, against processes whose autocovariance is known in closed form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from motions import arm, low_passed, motion
from scipy.linalg import toeplitz
from scipy.signal import lfilter

from dynid.arrays import Array
from dynid.recording import Decimation
from dynid.recording.decimate import decimate_columns, decimated_rows
from dynid.regression import TorqueEquations, base_parameters, fold
from dynid.regression.autocorrelation import autocovariance, correlation, noise_matrix
from dynid.regression.derived import Mixed
from dynid.regression.residual_series import PIECE, Residuals, residuals, torque_sums


def autoregressive(rng: np.random.Generator, count: int, a: float) -> Array:
    """x_t = a x_(t-1) + e_t with variance one: its autocovariance is a^k."""
    e = rng.normal(size=count + 500) * np.sqrt(1 - a ** 2)
    return lfilter([1.0], [1.0, -a], e)[500:]


@pytest.mark.parametrize("a", [0.0, 0.5, 0.9])
def test_autocovariance_of_an_autoregressive_process(a: float) -> None:
    rng = np.random.default_rng(0)
    found = autocovariance(autoregressive(rng, 200_000, a), np.ones(200_000, dtype=bool))
    lags = np.arange(4)
    np.testing.assert_allclose(found[:4], a ** lags, atol=0.03)
    # The sum over all lags is what deviations hang on: (1 + a) / (1 - a).
    assert 2 * found.sum() - found[0] == pytest.approx((1 + a) / (1 - a), rel=0.1)


def test_gaps_do_not_change_the_size_of_the_autocovariance() -> None:
    rng = np.random.default_rng(1)
    x = autoregressive(rng, 100_000, 0.8)
    keep = np.repeat(rng.random(100) < 0.7, 1000)
    found = autocovariance(np.where(keep, x, 1e6), keep)
    np.testing.assert_allclose(found[:3], 0.8 ** np.arange(3), atol=0.05)


def test_no_variance_from_an_autocovariance_is_negative() -> None:
    rng = np.random.default_rng(2)
    for _ in range(20):
        x = low_passed(rng, (400,), 1.0, 5.0, 200.0)
        shape = autocovariance(x, np.ones(400, dtype=bool))
        assert np.linalg.eigvalsh(toeplitz(np.pad(shape, (0, 400 - len(shape))))).min() > -1e-10 * shape[0]


def test_too_few_rows_and_zero_residuals_have_none() -> None:
    assert autocovariance(np.ones(5), np.array([True] + [False] * 4)).tolist() == [0.0]
    assert autocovariance(np.zeros(50), np.ones(50, dtype=bool)).tolist() == [0.0]


def test_what_a_fit_absorbs_is_put_back() -> None:
    """Residuals of white noise after a fit of slow columns: without them the sum over all lags is far too small."""
    rng = np.random.default_rng(3)
    count = 2000
    columns = np.array([np.cos(2 * np.pi * k * np.arange(count) / count) for k in range(40)])
    q, _ = np.linalg.qr(columns.T)
    size = [0.0, 0.0]
    for _ in range(20):
        x = rng.normal(size=count)
        residual = x - q @ (q.T @ x)
        absorbed = np.array([sum(np.dot(c[:count - k], c[k:]) for c in q.T) for k in range(count // 5)])
        for k, found in enumerate((autocovariance(residual, np.ones(count, dtype=bool)),
                                   autocovariance(residual, np.ones(count, dtype=bool), absorbed))):
            spectrum = np.fft.rfft(np.concatenate([found, np.zeros(count), found[:0:-1]])).real
            size[k] += spectrum[:len(spectrum) * 20 // count].mean() / 20  # where the columns are
    assert size[0] < 0.85
    assert size[1] == pytest.approx(1.0, abs=0.06)


def test_residuals_are_those_of_decimated_equations() -> None:
    model, theta = arm()
    rng = np.random.default_rng(4)
    plain = motion(model, theta, rng.normal(size=(2000, 3)), seconds=10.0)
    decimation, segments = Decimation(5), np.array([[0, 900], [905, 2000]])
    samples = replace(plain, decimation=decimation, segments=segments, keep=rng.random((2000, 3)) < 0.9)
    base = base_parameters(model)
    beta = base.reduce(theta) * 1.1
    found, = residuals(TorqueEquations.from_model(model, samples, base), beta)
    rows = decimated_rows(segments, decimation)
    dense = model.regressor(plain.q, plain.dq, plain.ddq)[:, :, base.independent]
    np.testing.assert_allclose(found.measured, decimate_columns(plain.tau, decimation, segments), atol=1e-10)
    np.testing.assert_allclose(found.predicted, decimate_columns(dense @ beta, decimation, segments), atol=1e-10)
    np.testing.assert_array_equal(found.t, plain.t[rows])
    np.testing.assert_array_equal(found.keep, samples.keep[rows])
    assert found.rate == plain.rate / 5
    sums = np.sum(np.where(found.keep, found.residual, 0.0) ** 2, axis=0)
    np.testing.assert_allclose(sums, fold(TorqueEquations.from_model(model, samples, base)).misfits(beta), rtol=1e-9)


@pytest.mark.parametrize("mix", [None, np.array([[1.0, 0.5, -0.2], [0.0, 2.0, 0.3], [0.0, 0.0, 0.7]])])
def test_noise_matrix_is_the_dense_product(mix: Array | None) -> None:
    model, theta = arm()
    rng = np.random.default_rng(5)
    samples = motion(model, theta, low_passed(rng, (1500, 3), 0.2, 10.0, 200.0), seconds=7.5)
    keep = rng.random((1500, 3)) < 0.9
    samples = replace(samples, keep=keep)
    base = base_parameters(model)
    beta = base.reduce(theta)
    equations = TorqueEquations.from_model(model, samples, base)
    found = correlation(equations if mix is None else Mixed(equations, mix), beta)
    mixing = np.eye(3) if mix is None else mix
    plain = model.regressor(samples.q, samples.dq, samples.ddq)[:, :, base.independent]
    dense = np.einsum("ij,sjc->sic", mixing, plain)
    kept = keep if mix is None else np.repeat(keep.all(axis=1)[:, None], 3, axis=1)
    for j in range(3):
        shape = found.autocovariance[j]
        matrix = toeplitz(np.pad(shape, (0, 1500 - len(shape))))
        x = np.where(kept[:, j, None], dense[:, j, found.columns[j]], 0.0)
        expected = x.T @ matrix @ x
        np.testing.assert_allclose(found.noise[j], expected, atol=1e-10 * np.abs(expected).max())
    np.testing.assert_array_equal(found.rows, kept.sum(axis=0))


def test_effective_rows_of_an_autoregressive_process() -> None:
    model, theta = arm()
    rng = np.random.default_rng(6)
    noise = np.stack([autoregressive(rng, 40_000, a) for a in (0.0, 0.5, 0.8)], axis=1)
    samples = motion(model, theta, noise, seconds=200.0)
    base = base_parameters(model)
    found = correlation(TorqueEquations.from_model(model, samples, base), base.reduce(theta))
    np.testing.assert_allclose(found.effective / 40_000, [1.0, 1 / 3, 1 / 9], rtol=0.15)


def test_influence_bounds_what_is_felt_of_outliers() -> None:
    model, theta = arm()
    rng = np.random.default_rng(7)
    noise = rng.normal(size=(4000, 3))
    noise[::100] += 1e3
    samples = motion(model, theta, noise, seconds=20.0)
    base = base_parameters(model)
    equations = TorqueEquations.from_model(model, samples, base)
    plain = correlation(equations, base.reduce(theta))
    bounded = correlation(equations, base.reduce(theta), influence=lambda r: np.clip(r, -2.0, 2.0))
    assert plain.autocovariance[0][0] > 1e3
    expected = np.mean(np.clip(noise, -2.0, 2.0) ** 2, axis=0)
    np.testing.assert_allclose([c[0] for c in bounded.autocovariance], expected, rtol=1e-10)


def test_logs_are_weighed_by_their_rows() -> None:
    model, theta = arm()
    rng = np.random.default_rng(8)
    long = motion(model, theta, rng.normal(size=(4000, 3)), seconds=20.0)
    short = motion(model, theta, 3.0 * rng.normal(size=(2000, 3)), seconds=10.0, seed=1)
    base = base_parameters(model)
    beta = base.reduce(theta)
    equations = TorqueEquations.from_model(model, [long, short], base)
    found = correlation(equations, beta)
    assert found.rows.tolist() == [6000.0] * 3
    power = np.sum([np.sum(part.residual ** 2, axis=0) for part in residuals(equations, beta)], axis=0)
    np.testing.assert_allclose([c[0] for c in found.autocovariance], power / 6000, rtol=1e-10)


def test_torque_sums_are_those_of_the_kept_rows() -> None:
    """Over more rows than one piece has, beside sums that are written down row by row."""
    rng = np.random.default_rng(4)
    rows = PIECE + 17
    tau, hat = rng.normal(size=(2, rows, 2)) + 0.3
    keep = rng.random((rows, 2)) < 0.8
    found = torque_sums(Residuals(np.arange(rows) / 100.0, tau, hat, keep, 100.0, "made up"))
    for j in range(2):
        pairs = [(float(a), float(b)) for a, b, yes in zip(tau[:, j], hat[:, j], keep[:, j], strict=True) if yes]
        expected = [sum(a * a for a, _ in pairs), sum(a for a, _ in pairs), sum((a - b) ** 2 for a, b in pairs),
                    sum(a * b for a, b in pairs), sum(b * b for _, b in pairs), len(pairs)]
        assert found[j] == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(3))
def test_covariance_of_a_score_is_positive_semidefinite_for_a_truncated_autocovariance(seed: int) -> None:
    """Truncation of an autocovariance makes its spectrum negative. Where it is not, X' C X is the product with the
    matrix of autocovariances."""
    rng = np.random.default_rng(seed)
    columns, keep = rng.normal(size=(40, 200)), np.ones(200, dtype=bool)
    cut = 0.9 ** np.arange(8)
    assert np.linalg.eigvalsh(toeplitz(np.pad(cut, (0, 192)))).min() < -0.5
    found = noise_matrix(columns, keep, cut)
    assert np.linalg.eigvalsh(found).min() > -1e-9 * np.trace(found)
    assert np.all(np.linalg.eigvalsh(found - columns @ toeplitz(np.pad(cut, (0, 192))) @ columns.T) > -1e-9)
    whole = np.pad(1.0 - np.arange(8) / 8.0, (0, 192))  # a triangle has a positive spectrum
    np.testing.assert_allclose(noise_matrix(columns, keep, whole[:8]), columns @ toeplitz(whole) @ columns.T,
                               atol=1e-9)
