"""The descent: gradients by differences, conditions of optimality by a linear programme, another solver's optimum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, linprog, minimize

from dynid.arrays import Array
from dynid.excitation import Fourier, HalfSpace, Limits, Measurement, PriorKnowledge, Workspace
from dynid.excitation.search.experiment_design import design_experiment
from dynid.excitation.search.motion_problem import MotionProblem, local_maxima
from dynid.excitation.search.sequential import SMALL_GAIN, QuadraticModel, descend
from dynid.excitation.search.starts import Anchor, random_motion, safe_posture
from dynid.model import Model, make_terms
from dynid.robot import Robot


def problem(criterion: str = "d", harmonics: int = 3, **limits: Any) -> MotionProblem:
    robot = Robot.builtin("arm3r")
    return design_experiment(Model(robot, make_terms(robot, defaults=True)), Limits.from_robot(robot, **limits),
                             Fourier(6.0, harmonics), criterion, Measurement(), PriorKnowledge()).problem


def start(of: MotionProblem, seed: int = 0) -> Array:
    return random_motion(Anchor.from_problem(of, safe_posture(of, seed)), np.random.default_rng(seed))


def linear_limits(of: MotionProblem) -> tuple[Array, Array]:
    """Rows and bounds of every finite linear limit at every sample, on z.ravel(), written without the problem's own."""
    (low, high), (dof, k) = of.bounds, of.unit.shape
    rows, bounds = [], []
    for s in range(4):
        for j in range(dof):
            block = np.zeros((len(of.t), dof, k))
            block[:, j] = of.family.family.functions(of.t)[s] @ of.family.null
            fixed = of.family.family.functions(of.t)[s] @ of.family.fixed[j]
            for sign, bound in ((1.0, high[s, j]), (-1.0, -low[s, j])):
                if np.isfinite(bound):
                    rows.append(sign * block.reshape(len(of.t), -1))
                    bounds.append(bound - sign * fixed)
    return np.vstack(rows), np.concatenate(bounds)


@pytest.mark.parametrize("criterion", ["condition", "d", "a"])
def test_gradient_by_differences(criterion: str) -> None:
    one = problem(criterion)
    z = start(one)
    rng = np.random.default_rng(1)
    value, gradient = one.value_and_gradient(z, 4.0)
    assert value == one.value(z, 4.0)
    for _ in range(3):
        d = rng.normal(size=z.shape) * one.unit
        slopes = [(one.value(z + h * d, 4.0) - one.value(z - h * d, 4.0)) / (2 * h) for h in (2e-4, 1e-4)]
        assert float(np.sum(gradient * d)) == pytest.approx((4 * slopes[1] - slopes[0]) / 3, rel=1e-5, abs=1e-7)


def test_rows_of_nonlinear_limits_by_differences() -> None:
    space = Workspace.from_robot(Robot.builtin("arm3r"), radius=0.03, planes=[HalfSpace((0, 0, 1), -0.3, "table")])
    one = problem(torque=[2.0, 8.0, 2.0], space=space)
    z, h = start(one), 1e-6
    rows, now = one.nonlinear_rows(z, one.nonlinear_values(z))
    assert len(rows) > 5 and now.min() > -0.5
    d = np.random.default_rng(2).normal(size=z.shape) * one.unit
    values = [np.concatenate([x.ravel() for x in one.nonlinear_values(z + s * d)]) for s in (-h, 0.0, h)]
    slopes = (values[2] - values[0]) / (2 * h)
    for row, value in zip(rows, now, strict=True):
        same = np.abs(values[1] - value) < 1e-12
        assert np.abs(slopes[same] - row @ d.ravel()).min() < 1e-4 * (1 + np.abs(slopes[same]).max())


@pytest.mark.parametrize("seed", range(3))
def test_no_direction_is_left_that_lowers_the_objective(seed: int) -> None:
    """First-order optimality: inside all limits the gradient promises next to nothing, by a linear programme."""
    one = problem()
    began = start(one, seed)
    *_, last = descend(one, began, lambda: False)
    rows, bounds = linear_limits(one)
    assert (rows @ last.z.ravel() - bounds).max() < 1e-9
    gradient = one.value_and_gradient(last.z)[1] * one.unit
    promised = linprog(gradient.ravel(), rows * one.unit.ravel(), bounds - rows @ last.z.ravel() + 1e-9,
                       bounds=(-0.1, 0.1))
    first = one.value_and_gradient(began)[1] * one.unit
    before = linprog(first.ravel(), rows * one.unit.ravel(), np.maximum(bounds - rows @ began.ravel(), 0.0),
                     bounds=(-0.1, 0.1))
    assert promised.success and before.success
    assert -promised.fun < 0.03 * -before.fun


@pytest.mark.parametrize("seed", [2, 3])
def test_scipy_finds_nothing_better_nearby(seed: int) -> None:
    one = problem(harmonics=2)
    began = start(one, seed)
    *_, last = descend(one, began, lambda: False)
    rows, bounds = linear_limits(one)
    unit = one.unit.ravel()

    def value_and_gradient(x: Array) -> tuple[float, Array]:
        value, gradient = one.value_and_gradient((x * unit).reshape(one.unit.shape))
        return value, gradient.ravel() * unit

    theirs = minimize(value_and_gradient, last.z.ravel() / unit, jac=True, method="SLSQP", bounds=[
        (x - 0.1, x + 0.1) for x in last.z.ravel() / unit], constraints=LinearConstraint(rows * unit, ub=bounds))
    # The search ends when its steps gain less than SMALL_GAIN: what remains to be gained is below one such step.
    assert last.objective <= theirs.fun + SMALL_GAIN
    assert last.objective < one.value(began) - 0.4


def test_every_iterate_keeps_the_linear_limits_and_may_be_stopped() -> None:
    one = problem("condition", jerk=60.0)
    rows, bounds = linear_limits(one)
    passed: list[Array] = []
    for iterate in descend(one, start(one), lambda: len(passed) >= 12):
        passed.append(iterate.z)
        assert (rows @ iterate.z.ravel() - bounds).max() < 1e-9
    assert len(passed) == 12


def test_curvature_of_a_quadratic_is_learnt() -> None:
    """n steps along the eigenvectors of a quadratic form teach its hessian."""
    rng = np.random.default_rng(3)
    vectors, _ = np.linalg.qr(rng.normal(size=(4, 4)))
    H = (vectors * [1.0, 2.0, 5.0, 9.0]) @ vectors.T
    model = QuadraticModel(np.eye(4))
    for k in range(4):
        model = model.updated(vectors[:, k], H @ vectors[:, k], True)
    np.testing.assert_allclose(model.hessian, H, atol=1e-12)
    assert model.radius == 0.5 and not model.fresh and model.restarted().fresh and model.restarted().radius == 0.25


def test_local_maxima_are_those_of_a_sine() -> None:
    t = np.linspace(0.0, 1.0, 1001)
    peaks = local_maxima(np.sin(6 * np.pi * t)[None, :, None])[0, :, 0]
    np.testing.assert_allclose(t[peaks], [1 / 12, 5 / 12, 9 / 12, 1.0], atol=1e-3)  # it ends while it rises
