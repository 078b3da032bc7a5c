"""The cut-off chosen from spectra: known signal and noise, and the real logs."""

from __future__ import annotations

import json

import numpy as np
import pytest
from refusals import refused

from dynid.errors import NotPossibleError
from dynid.recording.preparation.cutoff import position_spectrum


def noisy(rate: float, seconds: float, noise: float, seed: int = 0) -> np.ndarray:
    """Three joints with sines up to 1.5 Hz and white noise of that deviation."""
    random = np.random.default_rng(seed)
    t = np.arange(int(rate * seconds)) / rate
    q = np.column_stack([sum(a * np.sin(2 * np.pi * f * t + p) for a, f, p in zip(
        random.uniform(0.2, 0.5, 5), (0.1, 0.3, 0.6, 1.0, 1.5), random.uniform(0, 6, 5), strict=True))
        for _ in range(3)])
    return q + noise * random.standard_normal(q.shape)


@pytest.mark.parametrize(("rate", "noise"), [(200.0, 1e-4), (1000.0, 1e-4), (1000.0, 1e-3), (5000.0, 1e-5)])
def test_finds_the_noise_and_keeps_it_small(rate: float, noise: float) -> None:
    q = noisy(rate, 40.0, noise)
    out = position_spectrum(q, rate, np.array([[0, len(q)]]), np.ones(3, dtype=bool), "log")
    np.testing.assert_allclose(out.floor, noise**2 / (rate / 2), rtol=0.4)  # density of white noise
    assert 2.0 < out.common < min(20.0, 0.1 * rate + 1e-9)
    # The promise: noise in the acceleration below about a thousandth of the motion's power.
    power = np.var(np.gradient(np.gradient(noisy(rate, 40.0, 0.0), 1 / rate, axis=0), 1 / rate, axis=0), axis=0)
    passed = noise**2 / (rate / 2) * (2 * np.pi) ** 4 * out.common**5 / 5
    assert np.median(passed / power) < 2e-3


def test_less_noise_gives_a_higher_cutoff() -> None:
    cutoffs = []
    for noise in (1e-2, 1e-3, 1e-4):
        q = noisy(1000.0, 30.0, noise)
        cutoffs.append(position_spectrum(q, 1000.0, np.array([[0, len(q)]]), np.ones(3, dtype=bool), "log").common)
    assert cutoffs[0] < cutoffs[1] < cutoffs[2]


def test_without_noise_the_rate_decides() -> None:
    q = noisy(500.0, 20.0, 0.0)
    assert position_spectrum(q, 500.0, np.array([[0, len(q)]]), np.ones(3, dtype=bool), "log").common <= 50.0


def test_joints_at_rest_have_no_say() -> None:
    q = noisy(1000.0, 20.0, 1e-4)
    q[:, 1] = 1e-4 * np.random.default_rng(5).standard_normal(len(q))
    moving = np.array([True, False, True])
    out = position_spectrum(q, 1000.0, np.array([[0, len(q)]]), moving, "log")
    assert np.isnan(out.cutoff[1]) and np.all(np.isfinite(out.cutoff[[0, 2]]))
    table = out.by_joint(("a", "b", "c"))
    assert table["b"]["cutoff"] is None
    assert len(table["a"]["f"]) == len(table["a"]["psd"]) <= 200
    json.dumps(table, allow_nan=False)


def test_too_short_for_a_spectrum() -> None:
    with refused(NotPossibleError, "not-possible", "log.csv", "50 samples"):
        position_spectrum(np.zeros((50, 1)), 100.0, np.array([[0, 50]]), np.ones(1, dtype=bool), "log.csv")
