"""The plain recursion against Pinocchio, and the kernels against the recursion; over several kinds of numbers."""

from __future__ import annotations

import cmath
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pinocchio as pin
import pytest
from newton_euler import inverse_dynamics
from robots import random_inertia, random_robot, to_pinocchio

from dynid import dynamics
from dynid.arrays import Array
from dynid.dynamics.adjoint import adjoint_kernel
from dynid.dynamics.tree import robot_tree
from dynid.robot import Body, Joint, Robot
from dynid.robot.robot_files import builtin_names

RANDOM = [(1, 0), (4, 1), (6, 2), (9, 3)]  # joints and seed: trees with branches, turning and sliding joints


def robots() -> list[Robot]:
    built_in = [Robot.builtin(name) for name in builtin_names()]
    return ([robot for robot in built_in if robot.followers is None]
            + [random_robot(np.random.default_rng(seed), dof, prismatic=0.5) for dof, seed in RANDOM])


def close(ours: object, theirs: Array, tolerance: float = 1e-12) -> None:
    assert np.abs(np.asarray(ours) - theirs).max() < tolerance * np.abs(theirs).max()


def torques(robot: Robot, inertias: Array, q: Array, dq: Array, ddq: Array, **functions: object) -> Array:
    """The recursion's torques as an array."""
    return np.array(inverse_dynamics(robot, inertias.tolist(), q.tolist(), dq.tolist(), ddq.tolist(), **functions))


@pytest.mark.parametrize("robot", robots(), ids=lambda robot: f"{robot.name}-{robot.dof}")
def test_every_robot_against_pinocchio_and_the_kernels(robot: Robot) -> None:
    rng = np.random.default_rng(robot.dof)
    inertias = np.array([random_inertia(rng) for _ in robot.bodies])  # not every robot comes with its own
    q, dq, ddq = rng.normal(size=(3, robot.dof)) * 2.0
    ours = torques(robot, inertias, q, dq, ddq)
    model = to_pinocchio(robot.with_inertias(inertias))
    close(ours, pin.rnea(model, model.createData(), q, dq, ddq), 1e-11)
    close(dynamics.inverse_dynamics(robot, inertias, q, dq, ddq), ours)
    columns = [torques(robot, unit.reshape(-1, 10), q, dq, ddq) for unit in np.eye(10 * robot.dof)]
    close(dynamics.regressor(robot, q, dq, ddq), np.array(columns).T)


@pytest.mark.parametrize(("dof", "seed"), RANDOM)
def test_complex_steps_give_the_derivatives_of_the_adjoint(dof: int, seed: int) -> None:
    """The imaginary part of f(x + ih) / h is f'(x) without any difference of rounded numbers."""
    robot = random_robot(np.random.default_rng(seed), dof, prismatic=0.5)
    motion = np.random.default_rng(seed + 10).normal(size=(3, 1, dof))
    place = np.arange(10 * dof * dof).reshape(dof, 10 * dof)
    found, expected = np.zeros((dof, 3, dof)), np.zeros((dof, 3, dof))
    for j in range(dof):
        weights = np.zeros((10 * dof * dof, 1))
        weights[place[j]] = robot.inertias.reshape(-1, 1)  # the sum of weights times entries is then tau_j
        out = np.zeros((3, 1, dof))
        adjoint_kernel(*robot_tree(robot), *motion, place, weights, out, 0, 1)
        found[j] = out[:, 0]
    for which in range(3):
        for k in range(dof):
            step = motion[:, 0].astype(complex)
            step[which, k] += 1e-30j
            expected[:, which, k] = torques(robot, robot.inertias, *step, cos=cmath.cos, sin=cmath.sin).imag / 1e-30
    close(found, expected, 1e-11)


def rational_robot() -> Robot:
    """An arm whose poses are exact in binary, with a sliding joint and a branch."""
    turn = np.array([[0, 0, 1, 0.5], [1, 0, 0, -0.25], [0, 1, 0, 0.75], [0, 0, 0, 1.0]])
    joints = (Joint("a", "revolute", -1, turn), Joint("b", "prismatic", 0, turn, turn),
              Joint("c", "revolute", 1, turn @ turn, turn.T @ turn), Joint("d", "revolute", 0, turn, turn))
    rng = np.random.default_rng(0)
    return Robot("rational", joints, tuple(Body(f"B{k}", rng.integers(-8, 8, 10) / 4.0) for k in range(4)),
                 gravity=np.array([0.5, 0.0, -9.75]))


PYTHAGORAS = (Fraction(3, 5), Fraction(4, 5))  # cosine and sine of one angle, exactly


def test_fractions_are_exact() -> None:
    """Torques are exactly linear in the ten numbers, and rounding them gives what floats give."""
    robot = rational_robot()
    fractions = [[Fraction(x) for x in row] for row in np.random.default_rng(1).integers(-9, 9, (3, 4)).tolist()]

    def exact(inertias: list[list[Fraction]]) -> list[Fraction]:
        return inverse_dynamics(robot, inertias, *fractions, cos=lambda x: PYTHAGORAS[0], sin=lambda x: PYTHAGORAS[1],
                                number=Fraction)

    own = [[Fraction(x) for x in row] for row in robot.inertias.tolist()]
    whole = exact(own)
    assert all(type(x) is Fraction for x in whole)
    total = [Fraction(0)] * 4
    for i in range(4):
        for k in range(10):
            column = exact([[Fraction(int((i, k) == (r, c))) for c in range(10)] for r in range(4)])
            total = [t + own[i][k] * y for t, y in zip(total, column, strict=True)]
    assert total == whole
    floats = inverse_dynamics(robot, robot.inertias.tolist(), *np.array(fractions, dtype=float).tolist(),
                              cos=lambda x: 0.6, sin=lambda x: 0.8)
    close(floats, np.array(whole, dtype=float), 1e-14)


class Symbol:
    """A number that knows only + - *: each gives a line of Python and the name of its result."""

    lines: ClassVar[list[str]] = []

    def __init__(self, text: str) -> None:
        self.name = f"x{len(self.lines)}"
        self.lines.append(f"{self.name} = {text}")

    def __add__(self, other: Symbol) -> Symbol:
        return Symbol(f"{self.name} + {other.name}")

    def __sub__(self, other: Symbol) -> Symbol:
        return Symbol(f"{self.name} - {other.name}")

    def __mul__(self, other: Symbol) -> Symbol:
        return Symbol(f"{self.name} * {other.name}")


def test_symbols_give_code_for_the_torques() -> None:
    robot = random_robot(np.random.default_rng(7), 6)
    motion = np.random.default_rng(8).normal(size=(3, 6))
    Symbol.lines.clear()
    names = [[Symbol(f"{letter}[{j}]") for j in range(6)] for letter in ("q", "dq", "ddq")]
    ten = [[Symbol(f"ten[{i}, {k}]") for k in range(10)] for i in range(6)]
    found = inverse_dynamics(robot, ten, *names, cos=lambda x: Symbol(f"cos({x.name})"),
                             sin=lambda x: Symbol(f"sin({x.name})"), number=lambda x: Symbol(repr(float(x))))
    values = {"q": motion[0], "dq": motion[1], "ddq": motion[2], "ten": robot.inertias, "cos": np.cos, "sin": np.sin}
    exec("\n".join(Symbol.lines), values)
    close([values[x.name] for x in found], dynamics.inverse_dynamics(robot, None, *motion))


def test_arrays_of_objects_are_samples_side_by_side() -> None:
    """A number may be an array: the recursion then does a batch."""
    robot = random_robot(np.random.default_rng(9), 5)
    motion = np.random.default_rng(10).normal(size=(3, 6, 5))
    ours = inverse_dynamics(robot, robot.inertias.tolist(), *(list(x.T) for x in motion), cos=np.cos, sin=np.sin)
    close(np.array(ours).T, dynamics.inverse_dynamics(robot, None, *motion))
    as_objects = inverse_dynamics(robot, robot.inertias.astype(object), *motion[:, 0].astype(object))
    close(np.array(as_objects, dtype=float), dynamics.inverse_dynamics(robot, None, *motion[:, 0]))
