"""Motion, bodies and terms of a model on an expression graph, from which functions are built."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from dynid.model.term import Term
from dynid.model.term_capabilities import UnderLoad, capabilities
from dynid.regression.base import BaseParameters
from dynid.symbolic import matrices, motion
from dynid.symbolic.closures import own_joints, tree_positions
from dynid.symbolic.graph import Graph, Value
from dynid.symbolic.numbers import ModelLayout
from dynid.symbolic.trace import traced_entries
from dynid.symbolic.vectors import Matrix, Vector, add, apply, dot, numbers, transposed


@dataclass(frozen=True)
class Writer:
    """An expression graph with the joint signals, parameters and bodies of a model.

    Attributes:
        graph: the expression graph.
        plan: the model for code generation.
        base: parameters of the generated function as combinations of those of `plan`.
        p: values of these parameters on the graph.
    """

    graph: Graph
    plan: ModelLayout
    base: BaseParameters
    p: tuple[Value, ...]

    @cached_property
    def q(self) -> Vector:
        return self.graph.symbols("q", self.plan.dof)

    @cached_property
    def dq(self) -> Vector:
        return self.graph.symbols("dq", self.plan.dof)

    @cached_property
    def ddq(self) -> Vector:
        return self.graph.symbols("ddq", self.plan.dof)

    @cached_property
    def still(self) -> Vector:
        return [self.graph.zero] * self.plan.dof

    @cached_property
    def bodies(self) -> list[Vector]:
        """Ten inertial parameters of each body of the tree."""
        numbers = [self.graph.zero] * (10 * self.plan.bodies)
        for place, value in zip(self.base.independent, self.p, strict=True):
            if place < len(numbers):
                numbers[place] = value
        return [numbers[10 * i:10 * i + 10] for i in range(self.plan.bodies)]

    @cached_property
    def q_follow(self) -> Vector:
        """Positions of the joints that loops determine."""
        return self.graph.symbols("q_follow", self.plan.follow)

    @cached_property
    def frames(self) -> list[motion.FramePose]:
        followers, q = self.plan.robot.followers, self.q
        if followers is None:
            return motion.places(self.graph, self.plan.chain, q)
        return motion.places(self.graph, self.plan.chain, tree_positions(self.graph, followers, [*q, *self.q_follow]),
                             own_joints(followers))

    def of_loops(self, wanted: Sequence[Value], dq: Sequence[Value] = ()) -> Vector:
        """Copy values from the graph of the loops' motion to this graph; dq: joint velocities, if needed."""
        given = {"q": self.q, "q_follow": self.q_follow, "dq": dq}
        return self.graph.taken_over(self.plan.loops.graph, wanted, given)

    def of_tree(self, follow: Matrix) -> Matrix:
        """Return the motion of all joints of the tree (joints, k) for k motions of the dependent joints (follow, k)."""
        moving = self.plan.coupling[:, self.plan.dof:]
        return [apply(transposed(follow), numbers(self.graph, row)) for row in moving]

    @cached_property
    def rates(self) -> Matrix:
        """G (joints of the tree, dof): velocities of all joints for unit velocities of the independent joints."""
        own = [numbers(self.graph, row[:self.plan.dof]) for row in self.plan.coupling]
        if not self.plan.follow:
            return own
        loops = self.of_tree([self.of_loops(row) for row in self.plan.loops.rates])
        return [add(a, b) for a, b in zip(own, loops, strict=True)]

    @cached_property
    def rate_slopes(self) -> Matrix:
        """Time derivative dG/dt (joints of the tree, dof) of `rates`, for a robot with closed loops."""
        return self.of_tree([self.of_loops(row, self.dq) for row in self.plan.loops.rate_slopes])

    def tree(self, signal: Sequence[Value]) -> Vector:
        """Return the velocities of all joints, dependent joints included, from velocities of the independent joints."""
        return apply(self.rates, signal)

    def tree_accelerations(self, dq: Sequence[Value], ddq: Sequence[Value]) -> Vector:
        found = self.tree(ddq)
        if not self.plan.follow:
            return found
        bias = self.of_tree([[x] for x in self.of_loops(self.plan.loops.bias, dq)])
        return [x + more[0] for x, more in zip(found, bias, strict=True)]

    def joints(self, torques: Sequence[Value]) -> Vector:
        """Return the torques of the independent joints from torques of all joints, dependent joints included."""
        return apply(transposed(self.rates), torques)

    def motion(self, dq: Sequence[Value], ddq: Sequence[Value], *, weight: bool) -> list[motion.BodyState]:
        gravity = [float(x) for x in self.plan.chain.gravity] if weight else [0.0] * 3
        return motion.states(self.graph, self.plan.chain, self.frames, self.tree(dq), self.tree_accelerations(dq, ddq),
                             gravity)

    def between_joints(self, tree: Matrix) -> Matrix:
        """Return the matrix G' A G of the independent joints from a matrix A of all joints of the tree."""
        columns = transposed(self.rates)
        half = [[dot(row, column) for column in transposed(tree)] for row in columns]
        return [[dot(row, column) for column in columns] for row in half]

    def rigid(self, dq: Sequence[Value], ddq: Sequence[Value], *, weight: bool) -> Vector:
        """Return the joint torques of the rigid bodies, without other terms."""
        states = self.motion(dq, ddq, weight=weight)
        return self.joints(motion.torques(self.graph, self.plan.chain, self.frames, states, self.bodies))

    def weight(self) -> Vector:
        """Return the gravity torques (dof,), by first moments of composite bodies or by the recursion of torques,
        whichever needs fewer operations."""
        candidates = (self.joints(matrices.weight(self.graph, self.plan.chain, self.frames, self.bodies)),
                      self.rigid(self.still, self.still, weight=True))
        return min(candidates, key=lambda torques: self.graph.operations(torques).total)

    @cached_property
    def memory(self) -> Vector:
        """States of all terms with memory, such as LuGre friction; an input of the generated function."""
        return self.graph.symbols("memory", self.plan.remembers)

    def loads(self, term: Term, dq: Sequence[Value], ddq: Sequence[Value]) -> Vector:
        """Return the torques of the bodies (dof,) for a load-dependent term; an empty list for other terms."""
        load = capabilities(term).load
        if load is None:
            return []
        states = self.motion(dq, ddq, weight=True)
        return self.joints(motion.torques(self.graph, self.plan.chain, self.frames, states, self.loading_bodies(load)))

    def loading_bodies(self, term: UnderLoad) -> list[Vector]:
        """Return ten inertial parameters of each body, with which a load-dependent term computes torques."""
        inertias = numbers(self.graph, self.plan.link_numbers(term, self.base))
        for place, value in zip(self.base.independent, self.p, strict=True):
            if place < len(inertias) and _equal(inertias[place].number, value.number):
                inertias[place] = value  # so that it is the same node as in the torques of the bodies
        return [inertias[10 * i:10 * i + 10] for i in range(self.plan.bodies)]

    def columns(self, dq: Sequence[Value], ddq: Sequence[Value], *,
                loaded: bool = True) -> dict[tuple[int, int], Value]:
        """Return the torques of the terms without bodies for unit parameters, by (joint, index of the parameter in p).
        loaded: whether to include load-dependent terms."""
        column = {int(place): k for k, place in enumerate(self.base.independent)}
        found: dict[tuple[int, int], Value] = {}
        for (term, places), own in zip(self.plan.terms, self.plan.memory_slices, strict=True):
            if not loaded and capabilities(term).load is not None:
                continue
            for joint, parameter, value in traced_entries(self.graph, term, self.plan.model.robot, (self.q, dq, ddq),
                                                          self.loads(term, dq, ddq), self.memory[own]):
                if places[parameter] in column:
                    key = (joint, column[places[parameter]])
                    found[key] = found.get(key, self.graph.zero) + value
        return found

    def others(self, dq: Sequence[Value], ddq: Sequence[Value], *, loaded: bool = True) -> Vector:
        """Return the torques (dof,) of the terms without bodies; loaded: whether to include load-dependent terms."""
        total = list(self.still)
        for (joint, column), value in self.columns(dq, ddq, loaded=loaded).items():
            total[joint] = total[joint] + self.p[column] * value
        return total

    def inertia(self) -> Matrix:
        """Return the joint-space inertia matrix, including rotors."""
        tree = matrices.inertia(self.graph, self.plan.chain, self.frames, self.bodies)
        matrix = self.between_joints(tree)
        for k in range(self.plan.dof):
            unit = [self.graph.one if i == k else self.graph.zero for i in range(self.plan.dof)]
            for i, more in enumerate(self.accelerated(unit)):
                matrix[i][k] = matrix[i][k] + more
        return matrix

    def accelerated(self, ddq: Sequence[Value]) -> Vector:
        """Return the torques (dof,) of terms without bodies that accelerations ddq cause, such as those of rotors.
        Load-dependent friction is excluded, because it is not an inertia."""
        total, without = list(self.still), self.columns(self.still, self.still, loaded=False)
        for (joint, column), value in self.columns(self.still, ddq, loaded=False).items():
            total[joint] = total[joint] + self.p[column] * (value - without.get((joint, column), self.graph.zero))
        return total


def _equal(a: float | None, b: float | None) -> bool:
    """Return whether two graph values are equal constants up to rounding."""
    return a is not None and b is not None and abs(a - b) <= 1e-13 * abs(a)
