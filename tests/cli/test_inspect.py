"""dynid inspect and dynid robots: counts of the literature, JSON shape, and sentences for bad files."""

from __future__ import annotations

import json

import numpy as np
import pytest

LINK = ('<link name="{0}"><inertial><mass value="{1}"/><inertia ixx="{2}" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
        '</inertial></link>')
JOINT = ('<joint name="turn" type="revolute"><parent link="floor"/><child link="{0}"/><axis xyz="0 1 0"/>'
         '<limit lower="-1" upper="1" velocity="2" effort="3"/></joint>')


def urdf(tmp_path, mass=1.0, ixx=1.0):
    path = tmp_path / "swing.urdf"
    arm = LINK.format("arm", mass, ixx) + JOINT.format("arm")
    path.write_text(f'<robot name="swing"><link name="floor"/>{arm}</robot>')
    return path


def facts(shown):
    assert (shown.code, shown.err) == (0, "")
    return json.loads(shown.out)


@pytest.mark.parametrize(("call", "count"), [
    (["arm3r"], 15), (["arm3r", "--friction", "viscous,coulomb,offset"], 24),  # Simionato, tables A.1 and A.2
    (["kuka-lwr4"], 43), (["kuka-lwr4", "--friction", "viscous,coulomb,offset"], 64),  # tables A.3 and A.4
    (["kuka-lwr4", "--order", "mass-first"], 43),
    (["kuka-iiwa14"], 43),  # Ardiani, table B.2
    (["barrett-wam"], 76),  # Sousa, table 4.2: with the coupling and friction of its own file
])
def test_base_parameters_are_as_many_as_published(dynid, call, count):
    found = facts(dynid("inspect", *call, "--json"))
    assert found["base_count"] == len(found["base_parameters"]) == count


def test_a_robots_own_terms_can_be_had_or_left_out(dynid):
    assert facts(dynid("inspect", "arm3r", "--terms", "own", "--json"))["base_count"] == 24
    found = facts(dynid("inspect", "barrett-wam", "--terms", "none", "--json"))
    assert len(found["parameters"]) == 70 and found["base_count"] == 43


def test_json_of_a_pendulum(dynid, tmp_path):
    """One turning link, axis level: only the inertia about the axis and two moments show."""
    found = facts(dynid("inspect", urdf(tmp_path), "--json"))
    assert (found["robot"], found["dof"], found["base"]) == ("swing", 1, "floor")
    assert found["joints"] == [{"name": "turn", "kind": "revolute", "link": "arm", "parent": "floor", "lower": -1.0,
                                "upper": 1.0, "velocity": 2.0, "acceleration": None, "effort": 3.0}]
    assert [one["unit"] for one in found["parameters"]] == ["kg m^2"] * 6 + ["kg m"] * 3 + ["kg"]
    assert found["base_count"] == 3
    assert {one["seen"] for one in found["parameters"]} == {"alone", "never"}
    assert [one["name"] for one in found["parameters"] if one["seen"] == "alone"] == \
        [one["expression"] for one in found["base_parameters"]]
    assert found["inertia_problems"] == []


def test_rotor_inertia_adds_itself_to_the_link(dynid, tmp_path):
    found = facts(dynid("inspect", urdf(tmp_path), "--rotor", "--json"))
    assert found["base_count"] == 3
    assert [one["name"] for one in found["parameters"] if one["seen"] == "combined"][-1] == "Ia1"


def test_gravity_along_the_axis_hides_the_moments(dynid, tmp_path):
    found = facts(dynid("inspect", urdf(tmp_path), "--gravity", "0,-9.81,0", "--json"))
    assert found["gravity"] == [0.0, -9.81, 0.0] and found["base_count"] == 1


def test_impossible_inertias_are_named_with_their_link(dynid, tmp_path):
    found = facts(dynid("inspect", urdf(tmp_path, ixx=3.0), "--json"))
    (problem,) = found["inertia_problems"]
    assert (problem["link"], problem["kind"]) == ("arm", "triangle")
    assert np.isclose(problem["violation"], 1.0)  # 3 - 1 - 1
    assert "arm" in problem["message"]
    shown = dynid("inspect", urdf(tmp_path, mass=-2.0))
    assert shown.code == 0 and "problem" in shown.out and "-2" in shown.out


def test_text_shows_tree_limits_parameters_base_and_verdict(dynid):
    shown = dynid("inspect", "arm3r", "--friction", "viscous")
    assert (shown.code, shown.err) == (0, "")
    for part in ("arm3r: 3 joints", "joint3 (revolute) link3", "33 parameters", "18 base parameters", "Fv3",
                 "Inertias:"):
        assert part in shown.out
    assert "\x1b" not in shown.out  # no colours where nobody sees them


@pytest.mark.parametrize(("robot", "error", "part"), [
    ("nowhere.urdf", "no-such-file", "nowhere.urdf"),
    ("kuka-lwr5", "unknown-robot", "kuka-lwr4"),
    ("no/such/robot.toml", "no-such-file", "no/such/robot.toml"),
])
def test_a_robot_that_is_not_there(dynid, robot, error, part):
    shown = dynid("inspect", robot, "--json")
    assert (shown.code, shown.out) == (2, "")
    assert shown.error == error and part in shown.err and shown.err.count("\n") == 1


BOMB = ('<?xml version="1.0"?><!DOCTYPE robot [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]>'
        '<robot name="&b;"><link name="floor"/></robot>')
EXTERNAL = '<!DOCTYPE robot [<!ENTITY x SYSTEM "file:///etc/hostname">]><robot name="&x;"><link name="floor"/></robot>'
FLOATING = JOINT.replace('type="revolute"', 'type="floating"')


@pytest.mark.parametrize("text", [
    "", "<robot", "not a robot at all", "<robot name='r'></robot>", "<html></html>", BOMB, EXTERNAL,
    f"<robot name='r'><link name='floor'/>{JOINT.format('gone')}</robot>",
    f"<robot name='r'><link name='floor'/><link name='arm'/>{FLOATING.format('arm')}</robot>",
    f"<robot name='r'><link name='floor'/>{LINK.format('arm', 'heavy', 1)}{JOINT.format('arm')}</robot>",
    f"<robot name='r'><link name='floor'/>{LINK.format('arm', 'nan', 1)}{JOINT.format('arm')}</robot>",
])
def test_a_urdf_that_cannot_be_used_is_one_sentence(dynid, tmp_path, text):
    path = tmp_path / "bad.urdf"
    path.write_text(text)
    shown = dynid("inspect", path)
    assert (shown.code, shown.out) == (2, "")
    assert shown.err.startswith("Error: ") and "bad.urdf" in shown.err and shown.err.count("\n") == 1
    assert "Traceback" not in shown.err


@pytest.mark.parametrize("text", [
    "", "name = ", 'convention = "dh"\n', 'convention = "dh"\n[[joint]]\nalpha = "half"\n',
    'convention = "mdh"\n[[joint]]\nalhpa = 0\n',
])
def test_a_toml_that_cannot_be_used_is_one_sentence(dynid, tmp_path, text):
    path = tmp_path / "bad.toml"
    path.write_text(text)
    shown = dynid("inspect", path)
    assert (shown.code, shown.out) == (2, "")
    assert shown.err.startswith("Error: ") and "bad.toml" in shown.err and shown.err.count("\n") == 1


@pytest.mark.parametrize("option", [["--gravity", "down"], ["--gravity", "0,0"], ["--gravity", "0,0,nan"],
                                    ["--friction", "sticky"], ["--friction", "viscous,sticky"]])
def test_a_bad_value_is_one_sentence(dynid, option):
    shown = dynid("inspect", "arm3r", *option)
    assert (shown.code, shown.out) == (2, "")
    assert shown.err.startswith("Error: ") and shown.err.count("\n") == 1


def test_robots_lists_every_built_in_robot_with_its_source(dynid):
    listed = facts(dynid("robots", "--json"))["robots"]
    assert {"arm3r", "kuka-lwr4", "kuka-iiwa14", "barrett-wam"} <= {one["name"] for one in listed}
    assert all(one["source"] and one["dof"] == len(one["joints"]) for one in listed)
    shown = dynid("robots")
    assert shown.code == 0 and all(one["name"] in shown.out for one in listed)


def test_signals_that_a_log_holds_are_said(dynid, tmp_path):
    log = tmp_path / "log.csv"
    rows = np.column_stack([np.arange(20) / 100.0, *(np.sin(np.arange(20) + k) for k in range(5))])
    names = ("time", "position_turn", "torque_turn", "reference_position_turn", "target_torque_turn",
             "external_torque_turn")
    np.savetxt(log, rows, delimiter=",", header=",".join(names), comments="")
    call = ("inspect", urdf(tmp_path), "--log", log)
    (found,) = facts(dynid(*call, "--json"))["logs"]
    assert found["signals"] == ["time", "position", "torque", "reference", "target_torque", "external_torque"]
    assert found["rows"] == 20
    shown = dynid(*call)
    assert shown.code == 0 and "the log contains time, position, torque, reference" in " ".join(shown.out.split())
