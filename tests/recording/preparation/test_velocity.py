"""A measured velocity against the derivative of the position: delay, scale and noise that are known."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.recording.preparation.velocity import advance, compare

RATE = 1000.0
T = np.arange(10000) / RATE
WHOLE = np.array([[0, len(T)]])
NAMES = ("shoulder", "elbow")


def position(t: np.ndarray) -> np.ndarray:
    return np.column_stack([np.sin(2 * np.pi * 0.7 * t), 0.5 * np.sin(2 * np.pi * 1.1 * t + 1.0)])


def velocity(t: np.ndarray) -> np.ndarray:
    return np.column_stack([2 * np.pi * 0.7 * np.cos(2 * np.pi * 0.7 * t),
                            np.pi * 1.1 * np.cos(2 * np.pi * 1.1 * t + 1.0)])


def judge(dq: np.ndarray, noise: float = 1e-4):
    q = position(T) + noise * np.random.default_rng(0).standard_normal((len(T), 2))
    return compare(q, dq, RATE, 10.0, WHOLE, np.array([True, True]), NAMES)


def test_a_good_velocity_with_its_delay() -> None:
    found = judge(velocity(T - 0.005) + 1e-3 * np.random.default_rng(1).standard_normal((len(T), 2)))
    assert found.good.all(), found.reason
    assert found.delay == pytest.approx(0.005, abs=2e-4)
    np.testing.assert_allclose(found.scale, 1.0, atol=2e-3)
    np.testing.assert_allclose(found.noise_ratio, (1e-3 / 1e-4) ** 2, rtol=0.1)
    assert "5 ms late" in found.reason or "5.0" in found.reason


@pytest.mark.parametrize(("dq", "word", "good"), [
    (np.degrees(velocity(T)), "57.3 times the derivative", (False, False)),
    (velocity(T) * [1.0, 0.9], "the velocity of elbow is 0.9 times", (True, False)),
    (velocity(T) + 0.5 * np.random.default_rng(2).standard_normal((len(T), 2)), "its noise is", (False, False)),
    (velocity(T) + np.sin(2 * np.pi * 3.0 * T)[:, None], "differs from the derivative", (False, False)),
    (velocity(T - 0.03), "lags the position by 30", (False, False)),
    (np.column_stack([velocity(T - 0.03)[:, 0], velocity(T - 0.004)[:, 1]]), "of shoulder lags", (False, True)),
])
def test_a_bad_velocity_and_why_joint_by_joint(dq: np.ndarray, word: str, good: tuple[bool, bool]) -> None:
    found = judge(dq)
    assert tuple(found.good) == good
    assert word in found.reason


def test_the_delay_is_that_of_the_good_joints() -> None:
    found = judge(np.column_stack([3.0 * velocity(T - 0.02)[:, 0], velocity(T - 0.004)[:, 1]]))
    assert tuple(found.good) == (False, True)
    assert found.delay == pytest.approx(0.004, abs=2e-4)


def test_a_joint_at_rest_has_no_say() -> None:
    q, dq = position(T), velocity(T)
    q[:, 1], dq[:, 1] = 0.3, 0.0
    q = q + 1e-5 * np.random.default_rng(3).standard_normal(q.shape)
    found = compare(q, dq, RATE, 10.0, WHOLE, np.array([True, False]), NAMES)
    assert found.good.all() and np.isnan(found.scale[1])
    assert np.all(np.isfinite(found.noise_ratio)) and np.all(found.noise_ratio > 0)


def test_advance_takes_the_delay_away() -> None:
    segments = np.array([[0, 4000], [4000, 10000]])
    got = advance(velocity(T - 0.0043), 0.0043, RATE, segments)
    for start, stop in segments:
        np.testing.assert_allclose(got[start:stop - 6], velocity(T)[start:stop - 6], atol=1e-6)
    same = velocity(T)
    assert advance(same, 1e-6, RATE, segments) is same
