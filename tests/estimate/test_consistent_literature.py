"""What the constrained methods of the literature are pulled to."""

from __future__ import annotations

import numpy as np
import pytest
from motions import arm, motion
from refusals import refused

from dynid.errors import ModelError
from dynid.estimate import Problem, identify


@pytest.mark.parametrize("method", ["pc-points", "pc-sqp"])
def test_methods_of_the_literature_are_pulled_to_the_nominal_model(method: str) -> None:
    model, theta = arm()
    rng = np.random.default_rng(5)
    problem = Problem.of(model, motion(model, theta, 3.0 * rng.normal(size=(400, 3)), seconds=2.0), nominal=theta)
    truth = problem.base.reduce(theta)
    bodies = np.array([name[0] in "XYZM" for name in problem.base.names])
    away = [np.linalg.norm((identify(problem, method=method, prior_deviation=deviation).values - truth)[bodies])
            for deviation in (None, 0.1, 1e-3)]
    assert away[2] < away[1] < away[0]
    with refused(ModelError, "bad-prior-deviation", "prior_deviation"):
        identify(problem, method=method, prior_deviation=-1.0)
