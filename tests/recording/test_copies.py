"""Logs whose rows were not measured anew, or not at all, on a simulated arm."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.arrays import Array
from dynid.recording import Recording
from dynid.recording.check import (
    decimal_step,
    held_share,
    lost_rows,
    lost_torques,
    repeated_stretch,
    rows_in_motion,
)
from dynid.recording.sample_preparation import prepare

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


def test_lost_rows_are_found_where_they_were_and_the_motion_gives_their_time() -> None:
    """Some rows of a motion are removed and the others numbered anew. All joints but one are slow or at rest."""
    rng = np.random.default_rng(6301)
    t = np.arange(6000) / 250.0
    q = np.column_stack([np.sin(1.3 * t), 0.01 * np.sin(0.2 * t), np.full(len(t), 0.4)])
    q = np.round(q / 1e-4) * 1e-4
    assert lost_rows(t, q) is None
    keep = np.ones(len(t), dtype=bool)
    fast = np.flatnonzero(np.abs(np.cos(1.3 * t)) > 0.3)
    keep[rng.choice(fast[(fast > 10) & (fast < 5900)], 400, replace=False)] = False
    gaps = np.flatnonzero(np.diff(np.flatnonzero(keep)) > 1) + 1
    lost = lost_rows(t[:keep.sum()], q[keep])
    assert lost is not None and np.isin(lost.rows, gaps).mean() > 0.99 and len(lost.rows) > 0.97 * len(gaps)
    assert np.abs(lost.restamped(t[:keep.sum()]) - t[keep]).max() < 0.03  # of 1.6 s that were lost
    assert lost_rows(t[keep], q[keep]) is None  # stamps that show the gaps are right


@pytest.mark.parametrize("kind", ["jitter", "held", "spikes", "noise", "rest"])
def test_no_row_is_lost_in_a_complete_log(kind: str) -> None:
    rng = np.random.default_rng(6302)
    t = np.arange(8000) / 500.0
    at = t + (0.4 / 500.0 * rng.uniform(-1.0, 1.0, len(t)) if kind == "jitter" else 0.0)
    q = np.column_stack([np.sin(1.3 * at), 0.6 * np.cos(2.1 * at + 0.3)])
    if kind == "held":
        q = q[np.arange(len(t)) // 3 * 3]
    elif kind == "spikes":
        q[rng.choice(len(t), 300, replace=False)] += 0.5
    elif kind == "noise":
        q += 1e-3 * rng.normal(size=q.shape)
    elif kind == "rest":
        q *= np.clip(np.abs((t % 4.0) - 2.0) - 1.0, 0.0, 1.0)[:, None]
        q = np.round(q / 2e-3) * 2e-3
    assert lost_rows(t, q) is None


@pytest.mark.parametrize(("columns", "share"), [((0, 1, 2), 0.2), ((0, 1, 2), 0.002), ((1,), 0.05)])
def test_torques_written_as_zero_are_found_and_no_others(columns: tuple[int, ...], share: float) -> None:
    rng = np.random.default_rng(6303)
    t = np.arange(5000) / 250.0
    q = np.column_stack([np.sin(1.3 * t), np.cos(0.9 * t), np.sin(0.7 * t + 1.0)])
    tau = np.column_stack([12.0 * np.cos(q[:, 0]), 5.0 * np.sin(q[:, 1]) + 6.0, 3.0 * q[:, 2]])
    tau += 0.1 * rng.normal(size=tau.shape)
    coarse = np.round(tau / 0.8) * 0.8
    assert not lost_torques(q, tau).any() and not lost_torques(q, coarse).any()
    assert not lost_torques(q, tau * [0, 1, 1]).any()  # never measured
    gone = (rng.uniform(size=len(t)) < share) & (t > 0.1) & (t < 19.9)
    wrong = tau.copy()
    wrong[np.ix_(gone, columns)] = 0.0
    found = lost_torques(q, wrong).any(axis=1)
    assert not (found & ~gone).any() and found.sum() > 0.95 * gone.sum()
    at_rest = np.where(t[:, None] > 10.0, q[2500], q)
    assert not lost_torques(at_rest, np.where(t[:, None] > 10.0, 0.0, tau)).any()  # brakes are closed


@pytest.mark.parametrize("kind", ["few counts", "idle", "switching"])
def test_zeros_of_coarse_currents_are_not_lost(kind: str) -> None:
    """Currents in whole counts: of a joint with hardly any, of joints that are idle together, and that switch on."""
    rng = np.random.default_rng(6304)
    t = np.arange(6000) / 50.0
    q = np.column_stack([np.sin(1.3 * t), np.cos(0.9 * t), np.sin(0.7 * t + 1.0)])
    currents = np.round(np.abs(6.0 * np.cos(q)) + rng.normal(size=q.shape))
    if kind == "few counts":
        currents[:, 2] = rng.uniform(size=len(t)) < 0.1
    elif kind == "idle":
        currents[rng.uniform(size=len(t)) < 0.05] = 0.0
        currents *= rng.uniform(size=q.shape) < 0.85
    else:
        currents[:, 1] = np.where(np.isin(np.arange(len(t)) % 2000, (1000, 1001, 1003)), 40.0, np.round(t / 40.0))
        currents[1002::2000, 1] = 0.0
    assert not lost_torques(q, currents).any()


def test_torque_of_one_joint_that_is_lost_once_is_found() -> None:
    t = np.arange(4000) / 200.0
    q = np.column_stack([np.sin(1.3 * t), np.cos(0.9 * t)])
    tau = 4.0 + np.column_stack([np.cos(t), np.sin(t)]) + 0.01 * np.random.default_rng(0).normal(size=q.shape)
    tau[1800:1900, 1] = 0.0
    assert np.array_equal(np.argwhere(lost_torques(q, tau)), np.column_stack([np.arange(1800, 1900), np.ones(100)]))


def test_a_few_long_steps_of_one_joint_are_no_lost_rows() -> None:
    """A servo that is accelerated in three rows of a short log."""
    t = np.arange(100) / 50.0
    steps = 0.02 * np.cos(np.pi * t)
    steps[[10, 45, 55]] *= 2.0
    assert lost_rows(t, np.cumsum(steps)[:, None]) is None


def test_rows_with_lost_torques_are_not_used() -> None:
    """A long loss splits the log, and no row of it is in the fit."""
    t = np.arange(4000) / 200.0
    q = np.column_stack([np.sin(1.3 * t), np.cos(0.9 * t)])
    tau = 4.0 + np.column_stack([np.cos(t), np.sin(t)]) + 0.01 * np.random.default_rng(0).normal(size=q.shape)
    gone = np.isin(np.arange(len(t)) % 50, (7, 8)) | ((t > 9.0) & (t < 9.5))
    samples = prepare(Recording(t, q, np.where(gone[:, None], 0.0, tau)), cutoff=10.0)
    kept = samples.t[samples.keep.any(axis=1)]
    assert len(samples.segments) == 2 and len(kept) > 3000
    assert not np.isin(np.round(kept * 200).astype(int), np.flatnonzero(gone)).any()
    assert np.abs(samples.tau[samples.keep.all(axis=1)]).min() > 2.5
    assert any("exactly zero in" in step for step in samples.steps)
