"""Motions of a mobile robot in a room: limits that hold between the points of the search, and refusals."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refused

from dynid.errors import ModelError, NotPossibleError
from dynid.excitation.room import START_AMPLITUDE, Room, RoomMotion, room_motion
from dynid.model import DifferentialDrive


@pytest.mark.parametrize("half", (1.0, 2.0))
def test_a_motion_keeps_to_its_room_between_the_points_of_the_search(half: float) -> None:
    room = Room(half, 0.8, 1.0, 0.6, 1.0, np.pi)
    motion = room_motion(room, seed=5)
    speeds, rates, pose = motion.sampled(100.0)
    np.testing.assert_allclose(speeds[0], 0.0, atol=1e-12)
    np.testing.assert_allclose(np.gradient(speeds, 0.01, axis=0)[1:-1], rates[1:-1], atol=1e-4)
    assert max(np.abs(pose[:, :2]).max() / half, np.abs(pose[:, 2]).max() / np.pi) <= 1.0
    assert np.all(np.abs(speeds) <= [0.8, 1.0]) and np.all(np.abs(rates) <= [0.6, 1.0])
    start = START_AMPLITUDE * np.random.default_rng(5).normal(size=18)
    assert motion.condition_number() < RoomMotion.from_free(start, 0.1, 30.0).condition_number()


def test_the_condition_number_is_that_of_the_regressor_in_body_speeds() -> None:
    motion = RoomMotion.from_free(np.random.default_rng(2).normal(size=18), 0.1, 30.0)
    speeds, rates = motion.at(np.linspace(0.0, 30.0, 400))
    v, w, dv, dw = *speeds.T, *rates.T
    zero = np.zeros_like(v)
    right = np.column_stack([dv, dw, v, w, -w ** 2, v * w, zero, zero])
    left = np.column_stack([zero, zero, v, -w, -w ** 2, -v * w, dv, -dw])
    values = np.linalg.svd(np.vstack([right, left]), compute_uv=False)
    assert motion.condition_number(400) == pytest.approx(values[0] / values[-1], rel=1e-9)


def test_more_starts_are_never_worse() -> None:
    room = Room(2.0, 0.8, 1.0, 0.6, 1.0, np.pi)
    assert room_motion(room, seed=5, starts=2).condition_number() <= room_motion(room, seed=5).condition_number()


def test_a_limit_that_is_none_is_refused() -> None:
    with refused(ModelError, "wrong-room"):
        Room(1.0, 0.0, 1.0, 1.0, 1.0, 1.0)


def test_a_room_without_a_motion_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Room, "left", lambda self, speeds, rates, pose: np.full(3, -1.0))
    with refused(NotPossibleError, "no-motion-in-room"):
        room_motion(Room(1.0, 1.0, 1.0, 1.0, 1.0, 1.0))


def test_the_pose_of_constant_speeds_is_a_circle_and_side_slip_widens_it() -> None:
    rate, v, w = 1000.0, 0.7, 0.5
    t = np.arange(4000) / rate
    speeds, drive = np.tile([v, w], (len(t), 1)), DifferentialDrive()
    place = drive.pose(speeds, rate)
    np.testing.assert_allclose(place[:, 0], v / w * np.sin(w * t), atol=1e-6)
    np.testing.assert_allclose(place[:, 1], v / w * (1.0 - np.cos(w * t)), atol=1e-6)
    np.testing.assert_allclose(place[:, 2], w * t, atol=1e-12)
    side = drive.pose(speeds, rate, side_slip=0.2)
    np.testing.assert_allclose(side[:, 0] - place[:, 0], 0.2 / w * (np.cos(w * t) - 1.0), atol=1e-6)
    np.testing.assert_allclose(side[:, 1] - place[:, 1], 0.2 / w * np.sin(w * t), atol=1e-6)
