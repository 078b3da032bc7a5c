"""Comparison of all hypotheses about torques, motion and mounting on the same blocks of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array
from dynid.estimate import Problem
from dynid.model import LinearModel, Model, required_robot_model, robot_model
from dynid.recording import Samples
from dynid.recording.decimate import decimated
from dynid.recording.excerpts import excerpt
from dynid.regression import Regression, TorqueEquations, fold
from dynid.regression.derived import CachedEquations
from dynid.validate import thresholds
from dynid.validate.hypotheses.gains import Scales, wrong_scales
from dynid.validate.hypotheses.gravity import Gravity, estimate_gravity, with_gravity
from dynid.validate.hypotheses.hypothesis import Hypothesis, Weighed, scaled_torques
from dynid.validate.hypotheses.motions import (
    GAPS,
    backlash,
    held_for,
    hoped,
    motion_hypotheses,
    polished,
    presliding,
    refined,
    worth_of_delay,
)
from dynid.validate.hypotheses.screen import HypothesisScreen
from dynid.validate.hypotheses.trial import (
    BLOCKS,
    Trial,
    fold_logs,
    posterior_weights,
    try_out,
)

EXCERPT_ROWS = 16000  # rows at full rate of the excerpt of all logs on which hypotheses are compared
EXCERPT_DECIMATED_ROWS = 1000  # rows of the excerpt after decimation, at least: some dozen for each parameter of an arm
FITTED_ROWS = 300  # rows of all logs to which the reported number of a hypothesis, such as a delay, is fitted
GRAVITY_ROWS = 6000  # consecutive rows at full rate for the direction of gravity: fewer contain little of the motion
MOTIONS_REFINED = 4  # number of the most promising hypotheses about the motion, whose numbers are refined
SCALE_CAUSES = ("drive-gain", "torque-sign")
BACKLASH_CAUSE = "residual-follows-backlash"
GRAVITY_REMOVED = "gravity-removed"
MIRRORED = ("position-sign",)  # causes that another joint explains as well, because the arm has a mirror image


@dataclass(frozen=True, eq=False)
class Clues:
    """Evidence before the comparison of hypotheses.

    Attributes:
        inflation: ratio of standard errors with autocorrelation to those without.
        nominal: (dof entries), scale of each torque relative to the nominal model.
        followed: (dof entries), share of each joint's own residual that some candidate explains; a hypothesis about all
            joints has to explain more.
        gaps: joints (from 0) whose residual is consistent with backlash.
        second: whether a cause was found before, so that another one has to explain more.
    """

    inflation: float
    nominal: Sequence[float | None]
    followed: Sequence[float]
    gaps: Sequence[int]
    second: bool = False


@dataclass(frozen=True, eq=False)
class Balance:
    """Result of the comparison of hypotheses.

    Attributes:
        best: the best hypothesis, or None if none is significant.
        rivals: other causes with a posterior weight above RIVAL_WEIGHT.
        weighed: all hypotheses, the most probable first.
    """

    best: Hypothesis | None
    rivals: tuple[tuple[Hypothesis, float], ...]
    weighed: tuple[Weighed, ...]


def weigh(problem: Problem, null: Trial, clues: Clues) -> Balance:
    """Return the hypothesis about all joints' torques, motion or mounting that explains the data best.

    null: the fit to the unchanged data. Screening on a few rows selects the hypotheses that may explain enough; only
    these are compared in cross-validation over blocks of time.
    """
    noise, dof = null.noise, problem.model.dof
    before, own = null.score, null.own_score
    likely: list[tuple[float, Hypothesis]] = []
    scales = wrong_scales(problem.regression, noise, clues.inflation, clues.nominal)
    rough = np.sqrt(null.alone / np.where(null.power > 0, null.power, 1.0))
    mixed = np.flatnonzero(rough > thresholds.MIXED_JOINT).tolist()
    logs = hypothesis_excerpt(problem.data)
    if before > thresholds.CONTRADICTION_ASKED * own or np.any(rough > thresholds.ROUGH_JOINT):
        # If joints do not contradict each other, only the motion of a joint whose own equations leave a large residual
        # can be wrong.
        fitted, loose = (HypothesisScreen.from_problem(problem, logs, noise, FITTED_ROWS),
                         np.flatnonzero(rough > thresholds.ROUGH_JOINT).tolist())
        likely = _motions(HypothesisScreen.from_problem(problem, logs, noise), fitted,
                          range(dof) if before > thresholds.CONTRADICTION_ASKED * own else loose, mixed)
        likely += _gravity(problem, fitted)
    if scales is None and not likely and not clues.gaps:
        return Balance(None, (), ())
    likely.sort(key=lambda pair: pair[0])
    # If no hypothesis explains enough to be reported, decimated logs suffice to state how much the best one explains.
    is_coarse = scales is None and not clues.gaps and likely[0][0] > thresholds.MATERIAL
    if is_coarse or logs is not problem.data or len(problem.regression.blocks) != BLOCKS:  # the same blocks for all
        null = try_out(_unchanged(problem, tuple(map(decimated, logs)) if is_coarse else logs))
        noise, before, own = null.noise, null.score, null.own_score
    simple = np.asarray(clues.followed, dtype=float)
    terms = before - float(np.sum(simple * null.alone / noise ** 2)) / max(float(null.rows.sum()), 1.0)
    compared: list[tuple[Trial, Hypothesis]] = []
    material, share = set[int](), thresholds.SECOND_MATERIAL if clues.second else thresholds.MATERIAL
    for one in (*([] if scales is None else [_scaled(scales, dof)]), *(one for _, one in likely)):
        trial = changed_trial(problem, logs, one, noise, is_coarse=is_coarse)
        compared.append((trial, one))
        if trial.score <= share * min(before, terms) and _matters(null, trial, one, logs):
            material.add(id(one))
        elif one.cause not in SCALE_CAUSES:
            break  # hypotheses that explain less on the screening rows are not tested
    compared.sort(key=lambda pair: pair[0].score)
    if any(one.cause == GRAVITY_REMOVED and trial.score <= thresholds.EQUALLY_EXPLAINED * compared[0][0].score
           for trial, one in compared):
        # Time stamps that make accelerations large enough make gravity negligible; no gravity needs no number.
        compared = [pair for pair in compared if pair[1].cause != "time-scale"]
    joints = problem.regression.joints
    weights = posterior_weights([*(trial.block_scores for trial, _ in compared), null.block_scores])
    weighed = tuple(Weighed(one.cause, tuple(joints[j] for j in one.joints), one.values, trial.score, before, weight)
                    for (trial, one), weight in zip(compared, weights, strict=False))
    least, best = (compared[0][0].score, compared[0][1]) if compared else (np.inf, Hypothesis(""))
    # Scales have passed their own thresholds. Nothing is reported if the unchanged data may be right.
    is_likely = (weights[-1] < thresholds.RIVAL_WEIGHT and least < thresholds.REMAINING_MISFIT * own
                 and _explains(before, least, own) and _explains(null.mean_score, compared[0][0].mean_score, own)
                 and (before > own or best.cause not in SCALE_CAUSES)
                 and not (best.cause == BACKLASH_CAUSE and is_presliding(problem, logs, noise, best)))
    if is_likely and (id(best) in material or (best.cause in SCALE_CAUSES and least < min(before, terms))):
        rivals = tuple((one, weight) for (_, one), weight in zip(compared[1:], weights[1:], strict=False)
                       if weight > thresholds.RIVAL_WEIGHT and (one.cause != best.cause or best.cause in MIRRORED))
        return Balance(best, rivals, weighed)
    gap = _gap(problem, logs, noise, null, clues) if before < thresholds.REMAINING_MISFIT * own else None
    return Balance(gap, (), weighed)


def _explains(before: float, after: float, own: float) -> bool:
    """Whether a hypothesis removes enough of the residual that exceeds the residual of separate fits of each joint."""
    return before - after > thresholds.EXCESS_EXPLAINED * (before - min(own, before))


def _scaled(scales: Scales, dof: int) -> Hypothesis:
    """Return the hypothesis that some torques have another scale, or the wrong sign if all scales are negative."""
    torque = np.ones(dof)
    torque[list(scales.joints)] = 1.0 / np.array(scales.gains)
    sign = all(gain < 0.0 for gain in scales.gains)
    if sign:  # only the sign is corrected: no drive has a negative gain, so the size is due to another error
        torque[list(scales.joints)] = -1.0
    return Hypothesis("torque-sign" if sign else "drive-gain", scales.joints, scaled_torques(torque), torque,
                      scales.gains, len(scales.joints), {"std": scales.std, "improvement": scales.removed,
                                                         "rivals": tuple(map(float, scales.rivals))})


def _matters(null: Trial, trial: Trial, hypothesis: Hypothesis, logs: tuple[Samples, ...]) -> bool:
    """Whether a hypothesis also reduces the residual of the fit, by a relevant part of some joint's torque."""
    scale = trial.noise / null.noise  # of the hypothesis's torques
    gained = (null.left_out - trial.left_out / scale ** 2) / np.where(null.power > 0, null.power, np.inf)
    worth = thresholds.TORQUE_WORTH
    if hypothesis.cause == "residual-follows-delay":
        worth = thresholds.RELEVANT_TORQUE * worth_of_delay(hypothesis.values[0], max(map(held_for, logs)))
    return trial.fit_score < thresholds.MATERIAL * null.fit_score and float(np.max(gained)) > worth ** 2


def _gap(problem: Problem, logs: tuple[Samples, ...], noise: Array, null: Trial, clues: Clues) -> Hypothesis | None:
    """Return the hypothesis of backlash that explains most of one joint's own residual; None if another candidate
    explains more."""
    found: list[tuple[float, Hypothesis]] = []
    for j in clues.gaps:
        def left(one: Hypothesis, j: int = j, blocks: int = 1) -> float:
            return float(changed_trial(problem, logs, one, noise, blocks).left_out[j] / null.left_out[j])

        best = refined([(left(one), one) for one in (backlash(j, gap) for gap in GAPS)], left)
        value = left(best, blocks=BLOCKS)
        if value < 1.0 - max(thresholds.GAP_EXPLAINED, clues.followed[j]) \
                and not is_presliding(problem, logs, noise, best):
            found.append((value, best))
    return min(found, key=lambda pair: pair[0])[1] if found else None


def is_presliding(problem: Problem, logs: tuple[Samples, ...], noise: Array, gap: Hypothesis) -> bool:
    """Whether friction that changes gradually at reversals explains about as much as backlash.

    Backlash delays both the sign of friction and the link. Only the lag of the link is evidence of backlash.
    """
    [j] = gap.joints
    left, *others = (float(changed_trial(problem, logs, one, noise).left_out[j])
                     for one in (gap, *(presliding(j, width) for width in (*GAPS, *gap.values))))
    return left > thresholds.MATERIAL * min(others)


def hypothesis_excerpt(logs: tuple[Samples, ...]) -> tuple[Samples, ...]:
    """Return the logs, or an excerpt of long logs, for the comparison of hypotheses."""
    some = excerpt(logs, max(EXCERPT_ROWS, EXCERPT_DECIMATED_ROWS * max(log.decimated_by for log in logs)))
    return logs if len(some) == len(logs) and all(one is log for one, log in zip(some, logs, strict=True)) else some


def _unchanged(problem: Problem, logs: tuple[Samples, ...]) -> Regression:
    """Return the compressed regression of logs without correction; stored torque equations of the fit are reused."""
    rows = problem.equations
    if logs is problem.data and isinstance(rows, CachedEquations) and type(rows.equations) is TorqueEquations:
        return fold(rows, blocks=BLOCKS, threads=problem.threads)
    return fold_logs(problem.model, logs, problem.base, problem.threads)


def changed_trial(problem: Problem, logs: tuple[Samples, ...], hypothesis: Hypothesis, noise: Array,
                  blocks: int = BLOCKS, is_coarse: bool = False) -> Trial:
    """Return the cross-validated fit of logs corrected for a hypothesis. is_coarse: whether the logs are decimated."""
    model, changed = hypothesis.change(problem.model, logs)
    changed = tuple(map(decimated, changed)) if is_coarse else changed
    base = problem.base if model is problem.model else None
    weights = noise if hypothesis.torque is None else noise * np.abs(hypothesis.torque)
    return try_out(fold_logs(model, changed, base, problem.threads, blocks), weights)


def _motions(screen: HypothesisScreen, fitted: HypothesisScreen, doubted: Sequence[int], mixed: Sequence[int]
             ) -> list[tuple[float, Hypothesis]]:
    """Return the hypotheses about the motion that may explain enough, the best of each cause and joint, with fitted
    numbers and residual ratios.

    Args:
        screen: rows that select hypotheses.
        fitted: rows that numbers are fitted to.
        doubted: joints whose motion may be wrong.
        mixed: joints whose own equations leave large residuals, as with backlash or exchanged columns.
    """
    dof = screen.model.dof
    found: dict[tuple[str, tuple[int, ...], float], list[tuple[float, Hypothesis]]] = {}
    for one in motion_hypotheses(dof, doubted, mixed):
        kind = one.details.get("torque", 0.0)
        assert isinstance(kind, float)
        found.setdefault((one.cause, one.joints, kind), []).append((screen.share(one), one))
    hopes = [(hoped(tried), tried) for tried in found.values()]
    hopeful = [pair for pair in hopes if pair[0] < thresholds.SCREEN_HOPED]
    best = sorted(hopeful, key=lambda pair: pair[0])[:MOTIONS_REFINED]
    finer = [refined(tried, screen.share) for _, tried in best]
    likely: list[tuple[float, Hypothesis]] = []
    for _, start in sorted(((screen.share(one), one) for one in finer), key=lambda pair: pair[0]):
        one = polished(start, fitted.share)
        likely.append((fitted.share(one), one))
        if likely[-1][0] > thresholds.MATERIAL:
            break  # those that explain less on the screening rows are not tested
    return [pair for pair in likely if pair[0] < thresholds.SCREEN_HOPED]


def _gravity(problem: Problem, screen: HypothesisScreen) -> list[tuple[float, Hypothesis]]:
    """Return the hypotheses of no gravity and of another direction of gravity with their residual ratios, of these the
    one that explains the data better, if it may explain enough; both if they explain the data equally well.

    A direction that may explain enough on the screening rows is estimated again at full rate: on decimated rows the
    signs of velocities, which are not filtered, leave residuals near reversals that turn it by some degrees.
    """
    model = robot_model(problem.model)
    if model is None or not np.any(model.robot.gravity):
        return []
    found = estimate_gravity(problem, screen.logs, screen.noise, thresholds.MATERIAL)
    if min(found.misfit, found.without) >= thresholds.MATERIAL * found.given:
        return []
    some = excerpt(screen.whole, max(GRAVITY_ROWS, FITTED_ROWS * max(log.decimated_by for log in screen.whole)))
    found = estimate_gravity(problem, some, screen.noise, thresholds.MATERIAL, prefers_axes=True)
    likely = [(found.without / found.given, without_gravity())] if found.is_removed else []
    if found.angle > thresholds.GRAVITY_TURNED and (found.is_ambiguous or not found.is_removed):
        likely += [(found.misfit / found.given, mounted(found))]
    return [pair for pair in likely if pair[0] < thresholds.MATERIAL]


def mounted(gravity: Gravity) -> Hypothesis:
    """Return the hypothesis that the robot is mounted differently, with this direction of gravity."""
    def change(model: LinearModel, logs: tuple[Samples, ...]) -> tuple[Model, tuple[Samples, ...]]:
        return with_gravity(required_robot_model(model, "another direction of gravity"), gravity.vector), logs

    return Hypothesis("gravity-direction", (), change, None, tuple(map(float, gravity.vector)), 2,
                      {"angle": gravity.angle, "std": tuple(map(float, gravity.std))})


def without_gravity() -> Hypothesis:
    """Return the hypothesis that a recorder or driver has removed the gravity torque."""
    def change(model: LinearModel, logs: tuple[Samples, ...]) -> tuple[Model, tuple[Samples, ...]]:
        return with_gravity(required_robot_model(model, "torques without gravity"), np.zeros(3)), logs

    return Hypothesis(GRAVITY_REMOVED, (), change)
