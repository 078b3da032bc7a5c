"""Least squares between bounds, against scipy."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from dynid.estimate.bounded import bounded_least_squares, nearest_within


@given(st.integers(0, 10**6), st.integers(1, 12), st.booleans())
@settings(max_examples=80, deadline=None)
def test_the_same_as_scipy(seed, columns, started):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(columns + 5, columns)) @ np.diag(10.0 ** rng.uniform(-3, 3, columns))
    a[:, 0] += a[:, -1] * (columns > 1)
    b = rng.normal(size=columns + 5)
    low = np.where(rng.random(columns) < 0.6, rng.choice([0.0, -0.1], columns), -np.inf)
    high = np.where(rng.random(columns) < 0.4, rng.choice([0.05, 0.5], columns), np.inf)
    ours = bounded_least_squares(a, b, low, high, rng.normal(size=columns) if started else None)
    theirs = lsq_linear(a, b, (low, high), method="bvls", tol=1e-14, max_iter=1000)
    assert np.all((ours >= low) & (ours <= high))
    misfit = float(np.sum((a @ ours - b) ** 2))
    assert misfit <= 2.0 * theirs.cost * (1.0 + 1e-9) + 1e-12


def test_without_active_bounds_it_is_least_squares():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(20, 6)), rng.normal(size=20)
    free = np.linalg.lstsq(a, b, rcond=None)[0]
    np.testing.assert_allclose(bounded_least_squares(a, b, free - 1.0, free + 1.0), free, rtol=1e-10)


def test_values_beyond_a_bound_move_by_the_fewest_deviations():
    """In the metric of their covariance, against scipy; with independent values that is a clip."""
    rng = np.random.default_rng(2)
    root = rng.normal(size=(4, 4))
    covariance, values = root @ root.T, np.array([-0.5, 1.0, 0.7, -0.1])
    low, high = np.array([0.0, -np.inf, -np.inf, 0.0]), np.array([np.inf, np.inf, 0.5, np.inf])
    whitened = np.linalg.inv(np.linalg.cholesky(covariance))
    theirs = lsq_linear(whitened, whitened @ values, (low, high), method="bvls", tol=1e-14).x
    np.testing.assert_allclose(nearest_within(values, covariance, low, high), theirs, atol=1e-7)
    np.testing.assert_allclose(nearest_within(values, np.eye(4), low, high), np.clip(values, low, high), atol=1e-12)
