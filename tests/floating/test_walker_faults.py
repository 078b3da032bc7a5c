"""Faults of walkers' logs in MuJoCo's world are named, and healthy logs of other seeds have none."""

from __future__ import annotations

import numpy as np
import pytest
from walking_runs import codes, identified, short_walk, walk

from reproductions import floating_faults
from reproductions._walking_world import WorldLog, quadruped_walker, world_log


def changed(**signals: np.ndarray) -> WorldLog:
    return floating_faults.changed(walk(), **signals)


def the_finding(run, code):
    assert codes(run) == {code}
    [found] = [one for one in run.verdict.findings if one.code == code]
    return found


@pytest.mark.slow
def test_a_foot_that_slips_for_a_fifth_of_a_second(tmp_path):
    """The ground under one foot is slippery for 0.2 s."""
    world = floating_faults.slipping(walk().walker, 21, 4.0)
    run = identified(tmp_path, world, "wrench")
    [found] = [one for one in run.verdict.findings if one.code == "foot-slips"]
    assert "RL_toe" in found.title and found.evidence["distance"] > 0.004
    assert 2.9 < found.evidence["start"] < found.evidence["stop"] < 3.3


@pytest.mark.parametrize(("log", "leave_out"), [
    pytest.param(walk, (), marks=pytest.mark.slow), (short_walk, ("wrench",))])
def test_a_wrong_foot_frame(tmp_path, log, leave_out):
    """The foot seems to slip, too; the frame is the cause."""
    text = floating_faults.moved_site(walk().walker.text, "RL_toe", (0.0, 0.0, 0.02))
    found = the_finding(identified(tmp_path, log(), *leave_out, robot=text), "foot-frame")
    assert "RL_toe" in found.title
    np.testing.assert_allclose(found.evidence["values"], [0.0, 0.0, -0.02], atol=0.005)


@pytest.mark.slow
def test_a_wrong_place_of_the_imu(tmp_path):
    text = floating_faults.moved_site(walk().walker.text, "imu", (0.05, -0.04, 0.0))
    found = the_finding(identified(tmp_path, walk(), "wrench", robot=text), "imu-place")
    np.testing.assert_allclose(found.evidence["values"], [-0.05, 0.04, 0.0], atol=0.008)


@pytest.mark.parametrize(("axis", "leave_out"), [
    (0, ("wrench", "pose")), pytest.param(2, ("wrench",), marks=pytest.mark.slow)])
def test_an_imu_with_turned_axes(tmp_path, axis, leave_out):
    """About a horizontal axis gravity shows it as a bias, about the vertical axis only the motion shows it."""
    world = floating_faults.turned_imu(short_walk(), axis, 0.1)
    found = the_finding(identified(tmp_path, world, *leave_out), "imu-mounting")
    np.testing.assert_allclose(found.evidence["values"], 0.1 * np.eye(3)[axis], atol=0.01)


@pytest.mark.slow
def test_a_bias_of_the_imu_without_an_orientation(tmp_path):
    bias = np.array([0.2, -0.25, 0.1])
    world = changed(accelerometer=walk().signals["accelerometer"] + bias)
    found = the_finding(identified(tmp_path, world, "pose", "orientation"), "imu-bias")
    own = (0.03, -0.02)  # of the simulated sensor
    np.testing.assert_allclose(np.subtract(found.evidence["values"][:2], own), bias[:2], atol=0.05)


def test_an_offset_of_a_foot_sensor_without_joint_torques(tmp_path):
    wrench = walk().signals["wrench"].copy()
    wrench[:, 1, 2] -= 5.0
    found = the_finding(identified(tmp_path, changed(wrench=wrench), "torque"), "foot-offset")
    assert "FR_toe" in found.title
    np.testing.assert_allclose(found.evidence["values"], [0.0, 0.0, -5.0], atol=1.0)


def test_a_force_column_without_a_signal(tmp_path):
    """One component of one foot sensor is zero throughout: the cause is named, and what does not need it."""
    wrench = walk().signals["wrench"].copy()
    wrench[:, 3, 2] = 0.0
    found = the_finding(identified(tmp_path, changed(wrench=wrench)), "foot-force-constant")
    assert "RR_toe" in found.title and "force z" in found.text and "floating.equations=projected" in found.text
    assert found.evidence["components"] == (2.0,)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [31, 32, 33])
def test_healthy_logs_of_other_seeds_have_no_finding(tmp_path, seed):
    world = world_log(quadruped_walker(), seed, duration=4.0)
    for leave_out in ((), ("wrench",), ("torque",)):
        run = identified(tmp_path, world, *leave_out)
        assert not codes(run) and run.verdict.grade != "not usable"
