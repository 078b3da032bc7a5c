"""Which friction does each joint have: terms chosen joint by joint by their errors on blocks of time left out.

Every joint has viscous and dry friction and an offset, and starts with a curve and friction from load, whose bounds and
ridge make them safe. These go where they take less than half a percent of the joint's error on blocks that were not
fitted, unless these blocks can hardly tell. Anything more is taken where it takes more than that, and more than two
standard errors. One fold holds the columns of all terms of all joints; every question is then algebra on small factors.
The torques that friction from load is a share of are those of an estimate from all blocks; the share is fitted without.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from dynid.arrays import Array, Bools, Ints
from dynid.errors import ModelError, NotPossibleError
from dynid.estimate.columns_left_out import ColumnsLeftOut
from dynid.estimate.linear import joint_weights, solve
from dynid.estimate.problem import KnownValues, Problem
from dynid.estimate.ripple_orders import joint_rows, ripple_order
from dynid.model import Cable, Delay, FrictionCurve, LoadFriction, Model, Offset, Term, term_from_table
from dynid.model.load_friction import APART_RIDGE
from dynid.recording import Samples
from dynid.regression import BaseParameters, Regression, base_parameters
from dynid.regression.equations import unmeasured_joints
from dynid.regression.residuals import residuals

BLOCKS = 8
STRETCHES = 8  # of time in each block, at most
_ROWS = 10  # in each stretch, at least: filtered rows share their noise with their neighbours
STARTS = ("curve", "load")
APART = "load apart"  # friction from load, one share where the motor drives and one where it is driven
ERRORS = 2.0  # standard errors over the blocks
SHARE = 0.5  # percent of the joint's error on left-out blocks
UNTOLD = 5.0  # percent within which, and two standard errors, blocks must tell a gain for a safe term to be let go
_EXACT = 1e-8  # share of a joint's squared torques below which errors are rounding
_ROUNDS = 6
FEWEST_BLOCKS = 4  # with rows, below which nothing can be said
# What replaces a model's own friction at the joints.
REPLACED = ("viscous", "coulomb", "offset", "asymmetric-viscous", "asymmetric-coulomb", "stribeck", "curve", "load",
             "cable", "delay", "ripple")


@dataclass(frozen=True)
class Worth:
    """What a term is worth on a joint: gain, the part of the joint's error on left-out blocks that it takes, percent,
    and its standard error over the blocks."""

    term: str
    gain: float
    error: float

    @property
    def pays(self) -> bool:
        """Whether it is to be taken, or kept where a joint starts with it."""
        if self.term in STARTS:
            return self.gain > SHARE or ERRORS * self.error > max(UNTOLD, SHARE - self.gain)
        return self.gain > max(SHARE, ERRORS * self.error)

    def __str__(self) -> str:
        return f"{self.term} ({self.gain:.1f} +- {self.error:.1f} %)"


@dataclass(frozen=True)
class JointChoice:
    """The terms taken for a joint, each with what it is worth beside the others, and those left, with what each would
    be worth on top."""

    joint: str
    taken: tuple[Worth, ...]
    left: tuple[Worth, ...]

    def __str__(self) -> str:
        taken = ", ".join(map(str, self.taken)) or "viscous and dry friction alone"
        left = ", ".join(map(str, self.left))
        return f"{self.joint}: {taken}" + (f"; left: {left}" if left else "")


@dataclass(frozen=True, eq=False)
class FrictionChoice:
    """The friction chosen for every joint: tables, as run files have them, and the model with these terms."""

    joints: tuple[JointChoice, ...]
    tables: tuple[dict[str, Any], ...]
    model: Model
    blocks: int

    @property
    def text(self) -> str:
        """What was taken, in a clause, joints that have the same together."""
        alike: dict[str, list[str]] = {}
        for one in self.joints:
            alike.setdefault(", ".join(worth.term for worth in one.taken) or "viscous and dry alone", []).append(
                one.joint)
        return "; ".join(f"{terms} on {', '.join(joints)}" for terms, joints in alike.items())

    def to_dict(self) -> dict[str, Any]:
        def worths(some: Sequence[Worth]) -> dict[str, dict[str, float]]:
            return {one.term: {"gain_percent": one.gain, "standard_error": one.error} for one in some}

        return {"blocks": self.blocks, "terms": [dict(table) for table in self.tables],
                "joints": {one.joint: {"taken": worths(one.taken), "left": worths(one.left)} for one in self.joints}}


def choose_terms(model: Model, data: Samples | Sequence[Samples], *, known: KnownValues | None = None,
                 threads: int | None = None) -> FrictionChoice:
    """The friction of each joint: viscous and dry, and what pays of a curve, asymmetry, load, cables and a delay.

    model: what is certain, bodies and rotors; friction it has at its joints is replaced.
    """
    if not isinstance(model, Model):
        raise ModelError("friction is chosen for a model made from a robot and terms")
    logs = (data,) if isinstance(data, Samples) else tuple(data)
    core = tuple(term for term in model.terms if getattr(term, "kind", "") not in REPLACED)
    wide = Model(model.robot, (*core, FrictionCurve(asymmetric=True), Offset(), LoadFriction(),
                              LoadFriction(apart=True), Cable(), Delay()))
    own = {parameter.name for term in core for parameter in term.parameters(model.robot)}
    order = sorted(range(len(wide.parameters)), key=lambda c: wide.parameters.names[c] not in own)
    base = base_parameters(wide, order, unmeasured=unmeasured_joints(logs))
    stretches = stretches_of(logs)
    problem = Problem.of(wide, logs, base=base, known=known, blocks=BLOCKS * stretches, threads=threads)
    regression = dealt(problem.regression, BLOCKS)
    if sum(block.rows > 0 for block in regression.blocks) < FEWEST_BLOCKS:
        raise NotPossibleError("the data have too few stretches of time to leave out in turn for a choice of friction",
                               "name the friction, or record a longer motion")
    # With the bodies of the estimate: what is regrouped with load of two ways depends on them.
    again = base_parameters(problem.model, order, unmeasured=unmeasured_joints(logs))
    search = Search.of(regression, _roles(problem, core, again))
    taken, worths = search.run()
    joints = tuple(JointChoice(name, tuple(one for one in worths[j] if one.term in taken[j]),
                               tuple(one for one in worths[j] if one.term not in taken[j]))
                   for j, name in enumerate(model.robot.joint_names))
    tables = _tables(model.robot.joint_names, taken)
    chosen = Model(model.robot, (*core, *map(term_from_table, tables)))
    joints, more = _with_ripple(chosen, logs, stretches, joints, known, threads)
    if more:
        tables, chosen = (*tables, *more), Model(model.robot, (*chosen.terms, *map(term_from_table, more)))
    return FrictionChoice(joints, tables, chosen, len(search.left_out.blocks))


def stretches_of(logs: Sequence[Samples]) -> int:
    """Stretches of time in each block: as many as leave each rows enough, since neighbours share their noise."""
    rows = sum(sum(len(range(int(a), int(b), 1 if log.decimation is None else log.decimation.total))
                   for a, b in log.segments) for log in logs)
    return int(np.clip(rows // (BLOCKS * _ROWS), 1, STRETCHES))


def _with_ripple(model: Model, logs: tuple[Samples, ...], stretches: int, joints: tuple[JointChoice, ...],
                 known: KnownValues | None, threads: int | None
                 ) -> tuple[tuple[JointChoice, ...], tuple[dict[str, Any], ...]]:
    """The choice of each joint with what waves over its angle are worth beside it, and tables of those that pay."""
    problem = Problem.of(model, logs, known=known, blocks=1, threads=threads)
    beta = solve(problem.regression, problem.regression.stack(joint_weights(problem.regression))).beta
    series = residuals(problem.equations, beta, threads=threads)
    found, tables = [], []
    for j, (one, joint) in enumerate(zip(joints, model.robot.joints, strict=True)):
        position, left, block, step = joint_rows(logs, series, j, BLOCKS, stretches)
        turn = 2.0 * np.pi if joint.prismatic else 1.0
        wave = ripple_order(turn * position, left, block, BLOCKS, turn * step) if one.taken or one.left else None
        power = float(sum(np.sum(part.measured[part.keep[:, j], j] ** 2) for part in series))
        if wave is None or not left @ left > _EXACT * power:
            found.append(one)
            continue
        worth = Worth(f"ripple of order {wave.order}", wave.gain, wave.error)
        if worth.pays:
            tables.append({"kind": "ripple", "orders": [float(wave.order)], "joints": [joint.name]})
        found.append(replace(one, taken=(*one.taken, worth)) if worth.pays else
                     replace(one, left=(*one.left, worth)))
    return tuple(found), tuple(tables)


def dealt(regression: Regression, count: int) -> Regression:
    """The same data in `count` blocks, stretch after stretch dealt out to them in turn: each is spread over all of the
    motion, so that what is left without one still excites every parameter."""
    hands = [regression.blocks[k::count] for k in range(count)]
    return replace(regression, blocks=tuple(reduce(add, hand) for hand in hands if hand))


@dataclass(frozen=True)
class Role:
    """What a column of the search does: the joint and the term it belongs to ("" for what is certain, "start" for what
    every joint has), and the base parameters it is the sum of, with their signs."""

    joint: int
    term: str
    parts: tuple[tuple[int, float], ...]
    low: float = -np.inf
    high: float = np.inf
    ridge: float = 0.0


def _roles(problem: Problem, core: Sequence[Term], again: BaseParameters | None = None) -> list[Role]:
    """The columns of the search: base parameters, the two viscous ones of a joint as their mean and their difference,
    so that the same friction both ways is one column. again: the base parameters of the problem's model as it is now.
    """
    base, model = problem.base, problem.model
    assert isinstance(model, Model)
    kinds = {int(c): getattr(term, "kind", "") for term, places in model.parts for c in places if term not in core}
    found, viscous, apart = [], dict[int, dict[str, int]](), dict[int, tuple[tuple[int, float], ...]]()
    for k, c in enumerate(base.independent):
        item, kind = base.parameters.items[c], kinds.get(int(c), "")
        if kind == "curve" and item.symbol in ("Fvp", "Fvn"):
            viscous.setdefault(item.owner, {})[item.symbol] = k
        elif kind == "offset" or (kind == "curve" and item.symbol == "Fc"):
            found.append(Role(item.owner, "start", ((k, 1.0),)))
        elif item.symbol in ("Flm", "Flg"):
            apart[item.owner] = ((k, 1.0),)
        else:
            found.append(Role(item.owner, kind, ((k, 1.0),), item.bounds[0], item.bounds[1], item.ridge))
    # All joints with two ways are one without and heavier bodies, so that one of them is always regrouped.
    if again is not None and apart and np.array_equal(again.independent, base.independent):
        for c, item in enumerate(base.parameters.items):
            if item.symbol == "Flm" and item.owner not in apart:
                apart[item.owner] = tuple((int(k), float(again.matrix[k, c]))
                                          for k in np.flatnonzero(again.matrix[:, c]))
    # On top of a share both ways, and so of either sign.
    found += [Role(joint, APART, parts, ridge=APART_RIDGE) for joint, parts in apart.items()]
    for joint, both in viscous.items():
        for term, sign in (("start", 1.0), ("asymmetry", -1.0)):
            found.append(Role(joint, term, tuple((k, sign if name == "Fvn" else 1.0) for name, k in both.items())))
    return found


def _tables(joints: Sequence[str], taken: Sequence[frozenset[str]]) -> tuple[dict[str, Any], ...]:
    """Tables of terms, each with the joints that have it."""
    def where(test: Callable[[frozenset[str]], bool]) -> list[str]:
        return [name for name, own in zip(joints, taken, strict=True) if test(own)]

    wanted: list[tuple[dict[str, Any], list[str]]] = [
              ({"kind": "viscous"}, where(lambda own: not own & {"curve", "asymmetry"})),
              ({"kind": "asymmetric-viscous"}, where(lambda own: "curve" not in own and "asymmetry" in own)),
              ({"kind": "coulomb"}, where(lambda own: "curve" not in own)),
              ({"kind": "curve"}, where(lambda own: "curve" in own and "asymmetry" not in own)),
              ({"kind": "curve", "asymmetric": True}, where(lambda own: {"curve", "asymmetry"} <= own)),
              ({"kind": "offset"}, list(joints)),
              ({"kind": "load"}, where(lambda own: "load" in own and APART not in own)),
              ({"kind": "load", "apart": True}, where(lambda own: APART in own)),
              ({"kind": "cable"}, where(lambda own: "cable" in own)),
              ({"kind": "delay"}, where(lambda own: "delay" in own))]
    return tuple({**table, **({} if len(own) == len(joints) else {"joints": own})} for table, own in wanted if own)


@dataclass(frozen=True, eq=False)
class Search:
    """The search on a fold. start, candidates: columns of `left_out` of each joint, those it has anyway and by term;
    common: columns that all joints share. found: what terms are worth, by the terms taken and the joint."""

    left_out: ColumnsLeftOut
    common: Ints
    start: tuple[Ints, ...]
    candidates: tuple[Mapping[str, Ints], ...]
    found: dict[tuple[frozenset[str], ...], dict[int, list[Worth]]] = field(default_factory=dict)

    @staticmethod
    def of(regression: Regression, roles: Sequence[Role]) -> Search:
        """From a fold of the wide model."""
        mixing = np.zeros((len(regression.base), len(roles)))
        for c, role in enumerate(roles):
            for k, value in role.parts:
                mixing[k, c] = value
        certain = [c for c, role in enumerate(roles) if role.term in ("", "start")]
        plain = regression.select(np.flatnonzero(np.any(mixing[:, certain] != 0, axis=1)))
        weights = joint_weights(plain)

        def columns(joint: int, term: str) -> Ints:
            return np.array([c for c, role in enumerate(roles) if role.joint == joint and role.term == term],
                            dtype=np.int64)

        joints = range(regression.dof)
        names = list(dict.fromkeys(role.term for role in roles if role.term not in ("", "start")))
        candidates = tuple({name: own for name in names if len(own := columns(j, name))}
                           if regression.factors[j].rows else {} for j in joints)
        for terms in candidates:  # two shares are one both ways and what is more one way
            if APART in terms and "load" in terms:
                terms[APART] = np.concatenate([terms["load"], terms[APART]])
        limits = (np.array([getattr(role, name) for role in roles]) for name in ("low", "high", "ridge"))
        common = np.array([c for c, role in enumerate(roles) if role.term == ""], dtype=np.int64)
        return Search(ColumnsLeftOut.of(regression, weights, mixing, *limits), common,
                      tuple(columns(j, "start") for j in joints), candidates)

    def used(self, taken: Sequence[frozenset[str]]) -> Bools:
        """Which columns a choice has."""
        found = np.zeros(len(self.left_out.low), dtype=bool)
        found[self.common] = True
        for j, own in enumerate(taken):
            found[self._columns(j, own)] = True
        return found

    def _columns(self, j: int, own: frozenset[str]) -> Ints:
        return np.unique(np.concatenate([self.start[j], *(self.candidates[j][name] for name in own)]).astype(np.int64))

    def run(self) -> tuple[list[frozenset[str]], list[list[Worth]]]:
        """The terms of each joint: what it starts with less what does not pay, the worst first, then what pays added,
        the best first, then what no longer pays taken away; and what every term is worth in the end."""
        taken = [frozenset(terms) & frozenset(STARTS) for terms in self.candidates]
        for adding in (False, True, False):
            joints = set(range(len(taken)))
            for _ in range(_ROUNDS):
                joints = {j for j, worths in self.worths(taken, joints) if self._step(taken, j, worths, adding)}
                if not joints:
                    break
        found = dict(self.worths(taken, set(range(len(taken)))))
        return taken, [found.get(j, []) for j in range(len(taken))]

    @staticmethod
    def _step(taken: list[frozenset[str]], j: int, worths: Sequence[Worth], adding: bool) -> bool:
        """Add the best term of a joint that pays, or take away the worst that does not; whether there was one."""
        if adding:
            some = [one for one in worths if one.pays and one.term not in taken[j]]
        else:
            some = [one for one in worths if not one.pays and one.term in taken[j]]
        if some:
            taken[j] = taken[j] ^ {(max if adding else min)(some, key=lambda one: one.gain).term}
        return bool(some)

    def worths(self, taken: Sequence[frozenset[str]], joints: set[int]) -> list[tuple[int, list[Worth]]]:
        """Of some joints, what every candidate is worth beside those taken."""
        used, key = self.used(taken), tuple(taken)
        known = self.found.setdefault(key, {})
        missing = [j for j in sorted(joints) if self.candidates[j] and j not in known]
        fits = self.left_out.fits(used) if missing else []
        known.update({j: self._worths_of(j, taken[j], used, fits) for j in missing})
        return [(j, known[j]) for j in sorted(joints) if self.candidates[j]]

    def _worths_of(self, j: int, own: frozenset[str], used: Bools, fits: Sequence[Array]) -> list[Worth]:
        every = self._columns(j, frozenset(self.candidates[j]))
        problems = self.left_out.reduced(used, every, fits)

        def losses(names: frozenset[str]) -> Array:
            chosen = np.isin(every, self._columns(j, names))
            return np.array([one.loss(chosen) for one in problems])

        now, found = losses(own), list[Worth]()
        for name in self.candidates[j]:
            other = losses(own ^ {name})
            found.append(worth_of(self.left_out, j, name, *((other, now) if name in own else (now, other))))
        return found


def worth_of(left_out: ColumnsLeftOut, j: int, term: str, without: Array, with_: Array) -> Worth:
    """What a term is worth on joint j from the squares (blocks, joints) that are left without it and with it."""
    power = max(sum(float(block.tests[j][1] @ block.tests[j][1]) for block in left_out.blocks), 1e-300)
    gains = (without - with_).sum(axis=1)
    size = max(float(without[:, j].sum()), _EXACT * power)
    error = 50.0 * float(gains.std(ddof=1)) * np.sqrt(len(gains)) / size
    return Worth(term, 100.0 * (1.0 - np.sqrt(max(1.0 - float(gains.sum()) / size, 0.0))), error)
