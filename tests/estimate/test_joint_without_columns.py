"""A joint of which the model has no column: its torque is noise to the model, and everything else goes on."""

from __future__ import annotations

import numpy as np
import pytest
from motions import fourier

from dynid.estimate import Problem, identify
from dynid.model import Coulomb, Model, RigidBodies, Viscous
from dynid.recording import Samples
from dynid.robot import Robot
from dynid.validate import cross_validate, reconstruct, verdict

ROBOT = Robot.builtin("arm3r")


def samples_of(model: Model, theta: np.ndarray) -> Samples:
    q, dq, ddq = fourier(3, seconds=10.0)
    tau = model.regressor(q, dq, ddq) @ theta + 0.01 * np.random.default_rng(0).normal(size=q.shape)
    return Samples.from_arrays(q, dq, ddq, tau, rate=200.0)


@pytest.mark.parametrize("method", ["ols", "wls", "irls", "ml", "ridge", "tls", "pc-wls", "pc-reduce", "pc-ridge"])
def test_joint_without_a_term(method: str) -> None:
    model = Model(ROBOT, (Viscous(joints=(1, 3)), Coulomb(joints=(1, 3))))
    samples = samples_of(model, np.array([1.0, 2.0, 3.0, 4.0]))
    problem = Problem.from_model(model, samples, blocks=6)
    estimate = identify(problem, method=method)
    np.testing.assert_allclose(estimate.values, [1.0, 2.0, 3.0, 4.0], atol=0.02)
    assert np.all(np.abs(estimate.values - [1.0, 2.0, 3.0, 4.0]) < 5 * estimate.std)
    own = reconstruct(estimate, samples)
    assert own.joints[1].relative_error == pytest.approx(100.0) and own.joints[0].relative_error < 2
    cross = cross_validate(problem, method, estimate=estimate)
    assert verdict(estimate, problem, reconstruction=own, cross=cross).to_dict()


def test_joint_whose_parameters_are_all_known() -> None:
    model = Model(ROBOT, (RigidBodies(), Viscous()))
    theta = np.array([0.3 if one.nominal is None else one.nominal for one in model.parameters])
    known = {name: float(value) for name, value, seen in zip(model.parameters.names, theta, model.structure[2],
                                                              strict=True) if seen}
    samples = samples_of(model, theta)
    problem = Problem.from_model(model, samples, known=known, blocks=6)
    estimate = identify(problem, method="wls")
    truth = problem.base.reduce(theta)
    assert np.all(np.abs(estimate.values - truth) < 5 * estimate.std)
    assert reconstruct(estimate, samples).joints[2].relative_error < 5
