"""Runs from log files of robots with a free base, on logs of MuJoCo's world whose truth is known."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pytest
from refusals import refused
from walking_runs import codes, healthy, identified, short_walk, walk

from dynid.errors import RecordingError
from dynid.estimate.export import write_mjcf
from dynid.robot import Robot
from dynid.robot.write_urdf import urdf_with_inertias
from reproductions._walking_truth import compared, floating_log, truth_of
from reproductions._walking_world import humanoid_walker, world_log


@pytest.mark.parametrize(("leave_out", "kind", "count"), [
    ((), "wrenches", 118), (("torque",), "base", 94),
    pytest.param(("wrench",), "projected", 118, marks=pytest.mark.slow)])
def test_equations_follow_from_the_signals(leave_out, kind, count):
    """The kind of equations is chosen from the log and stated, intervals hold the truth, nothing healthy is blamed."""
    run = healthy(*leave_out)
    assert any(f"equations '{kind}' can identify {count} of the 118" in note for note in run.notes)
    assert any(note.startswith(f"equations {kind}: ") for note in run.notes)
    truth = run.problem.base.reduce(truth_of(walk().walker))
    known = np.isfinite(run.estimate.std)
    inside = np.abs(run.estimate.values - truth)[known] < 1.96 * run.estimate.std[known]
    assert 0.85 < inside.mean() <= 1.0
    assert not codes(run)


def test_a_foot_sensor_with_a_wrong_gain_is_named(tmp_path):
    wrench = walk().signals["wrench"].copy()
    wrench[:, 1] *= 1.1
    run = identified(tmp_path, replace(walk(), signals={**walk().signals, "wrench": wrench}))
    [finding] = [one for one in run.verdict.findings if one.code == "foot-gain"]
    assert "FR_toe" in finding.title and abs(finding.evidence["values"][0] - 0.1) < 0.02
    assert codes(run) == {"foot-gain"}


@pytest.mark.slow
def test_an_offset_of_a_foot_sensor_is_named(tmp_path):
    wrench = walk().signals["wrench"].copy()
    wrench[:, 2, :3] += [3.0, 0.0, 4.0]
    run = identified(tmp_path, replace(walk(), signals={**walk().signals, "wrench": wrench}))
    [finding] = [one for one in run.verdict.findings if one.code == "foot-offset"]
    assert "RL_toe" in finding.title and np.allclose(finding.evidence["values"], [3.0, 0.0, 4.0], atol=0.6)


def test_a_drifting_base_is_named(tmp_path):
    world = short_walk()
    drift = world.signals["position"] + np.outer(world.t, [0.02, 0.01, 0.0])
    run = identified(tmp_path, replace(world, signals={**world.signals, "position": drift}), "imu", "wrench")
    [finding] = [one for one in run.verdict.findings if one.code == "base-drifts"]
    assert abs(finding.evidence["x"] - 0.02) < 0.004 and abs(finding.evidence["y"] - 0.01) < 0.004


def test_a_schedule_wrong_by_20_ms_stays_inside_the_intervals():
    """Contacts are extended by more than that, so the estimate does not change its meaning."""
    log = floating_log(walk())
    for rows in (5, -5):
        late = replace(log, standing=np.roll(np.asarray(log.standing), rows, axis=0))
        assert 0.85 < compared(walk().walker, late, "projected", cutoff=14.0).inside.mean() <= 1.0


@pytest.mark.slow
def test_total_mass_and_symmetry_from_the_settings(tmp_path):
    true = walk().walker.robot.inertias[:, 9].sum()
    run = identified(tmp_path, walk(), "wrench", floating={"total_mass": (true, 0.01), "symmetry": True})
    mass = list(run.problem.base.names).index("M6R")
    assert abs(run.estimate.values[mass] - true) < 0.03


@pytest.mark.slow
def test_exports_keep_the_free_joint(tmp_path):
    run = identified(tmp_path, walk(), method="pc-wls")
    write_mjcf(run.estimate, tmp_path / "new.xml")
    again = Robot.load(tmp_path / "new.xml")
    assert again.has_free_base and again.dof == 18
    assert mujoco.MjModel.from_xml_path(str(tmp_path / "new.xml")).nv == 18
    index = run.estimate.model.parameters.index("M6")
    assert abs(again.inertias[5, 9] - run.estimate.full[index]) < 1e-6


def test_a_urdf_keeps_its_floating_joint():
    body = ('<inertial><origin xyz="0.01 0 0.02"/><mass value="{}"/><inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" '
            'ixz="0" iyz="0"/></inertial>')
    text = (f'<robot name="two"><link name="world"/><joint name="float" type="floating"><parent link="world"/>'
            f'<child link="trunk"/></joint><link name="trunk">{body.format(3)}</link><link name="leg">{body.format(1)}'
            '</link><joint name="hip" type="continuous"><parent link="trunk"/><child link="leg"/><axis xyz="0 1 0"/>'
            '</joint></robot>')
    robot = Robot.load(text)
    changed = robot.inertias * np.array([[1.0]] * 5 + [[1.1], [1.2]])
    again = Robot.load(urdf_with_inertias(text, robot, changed))
    assert again.has_free_base and 'type="floating"' in text
    np.testing.assert_allclose(again.inertias, changed, atol=1e-9)


@pytest.mark.slow
def test_a_humanoid_without_force_sensors():
    walker = humanoid_walker()
    found = compared(walker, floating_log(world_log(walker, 12, duration=8.0)), "projected", cutoff=8.0)
    assert 0.8 < found.inside.mean() <= 1.0
    assert found.found.identifiable < found.found.of_whole_robot


def test_logs_that_lack_something_are_refused_by_a_sentence(tmp_path):
    with refused(RecordingError, "log-lacks-signal", "log.contact=always"):
        identified(tmp_path, short_walk(), "wrench", "contact")
    with refused(RecordingError, "no-base-motion", "log.base_position"):
        identified(tmp_path, short_walk(), "imu", "pose")
    with refused(RecordingError, "unknown-feet"):
        identified(tmp_path, short_walk(), "wrench", log={"feet": ["FL_toe", "FR_toe", "RL_toe"]})
