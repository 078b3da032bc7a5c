"""The adjoint of the regressor against Pinocchio's derivatives of inverse dynamics."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from robots import random_robot, to_pinocchio

from dynid.dynamics.adjoint import adjoint_kernel
from dynid.dynamics.tree import robot_tree


@pytest.mark.parametrize("seed", range(5))
def test_adjoint_of_inverse_dynamics_is_pinocchios(seed: int) -> None:
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 5)
    n = robot.dof
    q, dq, ddq = rng.normal(size=(3, 3, n))
    model = to_pinocchio(robot)
    data = model.createData()
    place = np.arange(10 * n * n).reshape(n, 10 * n)
    for j in range(n):
        weights = np.zeros((10 * n * n, 3))
        weights[place[j]] = robot.inertias.ravel()[:, None]  # the sum of weights times entries is then tau_j
        out = np.zeros((3, 3, n))
        adjoint_kernel(*robot_tree(robot), q, dq, ddq, place, weights, out, 0, 3)
        for sample in range(3):
            by_q, by_dq, by_ddq = pin.computeRNEADerivatives(model, data, q[sample], dq[sample], ddq[sample])
            by_ddq = np.triu(by_ddq) + np.triu(by_ddq, 1).T
            for ours, theirs in zip(out[:, sample], (by_q, by_dq, by_ddq), strict=True):
                np.testing.assert_allclose(ours, theirs[j], atol=1e-9 * (1 + np.abs(theirs).max()))
