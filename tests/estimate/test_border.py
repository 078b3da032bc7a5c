"""Deviations of an estimate on the border of the set: never none, and right wherever the truth lies."""

from __future__ import annotations

import numpy as np
import pytest
from motions import fourier

from dynid.estimate import Problem, identify
from dynid.model import Model, make_terms
from dynid.recording import Samples
from dynid.regression import base_parameters
from dynid.robot import Robot


@pytest.mark.parametrize("place", [0.0, 1.0, 10.0])
def test_intervals_hold_wherever_the_truth_is_from_the_bound(place: float) -> None:
    """100 logs of an arm whose friction and rotor inertias are at the bound, a deviation from it, and far from it:
    deviations of 1e-13 of the unconstrained ones were stated where a bound was active."""
    robot = Robot.builtin("arm3r")
    model = Model(robot, make_terms(robot, friction=("viscous", "coulomb", "offset"), rotor=True))
    base, theta = base_parameters(model), np.array([item.nominal or 0.0 for item in model.parameters])
    bounded = [i for i, c in enumerate(base.independent) if model.parameters.items[c].positive]
    inside, smallest = [], np.inf
    for seed in range(100):
        q, dq, ddq = fourier(3, seconds=5.0, rate=100.0, seed=seed)
        regressor = model.regressor(q, dq, ddq)
        noise = 0.1 * np.std(regressor @ theta, axis=0)
        columns = (regressor / noise[None, :, None]).reshape(-1, len(theta))[:, base.independent]
        deviation = np.sqrt(np.diag(np.linalg.inv(columns.T @ columns)))
        theta[base.independent[bounded]] = place * deviation[bounded]
        tau = regressor @ theta + noise * np.random.default_rng(seed).normal(size=(len(q), 3))
        problem = Problem.of(model, Samples.of(q, dq, ddq, tau, rate=100.0), base=base)
        estimate = identify(problem, method="pc-wls")
        inside.append(np.abs(estimate.values - base.reduce(theta)) <= 1.96 * estimate.std)
        smallest = min(smallest, float(np.min(estimate.std / deviation)))
    share = np.mean(inside, axis=0)
    assert smallest > 0.1
    assert share.min() > 0.85 and share[bounded].mean() > 0.93
