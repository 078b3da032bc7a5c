"""Data of the page on a fleet."""

from __future__ import annotations

from dataclasses import dataclass

from dynid.arrays import Array


@dataclass(frozen=True)
class RobotRow:
    """One robot in the table of a fleet.

    It has the robot's page, logs, seconds, relative error (percent) of its own model, the largest share of a value that
    comes from the fleet (percent), and in words what differs or changed.
    """

    name: str
    page: str
    logs: int
    seconds: float
    error: float
    lean: float
    words: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class ParameterRow:
    """One parameter: the fleet's mean, standard deviations beyond noise between robots and between motions of one
    robot, p-values of both, and the source of the variation: "robots", "motions", "nothing" or "unknown"."""

    name: str
    unit: str
    mean: float
    spread: float
    within: float
    p_robots: float
    p_motions: float
    differs: str


@dataclass(frozen=True, eq=False)
class Signals:
    """One motion of several robots.

    Attributes:
        t: (points,), s.
        position, torque: commanded and measured (robots, points, dof).
        position_difference, torque_difference: (dof,), percent of the signal's standard deviation.
    """

    motion: str
    robots: tuple[str, ...]
    t: Array
    position: Array
    torque: Array
    position_difference: Array
    torque_difference: Array


@dataclass(frozen=True, eq=False)
class FleetData:
    """Data of the page on a fleet.

    Attributes:
        sentences: main findings.
        cross: (robots, robots, dof), percent, error of the model of the first robot on the logs of the second.
        cross_robots, joints: names along the axes of `cross`.
        boxes: for each parameter shown its name, unit, and for each robot its name and the values of its logs.
        logs: source, robot, date, rows, seconds, hash.
        failures: source and reason.
        signals: a motion that several robots made, or None.
    """

    title: str
    sentences: tuple[str, ...]
    robots: tuple[RobotRow, ...]
    parameters: tuple[ParameterRow, ...]
    cross_robots: tuple[str, ...]
    joints: tuple[str, ...]
    cross: Array
    boxes: tuple[tuple[str, str, tuple[tuple[str, tuple[float, ...]], ...]], ...]
    logs: tuple[tuple[str, str, str, int, float, str], ...]
    failures: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    settings: str
    command: str = ""
    signals: Signals | None = None
