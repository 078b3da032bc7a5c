"""Numbers: which of the bodies' and terms' numbers generated code works with, and how they come from a model's own.

The torques cannot tell all numbers apart. A mass spread along a turning joint's axis may be given to the body
before, so Szz, MZ and M of a turning joint's body can be zero, and all second moments of a sliding one's
(`Chain.handed_over`). Which of the others are left is found as base parameters are. Where a body's mass can stand for a
first moment of the body before, both are tried, and what needs fewer operations is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dynid import dynamics
from dynid.arrays import Array
from dynid.errors import ModelError, NotPossibleError
from dynid.model import Model, Parameter, Parameters
from dynid.model.elements import Bodies
from dynid.model.following import FollowingBodies
from dynid.model.term import Remembering, Simulated, Stepping, Term, UnderLoad
from dynid.regression.base import BaseParameters, random_factor, reduce_columns
from dynid.robot import Robot
from dynid.symbolic.frames import Chain, chain

NAMES = ("Sxx", "Sxy", "Sxz", "Syy", "Syz", "Szz", "MX", "MY", "MZ", "M")
_UNITS = ("kg m^2",) * 6 + ("kg m",) * 3 + ("kg",)
_MOST_JOINTS = 60  # the text of a model grows with the square of it
_MOST_TRIED = 12  # joints: each try costs a whole recursion, which for larger robots takes seconds


@dataclass(frozen=True, eq=False)
class Layout:
    """A model as code generation sees it.

    tree: the robot with every joint, mimic ones too; coupling (tree joints, joints) and offset (tree joints,): where
    its joints are for the robot's own. numbers: names of all numbers, ten for each body of the tree and then those of
    the other terms. matrix (numbers, parameters): how they come from the model's parameters. terms: the other terms,
    each with the places of its parameters among the numbers.
    """

    model: Model
    tree: Robot
    chain: Chain
    coupling: Array
    offset: Array
    numbers: Parameters
    matrix: Array
    terms: tuple[tuple[Term, tuple[int, ...]], ...]

    @cached_property
    def channels(self) -> tuple[slice, ...]:
        """Places of each other term's memory among that of all."""
        counts = [term.channels(self.model.robot) if isinstance(term, Stepping) else 0 for term, _ in self.terms]
        return tuple(slice(sum(counts[:k]), sum(counts[:k + 1])) for k in range(len(counts)))

    @property
    def remembers(self) -> int:
        """How many signals the terms remember from sample to sample."""
        return self.channels[-1].stop if self.channels else 0

    @cached_property
    def factor(self) -> Array:
        """Triangular factor of the columns of all numbers over random motions."""
        return random_factor(self)

    @property
    def loaded(self) -> bool:
        """Whether a term sees the torques of the bodies."""
        return any(isinstance(term, UnderLoad) for term, _ in self.terms)

    @property
    def bodies(self) -> int:
        return self.tree.dof

    @property
    def dof(self) -> int:
        return self.model.dof

    @property
    def parameters(self) -> Parameters:
        """All numbers, as `random_factor` wants them."""
        return self.numbers

    def regressor(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Torques (samples, dof, numbers) for one unit of each number."""
        motion = [q @ self.coupling.T + self.offset, dq @ self.coupling.T, ddq @ self.coupling.T]
        rigid = dynamics.regressor(self.tree, *motion) @ np.linalg.inv(self.chain.second_moments())
        columns = np.zeros((len(q), self.dof, len(self.numbers)))
        columns[:, :, :10 * self.bodies] = np.einsum("tj,stc->sjc", self.coupling, rigid)
        memory = np.random.default_rng(0).normal(size=(len(q), self.remembers))  # which may be anything
        for (term, places), own in zip(self.terms, self.channels, strict=True):
            robot = self.model.robot
            entries = (term.remembered(robot, q, dq, ddq, memory[:, own]) if isinstance(term, Stepping)
                       else term.entries(robot, q, dq, ddq))
            for joint, parameter, values in entries:
                columns[:, joint, places[parameter]] += values
        return columns

    def link_numbers(self, term: UnderLoad, base: BaseParameters) -> Array:
        """All numbers of the tree's bodies (10 bodies,) by which a term knows the torques of the bodies, zero where
        those of `base` and what else is needed can stand for them."""
        count = 10 * self.bodies
        told = _on_tree(self.model.robot, np.asarray(term.link_numbers(self.model.robot)).reshape(-1, 1))
        first = [int(place) for place in base.independent if place < count]
        bodies = Parameters(self.numbers.items[:count])
        own = _reduced(self, self.factor[:, :count], bodies, first, kept=_handed(self, first))
        numbers = np.zeros(count)
        numbers[own.independent] = own.matrix @ (self.chain.second_moments() @ told)[:, 0]
        return numbers


def layout(model: Model) -> Layout:
    """The frames and numbers of a model."""
    robot = model.robot
    if robot.dof > _MOST_JOINTS:
        raise NotPossibleError(f"robot '{robot.name}' has {robot.dof} moving joints, and code is generated for up to "
                               f"{_MOST_JOINTS}", "lock those that the controller does not move")
    of_the_log(model)
    following = robot.followers
    if following is not None and following.loops is not None:
        raise NotPossibleError(f"robot '{robot.name}' has closed loops ({following.loops.names}), and code is "
                               "generated for trees",
                               "generate the code of the tree, and give it the joints that follow")
    tree = robot if following is None else following.tree
    coupling, offset = ((np.eye(robot.dof), np.zeros(robot.dof)) if following is None
                        else (following.coupling, following.offset))
    frames = chain(tree)
    moments = frames.second_moments()
    names = [Parameter(f"{name}{i + 1}", unit, i, tree.bodies[i].name) for i in range(tree.dof)
             for name, unit in zip(NAMES, _UNITS, strict=True)]
    rows = [np.zeros((10 * tree.dof, len(model.parameters)))]
    others: list[tuple[Term, tuple[int, ...]]] = []
    for term, columns in model.parts:
        bodies = _as_bodies(term, model)
        if bodies is not None:
            rows[0][:, columns] += moments @ bodies
            continue
        start = len(names)
        names.extend(model.parameters.items[c] for c in columns)
        unit = np.zeros((len(columns), len(model.parameters)))
        unit[np.arange(len(columns)), columns] = 1.0
        rows.append(unit)
        others.append((term, tuple(range(start, start + len(columns)))))
    return Layout(model, tree, frames, coupling, offset, Parameters(tuple(names)), np.vstack(rows), tuple(others))


def _as_bodies(term: Term, model: Model) -> Array | None:
    """(10 bodies of the tree, parameters of the term): what a term's parameters add to the bodies' ten numbers, None
    for a term that is no body."""
    robot, count = model.robot, len(term.parameters(model.robot))
    following = robot.followers
    if isinstance(term, FollowingBodies):
        assert following is not None
        whole = np.zeros((10 * following.tree.dof, count))
        for k, body in enumerate(following.bodies):
            whole[10 * body:10 * body + 10, 10 * k:10 * k + 10] = np.eye(10)
        return whole
    if not isinstance(term, Simulated):
        return None
    columns = []
    for k in range(count):
        unit = np.zeros(count)
        unit[k] = 1.0
        pieces = list(term.elements(robot, unit))
        if not pieces or not all(isinstance(piece, Bodies) for piece in pieces):
            return None
        columns.append(sum(np.asarray(piece.numbers).ravel() for piece in pieces if isinstance(piece, Bodies)))
    if not columns:
        return None
    return _on_tree(robot, np.array(columns).T)


def _on_tree(robot: Robot, own: Array) -> Array:
    """Rows for the numbers of a robot's bodies (10 bodies, columns), with or without those that follow behind its own,
    as rows for those of all bodies of the tree."""
    following = robot.followers
    if following is None:
        return own
    free = [i for i in range(following.tree.dof) if i not in following.bodies]
    whole = np.zeros((10 * following.tree.dof, own.shape[1]))
    for new, old in enumerate([*free, *following.bodies][:len(own) // 10]):
        whole[10 * old:10 * old + 10] = own[10 * new:10 * new + 10]
    return whole


def of_the_log(model: Model) -> tuple[Term, ...]:
    """Terms that describe a log and not the machine: they need its times, and without them there is nothing of them. A
    term that needs more than the last sample to go on is refused."""
    found, some = [], np.ones((1, model.dof))
    for term in model.terms:
        if isinstance(term, Remembering) and not isinstance(term, Stepping):
            if any(True for _ in term.entries(model.robot, some, some, some)):
                kind = getattr(term, "kind", type(term).__name__)
                raise ModelError(f"term '{kind}' remembers the motion, and it does not say how its memory goes on from "
                                 "sample to sample, so it cannot be written as code", "give it a method `step`, or "
                                 "leave it out")
            found.append(term)
    return tuple(found)


def kept_numbers(plan: Layout, operations: Callable[[BaseParameters], int]) -> BaseParameters:
    """The numbers to work with, as combinations of all of them, chosen for few `operations`."""
    def found(early: Sequence[int]) -> BaseParameters:
        return _reduced(plan, plan.factor, plan.numbers, early, kept=early)

    best = found([])
    if plan.bodies > _MOST_TRIED:
        return best
    fewest = operations(best)
    early: list[int] = []
    for i, link in enumerate(plan.chain.links):
        place = 10 * i + 9
        if link.sliding or link.parent < 0 or place in best.independent or not np.any(link.origin[:2]):
            continue
        other = found([*early, place])
        cost = operations(other)
        if cost < fewest:
            best, fewest, early = other, cost, [*early, place]
    return best


def _handed(plan: Layout, places: Sequence[int]) -> list[int]:
    """Those of some places that `Chain.handed_over` would give to the body before."""
    return [place for place in places
            if place % 10 in ((0, 1, 2, 3, 4, 5) if plan.chain.links[place // 10].sliding else (5, 8, 9))]


def _reduced(plan: Layout, factor: Array, numbers: Parameters, first: Sequence[int],
             kept: Sequence[int]) -> BaseParameters:
    """The numbers that are left of some (columns of factor): those of `first` before all others, `kept` not handed
    over. What is handed over is so exactly, only the rest of the dependence is found in numbers."""
    handed = np.eye(len(numbers))
    size = 10 * plan.bodies
    handed[:size, :size] = plan.chain.handed_over(kept)
    left = [place for place in range(len(numbers)) if place not in first and handed[place, place] != 0.0]
    base = reduce_columns(factor, numbers, [*first, *left])
    return replace(base, matrix=base.matrix @ handed)


def sorted_by_place(base: BaseParameters) -> BaseParameters:
    """The same numbers in the order of bodies and terms."""
    order = np.argsort(base.independent)
    return replace(base, independent=base.independent[order], matrix=base.matrix[order])


def checked_model(model: object) -> Model:
    """The model, where it is one of a robot with terms."""
    if not isinstance(model, Model):
        raise ModelError("code is generated from a model of a robot and its terms, and a model of one's own that only "
                         "gives numbers cannot be written down")
    return model
