"""SDPA files: what another solver makes of them is what ours finds."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refused

from dynid.consistency import Box, Consistency, Ellipsoid, MassLimit, nearest
from dynid.consistency.sdpa import write_sdpa
from dynid.errors import ModelError
from dynid.model import Model, make_terms
from dynid.regression import base_parameters
from dynid.robot import Robot


def solved(path) -> tuple[float, np.ndarray]:
    """Objective and variables of an SDPA file, read here and solved by cvxpy."""
    cvxpy = pytest.importorskip("cvxpy")
    _, count, _, sizes, goal, *entries = path.read_text().splitlines()
    x, sizes = cvxpy.Variable(int(count)), [int(s) for s in sizes.split()]
    matrices = [np.zeros((int(count) + 1, abs(s), abs(s))) for s in sizes]
    for line in entries:
        variable, block, row, column, value = line.split()
        for i, j in ((row, column), (column, row)):
            matrices[int(block) - 1][int(variable), int(i) - 1, int(j) - 1] = float(value)
    conditions = []
    for size, one in zip(sizes, matrices, strict=True):
        flat = one[1:].reshape(int(count), -1).T @ x - one[0].ravel()
        whole = cvxpy.reshape(flat, (abs(size), abs(size)), order="C")
        conditions.append(cvxpy.diag(whole) >= 0 if size < 0 else whole >> 0)
    problem = cvxpy.Problem(cvxpy.Minimize(np.array(goal.split(), dtype=float) @ x), conditions)
    problem.solve(solver="CLARABEL")
    return float(problem.value), np.asarray(x.value)


def test_the_nearest_possible_arm_by_another_solver(tmp_path) -> None:
    robot = Robot.builtin("arm3r")
    model = Model(robot, make_terms(robot, friction=("viscous",)))
    base = base_parameters(model)
    values = base.reduce(model.parameters.nominal)
    values[base.names.index("Fv2")] = -0.3  # which no robot has
    centres = {"link1": Box([-0.1, -0.3, -0.1], [0.1, 0.0, 0.1]), "link2": Ellipsoid([-0.1, 0, 0], [0.1, 0.05, 0.05])}
    consistency = Consistency(model.parameters, centres=centres, masses=(MassLimit(5.5, 5.5),))
    unit = write_sdpa(tmp_path / "arm.dat-s", consistency, base.matrix, values)
    distance, x = solved(tmp_path / "arm.dat-s")
    ours = nearest(consistency, values, base)
    assert ours.distance == pytest.approx(0.3, abs=1e-5) and distance == pytest.approx(ours.distance, abs=1e-5)
    np.testing.assert_allclose(base.matrix @ (unit * x[:-1]), ours.nearest, atol=1e-4)


def test_a_matrix_of_another_shape_is_refused(tmp_path) -> None:
    consistency = Consistency(Model(Robot.builtin("arm3r")).parameters)
    with refused(ModelError, "bad-model", "(3, 30)", "(3, 3)"):
        write_sdpa(tmp_path / "a.dat-s", consistency, np.eye(3), np.zeros(3))
