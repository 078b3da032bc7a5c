"""Torque errors of each robot's model on logs of other robots (Ardiani, table F.1), and signals of robots that received
the same commands (fig. F.2, F.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.datasets.log_fold import LogFold, ManifestEntry
from dynid.errors import DynidError, NotPossibleError
from dynid.estimate.linear import solve
from dynid.fleet.robot_fold import RobotFold
from dynid.output_fields import output_fields
from dynid.recording import Recording
from dynid.recording.log_files import LogFile
from dynid.recording.log_reading import read
from dynid.recording.mapping import Mapping as LogMapping
from dynid.robot import Robot
from dynid.signals import at_times

# Ratio of prediction errors above which a robot is reported: friction of robots of one type differs by a half, geometry
# by several times. Three or four robots show few differences among the others. One in a hundred such fleets has a
# larger ratio, if the robots differ at random in three directions.
OUTLYING_RATIO, OUTLYING_RATIO_OF_FEW = 2.0, {3: 6.8, 4: 2.5}
_MAX_ROBOTS, _POINTS_PER_LINE = 4, 400  # robots in one figure, and points per line


@dataclass(frozen=True, eq=False)
class CrossPrediction:
    """Torque errors of the models of all robots on the logs of all robots.

    Attributes:
        robots, joints: names of robots and joints.
        errors: torque error 100 |tau - tau_hat| / |tau| of each model on each log (robots, logs, dof), percent; on a
            robot's own log, the model is identified without that log.
        owner: index of the robot of each log (logs,).
    """

    robots: tuple[str, ...]
    joints: tuple[str, ...]
    errors: Array
    owner: tuple[int, ...]

    def between(self) -> Array:
        """Return RMS torque errors (robots, robots, dof), percent, of the model of robot i on all logs of robot j."""
        errors = np.full((len(self.robots), len(self.robots), len(self.joints)), np.nan)
        for j in set(self.owner):
            errors[:, j] = np.sqrt(np.nanmean(self.errors[:, np.array(self.owner) == j] ** 2, axis=1))
        return errors


@dataclass(frozen=True)
class OutlyingRobot:
    """A robot whose model predicts the other robots badly, and which the other models predict badly.

    Attributes:
        robot: name of the robot.
        error: smallest prediction error between this and another robot, percent of the torque, over all joints.
        usual: largest prediction error between two of the other robots, percent.
    """

    robot: str
    error: float
    usual: float

    @property
    def sentence(self) -> str:
        """Sentence with the prediction errors between this robot and the other robots, and among the other robots."""
        return (f"{self.robot}: models of the other robots predict its torques with an error of at least "
                f"{self.error:.0f} %, and each other's with at most {self.usual:.0f} %: it may have a different "
                "geometry, tool or mounting, or its log has other units")


def outlying_robots(table: CrossPrediction) -> tuple[OutlyingRobot, ...]:
    """Return the robots whose prediction errors with all other robots exceed all errors among the other robots; at
    least three robots are needed."""
    pairs = np.sqrt(np.nanmean(table.between() ** 2, axis=2))
    count, found = len(table.robots), list[OutlyingRobot]()
    for k in range(count if count >= 3 else 0):
        others = [j for j in range(count) if j != k]
        among = pairs[np.ix_(others, others)][~np.eye(count - 1, dtype=bool)]
        error, usual = float(np.min([pairs[k, others], pairs[others, k]])), float(np.max(among))
        if error > OUTLYING_RATIO_OF_FEW.get(count, OUTLYING_RATIO) * usual:
            found.append(OutlyingRobot(table.robots[k], error, usual))
    return tuple(found)


def cross_prediction(robots: Sequence[RobotFold], folds: Sequence[Sequence[LogFold]]) -> CrossPrediction:
    """Return the torque errors of each robot's model on the logs of all robots, from compressed logs `folds` alone."""
    owner = tuple(j for j, own in enumerate(folds) for _ in own)
    logs = [fold for own in folds for fold in own]
    dof = robots[0].regression.dof
    errors = np.full((len(robots), len(logs), dof), np.nan)
    for i, robot in enumerate(robots):
        without = _without_each(RobotFold.from_folds(robot.name, folds[i], robot.weights))
        for k, (j, fold) in enumerate(zip(owner, logs, strict=True)):
            beta = robot.solution.beta if j != i else without[k - owner.index(j)]
            if beta is not None:
                errors[i, k] = fold.regression.relative_errors(beta)
    return CrossPrediction(tuple(robot.name for robot in robots), robots[0].regression.joints, errors, owner)


def _without_each(robot: RobotFold) -> list[Array | None]:
    """Return estimates (base,) of a robot without each of its logs in turn; from the only log if there is no other. An
    estimate is None if the other logs do not determine it."""
    if len(robot.regression.blocks) < 2:
        return [robot.solution.beta]
    estimates: list[Array | None] = []
    for rest in robot.regression.without_each():
        try:
            estimates.append(solve(rest, rest.stack(robot.weights)).beta)
        except NotPossibleError:
            estimates.append(None)
    return estimates


@dataclass(frozen=True, eq=False)
class Commanded:
    """Signals of one motion that was commanded to several robots.

    Attributes:
        motion, robots: names of the motion and of the robots.
        t: time (points,), s from the start of each log.
        position: commanded positions (robots, points, dof), rad or m.
        torque: measured torques (robots, points, dof), N m or N.
        position_difference, torque_difference: largest RMS difference (dof,) from the first robot, percent of the
            standard deviation of the first robot's signal.
    """

    motion: str
    robots: tuple[str, ...]
    t: Array
    position: Array
    torque: Array
    position_difference: Array
    torque_difference: Array

    @output_fields(motion=str, robots=list[str], position_difference_percent=list[Any],
                   torque_difference_percent=list[Any])
    def to_dict(self) -> dict[str, Any]:
        return {"motion": self.motion, "robots": list(self.robots),
                "position_difference_percent": self.position_difference.tolist(),
                "torque_difference_percent": self.torque_difference.tolist()}


def commanded(entries: Sequence[ManifestEntry], mapping: LogMapping, robot: Robot) -> Commanded | None:
    """Return the signals of the first motion that several robots were commanded to make; None if there is none, or its
    logs contain no commanded positions."""
    by_motion: dict[str, dict[str, ManifestEntry]] = {}
    for entry in entries:
        if entry.motion:
            by_motion.setdefault(entry.motion, {}).setdefault(entry.robot, entry)
    for motion, logs in by_motion.items():
        if len(logs) < 2:
            continue
        recordings = [(name, log) for name, entry in list(logs.items())[:_MAX_ROBOTS]
                      if (log := _read(entry, mapping, robot)) is not None]
        if len(recordings) >= 2:
            return _side_by_side(motion, recordings)
    return None


def _read(entry: ManifestEntry, mapping: LogMapping, robot: Robot) -> Recording | None:
    try:
        with LogFile(entry.source).local() as path:
            log = read(path, mapping, robot)
    except DynidError:
        return None
    return log if log.reference is not None else None


def _side_by_side(motion: str, logs: Sequence[tuple[str, Recording]]) -> Commanded:
    t = np.linspace(0.0, min(log.duration for _, log in logs), _POINTS_PER_LINE)
    position = np.array([at_times(t, log.t - log.t[0], log.reference) for _, log in logs if log.reference is not None])
    torque = np.array([at_times(t, log.t - log.t[0], log.tau) for _, log in logs])
    return Commanded(motion, tuple(name for name, _ in logs), t, position, torque, _difference(position),
                     _difference(torque))


def _difference(signals: Array) -> Array:
    """Return the largest RMS difference (dof,) of signals (robots, points, dof) from the signal of the first robot,
    percent of its standard deviation."""
    own = signals[0].std(axis=0)
    difference = np.sqrt(np.mean((signals[1:] - signals[0]) ** 2, axis=1)).max(axis=0)
    return 100.0 * difference / np.where(own > 0, own, 1.0)
