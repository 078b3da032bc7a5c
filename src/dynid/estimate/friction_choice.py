"""Choice of the friction terms of a robot, and of its rotor inertia, by cross-validation over blocks of time.

Every robot has viscous and Coulomb friction and an offset at each joint, and rotor inertia. Three kinds of terms can
be added to all of its joints: a free friction curve over speed (which includes Stribeck friction), friction that grows
with the transmitted torque, and viscous friction that differs between the directions. Each is regularised toward zero
by a ridge penalty. The strength of each ridge is one choice for the whole robot, since a single joint has too few
independent rows; an infinite strength removes the kind. Only a difference between directions is decided per joint, by
the same margin.

Cross-validation blocks are contiguous in time, because neighbouring rows share their position and noise. Every
combination of kinds and strengths is compared with the best one, since two kinds may predict well only together. A
simpler one is chosen unless it is worse by a standard error over the blocks and by 0.2 % of the torque. Differences are
logarithms of ratios of squared errors, so that one block that no model predicts does not dominate. A function of
position alone is not a candidate: with one pass over each position it cannot be distinguished from other causes.

Couplings of a motor to two neighbouring joints (`coupling_choice`) are decided first, with plain friction. A joint
whose friction would add energy keeps viscous and Coulomb friction. If these too would add energy beyond the logged
speeds, it keeps Coulomb friction alone.

If a joint hardly reverses, its offset cannot be distinguished from Coulomb friction. If it has a small range, offset
and friction are hard to distinguish from gravity. Offsets are much smaller than friction and gravity. Their size is
estimated from the offsets of all joints (empirical Bayes): each is taken as a draw from a normal distribution with mean
zero, whose variance is weighted by its evidence. Offsets that the data determine are hardly changed by the resulting
ridge.

All candidates are columns of one compressed regression. The terms that every model has are eliminated once per block,
and each candidate is then a small unconstrained solve.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dynid.arrays import Array, Ints
from dynid.datasets.identifiable import DataFacts, bind_to_data, top_speeds
from dynid.errors import NotPossibleError
from dynid.estimate.columns_left_out import EXACT_SHARE, Worth
from dynid.estimate.coupling_choice import Coupling, NeighbourCouplings, choose_couplings
from dynid.estimate.covariance import residual_noise
from dynid.estimate.problem import Problem
from dynid.estimate.ridge_search import (
    CURVE,
    DIFFERENCE,
    EXCLUDED_RIDGE,
    GROUPS,
    LOAD,
    RIDGES,
    ROTOR,
    SMALLEST_RIDGE,
    RidgeSearch,
    kinds_of,
    plain_friction,
)
from dynid.model import (
    FrictionCurve,
    LoadFriction,
    Model,
    Offset,
    RotorInertia,
    Sign,
    ViscousDifference,
    required_robot_model,
    term_from_table,
)
from dynid.model.load_friction import LARGEST
from dynid.output_fields import map_of, output_fields, record
from dynid.recording import Samples
from dynid.regression import BaseParameters, Regression
from dynid.regression.factor import triangular
from dynid.regression.known import KnownValues

BLOCKS = 8  # contiguous blocks of time, excluded in turn
FEWEST_BLOCKS = 4  # smallest number of blocks with rows for a comparison
# Share of the top speed over which the sign of a velocity is smooth: a joint at rest has no direction to predict. Rows
# below 0.01 of the top speed are dropped from fits, so that these see a sign.
SIGN_SHARE = 0.005
VISCOUS, OFFSET = "viscous", "Fo"  # a kind of term, and a symbol
# Largest ridge for joints that reverse: it removes a ten-thousandth of an offset that the motion determines. Where
# the noise is small against offsets, even that biases an offset which is hard to distinguish from gravity.
MAX_OFFSET_RIDGE = 1e-4
# Terms of a model that the choice replaces.
REPLACED = ("viscous", "coulomb", "offset", "asymmetric-viscous", "asymmetric-coulomb", "viscous-difference",
            "stribeck", "curve", "load", "cable", "delay", "ripple")
_HAVE_ROTORS = ("rotor", "motor-side")  # kinds of terms that include rotor inertia
# Speeds at which friction must dissipate energy, relative to a joint's top speed; the last two are not in the log.
SPEEDS_CHECKED = np.array([sign * share for share in (0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0, 3.0)
                           for sign in (1.0, -1.0)])
LOGGED_SPEEDS = SPEEDS_CHECKED[:-2]
# Standard deviations of the offsets to try, as shares of the torque: from far below the repeatability of a good machine
# to as large as the torque itself, ten in a decade.
SHARES_OF_TORQUE = 10.0 ** np.arange(-3.0, 0.01, 0.1)
ONE_WAY_SHARE = 0.05  # largest share of rows in the rarer direction of a joint that hardly reverses
FRICTION_OF_SPEED = ("Fv", "Fc", "Ft", "Fvd")  # symbols of the parameters of friction that depends on speed alone


@dataclass(frozen=True)
class JointChoice:
    """Friction terms that were chosen and rejected for one joint.

    Attributes:
        joint: name of the joint.
        taken: chosen terms, with the error reduction by each.
        left: rejected terms, with the error reduction that each would add.
        usual: names of the standard friction terms.
    """

    joint: str
    taken: tuple[Worth, ...]
    left: tuple[Worth, ...]
    usual: str = "viscous and Coulomb"

    def __str__(self) -> str:
        taken = ", ".join(map(str, self.taken)) or f"{self.usual} friction only"
        left = ", ".join(map(str, self.left))
        return f"{self.joint}: {taken}" + (f"; not used: {left}" if left else "")


_FRICTION_WORTH = record("FrictionWorth", gain_percent=float, standard_error=float)
_JOINT_CHOICE = record("JointFrictionChoice", taken=map_of(_FRICTION_WORTH), left=map_of(_FRICTION_WORTH))


@dataclass(frozen=True, eq=False)
class FrictionChoice:
    """The friction terms that were chosen for every joint of a robot.

    Attributes:
        joints: chosen and rejected terms of each joint.
        tables: the terms in the format of run files, with rotor inertia.
        model: model with these terms.
        blocks: number of cross-validation blocks.
        ridges: ridge penalty of each chosen kind of term.
    """

    joints: tuple[JointChoice, ...]
    tables: tuple[dict[str, Any], ...]
    model: Model
    blocks: int
    ridges: Mapping[str, float] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Clause that lists the chosen friction terms, with joints that have the same terms grouped."""
        groups: dict[str, list[str]] = {}
        for one in self.joints:
            groups.setdefault(", ".join(worth.term for worth in one.taken) or f"{one.usual} only", []).append(one.joint)
        return "; ".join(f"{terms} on {', '.join(joints)}" for terms, joints in groups.items())

    @output_fields(blocks=int, ridges=dict[str, float], terms=list[dict[str, Any]], joints=map_of(_JOINT_CHOICE))
    def to_dict(self) -> dict[str, Any]:
        def worths(some: Sequence[Worth]) -> dict[str, dict[str, float]]:
            return {one.term: {"gain_percent": one.gain, "standard_error": one.error} for one in some}

        return {"blocks": self.blocks, "ridges": dict(self.ridges), "terms": [dict(table) for table in self.tables],
                "joints": {one.joint: {"taken": worths(one.taken), "left": worths(one.left)} for one in self.joints}}


def choose_terms(model: Model, data: Samples | Sequence[Samples], *, known: KnownValues | None = None,
                 threads: int | None = None) -> FrictionChoice:
    """Choose the friction terms of a robot, and whether its model has rotor inertia.

    Args:
        model: bodies and other certain terms; its joint friction is replaced.
        data: samples to choose from.
        known: known standard parameters.
        threads: number of threads.

    Raises:
        NotPossibleError: if there are too few intervals of time for a comparison.
    """
    model = required_robot_model(model, "the choice of friction")
    logs = (data,) if isinstance(data, Samples) else tuple(data)
    core = tuple(term for term in model.terms if getattr(term, "kind", "") not in REPLACED)
    has_rotor = any(getattr(term, "kind", "") in _HAVE_ROTORS for term in core)
    # Rows of a robot with a free base may be combinations of several joints, so that a row is used or not as a whole.
    is_mixed = any(log.mixing is not None for log in logs)
    moving = [replace(log, keep=np.repeat(np.any(log.keep, axis=1)[:, None], log.dof, axis=1)) for log in logs
              ] if is_mixed else logs
    top, joints_of_robot = top_speeds(moving), range(model.robot.free_coordinates, model.dof)
    sign = Sign("tanh", tuple(float(f"{SIGN_SHARE * speed:.3g}") for speed in top))
    rotors = () if has_rotor else (RotorInertia(),)
    neighbours = (NeighbourCouplings(sign, tuple(range(model.dof))) if is_mixed  # couplings are compared joint by joint
                  else NeighbourCouplings.beside(Model(model.robot, core), sign))
    wide = Model(model.robot, (*core, *rotors, FrictionCurve(free=True, ridge=0.0, sign=sign),
                              Offset(ridge=MAX_OFFSET_RIDGE), LoadFriction(sign=sign), ViscousDifference(), neighbours))
    own = {parameter.name for term in core for parameter in term.parameters(model.robot)}
    order = sorted(range(len(wide.parameters)), key=lambda c: wide.parameters.names[c] not in own)
    base = bind_to_data(wide, DataFacts.from_samples(logs), priority=order).base
    problem = Problem.from_model(wide, logs, base=base, known=known, blocks=BLOCKS, threads=threads)
    regression = problem.regression
    if sum(block.rows > 0 for block in regression.blocks) < FEWEST_BLOCKS:
        raise NotPossibleError("the data have too few blocks of time for a choice of friction by cross-validation",
                               "name the friction with --friction, or record a longer motion", code="too-few-blocks")
    base = problem.base
    candidates = neighbours.candidates(model.robot)
    groups = _groups(base, has_rotor, candidates)
    search = RidgeSearch.from_regression(regression, groups, is_mixed)
    couplings = _couplings(search, regression, candidates)
    ridges = search.run(couplings)
    dropped = search.dropped(ridges, model.dof)
    # Friction adds no energy, and a gear that takes half of the torque would lock.
    loaded = [search.owners[c] for c, share in zip(search.columns[LOAD], search.values(ridges, LOAD, dropped),
                                                   strict=True) if 0.0 < share < LARGEST]
    fitted = search.fitted(regression, ridges, dropped)
    passive = [j for j in passive_joints(wide, base, fitted, top) if j in joints_of_robot]
    kept = {kind: tuple(j for j in (loaded if kind == LOAD else passive)
                        if ridges[kind] < EXCLUDED_RIDGE and (kind, j) not in dropped) for kind in GROUPS}
    removed = {*dropped, *((kind, j) for kind in GROUPS for j in range(model.dof) if j not in kept[kind])}
    if kinds_of(ridges) and not search.wins(ridges, removed):  # the joints that lost these terms needed them most
        ridges, dropped = search.with_rotor({**ridges, **dict.fromkeys(GROUPS, EXCLUDED_RIDGE), ROTOR: 0.0}), set()
        kept, fitted = dict.fromkeys(GROUPS, ()), search.fitted(regression, ridges)
    if not len(groups[ROTOR]):  # already in the model, or combined with the bodies
        ridges = {**ridges, ROTOR: EXCLUDED_RIDGE}
    falling = falling_joints(wide, base, search.fitted(regression, ridges, removed), top)
    kept[VISCOUS] = tuple(j for j in joints_of_robot if j in kept[CURVE] or j not in falling)
    ridge = np.zeros(len(base))
    kept[OFFSET] = tuple(j for j in one_way_joints(moving) if j in joints_of_robot)
    ridge[search.places] = search.ridge(ridges, dropped)
    offset = offset_ridge(problem, fitted, ridge, _columns(base, OFFSET))
    names = model.robot.joint_names
    joints = tuple(_joint_choice(names[j], j, search, ridges, kept, couplings) for j in joints_of_robot)
    tables = (*_tables(names, joints_of_robot, {**ridges, OFFSET: float(f"{offset:.3g}")}, sign, kept),
              *(coupling.table(names, sign) for coupling in couplings))
    chosen = Model(model.robot, (*core, *map(term_from_table, tables)))
    return FrictionChoice(joints, tables, chosen, len(search.parts),
                          {name: ridges[name] for name in GROUPS if kept[name]})


def _groups(base: BaseParameters, has_rotor: bool, couplings: Sequence[Coupling] = ()) -> dict[str, Ints]:
    """Return the indices of base parameters for each kind of friction term, and for each parameter of a coupling."""
    wanted = {CURVE: "Ft", LOAD: "Fl", DIFFERENCE: "Fvd", ROTOR: "" if has_rotor else "Ia"}
    found = {name: _columns(base, symbol) for name, symbol in wanted.items()}
    names = [base.parameters.items[c].name for c in base.independent]
    for name in dict.fromkeys(name for coupling in couplings for name in coupling.names):
        found[name] = np.array([k for k, own in enumerate(names) if own == name], dtype=np.int64)
    return found


def _columns(base: BaseParameters, symbol: str) -> Ints:
    """Return the indices of the base parameters of all joints with a symbol, such as "Fv"."""
    items = [base.parameters.items[c] for c in base.independent]
    return np.array([k for k, item in enumerate(items) if item.symbol.rstrip("0123456789_") == symbol], dtype=np.int64)


def _couplings(search: RidgeSearch, regression: Regression, candidates: Sequence[Coupling]) -> tuple[Coupling, ...]:
    """Return the couplings of a robot with plain friction whose estimated values dissipate energy."""
    found = choose_couplings(candidates, lambda some: search.losses(plain_friction(some)),
                             EXACT_SHARE * search.powers / len(search.parts) + np.finfo(float).tiny)
    items, base = regression.base.parameters.items, regression.base.independent
    values = dict(zip([items[c].name for c in base], search.fitted(regression, plain_friction(found)), strict=True))
    return tuple(coupling for coupling in found if coupling.is_passive(values))


def _tables(names: Sequence[str], every: Sequence[int], ridges: Mapping[str, float], sign: Sign,
            kept: Mapping[str, Sequence[int]]) -> Iterator[dict[str, Any]]:
    """Yield the chosen friction terms as tables of a run file.

    Args:
        names: names of all joints.
        every: joints with friction, counted from 0.
        ridges: ridge by kind of term.
        sign: sign function of dry friction.
        kept: joints with each kind of term, counted from 0.
    """
    def where(some: Sequence[int]) -> dict[str, Any]:
        return {} if len(some) == len(every) else {"joints": [names[j] for j in some]}

    smooth = {"kind": sign.kind, "width": list(sign.width) if isinstance(sign.width, tuple) else sign.width}
    plain = [j for j in every if j not in kept[CURVE]]
    if ridges.get(ROTOR, EXCLUDED_RIDGE) < EXCLUDED_RIDGE:
        yield {"kind": "rotor"}
    if kept[CURVE]:
        yield {"kind": "curve", "free": True, "ridge": ridges[CURVE], "sign": smooth, **where(kept[CURVE])}
    if viscous := [j for j in plain if j in kept[VISCOUS]]:
        yield {"kind": "viscous", **where(viscous)}
    if plain:
        yield {"kind": "coulomb", "sign": smooth, **where(plain)}
    if turning := [j for j in every if j not in kept[OFFSET]]:
        yield {"kind": "offset", "ridge": min(ridges[OFFSET], MAX_OFFSET_RIDGE), **where(turning)}
    if kept[OFFSET]:
        yield {"kind": "offset", "ridge": ridges[OFFSET], **where(kept[OFFSET])}
    if kept[LOAD]:
        yield {"kind": "load", "ridge": ridges[LOAD], "sign": smooth, **where(kept[LOAD])}
    if kept[DIFFERENCE]:
        yield {"kind": "viscous-difference", "ridge": ridges[DIFFERENCE], **where(kept[DIFFERENCE])}


def _joint_choice(name: str, j: int, search: RidgeSearch, ridges: Mapping[str, float],
                  kept: Mapping[str, Sequence[int]], couplings: Sequence[Coupling]) -> JointChoice:
    """Return the reduction of a joint's cross-validation error by each kind of term, given the other chosen terms."""
    taken, left = list[Worth](), list[Worth]()
    for one in couplings:
        if j in (one.a, one.b):
            without = {**ridges, **dict.fromkeys(one.names, EXCLUDED_RIDGE)}
            taken.append(search.worth("coupled-wrist", j, without, ridges))
    for kind in GROUPS:
        is_taken = ridges[kind] < EXCLUDED_RIDGE
        tried = [ridges[kind]] if is_taken else list(RIDGES)
        worths = [search.worth(kind, j, {**ridges, kind: EXCLUDED_RIDGE}, {**ridges, kind: ridge}) for ridge in tried]
        best = max(worths, key=lambda one: one.gain)
        (taken if j in kept[kind] else left).append(best)
    return JointChoice(name, tuple(taken), tuple(left), "viscous and Coulomb" if j in kept[VISCOUS] else "Coulomb")


def passive_joints(model: Model, base: BaseParameters, values: Array, top: Array,
                   shares: Array = SPEEDS_CHECKED) -> tuple[int, ...]:
    """Return the joints, counted from 0, whose friction dissipates energy at all given speeds.

    Args:
        model: model with the friction terms.
        base: its base parameters.
        values: values of the base parameters (base,).
        top: top speed of each joint (dof,), rad/s or m/s.
        shares: speeds to check, relative to the top speed (k,).
    """
    speeds = shares * top[:, None]
    found, rest = [], np.zeros((speeds.shape[1], model.dof))
    for j in range(model.dof):
        velocity = rest.copy()
        velocity[:, j] = speeds[j]
        columns = [k for k, c in enumerate(base.independent) if (one := model.parameters.items[c]).owner == j
                   and one.symbol.rstrip("0123456789_") in FRICTION_OF_SPEED]
        entries = model.regressor(rest, velocity, rest)[:, j, base.independent[columns]]
        if np.all(speeds[j] * (entries @ values[columns]) >= 0.0):
            found.append(j)
    return tuple(found)


def falling_joints(model: Model, base: BaseParameters, values: Array, top: Array) -> tuple[int, ...]:
    """Return the joints, counted from 0, whose friction dissipates energy at logged speeds but not beyond them."""
    passive = passive_joints(model, base, values, top)
    return tuple(j for j in passive_joints(model, base, values, top, LOGGED_SPEEDS) if j not in passive)


def one_way_joints(logs: Sequence[Samples]) -> tuple[int, ...]:
    """Return the joints, counted from 0, that move almost only in one direction in all logs."""
    rows = np.array([np.sum([np.sum(log.keep & (sign * log.dq > 0.0), axis=0) for log in logs], axis=0)
                     for sign in (1.0, -1.0)])  # (2, joints)
    return tuple(int(j) for j in np.flatnonzero(rows.min(axis=0) <= ONE_WAY_SHARE * rows.sum(axis=0)))


def offset_ridge(problem: Problem, beta: Array, ridge: Array, offsets: Ints) -> float:
    """Return the ridge penalty of the torque offsets, relative to the squared norm of their columns.

    Args:
        problem: regression with the columns of all candidates.
        beta: (base,), values of the chosen model.
        ridge: (base,), ridge of each column by this choice, infinite for excluded ones.
        offsets: columns of the offsets among the base parameters.
    """
    whole = problem.regression
    spread, independent = residual_noise(problem, beta)
    independent = np.clip(independent, 1.0 / np.maximum(np.array(whole.rows, dtype=float), 1.0), 1.0)
    stacked = whole.stack(np.sqrt(independent) / spread, prior=False)
    others = np.setdiff1d(np.flatnonzero(np.isfinite(ridge)), offsets)
    size = np.linalg.norm(stacked.r, axis=0)
    found = offsets[size[offsets] > 0.0]
    torque = float(np.linalg.norm(stacked.rho))
    if not len(found) or torque == 0.0:
        return 0.0
    columns = np.column_stack([stacked.r[:, others], stacked.r[:, found] * (torque / size[found]), stacked.rho])
    penalties = np.zeros((len(others), columns.shape[1]))
    np.fill_diagonal(penalties, np.sqrt(np.maximum(ridge[others], SMALLEST_RIDGE)) * size[others])
    inner = triangular(columns, penalties)[len(others):-1, len(others):]  # all other columns are eliminated
    return 1.0 / (torque * _likely_share(inner[:, :-1], inner[:, -1])) ** 2


def _likely_share(matrix: Array, target: Array) -> float:
    """Return the likely standard deviation of x in target = matrix x + noise of unit variance: the geometric mean of
    candidates, weighted by evidence. The most likely candidate could be zero for few joints."""
    left, singular, _ = np.linalg.svd(matrix)
    variance = 1.0 + (SHARES_OF_TORQUE[:, None] * singular) ** 2
    evidence = -0.5 * np.sum(np.log(variance) + (left.T @ target) ** 2 / variance, axis=1)
    weights = np.exp(evidence - evidence.max())
    return float(np.exp(weights @ np.log(SHARES_OF_TORQUE) / weights.sum()))
