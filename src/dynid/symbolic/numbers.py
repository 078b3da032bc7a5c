"""Parameters of generated code, and their computation from the parameters of a model.

The torques do not distinguish all parameters. Mass along a revolute joint's axis can be assigned to the previous body,
so Szz, MZ and M of the joint's body can be set to zero (`Chain.handed_over`). All second moments of a prismatic joint's
body can be set to zero. The remaining parameters are determined like base parameters. If the mass of a body can
represent a first moment of the previous body, both forms are tried, and the form with fewer operations is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from dynid import dynamics
from dynid.arrays import Array
from dynid.dynamics.following import closed_chain, closes, random_postures, tree_motion
from dynid.errors import ModelError, NotPossibleError
from dynid.model import Model, Parameter, Parameters
from dynid.model.elements import Bodies
from dynid.model.term import Term
from dynid.model.term_capabilities import History, UnderLoad, capabilities, term_name
from dynid.regression.base import BaseParameters, random_factor, reduce_columns
from dynid.robot import Robot
from dynid.robot import inertia as ten
from dynid.symbolic.closed_form_loops import ExplicitLoops, explicit_loops
from dynid.symbolic.closures import LoopMotion, loop_motion, own_joints
from dynid.symbolic.frames import Chain, chain

Following = Literal["auto", "given", "solved"]
# Accelerations of dependent joints grow with the third power of the rates, their rounding errors with the fourth.
_RATE_SCALING_POWER = 4
_CHECKED_POSTURES = 24  # closed postures in which closed-form solutions of the loops are checked
NAMES = ("Sxx", "Sxy", "Sxz", "Syy", "Syz", "Szz", "MX", "MY", "MZ", "M")
_MOST_JOINTS = 60  # the length of the code grows with the square of the number of joints
_MOST_BODIES = 150  # time grows with the third power: here ten seconds
_NUMBERS_AT_ONCE = 4_000_000  # of the matrices of the joints of a tree, 32 MB
_MOST_TRIED = 12  # joints: each try costs a whole recursion, which for larger robots takes seconds


@dataclass(frozen=True, eq=False)
class ModelLayout:
    """A model for code generation.

    Attributes:
        model: the model.
        tree: the robot with every joint, including dependent joints.
        chain: bodies of the tree with the frames of the generated code.
        coupling: matrix (tree joints, joints) from velocities of the robot's joints to those of all joints of the tree.
            For a closed chain it has further columns for the dependent joints.
        numbers: parameters of the generated code: ten for each body of the tree, then those of the other terms.
        matrix: matrix (numbers, parameters) that converts the model's parameters to `numbers`.
        terms: the terms without bodies, each with the indices of its parameters in `numbers`.
        solved: whether the dependent joints of loops are computed in closed form and are not an input.
    """

    model: Model
    tree: Robot
    chain: Chain
    coupling: Array
    numbers: Parameters
    matrix: Array
    terms: tuple[tuple[Term, tuple[int, ...]], ...]
    solved: bool = False

    @property
    def robot(self) -> Robot:
        return self.model.robot

    @property
    def follow(self) -> int:
        """Number of joints that the loops determine."""
        return self.coupling.shape[1] - self.dof

    @cached_property
    def closed_postures(self) -> Array:
        """Coordinates (samples, dof + follow) that close the loops; the first row is their initial posture."""
        begin = closed_chain(self.robot).begin[None, :self.dof]
        others = begin + 0.5 * (random_postures(self.robot, _CHECKED_POSTURES, np.random.default_rng(0)) - begin)
        q = np.vstack([begin, others[closes(self.robot, others)]])
        assert self.robot.followers is not None
        return np.hstack([q, tree_motion(self.robot, q).q[:, list(own_joints(self.robot.followers))]])

    @cached_property
    def loops(self) -> LoopMotion:
        """Motion of the joints that the loops determine."""
        assert self.robot.followers is not None
        return loop_motion(self.chain, self.robot.followers, self.closed_postures)

    @cached_property
    def explicit(self) -> ExplicitLoops | None:
        """Positions of the dependent joints of loops in closed form, or None."""
        assert self.robot.followers is not None
        return explicit_loops(self.chain, self.robot.followers, self.closed_postures)

    @cached_property
    def _stepping(self) -> tuple[History | None, ...]:
        """For each term, its methods for memory if the memory is updated from sample to sample, otherwise None."""
        return tuple(own.history if (own := capabilities(term)).step is not None else None for term, _ in self.terms)

    @cached_property
    def memory_slices(self) -> tuple[slice, ...]:
        """For each of `terms`, the slice of its memory in the memory of all terms."""
        counts = [0 if own is None else own.channels(self.model.robot) for own in self._stepping]
        return tuple(slice(sum(counts[:k]), sum(counts[:k + 1])) for k in range(len(counts)))

    @property
    def remembers(self) -> int:
        """Number of states that terms with memory keep between samples."""
        return self.memory_slices[-1].stop if self.memory_slices else 0

    @cached_property
    def factor(self) -> Array:
        """QR factor R of the regressor columns of all parameters `numbers` over random motions."""
        return random_factor(self)

    @property
    def loaded(self) -> bool:
        """Whether a term depends on the torques of the bodies."""
        return any(capabilities(term).load is not None for term, _ in self.terms)

    @property
    def bodies(self) -> int:
        return self.tree.dof

    @property
    def dof(self) -> int:
        return self.model.dof

    @property
    def parameters(self) -> Parameters:
        """All parameters of the generated code, in the form that `random_factor` takes."""
        return self.numbers

    def regressor(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Return the torques (samples, dof, numbers) for unit values of each parameter in `numbers`. In a closed chain,
        samples near singular postures have large and inaccurate rates. Such samples are scaled down, which does not
        change the linear dependence of the columns."""
        columns = np.zeros((len(q), self.dof, len(self.numbers)))
        back = np.linalg.inv(self.chain.second_moments())
        if self.robot.followers is None:
            columns[:, :, :10 * self.bodies] = dynamics.regressor(self.tree, q, dq, ddq) @ back
        else:
            *motion, rates = tree_motion(self.robot, q, dq, ddq)
            step = max(1, _NUMBERS_AT_ONCE // (self.bodies * len(back)))  # a tree of many bodies has large matrices
            for begin in range(0, len(q), step):
                taken = slice(begin, begin + step)
                rigid = dynamics.regressor(self.tree, *(array[taken] for array in motion))
                torques = np.swapaxes(rates[taken], 1, 2) @ rigid
                columns[taken, :, :10 * self.bodies] = (torques.reshape(-1, len(back)) @ back).reshape(torques.shape)
            scale = np.maximum(np.abs(rates).max(axis=(1, 2)), 1.0) if self.follow else np.ones(len(q))
        memory = np.random.default_rng(0).normal(size=(len(q), self.remembers))  # arbitrary states of terms
        for (term, places), own, history in zip(self.terms, self.memory_slices, self._stepping, strict=True):
            robot = self.model.robot
            entries = (term.entries(robot, q, dq, ddq) if history is None
                       else history.remembered(robot, q, dq, ddq, memory[:, own]))
            for joint, parameter, values in entries:
                columns[:, joint, places[parameter]] += values
        return columns if self.robot.followers is None else columns / scale[:, None, None] ** _RATE_SCALING_POWER

    def link_numbers(self, term: UnderLoad, base: BaseParameters) -> Array:
        """Return the inertial parameters (10 bodies,) of the tree with which a load-dependent term computes torques.
        Parameters that are regrouped into those of `base` are zero."""
        count = 10 * self.bodies
        inertias = _on_tree(self.model.robot, np.asarray(term.link_numbers(self.model.robot)).reshape(-1, 1))
        first = [int(place) for place in base.independent if place < count]
        bodies = Parameters(self.numbers.items[:count])
        handed = [place for place in first if place % 10 in self.chain.links[place // 10].handed]
        own = _reduced(self, self.factor[:, :count], bodies, first, kept=handed)
        numbers = np.zeros(count)
        numbers[own.independent] = own.matrix @ (self.chain.second_moments() @ inertias)[:, 0]
        return numbers


def layout(model: Model, following: Following = "auto") -> ModelLayout:
    """Return the frames and parameters of a model for code generation.

    following: whether positions of dependent joints are an input ("given") or computed in closed form ("solved");
    "auto" uses the closed form if there is one.
    """
    robot = model.robot
    if robot.dof > _MOST_JOINTS:
        raise NotPossibleError(f"robot '{robot.name}' has {robot.dof} moving joints, and code is generated for up to "
                               f"{_MOST_JOINTS}", "lock the joints that the controller does not move")
    if robot.tree.dof > _MOST_BODIES:
        raise NotPossibleError(f"robot '{robot.name}' has {robot.tree.dof} moving bodies, and code is generated for up "
                               f"to {_MOST_BODIES}", "leave out joints that depend on others (mimic joints)")
    of_the_log(model)
    tree, coupling = robot.tree, np.eye(robot.dof) if robot.followers is None else robot.followers.coupling
    frames = chain(tree)
    moments = frames.second_moments()
    names = [Parameter(f"{name}{i + 1}", unit, i, tree.bodies[i].name) for i in range(tree.dof)
             for name, unit in zip(NAMES, ten.UNITS, strict=True)]
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
    plan = ModelLayout(model, tree, frames, coupling, Parameters(tuple(names)), np.vstack(rows), tuple(others))
    return _closed(plan, following) if plan.follow else plan


def _closed(plan: ModelLayout, following: Following) -> ModelLayout:
    """Return the layout of a closed chain, with its loops in closed form if requested or possible."""
    assert plan.robot.followers is not None and plan.robot.followers.loops is not None
    names = plan.robot.followers.loops.names
    if following == "solved" and plan.explicit is None:
        raise NotPossibleError(f"no closed form is known for the joints that depend on the loops {names} of robot "
                               f"'{plan.robot.name}'",
                               "use following = 'given', which makes their positions an input", code="no-closed-form")
    solved = replace(plan, solved=following != "given" and plan.explicit is not None)
    for name in ("closed_postures", "explicit"):  # reuse the cached results
        if name in plan.__dict__:
            solved.__dict__[name] = plan.__dict__[name]
    return solved


def _as_bodies(term: Term, model: Model) -> Array | None:
    """Return the matrix (10 bodies of the tree, parameters of the term) from a term's parameters to inertial
    parameters, None for a term without bodies."""
    robot, elements = model.robot, capabilities(term).elements
    if elements is None:
        return None
    columns = []
    for unit in np.eye(len(term.parameters(robot))):
        pieces = list(elements(robot, unit))
        if not pieces or not all(isinstance(piece, Bodies) for piece in pieces):
            return None
        columns.append(sum(np.asarray(piece.numbers).ravel() for piece in pieces if isinstance(piece, Bodies)))
    return _on_tree(robot, np.array(columns).T) if columns else None


def _on_tree(robot: Robot, own: Array) -> Array:
    """Return rows (10 bodies, columns) in the order of the bodies of the tree. own: rows of the independent bodies,
    optionally followed by rows of the dependent bodies."""
    if robot.followers is None:
        return own
    rows = np.zeros((robot.tree.dof, 10, own.shape[1]))
    count = len(own) // 10
    rows[[robot.followers.place(body) for body in range(count)]] = own.reshape(count, 10, -1)
    return rows.reshape(-1, own.shape[1])


def of_the_log(model: Model) -> tuple[Term, ...]:
    """Return the terms that describe a log and not the robot. They need the times of the log and are not generated. An
    error is raised for a term that needs more than the previous sample."""
    found, some = [], np.ones((1, model.dof))
    for term in model.terms:
        own = capabilities(term)
        if own.history is not None and own.step is None:
            if any(True for _ in term.entries(model.robot, some, some, some)):
                raise ModelError(f"term '{term_name(term)}' has a memory but no method that updates it from sample to "
                                 "sample, so it cannot be written as code", "define its method `step` or remove it",
                                 code="memory-without-step")
            found.append(term)
    return tuple(found)


def kept_numbers(plan: ModelLayout, operations: Callable[[BaseParameters], int]) -> BaseParameters:
    """Return the parameters of the generated code as combinations of all parameters.

    operations: returns the number of operations of the code for a choice of parameters, which should be small.
    """
    def reduced(early: Sequence[int]) -> BaseParameters:
        return _reduced(plan, plan.factor, plan.numbers, early, kept=early)

    best, early = reduced([]), list[int]()
    fewest = operations(best) if plan.bodies <= _MOST_TRIED else 0
    for i, link in enumerate(plan.chain.links if plan.bodies <= _MOST_TRIED else ()):
        place = 10 * i + 9
        if link.sliding or link.parent < 0 or place in best.independent or not np.any(link.origin[:2]):
            continue
        candidate = reduced([*early, place])
        cost = operations(candidate)
        if cost < fewest:
            best, fewest, early = candidate, cost, [*early, place]
    order = np.argsort(best.independent)
    return replace(best, independent=best.independent[order], matrix=best.matrix[order])


def _reduced(plan: ModelLayout, factor: Array, numbers: Parameters, first: Sequence[int],
             kept: Sequence[int]) -> BaseParameters:
    """Return linearly independent parameters, each as a combination of the given parameters `numbers`.

    Parameters with indices in `first` are preferred, and those with indices in `kept` are not regrouped. Regrouping
    onto the previous body is exact. Only the remaining linear dependence is computed numerically, from the columns of
    the triangular factor `factor`. Virtual bodies have no parameters and receive none.
    """
    handed = np.eye(len(numbers))
    size = 10 * plan.bodies
    virtual = [i for i, body in enumerate(plan.tree.bodies) if body.virtual]
    kept = [*kept, *(10 * i + k for i, link in enumerate(plan.chain.links) if link.parent in virtual
                     for k in range(10))]
    handed[:size, :size] = plan.chain.handed_over(kept)
    left = [place for place in range(len(numbers)) if place not in first and handed[place, place] != 0.0
            and not (place < size and place // 10 in virtual)]
    base = reduce_columns(factor, numbers, [*first, *left])
    return replace(base, matrix=base.matrix @ handed)

