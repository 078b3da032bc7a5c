"""Unchecked is not safe: what a designed motion was checked against, and how far and how fast it goes otherwise."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refused

from dynid.errors import DynidError
from dynid.excitation import Fourier, Search
from dynid.report.pages.motion import overview
from dynid.robot import Robot
from dynid.runs.motion_design import MotionRequest, design_motion, limits_for
from dynid.runs.safe_motion import MAX_REACH, RANGE_SHARE, SPEED_SHARE, Safety, unchecked

pytestmark = pytest.mark.usefixtures("one_start")
QUICK = {"search": Search(None, 1, 0), "family": Fourier(6.0, 3)}


def designed(safety: Safety, robot: Robot | None = None, **more):
    return design_motion(robot or Robot.builtin("arm3r"), MotionRequest(safety=safety, **QUICK, **more))


def test_without_floor_and_box_the_headline_says_so_and_the_motion_is_careful():
    data, robot = designed(Safety()), Robot.builtin("arm3r")
    assert data.unchecked.startswith("NOT checked against the floor and objects around it")
    assert data.checked == "checked against the robot itself"
    headline = overview(data)["headline"]
    assert data.unchecked in headline and "inside all limits" not in headline
    motion = data.excitation.core.at(np.linspace(0.0, 6.0, 600))
    assert np.all(np.abs(motion.dq) <= SPEED_SHARE * robot.limit("velocity") * (1 + 1e-6))
    half = np.minimum(0.5 * RANGE_SHARE * (robot.limit("upper") - robot.limit("lower")), MAX_REACH)
    assert np.all(np.ptp(motion.q, axis=0) <= 2 * half * (1 + 1e-6))
    assert any("--speed" in note for note in data.notes) and any("--full-range" in note for note in data.notes)


def test_a_home_posture_is_the_middle_of_a_careful_motion():
    home = np.array([0.5, -0.3, 0.2])
    data = designed(Safety(), home=home)
    motion = data.excitation.core.at(np.linspace(0.0, 6.0, 600))
    assert np.all(np.abs(motion.q - home) <= MAX_REACH * (1 + 1e-6))


def test_speed_and_range_are_as_asked():
    robot = Robot.builtin("arm3r")
    data = designed(Safety(speed=0.3, full_range=True))
    motion = data.excitation.core.at(np.linspace(0.0, 6.0, 600))
    assert np.all(np.abs(motion.dq) <= 0.3 * robot.limit("velocity") * (1 + 1e-6))
    assert not any("--speed" in note or "--full-range" in note for note in data.notes)
    assert data.unchecked  # asking for all of the range checks nothing


def test_a_floor_and_a_radius_are_kept_and_named():
    data = designed(Safety(floor=-0.4, radius=0.03))
    assert data.unchecked == "" and "inside all limits" in overview(data)["headline"]
    space = data.excitation.limits.space
    motion = data.excitation.core.at(np.linspace(0.0, 6.0, 600))
    assert space.slack(motion.q).min() >= -1e-6 and any(plane.name == "table" for plane in space.planes)
    limits, _ = limits_for(Robot.builtin("arm3r"), None, None, Safety(radius=0.03))
    assert unchecked(limits).startswith("NOT checked against the floor")


@pytest.mark.parametrize(("safety", "message"), [(Safety(box=(0.0, 1.0)), ("bad-call", "--box", "got 2")),
                                                 (Safety(speed=1.5), ("bad-call", "speed", "got 1.5"))])
def test_what_cannot_be_is_a_sentence(safety, message):
    with refused(DynidError, *message):
        designed(safety)
