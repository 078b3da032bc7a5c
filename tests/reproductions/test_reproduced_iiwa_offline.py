"""Chapter 2 of Ardiani on a virtual iiwa: its printed tables and the public model of iiwa_stack."""

from __future__ import annotations

import numpy as np

from dynid.dynamics import forward_kinematics
from dynid.robot import Robot
from reproductions._iiwa_stack import iiwa_stack
from reproductions._iiwa_tables import CONTROLLER, ESSENTIAL


def test_printed_tables_have_as_many_parameters_as_the_text_says() -> None:
    assert len(CONTROLLER) == 14
    assert [sum(row[k] is not None for row in ESSENTIAL.values()) for k in range(3)] == [33, 29, 13]


def test_joints_of_iiwa_stack_turn_as_those_of_the_built_in_robot() -> None:
    q = np.random.default_rng(0).uniform(-2.0, 2.0, 7)
    other, own = forward_kinematics(iiwa_stack(), q), forward_kinematics(Robot.builtin("kuka-iiwa14"), q)
    assert np.allclose(other[:, :3, 2], own[:, :3, 2], atol=1e-12)
    assert np.allclose(other[[1, 3, 5], :3, 3], own[[1, 3, 5], :3, 3], atol=1e-12)  # shoulder, elbow, wrist
