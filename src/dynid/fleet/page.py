"""Data of the pages of a fleet."""

from __future__ import annotations

import re

import numpy as np

from dynid.fleet.change_detection import days
from dynid.fleet.result import FleetResult
from dynid.report.pages.fleet import FleetData, ParameterRow, RobotRow, Signals
from dynid.report.pages.fleet_robot import FleetRobotData

_MAX_BOX_PLOTS = 24  # parameters drawn as boxes: those that differ most certainly
SIGNIFICANT_STEP = 4.0  # deviations of a step from which it is drawn
_MAX_ROBOTS_PER_BOX_PLOT = 40  # robots of a picture


def page_names(result: FleetResult) -> dict[str, str]:
    """Return the file name of each robot's page."""
    found: dict[str, str] = {}
    for robot in result.robots:
        plain = re.sub(r"[^A-Za-z0-9_-]+", "-", robot.name).strip("-") or "robot"
        name, more = f"robot-{plain}.html", 2
        while name in found.values():
            name, more = f"robot-{plain}-{more}.html", more + 1
        found[robot.name] = name
    return found


def words_of(result: FleetResult, robot: str) -> tuple[str, ...]:
    """Return the findings on one robot in words."""
    odd = [one.sentence for one in result.odd_logs if one.robot == robot]
    differing = [one.sentence for one in result.out.differences if one.robot == robot]
    changed = [one.sentence for one in result.changes if one.robot == robot]
    return (*odd, *differing, *changed)


def fleet_data(result: FleetResult, settings: str, command: str = "") -> FleetData:
    """Return the data of the fleet's page."""
    base, pages = result.out.pooling.base, page_names(result)
    robots = []
    for robot, logs, pooled in zip(result.robots, result.logs, result.pooled, strict=True):
        words = tuple(sentence.removeprefix(f"{robot.name}: ") for sentence in words_of(result, robot.name))
        robots.append(RobotRow(robot.name, pages[robot.name], len(logs.entries),
                               sum(entry.span for entry in logs.entries),
                               robot.regression.relative_error(robot.solution.beta), 100.0 * float(pooled.lean.max()),
                               words))
    parameters = tuple(
        ParameterRow(name, base.units[k], float(result.out.pooling.mean[k]), float(result.out.pooling.spread[k]),
                     float(result.scatter.within[k]), float(result.scatter.p_robots[k]),
                     float(result.scatter.p_motions[k]), result.scatter.differs[k])
        for k, name in enumerate(base.names))
    logs_table = tuple((entry.source, entry.robot, entry.date, entry.rows, entry.span, entry.sha256)
                       for entry in result.folded.entries)
    return FleetData(f"Fleet of {len(robots)} {result.robot.name}", result.sentences, tuple(robots), parameters,
                     result.cross.robots, result.cross.joints, result.cross.between(), _boxes(result), logs_table,
                     tuple((one.source, one.reason) for one in result.folded.failures), result.notes, settings, command,
                     _signals(result))


def _signals(result: FleetResult) -> Signals | None:
    found = result.commanded
    return None if found is None else Signals(found.motion, found.robots, found.t, found.position, found.torque,
                                              found.position_difference, found.torque_difference)


def _boxes(result: FleetResult) -> tuple[tuple[str, str, tuple[tuple[str, tuple[float, ...]], ...]], ...]:
    """Return the values of each log of each robot, for the parameters with the most significant differences."""
    base = result.out.pooling.base
    chance = np.where(np.isfinite(result.scatter.p_robots), result.scatter.p_robots, 2.0)
    names = [*result.out.robots, *(robot.name for robot in result.robots if robot.name not in result.out.robots)]
    shown = set(names[:_MAX_ROBOTS_PER_BOX_PLOT])
    found = []
    for k in np.sort(np.argsort(chance)[:_MAX_BOX_PLOTS]):
        values = tuple((logs.robot, tuple(float(x) for x in logs.values[:, k] if np.isfinite(x)))
                       for logs in result.logs if logs.robot in shown)
        found.append((base.names[k], base.units[k], values))
    return tuple(found)


def robot_data(result: FleetResult, k: int) -> FleetRobotData:
    """Return the data of one robot's page."""
    base, robot, logs, pooled = result.out.pooling.base, result.robots[k], result.logs[k], result.pooled[k]
    alone = robot.solution
    dates = tuple(entry.date for entry in logs.entries)
    return FleetRobotData(
        f"{robot.name} of a fleet of {len(result.robots)}", words_of(result, robot.name), base.names, base.units,
        pooled.values, pooled.std, np.where(alone.identified, alone.beta, np.nan),
        np.where(alone.identified, np.sqrt(np.maximum(np.diag(robot.covariance), 0.0)), np.nan),
        result.out.pooling.mean, np.round(100.0 * pooled.lean, 1), dates, days(dates),
        tuple(entry.source for entry in logs.entries), logs.values, logs.std, robot.regression.joints,
        logs.relative_error, _changed(result, robot.name, dates))


def _changed(result: FleetResult, robot: str, dates: tuple[str, ...]) -> tuple[tuple[str, float, str], ...]:
    """Return each parameter that a step of a robot changed significantly, with the day and the date of the step."""
    at = dict(zip(dates, days(dates).tolist(), strict=True))
    return tuple((name, at[one.date], one.date) for one in result.changes if one.robot == robot and one.kind == "step"
                 and one.date in at for name, _, _, sigmas in one.parameters if abs(sigmas) > SIGNIFICANT_STEP)
