"""What the constrained methods of the literature are pulled to."""

from __future__ import annotations

import numpy as np
import pytest
from motions import arm, motion
from refusals import refused

from dynid.consistency.literature.sqp import _diagonals
from dynid.errors import ModelError
from dynid.estimate import Problem, identify


@pytest.mark.parametrize("method", ["pc-points", "pc-sqp"])
def test_methods_of_the_literature_are_pulled_to_the_nominal_model(method: str) -> None:
    model, theta = arm()
    rng = np.random.default_rng(5)
    problem = Problem.from_model(model, motion(model, theta, 3.0 * rng.normal(size=(400, 3)), seconds=2.0),
                                 nominal=theta)
    truth = problem.base.reduce(theta)
    bodies = np.array([name[0] in "XYZM" for name in problem.base.names])
    away = [np.linalg.norm((identify(problem, method=method, prior_std=deviation).values - truth)[bodies])
            for deviation in (None, 0.1, 1e-3)]
    assert away[2] < away[1] < away[0]
    with refused(ModelError, "bad-prior-std", "prior_std"):
        identify(problem, method=method, prior_std=-1.0)


@pytest.mark.parametrize("constraint", ["sylvester", "eigenvalues"])
def test_matas_first_step_starts_the_second_one(constraint: str) -> None:
    """Both steps together reach the optimum of the cone programme, from a start that is far from it."""
    model, theta = arm()
    rng = np.random.default_rng(2)
    problem = Problem.from_model(model, motion(model, theta, 0.05 * rng.normal(size=(2000, 3)), seconds=10.0))
    best = identify(problem, method="pc-wls")
    found = identify(problem, method="pc-sqp", steps=2, constraint=constraint)
    assert found.diagnostics["consistent"]
    assert found.diagnostics["relative_error"] < best.diagnostics["relative_error"] * 1.01
    with refused(ModelError, "wrong-option", "'pc-sqp'", "got 3"):
        identify(problem, method="pc-sqp", steps=3)


def test_diagonals_of_the_first_step_have_exact_slopes() -> None:
    places = np.arange(20).reshape(2, 10)
    x = np.random.default_rng(0).uniform(0.5, 1.5, 20)
    values, slopes = _diagonals(x, places)
    inertia = np.array([[x[0], x[1], x[2]], [x[1], x[3], x[4]], [x[2], x[4], x[5]]])
    h = x[6:9]
    central = inertia - (h @ h * np.eye(3) - np.outer(h, h)) / x[9]
    np.testing.assert_allclose(values[:4], [x[9], *np.diag(central)], rtol=1e-12)
    numeric = np.array([(_diagonals(x + 1e-6 * unit, places)[0] - _diagonals(x - 1e-6 * unit, places)[0]) / 2e-6
                        for unit in np.eye(20)]).T
    np.testing.assert_allclose(slopes, numeric, atol=1e-8)
