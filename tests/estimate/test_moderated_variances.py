"""Variances from few blocks of time, moderated by those of all parameters; degrees of freedom of slow noise."""

from __future__ import annotations

import numpy as np
from scipy.signal import lfilter

from dynid.estimate.recursive.result import moderated
from dynid.regression.autocorrelation import _lag_window_estimates

EVERY = np.ones(200, dtype=bool)


def test_alike_ratios_are_pooled() -> None:
    """Where noise enlarges all variances threefold, four degrees of freedom each give that factor for all."""
    rng, naive, means = np.random.default_rng(3), np.geomspace(1e-6, 1e2, 200), []
    for _ in range(40):
        seen = 3.0 * naive * rng.chisquare(4.0, 200) / 4.0
        found, degrees_of_freedom = moderated(naive, seen, np.full(200, 4.0), EVERY)
        assert degrees_of_freedom > 12.0
        assert np.std(np.log(found / naive)) < 0.6 * np.std(np.log(seen / naive))
        means.append(np.mean(found / naive))
    assert abs(np.mean(means) - 3.0) < 0.15


def test_different_ratios_are_kept_apart() -> None:
    """Where the factors differ by orders of size, each variance stays near its own."""
    rng, naive = np.random.default_rng(4), np.ones(200)
    factor = np.exp(2.5 * rng.normal(size=200))
    found, degrees_of_freedom = moderated(naive, factor * rng.chisquare(20.0, 200) / 20.0, np.full(200, 20.0), EVERY)
    assert 20.0 < degrees_of_freedom < 24.0
    assert np.median(np.abs(np.log(found / factor))) < 0.4


def test_slow_noise_has_few_degrees_of_freedom() -> None:
    """White noise has nearly as many as rows over lags, and noise that lasts for a tenth of the data a dozen or two."""
    rng, keep = np.random.default_rng(5), np.ones(4000, dtype=bool)
    white = rng.normal(size=4000)
    slow = lfilter([1.0], [1.0, -np.exp(-1.0 / 400.0)], white)
    (_, of_white, _), (_, of_slow, _) = _lag_window_estimates([white, slow], [keep, keep], [None, None])
    assert of_white > 200.0 and of_slow < 30.0
