"""Derivatives of entries come from the lines that compute them, and differ from closed forms by rounding alone."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.model.term import (
    DDQ,
    DQ,
    Differentiated,
    NotDifferentiableError,
    Q,
    Signal,
    derived_slopes,
    entry_differences,
    pull_back,
)
from dynid.robot import Robot

ROBOT = Robot.load("arm3r")
MOTION = np.random.default_rng(8).normal(size=(3, 40, 3))
Y, X = MOTION[0, :, 1], MOTION[1, :, 2]

# A function of y = q2 and x = dq3, and its derivatives by both.
CASES = {
    "arithmetic": (lambda y, x: 2.0 * x * y - x / (3.0 + y * y) + 1.0 - y,
                   2.0 * X + 2.0 * X * Y / (3.0 + Y * Y) ** 2 - 1.0, 2.0 * Y - 1.0 / (3.0 + Y * Y)),
    "powers": (lambda y, x: (y ** 2 + 1.0) ** 1.5 + x ** 3 + np.square(x) + y ** 0 + 2.0 ** x,
               3.0 * Y * np.sqrt(Y ** 2 + 1.0), 3.0 * X ** 2 + 2.0 * X + np.log(2.0) * 2.0 ** X),
    "functions": (lambda y, x: np.sin(y) * np.cos(x) + np.tanh(x / 0.3) + np.exp(-y) + np.sqrt(1.0 + x * x),
                  np.cos(Y) * np.cos(X) - np.exp(-Y),
                  -np.sin(Y) * np.sin(X) + (1.0 - np.tanh(X / 0.3) ** 2) / 0.3 + X / np.sqrt(1.0 + X * X)),
    "angles": (lambda y, x: np.arctan2(y, x) - np.arctan(x), X / (X * X + Y * Y),
               -Y / (X * X + Y * Y) - 1.0 / (1.0 + X * X)),
    "branches": (lambda y, x: np.abs(x) * np.sign(y) + np.maximum(x, 0.2) + np.minimum(y, x)
                 + np.where(x > 0, y * x, -y),
                 np.where(Y <= X, 1.0, 0.0) + np.where(X > 0, X, -1.0),
                 np.sign(X) * np.sign(Y) + np.where(X >= 0.2, 1.0, 0.0) + np.where(Y > X, 1.0, 0.0)
                 + np.where(X > 0, Y, 0.0)),
}


@pytest.mark.parametrize("name", CASES)
def test_derivatives_equal_closed_forms(name):
    function, by_y, by_x = CASES[name]
    found = function(Signal(MOTION[0], Q)[:, 1], Signal(MOTION[1], DQ)[:, 2])
    assert isinstance(found, Differentiated) and set(found.partials) == {(Q, 1), (DQ, 2)}
    np.testing.assert_allclose(found.value, function(Y, X), rtol=1e-15)
    np.testing.assert_allclose(found.partials[Q, 1], by_y, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(found.partials[DQ, 2], by_x, rtol=1e-12, atol=1e-13)


def test_sums_over_joints_and_last_columns():
    weights = np.array([0.5, 0.0, -2.0])
    found = np.tanh(Signal(MOTION[2], DDQ) @ weights) + Signal(MOTION[2], DDQ)[:, -1]
    slope = 1.0 - np.tanh(MOTION[2] @ weights) ** 2
    assert set(found.partials) == {(DDQ, 0), (DDQ, 2)}
    np.testing.assert_allclose(found.partials[DDQ, 0], 0.5 * slope, rtol=1e-13)
    np.testing.assert_allclose(found.partials[DDQ, 2], 1.0 - 2.0 * slope, rtol=1e-12)


@pytest.mark.parametrize("use", [np.asarray, np.cumsum, lambda x: np.add.reduce(x), lambda x: np.clip(x, 0.0, 1.0)])
def test_values_never_lose_their_derivatives_in_silence(use):
    with pytest.raises(TypeError):
        use(Signal(MOTION[1], DQ)[:, 0])


def test_signals_are_taken_by_columns():
    for key in (0, (slice(0, 3), 1), (slice(None), [0, 1])):
        with pytest.raises(NotDifferentiableError):
            Signal(MOTION[1], DQ)[key]
    with pytest.raises(TypeError):
        np.abs(Signal(MOTION[1], DQ))


class Sorted:
    """A term whose entries use a function without a derivative here."""

    def parameters(self, robot):
        raise NotImplementedError

    def entries(self, robot, q, dq, ddq):
        yield 1, 0, np.sum(q * q, axis=1)


class Plain(Sorted):
    def entries(self, robot, q, dq, ddq):
        yield 1, 0, q[:, 0] * q[:, 0] + q[:, 1] * q[:, 1] + q[:, 2] * q[:, 2]


def test_other_functions_are_differenced():
    assert derived_slopes(Sorted(), ROBOT, *MOTION) is None
    assert derived_slopes(Plain(), ROBOT, *MOTION) is not None
    place, weights = np.array([[-1], [0], [-1]]), np.random.default_rng(2).normal(size=(1, 40))
    expected = np.zeros((3, 40, 3))
    expected[Q] = 2.0 * MOTION[0] * weights[0][:, None]
    for term, tolerance in ((Sorted(), 1e-9), (Plain(), 1e-14)):
        found = np.zeros((3, 40, 3))
        pull_back(term, ROBOT, *MOTION, place, weights, found)
        np.testing.assert_allclose(found, expected, atol=tolerance)
    np.testing.assert_allclose(entry_differences(Plain(), ROBOT, *MOTION, place, weights), expected, atol=1e-9)
