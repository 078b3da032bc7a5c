"""Slow noise of a known spectrum is found from residuals of a fit that absorbs most of it."""

from __future__ import annotations

import numpy as np
from scipy.signal import lfilter

from dynid.regression.autocorrelation import autocovariance
from dynid.regression.noise_spectrum import LowFrequencyNoise, spectrum

ROWS, MEMORIES = 400, (1.0, 4.0, 16.0)
ALL = np.ones(ROWS, dtype=bool)


def pink(rng: np.random.Generator, rows: int = ROWS) -> np.ndarray:
    """Sum of exponentially correlated series of unit variance, with memories in rows."""
    found = np.zeros(rows)
    for memory in MEMORIES:
        keep = np.exp(-1.0 / memory)
        news = np.sqrt(1.0 - keep ** 2) * rng.normal(size=rows + 400)
        found += lfilter([1.0], [1.0, -keep], news)[-rows:]
    return found


def pink_spectrum(angle: np.ndarray) -> np.ndarray:
    """In closed form: (1 - a^2) / |1 - a e^(-i w)|^2 of each part."""
    keep = np.exp(-1.0 / np.array(MEMORIES))[:, None]
    return np.sum((1.0 - keep ** 2) / np.abs(1.0 - keep * np.exp(-1j * angle)) ** 2, axis=0)


def slow_columns(rng: np.random.Generator) -> np.ndarray:
    """Orthonormal columns (rows, 6) of a motion of six harmonics: half of the noise there is absorbed."""
    t = 2.0 * np.pi * np.arange(ROWS) / ROWS
    waves = np.array([wave(k * t) for k in range(1, 7) for wave in (np.cos, np.sin)]).T
    q, _ = np.linalg.qr(waves @ rng.normal(size=(12, 6)))
    return q


def lag_sums(q: np.ndarray) -> np.ndarray:
    """Sum over t of P[t, t + k] of the projection on orthonormal columns."""
    return np.array([np.sum(q[:ROWS - k] * q[k:]) for k in range(ROWS)])


def test_pink_noise_below_a_fit_has_its_spectrum() -> None:
    rng = np.random.default_rng(0)
    q, size = slow_columns(rng), 2 * ROWS
    absorbed, fitted, windowed = lag_sums(q), [], []
    for _ in range(40):
        x = pink(rng)
        residual = x - q @ (q.T @ x)
        low = LowFrequencyNoise.from_series([(residual, absorbed, ROWS)])[0]
        fitted.append(low.spectrum(size))
        windowed.append(spectrum(autocovariance(residual, ALL), size))
    band = slice(0, 12)  # the frequencies of the motion, at half of their distance
    truth = pink_spectrum(2.0 * np.pi * np.arange(size // 2 + 1) / size)[band]
    assert np.mean(np.mean(windowed, axis=0)[band] / truth) < 0.7
    assert 0.8 < np.mean(np.mean(fitted, axis=0)[band] / truth) < 1.25


def test_variances_of_slow_columns_hold_under_pink_noise() -> None:
    """The variance that an autocovariance states for a column, over that of the column in many series."""
    rng = np.random.default_rng(1)
    q = slow_columns(rng)
    absorbed = lag_sums(q)
    stated, true = [], []
    for _ in range(60):
        x = pink(rng)
        shape = autocovariance(x - q @ (q.T @ x), ALL, absorbed)
        power = np.abs(np.fft.rfft(q, 2 * ROWS, axis=0)) ** 2
        power[1:-1] *= 2.0
        stated.append(power.T @ spectrum(shape[:ROWS], 2 * ROWS) / (2 * ROWS))
        true.append((q.T @ x) ** 2)
    ratio = np.mean(stated, axis=0).sum() / np.mean(true, axis=0).sum()
    assert 0.75 < ratio < 1.3


def test_zero_residuals_have_no_noise() -> None:
    low = LowFrequencyNoise.from_series([(np.zeros(ROWS), np.zeros(ROWS), ROWS)])[0]
    assert not low.spectrum(ROWS).any()
