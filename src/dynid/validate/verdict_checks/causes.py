"""Causes: the fault of torques, motion, mounting or load that explains the data better than all others.

A fault has consequences that look like other problems. So the data are fitted again with the fault corrected, and the
checks of the fit are applied to the corrected fit: only remaining problems are reported.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynid.findings import Finding
from dynid.model import robot_model
from dynid.plain import PlainFields
from dynid.validate.candidates import BACKLASH
from dynid.validate.gains import drive_gains
from dynid.validate.hypotheses.gravity import estimate_gravity
from dynid.validate.hypotheses.hypothesis import Hypothesis, Weighed, scaled_torques
from dynid.validate.hypotheses.motions import position_sign
from dynid.validate.hypotheses.nominal import load_on_log, times_solid_steel, torque_factors, wrong_unit
from dynid.validate.hypotheses.other_log import load_taken_up
from dynid.validate.hypotheses.signs import inverted_joints, undecided_joints
from dynid.validate.hypotheses.trial import fold_logs, try_out
from dynid.validate.hypotheses.weigh import Clues, changed_trial, hypothesis_excerpt, mounted, weigh
from dynid.validate.thresholds import EQUALLY_EXPLAINED, MATERIAL, UNIT_SPREAD, WORSE_RATIO
from dynid.validate.verdict_checks.case import Case, each, suspect
from dynid.validate.verdict_checks.cause_findings import FINDINGS, NAMES
from dynid.validate.verdict_checks.exchanged_columns import (
    exchange_as_likely,
    find_exchanged_columns,
    is_unrelated,
    torques_exchanged,
    unrelated_torques,
)
from dynid.validate.verdict_checks.second_fit import METHOD, case_with_friction, without
from dynid.validate.verdict_checks.signals import beyond_limits
from dynid.validate.words import inside, joints_listed

SAME_MISFIT = 1e-4  # relative difference of two misfits that is a rounding error
MILLI_TIMES = (500.0, 2000.0)  # ratio to nominal torques at which torques are probably in thousandths of a newton metre
MILLI_UNIT = "they look like N mm (or mN m), not N m"
KILO_UNIT = "they look like kN m, not N m"


@dataclass(frozen=True)
class Refit(PlainFields, also=("joint", "gain")):
    """Corrections of a second fit: the causes in the order they were found, the affected joints, their numbers (gains,
    factors, seconds), and the method."""

    causes: tuple[str, ...]
    joints: tuple[str, ...]
    values: tuple[float, ...]
    method: str = METHOD

    @property
    def joint(self) -> str | None:
        """Name of the first joint whose data were corrected; None if no single joint was."""
        return self.joints[0] if self.joints else None

    @property
    def gain(self) -> float | None:
        """The number of the first correction: a gain, a factor or a time in seconds; None if it has none."""
        return self.values[0] if self.values else None


@dataclass(frozen=True, eq=False)
class Explained:
    """Faults that explain the data: findings, the fit with the faults corrected, the corrections, and all hypotheses
    that were compared."""

    findings: tuple[Finding, ...]
    case: Case
    refit: Refit | None = None
    weighed: tuple[Weighed, ...] = ()
    done: bool = False  # nothing more can be learned from the fit
    hypotheses: tuple[Hypothesis, ...] = ()  # corrected in the second fit, in order


def explained(case: Case) -> Explained:
    """Return the causes that explain the data, each searched in the data with the earlier ones corrected: units first,
    because wrong ones make exchanged columns look likely, then exchanged torque columns, signs, all hypotheses. If the
    log is so short that the parameters fit any torques, only causes that the nominal model shows are searched."""
    state = Explained((), case)
    searched = (_load_step, _unit, _exchanged, _signs, _too_heavy, _weighed, _load)
    for look in (_unit, _too_heavy, _load) if case.is_short else searched:
        if not state.done:
            state = look(state)
    unrelated = is_unrelated(case) and is_unrelated(state.case) and is_unrelated(case_with_friction(case))
    if unrelated or _others_are_worse(case):
        # Gravity and friction of a joint that moves alike in both logs are explained by either motion.
        found = unrelated_torques(case) if unrelated else torques_exchanged(case)
        return state if found is None else Explained((found,), case, done=True)
    return state


def _others_are_worse(case: Case) -> bool:
    """Whether another log is predicted far worse than the fitted one."""
    return bool(case.problem.data) and any(other.relative_error > WORSE_RATIO * case.reconstruction.relative_error
                                           for other in case.validations)


def _load_step(state: Explained) -> Explained:
    """Report a load that was taken up or set down during a log."""
    case = state.case
    found = load_taken_up(case.problem, case.trial.noise) if case.problem.data else None
    if found is None:
        return state
    log = case.problem.data[0]
    finding = suspect("load-changed", "load", log.source,
                      f"the load of the robot changes within {log.source}, between {found.start:.4g} and "
                      f"{found.stop:.4g} s: the inertial parameters of the last body explain "
                      f"{100 * found.explained:.0f} % of the difference; identify from the part before or after the "
                      f"change, with `--set log.stop={found.start:.4g}` or `--set log.start={found.stop:.4g}`",
                      logs=[log.source], evidence={"start": found.start, "stop": found.stop, "excess": found.excess,
                                                   "explained": found.explained})

    def change(model: Any, logs: Any) -> Any:
        before, end = (int(np.searchsorted(logs[0].t, x)) for x in (found.start, found.stop))
        longest = (0, before) if before > len(logs[0].t) - end else (end, len(logs[0].t))
        return model, (logs[0].select([longest]),)

    return _with(state, finding, Hypothesis("load-changed", (), change))


def accepted(found: Explained, flexible: Case) -> Explained:
    """Return the causes found with plain friction, except those that the model's own friction explains better.

    Plain friction is viscous and Coulomb friction. A cause is kept if the corrected data with plain friction are
    predicted better than the unchanged data with the model's own friction, or if it explains as much in addition to
    that friction. The evidence of a wrong sign is negative friction: a wrong sign is kept if the model's own friction
    is negative too and joints agree as well.
    """
    if found.case is flexible or flexible.plain is flexible:
        return found
    if not found.hypotheses:
        return replace(found, case=flexible)
    with_friction, without_fault = flexible.trial.mean_log_share, found.case.trial.mean_log_share
    if without_fault < with_friction - math.log(EQUALLY_EXPLAINED):
        return _with_friction(found, flexible)
    logs, model = hypothesis_excerpt(flexible.problem.data), flexible.problem.model
    before = try_out(fold_logs(model, logs, flexible.problem.base, flexible.problem.threads)).mean_log_share
    for hypothesis in found.hypotheses:
        model, logs = hypothesis.change(model, logs)
    base = flexible.problem.base if model is flexible.problem.model else None
    after = try_out(fold_logs(model, logs, base, flexible.problem.threads)).mean_log_share
    if after < before + math.log(MATERIAL) or (after < before + math.log(EQUALLY_EXPLAINED)
                                               and _signs_remain(found, flexible)):
        return _with_friction(found, flexible)
    if without_fault > with_friction + math.log(EQUALLY_EXPLAINED):
        return Explained((), flexible, weighed=found.weighed)
    doubt = "One of: this fault, or friction that the model has terms for; both explain the data equally well."
    return replace(found, findings=tuple(replace(one, text=f"{one.text} {doubt}") for one in found.findings))


def _signs_remain(found: Explained, flexible: Case) -> bool:
    """Whether all causes are wrong torque signs that the model's own friction confirms."""
    inverted = inverted_joints(flexible.problem.regression, flexible.tests.rows.inflation)
    return all(one.cause == "torque-sign" and set(one.joints) <= set(inverted) for one in found.hypotheses)


def _with_friction(found: Explained, flexible: Case) -> Explained:
    """Return the explanation with the model's own friction in the corrected fit, so that its lack is not reported."""
    def change(model: Any, logs: Any) -> Any:
        for hypothesis in found.hypotheses:
            model, logs = hypothesis.change(model, logs)
        return model, logs

    return found if found.done else replace(found, case=without(flexible, Hypothesis("", (), change)))


def _with(state: Explained, finding: Finding, hypothesis: Hypothesis | None, weighed: tuple[Weighed, ...] = (),
          done: bool = False) -> Explained:
    """Return the explanation with one more cause, and the fit corrected for it."""
    case, refit, hypotheses = state.case, state.refit, state.hypotheses
    if hypothesis is not None:
        names = case.problem.regression.joints
        joints = tuple(names[j] for j in hypothesis.joints)
        case = without(case, hypothesis)
        before = refit or Refit((), (), ())
        refit = Refit((*before.causes, hypothesis.cause), (*before.joints, *joints),
                      (*before.values, *hypothesis.values))
        hypotheses = (*hypotheses, hypothesis)
    return Explained((*state.findings, finding), case, refit, state.weighed + weighed, done, hypotheses)


def _exchanged(state: Explained) -> Explained:
    """Report torques or positions in other joints' columns."""
    found = find_exchanged_columns(state.case)
    return state if found is None else _with(state, *found)


def _signs(state: Explained) -> Explained:
    """Report torques, or positions, of any set of joints with the opposite sign."""
    case = state.case
    regression, dof = case.problem.regression, case.problem.model.dof
    inflation = case.tests.rows.inflation if case.problem.data else 1.0
    inverted = inverted_joints(regression, inflation)
    if not inverted:
        return state
    torques = _reversed_torques(inverted, dof)
    if case.problem.data and not _agreed(case, torques):
        # Most joints are surely inverted, and only together with those whose friction is too small to decide.
        inverted = tuple(sorted({*inverted, *undecided_joints(regression, inflation)}))
        torques = _reversed_torques(inverted, dof)
        if 2 * len(inverted_joints(regression, inflation)) <= dof or not _agreed(case, torques):
            return state
    if case.problem.data and _mounted_instead(case, inverted):
        return state
    names = [regression.joints[j] for j in inverted]
    every = drive_gains(case.problem, case.estimate)
    gains = [every[j].gain for j in inverted]
    known = [-1.0 if gain is None or gain > 0 else gain for gain in gains]
    evidence = {"gain": known[0] if len(known) == 1 else each(known)}
    if _positions_instead(case, torques):
        finding = suspect("position-sign", "position sign", joints_listed(names),
                          f"the positions of {joints_listed(names)} have the opposite sign: friction "
                          "and inertia are negative, and only the opposite sign agrees with the torques "
                          "of the other joints", joints=names)
        return _with(state, finding, position_sign(inverted, dof))
    who = "all torques have" if len(names) == dof and dof > 1 else f"the torque of {joints_listed(names)} has" \
        if len(names) == 1 else f"the torques of {joints_listed(names)} have"
    pair = exchange_as_likely(case, torques)
    doubt = "" if pair is None else (". One of: signs are wrong, or the torques of "
                                     f"{joints_listed([regression.joints[j] for j in sorted(pair)])} are exchanged")
    finding = suspect("torque-sign", "torque sign", "all joints" if len(names) == dof > 1 else joints_listed(names),
                      f"{who} the wrong sign: friction and inertia are negative{doubt}", joints=names,
                      evidence=evidence)
    return _with(state, finding, torques)


def _reversed_torques(joints: tuple[int, ...], dof: int) -> Hypothesis:
    """Return the hypothesis that the torques of these joints (from 0) have the opposite sign."""
    sign = np.ones(dof)
    sign[list(joints)] = -1.0
    return Hypothesis("torque-sign", joints, scaled_torques(sign), sign, (-1.0,) * len(joints))


def _agreed(case: Case, hypothesis: Hypothesis) -> bool:
    """Whether a hypothesis does not increase the inconsistency between joints."""
    logs = hypothesis_excerpt(case.problem.data)
    as_it_is, changed = (changed_trial(case.problem, logs, one, case.trial.noise).score
                         for one in (Hypothesis(""), hypothesis))
    return changed < (1.0 + SAME_MISFIT) * as_it_is


def _mounted_instead(case: Case, inverted: Sequence[int]) -> bool:
    """Whether no sign of these joints is wrong under the direction of gravity that explains the data best; another
    gravity makes friction and inertia of single joints negative as well."""
    model = robot_model(case.problem.model)
    if model is None or not np.any(model.robot.gravity):
        return False
    some = hypothesis_excerpt(case.problem.data)
    under = mounted(estimate_gravity(case.problem, some)).change(case.problem.model, some)
    found = inverted_joints(fold_logs(*under, None, case.problem.threads), case.tests.rows.inflation)
    return not set(inverted) & set(found)


def _positions_instead(case: Case, torques: Hypothesis) -> bool:
    """Whether positions with the opposite sign explain more than torques with the wrong sign."""
    problem, dof = case.problem, case.problem.model.dof
    if not problem.data or len(torques.joints) == dof:
        return False
    some = hypothesis_excerpt(problem.data)
    by_positions, by_torques = (changed_trial(problem, some, one, case.trial.noise).score
                                for one in (position_sign(torques.joints, dof), torques))
    return by_positions < 0.5 * by_torques


def _unit(state: Explained) -> Explained:
    """Report torques in another unit than the nominal model's, or not converted at all."""
    case = state.case
    factors = torque_factors(case.sheet, case.problem.model.dof)
    off = wrong_unit(factors)
    if off is None:
        return state
    names = case.problem.regression.joints
    joints = [names[j] for j, value in enumerate(factors) if value is not None]
    sizes = np.abs(off)
    is_same = float(np.ptp(np.log(sizes))) < 2.0 * UNIT_SPREAD
    text = (f"all torques are about {np.median(sizes):.3g} times those of the nominal model: "
            f"{_likely_unit(float(np.median(sizes)))}"
            if is_same else f"torques are {_times(sizes.min())} to {_times(sizes.max())} times those of the nominal "
                          "model, with another factor for each joint: they are probably raw counts or currents; give "
                          "drive gains and gear ratios, or as a start the factors by the nominal model")
    # Gravity determines one common unit best; a factor per joint needs the whole nominal torques.
    nominal = [gain.by_nominal for gain in case.gains if gain.by_nominal is not None and is_same]
    finding = suspect("torque-unit", "torque unit", "torques", text, joints=joints if not nominal else
                      [gain.joint for gain in case.gains if gain.by_nominal is not None],
                      evidence={"nominal": each(nominal or off)})
    return _with(state, finding, None, done=True)


def _likely_unit(times: float) -> str:
    """Return a remark on the unit of torques that are so many times the nominal ones."""
    return MILLI_UNIT if MILLI_TIMES[0] < times < MILLI_TIMES[1] else \
        KILO_UNIT if MILLI_TIMES[0] < 1.0 / times < MILLI_TIMES[1] else "check their unit"


def _times(factor: float) -> str:
    """Format a factor with two digits, without an exponent if it is readable."""
    return f"{float(f'{factor:.2g}'):,.15g}" if 1e-3 < factor < 1e7 else f"{factor:.2g}"


def _too_heavy(state: Explained) -> Explained:
    """Report torques too large for a robot of this size, if there is no nominal model."""
    if any(value is not None for value in torque_factors(state.case.sheet, state.case.problem.model.dof)):
        return state
    times = times_solid_steel(state.case.problem, state.case.estimate)
    if times is None or times < 1.0:
        return state
    return _with(state, suspect(
        "torque-unit", "torque unit", "torques",
        f"the unit of the torques is doubtful: the gravity torque of the links is {times:.2g} times that of a solid "
        "steel bar of the robot's length; check for N mm, raw counts or currents",
        evidence={"times_solid_steel": times}), None)


def _weighed(state: Explained) -> Explained:
    """Report the best hypothesis in cross-validation: scales, time stamps, delay, gears, backlash, mounting."""
    case = state.case
    if not case.problem.data:
        return state
    found = weigh(case.problem, case.trial, _clues(case, bool(state.findings)))
    state = replace(state, weighed=(*state.weighed, *found.weighed))
    best = found.best
    if best is None and _upside_down(case):
        gravity = estimate_gravity(case.problem)
        best = mounted(gravity) if gravity.angle > 90.0 else None
    if best is None:
        return state
    finding = FINDINGS[best.cause](case, best)
    weight = found.weighed[0].weight if found.weighed and found.weighed[0].cause == best.cause else 1.0
    if found.rivals:
        names = case.problem.regression.joints
        also = "; ".join(f"{NAMES[one.cause]} ({joints_listed([names[j] for j in one.joints])}, {100 * share:.0f} %)"
                         if one.joints else f"{NAMES[one.cause]} ({100 * share:.0f} %)" for one, share in found.rivals)
        text = f"One of: {inside(finding.text).rstrip('.')} ({100 * weight:.0f} %); {also}."
        finding = replace(finding, text=text)
    finding = replace(finding, evidence={**finding.evidence, "weight": weight})
    return _with(state, finding, best)


def _clues(case: Case, second: bool) -> Clues:
    """Return the evidence of residual tests and the nominal model before hypotheses are compared."""
    names, tests = case.problem.regression.joints, case.tests.joints
    followed = [max((fit.left_out for fit in test.follows[:1]), default=0.0) if test.explained_by is not None else 0.0
                for test in tests]
    gaps = {names.index(fit.neighbour or test.joint) for test in tests
            if (fit := test.explained_by) is not None and fit.candidate in (BACKLASH, "reversal")}
    return Clues(case.tests.rows.inflation, [gain.by_nominal for gain in case.gains], followed,
                 [] if second else sorted(gaps), second)


def _upside_down(case: Case) -> bool:
    """Whether the nominal model's gravity has the wrong sign at every joint that it affects. In a slow motion negative
    masses explain the torques as well as reversed gravity."""
    nominal = [gain.by_nominal for gain in case.gains if gain.by_nominal is not None]
    return robot_model(case.problem.model) is not None and bool(nominal) and max(nominal) < 0.0


def _load(state: Explained) -> Explained:
    """Report a load that the robot file does not contain, unless positions beyond its limits contradict the file."""
    if state.findings or not state.case.problem.data or any(
            one.code == "position-beyond-limits" for one in beyond_limits(state.case)):
        return state
    load = load_on_log(state.case.problem, state.case.sheet)
    if load is None:
        return state
    mass = "" if load.mass is None else f" of {load.mass:.3g} +- {load.std:.1g} kg"
    finding = suspect("payload", "payload", load.body,
                      f"the torques are consistent with a load{mass} on {load.body} that the robot file does not "
                      "contain (a tool, or a last link that is heavier than in the file, looks the same): this "
                      f"load explains {100 * load.explained:.0f} % of the residual of the nominal model, and is up to "
                      f"{100 * load.share:.0f} % of a joint's torque", evidence={
                          "explained": load.explained, "share": load.share,
                          **({} if load.mass is None else {"mass": load.mass, "std": load.std or 0.0})})
    return _with(state, finding, None)
