"""Constrained fits of the literature: exact slopes, and what they promise."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from consistency.problems import arm_problem, oracle, random_body

from dynid.consistency import Box, Consistency, Fit, fit
from dynid.consistency.literature import (
    fit_box,
    fit_log_cholesky,
    fit_points,
    fit_sqp,
    fit_virtual,
)
from dynid.consistency.literature.factors import log_cholesky, virtual
from dynid.consistency.literature.points import nominal_points, point_matrix, reduction
from dynid.robot import inertia as ten


def test_log_cholesky_and_its_slopes() -> None:
    numbers = random_body(np.random.default_rng(0))
    z = ten.to_log_cholesky(numbers)
    value, slopes = log_cholesky(z)
    np.testing.assert_allclose(value, numbers, rtol=1e-12)
    step = 1e-6 * np.eye(10)
    np.testing.assert_allclose(slopes, np.array([(log_cholesky(z + h)[0] - log_cholesky(z - h)[0]) / 2e-6
                                                 for h in step]).T, atol=1e-7)


def test_virtual_parameters_and_their_slopes() -> None:
    rng = np.random.default_rng(1)
    t = rng.normal(size=10)
    value, slopes = virtual(t)
    assert value[9] == pytest.approx(t[0] ** 2)
    assert np.linalg.eigvalsh(ten.spatial_inertia(value)).min() > -1e-12
    step = 1e-6 * np.eye(10)
    numeric = np.array([(virtual(t + h)[0] - virtual(t - h)[0]) / 2e-6 for h in step]).T
    np.testing.assert_allclose(slopes, numeric, atol=1e-7)


def test_point_masses_are_bodies_that_can_exist() -> None:
    box = Box([-0.1, 0.0, 0.0], [0.1, 0.2, 0.3])
    numbers = point_matrix(box) @ np.random.default_rng(2).uniform(0, 1, 27)
    mass, com, _ = ten.to_central(numbers)
    assert mass > 0 and box.outside(com) == 0.0
    assert np.linalg.eigvalsh(ten.pseudo_inertia(numbers)).min() > 0


@pytest.mark.parametrize("seed", [0, 3])
def test_none_beats_the_optimum(seed: int) -> None:
    model, theta, base, regression = arm_problem(3, seed, samples=40)
    stacked = regression.stack()
    consistency = Consistency(model.parameters, margin=0.0)
    best = fit(consistency, base, stacked)
    points = fit_points(consistency, base, stacked)
    factors = fit_log_cholesky(consistency, base, stacked, begin=theta)
    sequential = fit_sqp(consistency, base, stacked, begin=theta, constraint="eigenvalues")
    for other in (points, factors, sequential):
        if other.smallest_eigenvalue >= -1e-12:
            assert other.misfit >= best.misfit * (1 - 1e-6)
    assert factors.misfit == pytest.approx(best.misfit, rel=0.05)  # stops early near the border
    # These ask for less than the pseudo-inertia does, so they may fit better.
    assert fit_box(consistency, base, stacked).misfit <= best.misfit * (1 + 1e-6)
    spatial = fit(Consistency(model.parameters, form="spatial", margin=0.0), base, stacked)
    assert fit_virtual(consistency, base, stacked, begin=theta).misfit >= spatial.misfit * (1 - 1e-6)


def test_points_pulled_to_a_nominal_model_are_cvxpys_quadratic_programme() -> None:
    model, theta, base, regression = arm_problem(2, 1, samples=40)
    stacked, consistency, deviation = regression.stack(), Consistency(model.parameters, margin=0.0), 0.05
    box = Box(np.full(3, -0.5), np.full(3, 0.5))
    matrix, rest = point_matrix(box), np.setdiff1d(np.arange(len(theta)), consistency.places.ravel())
    p = [cp.Variable(27, nonneg=True) for _ in consistency.bodies]
    friction = cp.Variable(len(rest), nonneg=True)
    full = stacked.r @ base.matrix
    torque = full[:, rest] @ friction
    goal = 0.0
    for own, places in zip(p, consistency.bodies.values(), strict=True):
        torque = torque + full[:, places] @ (matrix @ own)
        given = nominal_points(matrix, theta[places])
        assert given.min() >= 0.0 and given.sum() == pytest.approx(theta[places][9], rel=1e-3)
        goal += cp.sum_squares((own - given) / deviation)
    best = cp.Problem(cp.Minimize(cp.sum_squares(torque - stacked.rho) + goal))
    best.solve(solver=cp.CLARABEL)
    found = fit_points(consistency, base, stacked, prior=(theta, deviation))
    mine = np.concatenate([matrix @ own.value for own in p])
    np.testing.assert_allclose(found.theta[consistency.places.ravel()], mine, atol=1e-4 * np.abs(mine).max())
    # A pull without end leaves the nominal points, one of no weight changes nothing.
    held = fit_points(consistency, base, stacked, prior=(theta, 1e-6)).theta
    for places in consistency.bodies.values():
        np.testing.assert_allclose(held[places], matrix @ nominal_points(matrix, theta[places]), atol=1e-5)
    free = fit_points(consistency, base, stacked)
    assert fit_points(consistency, base, stacked, prior=(theta, 1e6)).misfit == pytest.approx(free.misfit, rel=1e-6)


def test_sequential_programming_pulled_to_base_values_is_the_convex_optimum() -> None:
    model, theta, base, regression = arm_problem(2, 1, samples=40)
    stacked, consistency, deviation = regression.stack(), Consistency(model.parameters, margin=0.0), 0.1
    told = 1.1 * base.reduce(theta)
    told[-1] = np.nan
    found = fit_sqp(consistency, base, stacked, begin=theta, constraint="eigenvalues", prior=(told, deviation))
    rows = np.isfinite(told)
    matrix = np.vstack([stacked.r @ base.matrix, base.matrix[rows] / deviation])
    rho = np.concatenate([stacked.rho, told[rows] / deviation])

    def goal(one: Fit) -> float:
        return float(np.sum((matrix @ one.theta - rho) ** 2))

    least = oracle(consistency, matrix, rho)
    assert least * (1 - 1e-6) <= goal(found) < 1.1 * least  # it stops early near the border
    assert goal(found) < 0.8 * goal(fit_sqp(consistency, base, stacked, begin=theta, constraint="eigenvalues"))
    held = fit_sqp(consistency, base, stacked, begin=theta, constraint="eigenvalues", prior=(base.reduce(theta), 1e-5))
    np.testing.assert_allclose(held.beta, base.reduce(theta), atol=1e-4)


def test_reduction_goes_on_until_possible() -> None:
    model, _, base, regression = arm_problem(3, 4, samples=40)
    stacked = regression.stack()
    steps = reduction(Consistency(model.parameters), base, stacked)
    assert steps[-1].distance <= 1e-6 < min([step.distance for step in steps[:-1]], default=1.0)
    misfits = [step.misfit for step in steps]
    assert misfits == sorted(misfits)
