"""Parameters that the data do not excite, and the motion that would excite each.

The weighted triangular factor of the regression has one column per base parameter. The norm of this column is the
signal-to-noise ratio of the parameter. The part of the column that is orthogonal to all other columns shows how well
the parameter is distinguished from the others. To find a motion that would help, recorded rows are evaluated again with
one joint's range, speed or acceleration extended to its limits. The resulting standard error is compared with the
present standard error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dynid.arrays import Array, Bools, Ints
from dynid.estimate import Estimate, Problem
from dynid.estimate.linear import joint_weights
from dynid.findings import Note
from dynid.lapack import TRIANGULAR_SHARE, is_full_rank, solve_triangular
from dynid.order_statistics import distinct, median
from dynid.plain import PlainFields, finite
from dynid.recording import Samples
from dynid.regression.equations import Layout
from dynid.regression.factor import triangular
from dynid.threads import side_by_side
from dynid.validate.joint_motion import JointMotion, joint_motions
from dynid.validate.words import bare_joint, listed, sentence

Status = Literal["identified", "weak", "poorly-determined", "not-excited"]
Kind = Literal["wider", "faster", "harder", "more"]

LONGER_LOG = "a longer log would help more than a larger motion"

_REPEATED_ROWS = 96  # recorded rows that are evaluated again with extended motions
_WEAK_RELATIVE_STD = 0.3  # standard error relative to the parameter's size, above which a parameter is weakly excited
_NEGLIGIBLE_PERCENT = 0.2  # percent of a joint's torque: smaller effects of a standard error need no better excitation
_SMALL_PARAMETER = 0.2  # a parameter below this share of the usual size of its kind is small
_MIN_IMPROVEMENT = 1.5  # factor by which a motion must reduce the standard error to be recommended
_SUM_SHARE = 1.0 / 3.0  # share of the smaller standard error of two parameters below which only their sum is determined
_SINGULAR_SHARE = 1e-10  # singular values below this share of the largest are rounding errors


@dataclass(frozen=True)
class Remedy(PlainFields):
    """A motion that would excite a parameter.

    Attributes:
        joints: indices of the joints to move, from 0.
        kind: kind of motion.
        share: expected standard error of the parameter over its present one, for a log of the same length.
        advice: text that recommends the motion.
    """

    joints: tuple[int, ...]
    kind: Kind
    share: float
    advice: Note


@dataclass(frozen=True)
class ExcitedParameter(PlainFields):
    """Excitation of one base parameter by the data.

    Attributes:
        name, expression: name of the base parameter, and its combination of standard parameters.
        status: "poorly-determined" for a standard error above 50 % of the value, "weak" for a standard error that is
            large compared with usual values of parameters of the same unit.
        value, std: estimate of the parameter, and its standard error.
        sensitivity: RMS torque per unit of the parameter, over the equations that the parameter affects.
        torque: RMS torque due to the value of the parameter, N m or N.
        signal: magnitude of the value over its standard error if all other parameters were known.
        independent_share: share of the parameter's column that is independent of all other columns, 0 to 1.
        doubt: torque of one standard error, percent of the torque of the joint that the parameter affects most.
        confounded: names of parameters that the data do not distinguish from this parameter.
        lacking: whether a better motion is recommended; a parameter that is known to be small needs none.
        remedy, sentence: recommended motion, and the excitation as a sentence.
    """

    name: str
    expression: str
    status: Status
    value: float | None
    std: float | None
    sensitivity: float
    torque: float | None
    signal: float | None
    independent_share: float
    doubt: float | None
    confounded: tuple[str, ...]
    lacking: bool
    remedy: Remedy | None
    sentence: str


@dataclass(frozen=True, eq=False)
class DataExcitation(PlainFields, also=("sentences",)):
    """Excitation of all base parameters, and the motion of each joint (empty without samples)."""

    parameters: tuple[ExcitedParameter, ...]
    motions: tuple[JointMotion, ...]

    @property
    def missing(self) -> tuple[ExcitedParameter, ...]:
        """Parameters that a better motion would improve: not excited, poorly determined or weakly excited."""
        return tuple(p for p in self.parameters if p.lacking)

    @property
    def sentences(self) -> tuple[str, ...]:
        return tuple(p.sentence for p in self.missing)


def data_excitation(problem: Problem, estimate: Estimate) -> DataExcitation:
    """Return which base parameters the data determine well, weakly or not at all, and which motion would help."""
    regression, names = problem.regression, problem.base.names
    weights = joint_weights(regression)
    r = regression.stack(weights).r
    norms = np.linalg.norm(r, axis=0)
    [now] = side_by_side(standard_errors, [r], threads=1)
    independent_share = np.where(norms > 0, 1.0 / np.maximum(norms * now, 1.0), 0.0)
    rows = np.array(regression.rows, dtype=float)
    power, seen, torque_share = (np.zeros(len(names)) for _ in range(3))
    for factor, count in zip(regression.factors, rows, strict=True):
        own = np.sum(factor.r[:, :-1] ** 2, axis=0)
        power[factor.columns] += own
        seen[factor.columns] += count
        if factor.power > 0:
            torque_share[factor.columns] = np.maximum(torque_share[factor.columns], np.sqrt(own / factor.power))
    sensitivity = np.sqrt(power / np.maximum(seen, 1.0))
    same = estimate.names == names
    values = estimate.values if same else np.zeros(len(names))
    known: Bools = estimate.identified if same else np.ones(len(names), dtype=np.bool_)
    std = estimate.std if same else now
    size = _sizes(problem, values, known, std)
    doubt = np.where(known, 100.0 * np.where(known, std, 0.0) * torque_share, np.nan)
    weak = known & (std > _WEAK_RELATIVE_STD * size) & (doubt > _NEGLIGIBLE_PERCENT) & (problem.base.ridge == 0)
    poor = estimate.poorly_determined.copy() if same else np.zeros(len(names), dtype=np.bool_)
    motions = joint_motions(problem.model, problem.data, regression.joints)
    wanted = np.flatnonzero(weak | ~known)
    remedies = _remedies(problem, r, weights, now, motions, wanted, size) if len(wanted) and problem.data else {}
    confounded = dict(estimate.diagnostics.get("confounded", {}))
    for i, (other, both_ways) in (_one_way_pairs(problem, estimate, motions) if same else {}).items():
        confounded[names[i]], remedies[i] = (names[other],), both_ways
        weak[i] = poor[i] = True
    found = []
    for i, name in enumerate(names):
        status: Status = ("not-excited" if not known[i] else "poorly-determined" if poor[i] else "weak" if weak[i]
                          else "identified")
        collinear = tuple(confounded.get(name, ()))
        remedy = remedies.get(i)
        value = float(values[i]) if known[i] else None
        found.append(ExcitedParameter(
            name, problem.base.expressions[i], status, value, finite(std[i]), float(sensitivity[i]),
            None if value is None else abs(value) * float(sensitivity[i]),
            None if value is None else finite(abs(value) * float(norms[i])),
            float(np.clip(independent_share[i], 0.0, 1.0)), finite(doubt[i]), collinear, bool(weak[i] or not known[i]),
            remedy, _sentence(name, status, value, float(std[i]), bool(norms[i] > 0), collinear, remedy)))
    return DataExcitation(tuple(found), motions)


def _one_way_pairs(problem: Problem, estimate: Estimate, motions: Sequence[JointMotion]
                   ) -> dict[int, tuple[int, Remedy]]:
    """Return pairs of Coulomb friction and offset that the data do not distinguish, because the joint hardly reverses.
    The result maps the index of each parameter to the index of the other and the motion that would distinguish them."""
    leads = [problem.model.parameters.items[c] for c in problem.base.independent]
    found: dict[int, tuple[int, Remedy]] = {}
    for j, motion in enumerate(motions):
        own = [[i for i, item in enumerate(leads) if item.body is None and item.owner == j and is_kind(item)]
               for is_kind in (lambda item: item.symbol == "Fc", lambda item: item.kind.group == "offset")]
        if not motion.is_one_way or any(len(places) != 1 for places in own):
            continue
        pair, sign = [places[0] for places in own], 1.0 if motion.forward > 0.5 else -1.0
        if not estimate.identified[pair].all():
            continue
        along = np.array([1.0, sign])  # forward motion shows Fc + Fo, backward motion Fc - Fo
        value = float(along @ estimate.values[pair])
        std = float(np.sqrt(max(along @ estimate.covariance[np.ix_(pair, pair)] @ along, 0.0)))
        least = float(estimate.std[pair].min())
        if std > _SUM_SHARE * least or least < _WEAK_RELATIVE_STD * np.abs(estimate.values[pair]).max():
            continue
        names = [problem.base.names[i] for i in pair]
        advice = motion.both_ways(f", which shows {names[0]} {'+' if sign > 0.0 else '-'} {names[1]} = {value:.3g} +- "
                                  f"{std:.2g} {problem.base.units[pair[0]]} alone")
        for i, other in (pair, pair[::-1]):
            found[i] = other, Remedy((j,), "more", std / float(estimate.std[i]), advice)
    return found


def standard_errors(r: Array) -> Array:
    """Return standard errors (k,) of all parameters from a weighted triangular factor r (k, k); very large for
    parameters without excitation."""
    norms = np.linalg.norm(r, axis=0)
    scale = np.where(norms > 0, norms, max(float(norms.max(initial=0.0)), 1.0) * _SINGULAR_SHARE)
    unit = r / scale
    if is_full_rank(unit, TRIANGULAR_SHARE):
        return np.sqrt(np.sum(solve_triangular(unit, np.eye(len(unit))) ** 2, axis=1)) / scale
    _, singular, v = np.linalg.svd(unit, full_matrices=False)
    singular = np.maximum(singular, _SINGULAR_SHARE * max(float(singular[0]), 1e-300))
    return np.sqrt(np.sum((v / singular[:, None]) ** 2, axis=0)) / scale


def _sizes(problem: Problem, values: Array, known: Bools, std: Array) -> Array:
    """Return the typical magnitude of each parameter: its value, its nominal value, or a share of the usual magnitude
    of its kind.

    A parameter that is known to be small is identified; only a standard error that is large for its kind is reported.
    """
    size = np.where(known, np.abs(values), 0.0)
    kinds = np.array([problem.base.units[i] + ("+" if problem.model.parameters.items[c].body else "")
                      for i, c in enumerate(problem.base.independent)])
    is_certain = known & (std < _WEAK_RELATIVE_STD * np.abs(values))
    for kind in distinct(kinds):
        typical = np.abs(values[is_certain & (kinds == kind)])
        if len(typical):
            own = kinds == kind
            size[own] = np.maximum(size[own], _SMALL_PARAMETER * float(median(typical)))
    if problem.nominal is not None:
        size = np.maximum(size, np.abs(problem.base.matrix @ problem.nominal))
    return size


def _remedies(problem: Problem, r: Array, weights: Array, now: Array, motions: Sequence[JointMotion],
              wanted: Ints, size: Array) -> dict[int, Remedy]:
    """Return the motion that reduces the standard error of each wanted parameter most, by parameter index; parameters
    that no motion improves are omitted."""
    layout = Layout.from_model(problem.model, problem.base)
    q, dq, ddq = _recorded(problem.data)
    count = max(1.0, float(np.mean(problem.regression.rows)) / len(q))
    dof = problem.model.dof
    draws = np.random.default_rng(0).random((3 * dof, len(q)))  # the same for each motion

    def after(what: tuple[tuple[int, ...], Kind]) -> Array:
        """Return the standard errors (wanted,) of the wanted parameters for an equally long log with another motion.
        what: joints that move further, and the kind of their motion."""
        joints, kind = what
        numbers = iter(draws)
        new_q, new_dq, new_ddq = q.copy(), dq.copy(), ddq.copy()
        for k in joints:
            for signal, which, limits in ((new_q, "wider", motions[k].possible_positions),
                                          (new_dq, "faster", motions[k].speeds),
                                          (new_ddq, "harder", motions[k].accelerations)):
                if kind in (which, "more"):
                    signal[:, k] = limits[0] + (limits[1] - limits[0]) * next(numbers)
        entries = layout.entries(Samples.from_arrays(new_q, new_dq, new_ddq, np.zeros_like(q)), slice(None))
        rows = [r]
        for j in range(dof):
            block = np.zeros((len(q), len(problem.base)))
            block[:, layout.columns[j]] = weights[j] * np.sqrt(count) * entries[layout.joint(j)][:-1].T
            rows.append(block)
        return standard_errors(triangular(*rows))[wanted]

    kinds: tuple[Kind, ...] = ("wider", "faster", "harder")
    # A joint at rest may use its whole range; a joint that already uses its limits is not asked for more.
    tried: list[tuple[tuple[int, ...], Kind]] = [((k,), kind) for k in range(dof) for kind in (*kinds, "more")
                                                 if motions[k].room(kind)]
    tried += [(tuple(range(dof)), "more")] if dof > 1 or not tried else []
    results = dict(zip(tried, side_by_side(after, tried, threads=1), strict=True))
    everything = results[tuple(range(dof)), "more"]
    still = tuple(k for k in range(dof) if not motions[k].moves)

    def best_of(place: int, among: tuple[Kind, ...]) -> tuple[tuple[tuple[int, ...], Kind], float]:
        """Return the single-joint motion with the smallest standard error of a parameter, and that error."""
        return min(((what, float(std[place])) for what, std in results.items() if len(what[0]) == 1
                    and what[1] in among), key=lambda item: item[1], default=(((0,), "more"), np.inf))

    found: dict[int, Remedy] = {}
    for place, i in enumerate(wanted):
        (joints, kind), best = best_of(place, kinds)
        thorough, wide = best_of(place, ("more",))
        if wide < best / 2.0 and best > _WEAK_RELATIVE_STD * size[i]:
            (joints, kind), best = thorough, wide
        if float(everything[place]) < best / 10.0 and best > _WEAK_RELATIVE_STD * size[i]:
            joints, kind, best = still if len(still) > 1 else tuple(range(dof)), "more", float(everything[place])
        if best * _MIN_IMPROVEMENT < now[i] / np.sqrt(2.0):  # twice the data reduce it by sqrt(2)
            found[int(i)] = Remedy(joints, kind, best / float(now[i]), _advice(joints, kind, motions, problem, int(i)))
    return found


def _recorded(samples: Sequence[Samples]) -> tuple[Array, Array, Array]:
    """Return positions, velocities and accelerations (rows, dof) of rows spread evenly over all logs."""
    each = max(8, _REPEATED_ROWS // len(samples))
    chosen = [(log, np.linspace(0, len(log) - 1, min(each, len(log))).astype(int)) for log in samples]
    q, dq, ddq = (np.concatenate([getattr(log, name)[rows] for log, rows in chosen]) for name in ("q", "dq", "ddq"))
    return q, dq, ddq


def _advice(joints: tuple[int, ...], kind: Kind, motions: Sequence[JointMotion], problem: Problem, i: int) -> Note:
    if len(joints) > 1:
        if len(joints) == problem.model.dof:
            return Note("move-all-at-once", "move all joints at once, over their whole range; use an exciting "
                                            "trajectory")
        who = listed([bare_joint(motions[k].joint) for k in joints])
        return Note("move-together", f"move joints {who} in the same log")
    motion, leading = motions[joints[0]], problem.model.parameters.items[problem.base.independent[i]]
    if leading.body is None and leading.owner == joints[0] and kind != "wider":
        return motion.advice_for_friction()
    return motion.advice(kind)


def _sentence(name: str, status: Status, value: float | None, std: float, seen: bool, collinear: tuple[str, ...],
              remedy: Remedy | None) -> str:
    if status == "identified":
        return ""
    seldom = status in ("weak", "poorly-determined") and not collinear
    help_ = remedy.advice.text if remedy else LONGER_LOG if seldom else ""
    before = ": "
    if seldom:
        why = (f"is {'poorly determined' if status == 'poorly-determined' else 'weakly excited'}, "
               f"{0.0 if value is None else value:.3g} +- {std:.2g}")
    elif collinear:
        why = f"cannot be distinguished from {listed(collinear, 3)}"
    elif seen:
        why = "is not excited"
    else:
        why, before = "is not excited: no torque in the data depends on it", "; "
    return sentence(f"{name} {why}{before}{help_}" if help_ else f"{name} {why}")
