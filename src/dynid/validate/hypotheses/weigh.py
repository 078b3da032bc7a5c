"""All hypotheses about torques, motion and mounting, weighed against each other on the same blocks of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.arrays import Array, Ints
from dynid.estimate import Problem
from dynid.model import Model, complete
from dynid.recording import Samples
from dynid.regression import TorqueEquations, fold
from dynid.regression.correlation import autocovariance
from dynid.validate.candidates import Rows
from dynid.validate.hypotheses.gains import wrong_scales
from dynid.validate.hypotheses.gravity import Gravity, estimate_gravity, with_gravity
from dynid.validate.hypotheses.hypothesis import Hypothesis, Weighed, scaled_torques
from dynid.validate.hypotheses.motions import GAP, backlash, motion_hypotheses, refined
from dynid.validate.hypotheses.trial import BLOCKS, FLOOR, Trial, own_score, score, try_out
from dynid.validate.thinned import thinned

MATERIAL = 0.82  # share of the misfit, inside the fit and on blocks left out, that the best hypothesis leaves at most
_GAP_SHARE = 0.35  # of a joint's misfit on blocks left out that a gap in its gear has to explain
_MOST = 16000  # rows at full rate of all logs that motions are tried on, or as many as leave
_LEAST = 1000  # rows after decimation
_ASKED = 1.08  # misfit of all joints together over that of each alone, and
_ROUGH = 0.03  # share of a joint's torque that its own equations leave, above which motion and mounting are doubted
_CLOSE = 0.9  # share of what the best explains from which another explains as well
_TRIED = 4  # of the motion hypotheses that are refined
_MIXED = 0.04  # share of a joint's torque that its own equations leave where its columns may be another's
_WORTH = 0.007  # of some joint's torque that the best hypothesis has to explain
# Causes that act between the rows of thinned logs.
_BETWEEN_ROWS = {"residual-follows-delay", "residual-follows-backlash"}
_TURNED = 5.0  # degrees that gravity has to be off


@dataclass(frozen=True, eq=False)
class Balance:
    """What weighing found: best, None where no hypothesis matters, those that explain as much, and all that were
    weighed, the likeliest first. gravity: its direction, where that was estimated."""

    best: Hypothesis | None
    rivals: tuple[Hypothesis, ...]
    weighed: tuple[Weighed, ...]
    gravity: Gravity | None = None


def inflation_of(rows: Rows) -> float:
    """How many times wider deviations are than for independent rows, by what each joint's own equations leave."""
    found = []
    for j, columns in enumerate(rows.columns):
        use = rows.keep[:, j]
        size = np.linalg.norm(columns[use], axis=0)
        if use.sum() < 3 * columns.shape[1] + 10 or not np.any(size > 0):
            continue
        basis, _ = np.linalg.qr(columns[use][:, size > 0] / size[size > 0])
        rest = rows.measured[use, j]
        rest = rest - basis @ (basis.T @ rest)
        c = autocovariance(rest, np.ones(len(rest), dtype=bool))
        if c[0] > 0:
            found.append(np.sqrt(max(2.0 * c.sum() / c[0] - 1.0, 1.0)))
    return float(np.median(found)) if found else 1.0


def weigh(problem: Problem, inflation: float, nominal: Sequence[float | None],
          followed: Sequence[float] | None = None, gaps: Sequence[int] = ()) -> Balance:
    """The hypothesis about all joints' torques, motion or mounting that explains the data best.

    inflation: of deviations by correlation in time. nominal (dof entries): scale of each torque by the nominal model.
    followed (dof entries): share of each joint's own residual that something in it follows: a hypothesis about all
    joints has to explain more. gaps: joints (from 0) whose residual looks as a gap in the gear makes it.
    """
    logs, dof = excerpt(problem.data), problem.model.dof
    null = try_out(problem.regression if logs is problem.data else fold(
        TorqueEquations.of(problem.model, logs, problem.base), blocks=BLOCKS, threads=problem.threads))
    noise = null.noise()
    before = score(null, noise)
    hypotheses: list[tuple[float, Hypothesis]] = []
    scales = wrong_scales(problem.regression, noise, inflation, nominal)
    if scales is not None:
        torque = np.ones(dof)
        torque[list(scales.joints)] = 1.0 / np.array(scales.gains)
        guess = Hypothesis("drive-gain", scales.joints, scaled_torques(torque), torque, scales.gains,
                           len(scales.joints), {"std": scales.std, "improvement": scales.removed,
                                                "rivals": tuple(map(float, scales.rivals))})
        hypotheses.append((misfit_of(problem, logs, guess, noise), guess))
    own = own_score(null, noise)
    rough = np.sqrt(null.alone / np.where(null.power > 0, null.power, 1.0))
    gravity = None
    if before > _ASKED * own or np.any(rough > _ROUGH):
        # Where joints do not contradict each other, only one that leaves much of its own torque can move otherwise.
        doubted = range(dof) if before > _ASKED * own else np.flatnonzero(rough > _ROUGH).tolist()
        hypotheses += _motions(problem, logs, noise, doubted, np.flatnonzero(rough > _MIXED).tolist())
        gravity = _gravity(problem, logs, noise)
        if gravity is not None:
            hypotheses.append((gravity_misfit(problem, logs, gravity, noise), mounted(gravity)))
    hypotheses.sort(key=lambda pair: pair[0])
    joints = problem.regression.joints
    simple = np.zeros(dof) if followed is None else np.asarray(followed, dtype=float)
    terms = before - float(np.sum(simple * null.alone / noise ** 2)) / max(float(null.rows.sum()), 1.0)
    weighed = tuple(Weighed(one.cause, tuple(joints[j] for j in one.joints), one.values, value, before)
                    for value, one in hypotheses)
    least, best = hypotheses[0] if hypotheses else (np.inf, Hypothesis(""))
    if scales is not None and best.cause == "drive-gain" and least < min(before, terms):
        return Balance(best, _rivals(hypotheses, before), weighed, gravity)  # its own thresholds are met
    if least > MATERIAL * min(before, terms) or not _matters(null, changed_trial(problem, logs, best, noise), best,
                                                             noise):
        gap = _gap(problem, logs, noise, null, gaps)
        return Balance(gap, (), weighed, gravity)
    return Balance(best, _rivals(hypotheses, before), weighed, gravity)


def _matters(null: Trial, trial: Trial, hypothesis: Hypothesis, noise: Array) -> bool:
    """Whether a hypothesis also explains the data inside the fit, and enough of some joint's torque."""
    scale = np.ones(len(noise)) if hypothesis.torque is None else hypothesis.torque
    inside = float(np.sum(trial.inside / (noise * scale) ** 2)) / float(np.sum(null.inside / noise ** 2))
    gained = (null.left_out - trial.left_out / scale ** 2) / np.where(null.power > 0, null.power, np.inf)
    return inside < MATERIAL and float(np.max(gained)) > _WORTH ** 2


def _gap(problem: Problem, logs: tuple[Samples, ...], noise: Array, null: Trial, joints: Sequence[int]
         ) -> Hypothesis | None:
    """The gap in the gear of one of some joints that explains most of that joint's own misfit; None where none does
    much."""
    found: list[tuple[float, Hypothesis]] = []
    for j in joints:
        def left(one: Hypothesis, j: int = j, blocks: int = 1) -> float:
            return float(changed_trial(problem, logs, one, noise, blocks).left_out[j] / null.left_out[j])

        best = refined(backlash(j, GAP), left, problem.model.dof)
        found.append((left(best, blocks=BLOCKS), best))
    least = min(found, key=lambda pair: pair[0], default=(1.0, Hypothesis("")))
    return least[1] if least[0] < 1.0 - _GAP_SHARE else None


def excerpt(logs: tuple[Samples, ...]) -> tuple[Samples, ...]:
    """The logs, or where they are long some windows of each, evenly spread."""
    total = sum(len(log) for log in logs)
    most = max(_MOST, *(_LEAST * (1 if log.decimation is None else log.decimation.total) for log in logs))
    if total <= most:
        return logs
    return tuple(_cut(log, _windows(log, most * len(log) // total)) for log in logs)


def _cut(log: Samples, windows: Ints) -> Samples:
    """The rows of some windows (k, 2) of a log, each a segment."""
    rows = np.concatenate([np.arange(a, b) for a, b in windows])
    ends = np.cumsum([b - a for a, b in windows])
    return replace(log, t=log.t[rows], q=log.q[rows], dq=log.dq[rows], ddq=log.ddq[rows], tau=log.tau[rows],
                   keep=log.keep[rows], segments=np.column_stack([np.concatenate([[0], ends[:-1]]), ends]))


def _windows(log: Samples, rows: int) -> Ints:
    """Row ranges (k, 2) of about `rows` rows in all, in as many windows as there are blocks, inside segments."""
    starts = (np.arange(BLOCKS) * len(log)) // BLOCKS
    found = [(max(int(a), int(s)), min(int(b), int(s) + rows // BLOCKS)) for s in starts for a, b in log.segments]
    return np.array([(a, b) for a, b in found if b - a > rows // (4 * BLOCKS)] or log.segments, dtype=np.int64)


def _rivals(hypotheses: list[tuple[float, Hypothesis]], before: float) -> tuple[Hypothesis, ...]:
    """Other causes that explain about as much as the best."""
    least, best = hypotheses[0]
    return tuple(one for value, one in hypotheses[1:] if before - value > _CLOSE * (before - least)
                 and value < 1.5 * least and one.cause != best.cause)


def changed_trial(problem: Problem, logs: tuple[Samples, ...], hypothesis: Hypothesis, noise: Array,
                  blocks: int = BLOCKS) -> Trial:
    """The data as they would be without the fault, fitted."""
    model, changed = hypothesis.change(problem.model, logs)
    base = problem.base if model is problem.model else None
    weights = noise if hypothesis.torque is None else noise * np.abs(hypothesis.torque)
    return try_out(fold(TorqueEquations.of(model, changed, base), blocks=blocks, threads=problem.threads), weights)


def misfit_of(problem: Problem, logs: tuple[Samples, ...], hypothesis: Hypothesis, noise: Array) -> float:
    """Misfit on blocks left out under a hypothesis."""
    return score(changed_trial(problem, logs, hypothesis, noise), noise, hypothesis.torque)


def relative_left(problem: Problem, logs: tuple[Samples, ...], hypothesis: Hypothesis) -> float:
    """What a hypothesis leaves of each torque on blocks left out, in shares of the torque, as the mean of logarithms: a
    yardstick for hypotheses that give joints the torques of others."""
    model, changed = hypothesis.change(problem.model, logs)
    trial = try_out(fold(TorqueEquations.of(model, changed, problem.base), blocks=BLOCKS, threads=problem.threads))
    share = trial.left_out / np.where(trial.power > 0, trial.power, 1.0)
    return float(np.mean(np.log(share + FLOOR ** 2)))


def _motions(problem: Problem, logs: tuple[Samples, ...], noise: Array, doubted: Sequence[int], rough: list[int]
             ) -> list[tuple[float, Hypothesis]]:
    """The hypotheses about the motion that explain something, the best of each cause and joint; their numbers are
    found inside the fit, on thinned logs, which is faster, and only the best are judged on blocks left out."""
    dof = problem.model.dof

    few = thinned(logs)
    same = Hypothesis("")
    before = {id(one): score(changed_trial(problem, one, same, noise, blocks=1), noise) for one in (logs, few)}

    def quick(one: Hypothesis) -> float:
        """What a hypothesis leaves, as a share of what is left without it."""
        used = logs if one.cause in _BETWEEN_ROWS else few
        return score(changed_trial(problem, used, one, noise, blocks=1), noise, one.torque) / before[id(used)]

    found: dict[tuple[str, tuple[int, ...]], tuple[float, Hypothesis]] = {}
    for one in motion_hypotheses(dof, doubted, rough):
        value, key = quick(one), (one.cause, one.joints)
        if key not in found or value < found[key][0]:
            found[key] = (value, one)
    best = sorted((pair for pair in found.values() if pair[0] < 1.0), key=lambda pair: pair[0])[:_TRIED]
    finer = [refined(one, quick, dof) for _, one in best]
    return [(misfit_of(problem, logs, one, noise), one) for one in finer]


def _gravity(problem: Problem, logs: tuple[Samples, ...], noise: Array) -> Gravity | None:
    """The direction of gravity, where the model is a robot's and it is another than given."""
    robot = complete(problem.model).robot
    if not isinstance(problem.model, Model) or robot is None or not np.any(robot.gravity):
        return None
    found = estimate_gravity(problem, thinned(logs), noise)
    return found if found.angle > _TURNED else None


def mounted(gravity: Gravity) -> Hypothesis:
    """The robot is mounted otherwise."""
    def change(model: object, logs: tuple[Samples, ...]) -> tuple[Model, tuple[Samples, ...]]:
        assert isinstance(model, Model)
        return with_gravity(model, gravity.vector), logs

    return Hypothesis("gravity-direction", (), change, None, tuple(map(float, gravity.vector)), 2)


def gravity_misfit(problem: Problem, logs: tuple[Samples, ...], gravity: Gravity, noise: Array) -> float:
    """Misfit on blocks left out under another gravity."""
    return misfit_of(problem, logs, mounted(gravity), noise)
