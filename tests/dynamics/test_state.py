"""The kernel of a single state gives what the tiles give, on any tree."""

from __future__ import annotations

import numpy as np
import pytest
from robots import random_robot

from dynid import dynamics
from dynid.dynamics.state import mass_and_bias, pack, solve_state
from dynid.dynamics.tree import robot_tree


@pytest.mark.parametrize(("dof", "prismatic", "branch"),
                         [(1, 0.0, 0.0), (6, 0.0, 0.0), (7, 0.4, 0.0), (9, 0.3, 0.5), (17, 0.3, 0.6)])
def test_matrix_bias_and_accelerations_agree_with_the_tiles(dof: int, prismatic: float, branch: float) -> None:
    rng = np.random.default_rng(dof)
    robot = random_robot(rng, dof, prismatic=prismatic, branch=branch)
    tree = robot_tree(robot)
    rows = pack(tree, robot.inertias.reshape(dof, 10))
    matrix, bias = np.full((dof, dof), np.nan), np.empty(dof)
    for _ in range(5):
        q, dq, tau = rng.normal(size=(3, dof)) * 2.0
        mass_and_bias(tree.parent, tree.gravity, rows, q, dq, matrix, bias)
        full = dynamics.inertia_matrix(robot, None, q)
        held = dynamics.inverse_dynamics(robot, None, q, dq, np.zeros(dof))
        assert np.abs(np.tril(matrix) - np.tril(full)).max() < 1e-12 * np.abs(full).max()
        assert np.abs(bias - held).max() < 1e-12 * np.abs(held).max()
        x = tau - bias
        assert solve_state(matrix, bias, x)
        expected = dynamics.forward_dynamics(robot, None, q, dq, tau)
        assert np.abs(x - expected).max() < 1e-9 * np.abs(expected).max()


def test_large_angles_and_a_singular_matrix() -> None:
    rng = np.random.default_rng(3)
    robot = random_robot(rng, 3, prismatic=0.0)
    tree = robot_tree(robot)
    matrix, bias = np.zeros((3, 3)), np.zeros(3)
    q, dq = np.array([2e6, -3e6, 1.0]), rng.normal(size=3)
    mass_and_bias(tree.parent, tree.gravity, pack(tree, robot.inertias.reshape(3, 10)), q, dq, matrix, bias)
    assert np.abs(bias - dynamics.inverse_dynamics(robot, None, q, dq, np.zeros(3))).max() < 1e-9 * np.abs(bias).max()
    assert not solve_state(np.ones((2, 2)), np.zeros(2), np.ones(2))
