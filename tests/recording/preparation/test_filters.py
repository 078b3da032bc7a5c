"""Filters on signals whose derivatives are known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import savgol_filter

from dynid.recording.preparation.filters import (
    differentiate,
    differentiate_twice,
    low_pass,
    savitzky_golay,
    savitzky_golay_cutoff,
    savitzky_golay_window,
)

RATE = 1000.0
T = np.arange(6000) / RATE
WHOLE = np.array([[0, len(T)]])


def sines(t: np.ndarray, derivative: int = 0) -> np.ndarray:
    """Two joints, sums of sines up to 2 Hz, or their exact derivative."""
    out = []
    for parts in ([(1.0, 0.5, 0.3), (0.3, 2.0, 1.0)], [(0.7, 1.1, -0.4), (0.1, 1.9, 2.0)]):
        out.append(sum(a * (2 * np.pi * f) ** derivative * np.sin(2 * np.pi * f * t + p + derivative * np.pi / 2)
                       for a, f, p in parts))
    return np.column_stack(out)


def test_low_pass_keeps_slow_signals_in_place() -> None:
    got = low_pass(sines(T), 20.0, RATE, 4, WHOLE)
    np.testing.assert_allclose(got[300:-300], sines(T)[300:-300], atol=1e-6)


@pytest.mark.parametrize("order", [1, 2, 4])
def test_low_pass_has_the_gain_of_butterworth_twice(order: int) -> None:
    """1 / (1 + (f / fc)^2n), here for f well below the rate, where the bilinear transform does not bend it."""
    for f in (5.0, 10.0, 20.0):
        got = low_pass(np.sin(2 * np.pi * f * T)[:, None], 10.0, RATE, order, WHOLE)[1000:-1000, 0]
        gain = 2 * np.mean(got * np.sin(2 * np.pi * f * T[1000:-1000]))
        shift = 2 * np.mean(got * np.cos(2 * np.pi * f * T[1000:-1000]))
        assert gain == pytest.approx(1 / (1 + (f / 10.0) ** (2 * order)), abs=2e-3)
        assert abs(shift) < 1e-6


def test_central_differences_are_second_order() -> None:
    quadratic = np.column_stack([3.0 * T**2 - T, 5.0 - 2.0 * T**2])
    np.testing.assert_allclose(differentiate(quadratic, RATE, WHOLE), np.column_stack([6 * T - 1, -4 * T]), atol=1e-9)
    np.testing.assert_allclose(differentiate_twice(quadratic, RATE, WHOLE) - [6.0, -4.0], 0.0, atol=1e-6)
    for change, derivative in ((differentiate, 1), (differentiate_twice, 2)):
        errors = []
        for rate in (200.0, 400.0):
            t = np.arange(int(6 * rate)) / rate
            got = change(sines(t), rate, np.array([[0, len(t)]]))
            errors.append(np.abs(got - sines(t, derivative))[2:-2].max())
        assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.02)


def test_savitzky_golay_is_exact_on_polynomials() -> None:
    t = np.arange(400) / RATE
    power = np.polynomial.Polynomial([1.0, -2.0, 30.0, -50.0, 100.0])
    x = power(t)[:, None]
    for derivative in (0, 1, 2):
        got = savitzky_golay(x, 31, 4, RATE, np.array([[0, 400]]), derivative)[:, 0]
        want = power.deriv(derivative)(t) if derivative else power(t)
        np.testing.assert_allclose(got, want, atol=1e-5 * np.abs(want).max())


@pytest.mark.parametrize("derivative", [0, 1, 2])
def test_savitzky_golay_agrees_with_scipy(derivative: int) -> None:
    x = sines(T) + 1e-3 * np.random.default_rng(0).standard_normal((len(T), 2))
    want = savgol_filter(x, 51, 4, deriv=derivative, delta=1 / RATE, axis=0, mode="interp")
    got = savitzky_golay(x, 51, 4, RATE, WHOLE, derivative)
    np.testing.assert_allclose(got, want, atol=1e-9 * np.abs(want).max())


def test_savitzky_golay_stays_exact_in_long_windows() -> None:
    t = np.arange(6001) / RATE
    got = savitzky_golay((t**4)[:, None], 3001, 4, RATE, np.array([[0, 6001]]), 2)[:, 0]
    np.testing.assert_allclose(got, 12 * t**2, atol=1e-6 * 12 * 36)


def test_savitzky_golay_window_has_the_cutoff_asked_for() -> None:
    for cutoff in (2.0, 5.0, 20.0):
        window = savitzky_golay_window(cutoff, RATE, 4)
        x = np.sin(2 * np.pi * cutoff * T)
        got = savitzky_golay(x[:, None], window, 4, RATE, WHOLE)[1000:-1000, 0]
        assert 2 * np.mean(got * x[1000:-1000]) == pytest.approx(0.5, abs=0.04)
        assert savitzky_golay_cutoff(window, RATE, 4) == pytest.approx(cutoff, rel=0.03)
    assert savitzky_golay_cutoff(5, RATE, 4) == 450.0


def test_segments_do_not_see_each_other_and_the_rest_is_zero() -> None:
    x = sines(T)
    segments = np.array([[0, 2000], [2500, 6000]])
    other = x.copy()
    other[2500:] += 100.0
    for change in (lambda x: low_pass(x, 5.0, RATE, 4, segments), lambda x: differentiate(x, RATE, segments),
                   lambda x: differentiate_twice(x, RATE, segments),
                   lambda x: savitzky_golay(x, 101, 3, RATE, segments, 1)):
        one, two = change(x), change(other)
        np.testing.assert_array_equal(one[:2000], two[:2000])
        assert not np.any(one[2000:2500])
