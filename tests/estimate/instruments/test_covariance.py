"""The covariance of instrumental estimates from spectra, against closed forms for residuals of known correlation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import toeplitz
from scipy.signal import lfilter

from dynid.estimate.instruments.projection import LowRate, Projected, residual_amplitude, spectral_covariance

ROWS = 2400
T = np.arange(ROWS) / 100.0


def equations(residual: np.ndarray, kept: np.ndarray | None = None) -> tuple[Projected, LowRate, list[np.ndarray]]:
    """Two joints that share a parameter, Z = Y: joint 1 sees columns 0 and 1, joint 2 columns 1 and 2."""
    kept = np.ones((ROWS, 2)) if kept is None else kept
    z = [np.array([np.sin(3.0 * T), np.cos(7.0 * T)]) * kept[:, 0], np.array([np.sin(5.0 * T), np.cos(2.0 * T)])
         * kept[:, 1]]
    columns = (np.array([0, 1]), np.array([1, 2]))
    tall = np.zeros((2 * ROWS, 3))
    tall[:ROWS, columns[0]], tall[ROWS:, columns[1]] = z[0].T, z[1].T
    r = np.linalg.qr(tall, mode="r")
    projected = Projected(r, np.zeros(3), r, np.arange(3), 0.0, 3, 2 * ROWS)
    counts = kept > 0
    deviation = np.sqrt((np.where(counts, residual, 0.0) ** 2).sum(axis=0) / counts.sum(axis=0))
    low = LowRate(z, np.where(counts, residual, 0.0), kept, columns, 1.0, deviation, 0.0, 0.0)
    return projected, low, [tall[:ROWS], tall[ROWS:]]


@pytest.mark.parametrize("pole", [
    0.0, 0.7, 0.98, *(pytest.param(pole, marks=pytest.mark.slow) for pole in (0.3, 0.9))])
def test_noise_of_known_correlation_in_time_and_between_joints(pole: float) -> None:
    """(Z'Z)^-1 sum_jl Z_j' C_jl Z_l (Z'Z)^-1 with C_jl = mix_jl pole^|k| / (1 - pole^2)."""
    mix = np.array([[1.0, 0.6], [0.6, 4.0]])
    rng, found = np.random.default_rng(0), []
    for _ in range(40):
        noise = lfilter([1.0], [1.0, -pole], rng.multivariate_normal(np.zeros(2), mix, size=ROWS + 500), axis=0)[500:]
        projected, low, parts = equations(noise)
        found.append(spectral_covariance(projected, low, np.ones(2)))
    shape = toeplitz(pole ** np.arange(ROWS) / (1.0 - pole ** 2))
    middle = sum(mix[j, k] * parts[j].T @ shape @ parts[k] for j in range(2) for k in range(2))
    inverse = np.linalg.inv(sum(part.T @ part for part in parts))
    truth = inverse @ middle @ inverse
    scale = np.sqrt(np.diag(truth))
    assert np.abs((np.mean(found, axis=0) - truth) / np.outer(scale, scale)).max() < 0.1


def test_rows_that_count_for_nothing_do_not_enter() -> None:
    """Residuals a hundred times as large where the instruments are zero leave the deviations where they were."""
    rng = np.random.default_rng(1)
    noise, kept = rng.normal(size=(ROWS, 2)), np.ones((ROWS, 2))
    kept[1000:1400] = 0.0
    loud = noise.copy()
    loud[1000:1400] *= 100.0
    quiet, other = (spectral_covariance(*equations(x, kept)[:2], np.ones(2)) for x in (noise, loud))
    assert np.allclose(quiet, other, rtol=1e-9)


def test_the_amplitude_of_residuals_follows_them_but_not_below_a_fifth() -> None:
    rng = np.random.default_rng(2)
    size = np.where(T < 12.0, 0.02, 1.0)[:, None]
    low = equations(size * rng.normal(size=(ROWS, 2)))[1]
    amplitude = residual_amplitude(low)
    share = amplitude[:, 20:1150] / low.residual_std[:, None]
    assert np.all(share >= 0.2) and np.all(share < 0.23)  # a window of eleven rows has some spread by chance
    assert np.allclose(np.sqrt((amplitude[:, 1220:] ** 2).mean(axis=1)), 1.0, rtol=0.1)


def test_chance_does_not_make_an_amplitude() -> None:
    """Slow noise of constant deviation: few of its correlation times fit into a window."""
    rng, spread = np.random.default_rng(3), []
    for _ in range(10):
        noise = lfilter([1.0], [1.0, -0.985], rng.normal(size=(ROWS + 500, 2)), axis=0)[500:]
        amplitude = residual_amplitude(equations(noise)[1])
        spread.append(amplitude.std(axis=1) / amplitude.mean(axis=1))
    assert np.median(spread) < 0.1


def test_gaps_do_not_hide_slow_noise() -> None:
    """One row in three is a gap: the variance of the first column is that of its closed form."""
    pole, kept = 0.98, np.ones((ROWS, 2))
    kept[::3] = 0.0
    rng, found = np.random.default_rng(4), []
    for _ in range(40):
        noise = lfilter([1.0], [1.0, -pole], rng.normal(size=(ROWS + 500, 2)), axis=0)[500:]
        projected, low, parts = equations(noise, kept)
        found.append(spectral_covariance(projected, low, np.ones(2)))
    shape = toeplitz(pole ** np.arange(ROWS) / (1.0 - pole ** 2))
    inverse = np.linalg.inv(sum(part.T @ part for part in parts))
    truth = inverse @ sum(part.T @ shape @ part for part in parts) @ inverse
    assert np.all(np.abs(np.diag(np.mean(found, axis=0)) / np.diag(truth) - 1.0) < 0.2)
