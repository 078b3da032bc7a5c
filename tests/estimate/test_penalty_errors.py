"""Standard errors of regularised estimates: no larger than those without regularisation and the difference allow."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from dynid.estimate import Problem, identify
from dynid.estimate.covariance import naive_noise_matrix
from dynid.estimate.linear import joint_weights, solve
from dynid.estimate.nominal_errors import at_most_the_difference, penalty_noise_matrix
from dynid.model import FrictionCurve, Model, Offset, RigidBodies, RotorInertia
from dynid.recording.sample_preparation import prepare
from reproductions._machines import Machine

machine = cache(Machine.from_name)


def test_the_mean_square_error_of_a_ridge_is_below_the_limit() -> None:
    """Ridges toward wrong values in two dimensions, in closed form: 20,000 draws of the noise; the errors of the values
    are overestimated a hundredfold, the limit is not below the actual mean square error, and near it where the ridge
    hardly acts."""
    rng = np.random.default_rng(0)
    normal, target, truth = np.array([[4.0, 1.0], [1.0, 0.5]]), np.array([3.0, -2.0]), np.zeros(2)
    plain = rng.multivariate_normal(truth, np.linalg.inv(normal), 20_000)
    for strength in (0.001, 0.1, 3.0):
        inverse = np.linalg.inv(normal + strength * np.eye(2))
        found = (plain @ normal + strength * target) @ inverse
        by_noise, by_target = inverse @ normal @ inverse, 1e4 * strength ** 2 * inverse @ inverse
        limit = np.mean([np.diag(by_noise + at_most_the_difference(by_target, by_noise, np.linalg.inv(normal), one))
                         for one in (found - plain)[:2000]], axis=0)
        actual = np.mean((found - truth) ** 2, axis=0)
        assert np.all(actual < 1.02 * limit)
        assert strength > 0.001 or np.all(limit < 1.05 * actual)


def test_what_is_below_the_limit_is_kept() -> None:
    one = np.diag([1.0, 4.0])
    assert at_most_the_difference(one, one, one + 1.0, np.array([0.0, 1.5])) == pytest.approx(np.diag([1.0, 3.25]))


def test_pc_ridge_is_not_less_certain_than_wls_where_its_nominal_model_is_useless() -> None:
    """Bodies 100 % off: their errors were estimated as 10 to 30 times the bodies, and standard errors were up to ten
    times those of wls, from which the estimate differs by a third of one."""
    found = machine("franka-panda")
    log = found.record(53101, closed=False)
    problem = replace(Problem.from_model(found.model, prepare(log), base=found.base, recordings=log),
                      nominal=found.nominal(53101, 1.0))
    ridge, wls = (identify(problem, method=method) for method in ("pc-ridge", "wls"))
    assert np.all(ridge.std < 1.1 * np.hypot(wls.std, ridge.values - wls.values))
    truth = found.base.reduce(found.theta)
    assert np.mean(np.abs(ridge.values - truth) < 2.0 * ridge.std) > 0.9


def test_a_penalised_friction_curve_leaves_bodies_as_certain_as_one_without_penalty() -> None:
    """Stribeck friction and a curve with a ridge of one tenth: bodies and rotors are as certain as the normal equations
    without penalties and the difference allow. Their standard errors were up to 1.28 times as large."""
    found = machine("ur10")
    dry = found.theta[[found.model.parameters.names.index(f"Fc{j}") for j in range(1, 7)]]
    log = found.record(5, closed=False)
    log = replace(log, tau=log.tau + 0.6 * dry * np.exp(-(found.path.dq / 0.1) ** 2) * np.sign(found.path.dq))
    terms = (RigidBodies(), RotorInertia(), FrictionCurve(free=True, ridge=0.1), Offset())
    own = Problem.from_model(Model(found.robot, terms), prepare(log), recordings=log).regression
    weights = joint_weights(own)
    solution = solve(own, own.stack(weights))
    noise = naive_noise_matrix(own, solution, weights)
    whole = solution.inverse @ (noise + penalty_noise_matrix(own, solution, weights, noise)) @ solution.inverse
    normal = own.normal(weights)
    score = (normal + np.diag(own.ridge_penalty(weights))) @ solution.beta
    without = np.linalg.inv(normal)
    limit = np.diag(without @ noise @ without) + (solution.beta - without @ score) ** 2
    rigid = np.array([own.base.parameters.items[c].kind.group in ("body", "rotor") for c in own.base.independent])
    assert np.all(np.sqrt(np.diag(whole) / limit)[rigid] < 1.05)
    assert np.all(np.diag(whole) > np.diag(solution.inverse @ noise @ solution.inverse) * (1.0 - 1e-9))
