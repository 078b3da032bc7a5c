"""A joint that moved one way only: its dry friction and its offset are one number, and neither is told."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from motions import fourier

from dynid.estimate import Problem, identify
from dynid.estimate.problem import _within_bounds
from dynid.model import Model, make_terms
from dynid.recording import Samples
from dynid.robot import Robot


@pytest.mark.parametrize("method", ["wls", "irls", "ridge", "pc-ols", "pc-wls", "pc-ridge"])
def test_friction_and_offset_are_not_told_apart_and_stay_of_sensible_size(method: str) -> None:
    """pc-wls said 376700 +- 0.0015 N m of a Coulomb friction of 0.18, with an offset of minus that."""
    robot = Robot.builtin("arm3r")
    model = Model(robot, make_terms(robot, friction=("viscous", "coulomb", "offset"), rotor=True))
    theta = np.array([item.nominal or 0.2 for item in model.parameters])
    q, dq, ddq = fourier(3, seed=0)
    t, w = np.arange(len(q)) / 200.0, 2 * np.pi * 0.3
    q[:, 2], dq[:, 2] = 0.2 * t - 1.0 - 0.05 * np.cos(w * t) / w, 0.2 + 0.05 * np.sin(w * t)
    ddq[:, 2] = 0.05 * w * np.cos(w * t)
    tau = model.inverse_dynamics(theta, q, dq, ddq)
    tau += 0.02 * tau.std(axis=0) * np.random.default_rng(0).normal(size=tau.shape)
    problem = Problem.from_model(model, Samples.from_arrays(q, dq, ddq, tau, rate=200.0), nominal=theta)
    estimate = identify(problem, method=method)
    pair = [estimate.names.index(name) for name in ("Fc3", "Fo3")]
    others = np.setdiff1d(np.arange(len(estimate.values)), pair)
    assert not estimate.identified[pair].any() and np.isinf(estimate.std[pair]).all()
    assert estimate.identified[others].all()
    assert estimate.diagnostics.confounded == {"Fc3": ["Fo3"], "Fo3": ["Fc3"]}
    assert np.abs(estimate.values[pair]).max() <= 10.0 * np.sqrt(np.mean(tau[:, 2] ** 2))
    truth = problem.base.reduce(theta)
    assert estimate.values[pair].sum() == pytest.approx(truth[pair].sum(), abs=0.01)
    np.testing.assert_array_less(np.abs(estimate.values - truth)[others], 5.0 * estimate.std[others] + 1e-9)


def test_values_moved_to_their_bounds_stay_confounded() -> None:
    """`_within_bounds` computes the errors of the moved values again; what the motion did not excite is unchanged."""
    robot = Robot.builtin("arm3r")
    model = Model(robot, make_terms(robot, friction=("viscous", "coulomb", "load"), rotor=True))
    q, dq, ddq = fourier(3, seed=0)
    q[:, 2], dq[:, 2], ddq[:, 2] = 0.3, 0.0, 0.0
    theta = np.array([item.nominal or 0.2 for item in model.parameters])
    tau = model.inverse_dynamics(theta, q, dq, ddq)
    problem = Problem.from_model(model, Samples.from_arrays(q, dq, ddq, tau, rate=200.0), nominal=theta)
    estimate = identify(problem, method="wls")
    fl = estimate.names.index("Fl1")
    outside = estimate.values.copy()
    outside[fl] = -0.1
    moved = _within_bounds(problem, replace(estimate, values=outside))
    assert moved.values[fl] == 0.0 and "Fl1" in moved.diagnostics["fixed_at_bounds"]
    assert moved.diagnostics.relative_error > estimate.diagnostics.relative_error
    assert moved.diagnostics.confounded == estimate.diagnostics.confounded != {}
