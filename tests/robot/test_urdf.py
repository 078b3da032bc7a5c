"""The URDF reader against Pinocchio, and against everything that can be wrong with a file."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused
from robots import body_poses, exact_text, frame_pose

from dynid.errors import RobotError
from dynid.robot import BASE, Robot
from dynid.robot import inertia as ten
from dynid.robot.urdf import read_urdf

FILES = ["kuka_lwr4/kuka_lwr4.urdf", "kuka_lwr4/kuka_lwr4_centroepiaggio.urdf", "kuka_lwr4/kuka_lwr4_cogimon.urdf",
         "kuka_lwr4/kuka_lwr4_gaz.urdf", "kuka_lwr4/kuka_lwr4_identified.urdf", "models/kinova_jaco.urdf",
         "models/ur10_robot.urdf", "models/ur5_robot.urdf", "models/xarm7.urdf", "panda/panda_arm.urdf",
         "tx40/tx40_mdh_modified.urdf"]


def pinocchio_twin(text: str) -> Any:
    """Pinocchio's own reading; it refuses negative friction, not compared here, and takes angles as printed."""
    return pin.buildModelFromXML(re.sub(r"<dynamics[^>]*>", "", exact_text(text)))


def assert_same(robot: Robot, model: Any, rng: np.random.Generator) -> None:
    """Same joints by name, same pose of every link, same merged inertia of every body."""
    assert sorted(robot.joint_names) == sorted(list(model.names)[1:])
    q = rng.uniform(-2, 2, robot.dof)
    configuration = pin.neutral(model)
    for name, position in zip(robot.joint_names, q, strict=True):
        joint = model.joints[model.getJointId(name)]
        entries = [position] if joint.nq == 1 else [np.cos(position), np.sin(position)]
        configuration[joint.idx_q:joint.idx_q + joint.nq] = entries
    data = model.createData()
    pin.framesForwardKinematics(model, data, configuration)
    poses = body_poses(robot, q)
    for frame in robot.frames:
        ours = frame.pose if frame.body == BASE else poses[frame.body] @ frame.pose
        theirs = data.oMf[model.getFrameId(frame.name, pin.FrameType.BODY)].homogeneous
        np.testing.assert_allclose(ours, theirs, atol=1e-12)
    for name, body in zip(robot.joint_names, robot.bodies, strict=True):
        theirs = ten.from_pinocchio(model.inertias[model.getJointId(name)].toDynamicParameters())
        np.testing.assert_allclose(np.zeros(10) if body.inertia is None else body.inertia, theirs, atol=1e-12)


@pytest.mark.parametrize("file", FILES)
def test_files_agree_with_pinocchio(data: Callable[..., Path], file: str) -> None:
    path = data(*file.split("/"))
    robot, model = read_urdf(path), pinocchio_twin(path.read_text())
    assert_same(robot, model, np.random.default_rng(1))
    assert robot.joint_names == tuple(model.names)[1:]
    assert robot.source == path.name
    for name, joint in zip(robot.joint_names, robot.joints, strict=True):
        theirs = model.joints[model.getJointId(name)]
        if joint.kind != "continuous":
            assert joint.lower == model.lowerPositionLimit[theirs.idx_q]
            assert joint.upper == model.upperPositionLimit[theirs.idx_q]
        assert joint.effort == model.effortLimit[theirs.idx_v]


# -- random trees --------------------------------------------------------------------------------
number = st.floats(-1, 1).map(lambda x: round(x, 6))
triple = st.tuples(number, number, number)
axes = st.one_of(st.sampled_from([(0, 0, 1), (0, 0, -1), (1, 0, 0), (0, -1, 0), (0, 1e-9, -1), None]),
                 triple.filter(lambda a: np.linalg.norm(a) > 0.1))


@st.composite
def urdf_trees(draw: Any) -> str:
    """URDF text: a tree of links with every kind of joint, any axis, some links without inertia."""

    def origin() -> str:
        xyz, rpy = draw(triple), draw(triple)
        return f'<origin xyz="{xyz[0]} {xyz[1]} {xyz[2]}" rpy="{3 * rpy[0]} {3 * rpy[1]} {3 * rpy[2]}"/>'

    def link(i: int) -> str:
        if draw(st.booleans()):
            return f'<link name="l{i}"/>'
        mass, a, b, c = (draw(st.floats(0.1, 5).map(lambda x: round(x, 4))) for _ in range(4))
        # Moments of a box with edges a, b, c.
        xx, yy, zz = mass * (b * b + c * c) / 12, mass * (a * a + c * c) / 12, mass * (a * a + b * b) / 12
        return (f'<link name="l{i}"><inertial>{origin()}<mass value="{mass}"/>'
                f'<inertia ixx="{xx}" ixy="0" ixz="0" iyy="{yy}" iyz="0" izz="{zz}"/></inertial></link>')

    count = draw(st.integers(2, 8))
    lines = [link(i) for i in range(count)]
    for i in range(1, count):
        kind = "revolute" if i == 1 else draw(st.sampled_from(["revolute", "continuous", "prismatic", "fixed"]))
        axis = draw(axes)
        lines.append(f'<joint name="j{draw(st.integers(0, 9))}{i}" type="{kind}">{origin()}'
                     f'<parent link="l{draw(st.integers(0, i - 1))}"/><child link="l{i}"/>'
                     + ("" if axis is None else f'<axis xyz="{axis[0]} {axis[1]} {axis[2]}"/>')
                     + '<limit lower="-2" upper="2" velocity="3" effort="4"/></joint>')
    return f'<robot name="tree">{"".join(draw(st.permutations(lines)))}</robot>'


@settings(max_examples=60, deadline=None)
@given(urdf_trees(), st.integers(0, 1000))
def test_random_trees_agree_with_pinocchio(text: str, seed: int) -> None:
    assert_same(read_urdf(text), pinocchio_twin(text), np.random.default_rng(seed))


# -- what it keeps -------------------------------------------------------------------------------
LIMIT = '<limit lower="-1" upper="1" velocity="2" effort="3"/>'
INERTIAL = ('<inertial><origin xyz="0.1 0 0" rpy="0 0 1.5707963267948966"/><mass value="2"/>'
            '<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.2" iyz="0" izz="0.25"/></inertial>')


def joint(name: str, parent: str, child: str, kind: str = "revolute", inside: str = LIMIT) -> str:
    return (f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
            f'<axis xyz="0 0 1"/>{inside}</joint>')


def robot_text(*lines: str, links: str = "abc") -> str:
    return "<robot name='r'>" + "".join(f'<link name="{name}"/>' for name in links) + "".join(lines) + "</robot>"


def test_order_is_a_walk_in_file_order() -> None:
    text = robot_text(joint("z", "a", "b"), joint("y", "a", "c"), joint("x", "b", "d"), joint("w", "d", "e"),
                      links="abcde")
    robot = read_urdf(text)
    assert robot.joint_names == ("z", "x", "w", "y")
    assert robot.parents.tolist() == [BASE, 0, 1, BASE]
    assert not robot.serial
    assert robot.base == "a"


def test_a_plain_axis_keeps_plain_frames() -> None:
    robot = read_urdf(robot_text(joint("j", "a", "b"), links="ab"))
    assert np.array_equal(robot.joints[0].before, np.eye(4))
    assert np.array_equal(robot.joints[0].after, np.eye(4))


def test_inertial_origin_is_honoured() -> None:
    text = f'<robot name="r"><link name="a"/><link name="b">{INERTIAL}</link>{joint("j", "a", "b")}</robot>'
    numbers = read_urdf(text).inertias[0]
    # Turned by 90 degrees about z the x and y moments change places; Steiner adds 2 kg * (0.1 m)^2 to y and z.
    np.testing.assert_allclose(numbers, [0.2, 0, 0, 0.1 + 0.02, 0, 0.25 + 0.02, 0.2, 0, 0, 2], atol=1e-15)


def test_fixed_links_join_the_body_and_the_base() -> None:
    text = ('<robot name="r"><link name="world">' + INERTIAL + '</link><link name="base"/>'
            '<link name="arm">' + INERTIAL + '<collision><origin xyz="1 0 0"/><geometry><box size="1 2 3"/></geometry>'
            '</collision></link><link name="hand">' + INERTIAL + '<collision><geometry><mesh filename="none.stl"/>'
            '</geometry></collision><collision><geometry><cylinder radius="0.1" length="0.5"/></geometry></collision>'
            '</link><link name="tip"/>'
            '<joint name="f0" type="fixed"><origin xyz="0 0 1"/><parent link="world"/><child link="base"/></joint>'
            + joint("j", "base", "arm") +
            '<joint name="f1" type="fixed"><origin xyz="0 2 0"/><parent link="arm"/><child link="hand"/></joint>'
            '<joint name="f2" type="fixed"><origin xyz="0 0 3"/><parent link="hand"/><child link="tip"/></joint>'
            '</robot>')
    robot = read_urdf(text)
    assert robot.dof == 1 and robot.base == "world" and robot.body_names == ("arm",)
    body = robot.bodies[0]
    assert [part.link for part in body.parts] == ["arm", "hand", "tip"]
    assert body.parts[2].inertia is None
    assert body.inertia is not None and body.inertia[9] == 4.0
    assert [(s.kind, s.link) for s in body.shapes] == [("box", "arm"), ("cylinder", "hand")]
    np.testing.assert_allclose(body.shapes[0].pose[:3, 3], [1, 0, 0])
    np.testing.assert_allclose(body.shapes[1].pose[:3, 3], [0, 2, 0])
    np.testing.assert_allclose(frame_pose(robot, "tip", np.zeros(1))[:3, 3], [0, 2, 4])
    assert robot.frame("base").body == BASE
    np.testing.assert_allclose(robot.frame("base").pose[:3, 3], [0, 0, 1])
    assert any("world" in warning and "no effect" in warning for warning in robot.warnings)


def test_friction_and_gravity() -> None:
    text = robot_text(joint("j1", "a", "b", inside=LIMIT + '<dynamics damping="0.5" friction="0"/>'),
                      joint("j2", "b", "c", inside=LIMIT + '<dynamics friction="-0.25"/><odd value="x"/>'))
    robot = read_urdf(text, gravity=(0, 0, 0))
    assert robot.values == {"Fv1": 0.5, "Fc2": -0.25}
    assert np.array_equal(robot.gravity, np.zeros(3))
    assert robot.bodies_without_inertia == ("b", "c")
    with refused(RobotError, "no-inertia", "'b'"):
        robot.inertias  # noqa: B018


def test_limits_that_are_not_there_are_infinite_and_said() -> None:
    robot = read_urdf(robot_text(joint("j1", "a", "b", inside=""),
                                 joint("j2", "b", "c", "continuous", '<limit velocity="0" effort="5"/>')))
    assert robot.limit("upper").tolist() == [np.inf, np.inf]
    assert robot.limit("velocity").tolist() == [np.inf, np.inf]
    assert robot.limit("effort").tolist() == [np.inf, 5.0]
    assert len(robot.warnings) == 2 and "'j1'" in robot.warnings[0] and "'j2'" in robot.warnings[1]


# -- what it refuses -----------------------------------------------------------------------------
J = joint("j", "a", "b")
BAD = {
    "malformed": ("<robot><link name='a'></robot>", ("bad-xml", "line 1", "column 25")),
    "empty element": ("<", ("bad-xml",)),
    "not a robot": ("<sdf/>", ("wrong-root-element", "<sdf>")),
    "no links": ("<robot name='r'/>", ("no-link", "<link>")),
    "no joints": ("<robot name='r'><link name='a'/></robot>", ("no-moving-joint", "'r'")),
    "nameless link": ("<robot><link/></robot>", ("bad-robot", "link 1")),
    "nameless joint": (robot_text(J, J.replace('name="j"', "")), ("bad-robot", "joint 2")),
    "same link": ("<robot><link name='a'/><link name='a'/></robot>", ("bad-robot", "'a'")),
    "same joint": (robot_text(J, joint("j", "b", "c")), ("bad-robot", "'j'")),
    "unknown parent": (robot_text(joint("j", "x", "b")), ("unknown-link", "'j'", "'x'")),
    "unknown child": (robot_text(joint("j", "a", "x")), ("unknown-link", "'j'", "'x'")),
    "no parent": (robot_text('<joint name="j" type="fixed"><child link="b"/></joint>'),
                  ("bad-robot", "'j'", "<parent")),
    "two parents": (robot_text(J, joint("k", "c", "b")), ("bad-robot", "'b'", "'j'", "'k'")),
    "two roots": (robot_text(J), ("bad-robot", "'a'", "'c'")),
    "loop without root": (robot_text(J, joint("k", "b", "a"), links="ab"), ("no-root-link",)),
    "loop beside the tree": (robot_text(J, joint("k", "c", "d"), joint("l", "d", "c"), links="abcd"),
                             ("bad-robot", "'c'")),
    "mimic": (robot_text(joint("j", "a", "b", inside='<mimic joint="k"/>'), links="ab"), ("bad-robot", "'j'", "'k'")),
    "floating": (robot_text(J, joint("k", "b", "c", "floating")), ("bad-robot", "'k'", "'floating'")),
    "planar": (robot_text(J, joint("k", "b", "c", "planar")), ("bad-robot", "'k'", "'planar'")),
    "only floating": (robot_text(joint("j", "a", "b", "floating"), links="ab"), ("no-moving-joint", "'r'")),
    "no type": (robot_text(J.replace('type="revolute"', ""), links="ab"), ("bad-robot", "'j'", "type")),
    "zero axis": (robot_text(J.replace("0 0 1", "0 0 0"), links="ab"), ("zero-axis", "'j'")),
    "short xyz": (robot_text(J.replace("0 0 1", "0 1"), links="ab"),
                  ("bad-robot", "'xyz'", "<axis>", "'j'", "3 numbers")),
    "words": (robot_text(J.replace("0 0 1", "0 0 up"), links="ab"), ("not-a-number", "'xyz'", "<axis>", "'j'")),
    "nan": (robot_text(J.replace("0 0 1", "0 nan 1"), links="ab"), ("not-a-number", "'xyz'", "<axis>", '"0 nan 1"')),
    "infinite origin": (robot_text(joint("j", "a", "b", inside='<origin xyz="inf 0 0"/>'), links="ab"),
                        ("not-a-number", "'xyz'", "<origin>", "'j'")),
    "nan limit": (robot_text(J.replace('lower="-1"', 'lower="nan"'), links="ab"),
                  ("not-a-number", "'lower'", "<limit>", "'j'")),
    "turned limits": (robot_text(J.replace('lower="-1"', 'lower="5"'), links="ab"), ("bad-robot", "'j'", "5.0")),
    "negative effort": (robot_text(J.replace('effort="3"', 'effort="-3"'), links="ab"), ("bad-robot", "'j'", '"-3"')),
    "xacro": (robot_text(J.replace("0 0 1", "${x} 0 0"), links="ab"), ("unexpanded-xacro", '"${x} 0 0"')),
    "xacro name": (robot_text(J, links="ab").replace('"b"', '"$(arg tip)b"'), ("unexpanded-xacro", '"$(arg tip)b"')),
    "xacro macro": ('<robot xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:macro name="m"/></robot>',
                    ("unexpanded-xacro", "<xacro:macro>")),
    "xacro without its name space": ('<robot><xacro:include filename="x"/><link name="a"/></robot>',
                                     ("unexpanded-xacro",)),
    "no mass": ('<robot><link name="a"><inertial><inertia/></inertial></link></robot>',
                ("bad-robot", "<inertial>", "'a'", "<mass>")),
    "half an inertia": ('<robot><link name="a"><inertial><mass value="1"/><inertia ixx="1"/></inertial></link></robot>',
                        ("bad-robot", "<inertia>", "'a'", "'ixy'")),
    "mass of words": ('<robot><link name="a"><inertial><mass value="heavy"/><inertia/></inertial></link></robot>',
                      ("not-a-number", "'value'", "<mass>", "'a'")),
    "short box": ('<robot><link name="a"><collision><geometry><box size="1 2"/></geometry></collision></link></robot>',
                  ("bad-robot", "'size'", "<box>", "'a'", "3 numbers")),
    "no geometry": ('<robot><link name="a"><collision/></link></robot>',
                    ("bad-robot", "<collision>", "'a'", "<geometry>")),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_give_one_sentence(case: str, tmp_path: Path) -> None:
    text, message = BAD[case]
    with refused(RobotError, *message) as caught:
        read_urdf(text)
    assert "\n" not in str(caught.value)
    path = tmp_path / "bad.urdf"
    path.write_text(text)
    with refused(RobotError, message[0], "URDF 'bad.urdf'"):
        read_urdf(path)


BOMB = ('<?xml version="1.0"?><!DOCTYPE r [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">'
        '<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]><robot name="&c;"><link name="a"/></robot>')
EXTERNAL = '<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/hostname">]><robot name="r"><link name="&x;"/></robot>'
DTD = '<!DOCTYPE robot SYSTEM "http://localhost:1/robot.dtd"><robot name="r"><link name="a"/></robot>'


@pytest.mark.parametrize("text", [BOMB, EXTERNAL, DTD])
def test_hostile_xml_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "hostile.urdf"
    path.write_text(text)
    with refused(RobotError, "xml-with-entities", "'hostile.urdf'"):
        read_urdf(path)
    with refused(RobotError, "xml-with-entities"):
        read_urdf(text)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with refused(RobotError, "no-such-file", "none.urdf"):
        read_urdf(tmp_path / "none.urdf")
    with refused(RobotError, "unreadable-file"):
        read_urdf(tmp_path)
    binary = tmp_path / "binary.urdf"
    binary.write_bytes(bytes(range(256)))
    with refused(RobotError, "bad-xml", "binary.urdf"):
        read_urdf(binary)


def test_a_long_chain_does_not_exhaust_the_stack() -> None:
    count = 1500
    lines = [f'<link name="l{i}"/>' for i in range(count)]
    lines += [joint(f"j{i}", f"l{i}", f"l{i + 1}") for i in range(count - 1)]
    assert read_urdf(f"<robot name='long'>{''.join(lines)}</robot>").dof == count - 1


# -- bases that move -----------------------------------------------------------------------------
@pytest.mark.parametrize("kind", ["floating", "planar"])
def test_a_free_base_is_taken_as_fixed_on_request(kind: str) -> None:
    robot = read_urdf(robot_text(joint("free", "a", "b", kind), joint("j", "b", "c")), fixed_base=True)
    assert robot.joint_names == ("j",) and robot.frame("b").body == BASE
    assert len(robot.warnings) == 1 and "'free'" in robot.warnings[0] and "fixed" in robot.warnings[0]


def test_a_floating_joint_is_a_free_base() -> None:
    robot = read_urdf(robot_text(joint("free", "a", "b", "floating"), joint("j", "b", "c")))
    assert robot.has_free_base and robot.joint_names[6:] == ("j",) and robot.frame("b").body == 5
    assert robot.bodies[5].name == "b" and not robot.warnings
    fixed = robot.with_fixed_base()
    assert fixed.joint_names == ("j",) and fixed.frame("b").body == BASE and not fixed.has_free_base
    both = robot_text(joint("free", "a", "b", "floating"), joint("j", "b", "c"), joint("k", "a", "d"), links="abcd")
    with refused(RobotError, "bad-robot", "'free'"):
        read_urdf(both)


def legs(count: int, name: str, joints: int = 3) -> str:
    links, made = ["body"], []
    for leg in range(count):
        for j in range(joints):
            links.append(f"{name}{leg}_{j}")
            made.append(joint(f"{name}{leg}_joint{j}", "body" if j == 0 else links[-2], links[-1]))
    return f'<robot name="r">{"".join(f"<link name={chr(34)}{one}{chr(34)}/>" for one in links)}{"".join(made)}</robot>'


@pytest.mark.parametrize(("text", "said"), [
    (legs(4, "limb"), True), (legs(2, "left_leg_"), True), (legs(2, "arm"), False), (legs(1, "leg_"), False),
    (legs(5, "finger", 2), False)])
def test_a_robot_on_legs_is_said_to_be_taken_as_fixed(text: str, said: bool) -> None:
    robot = read_urdf(text)
    assert [("legged" in one and "fixed" in one) for one in robot.warnings] == [True] * said
