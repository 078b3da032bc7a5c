"""FollowingBodies: what mimic joints move, as part of the torques of the joints they follow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid import dynamics
from dynid.arrays import Array
from dynid.dynamics.momentum import momentum_columns
from dynid.model.parameters import Parameter
from dynid.model.term import Entries, Place, Term
from dynid.model.terms import RigidBodies, body_parameters
from dynid.robot import Robot


@dataclass(frozen=True)
class FollowingBodies:
    """Ten numbers of every body on a mimic joint, numbered behind the robot's own.

    With all joints of the tree at q_tree = G q + offset, the torques are tau = G' Y_tree(q_tree) theta. A model of
    rigid bodies has this term by itself (`with_followers`); it is nothing for a robot without mimic joints.
    """

    kind = "following"

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        following = robot.followers
        if following is None:
            return ()
        return tuple(parameter for k, (body, owner) in enumerate(zip(following.bodies, following.owners, strict=True))
                     for parameter in body_parameters(str(robot.dof + k + 1), owner, following.tree.bodies[body].name,
                                                      following.tree.bodies[body].inertia))

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        following = robot.followers
        if following is None:
            return
        tree, couples = following.tree, following.coupling
        motion = _of_tree(robot, q, dq, ddq)
        for k, body in enumerate(following.bodies):
            carriers = np.flatnonzero(tree.supports[:, body])
            place = np.full((tree.dof, 10 * tree.dof), -1, dtype=np.int64)
            place[carriers, 10 * body:10 * body + 10] = np.arange(10 * len(carriers)).reshape(-1, 10)
            rows = np.empty((len(carriers), 10, len(q)))
            dynamics.regressor_columns(tree, *motion, place, rows.reshape(-1, len(q)))
            for joint in np.flatnonzero(np.any(couples[carriers] != 0.0, axis=0)):
                columns = np.tensordot(couples[carriers, joint], rows, 1)
                for c in range(10):
                    yield int(joint), 10 * k + c, columns[c]

    def momentum(self, robot: Robot, q: Array, dq: Array, place: Place, momentum: Array, force: Array,
                 changing: bool) -> None:
        following = robot.followers
        if following is None:
            return
        tree, couples, (at, rate, _) = following.tree, following.coupling, _of_tree(robot, q, dq, dq)
        for out in (momentum, force):
            out[place[place >= 0]] = 0.0
        for k, body in enumerate(following.bodies):
            carriers = np.flatnonzero(tree.supports[:, body])
            whole = np.full((tree.dof, 10 * tree.dof), -1, dtype=np.int64)
            whole[carriers, 10 * body:10 * body + 10] = np.arange(10 * len(carriers)).reshape(-1, 10)
            both = np.empty((2, len(carriers), 10, len(q)))
            momentum_columns(tree, at, rate, whole, both[0].reshape(-1, len(q)), both[1].reshape(-1, len(q)),
                             changing=changing)
            for joint in range(robot.dof):
                own = place[joint, 10 * k:10 * k + 10]
                for rows, out in zip(both, (momentum, force), strict=True):
                    out[own[own >= 0]] = np.tensordot(couples[carriers, joint], rows, 1)[own >= 0]

    def torques(self, robot: Robot, values: Array, q: Array, dq: Array, ddq: Array) -> Array:
        following = robot.followers
        if following is None:
            return np.zeros(q.shape)
        found = dynamics.inverse_dynamics(following.tree, self._numbers(robot, values), *_of_tree(robot, q, dq, ddq))
        return np.asarray(found @ following.coupling)

    def inertia(self, robot: Robot, values: Array, q: Array) -> Array:
        following = robot.followers
        if following is None:
            return np.zeros((*q.shape, q.shape[1]))
        matrix = dynamics.inertia_matrix(following.tree, self._numbers(robot, values), _of_tree(robot, q, q, q)[0])
        return np.asarray(following.coupling.T @ matrix @ following.coupling)

    def _numbers(self, robot: Robot, values: Array) -> Array:
        """Ten numbers of every body of the tree (tree.dof, 10), zero for those that do not follow."""
        assert robot.followers is not None
        numbers = np.zeros((robot.followers.tree.dof, 10))
        numbers[list(robot.followers.bodies)] = values.reshape(-1, 10)
        return numbers


def with_followers(robot: Robot, terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """The terms of a model, with that of bodies on mimic joints where the robot has such and its bodies are asked
    for."""
    there = any(isinstance(term, FollowingBodies) for term in terms)
    if robot.followers is None or there or not any(isinstance(term, RigidBodies) for term in terms):
        return terms
    return (*terms, FollowingBodies())


def _of_tree(robot: Robot, q: Array, dq: Array, ddq: Array) -> tuple[Array, Array, Array]:
    """Positions, velocities and accelerations (samples, tree.dof) of all joints of the tree."""
    assert robot.followers is not None
    couples = robot.followers.coupling.T
    return (np.ascontiguousarray(q @ couples + robot.followers.offset), np.ascontiguousarray(dq @ couples),
            np.ascontiguousarray(ddq @ couples))
