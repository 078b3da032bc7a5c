"""Excerpt: all of a short stream, whole stretches of a long one, within a bound."""

from __future__ import annotations

import numpy as np

from dynid.online.excerpt import GAP_SECONDS, Excerpt


def signals(t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return t, np.column_stack([np.sin(t), np.cos(t)]), np.column_stack([t, -t])


def fill(excerpt: Excerpt, t: np.ndarray, block: int = 37) -> None:
    for start in range(0, len(t), block):
        excerpt.add(*signals(t[start:start + block]))


def test_a_short_stream_is_kept_as_it_came() -> None:
    t, excerpt = np.arange(2000) / 100.0, Excerpt(("a", "b"))
    fill(excerpt, t)
    log = excerpt.recording()
    assert excerpt.is_whole and np.array_equal(log.t, t) and log.joints == ("a", "b")
    assert np.array_equal(log.q, signals(t)[1]) and np.array_equal(log.tau, signals(t)[2])
    np.testing.assert_allclose(excerpt.seconds, 19.99)


def test_a_long_stream_is_kept_in_stretches_spread_over_all_of_it() -> None:
    t, excerpt = np.arange(200_000) / 100.0, Excerpt(("a", "b"), most=10_000)
    fill(excerpt, t)
    log, (first, *_, last) = excerpt.recording(), list(excerpt.blocks())
    assert not excerpt.is_whole and 5_000 < len(log) <= 11_500
    assert first[0][0] == t[0] and last[0][-1] == t[-1]
    steps = np.diff(log.t)
    apart = steps > 0.5
    np.testing.assert_allclose(steps[~apart], 0.01, atol=1e-9)
    np.testing.assert_allclose(steps[apart], GAP_SECONDS, atol=1e-9)
    assert np.diff(np.flatnonzero(apart)).min() >= 500
    np.testing.assert_allclose(excerpt.seconds, t[-1])
    middle = [block[0][0] for block in excerpt.blocks()]
    assert np.diff(middle).max() < 3.0 * np.median(np.diff(middle))


def test_bad_samples_are_left_out_and_a_clock_that_is_set_back_begins_anew() -> None:
    excerpt, t = Excerpt(("a", "b")), np.arange(1000) / 100.0
    fill(excerpt, t)
    time, q, tau = signals(np.array([9.5, 10.0, np.nan, 10.01, 10.01]))
    q = q.copy()
    q[1, 0] = np.nan
    excerpt.add(time, q, tau)
    fill(excerpt, t)
    log = excerpt.recording()
    assert len(log) == 2001 and np.all(np.diff(log.t) > 0.0)
    np.testing.assert_allclose(log.t[1000], 10.01)
    np.testing.assert_allclose(log.t[1001], 10.01 + GAP_SECONDS)


def test_samples_before_a_change_are_dropped() -> None:
    """Also those of before a clock was set back, whatever their stamps."""
    excerpt, t = Excerpt(("a", "b")), np.arange(2000) / 100.0
    fill(excerpt, t)
    fill(excerpt, t)
    excerpt.begin_at(12.345)
    assert np.array_equal(excerpt.recording().t, t[t >= 12.345])
    np.testing.assert_allclose(excerpt.seconds, t[-1] - 12.345)
    fill(excerpt, 20.0 + t)
    log = excerpt.recording()
    assert np.array_equal(log.t, np.concatenate([t[t >= 12.345], 20.0 + t])) and excerpt.is_whole
    assert np.array_equal(log.tau, signals(log.t)[2])
