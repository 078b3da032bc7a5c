"""Torque error of the model of one robot on the logs of another (Ardiani, table F.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.arrays import Array
from dynid.datasets.log_fold import LogFold
from dynid.errors import NotPossibleError
from dynid.estimate.linear import solve
from dynid.fleet.robot_fold import RobotFold

# Ratio of prediction errors above which a robot is apart: friction of robots of one type differs by a half, geometry by
# several times. Three or four robots show few differences among the others. One in a hundred such fleets has a larger
# ratio, if the robots differ at random in three directions.
APART_RATIO, APART_RATIO_OF_FEW = 2.0, {3: 6.8, 4: 2.5}


@dataclass(frozen=True, eq=False)
class CrossPrediction:
    """Torque errors of the models of all robots on the logs of all robots.

    Attributes:
        errors: (robots, logs, dof), 100 |tau - tau_hat| / |tau|, percent, of the model of robot i on each log; on its
            own logs the model without that log is used.
        owner: (logs,), robot of each log.
        motion, source: of the log.
    """

    robots: tuple[str, ...]
    joints: tuple[str, ...]
    errors: Array
    owner: tuple[int, ...]
    motion: tuple[str, ...]
    source: tuple[str, ...]

    def between(self) -> Array:
        """Return errors (robots, robots, dof) of the model of robot i on all logs of robot j, root mean square."""
        found = np.full((len(self.robots), len(self.robots), len(self.joints)), np.nan)
        owner = np.array(self.owner)
        for j in range(len(self.robots)):
            own = owner == j
            if own.any():
                found[:, j] = np.sqrt(np.nanmean(self.errors[:, own] ** 2, axis=1))
        return found


@dataclass(frozen=True)
class ApartRobot:
    """A robot whose model predicts the others badly, and which their models predict badly.

    Attributes:
        robot: its name.
        error: smallest error between it and another robot, percent of the torque, over all joints.
        usual: largest error between two of the others, percent.
    """

    robot: str
    error: float
    usual: float

    @property
    def sentence(self) -> str:
        """Sentence that states the errors."""
        return (f"{self.robot}: models of the other robots predict its torques with an error of at least "
                f"{self.error:.0f} %, and one another's with at most {self.usual:.0f} %: it may have another geometry, "
                "tool or mounting, or its log other units")


def robots_apart(table: CrossPrediction) -> tuple[ApartRobot, ...]:
    """Return the robots whose prediction errors with all others exceed those among the others; needs three robots."""
    pairs = np.sqrt(np.nanmean(table.between() ** 2, axis=2))
    count, found = len(table.robots), list[ApartRobot]()
    for k in range(count if count >= 3 else 0):
        others = [j for j in range(count) if j != k]
        among = pairs[np.ix_(others, others)][~np.eye(count - 1, dtype=bool)]
        error, usual = float(np.min([pairs[k, others], pairs[others, k]])), float(np.max(among))
        if error > APART_RATIO_OF_FEW.get(count, APART_RATIO) * usual:
            found.append(ApartRobot(table.robots[k], error, usual))
    return tuple(found)


def cross_prediction(robots: Sequence[RobotFold], folds: Sequence[Sequence[LogFold]]) -> CrossPrediction:
    """Return the cross-prediction table of a fleet, from its compressed logs alone."""
    owner = tuple(j for j, own in enumerate(folds) for _ in own)
    logs = [fold for own in folds for fold in own]
    dof = robots[0].regression.dof
    errors = np.full((len(robots), len(logs), dof), np.nan)
    for i, robot in enumerate(robots):
        without = _without_each(RobotFold.of(robot.name, folds[i], robot.weights))
        for k, (j, fold) in enumerate(zip(owner, logs, strict=True)):
            beta = robot.solution.beta if j != i else without[k - owner.index(j)]
            if beta is not None:
                errors[i, k] = fold.regression.relative_errors(beta)
    return CrossPrediction(tuple(robot.name for robot in robots), robots[0].regression.joints, errors, owner,
                           tuple(fold.entry.motion for fold in logs), tuple(fold.entry.source for fold in logs))


def _without_each(robot: RobotFold) -> list[Array | None]:
    """Return values of a robot (base,) without each of its logs; with the log if there is no other."""
    if len(robot.regression.blocks) < 2:
        return [robot.solution.beta]
    found: list[Array | None] = []
    for rest in robot.regression.without_each():
        try:
            found.append(solve(rest, rest.stack(robot.weights)).beta)
        except NotPossibleError:
            found.append(None)
    return found


def only(table: CrossPrediction, places: Sequence[int]) -> CrossPrediction:
    """Return the cross-prediction table of some of the robots."""
    logs = [k for k, j in enumerate(table.owner) if j in places]
    where = {j: n for n, j in enumerate(places)}
    return replace(table, robots=tuple(table.robots[i] for i in places),
                   errors=table.errors[np.ix_(list(places), logs)], owner=tuple(where[table.owner[k]] for k in logs),
                   motion=tuple(table.motion[k] for k in logs), source=tuple(table.source[k] for k in logs))
