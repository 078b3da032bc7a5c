"""Rows of products (Lomakin and Deutscher, eq. 21-27) against integrals by scipy, torques, and the momentum form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from motions import arm, fourier
from refusals import refused
from scipy.integrate import quad
from scipy.special import eval_jacobi

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.estimate import Problem, identify
from dynid.model import Parameter, Parameters
from dynid.recording import Recording
from dynid.recording.preparation.polynomial import PolynomialKernel, ProductTaps
from dynid.recording.sample_preparation import prepare

T, RATE, DELAY, ALPHA, BETA = 0.1, 400.0, 0.03, 3.0, 4.0


def projected(function: object, order: int = 1) -> float:
    """The approximation (order N) at the delay of a function of the lag s, by scipy's polynomials and integrals."""
    at, total = 1.0 - 2.0 * DELAY / T, 0.0
    for i in range(order + 1):
        def weighted(x: float, i: int = i) -> float:
            return float((1 - x) ** ALPHA * (1 + x) ** BETA * eval_jacobi(i, ALPHA, BETA, x))
        norm = quad(lambda x, i=i: weighted(x) * eval_jacobi(i, ALPHA, BETA, x), -1, 1)[0]
        moment = quad(lambda x: weighted(x) * function(0.5 * T * (1.0 - x)), -1, 1)[0]
        total += moment / norm * eval_jacobi(i, ALPHA, BETA, at)
    return total


def test_products_are_projections_of_the_product() -> None:
    """The first factor is a polynomial of order N* = 2 or less; the other one appears as positions only."""
    taps = ProductTaps.from_kernel(PolynomialKernel(T, 1, ALPHA, BETA, DELAY), 2, RATE)
    s = np.arange(round(T * RATE), -1, -1) / RATE  # the oldest sample first
    one, two, three = (np.polynomial.Polynomial(values) for values in (
        [1.0, -30.0, 400.0], [0.3, 2.0, -40.0, 90.0], [0.1, 5.0, 80.0]))
    coefficients = taps.coefficients @ one(s)
    assert coefficients @ (taps.accelerations @ two(s)) == pytest.approx(
        projected(lambda lag: one(lag) * two.deriv(2)(lag)), rel=1e-9)
    # Derivatives by time are minus those by lag; the product of two velocities has no sign.
    velocity = taps.coefficient_rates @ three(s)
    assert np.einsum("i,m,iml,l", coefficients, velocity, taps.velocities, two(s)) == pytest.approx(
        projected(lambda lag: one(lag) * three.deriv()(lag) * two.deriv()(lag)), rel=1e-9)


@pytest.mark.parametrize("known", [{}, {"M3": 1.2, "Fv2": 0.1987}])
def test_noiseless_motions_give_the_truth_and_the_momentum_form(known: dict[str, float]) -> None:
    model, theta = arm()
    q, dq, ddq = fourier(3, seconds=10.0, rate=500.0)
    log = Recording(t=np.arange(len(q)) / 500.0, q=q, tau=model.inverse_dynamics(theta, q, dq, ddq),
                    joints=model.robot.joint_names, source="simulated")
    found = {}
    for kind in ("kernel", "products"):
        problem = Problem.from_model(model, prepare(log, equations=kind, kernel_window=0.08), known=known)
        assert problem.filtered == kind and problem.regression.dof == 3
        found[kind] = identify(problem, method="ols").values
        truth = problem.base.reduce(theta)
        assert np.abs(found[kind] - truth).max() < 0.02 * np.abs(truth).max()
    assert np.abs(found["kernel"] - found["products"]).max() < 0.02 * np.abs(found["kernel"]).max()


@dataclass(frozen=True)
class DampedFlywheel:
    """One body whose inertia and friction are one term: no product form."""

    dof = 1

    @property
    def parameters(self) -> Parameters:
        return Parameters((Parameter("J", "kg m^2", 0, "joint1"),))

    def regressor(self, q: Array, dq: Array, ddq: Array) -> Array:
        return (ddq + dq ** 3)[:, :, None]


def test_a_term_that_is_not_quadratic_in_velocities_is_refused() -> None:
    q, dq, ddq = fourier(1, seconds=10.0)
    log = Recording(t=np.arange(len(q)) / 200.0, q=q, tau=ddq + dq ** 3, joints=("joint1",), source="simulated")
    with refused(ModelError, "no-product-form", "equations = 'kernel'"):
        Problem.from_model(DampedFlywheel(), prepare(log, equations="products", kernel_window=0.1))
