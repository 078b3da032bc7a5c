"""Choice of the friction terms of a robot, and of its rotor inertia, by cross-validation over blocks of time.

Every robot has viscous and Coulomb friction and an offset at each joint, and rotor inertia. Three kinds of terms can
be added to all of its joints: a free friction curve over speed (which includes Stribeck friction), friction that grows
with the transmitted torque, and viscous friction that differs between the directions. Each is regularised toward zero
by a ridge penalty. The strength of each ridge is one choice for the whole robot, since a single joint has too few
independent rows; an infinite strength removes the kind. Only a difference between directions is decided per joint, by
the same margin.

Cross-validation blocks are contiguous in time, because neighbouring rows share their position and noise. Every
combination of kinds and strengths is compared with the best one, since two kinds may predict well only together. A
simpler one is chosen unless it is worse by a standard error over the blocks. Differences are logarithms of ratios of
squared errors, so that one block that no model predicts does not dominate. A function of position alone is not a
candidate: with one pass over each position it cannot be distinguished from other causes.

Couplings of a motor to two neighbouring joints (`coupling_choice`) are decided first, with plain friction. A joint
whose friction would add energy keeps viscous and Coulomb friction. If these too would add energy beyond the logged
speeds, it keeps Coulomb friction alone. Offsets have ridges of their own (`offset_regularisation`).

All candidates are columns of one compressed regression. The terms that every model has are eliminated once per block,
and each candidate is then a small unconstrained solve.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np

from dynid.arrays import Array, Ints
from dynid.errors import NotPossibleError
from dynid.estimate.chosen_friction import FrictionChoice, JointChoice
from dynid.estimate.columns_left_out import EXACT_SHARE, Worth, worth_of_gains
from dynid.estimate.coupling_choice import Coupling, NeighbourCouplings, choose_couplings
from dynid.estimate.fitted import top_speeds
from dynid.estimate.friction_parts import SMALLEST_RIDGE, Part
from dynid.estimate.linear import joint_weights
from dynid.estimate.offset_regularisation import offset_ridge, one_way_joints
from dynid.estimate.passive_friction import falling_joints, passive_joints
from dynid.estimate.problem import Problem
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
from dynid.recording import Samples
from dynid.regression import BaseParameters, Regression, base_parameters
from dynid.regression.equations import unmeasured_joints
from dynid.regression.known import KnownValues

BLOCKS = 8  # contiguous blocks of time, excluded in turn
FEWEST_BLOCKS = 4  # smallest number of blocks with rows for a comparison
RIDGES = (0.1, 0.01, 0.001)  # relative to a column's squared norm: three strengths, each ten times the previous one
# Standard errors by which a model must win over the usual one: without rotor inertia, since a motor has a rotor, and
# with richer friction, which is the best of many and may lose terms on single joints.
CLEAR_ERRORS = 2.0
STANDARD_ERRORS = 1.0  # by which a model with more kinds of terms must be better: the usual rule
SMALLEST_GAIN = 1e-3  # of the squared error in cross-validation: smaller changes do not matter
# Share of the squared torques that a richer model must gain: 0.2 % of the torque, half of what repeated motions of good
# machines differ by. Filters alone leave errors of this size at reversals, which a richer friction would fit.
IMMATERIAL_GAIN = 0.002 ** 2
# Share of the top speed over which the sign of a velocity is smooth: a joint at rest has no direction to predict. Rows
# below 0.01 of the top speed are dropped from fits, so that these see a sign.
SIGN_SHARE = 0.005
CURVE, LOAD, DIFFERENCE, ROTOR, VISCOUS = "curve", "load", "viscous-difference", "rotor", "viscous"
GROUPS = (CURVE, LOAD, DIFFERENCE)
OFFSET = "Fo"  # symbol
# Of joints that turn back, at most: it takes a ten-thousandth of an offset that the motion determines. Where the noise
# is small against offsets, even that biases an offset which is hard to distinguish from gravity.
MAX_OFFSET_RIDGE = 1e-4
_EXCLUDED_RIDGE = np.inf  # ridge of an excluded kind
# Terms of a model that the choice replaces.
REPLACED = ("viscous", "coulomb", "offset", "asymmetric-viscous", "asymmetric-coulomb", "viscous-difference",
            "stribeck", "curve", "load", "cable", "delay", "ripple")
_HAVE_ROTORS = ("rotor", "motor-side")  # kinds of terms that include rotor inertia


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
    base = base_parameters(wide, order, unmeasured=unmeasured_joints(logs))
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
                        if ridges[kind] < _EXCLUDED_RIDGE and (kind, j) not in dropped) for kind in GROUPS}
    removed = {*dropped, *((kind, j) for kind in GROUPS for j in range(model.dof) if j not in kept[kind])}
    if _kinds(ridges) and not search.wins(ridges, removed):  # the joints that lost these terms needed them most
        ridges, dropped = search.with_rotor({**ridges, **dict.fromkeys(GROUPS, _EXCLUDED_RIDGE), ROTOR: 0.0}), set()
        kept, fitted = dict.fromkeys(GROUPS, ()), search.fitted(regression, ridges)
    if not len(groups[ROTOR]):  # already in the model, or combined with the bodies
        ridges = {**ridges, ROTOR: _EXCLUDED_RIDGE}
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


def _exceeds(gains: Array, errors: float) -> bool:
    """Return whether the mean of logarithmic error ratios (blocks,) exceeds a number of its standard errors."""
    error = errors * float(gains.std(ddof=1)) / np.sqrt(len(gains))
    return bool(gains.mean() > max(error, SMALLEST_GAIN))


def _kinds(ridges: Mapping[str, float]) -> tuple[str, ...]:
    """Return the kinds of friction terms that are used, those with a finite ridge."""
    return tuple(kind for kind in GROUPS if ridges[kind] < _EXCLUDED_RIDGE)


def _with(couplings: Sequence[Coupling]) -> dict[str, float]:
    """Return the ridge of each kind of term for a robot with plain friction, rotor inertia and given couplings."""
    return {ROTOR: 0.0, **{name: 0.0 for coupling in couplings for name in coupling.names}}


def _couplings(search: RidgeSearch, regression: Regression, candidates: Sequence[Coupling]) -> tuple[Coupling, ...]:
    """Return the couplings of a robot with plain friction whose estimated values dissipate energy."""
    found = choose_couplings(candidates, lambda some: search.losses(_with(some)),
                             EXACT_SHARE * search.powers / len(search.parts) + np.finfo(float).tiny)
    items, base = regression.base.parameters.items, regression.base.independent
    values = dict(zip([items[c].name for c in base], search.fitted(regression, _with(found)), strict=True))
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
    if ridges.get(ROTOR, _EXCLUDED_RIDGE) < _EXCLUDED_RIDGE:
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
            without = {**ridges, **dict.fromkeys(one.names, _EXCLUDED_RIDGE)}
            taken.append(search.worth("coupled-wrist", j, without, ridges))
    for kind in GROUPS:
        is_taken = ridges[kind] < _EXCLUDED_RIDGE
        tried = [ridges[kind]] if is_taken else list(RIDGES)
        worths = [search.worth(kind, j, {**ridges, kind: _EXCLUDED_RIDGE}, {**ridges, kind: ridge}) for ridge in tried]
        best = max(worths, key=lambda one: one.gain)
        (taken if j in kept[kind] else left).append(best)
    return JointChoice(name, tuple(taken), tuple(left), "viscous and Coulomb" if j in kept[VISCOUS] else "Coulomb")


@dataclass(frozen=True, eq=False)
class RidgeSearch:
    """Cross-validation of ridge penalties, one for each kind of friction term.

    Attributes:
        parts: normal equations of each block with rows.
        columns: indices of the candidate columns in the parts, by kind of term.
        places: indices of the candidate columns among the base parameters (k,).
        owners: joint of each candidate column, counted from 0 (k,).
        powers: weighted squared torques of all blocks (dof,).
        is_mixed: whether rows are combinations of joints; each joint then has an equal share of losses and powers.
        found: losses (blocks, dof) by ridges.
    """

    parts: tuple[Part, ...]
    columns: Mapping[str, Ints]
    places: Ints
    owners: Ints
    powers: Array
    is_mixed: bool = False
    found: dict[bytes, Array] = field(default_factory=dict)

    @staticmethod
    def from_regression(regression: Regression, groups: Mapping[str, Ints], is_mixed: bool = False) -> RidgeSearch:
        """Return the search on a compressed regression; groups: indices of its columns by kind of term."""
        columns = np.concatenate(list(groups.values()))
        extra = np.concatenate([own for name, own in groups.items() if name != ROTOR])
        weights = joint_weights(regression.select(np.setdiff1d(np.arange(len(regression.base)), extra)))
        parts = [Part.from_block(others, block, weights, columns)
                 for others, block in zip(regression.without_each(), regression.blocks, strict=True) if block.rows]
        ends = np.cumsum([0, *map(len, groups.values())])
        powers = np.array([weight ** 2 * factor.power
                           for weight, factor in zip(weights, regression.factors, strict=True)])
        if is_mixed:
            powers = np.full(len(powers), powers.mean())
        own = {name: np.arange(a, b) for name, a, b in zip(groups, ends, ends[1:], strict=False)}
        items, base = regression.base.parameters.items, regression.base.independent
        owners = np.array([items[base[c]].owner for c in columns], dtype=np.int64)
        return RidgeSearch(tuple(parts), own, columns, owners, powers, is_mixed)

    def ridge(self, ridges: Mapping[str, float], without: Collection[tuple[str, int]] = ()) -> Array:
        """Return the ridge penalty (k,) of each candidate column; without: kinds and joints of excluded terms."""
        ridge = np.full(len(self.owners), _EXCLUDED_RIDGE)
        for name, value in ridges.items():
            own = self.columns[name]
            ridge[own] = [_EXCLUDED_RIDGE if (name, j) in without else value for j in self.owners[own]]
        return ridge

    def losses(self, ridges: Mapping[str, float], without: Collection[tuple[str, int]] = ()) -> Array:
        """Return weighted squared torque errors (blocks, dof) on each block of time, of fits to all other blocks.

        Args:
            ridges: ridge by kind of term.
            without: kinds and joints, counted from 0, that are excluded.
        """
        ridge = self.ridge(ridges, without)
        key = ridge.tobytes()
        if key not in self.found:
            found = np.array([part.losses(ridge) for part in self.parts])
            self.found[key] = np.repeat(found.mean(axis=1, keepdims=True), found.shape[1], axis=1
                                        ) if self.is_mixed else found
        return self.found[key]

    def dropped(self, ridges: Mapping[str, float], dof: int) -> set[tuple[str, int]]:
        """Return the (kind, joint) of friction differences between directions that do not clearly predict better.

        A difference between directions may improve the whole robot but not a joint whose residual has another cause.
        """
        exact = EXACT_SHARE * self.powers / len(self.parts) + np.finfo(float).tiny  # smaller errors count as zero
        removed = set[tuple[str, int]]()
        for j in range(dof if ridges[DIFFERENCE] < _EXCLUDED_RIDGE else 0):
            losses = (self.losses(ridges, without)[:, j] for without in ({*removed, (DIFFERENCE, j)}, removed))
            without, now = (np.log(np.maximum(loss, 0.0) + exact[j]) for loss in losses)
            gains = without - now
            if gains.sum() <= STANDARD_ERRORS * gains.std(ddof=1) * np.sqrt(len(gains)):
                removed.add((DIFFERENCE, j))
        return removed

    def fitted(self, regression: Regression, ridges: Mapping[str, float],
               without: Collection[tuple[str, int]] = ()) -> Array:
        """Return the base parameters (base,) fitted to all data with ridge penalties; zero for excluded columns."""
        ridge = np.zeros(len(regression.base))
        ridge[self.places] = self.ridge(ridges, without)
        own = np.flatnonzero(np.isfinite(ridge))
        stacked = regression.stack(joint_weights(regression))
        size = np.linalg.norm(stacked.r, axis=0)[own]
        size[size == 0.0] = 1.0
        tall = np.vstack([stacked.r[:, own] / size, np.diag(np.sqrt(np.maximum(ridge[own], SMALLEST_RIDGE)))])
        values = np.zeros(len(ridge))
        values[own] = np.linalg.lstsq(tall, np.concatenate([stacked.rho, np.zeros(len(own))]), rcond=None)[0] / size
        return values

    def run(self, couplings: Sequence[Coupling] = ()) -> dict[str, float]:
        """Return the ridge of each kind of term, infinite for excluded ones, for a robot with given couplings.

        Every combination of ridges is compared with the best one. Of those that are not significantly or materially
        worse, one with the fewest kinds of terms is taken; if there are several, the best.
        """
        usual = _with(couplings)
        tried = [{**usual, **dict(zip(GROUPS, some, strict=True))}
                 for some in product((_EXCLUDED_RIDGE, *RIDGES), repeat=len(GROUPS))]
        logarithms = np.array([self._logarithms(ridges) for ridges in tried])  # (combinations, blocks)
        means, sums = logarithms.mean(axis=1), np.exp(logarithms).sum(axis=1)
        best = int(means.argmin())
        close = [k for k in range(len(tried)) if not (_exceeds(logarithms[k] - logarithms[best], STANDARD_ERRORS)
                                                      and sums[k] - sums[best] > IMMATERIAL_GAIN * self.powers.sum())]
        return self.with_rotor(tried[min(close, key=lambda k: (len(_kinds(tried[k])), means[k]))])

    def with_rotor(self, ridges: Mapping[str, float]) -> dict[str, float]:
        """Return the ridges with rotor inertia, or without it if the model then clearly predicts better."""
        without = {**ridges, ROTOR: _EXCLUDED_RIDGE}
        is_better = _exceeds(self._logarithms(ridges) - self._logarithms(without), CLEAR_ERRORS)
        return without if is_better else {**ridges, ROTOR: 0.0}

    def wins(self, ridges: Mapping[str, float], without: Collection[tuple[str, int]]) -> bool:
        """Return whether these ridges clearly predict better than plain friction; without: excluded terms."""
        plain = {**ridges, **dict.fromkeys(GROUPS, _EXCLUDED_RIDGE)}
        return _exceeds(self._logarithms(plain) - self._logarithms(ridges, without), CLEAR_ERRORS)

    def _logarithms(self, ridges: Mapping[str, float], without: Collection[tuple[str, int]] = ()) -> Array:
        """Return the logarithm (blocks,) of the squared torque errors of all joints on each block of time."""
        exact = EXACT_SHARE * float(self.powers.sum()) / len(self.parts) + np.finfo(float).tiny
        return np.asarray(np.log(np.maximum(self.losses(ridges, without).sum(axis=1), 0.0) + exact))

    def values(self, ridges: Mapping[str, float], name: str, without: Collection[tuple[str, int]] = ()) -> Array:
        """Return the values of the columns of one kind of term, averaged over fits without each block of time."""
        ridge = self.ridge(ridges, without)
        return np.asarray(np.mean([part.values(ridge) for part in self.parts], axis=0)[self.columns[name]])

    def worth(self, term: str, j: int, without: Mapping[str, float], with_: Mapping[str, float]) -> Worth:
        """Return the reduction of joint j's cross-validation error by a term, from ridges without and with it."""
        before, after = self.losses(without), self.losses(with_)
        return worth_of_gains(term, (before - after)[:, j], float(before[:, j].sum()), float(self.powers[j]))
