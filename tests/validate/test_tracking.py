"""Commanded against sensed signals, on errors that are known in closed form."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dynid.recording import Recording
from dynid.validate import tracking_errors

T = 6.0 * np.pi * np.arange(20000) / 20000.0  # whole turns of both joints
ASKED = np.column_stack([np.sin(2.0 * T), 0.5 * np.cos(3.0 * T)])
SPEED = np.column_stack([2.0 * np.cos(2.0 * T), -1.5 * np.sin(3.0 * T)])


def log(**signals: np.ndarray) -> Recording:
    """The first joint is 20 ms late, the second off by a multiple of its own acceleration, which no speed explains."""
    q = np.column_stack([np.sin(2.0 * (T - 0.02)), ASKED[:, 1] - 0.01 * 0.5 * np.cos(3.0 * T)])
    return Recording(T, q, np.full_like(q, 10.0), reference=ASKED, joints=("late", "off"), **signals)


@pytest.mark.parametrize("logged", [True, False])
def test_a_late_joint_goes_with_its_speed_and_another_does_not(logged: bool) -> None:
    (found,) = tracking_errors([log(**({"reference_velocity": SPEED} if logged else {}))])
    assert found.lag[0] == pytest.approx(np.sin(2.0 * 0.02) / 2.0, rel=1e-3)  # sin wt - sin w(t - d), over whole turns
    # What a delay leaves beside the speed: (1 - cos wd)^2 of 2 (1 - cos wd).
    assert found.by_speed[0] == pytest.approx(100.0 * (1.0 - (1.0 - np.cos(0.04)) / 2.0), abs=0.05)
    assert abs(found.lag[1]) < 1e-4 and found.by_speed[1] < 0.1
    assert found.share[1] == pytest.approx(1.0, rel=1e-2)
    assert found.rms[1] == pytest.approx(0.005 / np.sqrt(2.0), rel=1e-3)
    assert found.torque_share is None and found.external_rms is None


def test_commanded_and_external_torques_are_compared_with_the_measured_ones() -> None:
    (found,) = tracking_errors(
        [log(target_torque=np.full((len(T), 2), 10.5), external_torque=np.full((len(T), 2), -2.0))]
    )
    assert found.torque_share == pytest.approx(5.0) and found.external_rms == pytest.approx(2.0)
    said = found.to_dict()
    assert said["torque_error_per_joint"] == pytest.approx([5.0, 5.0]) and json.dumps(said, allow_nan=False)


def test_logs_without_commanded_positions_have_none_and_joints_at_rest_no_share() -> None:
    still = Recording(T, np.zeros((len(T), 1)), np.zeros((len(T), 1)), reference=np.zeros((len(T), 1)))
    assert tracking_errors([Recording(T, ASKED, ASKED)]) == ()
    (found,) = tracking_errors([still])
    assert found.to_dict()["position_error_per_joint"] == [None] and found.to_dict()["lag_per_joint"] == [None]
