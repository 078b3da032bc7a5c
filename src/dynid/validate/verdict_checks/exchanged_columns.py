"""Torques or positions that belong to other joints or to another log, or are shifted in time."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from dynid.arrays import Array, Ints
from dynid.findings import Finding
from dynid.model import robot_model
from dynid.order_statistics import median
from dynid.recording.decimate import decimated
from dynid.validate import thresholds
from dynid.validate.hypotheses.gravity import estimate_gravity
from dynid.validate.hypotheses.hypothesis import Hypothesis, scaled_torques
from dynid.validate.hypotheses.motions import swapped_positions
from dynid.validate.hypotheses.screen import HypothesisScreen
from dynid.validate.hypotheses.signs import inverted_joints, swapped_torques
from dynid.validate.hypotheses.trial import Trial, fold_logs, posterior_weights, try_out
from dynid.validate.hypotheses.weigh import hypothesis_excerpt, mounted
from dynid.validate.verdict_checks.case import Case, suspect
from dynid.validate.verdict_checks.cause_findings import positions_swapped
from dynid.validate.words import joint_label, joints_listed, listed

SAME_LENGTH = 0.9  # shortest length relative to the longer log at which torques of two logs may have been exchanged


def find_exchanged_columns(case: Case) -> tuple[Finding, Hypothesis] | None:
    """Return which torques or positions are in the columns of other joints, or None.

    Each joint's own equations find any order of the torques. If they explain another joint's torque as well as their
    own, or if positions are exchanged, the fit of all joints finds two exchanged columns.
    """
    if case.problem.model.dof < 2:
        return None
    order = swapped_torques(case.tests.rows)
    found = _two_columns(case) if order is None else _torques_in_order(order)
    if found is None or _gravity_explains_more(case, found):
        return None
    doubt = ""
    if len(found.joints) == 2:
        dof = case.problem.model.dof
        torques, positions = _two_torques(*found.joints, dof), swapped_positions(*found.joints, dof)
        lead = _left(case, torques) - _left(case, positions)
        # Exchanged positions also affect the other joints' equations; without that evidence exchanged torques are as
        # likely.
        least = math.log(thresholds.EQUALLY_EXPLAINED)
        found = positions if lead > least else torques
        doubt = " One of: this, or the positions of these joints are exchanged." if abs(lead) < least else ""
    finding = (_torques_swapped if found.cause == "torques-swapped" else positions_swapped)(case, found)
    return replace(finding, text=finding.text + doubt), found


def _gravity_explains_more(case: Case, exchange: Hypothesis) -> bool:
    """Whether another direction of gravity, which makes an exchange look likely, explains more than the exchange."""
    model = robot_model(case.problem.model)
    if model is None or not np.any(model.robot.gravity) or not case.problem.data:
        return False
    gravity = estimate_gravity(case.problem, tuple(map(decimated, hypothesis_excerpt(case.problem.data))))
    return gravity.angle > thresholds.GRAVITY_TURNED and _left(case, mounted(gravity)) < _left(case, exchange)


def exchange_as_likely(case: Case, sign: Hypothesis) -> tuple[int, int] | None:
    """Return two joints (from 0) whose exchanged torques may explain the negative friction of one joint as well as a
    wrong sign: the exchange makes friction positive, and its posterior weight is not small."""
    problem, dof = case.problem, case.problem.model.dof
    if not problem.data or len(sign.joints) != 1:
        return None

    def blocks(one: Trial) -> Array:  # relative to each torque, since exchanged torques have different sizes
        return np.exp(np.mean(np.log(one.by_block / np.where(one.power > 0, one.power, 1.0) + 1e-12), axis=1))

    as_sign, [j] = blocks(excerpt_trial(case, sign)), sign.joints
    for k in range(dof):
        found = excerpt_trial(case, _two_torques(j, k, dof)) if k != j else None
        if found is not None and not inverted_joints(found.regression, case.tests.rows.inflation) \
                and posterior_weights([as_sign, blocks(found)])[1] > thresholds.RIVAL_WEIGHT:
            return j, k
    return None


def _torques_in_order(order: Ints) -> Hypothesis:
    """Return the hypothesis that torques are in the columns of other joints; order (dof,): the joint of each column."""
    moved = tuple(int(j) for j in np.flatnonzero(order != np.arange(len(order))))

    def change(model: Any, logs: Any) -> Any:
        return model, tuple(replace(log, tau=np.ascontiguousarray(log.tau[:, order]),
                                    keep=np.ascontiguousarray(log.keep[:, order])) for log in logs)

    return Hypothesis("torques-swapped", moved, change, values=tuple(map(float, order[list(moved)])))


def _two_torques(j: int, k: int, dof: int) -> Hypothesis:
    order = np.arange(dof)
    order[[j, k]] = k, j
    return _torques_in_order(order)


def _torques_swapped(case: Case, found: Hypothesis) -> Finding:
    names = case.problem.regression.joints
    joints = [names[j] for j in found.joints]
    pairs = [f"the equations of {joint_label(names[j])} explain the torque logged for {joint_label(names[int(k)])}"
             for j, k in zip(found.joints, found.values, strict=True)]
    return suspect("torques-swapped", "torques swapped", joints_listed(joints),
                   f"the torques of {joints_listed(joints)} are exchanged, each in the column of another joint: "
                   + listed(pairs, 3), joints=joints, evidence={"column_of": tuple(k + 1.0 for k in found.values)})


def _two_columns(case: Case) -> Hypothesis | None:
    """Return the hypothesis of two exchanged columns, if it lets one set of parameters predict torques far better."""
    problem, dof, null = case.problem, case.problem.model.dof, case.trial
    rough = np.flatnonzero(null.typical > thresholds.MIXED_COLUMNS_SHARE ** 2 * null.power).tolist()
    if not problem.data or not rough:
        return None
    screen, same = HypothesisScreen.from_problem(problem, problem.data, null.noise), Hypothesis("")
    # Exchanged torques come first, because they share the columns of the motion. They are accepted only if joints
    # contradict each other in the fit, not only in cross-validation.
    contradict = null.fit_score > thresholds.UNEXPLAINED_MISFIT * null.own_score
    kinds = ([_two_torques(j, k, dof) for j, k in combinations(range(dof), 2) if contradict],
             [swapped_positions(j, k, dof) for j, k in combinations(rough, 2)])
    wanted = screen.relative_left(same) - 0.5 * thresholds.SWAP_LOG_GAIN / dof
    hopes = [found for kind in kinds if (found := _best(screen, kind, wanted)) is not None]
    if hopes:
        # A wrong sign makes an exchange look likely as well, and explains more.
        signs = (scaled_torques(np.where(np.isin(range(dof), some), -1.0, 1.0))
                 for count in (1, 2) for some in combinations(range(dof), count))
        wanted = min(wanted, *(screen.relative_left(Hypothesis("torque-sign", (), change)) for change in signs))
    likely = [(_left(case, one), one) for hope, one in hopes if hope < wanted]
    least, best = min(likely, key=lambda pair: pair[0], default=(np.inf, same))
    return best if likely and least < _left(case, same) - thresholds.SWAP_LOG_GAIN / dof else None


def _best(screen: HypothesisScreen, kind: list[Hypothesis], wanted: float) -> tuple[float, Hypothesis] | None:
    """Return the exchange with the smallest relative residual below `wanted` that each joint's own equations allow.

    Wrong torque scales make an exchange look likely as well, but each joint's own equations explain a scaled torque.
    """
    most = screen.own_left(Hypothesis("")) + 2.0 * math.log(thresholds.EQUALLY_EXPLAINED)
    ranked = sorted(((screen.relative_left(one), k) for k, one in enumerate(kind)))
    return next(((left, kind[k]) for left, k in ranked if left < wanted and screen.own_left(kind[k]) < most), None)


def excerpt_trial(case: Case, hypothesis: Hypothesis) -> Trial:
    """Return the fit of the decimated excerpt corrected for a hypothesis."""
    problem = case.problem
    model, logs = hypothesis.change(problem.model, tuple(map(decimated, hypothesis_excerpt(problem.data))))
    return try_out(fold_logs(model, logs, problem.base if model is problem.model else None, problem.threads))


def _left(case: Case, hypothesis: Hypothesis) -> float:
    """Return `mean_log_share` under a hypothesis about columns; it does not depend on the torques' scales."""
    return excerpt_trial(case, hypothesis).mean_log_share


def is_unrelated(case: Case, trial: Trial | None = None) -> bool:
    """Whether one set of parameters does not explain most of the torque variance of most joints in cross-validation.
    trial: a fit to the case's data; default: that of the unchanged data."""
    trial = case.trial if trial is None else trial
    moving = np.array([not case.at_rest(j) for j in range(case.problem.model.dof)]) & (trial.power > 0)
    if not case.problem.data or not moving.any():
        return False
    # Shares of each torque's variance; the fit uses some rows of the log.
    torques = [np.concatenate(case.torques(int(j))) for j in np.flatnonzero(moving)]
    about_mean = [float(np.var(tau)) / max(float(np.mean(tau ** 2)), 1e-300) for tau in torques]
    variation = trial.power[moving] * np.asarray(about_mean)
    return float(median(trial.typical[moving] / np.maximum(variation, 1e-300))) > thresholds.UNRELATED_SHARE


def torques_exchanged(case: Case) -> Finding | None:
    """Return a finding on torques that were exchanged with those of another given log, whose motion explains them far
    better; None if they were not."""
    logs = [*case.problem.data, *(log for other in case.validations for log in other.samples)]
    for one in case.problem.data:
        for other in logs:
            rows = min(len(one), len(other))
            if other is one or rows < SAME_LENGTH * max(len(one), len(other)):
                continue
            mixed = replace(one.select([(0, rows)]), tau=other.select([(0, rows)]).tau)
            own = try_out(fold_logs(case.problem.model, (mixed,), case.problem.base, case.problem.threads))
            if own.mean_log_share < case.trial.mean_log_share + math.log(thresholds.UNRELATED_SHARE):
                return suspect(
                    "torques-exchanged", "torques exchanged", one.source,
                    f"the torques of {one.source} and {other.source} are exchanged: the motion of the first log "
                    "explains the torques of the second; give each log its own torque file", severity="fatal",
                    logs=[one.source, other.source])
    return None


def unrelated_torques(case: Case) -> Finding:
    """Return a finding on torques that the motion of the log does not explain: they belong to another log."""
    return torques_exchanged(case) or suspect(
        "torques-unrelated", "torques unrelated", "all logs",
        "torques and positions do not belong together: no joint's equations explain its torque, whatever pair of "
        "columns, sign, unit, delay or direction of gravity is assumed; check that columns are in the robot's order of "
        "joints (dynid inspect ROBOT --log LOG lists them), that position columns hold no velocities, and that "
        "positions and torques are of the same log and start at the same time", severity="fatal",
        logs=[log.source for log in case.problem.data])
