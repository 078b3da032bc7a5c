"""Why an estimate does not predict another log: its parameters were poorly determined, or the machine is different.

Both logs are compressed with the same model. Two parts of the data are fitted with one set of parameters for both, and
with a separate set for each. The excess is the relative increase of the squared residual with one set for both. The
excess between the two logs is compared with the largest excess between contiguous parts of either log, because a model
that is too simple gives such parts an excess as well. Each cause is tried as columns for the other log only: inertial
parameters of the last body (a load), a joint's torque scale, friction. If no cause explains the excess, and the excess
is far above that within logs, the machine is different; otherwise the excess is not explained.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

import numpy as np

from dynid.arrays import Array, Bools, Ints
from dynid.estimate import Problem
from dynid.model import complete
from dynid.recording import Samples
from dynid.regression import Regression
from dynid.regression.factor import add_factors
from dynid.validate import thresholds
from dynid.validate.hypotheses.trial import fold_logs, solve_directions, try_out

_DEPENDENT_SHARE = 1e-9  # singular values below this share of the largest are zero

Change = Literal["overfit", "load", "gain", "friction", "machine", "unexplained", "noise"]


@dataclass(frozen=True)
class Changed:
    """Difference between the log of an identification and another log.

    Attributes:
        what: kind of difference, see `Change`.
        explained: share of the excess between the logs that each cause alone removes; the share of a load is adjusted
            for the number of directions in which a load changes the base parameters.
        errors: relative errors on the other log, percent: of the estimate, of one set of parameters for both logs, and
            of a separate set.
        excess: relative increase of the residual if both logs have one set of parameters, apart from friction.
        honest: largest such increase for two parts of one log.
        joint, gain: index of the joint with a changed torque scale, from 0, and that scale.
    """

    what: Change
    explained: dict[str, float]
    errors: tuple[float, float, float]
    excess: float = 0.0
    honest: float = 0.0
    joint: int | None = None
    gain: float | None = None


@dataclass(frozen=True)
class LoadStep:
    """A load that changed within a log.

    Attributes:
        start, stop: interval that contains the change, s.
        excess: relative increase of the squared residuals if one set of parameters holds before and after the change.
        explained: share of the excess that the inertial parameters of the last body explain.
    """

    start: float
    stop: float
    excess: float
    explained: float


def what_changed(problem: Problem, beta: Array, other: tuple[Samples, ...]) -> Changed:
    """Return why base values (base,) identified from a problem do not fit another log."""
    here, there = problem.regression, fold_logs(problem.model, other, problem.base, problem.threads)
    noise = np.maximum(try_out(here).noise, try_out(there).noise)
    alone = [_Stack.from_folds([one], noise) for one in (here, there)]
    separate, both = sum(stack.left() for stack in alone), _Stack.from_folds([here, there], noise)
    together = both.left()
    power = sum(factor.power for factor in there.factors)

    def error(values: Array) -> float:
        return 100.0 * float(np.sqrt(there.misfits(values).sum() / max(power, 1e-300)))

    errors = (error(beta), error(both.solve()), error(alone[1].solve()))
    excess = together / max(separate, 1e-300) - 1.0
    if excess < max(thresholds.SAME_MACHINE_EXCESS, largest_excess((here, there), noise)):
        weighted = (np.sum(there.misfits(beta) / noise ** 2), np.sum(there.misfits(both.solve()) / noise ** 2))
        is_overfit = weighted[0] > thresholds.OVERFIT_RATIO * weighted[1]
        return Changed("overfit" if is_overfit else "noise", {}, errors, excess)
    gains = [both.scaled(j) for j in range(here.dof)]
    j, friction = int(np.argmin([left for left, _ in gains])), _friction(problem)
    left = {"gain": gains[j][0], "friction": both.left(friction), "load": both.left(_last_body(problem))}
    explained = {name: 1.0 - (value - separate) / (together - separate) for name, value in left.items()}
    explained["load"] = _adjusted_load(problem, explained["load"])
    left_by = {name: value / max(separate, 1e-300) - 1.0 for name, value in left.items()}
    honest = largest_excess((here, there), noise, friction)
    simple: tuple[Change, ...] = ("gain", "friction", "load")
    what = max(simple, key=lambda name: explained[name])
    least = thresholds.SAME_MACHINE_EXCESS if what == "friction" else thresholds.OTHER_MACHINE_EXCESS
    most = max(thresholds.SAME_MACHINE_EXCESS, honest)
    if excess > least and explained[what] >= thresholds.CHANGE_EXPLAINED and left_by[what] < most:
        return Changed(what, explained, errors, left_by["friction"], honest,
                       *((j, gains[j][1]) if what == "gain" else (None, None)))
    differs = max(thresholds.OTHER_MACHINE_EXCESS, thresholds.OTHER_MACHINE_RATIO * honest)
    return Changed("machine" if left_by["friction"] > differs else "unexplained", explained, errors,
                   left_by["friction"], honest)


def load_taken_up(problem: Problem, noise: Array) -> LoadStep | None:
    """Return where in a log the robot took up or set down a load; None if it did not.

    The parts before and after a block of time are compared like two logs. The block itself is not used.
    """
    blocks, found = problem.regression.blocks, list[LoadStep]()
    if any(len(block.spans) != 1 for block in blocks) or len({block.spans[0].log for block in blocks}) > 1:
        return None
    load, friction = _last_body(problem), _friction(problem)
    each = [block.factors for block in blocks]
    before, after = (list(accumulate(some, add_factors)) for some in (each, each[::-1]))
    for cut in range(2, len(blocks) - 2):
        parts = [Regression(problem.base, factors, (), problem.regression.joints)
                 for factors in (before[cut - 1], after[len(blocks) - cut - 2])]
        one_set = excess_between(parts, noise)
        if one_set < thresholds.OTHER_MACHINE_EXCESS:
            continue
        by_load, by_friction = (1.0 - excess_between(parts, noise, free) / one_set for free in (load, friction))
        if by_load > max(thresholds.CHANGE_EXPLAINED, by_friction):
            found.append(LoadStep(blocks[cut].spans[0].start, blocks[cut].spans[0].stop, one_set, by_load))
    return max(found, key=lambda step: step.excess * step.explained, default=None)


def largest_excess(folds: Sequence[Regression], noise: Array, free: Array | None = None) -> float:
    """Return the largest relative increase of the residual by one set of parameters for two parts of a log.

    The log is split at its quarters. free: (base, k), directions along which the parameters of the parts may differ.
    """
    found = [0.0]
    for fold in folds:
        count = len(fold.blocks)
        for cut in {count // 4, count // 2, 3 * count // 4} - {0, count}:
            parts = [Regression.from_blocks(fold.base, blocks, fold.joints)
                     for blocks in (fold.blocks[:cut], fold.blocks[cut:])]
            found.append(excess_between(parts, noise, free))
    return max(found)


def excess_between(parts: Sequence[Regression], noise: Array, free: Array | None = None) -> float:
    """Return the relative increase of the residual with one set of parameters over that with one set per part."""
    separate = sum(_Stack.from_folds([part], noise).left() for part in parts)
    return _Stack.from_folds(list(parts), noise).left(free) / max(separate, 1e-300) - 1.0


@dataclass(frozen=True, eq=False)
class _Stack:
    """Weighted rows of all joints of one or two logs.

    Attributes:
        matrix, target: (rows, base) and (rows,).
        second: (rows,), whether a row belongs to the second log.
        joint: (rows,), joint of each row.
    """

    matrix: Array
    target: Array
    second: Bools
    joint: Ints

    @staticmethod
    def from_folds(folds: list[Regression], noise: Array) -> _Stack:
        base = len(folds[0].base)
        parts = [(log, j, factor) for log, one in enumerate(folds) for j, factor in enumerate(one.factors)]
        rows = sum(len(factor.r) for _, _, factor in parts)
        matrix, target = np.zeros((rows, base)), np.zeros(rows)
        second, joint = np.zeros(rows, dtype=bool), np.zeros(rows, dtype=np.int64)
        at = 0
        for log, j, factor in parts:
            own = slice(at, at + len(factor.r))
            matrix[own, factor.columns], target[own] = factor.r[:, :-1] / noise[j], factor.r[:, -1] / noise[j]
            second[own], joint[own] = log == 1, j
            at = own.stop
        return _Stack(matrix, target, second, joint)

    def left(self, directions: Array | None = None) -> float:
        """Return the sum of squared residuals if the second log's parameters may differ along directions (base, k)."""
        matrix = self.matrix
        if directions is not None and directions.shape[1]:
            matrix = np.hstack([matrix, (matrix @ directions) * self.second[:, None]])
        rest = self.target - matrix @ solve_directions(matrix, self.target, _DEPENDENT_SHARE)
        return float(rest @ rest)

    def scaled(self, j: int) -> tuple[float, float]:
        """Return the sum of squared residuals if joint j's torque has its own scale in the second log, and that
        scale."""
        own = np.where(self.second & (self.joint == j), self.target, 0.0)
        matrix, target = np.hstack([self.matrix, -own[:, None]]), self.target - own
        value = solve_directions(matrix, target, _DEPENDENT_SHARE)
        rest = target - matrix @ value
        return float(rest @ rest) / max(min(value[-1] ** 2, 1.0), 1e-6), 1.0 / value[-1] if value[-1] else np.inf

    def solve(self) -> Array:
        """Return the base values (base,) of one set of parameters for all rows."""
        return solve_directions(self.matrix, self.target, _DEPENDENT_SHARE)


def _last_body(problem: Problem) -> Array:
    """Return the directions (base, ten) in which a load on the last body changes the base parameters."""
    robot = complete(problem.model).robot
    last = "" if robot is None else robot.body_names[-1]
    return problem.base.matrix[:, [i for i, p in enumerate(problem.model.parameters) if p.body == last]]


def _adjusted_load(problem: Problem, explained: float) -> float:
    """Return the share of an excess that a load explains, adjusted like R squared for the number of its directions. On
    an arm with two joints a load changes most base parameters, so that it also explains much of a different machine."""
    bodies = [i for i, p in enumerate(problem.model.parameters) if p.body is not None]
    moved, every = (int(np.linalg.matrix_rank(x)) if x.size else 0
                    for x in (_last_body(problem), problem.base.matrix[:, bodies]))
    return 1.0 - (1.0 - explained) * every / (every - moved) if moved < every else 0.0


def _friction(problem: Problem) -> Array:
    """Return the directions (base, k) of base parameters that contain only friction or offsets."""
    items = problem.model.parameters.items
    own = [i for i, row in enumerate(problem.base.matrix)
           if all(items[c].kind.group in ("friction", "offset") for c in np.flatnonzero(row))]
    return np.eye(len(problem.base))[:, own]
