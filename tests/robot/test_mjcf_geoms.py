"""MJCF whose inertias are those of geoms, and MJCF in several files: torques are those of MuJoCo, and stay so."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest
from refusals import refused
from robot.test_mjcf import I, moves_as_in_mujoco, our_torques, random_turn, text_of

from dynid.errors import RobotError
from dynid.robot import Robot
from dynid.robot.mjcf import read_mjcf

KINDS = ("sphere", "capsule", "cylinder", "box", "ellipsoid")


def random_geoms(seed: int) -> str:
    """A chain of four bodies of geoms of all kinds, by sizes or from end to end, with mass, density or neither."""
    rng = np.random.default_rng(seed)
    angle, sequence = ("degree", "radian")[seed % 2], ("xyz", "XYZ", "zyx", "YxZ")[seed % 4]
    unit = np.degrees(1.0) if angle == "degree" else 1.0

    def geom(k: int) -> str:
        kind = KINDS[(seed + k) % 5]
        size = text_of(rng.uniform(0.02, 0.2, 3))
        if kind != "sphere" and rng.random() < 0.5:
            where = f'fromto="{text_of(rng.uniform(-0.3, 0.3, 6))}"'
        else:
            where = random_turn(rng, unit)
        heavy = ("", f'mass="{rng.uniform(0.1, 3.0)}"', f'density="{rng.uniform(500, 3000)}"', 'class="light"',
                 'class="shown"')[int(rng.integers(5))]
        return f'<geom type="{kind}" size="{size}" {where} {heavy}/>'

    def body(k: int) -> str:
        inertial = I if k == 2 else ""
        framed = f"<frame {random_turn(rng, unit)}>{geom(2 * k)}</frame>{geom(2 * k + 1)}<geom size='0.1'/>"
        inner = body(k + 1) if k < 3 else ""
        return (f'<body name="b{k}" {random_turn(rng, unit)}><joint name="j{k}" axis="{text_of(rng.normal(size=3))}"/>'
                f"{inertial}{framed}{inner}</body>")

    always = ' inertiafromgeom="true"' if seed % 3 == 0 else ""
    groups = ' inertiagrouprange="0 2"' if seed % 5 else ""
    return (f'<mujoco model="geoms"><compiler angle="{angle}" eulerseq="{sequence}"{always}{groups}/>'
            '<default><default class="light"><geom density="100"/></default>'
            f'<default class="shown"><geom group="3" quat="1 2 3 4"/></default></default><worldbody>{body(0)}'
            "</worldbody></mujoco>")


@pytest.mark.parametrize("seed", range(12))
def test_inertias_of_geoms_are_those_of_mujoco(seed: int) -> None:
    text = random_geoms(seed)
    robot = read_mjcf(text)
    q, dq, ddq = np.random.default_rng(seed).normal(size=(3, 10, robot.dof))
    moves_as_in_mujoco(text, robot, q, dq, ddq)


def test_a_model_in_several_files(tmp_path: Path) -> None:
    """Defaults and an arm in files of their own, one of them named by another."""
    (tmp_path / "parts").mkdir()
    (tmp_path / "scene.xml").write_text(
        '<mujoco model="scene"><compiler angle="radian"/><include file="parts/common.xml"/><worldbody>'
        '<body name="base"><include file="parts/arm.xml"/></body></worldbody></mujoco>')
    (tmp_path / "parts/common.xml").write_text(
        '<mujocoinclude><default><joint damping="0.4" armature="0.1"/><geom density="2000"/></default>'
        "<include file='parts/gravity.xml'/></mujocoinclude>")
    (tmp_path / "parts/gravity.xml").write_text('<mujocoinclude><option gravity="1 2 -9"/></mujocoinclude>')
    (tmp_path / "parts/arm.xml").write_text(
        f'<mujocoinclude><body name="a" pos="0 0 0.2"><joint name="j" axis="0 1 0"/>{I}<body name="b" pos="0.3 0 0">'
        '<joint name="k" axis="1 0 0"/><geom type="capsule" size="0.05" fromto="0 0 0 0.2 0.1 0.1"/></body></body>'
        "</mujocoinclude>")
    robot = Robot.load(tmp_path / "scene.xml")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "scene.xml"))
    assert robot.joint_names == ("j", "k") and robot.values["Fv1"] == 0.4
    q, dq, ddq = np.random.default_rng(0).normal(size=(3, 10, 2))
    data = mujoco.MjData(model)
    for k in range(10):
        data.qpos[:], data.qvel[:], data.qacc[:] = q[k], dq[k], ddq[k]
        mujoco.mj_inverse(model, data)
        np.testing.assert_allclose(our_torques(robot, q, dq, ddq)[k], data.qfrc_inverse, atol=1e-10)


@pytest.mark.parametrize(("name", "words"), [
    ("nowhere.xml", ("no-such-file", "nowhere.xml")),
    ("../outside.xml", ("bad-robot", "<include>", "'../outside.xml'")),
    ("", ("bad-robot", "<include>", "''")), ("scene.xml", ("bad-robot", "'scene.xml'")),
    ("broken.xml", ("bad-xml", "'broken.xml'"))])
def test_files_that_cannot_be_included(tmp_path: Path, name: str, words: tuple[str, ...]) -> None:
    inside = tmp_path / "model"
    inside.mkdir()
    (tmp_path / "outside.xml").write_text("<mujocoinclude/>")
    (inside / "broken.xml").write_text("<mujocoinclude>")
    (inside / "scene.xml").write_text(f'<mujoco><include file="{name}"/></mujoco>')
    with refused(RobotError, *words) as caught:
        Robot.load(inside / "scene.xml")
    assert "\n" not in str(caught.value)


def test_mujocos_own_test_model() -> None:
    """Free and ball joints are said; the file is one that MuJoCo's package brings."""
    path = Path(mujoco.__file__).parent / "testdata/model.xml"
    if not path.exists():
        pytest.skip("this version of MuJoCo brings no test model")
    try:
        robot = Robot.load(path)
    except RobotError as problem:
        assert "model.xml" in str(problem) and "\n" not in str(problem)
    else:
        assert robot.dof > 0
