"""Unchecked is not safe: what a designed motion was checked against, and how far and how fast it goes otherwise."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refused

from dynid.errors import DynidError
from dynid.excitation import Fourier, Search
from dynid.report.pages.motion import overview
from dynid.robot import Robot
from dynid.runs.motion_design import MotionRequest, design_motion, limits_for, motion_facts
from dynid.runs.safe_motion import MAX_REACH, RANGE_SHARE, SPEED_SHARE, Safety, unchecked

pytestmark = pytest.mark.usefixtures("one_start")
QUICK = {"search": Search(None, 1, 0), "family": Fourier(6.0, 3)}


def designed(safety: Safety, robot: Robot | None = None, **more):
    return design_motion(robot or Robot.builtin("arm3r"), MotionRequest(safety=safety, **QUICK, **more))


def test_without_floor_and_box_the_headline_says_so_and_the_motion_is_careful():
    data, robot = designed(Safety()), Robot.builtin("arm3r")
    assert data.unchecked.startswith("NOT checked against the floor and objects around it")
    assert data.checked == "checked against the robot itself, with an assumed radius for 3 of 3 links"
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
                                                 (Safety(speed=1.5), ("bad-call", "speed", "got 1.5")),
                                                 (Safety(radius=-1.0), ("bad-call", "--radius", "got -1")),
                                                 (Safety(floor=float("nan")), ("bad-call", "--floor", "got nan"))])
def test_what_cannot_be_is_a_sentence(safety, message):
    with refused(DynidError, *message):
        designed(safety)


def test_ranges_are_reduced_while_the_radius_of_the_links_is_assumed():
    assumed, given = designed(Safety(floor=-0.4)), designed(Safety(floor=-0.4, radius=0.03))
    assert assumed.checked.endswith("with an assumed radius for 3 of 3 links")
    assert given.checked == "checked against the floor and the robot itself"
    reach = [np.sum(data.excitation.limits.upper - data.excitation.limits.lower) for data in (assumed, given)]
    assert any("the radius of the links is assumed" in note for note in assumed.notes) and reach[0] < reach[1]
    facts = motion_facts(assumed)
    assert [link["checked"] for link in facts["links"]] == [["capsule"]] * 3
    assert facts["links"][0]["radius"] == pytest.approx(0.05 * (0.22 + 0.15))


def test_floor_at_the_height_of_the_mounting_is_possible_and_stated():
    data = designed(Safety(floor=0.0))
    assert any("link1 in half-space 'table'" in note for note in data.notes)
    assert motion_facts(data)["unchanged_contacts"]


ARM = """<robot name="arm"><link name="base"/>
<link name="upper">{rod}</link><link name="lower">{rod}</link>
<joint name="a" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
<limit lower="-2" upper="2" velocity="4" effort="40"/></joint>
<joint name="b" type="revolute"><parent link="upper"/><child link="lower"/><origin xyz="0.4 0 0"/><axis xyz="0 1 0"/>
<limit lower="-2" upper="2" velocity="4" effort="40"/></joint></robot>""".format(rod="""
<inertial><origin xyz="0.2 0 0"/><mass value="2"/><inertia ixx="0.01" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.03"/>
</inertial><collision><origin xyz="0.2 0 0" rpy="0 1.5707963267948966 0"/>
<geometry><cylinder radius="0.05" length="0.4"/></geometry></collision>""")


@pytest.mark.parametrize("turned", [False, True], ids=["upright", "on its side"])
def test_lowest_point_is_that_of_forward_kinematics(turned):
    """Pinocchio places the ends of both rods; each is the centre of a ball of the rods' radius. A robot that is mounted
    on its side is lowest along gravity."""
    pinocchio = pytest.importorskip("pinocchio")
    gravity = (-9.81, 0.0, 0.0) if turned else (0.0, 0.0, -9.81)
    data = designed(Safety(), Robot.from_urdf(ARM).with_gravity(gravity))
    model = pinocchio.buildModelFromXML(ARM)
    state = model.createData()
    t = np.arange(0.0, data.excitation.trajectory.duration, 1e-3)
    points = []
    for q in data.excitation.trajectory.at(t).q:
        pinocchio.forwardKinematics(model, state, q)
        points.append([state.oMi[j].act(np.array([0.4, 0.0, 0.0])) for j in (1, 2)])
    heights = np.array(points)[..., 0 if turned else 2] - 0.05
    low = data.lowest
    assert low.height == pytest.approx(heights.min(), abs=1e-4) and low.floor is None
    link = np.argmin(heights.min(axis=0))
    assert low.link == ("upper", "lower")[link] and heights[round(low.time * 1e3) - 1:][:3].min() < low.height + 1e-3
    assert low.point[0 if turned else 2] == pytest.approx(low.height, abs=1e-9)


def test_warnings_name_what_was_not_checked_first_and_then_the_lowest_point():
    data = designed(Safety(), Robot.from_urdf(ARM))
    first, second = data.warnings
    assert first.startswith("NOT checked against the floor") and first.endswith("one hand on the emergency stop.")
    assert data.lowest.height < 0.0 and f"{-data.lowest.height:.2f} m below the base plane" in second
    assert "--floor" in second
    checked = designed(Safety(floor=-0.7), Robot.from_urdf(ARM))
    assert checked.warnings == () and checked.lowest.height >= -0.7 - 1e-6
    assert any(f"{checked.lowest.height + 0.7:.2f} m above the floor" in note for note in checked.notes)


def test_given_speed_reduces_the_speeds_of_a_limits_file(tmp_path):
    """Without a given speed, the speeds are those of the file."""
    file, robot = tmp_path / "limits.toml", Robot.builtin("arm3r")
    file.write_text("[space]\ntable = -1.0\n")
    slow = designed(Safety(speed=0.1), limits=file).excitation
    dq = slow.core.at(np.linspace(0.0, slow.core.duration, 600)).dq
    assert np.all(np.abs(dq) <= 0.1 * robot.limit("velocity") * (1 + 1e-6))
    assert np.array_equal(designed(Safety(), limits=file).excitation.limits.velocity, 0.95 * robot.limit("velocity"))
