"""Data of the page on a designed motion."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.excitation import ExcitingMotion, Joined, Usage
from dynid.output_fields import output_fields
from dynid.report.words import JointUnits, joint_units
from dynid.robot import Robot

# Limits whose used share is shown.
_LIMIT_SIGNALS = ("position", "velocity", "acceleration", "jerk", "torque", "friction")


@dataclass(frozen=True)
class LowestPoint:
    """Lowest point of all links over a motion.

    Attributes:
        point: the point (3,), m, base frame.
        height: height of the point against gravity from the origin of the base frame, m.
        link: name of its link.
        time: time at which it is reached, s.
        floor: height of the floor below the point, m, or None if none was given.
    """

    point: list[float]
    height: float
    link: str
    time: float
    floor: float | None

    @output_fields(own_fields=True)
    def to_dict(self) -> dict[str, Any]:
        """Return the point as plain data for JSON."""
        return dict(vars(self))


@dataclass(frozen=True, eq=False)
class MotionData:
    """Data of the page on a designed motion.

    Attributes:
        title, robot, excitation: headline, the robot, and the designed motion.
        values: (base,), values that standard errors are relative to, nan if unknown.
        theta: (parameters,), parameters for computing torques, or None.
        whose: origin of `theta`, in words.
        before: (base,), standard errors from earlier logs, or None.
        notes: remarks.
        command: command line that repeats the design.
        sizes: (base,), reference values of the optimisation criterion, or None.
        unchecked: text on obstacles that the motion was not checked against.
        checked: text on obstacles that the motion was checked against, with every link.
        lowest: lowest point of the links, or None if it is not known.
        warnings: what a person must know before a robot follows the motion, the most important sentence first.
    """

    title: str
    robot: Robot
    excitation: ExcitingMotion
    values: Array
    theta: Array | None = None
    whose: str = "robot's file"
    before: Array | None = None
    notes: tuple[str, ...] = ()
    command: str = ""
    sizes: Array | None = None
    unchecked: str = ""
    checked: str = ""
    lowest: LowestPoint | None = None
    warnings: tuple[str, ...] = ()

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints."""
        return self.robot.joint_names

    @cached_property
    def units(self) -> tuple[JointUnits, ...]:
        """Units of position, velocity and torque of every joint."""
        return joint_units(self.excitation.model, self.robot)

    @cached_property
    def relative(self) -> Array:
        """Expected standard errors in percent of the values (base,), infinite without a value."""
        size = np.abs(self.values)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(size > 0, 100.0 * self.excitation.std / size, np.inf)

    @property
    def worst(self) -> list[int]:
        """Indices of the base parameters, those with the largest relative standard error first."""
        compared = self.relative if self.sizes is None else self.excitation.std / self.sizes
        return [int(k) for k in np.argsort(-compared, kind="stable")]

    @property
    def core(self) -> tuple[float, float]:
        """Start and end time of the exciting part of the motion, s."""
        whole = self.excitation.trajectory
        start = float(whole.starts[1]) if isinstance(whole, Joined) and whole is not self.excitation.core else 0.0
        return start, start + self.excitation.core.duration


def used(usage: Usage) -> float | None:
    """Return the percentage of a limit that a motion uses; None for limits without a percentage (distances)."""
    if usage.kind in _LIMIT_SIGNALS and np.isfinite(usage.excess):
        return max(100.0 * (1.0 + usage.excess), 0.0)
    return None
