"""Robots by name and by TOML file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from dynid.errors import RobotError
from dynid.robot import Robot, builtin_names
from dynid.robot import inertia as ten
from dynid.robot.robot_files import load, read_toml

TABLE = """
name = "two"
source = "made up"
convention = "mdh"
angles = "degrees"
gravity = [0, -9.81, 0]
base = {xyz = [0, 0, 0.3], rpy = [0, 0, 90]}
tool = [[1, 0, 0, 0.1], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]

[[joint]]
name = "shoulder"
link = "upper"
alpha = 0
d = 0
r = 0.4
lower = -90
upper = 90
velocity = 180
effort = 50
inertia = {mass = 2, com = [0.1, 0, 0], about_com = [0.1, 0, 0, 0.2, 0, 0.25]}

[[joint]]
alpha = "pi/2"
d = 0.5
theta = 90
kind = "prismatic"
lower = -0.2
upper = 0.3
inertia = {mass = 1, com = [0, 0.2, 0], about_frame = [0.1, 0.01, 0, 0.2, 0, 0.25]}

[[terms]]
kind = "viscous"

[[terms]]
kind = "motor-side"
coupling = [[1, 1], [0, 1]]

[values]
Fv1 = 0.5
"""


def test_toml_file(tmp_path: Path) -> None:
    path = tmp_path / "two.toml"
    path.write_text(TABLE)
    robot = load(path)
    assert (robot.name, robot.source, robot.joint_names, robot.body_names) == (
        "two", "made up", ("shoulder", "joint2"), ("upper", "link2"))
    assert [j.kind for j in robot.joints] == ["revolute", "prismatic"]
    np.testing.assert_allclose(robot.limit("lower"), [-np.pi / 2, -0.2])
    np.testing.assert_allclose(robot.limit("velocity"), [np.pi, np.inf])
    assert robot.limit("effort").tolist() == [50, np.inf]
    assert robot.gravity.tolist() == [0, -9.81, 0]
    # The base stands 0.3 m up, turned by 90 degrees; joint 1 stands 0.4 m above it.
    np.testing.assert_allclose(robot.joints[0].before, [[0, -1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0.7], [0, 0, 0, 1]])
    # Rot(x, 90) Trans(x, 0.5) Rot(z, 90).
    np.testing.assert_allclose(robot.joints[1].before, [[0, -1, 0, 0.5], [0, 0, -1, 0], [1, 0, 0, 0], [0, 0, 0, 1]])
    np.testing.assert_allclose(robot.frame("tool").pose[:3, 3], [0.1, 0, 0])
    np.testing.assert_allclose(robot.inertias[0], [0.1, 0, 0, 0.22, 0, 0.27, 0.2, 0, 0, 2])
    np.testing.assert_allclose(robot.inertias[1], [0.1, 0.01, 0, 0.2, 0, 0.25, 0, 0.2, 0, 1])
    assert [term["kind"] for term in robot.terms] == ["viscous", "motor-side"]
    assert robot.terms[1]["coupling"] == [[1, 1], [0, 1]]
    assert robot.values == {"Fv1": 0.5}
    assert Robot.load(str(path)).name == "two"


def test_the_three_ways_to_write_an_inertia_agree(tmp_path: Path) -> None:
    numbers = ten.from_central(2.0, [0.1, 0, 0], np.diag([0.1, 0.2, 0.25]))
    wide = "{" + ", ".join(f"{name} = {value}" for name, value in zip(ten.NAMES, numbers, strict=True)) + "}"
    for text in (wide, "{mass = 2, com = [0.1, 0, 0], about_com = [0.1, 0, 0, 0.2, 0, 0.25]}",
                 "{mass = 2, com = [0.1, 0, 0], about_frame = [0.1, 0, 0, 0.22, 0, 0.27]}"):
        path = tmp_path / "r.toml"
        path.write_text(f'convention = "dh"\n[[joint]]\nalpha = 0\na = 0\nd = 0\ninertia = {text}\n')
        robot = read_toml(path)
        np.testing.assert_allclose(robot.inertias[0], numbers, atol=1e-15)
        assert robot.name == "r" and robot.source == "r.toml"


@pytest.mark.parametrize(("text", "value"), [
    ("0.25", 0.25), ('"pi"', np.pi), ('"-pi/2"', -np.pi / 2), ('"3*pi/4"', 3 * np.pi / 4), ('"2 pi"', 2 * np.pi),
    ('"+ pi / 6"', np.pi / 6), ('"0.5*pi"', np.pi / 2)])
def test_angles_as_text(tmp_path: Path, text: str, value: float) -> None:
    path = tmp_path / "r.toml"
    path.write_text(f'convention = "dh"\n[[joint]]\nalpha = 0\na = 0\nd = 0\nupper = {text}\n')
    assert read_toml(path).joints[0].upper == pytest.approx(value, rel=1e-15)


def changed(old: str, new: str) -> str:
    assert old in TABLE
    return TABLE.replace(old, new)


BAD = {
    "not toml": ("name = ", ("not-toml", "'bad.toml'")),
    "no convention": (changed('convention = "mdh"', ""), ("wrong-setting", '"dh"', '"mdh"', '"tree"', '"urdf"')),
    "notation": (changed('angles = "degrees"', 'notation = "paul"'), ("bad-robot", "'paul'")),
    "notation of dh": ('convention = "dh"\nnotation = "craig"', ("bad-robot", "'craig'", "notation")),
    "angles": (changed('"degrees"', '"grad"'), ("bad-robot", '"radians"', '"degrees"', "'grad'")),
    "no joints": ('convention = "dh"', ("no-joint", "[[joint]]")),
    "joint not a table": ('convention = "dh"\njoint = 3', ("no-joint", "[[joint]]")),
    "top key": ("gravitation = 3\n" + TABLE, ("unknown-setting", "'gravitation'")),
    "joint key": (changed("effort", "efort"), ("unknown-setting", "[[joint]] 1", "'efort'", "'effort'")),
    "dh key": (changed('convention = "mdh"', 'convention = "dh"'), ("unknown-setting", "[[joint]] 1", "'r'")),
    "missing key": (changed("d = 0.5\n", ""), ("bad-robot", "DH row 2", "'d'")),
    "angle": (changed('"pi/2"', '"tau/4"'), ("bad-robot", "'alpha'", "[[joint]] 2", '"pi/2"', "'tau/4'")),
    "zero divisor": (changed('"pi/2"', '"pi/0"'), ("bad-robot", "'alpha'", "[[joint]] 2", "'pi/0'")),
    "boolean": (changed("r = 0.4", "r = true"), ("bad-robot", "'r'", "'two'", "DH row 1")),
    "boolean angle": (changed("lower = -90", "lower = true"), ("not-a-number", "'lower'", "[[joint]] 1")),
    "nan": (changed("r = 0.4", "r = nan"), ("bad-robot", "'r'", "'two'", "DH row 1")),
    "limit": (changed("lower = -90", "lower = nan"), ("bad-robot", "'lower'", "'shoulder'")),
    "inertia keys": (changed("about_com", "about"), ("bad-robot", "inertia", "[[joint]] 1")),
    "inertia not a table": (changed("{mass = 1, com = [0, 0.2, 0], about_frame = [0.1, 0.01, 0, 0.2, 0, 0.25]}", "3"),
                            ("bad-robot", "inertia", "[[joint]] 2")),
    "inertia count": (changed("[0.1, 0, 0, 0.2, 0, 0.25]", "[0.1]"), ("bad-robot", "about_com")),
    "com nan": (changed("com = [0, 0.2, 0]", "com = [0, inf, 0]"), ("bad-robot", "com", "[[joint]] 2")),
    "term without kind": (changed('kind = "viscous"', "x = 1"),
                          ("bad-robot", "'bad.toml'", "[[terms]]")),
    "value": (changed("Fv1 = 0.5", 'Fv1 = "big"'), ("bad-robot", "'Fv1'")),
    "values not a table": (changed("[values]\nFv1 = 0.5", "") .replace('name = "two"', 'name = "two"\nvalues = 3'),
                           ("bad-robot", "[values]")),
    "name": (changed('name = "two"', "name = 2"), ("bad-robot", "'name'")),
    "gravity": (changed("[0, -9.81, 0]", "[0, -9.81]"), ("bad-gravity", "gravity", "'two'")),
    "gravity word": (changed("[0, -9.81, 0]", '"down"'), ("bad-robot", "gravity", "'two'")),
    "degrees as radians": (changed('angles = "degrees"', ""), ("angle-in-degrees", "'theta'", "[[joint]] 2")),
    "names of Craig": (changed("d = ", "a = "), ("unknown-setting", "[[joint]] 1", "'a'", 'notation = "craig"')),
    "base": (changed("rpy = [0, 0, 90]", "turn = 3"), ("unknown-setting", "'base'", "'turn'")),
    "base count": (changed("xyz = [0, 0, 0.3]", "xyz = [0, 0]"), ("bad-robot", "xyz", "'base'")),
    "tool": (changed("tool = [[1,", "tool = [[2,"), ("bad-pose", "'tool'")),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_give_one_sentence(case: str, tmp_path: Path) -> None:
    text, message = BAD[case]
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with refused(RobotError, *message) as caught:
        read_toml(path)
    assert "bad.toml" in str(caught.value) and "\n" not in str(caught.value)


def test_names_and_files_that_are_not_there(tmp_path: Path) -> None:
    with refused(RobotError, "unknown-robot", "'kuka-lwr'", "kuka-lwr4"):
        load("kuka-lwr")
    with refused(RobotError, "unknown-robot", "'qqq'", "arm3r"):
        Robot.builtin("qqq")
    with refused(RobotError, "no-such-file"):
        load(tmp_path / "none.toml")
    with refused(RobotError, "no-such-file"):
        load(tmp_path / "none.urdf")
    with refused(RobotError, "no-such-file"):
        load("somewhere/robot.sdf")
    other = tmp_path / "robot.json"
    other.write_text("{}")
    with refused(RobotError, "unknown-ending", "'.json'"):
        load(other)
    with refused(RobotError, "unreadable-file"):
        binary = tmp_path / "binary.toml"
        binary.write_bytes(b"\xff\xfe\x00")
        load(binary)


def test_urdf_text_and_built_in_names_load() -> None:
    text = ('<robot name="r"><link name="a"/><link name="b"/><joint name="j" type="continuous">'
            '<parent link="a"/><child link="b"/></joint></robot>')
    assert load(text).joint_names == ("j",)
    assert set(builtin_names()) >= {"scara2", "arm3r", "kuka-lwr4", "kuka-iiwa14", "barrett-wam", "staubli-tx40",
                                    "puma560", "franka-panda", "ur10", "emps"}
    for name in builtin_names():
        robot = load(name)
        assert robot.name == name and robot.source


def test_the_largest_payload_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "arm.toml"
    joint = "[[joint]]\nalpha = 0\na = 0\nd = 0\n"
    path.write_text(f'convention = "dh"\npayload = 5\n{joint}')
    assert Robot.load(path).payload == 5.0
    path.write_text(f'convention = "dh"\n{joint}')
    assert Robot.load(path).payload is None
    path.write_text(f'convention = "dh"\npayload = -1\n{joint}')
    with refused(RobotError, "bad-payload"):
        Robot.load(path)
