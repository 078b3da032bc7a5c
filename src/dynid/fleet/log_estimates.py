"""Estimates of a robot from each of its logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array
from dynid.datasets.log_fold import LogFold, ManifestEntry
from dynid.errors import NotPossibleError
from dynid.fleet.robot_fold import RobotFold


@dataclass(frozen=True, eq=False)
class LogEstimates:
    """Estimates of a robot's logs. values, std (logs, base): nan and infinity if a log does not determine a
    parameter. relative_error (logs, dof): percent, of each log with its own estimate."""

    robot: str
    entries: tuple[ManifestEntry, ...]
    values: Array
    std: Array
    relative_error: Array

    @staticmethod
    def of(robot: RobotFold, folds: Sequence[LogFold]) -> LogEstimates:
        """Estimate from the compressed logs of the robot, each with the robot's own weights and noise per row."""
        values, std, errors = [], [], []
        level = _level(robot, folds)
        for fold in folds:
            one = RobotFold.of(robot.name, [fold], robot.weights)
            try:
                solution = one.solution
            except NotPossibleError:
                values.append(np.full(len(one.regression.base), np.nan))
                std.append(np.full(len(one.regression.base), np.inf))
                errors.append(np.full(one.regression.dof, np.nan))
                continue
            known = solution.identified
            deviation = np.sqrt(np.maximum(np.diag(one.covariance), 0.0)) * level
            values.append(np.where(known, solution.beta, np.nan))
            std.append(np.where(known, deviation, np.inf))
            errors.append(one.regression.relative_errors(solution.beta))
        return LogEstimates(robot.name, tuple(fold.entry for fold in folds), np.array(values), np.array(std),
                            np.array(errors))


def _level(robot: RobotFold, folds: Sequence[LogFold]) -> float:
    """Return the ratio of the robot's noise level, which may come from its fleet, to that of its logs' own
    residuals."""
    own = [fold.noise for fold in folds]
    if robot.noise is None or any(noise is None for noise in own):
        return 1.0
    mine = sum(float(np.trace(matrix)) * w ** 4 for matrix, w in zip(robot.noise, robot.weights, strict=True))
    logs = sum(float(np.trace(matrix)) * w ** 4 for noise in own if noise is not None
               for matrix, w in zip(noise, robot.weights, strict=True))
    return float(np.sqrt(mine / logs)) if logs > 0 else 1.0
