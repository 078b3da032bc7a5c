"""Free root joints from files, and what does not support them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from refusals import refused
from walkers import free_tree, quadruped

from dynid.errors import RobotError
from dynid.robot import Robot

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
