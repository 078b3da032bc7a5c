"""The smoother against the dense least-squares problem it solves, and against the filter it equals."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.recording.preparation.filters import low_pass
from dynid.recording.preparation.smoother import _UNKNOWN_START, gains, model, smooth


def dense(z: np.ndarray, v: np.ndarray | None, a: float, velocity_noise: float) -> np.ndarray:
    """All states at once: measurements, steps and the vague start, each over its deviation, solved by SVD."""
    f, noise = model(a, velocity_noise)
    n, whiten = len(z), np.linalg.inv(np.linalg.cholesky(noise))
    rows, right = [], []

    def equation(entries: dict[int, float], value: float) -> None:
        row = np.zeros(3 * n)
        for i, entry in entries.items():
            row[i] = entry
        rows.append(row)
        right.append(value)

    weak = 1 / np.sqrt(_UNKNOWN_START)
    for i in range(3):
        equation({i: weak}, weak * z[0] if i == 0 else 0.0)
    for k in range(n):
        equation({3 * k: 1.0}, z[k])
        if v is not None:
            equation({3 * k + 1: 1 / np.sqrt(velocity_noise)}, v[k] / np.sqrt(velocity_noise))
        if k + 1 < n:
            step = np.hstack([-whiten @ f, whiten])
            for i in range(3):
                equation({3 * k + c: step[i, c] for c in range(6)}, 0.0)
    return np.linalg.lstsq(np.array(rows), np.array(right), rcond=None)[0].reshape(n, 3)


@pytest.mark.parametrize("cutoff", [5.0, 40.0])
@pytest.mark.parametrize("with_velocity", [False, True])
def test_agrees_with_dense_least_squares(cutoff: float, with_velocity: bool) -> None:
    random = np.random.default_rng(1)
    rate, n = 1000.0, 200
    t, w = np.arange(n) / rate, 2 * np.pi * cutoff
    q = np.sin(12.0 * t) + 0.4 + 1e-3 * random.standard_normal(n)
    dq = 12.0 * np.cos(12.0 * t) + 1e-2 * random.standard_normal(n)
    ratio = 100.0
    got = smooth(q[:, None], cutoff, rate, np.array([[0, n]]), dq[:, None] if with_velocity else None,
                 np.array([ratio]) if with_velocity else None)
    want = dense(q, dq / w if with_velocity else None, w / rate, ratio / w**2 if with_velocity else np.inf)
    for i in range(3):
        scale = np.abs(want[:, i]).max() * w**i
        np.testing.assert_allclose(got[i][:, 0], want[:, i] * w**i, rtol=0, atol=1e-6 * scale)


def test_equals_the_zero_phase_butterworth_of_order_three() -> None:
    random = np.random.default_rng(2)
    q = np.sin(2 * np.pi * np.arange(20000) / 1000.0)[:, None] + 1e-3 * random.standard_normal((20000, 1))
    whole = np.array([[0, 20000]])
    got, want = smooth(q, 5.0, 1000.0, whole)[0], low_pass(q, 5.0, 1000.0, 3, whole)
    assert np.abs(got - want)[2000:-2000].max() < 1e-6


def test_a_measured_velocity_makes_the_acceleration_better() -> None:
    random = np.random.default_rng(3)
    t = np.arange(5000) / 1000.0
    q = np.sin(2 * np.pi * t)[:, None] + 1e-3 * random.standard_normal((5000, 1))
    dq = 2 * np.pi * np.cos(2 * np.pi * t)[:, None] + 1e-2 * random.standard_normal((5000, 1))
    true = -(2 * np.pi) ** 2 * np.sin(2 * np.pi * t)
    alone = smooth(q, 10.0, 1000.0, np.array([[0, 5000]]))[2][:, 0]
    both = smooth(q, 10.0, 1000.0, np.array([[0, 5000]]), dq, np.array([100.0]))[2][:, 0]
    inside = slice(200, -200)
    assert np.std((both - true)[inside]) < 0.6 * np.std((alone - true)[inside])


def test_constant_acceleration_comes_back_from_the_first_row_on() -> None:
    t = np.arange(1000) / 500.0
    q, dq, ddq = smooth((2.0 - 3.0 * t + 1.5 * t**2)[:, None], 8.0, 500.0, np.array([[0, 1000]]))
    np.testing.assert_allclose(dq[:, 0], -3.0 + 3.0 * t, atol=1e-4)
    np.testing.assert_allclose(ddq[:, 0], 3.0, atol=1e-3)
    np.testing.assert_allclose(q[0, 0], 2.0, atol=1e-6)


def test_gains_settle_and_segments_are_apart() -> None:
    assert len(gains(0.03, np.inf, 10**6)[0]) < 2000
    random = np.random.default_rng(4)
    q = random.standard_normal((300, 2))
    segments = np.array([[0, 120], [150, 300]])
    other = q.copy()
    other[150:] += 5.0
    for one, two in zip(smooth(q, 20.0, 500.0, segments), smooth(other, 20.0, 500.0, segments), strict=True):
        np.testing.assert_array_equal(one[:120], two[:120])
        assert not np.any(one[120:150])
