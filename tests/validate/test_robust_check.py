"""Outliers at any time are told from large residuals at reversals."""

from __future__ import annotations

import numpy as np

from dynid.validate.verdict_checks.residuals import _at_reversals


def test_outliers_at_reversals_are_slow() -> None:
    t = np.arange(400) * 0.02
    speed = np.abs(np.sin(2.0 * np.pi * 0.4 * t) + 0.6 * np.sin(2.0 * np.pi * 0.9 * t))
    assert _at_reversals(speed, speed < np.quantile(speed, 0.08))
    # Rows beside a reversal, which a filter reaches, without the slowest ones.
    low, high = np.quantile(speed, [0.12, 0.25])
    assert _at_reversals(speed, (speed > low) & (speed < high))


def test_outliers_at_any_time_are_seldom_taken_for_reversals() -> None:
    t = np.arange(400) * 0.02
    speed = np.abs(np.sin(2.0 * np.pi * 0.4 * t) + 0.6 * np.sin(2.0 * np.pi * 0.9 * t))
    rng = np.random.default_rng(5)
    taken = 0
    for _ in range(1000):
        far = np.zeros(400, dtype=bool)
        far[rng.choice(400, 12, replace=False)] = True
        taken += _at_reversals(speed, far)
    assert taken < 40  # one-sided level of two standard errors: 23 of 1000
