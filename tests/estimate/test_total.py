"""Total least squares against the dense singular value decomposition, and on data with errors on both sides."""

from __future__ import annotations

import numpy as np
import pytest
from motions import arm, motion
from refusals import refused

from dynid.arrays import Array
from dynid.errors import ModelError, NotPossibleError
from dynid.estimate import Problem, identify
from dynid.model import Parameter, Parameters
from dynid.model.parameters import OFFSET, OTHER
from dynid.recording import Samples


class Straight:
    """tau = a q + b dq + c ddq + o: a regressor that is the measurements themselves."""

    dof = 1
    parameters = Parameters(tuple(Parameter(name, "1", 0, "joint1", kind=OFFSET if name == "Fo1" else OTHER)
                                  for name in ("a", "b", "c", "Fo1")))

    def regressor(self, q: Array, dq: Array, ddq: Array) -> Array:
        return np.stack([q, dq, ddq, np.ones_like(q)], axis=-1)


TRUTH = np.array([2.0, -1.0, 0.5, 0.3])


def measured(rng: np.random.Generator, rows: int, noise: float) -> Samples:
    """Columns and torque each with errors of `noise` times their size."""
    x = rng.normal(size=(3, rows, 1)) * np.array([1.0, 2.0, 5.0])[:, None, None]
    tau = TRUTH[0] * x[0] + TRUTH[1] * x[1] + TRUTH[2] * x[2] + TRUTH[3]
    x = x + noise * np.array([1.0, 2.0, 5.0])[:, None, None] * rng.normal(size=x.shape)
    return Samples.from_arrays(*x, tau + noise * np.sqrt(np.mean(tau ** 2)) * rng.normal(size=tau.shape))


def test_without_exact_columns_it_is_the_last_singular_vector_of_the_scaled_matrix() -> None:
    model, theta = arm()
    rng = np.random.default_rng(0)
    problem = Problem.from_model(model,
                                 motion(model, theta, np.array([0.03, 0.02, 0.005]) * rng.normal(size=(4000, 3))))
    estimate = identify(problem, method="tls", exact=(), ratio=0.5)
    weights, samples = np.array(estimate.diagnostics["weights"]), problem.data[0]
    x = model.regressor(samples.q, samples.dq, samples.ddq)[:, :, problem.base.independent] * weights[:, None]
    whole = np.column_stack([x.reshape(-1, x.shape[2]), (samples.tau * weights).ravel()])
    scale = 1 / np.linalg.norm(whole, axis=0)
    scale[:-1] /= 0.5
    _, singular, rows = np.linalg.svd(whole * scale, full_matrices=False)
    expected = -rows[-1, :-1] / rows[-1, -1] * scale[:-1] / scale[-1]
    np.testing.assert_allclose(estimate.values, expected, rtol=1e-8)
    assert estimate.diagnostics["smallest_singular_value"] == pytest.approx(singular[-1], rel=1e-9)


def test_a_small_ratio_is_weighted_least_squares() -> None:
    model, theta = arm()
    rng = np.random.default_rng(1)
    problem = Problem.from_model(model, motion(model, theta, 0.1 * rng.normal(size=(4000, 3))))
    tls, wls = identify(problem, method="tls", ratio=1e-5), identify(problem, method="wls")
    np.testing.assert_allclose(tls.values, wls.values, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(tls.covariance, wls.covariance, rtol=1e-6, atol=1e-9 * np.abs(wls.covariance).max())


def test_errors_in_the_columns_bias_least_squares_but_not_total_least_squares() -> None:
    rng = np.random.default_rng(2)
    off, plain = [], []
    for _ in range(60):
        problem = Problem.from_model(Straight(), measured(rng, 1500, 0.3), blocks=1)
        estimate = identify(problem, method="tls", ratio=1.0)
        assert estimate.diagnostics["exact"] == ["Fo1"]
        off.append((estimate.values - TRUTH) / estimate.std)
        plain.append(identify(problem, method="ols").values)
    # Ordinary least squares shrinks the coefficients by 1 / (1 + 0.3^2).
    np.testing.assert_allclose(np.mean(plain, axis=0)[:3], TRUTH[:3] / 1.09, rtol=0.01)
    assert np.abs(np.mean(off, axis=0)).max() < 0.5
    assert np.sqrt(np.mean(np.square(off))) == pytest.approx(1.0, abs=0.15)


def test_what_the_method_cannot_do_is_said() -> None:
    rng = np.random.default_rng(3)
    problem = Problem.from_model(Straight(), measured(rng, 500, 0.1))
    with refused(ModelError, "bad-ratio"):
        identify(problem, method="tls", ratio=0.0)
    with refused(ModelError, "unknown-base-parameter", "Fo7"):
        identify(problem, method="tls", exact=["Fo7"])
    x = rng.normal(size=(3, 300, 1))
    with refused(NotPossibleError, "all-torques-zero"):
        identify(Problem.from_model(Straight(), Samples.from_arrays(*x, np.zeros((300, 1)))), method="tls")
    with refused(NotPossibleError, "errors-too-large"):
        identify(Problem.from_model(Straight(), Samples.from_arrays(*x, rng.normal(size=(300, 1)))), method="tls",
                 ratio=1e3)
