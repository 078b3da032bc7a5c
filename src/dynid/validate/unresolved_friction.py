"""Friction terms that the data do not distinguish from simpler friction.

The cross-validation error of each term of a joint is compared with that of viscous and Coulomb friction in its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array, Ints
from dynid.datasets.identifiable import DataFacts, bind_to_data
from dynid.estimate import Estimate, Problem
from dynid.estimate.columns_left_out import ColumnsLeftOut, Worth, dealt, intervals_per_block, term_worth
from dynid.estimate.friction_choice import BLOCKS, FEWEST_BLOCKS
from dynid.estimate.linear import joint_weights
from dynid.model import DataContext, Model, Parameter, Parameters, Term, robot_model
from dynid.model.parameters import DRY, VISCOUS
from dynid.model.registry import FRICTION
from dynid.model.term_capabilities import term_name
from dynid.regression import TorqueEquations, fold
from dynid.regression.derived import CachedEquations
from dynid.robot import Robot
from dynid.validate.thresholds import TERM_GAIN, TERM_GAIN_ERRORS

_SIMPLE_FRICTION = ("viscous", "coulomb")
_DEPENDENT_SHARE = 1e-9  # a column is dependent on others if a smaller share of it is orthogonal to them


@dataclass(frozen=True)
class FrictionWorth:
    """Reduction of a joint's cross-validation error by a friction term. parameters: names of the term's parameters."""

    joint: str
    worth: Worth
    parameters: tuple[str, ...]

    @property
    def is_resolved(self) -> bool:
        """Whether cross-validation distinguishes this friction term from simpler friction."""
        return self.worth.gain > max(TERM_GAIN, TERM_GAIN_ERRORS * self.worth.error)


@dataclass(frozen=True)
class SimpleFriction:
    """Viscous and Coulomb friction of every joint, with parameter names that no other term has."""

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        return tuple(Parameter(f"{kind.words} of {name}", unit, j, name, kind=kind)
                     for j, name in enumerate(robot.joint_names)
                     for kind, unit in ((VISCOUS, "N m s/rad"), (DRY, "N m")))

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Iterator[tuple[int, int, Array]]:
        for j in range(robot.dof):
            yield j, 2 * j, dq[:, j]
            yield j, 2 * j + 1, np.sign(dq[:, j])


def friction_worths(problem: Problem, estimate: Estimate) -> tuple[FrictionWorth, ...]:
    """Return the benefit of every friction term beyond viscous and Coulomb friction, for each joint; empty without such
    terms or with too few data. Terms that depend on an estimate or have shape parameters are unchanged."""
    model = robot_model(estimate.model)
    if not problem.data or model is None:
        return ()
    if not _richer(model.parts, model.parameters):
        return ()
    wide = _with_simple(model, estimate.full)
    plain, richer = wide.parts[-1][1].reshape(model.dof, 2), _richer(wide.parts[:-1], wide.parameters)
    rank = np.zeros(len(wide.parameters), dtype=int)
    rank[plain], rank[np.concatenate([places for *_, places in richer])] = 1, 2
    order = np.argsort(rank, kind="stable").tolist()
    base = bind_to_data(wide, DataFacts.from_samples(problem.data), problem.base.known, priority=order).base
    blocks = BLOCKS * intervals_per_block(problem.data, BLOCKS)
    equations = CachedEquations.from_equations(TorqueEquations.from_model(wide, problem.data, base))
    regression = dealt(fold(equations, blocks=blocks, threads=problem.threads), BLOCKS)
    if sum(block.rows > 0 for block in regression.blocks) < FEWEST_BLOCKS:
        return ()
    common = [int(c) for c in base.independent if rank[c] == 0]
    columns = [*common, *(c for c in range(len(rank)) if rank[c] > 0)]
    items = [wide.parameters.items[c] for c in columns]
    mixing = np.column_stack([np.eye(len(base))[:, base.independent == c][:, 0] if rank[c] == 0 else base.matrix[:, c]
                              for c in columns])
    left_out = ColumnsLeftOut.from_regression(regression, joint_weights(problem.regression), mixing,
                                              np.array([item.bounds[0] for item in items]),
                                              np.array([item.bounds[1] for item in items]),
                                              np.array([item.ridge for item in items]))
    place = {c: k for k, c in enumerate(columns)}
    return tuple(_worths(wide, mixing, left_out, place, richer, plain))


def _with_simple(model: Model, theta: Array) -> Model:
    """Return the model with simple friction added; theta (parameters,): values for estimate-dependent terms."""
    wide = Model(model.robot, (*model.terms, SimpleFriction()))
    own = dict(zip(model.parameters.names, theta, strict=True))
    values = np.array([own.get(name, 0.0) for name in wide.parameters.names])
    return wide.bind(DataContext(estimate=values))


def _richer(parts: Sequence[tuple[Term, Ints]], parameters: Parameters) -> list[tuple[int, str, Ints]]:
    """Return joint, kind and parameter indices of each friction term that is not simple (viscous or Coulomb)."""
    found = []
    for term, places in parts:
        kind = term_name(term)
        groups = ("friction", "other") if kind in FRICTION else ("friction",)
        own = [] if kind in _SIMPLE_FRICTION else [int(c) for c in places if parameters.items[c].kind.group in groups]
        for j in dict.fromkeys(parameters.items[c].owner for c in own):
            found.append((j, kind, np.array([c for c in own if parameters.items[c].owner == j])))
    return found


def _worths(wide: Model, mixing: Array, left_out: ColumnsLeftOut, place: dict[int, int],
            richer: Sequence[tuple[int, str, Ints]], simple: Ints) -> Iterator[FrictionWorth]:
    """Return the benefit of each friction term. mixing (base, k): columns as combinations of base parameters; place:
    column of each parameter; simple (dof, 2): columns of simple friction."""
    used = np.array([c not in simple for c in place])
    certain = np.setdiff1d(np.flatnonzero(used), [place[int(c)] for *_, places in richer for c in places])
    fits, names = left_out.fits(used), [wide.parameters.names[c] for c in place]
    for j in dict.fromkeys(joint for joint, *_ in richer):
        plain = np.array([place[int(c)] for c in simple[j]])
        terms = [(kind, np.array([place[int(c)] for c in places])) for joint, kind, places in richer if joint == j]
        own = [(kind, columns) for kind, columns in terms if not _spanned(mixing[:, columns], mixing[:, plain])]
        if not own:
            continue
        mine = np.concatenate([columns for _, columns in terms])
        every = np.concatenate([mine, plain])
        problems = left_out.reduced(used, every, fits)
        with_ = np.array([one.loss(np.isin(every, mine)) for one in problems])
        for kind, columns in own:
            kept = np.setdiff1d(mine, columns)
            other_columns = mixing[:, np.concatenate([certain, kept])]
            instead = [k for k in plain if not _spanned(mixing[:, [k]], other_columns)]
            without = np.array([one.loss(np.isin(every, [*kept, *instead])) for one in problems])
            yield FrictionWorth(wide.robot.joint_names[j], term_worth(left_out, j, kind, without, with_),
                                tuple(names[k] for k in columns))


def _spanned(columns: Array, others: Array) -> bool:
    """Whether columns (base, k) are combinations of others (base, n)."""
    left = columns - others @ np.linalg.lstsq(others, columns, rcond=None)[0]
    sizes = np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
    return bool(np.all(np.linalg.norm(left, axis=0) <= _DEPENDENT_SHARE * sizes))
