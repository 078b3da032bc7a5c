"""Intervals of earlier estimates as conditions beside the cones (Sousa, s. 2.6.3)."""

from __future__ import annotations

import numpy as np
import pytest
from consistency.problems import arm_problem
from refusals import refused

from dynid.consistency import Consistency, fit
from dynid.errors import ModelError
from dynid.estimate import identify
from dynid.model import Model
from dynid.recording import Samples
from dynid.robot import Robot


def test_the_fit_is_that_of_another_solver_with_the_same_interval() -> None:
    cvxpy = pytest.importorskip("cvxpy")
    model, _, base, regression = arm_problem(2, 1, samples=60)
    stacked = regression.stack()
    free = fit(Consistency(model.parameters), base, stacked)
    k = int(np.argmax(np.count_nonzero(base.matrix, axis=1)))  # a combination of several
    value = float(free.beta[k])
    interval = (value + 0.1 * abs(value), value + 0.3 * abs(value))
    consistency = Consistency(model.parameters, intervals={base.expressions[k]: interval})
    assert [v.kind for v in consistency.violations(free.theta)] == ["interval"]
    ours = fit(consistency, base, stacked)
    assert interval[0] - 1e-9 <= ours.beta[k] <= interval[1] + 1e-9 and not consistency.violations(ours.theta, 1e-9)
    theta = cvxpy.Variable(len(model.parameters))
    asked = [base.matrix[k] @ theta >= interval[0], base.matrix[k] @ theta <= interval[1]]
    asked += [theta[i] >= 0 for i in np.flatnonzero(model.parameters.positive)]
    for columns in consistency.bodies.values():
        asked.append(sum(theta[int(c)] * m for c, m in zip(columns, consistency.basis, strict=True))
                     >> 1e-8 * np.eye(4))
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(stacked.r @ base.matrix @ theta - stacked.rho)), asked)
    problem.solve(solver="CLARABEL")
    assert ours.misfit == pytest.approx(problem.value + stacked.rest, rel=1e-4)
    assert ours.misfit > free.misfit


def test_intervals_reach_the_method_and_bad_ones_are_refused() -> None:
    model = Model(Robot.builtin("arm3r"))
    q, dq, ddq = np.random.default_rng(0).normal(size=(3, 200, 3))
    tau = model.inverse_dynamics(model.parameters.nominal, q, dq, ddq)
    tau += 0.05 * np.random.default_rng(1).normal(size=tau.shape)
    samples = Samples.from_arrays(q, dq, ddq, tau, rate=100)
    found = identify(model, samples, method="pc-wls", intervals={"M1 + M2": [4.6, 4.7]})
    assert found.theta is not None
    masses = dict(zip(model.parameters.names, found.theta, strict=True))
    assert 4.6 - 1e-6 <= masses["M1"] + masses["M2"] <= 4.7 + 1e-6  # 4.3 in the file; motion does not show it
    with refused(ModelError, "bad-interval"):
        identify(model, samples, method="pc-wls", intervals={"M2": 3.0})
    with refused(ModelError, "bad-interval"):
        Consistency(model.parameters, intervals={"M2": (2.0, 1.0)})
    with refused(ModelError, "unknown-parameter"):
        _ = Consistency(model.parameters, intervals={"Q7": (1.0, 2.0)}).blocks
