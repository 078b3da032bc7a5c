"""Euler and Lagrange's equations against the recursion's, and derivatives against differences."""

from __future__ import annotations

import numpy as np
import pytest
from programs import close
from refusals import refused
from robots import random_robot

from dynid.errors import NotPossibleError
from dynid.robot import Robot
from dynid.symbolic import generate
from dynid.symbolic.graph import FUNCTIONS, Derivatives, Graph
from reproductions._lagrange import euler_lagrange


def evaluated(function, inputs):
    def symbol(name):
        one, index = name[:-1].split("[")
        return inputs[one][..., int(index)]

    found = function.graph.replay(function.values, symbol, lambda name, of: getattr(np, name)(*of))
    return np.stack(np.broadcast_arrays(*found), axis=-1)


@pytest.mark.parametrize("robot", [Robot.builtin("arm3r"), Robot.builtin("scara2"),
                                   *(random_robot(np.random.default_rng(seed), 2 + seed % 2) for seed in range(6))],
                         ids=lambda robot: robot.name)
def test_two_derivations_agree_at_200_states(robot):
    rng = np.random.default_rng(0)
    program = generate(robot, ["inverse_dynamics"])
    motion = dict(zip(("q", "dq", "ddq"), rng.normal(size=(3, 200, robot.dof)), strict=True))
    theta = rng.normal(size=10 * robot.dof)
    energy = evaluated(euler_lagrange(robot), {**motion, "theta": np.tile(theta, (200, 1))})
    close(program("inverse_dynamics", **motion, p=np.tile(program.numbers_of(theta), (200, 1))), energy)


def test_robots_with_many_joints_are_refused():
    with refused(NotPossibleError, "not-possible", "'puma560'", "4 joints"):
        euler_lagrange(Robot.builtin("puma560"))


def test_derivatives_against_differences():
    graph = Graph()
    x, y = graph.symbol("x[0]"), graph.symbol("x[1]")
    value = graph.apply("sin", x * y) / (2.0 + x * x) + graph.apply("tanh", -x) * graph.apply("atan", y - 3.0 * x)
    value = value - graph.apply("abs", -(x * y)) * graph.apply("cos", x + y)
    slope = Derivatives(graph, {x: graph.one})(value)

    def at(values, a, b):
        return graph.replay([values], lambda name: (a, b)[int(name[2])], lambda name, of: FUNCTIONS[name](*of))[0]

    for a, b in ((0.3, 0.7), (-1.2, 0.4), (2.0, -0.5)):
        h = 1e-5
        assert at(slope, a, b) == pytest.approx((at(value, a + h, b) - at(value, a - h, b)) / (2 * h), rel=1e-8)
