"""Criteria: what they say they are, and their gradients against differences."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refused

from dynid.arrays import Array
from dynid.errors import DynidError
from dynid.excitation import CRITERIA, Criterion, Information
from dynid.excitation.search.criteria import Eigenvalues
from dynid.excitation.trajectories.trajectory import fourier_functions
from dynid.model import Model, make_terms
from dynid.regression import base_parameters
from dynid.robot import Robot


@pytest.mark.parametrize("name", CRITERIA)
@pytest.mark.parametrize("order", [None, 8.0])
def test_gradient_of_each_criterion_by_coefficients(name: str, order: float | None) -> None:
    robot = Robot.builtin("arm3r")
    model = Model(robot, make_terms(robot, defaults=True)).with_smooth_signs(0.1)
    base = base_parameters(model)
    rng = np.random.default_rng(6)
    info = Information.from_model(model, base, noise=rng.uniform(0.5, 2.0, 3), scale=rng.uniform(0.5, 2.0, len(base)))
    functions = fourier_functions(np.linspace(0, 5.0, 200), 5, 5.0)
    criterion = Criterion(name)
    x, d = 0.8 * rng.normal(size=(3, 11)), rng.normal(size=(3, 11))

    def value(x: Array) -> float:
        q, dq, ddq = np.ascontiguousarray(functions[:3] @ x.T)
        return criterion(info.matrix(info.entries(q, dq, ddq)), order)[0]

    q, dq, ddq = np.ascontiguousarray(functions[:3] @ x.T)
    entries = info.entries(q, dq, ddq)
    _, by_matrix = criterion(info.matrix(entries), order)
    slope = info.slope(q, dq, ddq, entries, by_matrix)
    ours = sum(float(np.sum((slope[k].T @ functions[k]) * d)) for k in range(3))
    h = 2e-4  # Richardson: fourth order
    rough, fine = ((value(x + s * d) - value(x - s * d)) / (2 * s) for s in (2 * h, h))
    assert ours == pytest.approx((4 * fine - rough) / 3, rel=1e-6)


def test_criteria_are_what_they_say() -> None:
    rng = np.random.default_rng(7)
    w = rng.normal(size=(40, 6)) * np.array([1, 2, 3, 4, 5, 6.0])
    a = w.T @ w
    assert Criterion("condition")(a)[0] == pytest.approx(np.linalg.cond(w))
    assert Criterion("frobenius")(a)[0] == pytest.approx(np.sqrt(np.trace(a) * np.trace(np.linalg.inv(a))))
    s = np.linalg.svd(w, compute_uv=False)
    assert Criterion("condition+", 2.5)(a)[0] == pytest.approx(np.linalg.cond(w) + 2.5 / s[-1])
    assert Criterion("d")(a)[0] == pytest.approx(-np.linalg.slogdet(a)[1] / 6)
    assert Criterion("a")(a)[0] == pytest.approx(np.sqrt(np.trace(np.linalg.inv(a)) / 6))
    assert Criterion("largest")(a)[0] == pytest.approx(np.sqrt(np.diag(np.linalg.inv(a)).max()))
    hadamard = np.log(np.prod(np.diag(a)) / np.linalg.det(a)) / 6
    assert Criterion("hadamard")(a)[0] == pytest.approx(hadamard)
    assert Criterion("hadamard")(np.diag([1.0, 5.0, 9.0]))[0] == pytest.approx(0.0, abs=1e-12)
    for name in ("condition", "condition+", "largest"):  # approximations come from above
        values = [Criterion(name)(a, p)[0] for p in (1, 4, 16, 256)]
        assert values == sorted(values, reverse=True)
        assert values[-1] == pytest.approx(Criterion(name)(a)[0], rel=0.02)
    # Nothing excited is very bad, not a division by zero
    assert Eigenvalues.from_matrix(np.diag([0.0, 1.0])).values[0] > 0


@pytest.mark.parametrize("name", CRITERIA)
@pytest.mark.parametrize("order", [None, 8.0])
def test_slope_by_the_matrix(name: str, order: float | None) -> None:
    rng = np.random.default_rng(10)
    w = rng.normal(size=(30, 5)) * np.array([1, 2, 3, 4, 5.0])
    a, d = w.T @ w, rng.normal(size=(5, 5))
    d = d + d.T
    criterion, h = Criterion(name, weight=1.7), 1e-4
    slope = (criterion(a + h * d, order)[0] - criterion(a - h * d, order)[0]) / (2 * h)
    ours = criterion(a, order)[1]
    np.testing.assert_allclose(ours, ours.T, atol=1e-12)
    assert float(np.sum(ours * d)) == pytest.approx(slope, rel=1e-6)


def test_unknown_criterion_is_named() -> None:
    with refused(DynidError, "unknown-criterion", "'best'"):
        Criterion("best")
