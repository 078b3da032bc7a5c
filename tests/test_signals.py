"""Filters, power densities and splines against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import interpolate, signal

from dynid.signals import butterworth, cubic_spline, filtered, filtered_both_ways, power_density


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize("share", [0.002, 0.05, 0.4, 0.9])
def test_butterworth_is_scipys(order: int, share: float) -> None:
    x = np.random.default_rng(order).normal(size=3000).cumsum()
    theirs = signal.butter(order, share, output="sos")
    ours = butterworth(order, share)
    np.testing.assert_allclose(filtered(ours, x), signal.sosfilt(theirs, x), atol=1e-9 * np.abs(x).max())
    np.testing.assert_allclose(filtered_both_ways(ours, x, 700), signal.sosfiltfilt(theirs, x, padlen=700),
                               atol=1e-9 * np.abs(x).max())


def test_padding_is_never_longer_than_the_signal() -> None:
    x = np.random.default_rng(0).normal(size=30)
    sections = butterworth(4, 0.3)
    np.testing.assert_allclose(filtered_both_ways(sections, x, 500), signal.sosfiltfilt(sections, x, padlen=29),
                               atol=1e-12)


@pytest.mark.parametrize("window", [64, 101, 500])
def test_power_density_is_welchs(window: int) -> None:
    x = np.random.default_rng(window).normal(size=(1234, 3)).cumsum(axis=0)
    f, ours = power_density(x, 200.0, window)
    g, theirs = signal.welch(x, 200.0, nperseg=window, axis=0)
    np.testing.assert_allclose(f, g)
    np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-13 * theirs.max())


@pytest.mark.parametrize("rows", [4, 5, 300])
def test_spline_is_scipys(rows: int) -> None:
    rng = np.random.default_rng(rows)
    t, x = np.sort(rng.uniform(0.0, 10.0, rows)), rng.normal(size=(rows, 3))
    at = np.concatenate([rng.uniform(t[0], t[-1], 500), t])
    theirs = interpolate.CubicSpline(t, x)(at)
    np.testing.assert_allclose(cubic_spline(t, x, at), theirs, atol=1e-10 * np.abs(theirs).max())
