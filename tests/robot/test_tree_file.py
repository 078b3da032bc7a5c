"""Trees and closed chains in TOML files, and those of a URDF."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from dynid import dynamics
from dynid.errors import RobotError
from dynid.estimate import Problem, identify
from dynid.model import Model, make_terms
from dynid.recording import Samples
from dynid.robot import Robot

FOUR_BAR = '''convention = "tree"
gravity = [0, -9.81, 0]

[[joint]]
name = "crank"
link = "a"
inertia = {mass = 1.0, com = [0.1, 0, 0], about_com = [0.001, 0, 0, 0.01, 0, 0.01]}

[[joint]]
name = "pin"
link = "b"
parent = "a"
xyz = [0.2, 0, 0]
follows = true
at = -0.5
inertia = {mass = 1.0, com = [0.2, 0, 0], about_com = [0.001, 0, 0, 0.01, 0, 0.01]}

[[joint]]
name = "rocker"
link = "c"
xyz = [0.5, 0, 0]
follows = true
at = 1.4
inertia = {mass = 1.0, com = [0.2, 0, 0], about_com = [0.001, 0, 0, 0.01, 0, 0.01]}

[[closure]]
name = "loop"
kind = "axis"
first = {link = "b", xyz = [0.5, 0, 0]}
second = {link = "c", xyz = [0.4, 0, 0]}

[values]
Fv1 = 0.3
'''

URDF = '''<robot name="four"><link name="ground"/>
<link name="a"><inertial><origin xyz="0.1 0 0"/><mass value="1"/>
<inertia ixx="0.001" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial></link>
<link name="b"><inertial><origin xyz="0.2 0 0"/><mass value="1"/>
<inertia ixx="0.001" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial></link>
<link name="c"><inertial><origin xyz="0.2 0 0"/><mass value="1"/>
<inertia ixx="0.001" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial></link>
<joint name="crank" type="continuous"><parent link="ground"/><child link="a"/><axis xyz="0 0 1"/></joint>
<joint name="pin" type="continuous"><parent link="a"/><child link="b"/><origin xyz="0.2 0 0"/><axis xyz="0 0 1"/>
</joint><joint name="rocker" type="continuous"><parent link="ground"/><child link="c"/><origin xyz="0.5 0 0"/>
<axis xyz="0 0 1"/></joint></robot>'''


def written(folder: Path, text: str, name: str = "bar.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_urdf_with_closures_is_the_same_robot(tmp_path: Path) -> None:
    written(tmp_path, URDF, "four.urdf")
    text = FOUR_BAR[FOUR_BAR.index("[[closure]]"):]
    follow = "".join(f'[[joint]]\nname = "{name}"\nfollows = true\nat = {at}\n\n' for name, at in
                     (("pin", -0.5), ("rocker", 1.4)))
    top = 'convention = "urdf"\nurdf = "four.urdf"\ngravity = [0, -9.81, 0]\n'
    other, robot = Robot.load(written(tmp_path, top + follow + text)), Robot.load(written(tmp_path, FOUR_BAR, "b.toml"))
    q, dq, ddq = np.random.default_rng(0).normal(size=(3, 9, 1))
    np.testing.assert_allclose(dynamics.inverse_dynamics(other, None, q, dq, ddq),
                               dynamics.inverse_dynamics(robot, None, q, dq, ddq), atol=1e-12)
    assert robot.values == {"Fv1": 0.3} and robot.joint_names == ("crank",)


@pytest.mark.parametrize(("old", "new", "message"), [
    ('kind = "axis"', 'kind = "glue"', ("bad-robot", "'loop'", "'glue'")),
    ('kind = "axis"', 'kind = "rod"', ("bad-robot", "rod", "0.0")),
    ('first = {link = "b"', 'first = {link = "z"', ("unknown-frame", "'z'")),
    ('parent = "a"', 'parent = "z"', ("bad-robot", "'z'")),
    ("follows = true\nat = -0.5", "follow = true", ("unknown-setting", "'follow'", "'follows'")),
    ("xyz = [0.2, 0, 0]", "xyz = [0.2, 0]", ("bad-robot", "xyz", "[[joint]] 2")),
    ("xyz = [0.2, 0, 0]", "axis = [0, 0, 0]", ("zero-axis", "[[joint]] 2")),
    ("at = -0.5", 'at = "left"', ("bad-robot", "'at'", "'pin'")),
    ("[[closure]]", "[closure]", ("bad-robot", "[[closure]]")),
])
def test_bad_files_give_one_sentence(tmp_path: Path, old: str, new: str, message: tuple[str, ...]) -> None:
    with refused(RobotError, *message):
        Robot.load(written(tmp_path, FOUR_BAR.replace(old, new, 1)))


@pytest.mark.parametrize("method", ["wls", "pc-wls", "pc-ridge", "rls"])
def test_a_delta_is_identified_from_its_motors_alone(method: str) -> None:
    robot = Robot.builtin("delta")
    model = Model(robot, make_terms(robot, friction=("viscous", "coulomb")))
    truth = np.array([robot.values.get(one.name, 0.0) if one.nominal is None else one.nominal
                      for one in model.parameters])
    t = np.arange(3000) * 2e-3
    phase = np.array([0.0, 2.0, 4.0])
    parts = [(0.35, 2.0), (0.2, 5.0), (0.08, 11.0)]
    q, dq, ddq = (sum(size * speed ** k * np.sin(np.outer(t, [speed, 1.3 * speed, 0.8 * speed]) * 1.0 + phase
                                                 + k * np.pi / 2) * np.array([1.0, 1.3, 0.8]) ** k
                      for size, speed in parts) for k in range(3))
    tau = model.inverse_dynamics(truth, q, dq, ddq) + 0.01 * np.random.default_rng(1).normal(size=q.shape)
    found = identify(Problem.from_model(model, Samples.from_arrays(q, dq, ddq, tau, rate=500.0)), method=method)
    other = np.roll(q, 1, axis=1), np.roll(dq, 1, axis=1), np.roll(ddq, 1, axis=1)
    true = model.inverse_dynamics(truth, *other)
    assert np.linalg.norm(found.predict(*other) - true) < 0.01 * np.linalg.norm(true)


def test_mimic_joints_of_a_file_are_those_of_a_urdf(tmp_path: Path) -> None:
    geared = URDF.replace('<joint name="pin" type="continuous">',
                          '<joint name="pin" type="continuous"><mimic joint="crank" multiplier="0.1" offset="0.2"/>')
    written(tmp_path, geared, "gear.urdf")
    written(tmp_path, URDF, "free.urdf")
    mimic = '[[mimic]]\njoint = "pin"\nfollows = "crank"\nmultiplier = 0.1\noffset = 0.2\n'
    robot = Robot.load(written(tmp_path, f'convention = "urdf"\nurdf = "free.urdf"\n{mimic}'))
    plain = Robot.load(tmp_path / "gear.urdf")
    assert robot.joint_names == plain.joint_names == ("crank", "rocker")
    q, dq, ddq = np.random.default_rng(0).normal(size=(3, 9, 2))
    np.testing.assert_allclose(dynamics.inverse_dynamics(robot, None, q, dq, ddq),
                               dynamics.inverse_dynamics(plain, None, q, dq, ddq), atol=1e-12)
    with refused(RobotError, "bad-robot", "'joint'", "'bar.toml'"):
        Robot.load(written(tmp_path, 'convention = "urdf"\nurdf = "free.urdf"\n[[mimic]]\nfollows = "crank"\n'))


def test_mimic_joints_of_a_urdf_stay_and_may_be_measured(tmp_path: Path) -> None:
    """A gear whose output is a mimic joint of the URDF, measured there: the robot is the URDF's own."""
    geared = URDF.replace('<joint name="pin" type="continuous">',
                          '<joint name="pin" type="continuous"><mimic joint="crank" multiplier="0.1" offset="0.2"/>')
    written(tmp_path, geared, "gear.urdf")
    robot = Robot.load(written(tmp_path, 'convention = "urdf"\nurdf = "gear.urdf"\n[[joint]]\nname = "pin"\nmeasured = '
                                         'true\n[[joint]]\nname = "rocker"\nmeasured = true\ndriven = true\n'))
    plain = Robot.load(tmp_path / "gear.urdf")
    assert robot.joint_names == plain.joint_names == ("crank", "rocker")
    assert robot.measured == ("pin", "rocker") and robot.driven == ("rocker",)
    q, dq, ddq = np.random.default_rng(0).normal(size=(3, 9, 2))
    np.testing.assert_allclose(dynamics.inverse_dynamics(robot, None, q, dq, ddq),
                               dynamics.inverse_dynamics(plain, None, q, dq, ddq), atol=1e-12)
    for wrong, words in (("measured = 1", ("bad-robot", "'measured'", "'pin'")),
                         ("driven = false", ("bad-robot", "driven", "'bar.toml'")),
                         ("fixed_inertia = 3\nnose = 1", ("unknown-setting", "'nose'", "pin"))):
        text = f'convention = "urdf"\nurdf = "gear.urdf"\n[[joint]]\nname = "pin"\n{wrong}\n'
        with refused(RobotError, *words):
            Robot.load(written(tmp_path, text))
