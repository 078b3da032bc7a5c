"""Robots from MJCF: torques are those of MuJoCo, which reads the same text."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mujoco
import numpy as np
import pytest
from refusals import refused

from dynid import dynamics
from dynid.arrays import Array
from dynid.dynamics.following import closed_chain, closes, random_postures, tree_motion
from dynid.errors import RobotError
from dynid.robot import Robot
from dynid.robot.mjcf import read_mjcf
from dynid.robot.write_mjcf import to_mjcf

I = '<inertial pos="0.1 0.02 -0.1" mass="2" diaginertia="0.02 0.03 0.04"/>'  # noqa: E741
HEAD = """<compiler angle="{angle}" eulerseq="{sequence}" meshdir="nowhere"/>
<option gravity="1.5 -2 -9"/>
<default><joint damping="0.3"/><default class="heavy"><joint armature="0.2" frictionloss="0.1" axis="1 2 -1"/>
<default class="sliding"><joint type="slide" damping="0.7"/></default></default></default>"""


def text_of(numbers: Any) -> str:
    return " ".join(repr(float(x)) for x in np.atleast_1d(numbers))


def random_turn(rng: np.random.Generator, unit: float) -> str:
    ways = {"quat": rng.normal(size=4), "axisangle": [*rng.normal(size=3), unit * rng.uniform(-3, 3)],
            "xyaxes": rng.normal(size=6), "zaxis": rng.normal(size=3), "euler": unit * rng.uniform(-3, 3, 3)}
    key = str(rng.choice([*ways]))
    return f'pos="{text_of(rng.uniform(-0.4, 0.4, 3))}" {key}="{text_of(ways[key])}"'


def random_mjcf(seed: int) -> str:
    """A tree of seven bodies with none to three joints each, turned inertials, defaults, frames and sites."""
    rng = np.random.default_rng(seed)
    angle = ("degree", "radian")[seed % 2]
    unit = np.degrees(1.0) if angle == "degree" else 1.0

    def body(k: int, deeper: list[int]) -> str:
        mass, moments = rng.uniform(0.5, 3.0), rng.uniform(0.02, 0.03, 3)
        full = text_of([*moments, 0.002, 0.001, -0.003])
        inertial = (f'<inertial {random_turn(rng, unit)} mass="{mass}" diaginertia="{text_of(moments)}"/>' if k % 3 else
                    f'<inertial pos="0.1 -0.1 0.05" mass="{mass}" fullinertia="{full}"/>')
        joints = "".join(
            f'<joint name="j{k}{i}" class="{rng.choice(["main", "heavy", "sliding"])}" ref="{rng.uniform(-0.3, 0.3)}" '
            f'pos="{text_of(rng.uniform(-0.1, 0.1, 3))}" range="-1 2"'
            + (f' axis="{text_of(rng.normal(size=3))}"' if i else "") + "/>"
            for i in range(0 if k in (2, 4) else int(rng.integers(1, 4))))
        inside = "".join(body(i, []) for i in deeper[:1]) + (body(deeper[1], deeper[2:]) if len(deeper) > 1 else "")
        framed = f'<frame {random_turn(rng, unit)}>{joints}<site name="s{k}" {random_turn(rng, unit)}/>{inside}</frame>'
        return f'<body name="b{k}" {random_turn(rng, unit)} childclass="heavy">{inertial}{framed}</body>'

    head = HEAD.format(angle=angle, sequence=("xyz", "ZYX", "zxz", "XyZ")[seed % 4])
    return f'<mujoco model="random">{head}<worldbody>{body(1, [2, 3, 4, 5, 6])}{body(7, [])}</worldbody></mujoco>'


def mujoco_torques(text: str, robot: Robot, q: Array, dq: Array, ddq: Array) -> Array:
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    data, found = mujoco.MjData(model), []
    places = [model.joint(name).dofadr[0] for name in robot.joint_names]
    for positions, speeds, accelerations in zip(q, dq, ddq, strict=True):
        data.qpos[places], data.qvel[places], data.qacc[places] = positions, speeds, accelerations
        mujoco.mj_inverse(model, data)
        found.append(data.qfrc_inverse[places].copy())
    return np.array(found)


def our_torques(robot: Robot, q: Array, dq: Array, ddq: Array) -> Array:
    rotors, viscous = (np.array([robot.values.get(f"{kind}{j + 1}", 0.0) for j in range(robot.dof)])
                       for kind in ("Ia", "Fv"))
    return dynamics.inverse_dynamics(robot, None, q, dq, ddq) + rotors * ddq + viscous * dq


def moves_as_in_mujoco(text: str, robot: Robot, q: Array, dq: Array, ddq: Array) -> None:
    """Assert that a robot read from MJCF has MuJoCo's torques, and after it was written and read again too."""
    theirs = mujoco_torques(text, robot, q, dq, ddq)
    np.testing.assert_allclose(our_torques(robot, q, dq, ddq), theirs, atol=1e-9 * np.abs(theirs).max())
    again = to_mjcf(robot)
    np.testing.assert_allclose(mujoco_torques(again, robot, q, dq, ddq), theirs, atol=1e-9 * np.abs(theirs).max())
    np.testing.assert_allclose(our_torques(read_mjcf(again), q, dq, ddq), theirs, atol=1e-9 * np.abs(theirs).max())


@pytest.mark.parametrize("seed", range(12))
def test_random_trees_move_as_in_mujoco(seed: int) -> None:
    text = random_mjcf(seed)
    robot = Robot.load(text)
    model = mujoco.MjModel.from_xml_string(text)
    assert robot.dof == model.nv
    q, dq, ddq = np.random.default_rng(seed).normal(size=(3, 10, robot.dof))
    moves_as_in_mujoco(text, robot, q, dq, ddq)
    data = mujoco.MjData(model)
    for j, joint in enumerate(robot.joints):
        one = model.joint(joint.name)
        data.qpos[one.qposadr[0]] = q[0, j]
        assert [joint.lower, joint.upper] == pytest.approx(model.jnt_range[one.id].tolist())
        assert robot.values.get(f"Fc{j + 1}", 0.0) == pytest.approx(model.dof_frictionloss[one.dofadr[0]])
    mujoco.mj_forward(model, data)
    poses = dynamics.forward_kinematics(robot, q[0])
    for name in ("s1", "s3", "s4", "s7"):
        frame = robot.frame(name)
        place = (frame.pose if frame.body == -1 else poses[frame.body] @ frame.pose)[:3, 3]
        np.testing.assert_allclose(place, data.site(name).xpos, atol=1e-10)


def reduced_torques(text: str, tree: Robot, own: list[int], q: Array, dq: Array, ddq: Array) -> Array:
    """Torques of the free joints of a closed chain in MuJoCo's matrices and its own constraint Jacobian."""
    model = mujoco.MjModel.from_xml_string(text)
    data, found, n = mujoco.MjData(model), [], model.nv
    order = [model.joint(name).dofadr[0] for name in tree.joint_names]
    rest = [i for i in range(tree.dof) if i not in own]
    for positions, speeds, accelerations in zip(q, dq, ddq, strict=True):
        data.qpos[order], data.qvel[order] = positions, speeds
        mujoco.mj_forward(model, data)
        mass = np.zeros((n, n))
        mujoco.mj_fullM(model, data, mass)
        rows = data.efc_type[:data.nefc] == mujoco.mjtConstraint.mjCNSTR_EQUALITY
        np.testing.assert_allclose(data.efc_pos[:data.nefc][rows], 0.0, atol=1e-9)
        jacobian = data.efc_J.reshape(data.nefc, n)[rows][:, order]
        rates = np.zeros((n, len(own)))
        rates[own] = np.eye(len(own))
        rates[rest] = -np.linalg.lstsq(jacobian[:, rest], jacobian[:, own], rcond=1e-9)[0]
        found.append(rates.T @ (mass[np.ix_(order, order)] @ accelerations + data.qfrc_bias[order]))
    return np.array(found)


def check_chain(text: str, tolerance: float = 1e-9) -> Robot:
    """A closed chain read from a text moves as MuJoCo has it, and so does the text written from it."""
    robot = read_mjcf(text)
    followers = robot.followers
    assert followers is not None
    rng = np.random.default_rng(4)
    begin = closed_chain(robot).begin[:robot.dof]
    q = begin + 0.3 * (random_postures(robot, 30, rng) - begin)
    q = q[closes(robot, q)][:10]
    assert len(q) == 10
    dq, ddq = rng.normal(size=(2, 10, robot.dof))
    whole = tree_motion(robot, q, dq, ddq)
    ours = dynamics.inverse_dynamics(robot, None, q, dq, ddq)
    for one in (text, to_mjcf(robot, values={})):
        theirs = reduced_torques(one, followers.tree, list(followers.free), whole.q, whole.dq, whole.ddq)
        np.testing.assert_allclose(ours, theirs, atol=tolerance * np.abs(theirs).max())
    return robot


@pytest.mark.parametrize("name", ["delta", "four-bar", "palletiser"])
def test_closed_chains_are_written_and_read_again(name: str) -> None:
    robot = Robot.builtin(name)
    again = check_chain(to_mjcf(robot, values={}))
    assert robot.followers is not None and again.followers is not None
    assert robot.followers.loops is not None and again.followers.loops is not None
    order = [robot.joint_index(joint) for joint in again.joint_names]  # a file is a tree, so branches come one by one
    assert len(order) == robot.dof
    assert {(one.name, one.kind) for one in again.followers.loops.closures} == {
        (one.name, one.kind) for one in robot.followers.loops.closures}
    begin = closed_chain(robot).begin[:robot.dof]
    q, (dq, ddq) = begin + np.zeros((5, robot.dof)), np.random.default_rng(0).normal(size=(2, 5, robot.dof))
    theirs = dynamics.inverse_dynamics(robot, None, q, dq, ddq)
    found = dynamics.inverse_dynamics(again, None, q[:, order], dq[:, order], ddq[:, order])
    np.testing.assert_allclose(found, theirs[:, order], atol=1e-9 * np.abs(theirs).max())


def four_bar(equality: str, extra: str = "", actuator: str = '<motor joint="crank"/>') -> str:
    """Drawn closed: crank 0.3 up, coupler 0.5 along x, rocker 0.4 up from (0.5, 0, -0.1)."""
    return f"""<mujoco><compiler angle="radian"/><worldbody>
    <body name="a"><joint name="crank" axis="0 1 0" ref="0.2"/>{I}
      <body name="b" pos="0 0 0.3"><joint name="coupler" axis="0 1 0"/>{I}
        <site name="end" pos="0.5 0 0"/></body></body>
    <body name="c" pos="0.5 0 -0.1"><joint name="rocker" axis="0 1 0" ref="-0.4"/>{I}
      <site name="top" pos="0 0 0.4"/></body>{extra}</worldbody>
    <equality>{equality}</equality><actuator>{actuator}</actuator></mujoco>"""


TWO = f"""<body name="d" pos="1 0 0"><joint name="turn" axis="1 0 0"/><joint name="slide" type="slide" ref="0.1"/>{I}
<site name="tip" pos="0.2 0.1 0.1"/></body>"""


@pytest.mark.parametrize(("equality", "kind"), [
    ('<connect name="pin" body1="b" body2="c" anchor="0.5 0 0"/>', "point"),
    ('<connect body1="b" body2="c" anchor="0.5 0 0"/><connect body1="b" body2="c" anchor="0.5 0.5 0"/>', "axis"),
    ('<connect site1="end" site2="top"/>', "point")])
def test_connected_bodies_and_sites(equality: str, kind: str) -> None:
    robot = check_chain(four_bar(equality))
    assert robot.joint_names == ("crank",) and robot.followers is not None and robot.followers.loops is not None
    assert [closure.kind for closure in robot.followers.loops.closures] == [kind]
    assert robot.followers.following == ("coupler", "rocker")


def test_welds_and_rods() -> None:
    hinged = four_bar('<weld body1="e" body2="c"/>').replace(
        '<site name="end"', f'<body name="e" pos="0.5 0 0"><joint name="pin" axis="0 1 0"/>{I}</body><site name="end"')
    assert check_chain(hinged).followers is not None
    placed = four_bar('<weld body1="e" body2="c" relpose="0 0 -0.4 1 0 0 0"/>').replace(
        '<site name="end"', f'<body name="e" pos="0.5 0 0"><joint name="pin" axis="0 1 0"/>{I}</body><site name="end"')
    check_chain(placed)
    rod = four_bar('<tendon name="rod" tendon1="r" polycoef="0.02 0 0 0 0"/>', TWO,
                   '<motor joint="crank"/><motor joint="coupler"/><motor joint="turn"/><motor joint="rocker"/>')
    robot = check_chain(rod.replace("<equality>", '<tendon><spatial name="r"><site site="top"/><site site="tip"/>'
                                                  "</spatial></tendon><equality>"))
    assert robot.followers is not None and robot.followers.loops is not None
    drawn = np.linalg.norm([0.7, 0.1, -0.2])
    assert robot.followers.loops.closures[0].length == pytest.approx(drawn + 0.02)


@pytest.mark.parametrize(("driven", "own"), [("crank", ("crank", "coupler")), ("rocker", ("coupler", "rocker"))])
def test_joints_that_follow_linearly(driven: str, own: tuple[str, ...]) -> None:
    text = four_bar('<joint joint1="rocker" joint2="crank" polycoef="0.1 -2 0 0 0"/>', "", f'<motor joint="{driven}"/>')
    robot = read_mjcf(text)
    assert robot.joint_names == own
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    q = np.array([[0.3, 0.7]])
    whole = tree_motion(robot, q, q, q)
    data.qpos[:] = whole.q[0]
    mujoco.mj_forward(model, data)
    assert abs(data.efc_pos[0]) < 1e-12
    followers = robot.followers
    assert followers is not None
    theirs = reduced_torques(text, followers.tree, list(followers.free), whole.q, whole.dq, whole.ddq)
    np.testing.assert_allclose(dynamics.inverse_dynamics(robot, None, q, q, q), theirs, atol=1e-10)


def test_a_held_joint_and_a_free_base() -> None:
    text = four_bar('<joint joint1="coupler" polycoef="0.25 0 0 0 0"/>')
    assert read_mjcf(text).locked == {"coupler": pytest.approx(0.25)}
    free = f'<mujoco><worldbody><body name="t"><freejoint/>{I}<body><joint/>{I}</body></body></worldbody></mujoco>'
    assert read_mjcf(free).has_free_base and read_mjcf(free).joint_names[6:] == ("joint6",)
    robot = read_mjcf(free, fixed_base=True)
    assert robot.joint_names == ("joint0",)
    assert any("'t' is a floating base" in warning for warning in robot.warnings)


def test_what_mujoco_saves_is_read(tmp_path: Path) -> None:
    """Inertias of meshes are refused, and the way out that the sentence names works."""
    text = ('<mujoco><worldbody><body name="a"><joint name="j" axis="0 1 0"/><geom size="0.1" pos="0.1 0 0"/><body '
            'name="b" pos="0 0 1"><joint name="k"/><geom size="0.1 0.2 0.3" pos="0.2 0 0" type="box"/></body></body>'
            "</worldbody></mujoco>")
    with refused(RobotError, "bad-robot", "saveinertial", "'a'"):
        read_mjcf(text.replace('size="0.1"', 'type="mesh" mesh="m"'))
    model = mujoco.MjModel.from_xml_string(text.replace("<worldbody>", '<compiler saveinertial="true"/><worldbody>'))
    mujoco.mj_saveLastXML(str(tmp_path / "saved.xml"), model)
    robot = Robot.load(tmp_path / "saved.xml")
    q, dq, ddq = np.random.default_rng(0).normal(size=(3, 10, 2))
    theirs = mujoco_torques((tmp_path / "saved.xml").read_text(), robot, q, dq, ddq)
    np.testing.assert_allclose(our_torques(robot, q, dq, ddq), theirs, atol=1e-9 * np.abs(theirs).max())


BODY = f'<body name="a"><joint name="j"/>{I}</body>'


def changed(old: str, new: str) -> str:
    """A file of one body, with one word of it changed."""
    return f"<mujoco><worldbody>{BODY.replace(old, new)}</worldbody></mujoco>"


BAD = {
    "no xml": ("<mujoco><worldbody>", ("bad-xml",)),
    "entities": ('<!DOCTYPE x [<!ENTITY a "b">]><mujoco/>', ("xml-with-entities",)),
    "empty": ("<mujoco/>", ("bad-robot", "<worldbody>")),
    "still": ('<mujoco><worldbody><body name="a"/></worldbody></mujoco>', ("no-moving-joint",)),
    "include": ('<mujoco><include file="other.xml"/></mujoco>', ("bad-robot", "<include>")),
    "ball": (f'<mujoco><worldbody><body name="a"><joint name="j" type="ball"/>{I}</body></worldbody></mujoco>',
             ("bad-robot", "'j'", "'ball'")),
    "inner free": (f'<mujoco><worldbody><body name="a">{I}<body name="b"><freejoint/>{I}</body></body></worldbody>'
                   "</mujoco>", ("bad-robot", "'b'")),
    "geoms": ('<mujoco><worldbody><body name="a"><joint name="j"/><geom type="mesh" mesh="m"/></body></worldbody>'
              "</mujoco>", ("bad-robot", "<geom>", "'a'", "<inertial>")),
    "size": ('<mujoco><worldbody><body name="a"><joint name="j"/><geom name="g" type="box" size="1 0 1"/></body>'
             "</worldbody></mujoco>", ("bad-robot", "'size'", "'g'", "'a'", "3 numbers")),
    "from geoms": (f'<mujoco><compiler inertiafromgeom="yes"/><worldbody>{BODY}</worldbody></mujoco>',
                   ("bad-robot", "inertiafromgeom", '"yes"')),
    "class": (changed("<joint", "<joint class='x'"), ("bad-robot", "'x'")),
    "axis": (changed("<joint", "<joint axis='0 0 0'"), ("bad-robot", "'axis'", "'j'")),
    ("bad-robot", "'pos'", '"a b c"'): (changed("<joint", "<joint pos='0 nan 0'"), ("bad-robot", "'pos'", "'j'")),
    "words": (changed("<joint", "<joint pos='a b c'"), ("bad-robot", "'pos'", '"a b c"')),
    "two turns": (changed("<body", "<body quat='1 0 0 0' euler='0 0 0'"), ("bad-robot", "'a'", "quat", "euler")),
    "mass": (changed("mass", "weight"), ("bad-robot", "'mass'")),
    "deep": ("<mujoco><worldbody>" + "<body>" * 3000 + "</body>" * 3000 + "</worldbody></mujoco>",
             ("bad-robot", "<body>", "200")),
    "twice": (f"<mujoco><worldbody>{BODY}{BODY}</worldbody></mujoco>", ("bad-robot", "'a'")),
    "no motors": (four_bar('<connect site1="end" site2="top"/>', "", ""), ("bad-robot", "'connect1'")),
    "no site": (four_bar('<connect site1="end" site2="nowhere"/>'), ("bad-robot", "'nowhere'")),
    "cubic": (four_bar('<joint joint1="rocker" joint2="crank" polycoef="0 1 2 0 0"/>'),
              ("bad-robot", "'rocker'", "'crank'")),
    "flex": (four_bar('<flex flex="f"/>'), ("bad-robot", "<flex>", "'flex1'")),
    "one body": (four_bar('<connect body1="a" body2="a" anchor="0 0 0"/>'),
                 ("bad-robot", "'connect1'", "'connect1 first'")),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_refused_in_one_sentence(case: str) -> None:
    text, words = BAD[case]
    with refused(RobotError, *words) as caught:
        read_mjcf(text)
    assert str(caught.value).startswith("MJCF text") and "\n" not in str(caught.value)


def test_damaged_files_are_read_or_refused() -> None:
    rng = np.random.default_rng(0)
    originals = [random_mjcf(1), to_mjcf(Robot.builtin("delta"), values={}),
                 four_bar('<weld body1="b" body2="c" relpose="0 0 -0.4 1 0 0 0"/>', TWO)]
    words = ["nan", "", "1e400", "-1", "0", "1 2 3", "free", "ball", "heavy", "world", "auto", "1e300 1e300 1e300"]
    outcomes = []
    for k in range(300):
        text = originals[k % 3]
        for _ in range(int(rng.integers(1, 4))):
            attributes = list(re.finditer(r'(\w+)="([^"]*)"', text))
            one = attributes[int(rng.integers(len(attributes)))]
            new = "" if rng.random() < 0.3 else f'{one[1]}="{words[int(rng.integers(len(words)))]}"'
            text = text[:one.start()] + new + text[one.end():]
        try:
            outcomes.append(np.all(np.isfinite([joint.before for joint in read_mjcf(text).joints])))
        except RobotError as problem:
            outcomes.append(str(problem).startswith("MJCF text") and len(str(problem)) < 400)
    assert all(outcomes)


def test_files_are_told_apart_by_their_outermost_element(tmp_path: Path) -> None:
    for name in ("arm.xml", "arm.mjcf"):
        (tmp_path / name).write_text(random_mjcf(0))
        robot = Robot.load(tmp_path / name)
        assert robot.name == "random" and robot.source == name
    (tmp_path / "urdf.xml").write_text('<robot name="u"><link name="a"/><link name="b"/><joint name="j" '
                                       'type="continuous"><parent link="a"/><child link="b"/></joint></robot>')
    assert Robot.load(tmp_path / "urdf.xml").name == "u"
    np.testing.assert_array_equal(Robot.from_mjcf(random_mjcf(0), gravity=[0, 0, -1]).gravity, [0, 0, -1])


def test_xacro_is_expanded_where_its_package_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "arm.urdf.xacro"
    path.write_text("<robot/>")
    monkeypatch.setitem(sys.modules, "xacro", None)
    with refused(RobotError, "missing-package"):
        Robot.load(path)
    urdf = ('<robot name="u"><link name="a"/><link name="b"/><joint name="j" type="continuous"><parent link="a"/>'
            '<child link="b"/></joint></robot>')
    expander = SimpleNamespace(process_file=lambda file: SimpleNamespace(toxml=lambda: urdf))
    monkeypatch.setitem(sys.modules, "xacro", expander)
    assert Robot.load(path).joint_names == ("j",)

    def fail(file: str) -> None:
        raise ValueError("no such macro")
    monkeypatch.setitem(sys.modules, "xacro", SimpleNamespace(process_file=fail))
    with refused(RobotError, "bad-xacro"):
        Robot.load(path)
