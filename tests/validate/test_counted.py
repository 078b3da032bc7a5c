"""Errors over all moving rows against their definition, with numpy and scipy; and what errors say they count."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from motions import arm, fourier
from scipy.signal import butter, sosfiltfilt

from dynid.estimate import Problem, identify
from dynid.recording import Decimation, Recording
from dynid.recording.decimate import decimate_columns, decimated_rows, low_passed
from dynid.recording.sample_preparation import prepare
from dynid.validate import reconstruct

RATE, NOISE = 200.0, 0.4


@pytest.fixture(scope="module")
def log() -> Recording:
    """20 s of the 3R arm with white noise of 0.4 N m on its torques."""
    model, theta = arm()
    q, dq, ddq = fourier(3, seconds=20.0, rate=RATE)
    tau = model.inverse_dynamics(theta, q, dq, ddq) + NOISE * np.random.default_rng(0).normal(size=q.shape)
    return Recording(np.arange(len(q)) / RATE, q, tau, joints=model.joint_names, source="noisy.csv")


def relative(error: np.ndarray, tau: np.ndarray, rows: np.ndarray) -> float:
    return 100 * float(np.linalg.norm(error[rows]) / np.linalg.norm(tau[rows]))


def test_low_pass_at_every_row_is_that_of_the_rows_that_stay():
    x = np.random.default_rng(0).normal(size=(1500, 3))
    decimation = Decimation(7, 2, 4, 0.6)
    rows = decimated_rows(np.array([[0, 1500]]), decimation)
    np.testing.assert_allclose(low_passed(x, decimation)[rows],
                               decimate_columns(x, decimation, np.array([[0, 1500]])), atol=1e-12)


def test_errors_over_all_moving_rows_are_the_definition(log):
    model, _ = arm()
    samples = prepare(log, cutoff=5.0)
    assert samples.decimation is not None and samples.torque_cutoff == pytest.approx(5.0)
    estimate = identify(Problem.from_model(model, samples), method="wls")
    found = reconstruct(estimate, samples)
    hat = model.regressor(samples.q, samples.dq, samples.ddq) @ estimate.full
    sos = butter(4, 5.0, fs=RATE, output="sos")
    low, low_hat = sosfiltfilt(sos, log.tau, axis=0), sosfiltfilt(sos, hat, axis=0)
    for j, one in enumerate(found.moving.joints):
        speed = np.abs(samples.dq[:, j])
        rows = speed > 0.01 * speed[samples.keep[:, j]].max()
        assert one.rows == rows.sum() > 0.9 * len(samples)
        assert one.raw == pytest.approx(relative((log.tau - hat)[:, j], log.tau[:, j], rows), rel=1e-9)
        # Filters of finite length and of infinite length differ at the borders.
        assert one.low_passed == pytest.approx(relative((low - low_hat)[:, j], low[:, j], rows), rel=0.02)
    rms = np.sqrt(np.mean(log.tau ** 2))
    assert found.moving.total.raw == pytest.approx(100 * NOISE / rms, rel=0.1)
    assert found.relative_error < 0.5 * found.moving.total.raw  # the headline alone would flatter


def test_raw_torques_stay_where_the_torques_are_filtered_first(log):
    model, _ = arm()
    samples = prepare(log, cutoff=5.0, decimate=1, thin=3)
    assert samples.decimation is None and samples.torque_cutoff == 5.0
    np.testing.assert_array_equal(samples.measured_tau, log.tau[::3])
    estimate = identify(Problem.from_model(model, samples), method="wls")
    moving = reconstruct(estimate, samples).moving.total
    error = samples.tau - model.regressor(samples.q, samples.dq, samples.ddq) @ estimate.full
    rows = np.abs(samples.dq) > 0.01 * np.array([np.abs(samples.dq[samples.keep[:, j], j]).max() for j in range(3)])
    assert moving.low_passed == pytest.approx(relative(error, samples.tau, rows), rel=1e-9)
    assert moving.raw > 1.8 * moving.low_passed
    plain = prepare(log, method="none", decimate=1)
    assert plain.torque_cutoff is None and plain.raw_tau is None


def test_what_was_counted_is_said(log):
    model, _ = arm()
    samples = prepare(log, cutoff=5.0)
    found = reconstruct(identify(Problem.from_model(model, samples), method="wls"), samples)
    rows = decimated_rows(samples.segments, samples.decimation)
    assert found.counted.equations == samples.keep[rows].sum() and found.counted.of == 3 * len(log)
    said = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert said["counted"] == {"equations": found.counted.equations, "of": 12000, "torque_cutoffs": [5.0]}
    assert said["moving"]["raw"] == found.moving.total.raw and len(said["moving"]["low_passed_per_joint"]) == 3
    assert f"{found.counted.equations:,} of 12,000" in found.counted_text and "5 Hz" in found.counted_text


def test_joints_at_rest_or_without_torque_have_no_error(log):
    model, _ = arm()
    samples = prepare(log, cutoff=5.0)
    estimate = identify(Problem.from_model(model, samples), method="wls")
    dq = samples.dq.copy()
    dq[:, 1] = 0.0
    still = reconstruct(estimate, replace(samples, dq=dq, unmeasured=(samples.joints[2],))).moving
    assert still.joints[0].raw is not None
    assert [one.raw for one in still.joints[1:]] == [None, None] and still.joints[1].rows == still.joints[2].rows == 0
    assert still.total.raw == still.joints[0].raw
