"""Motions of the mobile robot in a room: its pose in closed form, limits that are held, and what comes out."""

from __future__ import annotations

import numpy as np
import pytest
from _room_motion import Room, Series, body_speeds, condition, motion_in, pose
from reproduced import reproduced

from dynid.model import DifferentialDrive


def test_the_pose_of_constant_speeds_is_a_circle_and_side_slip_widens_it() -> None:
    rate, v, w = 1000.0, 0.7, 0.5
    t = np.arange(4000) / rate
    speeds = np.tile([v, w], (len(t), 1))
    place = pose(speeds, rate)
    np.testing.assert_allclose(place[:, 0], v / w * np.sin(w * t), atol=1e-6)
    np.testing.assert_allclose(place[:, 1], v / w * (1.0 - np.cos(w * t)), atol=1e-6)
    np.testing.assert_allclose(place[:, 2], w * t, atol=1e-12)
    side = pose(speeds, rate, 0.2)
    np.testing.assert_allclose(side[:, 0] - place[:, 0], 0.2 / w * (np.cos(w * t) - 1.0), atol=1e-6)
    np.testing.assert_allclose(side[:, 1] - place[:, 1], 0.2 / w * np.sin(w * t), atol=1e-6)


def test_slip_of_one_wheel_turns_the_body() -> None:
    drive = DifferentialDrive((0.1, 0.43))
    rolling = body_speeds(drive, np.array([[2.0, 2.0]]))
    np.testing.assert_allclose(rolling, [[0.2, 0.0]], atol=1e-15)
    slipping = body_speeds(drive, np.array([[2.0, 2.0]]), np.array([[-0.05, 0.0]]))
    np.testing.assert_allclose(slipping, [[0.175, -0.05 / 0.43]])


def test_a_motion_keeps_to_its_room_between_the_points_of_the_search() -> None:
    t = np.arange(0.0, 30.0, 0.01)
    for half in (1.0, 2.0):
        room = Room(half, 0.8, 1.0, 0.6, 1.0, np.pi)
        series = motion_in(room, 0.1, 30.0, 5)
        speeds, rates = series.at(t)
        np.testing.assert_allclose(speeds[0], 0.0, atol=1e-12)
        np.testing.assert_allclose(np.gradient(speeds, 0.01, axis=0)[1:-1], rates[1:-1], atol=1e-4)
        assert room.left(speeds, rates, pose(speeds, 100.0)).min() >= 0.0
        start = Series.of(0.1 * np.random.default_rng(5).normal(size=18), 0.1)
        assert condition(DifferentialDrive(), speeds, rates) < condition(DifferentialDrive(), *start.at(t))


@pytest.mark.slow
def test_mobile_room() -> None:
    reproduced("mobile_room")
