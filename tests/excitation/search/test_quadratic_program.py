"""Quadratic programmes: the conditions of optimality, other solvers, and rows that contradict each other."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize

from dynid.excitation.search.quadratic_program import solve_qp


def test_quadratic_programmes_against_the_conditions_of_optimality() -> None:
    rng = np.random.default_rng(6)
    for n, m in ((3, 5), (12, 40), (30, 100)):
        a = rng.normal(size=(n, n))
        H, g = a @ a.T + np.eye(n), 5 * rng.normal(size=n)
        rows, bounds = rng.normal(size=(m, n)), rng.uniform(0.0, 0.5, m)
        x, solved = solve_qp(H, g, rows, bounds, 1e-10, 1000)
        assert solved and (rows @ x - bounds).max() < 1e-8
        active = bounds - rows @ x < 1e-7
        multipliers, *_ = np.linalg.lstsq(rows[active].T, -(H @ x + g), rcond=None)
        assert multipliers.min() > -1e-7
        np.testing.assert_allclose(rows[active].T @ multipliers, -(H @ x + g), atol=1e-6)
    _, solved = solve_qp(np.eye(1), np.zeros(1), np.array([[1.0], [-1.0]]), np.array([-1.0, -1.0]), 1e-10, 100)
    assert not solved  # x <= -1 and x >= 1


def test_against_scipy() -> None:
    rng = np.random.default_rng(11)
    for n, m in ((2, 6), (5, 12), (8, 30)):
        a = rng.normal(size=(n, n))
        H, g = a @ a.T + 0.5 * np.eye(n), 5 * rng.normal(size=n)
        rows, bounds = rng.normal(size=(m, n)), rng.uniform(0.0, 0.5, m)
        x, solved = solve_qp(H, g, rows, bounds, 1e-10, 1000)
        theirs = minimize(lambda x, H=H, g=g: g @ x + 0.5 * x @ H @ x, np.zeros(n), jac=lambda x, H=H, g=g: g + H @ x,
                          method="SLSQP", constraints=LinearConstraint(rows, ub=bounds), tol=1e-11,
                          options={"maxiter": 500})
        assert solved and theirs.success
        np.testing.assert_allclose(x, theirs.x, atol=1e-6)
        assert g @ x + 0.5 * x @ H @ x == pytest.approx(theirs.fun, rel=1e-9)


def test_projection_onto_a_box_is_clipping() -> None:
    rng = np.random.default_rng(12)
    target = 3 * rng.normal(size=20)
    rows = np.vstack([np.eye(20), -np.eye(20)])
    x, solved = solve_qp(np.eye(20), -target, rows, np.ones(40), 1e-12, 200)
    assert solved
    np.testing.assert_allclose(x, np.clip(target, -1, 1), atol=1e-12)


def test_rows_taken_in_are_dropped_again() -> None:
    """x1 + x2 <= -0.9 is overstepped most at the beginning, (5, 1.5), and so taken in first; it does not bind at the
    solution (1, -2), where x1 <= 1 and x2 <= -2 do."""
    rows, bounds = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]]), np.array([-0.9, 1.0, -2.0])
    over = (rows @ [5.0, 1.5] - bounds) / np.linalg.norm(rows, axis=1)
    assert np.argmax(over) == 0
    x, solved = solve_qp(np.diag([1.0, 10.0]), -np.array([5.0, 15.0]), rows, bounds, 1e-12, 50)
    assert solved
    np.testing.assert_allclose(x, [1.0, -2.0], atol=1e-12)


def test_too_few_steps_are_no_solution() -> None:
    rows = np.vstack([np.eye(5), -np.eye(5)])
    _, solved = solve_qp(np.eye(5), -3 * np.ones(5), rows, np.ones(10), 1e-12, 4)
    assert not solved
