"""Parallel decimation against scipy's zero-phase filter, and the property that makes it parallel."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refused
from scipy.signal import butter, sosfiltfilt

from dynid.errors import RecordingError
from dynid.recording.decimate import decimate_columns, decimate_piece, decimated_rows, impulse_response, reach
from dynid.recording.samples import Decimation


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.mark.parametrize(("factor", "order"), [(2, 4), (5, 2), (10, 4), (20, 8)])
def test_the_filter_is_the_butterworth_run_both_ways(random: np.random.Generator, factor: int, order: int) -> None:
    x = random.standard_normal((6000, 3))
    want = sosfiltfilt(butter(order, 0.8 / factor, output="sos"), x, axis=0)[::factor]
    got = decimate_columns(x, Decimation(factor, order=order), np.array([[0, 6000]]))
    inside = slice(40, -40)
    assert np.abs(got - want)[inside].max() < 1e-3 * np.abs(want).max()


def test_two_stages_are_the_filter_twice(random: np.random.Generator) -> None:
    x = random.standard_normal((20000, 2))
    once = sosfiltfilt(butter(4, 0.08, output="sos"), x, axis=0)[::10]
    want = sosfiltfilt(butter(4, 0.08, output="sos"), once, axis=0)[::10]
    got = decimate_columns(x, Decimation(10, 2), np.array([[0, 20000]]))
    assert len(got) == 200
    assert np.abs(got - want)[20:-20].max() < 1e-3 * np.abs(want).max()


@pytest.mark.parametrize("decimation", [Decimation(10), Decimation(5, 2), Decimation(3, 1, order=2)])
def test_equations_stay_true(random: np.random.Generator, decimation: Decimation) -> None:
    """tau = Y theta before is tau = Y theta after, to rounding, borders and short segments included."""
    segments = np.array([[0, 700], [700, 712], [712, 2000]])
    y = random.standard_normal((2000, 4, 9))
    theta = random.standard_normal(9)
    small_y = decimate_columns(y, decimation, segments)
    small_tau = decimate_columns(y @ theta, decimation, segments)
    rows = decimated_rows(segments, decimation)
    assert small_y.shape == (len(rows), 4, 9)
    np.testing.assert_allclose(small_tau, small_y @ theta, rtol=0, atol=1e-13)


def test_zero_phase_and_unit_gain_at_rest() -> None:
    decimation = Decimation(10)
    t = np.arange(4000) / 1000.0
    slow = np.column_stack([np.full(4000, 3.0), np.cos(2 * np.pi * 2.0 * t)])
    out = decimate_columns(slow, decimation, np.array([[0, 4000]]))
    np.testing.assert_allclose(out[:, 0], 3.0, rtol=1e-12)
    rows = decimated_rows(np.array([[0, 4000]]), decimation)
    np.testing.assert_allclose(out[15:-15, 1], slow[rows, 1][15:-15], atol=2e-4)  # a delay of one row would give 1e-2
    weights = impulse_response(decimation)
    np.testing.assert_array_equal(weights, weights[::-1])


def test_segments_do_not_see_each_other(random: np.random.Generator) -> None:
    x = random.standard_normal((900, 2))
    segments = np.array([[0, 400], [400, 900]])
    both = decimate_columns(x, Decimation(10), segments)
    x[400:] = 1e9
    np.testing.assert_array_equal(decimate_columns(x, Decimation(10), segments)[:40], both[:40])


def test_pieces_give_the_whole(random: np.random.Generator) -> None:
    decimation = Decimation(5, 2)
    segment = (100, 5100)
    x = random.standard_normal((5200, 3))
    whole = decimate_columns(x, decimation, np.array([segment]))
    rows, room = decimated_rows(np.array([segment]), decimation), reach(decimation)
    pieces = []
    for k in range(0, len(rows), 37):
        some = rows[k:k + 37]
        first, last = max(some[0] - room, segment[0]), min(some[-1] + room + 1, segment[1])
        pieces.append(decimate_piece(x[first:last], decimation, some, int(first), segment))
    np.testing.assert_allclose(np.concatenate(pieces), whole, rtol=0, atol=1e-13)


def test_a_piece_that_is_too_small_is_refused(random: np.random.Generator) -> None:
    with refused(RecordingError, "rows-missing", "411", "589"):
        decimate_piece(random.standard_normal((50, 1)), Decimation(10), np.array([500]), 480, (0, 1000))


def test_factor_one_changes_nothing(random: np.random.Generator) -> None:
    x = random.standard_normal((50, 2))
    np.testing.assert_allclose(decimate_columns(x, Decimation(1), np.array([[0, 50]])), x, rtol=0, atol=1e-15)


def test_impossible_decimation_is_refused() -> None:
    with refused(RecordingError, "bad-decimation"):
        Decimation(0)
