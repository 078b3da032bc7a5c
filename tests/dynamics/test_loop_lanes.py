"""Closed chains over long motions: side by side as one by one, whatever the motion does."""

from __future__ import annotations

import numpy as np
import pytest
from chains import CHAINS, chain
from refusals import refused

from dynid import dynamics
from dynid.arrays import Array
from dynid.dynamics.elimination import INVERT, MULTIPLY, planned
from dynid.dynamics.following import TreeMotion, closed_chain, closes, random_postures, tree_motion
from dynid.errors import NotPossibleError
from dynid.robot import Robot
from dynid.robot.loops import closed
from dynid.robot.pose import translation


def one_by_one(robot: Robot, *motion: Array) -> TreeMotion:
    """Pieces too short to be walked side by side."""
    parts = [tree_motion(robot, *(x[k:k + 50] for x in motion)) for k in range(0, len(motion[0]), 50)]
    return TreeMotion(*(np.concatenate(rows) for rows in zip(*parts, strict=True)))


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("rate", [1000.0, 60.0])
def test_side_by_side_is_one_by_one(name: str, rate: float) -> None:
    robot = chain(name)
    begin, t = closed_chain(robot).begin[:robot.dof], np.arange(700)[:, None] / rate
    phase, speed = np.arange(robot.dof), 3.0 + np.arange(robot.dof)
    q = begin + 0.05 * np.sin(speed * t + phase)
    dq, ddq = 0.05 * speed * np.cos(speed * t + phase), -0.05 * speed ** 2 * np.sin(speed * t + phase)
    for found, wanted in zip(tree_motion(robot, q, dq, ddq), one_by_one(robot, q, dq, ddq), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-10 * max(1.0, np.abs(wanted).max()))


@pytest.mark.parametrize("name", ["delta", "palletiser"])
def test_postures_far_apart_and_steps_are_solved_too(name: str) -> None:
    robot = Robot.builtin(name)
    rng = np.random.default_rng(2)
    far = random_postures(robot, 200, rng)
    begin = closed_chain(robot).begin[:robot.dof]
    steps = begin + 0.02 * np.repeat(rng.normal(size=(10, robot.dof)), 30, axis=0)  # still, and then elsewhere
    for q in (far, steps):
        dq = rng.normal(size=q.shape)
        for found, wanted in zip(tree_motion(robot, q, dq, dq), one_by_one(robot, q, dq, dq), strict=True):
            np.testing.assert_allclose(found, wanted, atol=1e-9 * max(1.0, np.abs(wanted).max()))


def test_the_sample_that_does_not_close_is_named_within_a_long_motion() -> None:
    """A crank too long to go round: all is well until its limit, and after it comes back."""
    robot = Robot.builtin("four-bar")
    assert robot.followers is not None and robot.followers.loops is not None
    crank, coupler, rocker = robot.followers.tree.joints
    tree = type(robot)(robot.name, (crank, type(coupler)(coupler.name, coupler.kind, coupler.parent,
                                                         translation(0.45, 0.0, 0.0)), rocker),
                       robot.followers.tree.bodies, robot.gravity)
    robot = closed(tree, robot.followers.loops.closures, ["coupler", "rocker"],
                   {"crank": 1.0, "coupler": -1.0, "rocker": 1.4})
    q = 1.0 + 2.2 * np.sin(np.linspace(0.0, np.pi, 1500))[:, None]
    good = closes(robot, q)
    assert good[:300].all() and good[-300:].all() and not good.all()
    np.testing.assert_array_equal(good, np.concatenate([closes(robot, q[k:k + 50]) for k in range(0, len(q), 50)]))
    with refused(NotPossibleError, "loop-not-solvable", "'pin'", f"sample {np.flatnonzero(~good)[0]}", "crank"):
        dynamics.inertia_matrix(robot, None, q)


def test_a_planned_elimination_solves() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        pattern = np.hstack([np.ones((7, 2), dtype=bool), (rng.uniform(size=(7, 7)) < 0.4) | np.eye(7, dtype=bool)])
        values = rng.normal(size=pattern.shape) * pattern + 3.0 * np.hstack([np.zeros((7, 2)), np.eye(7)])
        shares = [(e, e, c, c, float(values[e, c])) for e, c in zip(*np.nonzero(pattern), strict=True)]
        plan = planned(pattern, values, shares, 2)
        store, sides = np.zeros(plan.rows), np.zeros((7, 3))
        for (_, _, at), share in zip(plan.terms, plan.shares, strict=True):
            if at < plan.rows:
                store[at] += share
            else:
                sides.reshape(-1)[at - plan.rows] += share
        sides[:, 2] = rng.normal(size=7)
        wanted = np.linalg.solve(values[:, 2:], sides)
        for kind, to, left, right in plan.factor:
            store[to] = 1.0 / store[to] if kind == INVERT else store[to] * store[left] if kind == MULTIPLY \
                else store[to] - store[left] * store[right]
        for to, multiplier, other in plan.sides:
            sides[to] = sides[to] * store[multiplier] if other < 0 else sides[to] - store[multiplier] * sides[other]
        np.testing.assert_allclose(sides[plan.solved], wanted, atol=1e-12 * np.abs(wanted).max())
        np.testing.assert_allclose(plan.sign / np.prod(store[plan.pivots]), np.linalg.det(values[:, 2:]), rtol=1e-9)
