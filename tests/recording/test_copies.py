"""Logs whose rows were not measured anew, on a simulated arm."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.arrays import Array
from dynid.recording.check import decimal_step, held_share, repeated_stretch, rows_in_motion

RATE = 200.0


def motion(encoder: float = 2e-5, seconds: float = 10.0, seed: int = 0) -> tuple[Array, Array, Array]:
    """Stamps, positions in counts of an encoder (rad) and noisy torques of two joints; the last fifth stands still."""
    rng = np.random.default_rng(seed)
    t = np.arange(round(seconds * RATE)) / RATE
    q = np.column_stack([np.sin(2.0 * t), 0.7 * np.cos(3.1 * t)])
    q[t > 0.8 * seconds] = q[np.searchsorted(t, 0.8 * seconds)]
    tau = 3.0 * np.cos(q) + rng.normal(0.0, 0.05, q.shape)
    return t, np.round(q / encoder) * encoder, np.round(tau / 1e-3) * 1e-3


@pytest.mark.parametrize("times", [2, 3])
def test_rows_that_are_written_several_times(times: int) -> None:
    _, q, tau = motion()
    found = held_share(np.repeat(q, times, axis=0), np.repeat(tau, times, axis=0))
    assert found == pytest.approx(1.0 - 1.0 / times, abs=0.01)


@pytest.mark.parametrize("encoder", [1e-6, 2e-5, 1e-3])
def test_rows_of_a_healthy_log_are_not_held(encoder: float) -> None:
    _, q, tau = motion(encoder)
    assert held_share(q, tau) < 0.01


def test_a_robot_that_stands_still_repeats_nothing() -> None:
    q, tau = np.full((2, 1000, 2), 0.3)
    assert held_share(q, tau) == 0.0 and not rows_in_motion(q).any()
    assert repeated_stretch(np.arange(1000) / RATE, q, tau) is None


def test_a_log_repeated_in_itself() -> None:
    t, q, tau = motion()
    twice = np.arange(2 * len(t)) / RATE
    found = repeated_stretch(twice, np.vstack([q, q]), np.vstack([tau, tau]))
    assert found is not None and found.after == pytest.approx(len(t) / RATE)
    assert found.rows == pytest.approx(rows_in_motion(q).sum(), abs=50)


def test_a_periodic_motion_with_noise_is_no_copy() -> None:
    t = np.arange(4000) / RATE
    q = np.round(np.column_stack([np.sin(2.0 * np.pi * t), np.cos(2.0 * np.pi * t)]) / 1e-4) * 1e-4
    tau = np.round((q + np.random.default_rng(1).normal(0.0, 0.05, q.shape)) / 1e-3) * 1e-3
    assert repeated_stretch(t, q, tau) is None


@pytest.mark.parametrize("step", [0.01, 0.005, 0.02])
def test_positions_that_are_rounded(step: float) -> None:
    _, q, _ = motion(step)
    assert [decimal_step(column) for column in q.T] == [pytest.approx(step)] * 2


@pytest.mark.parametrize("step", [1e-4, 2.0 * np.pi / 4096, 2.0 * np.pi / 2**20, 1e-9])
def test_positions_of_encoders_are_not_rounded(step: float) -> None:
    _, q, _ = motion(step)
    assert [decimal_step(column) for column in q.T] == [None] * 2
