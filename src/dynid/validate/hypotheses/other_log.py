"""Why an estimate does not carry over to another log: too little was known, or the machine is not the same.

Both logs are folded. If one set of parameters explains both about as well as each its own, the machine is the same and
the estimate overfits its log. Otherwise something changed, and each change is tried as columns that only the other log
has: ten numbers of the last body (a load), a joint's torque scale, friction; what needs all of them is another machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dynid.arrays import Array, Bools, Ints
from dynid.estimate import Problem
from dynid.model import complete
from dynid.recording import Samples
from dynid.regression import Factor, Regression
from dynid.validate.hypotheses.trial import fold_logs, try_out

Change = Literal["overfit", "load", "gain", "friction", "machine", "noise"]

_SAME = 1.5  # misfit of one set of parameters over that of one a log, up to which the machine is the same
_WORSE = 2.0  # times, in squares, that the estimate's error on the other log is above that of both logs' fit
_EXPLAINS = 0.8  # share of the change that one cause has to explain


@dataclass(frozen=True)
class Changed:
    """What changed. what: see `Change`. explained: share of the misfit between the logs that each cause alone takes
    away. errors: relative errors on the other log, percent: of the estimate, of one set of parameters for both logs, of
    its own. joint, gain: of a changed scale, from 0."""

    what: Change
    explained: dict[str, float]
    errors: tuple[float, float, float]
    joint: int | None = None
    gain: float | None = None


def what_changed(problem: Problem, beta: Array, other: tuple[Samples, ...]) -> Changed:
    """Why base values (base,) that were identified from a problem do not fit another log."""
    here, there = problem.regression, fold_logs(problem.model, other, problem.base, problem.threads, blocks=1)
    noise = np.maximum(try_out(here).noise(), try_out(there).noise())
    alone = [_Stack.of([one], noise) for one in (here, there)]
    apart = sum(stack.left() for stack in alone)
    both = _Stack.of([here, there], noise)
    together = both.left()
    power = sum(factor.power for factor in there.factors)

    def error(values: Array) -> float:
        return 100.0 * float(np.sqrt(there.misfits(values).sum() / max(power, 1e-300)))

    errors = (error(beta), error(both.solve()), error(alone[1].solve()))
    if together < _SAME * apart:
        weighted = (np.sum(there.misfits(beta) / noise ** 2), np.sum(there.misfits(both.solve()) / noise ** 2))
        return Changed("overfit" if weighted[0] > _WORSE * weighted[1] else "noise", {}, errors)
    excess = together - apart
    gains = [both.scaled(j) for j in range(here.dof)]
    j = int(np.argmin([left for left, _ in gains]))
    left = {"gain": gains[j][0], "friction": both.left(_friction(problem)), "load": both.left(_last_body(problem))}
    explained = {name: 1.0 - (value - apart) / excess for name, value in left.items()}
    simple: tuple[Change, ...] = ("gain", "friction", "load")
    what = max(simple, key=lambda name: explained[name])
    if explained[what] < _EXPLAINS or left[what] > _SAME * apart:
        return Changed("machine", explained, errors)
    return Changed(what, explained, errors, *((j, gains[j][1]) if what == "gain" else (None, None)))


@dataclass(frozen=True, eq=False)
class _Stack:
    """Weighted rows of all joints of one log or two: matrix (rows, base), target (rows,), where the second log's rows
    are, and the joint of each row."""

    matrix: Array
    target: Array
    second: Bools
    joint: Ints

    @staticmethod
    def of(folds: list[Regression], noise: Array) -> _Stack:
        base = len(folds[0].base)
        parts = [(log, j, factor) for log, one in enumerate(folds) for j, factor in enumerate(one.factors)]
        rows = sum(len(factor.r) for _, _, factor in parts)
        matrix, target = np.zeros((rows, base)), np.zeros(rows)
        second, joint = np.zeros(rows, dtype=bool), np.zeros(rows, dtype=np.int64)
        at = 0
        for log, j, factor in parts:
            own = slice(at, at + len(factor.r))
            matrix[own, factor.columns], target[own] = _weighted(factor, noise[j])
            second[own], joint[own] = log == 1, j
            at = own.stop
        return _Stack(matrix, target, second, joint)

    def left(self, directions: Array | None = None) -> float:
        """Squares that the best parameters leave; directions (base, k): along which the second log's may differ."""
        matrix = self.matrix
        if directions is not None and directions.shape[1]:
            matrix = np.hstack([matrix, (matrix @ directions) * self.second[:, None]])
        return _left(matrix, self.target)

    def scaled(self, j: int) -> tuple[float, float]:
        """Squares left when joint j's torque has its own scale in the second log, and that scale."""
        own = np.where(self.second & (self.joint == j), self.target, 0.0)
        size = np.linalg.norm(self.matrix, axis=0)
        matrix = np.hstack([self.matrix / np.where(size > 0, size, 1.0), -own[:, None]])
        target = self.target - own
        value = np.linalg.lstsq(matrix, target, rcond=1e-9)[0]
        rest = target - matrix @ value
        return float(rest @ rest) / max(min(value[-1] ** 2, 1.0), 1e-6), 1.0 / value[-1] if value[-1] else np.inf

    def solve(self) -> Array:
        size = np.linalg.norm(self.matrix, axis=0)
        scale = np.where(size > 0, size, 1.0)
        return np.linalg.lstsq(self.matrix / scale, self.target, rcond=1e-9)[0] / scale


def _weighted(factor: Factor, noise: float) -> tuple[Array, Array]:
    return factor.r[:, :-1] / noise, factor.r[:, -1] / noise


def _left(matrix: Array, target: Array) -> float:
    size = np.linalg.norm(matrix, axis=0)
    value = np.linalg.lstsq(matrix / np.where(size > 0, size, 1.0), target, rcond=1e-9)[0]
    rest = target - matrix / np.where(size > 0, size, 1.0) @ value
    return float(rest @ rest)


def _last_body(problem: Problem) -> Array:
    """Directions (base, ten) in which a load on the last body moves the base parameters."""
    robot = complete(problem.model).robot
    last = "" if robot is None else robot.body_names[-1]
    return problem.base.matrix[:, [i for i, p in enumerate(problem.model.parameters) if p.body == last]]


def _friction(problem: Problem) -> Array:
    """Directions (base, k) of base parameters that are friction or offsets alone."""
    items = problem.model.parameters.items
    own = [i for i, row in enumerate(problem.base.matrix)
           if all(items[c].kind.group in ("friction", "offset") for c in np.flatnonzero(row))]
    return np.eye(len(problem.base))[:, own]
