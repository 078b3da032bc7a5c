"""Free root joints from files, and what does not support them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from refusals import refused
from walkers import free_tree, quadruped

from dynid.errors import RobotError
from dynid.floating.facts import symmetry
from dynid.model import Model
from dynid.robot import Robot
from dynid.robot.free_base import frame_names
from dynid.runs.loading import stated_facts
from dynid.runs.settings import FloatingSettings

TREE = """
convention = "tree"
floating_base = true
root = {link = "trunk", inertia = {mass = 4.0, com = [0.1, 0, 0], about_com = [0.1, 0, 0, 0.1, 0, 0.1]}}
[[joint]]
name = "arm"
inertia = {mass = 1.0, com = [0.1, 0, 0], about_com = [0, 0, 0, 0.01, 0, 0.01]}
[values]
Fv7 = 0.3
"""


def test_a_mistyped_frame_lists_the_names_of_the_robot_file_nearest_first(tmp_path: Path) -> None:
    file = tmp_path / "free.toml"
    file.write_text(TREE)
    with pytest.raises(RobotError) as refusal:
        Robot.load(file).frame("Trunks")
    assert refusal.value.code == "unknown-frame"
    assert frame_names(Robot.load(file), "Trunks") == ["trunk", "link1"]  # neither the world nor its six coordinates
    assert str(refusal.value).endswith("it has trunk, link1")


def test_bodies_between_the_joints_of_one_mjcf_body_are_not_listed() -> None:
    robot = Robot.from_mjcf('<mujoco><worldbody><body name="hand"><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'
                            '<joint name="a" axis="1 0 0"/><joint name="b" axis="0 1 0"/></body></worldbody></mujoco>')
    assert robot.dof == 2 and frame_names(robot, "hnd")[0] == "hand"
    assert not any(" on " in name for name in frame_names(robot, "hnd"))


def test_a_robot_file_frees_its_root(tmp_path: Path) -> None:
    file = tmp_path / "free.toml"
    file.write_text(TREE)
    robot = Robot.load(file)
    assert robot.has_free_base and robot.bodies[5].name == "trunk" and robot.inertias[5, 9] == 4.0
    assert robot.joint_names[6:] == ("arm",)
    assert Robot.load(file, fixed_base=True).joint_names == ("arm",)
    file.write_text(TREE.replace("floating_base = true", ""))
    assert not Robot.load(file).has_free_base
    assert np.array_equal(Robot.load(file, fixed_base=False).inertias, robot.inertias)
    file.write_text(TREE.replace("floating_base = true", "floating_base = 1"))
    with refused(RobotError, "bad-floating-base"):
        Robot.load(file)


def test_bases_that_cannot_be_freed_are_refused() -> None:
    with refused(RobotError, "no-root-link", "arm3r"):
        Robot.load("arm3r", fixed_base=False)
    with refused(RobotError, "locked-free-base", "base_x"):
        free_tree(0, 2).lock({"base_x": 0.0})


def test_locking_and_choosing_joints_leaves_the_base_free() -> None:
    robot = Robot.load(quadruped())
    few = robot.only(["FL_hip", "FL_thigh"])
    assert few.has_free_base and few.joint_names[6:] == ("FL_hip", "FL_thigh")
    assert few.inertias[:, 9].sum() == pytest.approx(robot.inertias[:, 9].sum())


LEGS = TREE.partition("[values]")[0].replace('"arm"', '"left_hip"\nlink = "left_thigh"\nxyz = [0, 0.1, 0]') + """
[[joint]]
name = "right_hip"
link = "right_thigh"
xyz = [0, -0.1, 0]
inertia = {mass = 1.0, com = [0.1, 0, 0], about_com = [0, 0, 0, 0.01, 0, 0.01]}
[symmetry]
"""


def test_a_robot_file_states_its_symmetry(tmp_path: Path) -> None:
    """Facts of a run are those of the file's pairs and standard deviation, unless the run states others."""
    file = tmp_path / "legs.toml"
    file.write_text(LEGS)
    model = Model(Robot.load(file))
    by_name = symmetry(model, {"left_thigh": "right_thigh"}, std=0.01)
    [found] = stated_facts(model, FloatingSettings())
    assert np.array_equal(found[0], by_name[0]) and np.array_equal(found[1], by_name[1])
    assert stated_facts(model, FloatingSettings(symmetry=False)) == []
    file.write_text(LEGS + 'std = 0.04\npairs = {left_thigh = "right_thigh"}\n')
    [looser] = stated_facts(Model(Robot.load(file)), FloatingSettings())
    assert np.allclose(4.0 * looser[0], found[0])
    [tighter] = stated_facts(Model(Robot.load(file)), FloatingSettings(symmetry_std=0.02))
    assert np.allclose(2.0 * tighter[0], found[0])
    assert stated_facts(Model(Robot.load(quadruped())), FloatingSettings()) == []


@pytest.mark.parametrize(("text", "code"), [
    ('pairs = {left_thigh = "nobody"}', "unknown-body"), ("std = 0", "bad-symmetry"),
    ('pairs = ["left_thigh"]', "bad-symmetry"), ("pairs = {left_thigh = 3}", "bad-symmetry")])
def test_wrong_symmetries_are_refused(tmp_path: Path, text: str, code: str) -> None:
    file = tmp_path / "legs.toml"
    file.write_text(LEGS + text)
    with refused(RobotError, code, "legs.toml"):
        Robot.load(file)
