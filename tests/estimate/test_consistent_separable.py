"""pc-sls: no consistent robot of a shape nearby is better, by cvxpy; it is sls where no condition is active."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from consistency.problems import oracle
from motions import low_passed
from refusals import refused

from dynid.arrays import Array
from dynid.consistency import Consistency
from dynid.errors import ModelError
from dynid.estimate import Problem, identify
from dynid.estimate.consistent import problem_consistency
from dynid.model import Model, RigidBodies, Stribeck
from dynid.recording import Samples
from dynid.regression import TorqueEquations, fold
from dynid.robot import Robot

DELTA = 6.0


def robot_model(**options: object) -> Model:
    return Model(Robot.builtin("arm3r"), (RigidBodies(), Stribeck(**options)))


def short_log(noise: float, seconds: float = 4.0, seed: int = 3) -> tuple[Samples, Array]:
    """A short motion of the 3R arm with Stribeck friction, slow enough to show its fall; noise in N m."""
    truth = robot_model(delta=DELTA)
    theta = np.array([{"Fsc": -0.08}.get(item.symbol, 0.0) if item.nominal is None else item.nominal
                      for item in truth.parameters])
    t = np.arange(int(seconds * 200)) / 200.0
    rng = np.random.default_rng(seed)
    w, size, phase = rng.uniform(1.0, 4.0, (4, 3)), rng.uniform(0.05, 0.3, (4, 3)), rng.uniform(0, 6, (4, 3))
    angle = t[:, None, None] * w + phase
    q, dq, ddq = (np.sum(part, axis=1) for part in (size * np.sin(angle), size * w * np.cos(angle),
                                                    -size * w ** 2 * np.sin(angle)))
    tau = truth.inverse_dynamics(theta, q, dq, ddq)
    return Samples.from_arrays(q, dq, ddq, tau + low_passed(rng, tau.shape, noise, 20.0, 200.0), rate=200.0), theta


def test_no_shape_nearby_has_a_better_consistent_robot_by_cvxpy() -> None:
    samples, _ = short_log(0.1)
    free = robot_model(free=("delta",))
    problem = Problem.from_model(free, samples, blocks=1)
    plain, found = identify(problem, method="sls"), identify(problem, method="pc-sls")
    assert found.theta is not None and found.diagnostics["active"] and found.diagnostics["converged"]
    assert Consistency(free.parameters).slack(found.theta) >= 0.0
    weights = np.array(found.diagnostics["weights"])

    def least(shape: Array) -> float:
        shaped = free.with_shape(shape)
        regression = fold(TorqueEquations.from_model(shaped, samples, found.base), blocks=1)
        stacked = regression.stack(weights)
        consistency = problem_consistency(replace(problem, model=shaped, regression=regression))
        return oracle(consistency, stacked.r @ found.base.matrix, stacked.rho) + stacked.rest

    best = least(found.model.shape)
    for move in np.vstack([0.1 * np.eye(3), -0.1 * np.eye(3)]):
        assert least(found.model.shape * np.exp(move)) > best * (1.0 - 1e-7)
    # The shape of least squares without conditions is not the best one for consistent robots.
    assert least(plain.model.shape) > best * (1.0 + 1e-5)


def test_without_active_conditions_it_is_sls() -> None:
    samples, _ = short_log(0.0005, seconds=30.0)
    problem = Problem.from_model(robot_model(free=("delta",)), samples, blocks=1)
    plain, found = identify(problem, method="sls"), identify(problem, method="pc-sls")
    assert found.diagnostics["active"] == []
    for name, one in plain.diagnostics["shape"].items():
        other = found.diagnostics["shape"][name]
        assert other["value"] == pytest.approx(one["value"], abs=0.05 * one["std"])
        assert abs(other["value"] - DELTA) < 3.0 * other["std"] < 0.1 * DELTA
    assert np.all(np.abs(found.values - plain.values) < 0.1 * plain.std)


def test_a_model_without_free_shapes_is_refused() -> None:
    samples, _ = short_log(0.1)
    with refused(ModelError, "no-free-shapes", "pc-sls"):
        identify(Problem.from_model(robot_model(), samples), method="pc-sls")
