"""Torques of bodies that are moved by mimic joints and closed loops, at the independent joints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dynid import dynamics
from dynid.arrays import Array
from dynid.dynamics.following import closed_columns, tree_motion
from dynid.errors import ModelError
from dynid.model.elements import Bodies
from dynid.model.parameters import Parameter
from dynid.model.term import Entries, Place, Term
from dynid.model.terms import RigidBodies, body_parameters, filled_entries
from dynid.robot import Robot


@dataclass(frozen=True)
class DependentBodies:
    """Rigid bodies on dependent joints: ten inertial parameters of every dependent body except virtual bodies.

    Dependent bodies are numbered after the other bodies. With the derivatives G of all joints of the tree by the
    independent joints, the torques are tau = G' Y_tree theta. A model of rigid bodies adds this term automatically
    (`with_followers`); the term is empty without dependent joints.
    """

    kind = "following"

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        following = robot.followers
        if following is None:
            return ()
        return tuple(parameter for k, (body, owner) in enumerate(zip(following.bodies, following.owners, strict=True))
                     if not following.tree.bodies[body].virtual
                     for parameter in body_parameters(str(robot.dof + k + 1), owner, following.tree.bodies[body].name,
                                                      following.tree.bodies[body].inertia))

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        if robot.followers is not None:
            yield from filled_entries(self, robot, robot.followers.shows[:, _massive(robot)], q, dq, ddq)

    def fill(self, robot: Robot, q: Array, dq: Array, ddq: Array, place: Place, out: Array) -> None:
        following = robot.followers
        if following is None or not (place >= 0).any():
            return
        rows = np.full((robot.dof, 10 * following.tree.dof), -1, dtype=np.int64)
        for k, body in enumerate(_massive(robot)):
            rows[:, 10 * body:10 * body + 10] = place[:, 10 * k:10 * k + 10]
        closed_columns(robot, tree_motion(robot, q, dq, ddq, threads=1), rows, out)

    def torques(self, robot: Robot, values: Array, q: Array, dq: Array, ddq: Array) -> Array:
        if robot.followers is None:
            return np.zeros(q.shape)
        return dynamics.inverse_dynamics(robot, self._numbers(robot, values), q, dq, ddq)

    def inertia(self, robot: Robot, values: Array, q: Array) -> Array:
        if robot.followers is None:
            return np.zeros((*q.shape, q.shape[1]))
        return dynamics.inertia_matrix(robot, self._numbers(robot, values), q)

    def elements(self, robot: Robot, values: Array) -> Iterator[Bodies]:
        if robot.followers is not None:
            yield Bodies(self._numbers(robot, values))

    def _numbers(self, robot: Robot, values: Array) -> Array:
        """Return ten inertial parameters of every body (bodies, 10), zero for independent bodies."""
        following = robot.followers
        assert following is not None
        numbers = np.zeros((following.tree.dof, 10))
        order = [*following.free, *following.bodies]
        numbers[[order.index(body) for body in _massive(robot)]] = values.reshape(-1, 10)
        return numbers


def _massive(robot: Robot) -> list[int]:
    """Return the indices in the tree of the dependent bodies with a mass."""
    assert robot.followers is not None
    return [body for body in robot.followers.bodies if not robot.followers.tree.bodies[body].virtual]


def with_followers(robot: Robot, terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """Return the terms, with `DependentBodies` added to the rigid bodies of a robot with dependent joints."""
    for term in terms:
        if not hasattr(term, "parameters"):
            raise ModelError(f"the terms of a model are objects, not {type(term).__name__}",
                             "call Model(robot, dynid.make_terms(robot, friction=('viscous',)))", "wrong-type")
    there = any(isinstance(term, DependentBodies) for term in terms)
    if robot.followers is None or there or not any(isinstance(term, RigidBodies) for term in terms):
        return terms
    return (*terms, DependentBodies())

