"""Time stamps: uniform logs stay as they are, others land on a grid, bad rows are found."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refused

from dynid.errors import RecordingError
from dynid.recording.preparation.resample import to_uniform
from dynid.recording.recording import Recording


def motion(t: np.ndarray) -> np.ndarray:
    return np.column_stack([np.sin(2 * np.pi * 0.7 * t), 0.5 * np.cos(2 * np.pi * 1.3 * t)])


def torque(t: np.ndarray) -> np.ndarray:
    return np.column_stack([3.0 * np.cos(2 * np.pi * 0.7 * t), np.sin(2 * np.pi * 1.3 * t) - 2.0])


def log(t: np.ndarray, **more: np.ndarray) -> Recording:
    return Recording(t, motion(t), torque(t), joints=("shoulder", "elbow"), source="log.csv", **more)


def test_a_uniform_log_is_not_touched() -> None:
    recording = log(np.arange(3000) / 500.0 + 1.7e9)  # stamps of a clock that counts from 1970
    out = to_uniform(recording)
    assert out.q is recording.q and out.tau is recording.tau
    assert out.rate == 500.0
    np.testing.assert_array_equal(out.segments, [[0, 3000]])
    assert np.all(out.measured)
    assert "uniformly at 500 Hz" in out.steps[-1]


def test_printed_stamps_are_still_uniform() -> None:
    t = np.round(np.arange(2000) / 300.0, 5)  # five decimals: up to 0.15 % of an interval off
    assert to_uniform(log(t)).rate == pytest.approx(300.0, rel=1e-6)


@pytest.mark.parametrize("jitter", [0.05, 0.3])
def test_irregular_stamps_are_believed(jitter: float) -> None:
    t = (np.arange(4000) + np.random.default_rng(0).uniform(-jitter, jitter, 4000)) / 400.0
    out = to_uniform(log(t, dq=motion(t)))
    assert out.rate == pytest.approx(400.0, rel=0.02)
    np.testing.assert_allclose(np.diff(out.t), 1 / out.rate, atol=1e-12)
    inside = slice(3, -3)
    np.testing.assert_allclose(out.q[inside], motion(out.t)[inside], atol=2e-8)
    np.testing.assert_allclose(out.tau[inside], torque(out.t)[inside], atol=2e-7)
    assert out.dq is not None
    np.testing.assert_allclose(out.dq, out.q, atol=1e-12)
    # Row by row as if it were uniform, the positions are off by jitter times speed.
    assert np.abs(motion(np.arange(4000) / 400.0) - motion(t)).max() > 2e-4


def test_gaps_split_and_short_ones_are_bridged_but_not_used() -> None:
    t = np.arange(3000) / 500.0
    t = np.delete(t, np.r_[1000:1004, 2000:2100])
    out = to_uniform(log(t))
    np.testing.assert_array_equal(out.segments, [[0, 2000], [2000, 2900]])
    assert out.t[2000] == pytest.approx(2100 / 500.0)
    assert list(np.flatnonzero(~out.measured)) == [1000, 1001, 1002, 1003]
    np.testing.assert_allclose(out.q, motion(out.t), atol=1e-7)
    assert "1 gap longer than 10 ms" in out.steps[0]
    assert len(to_uniform(log(t), gap=0.3).segments) == 1
    assert len(to_uniform(log(t), gap=0.005).segments) == 3


def test_rows_that_repeat_while_the_robot_moves_are_not_measurements() -> None:
    t = np.arange(4000) / 1000.0
    q, tau = motion(t), torque(t)
    stale = np.random.default_rng(1).choice(np.arange(10, 3990), 200, replace=False)
    for row in np.sort(stale):
        q[row], tau[row] = q[row - 1], tau[row - 1]
    out = to_uniform(Recording(t, q, tau, joints=("shoulder", "elbow")))
    np.testing.assert_allclose(out.q[5:-5], motion(t)[5:-5], atol=1e-7)
    np.testing.assert_allclose(out.tau[5:-5], torque(t)[5:-5], atol=1e-6)
    assert "ignored as not measured: 200 of the positions, 200 of the torques (5 %)" in " ".join(out.steps)
    as_is = to_uniform(Recording(t, q, tau), stuck=False)
    assert as_is.q is q


def test_a_logger_four_times_as_fast_as_its_source() -> None:
    t = np.arange(8000) / 1000.0
    source = t[np.arange(8000) // 4 * 4]
    out = to_uniform(Recording(t, motion(source), torque(source)))
    np.testing.assert_allclose(out.q[:-4], motion(out.t)[:-4], atol=1e-5)
    assert np.all(out.measured)


def test_slow_motion_within_an_encoder_step_is_not_stuck() -> None:
    t = np.arange(8000) / 1000.0
    step = 1e-4
    q = np.round(0.1 * np.sin(2 * np.pi * 0.25 * t)[:, None] * [1.0, 0.6] / step) * step
    tau = np.round(torque(t) * 50) / 50
    out = to_uniform(Recording(t, q, tau))
    assert out.q is q  # most rows repeat, and that is right


def test_a_position_that_hangs_is_found() -> None:
    t = np.arange(4000) / 1000.0
    q = motion(t)
    q[1200:1240, 1] = q[1199, 1]  # the elbow's encoder drops out for 40 ms, longer than a gap may be
    out = to_uniform(Recording(t, q, torque(t), joints=("shoulder", "elbow")))
    assert any("position of elbow is stuck in 40 rows, the first is row 1200" in step for step in out.steps)
    assert len(out.segments) == 2
    np.testing.assert_allclose(out.q, motion(out.t), atol=1e-7)


def test_stamps_too_close_together_do_no_harm() -> None:
    t = np.arange(2000) / 500.0
    t[700] = t[699] + 1e-7  # two messages came at once; the first was late
    t[699] -= 1e-9
    q, tau = motion(np.arange(2000) / 500.0), torque(np.arange(2000) / 500.0)
    out = to_uniform(Recording(t, q, tau))
    assert np.abs(out.q - motion(out.t)).max() < 0.02


def test_a_grid_coarser_than_the_log_is_refused() -> None:
    with refused(RecordingError, "grid-too-coarse", "100", "500"):
        to_uniform(log(np.arange(1000) / 500.0), rate=100.0)


def test_a_finer_grid_can_be_asked_for() -> None:
    out = to_uniform(log(np.arange(1000) / 500.0), rate=1000.0)
    assert len(out.t) == 1999
    np.testing.assert_allclose(out.q, motion(out.t), atol=1e-8)
