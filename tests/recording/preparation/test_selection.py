"""Rows that count: each rule on a case made for it."""

from __future__ import annotations

import numpy as np

from dynid.recording.preparation.selection import (
    at_limit,
    drop_saturated,
    drop_slow,
    found_limits,
    inside_borders,
    longer_than,
    moving_joints,
    slow_speeds,
    widened,
)

T = np.arange(5000) / 1000.0


def test_moving_joints() -> None:
    random = np.random.default_rng(0)
    step = 1e-4
    q = np.column_stack([np.sin(T), np.full(5000, 0.3), 1e-3 * random.standard_normal(5000),
                         step * random.integers(0, 2, 5000), 0.05 * np.sin(T) + 1e-3 * random.standard_normal(5000)])
    assert list(moving_joints(q)) == [True, False, False, False, True]


def test_borders() -> None:
    got = inside_borders(np.array([[0, 10], [10, 14], [20, 30]]), 30, 3)
    assert list(np.flatnonzero(got)) == [3, 4, 5, 6, 23, 24, 25, 26]


def test_runs() -> None:
    mask = np.array([1, 1, 0, 1, 1, 1, 0, 1], dtype=bool)
    assert list(np.flatnonzero(longer_than(mask, 3))) == [3, 4, 5]
    wide = widened(np.array([0, 0, 0, 1, 0, 0, 0, 0], dtype=bool), 2, np.array([[0, 5], [5, 8]]))
    assert list(np.flatnonzero(wide)) == [1, 2, 3, 4]


def test_a_clipped_torque_shows_its_limits() -> None:
    random = np.random.default_rng(1)
    tau = 12.0 * np.sin(2 * np.pi * T) + 0.3 * random.standard_normal(5000)
    clipped = np.column_stack([np.clip(tau, -9.0, 10.0), tau, np.clip(tau, -np.inf, 10.0)])
    lower, upper = found_limits(clipped, 5)
    np.testing.assert_array_equal(lower, [-9.0, -np.inf, -np.inf])
    np.testing.assert_array_equal(upper, [10.0, np.inf, 10.0])
    hit = at_limit(clipped, lower, upper, 5)
    assert not np.any(hit[:, 1])
    close = (clipped[:, 0] >= 9.99) | (clipped[:, 0] <= -8.991)  # within 0.1 %
    assert np.all(close[hit[:, 0]]) and np.sum(hit[:, 0]) > 0.9 * np.sum(close)
    assert np.sum(hit[:, 2]) > 500


def test_a_coarse_torque_is_not_clipped() -> None:
    for quantum in (0.01, 0.1, 0.5):
        tau = np.round(5.0 * np.sin(2 * np.pi * T[:, None] * [0.5, 1.3]) / quantum) * quantum
        lower, upper = found_limits(tau, 5)
        assert np.all(np.isinf(lower)) and np.all(np.isinf(upper))


def test_a_constant_torque_is_not_clipped() -> None:
    lower, upper = found_limits(np.full((100, 1), 3.0), 5)
    assert np.isinf(lower[0]) and np.isinf(upper[0])


def test_dropping_says_what_and_only_for_the_joint() -> None:
    keep = np.ones((5000, 2), dtype=bool)
    tau = np.column_stack([np.clip(12 * np.sin(2 * np.pi * T), -10, 10), np.sin(T)])
    said = drop_saturated(keep, tau, np.array([-10.0, -np.inf]), np.array([10.0, np.inf]), 5, 20,
                          np.array([[0, 5000]]), ("a", "b"))
    assert np.all(keep[:, 1])
    assert len(said) == 1 and "rows of a: its torque is saturated at its limit of -10 and 10" in said[0]
    hit = np.abs(tau[:, 0]) >= 10 * 0.999
    assert not np.any(keep[hit, 0])
    assert np.sum(~keep[:, 0]) == np.sum(hit) + 20 * 20  # ten runs, twenty rows on either side of each


def test_slow_rows_go_joint_by_joint() -> None:
    dq = np.column_stack([np.cos(T), 0.2 * np.cos(2 * T), np.zeros(5000)])
    keep = np.ones((5000, 3), dtype=bool)
    slow = slow_speeds(dq, keep, np.array([True, True, False]))
    np.testing.assert_allclose(slow, [0.01, 0.002, 0.0])
    said = drop_slow(keep, dq, slow, ("a", "b", "c"))
    np.testing.assert_array_equal(keep, np.abs(dq) >= slow)
    assert np.all(keep[:, 2]) and "a " in said[0] and "b " in said[0] and "c " not in said[0]


def test_slow_rows_of_any_joint_drop_all() -> None:
    dq = np.array([[1.0, 1.0], [0.001, 1.0], [1.0, 0.001], [-1.0, -1.0]])
    keep = np.ones(dq.shape, dtype=bool)
    said = drop_slow(keep, dq, np.array([0.01, 0.01]), ("a", "b"), all_joints=True)
    np.testing.assert_array_equal(keep, [[True, True], [False, False], [False, False], [True, True]])
    assert "all joints" in said[0] and "a 2 below 0.01" in said[0]
