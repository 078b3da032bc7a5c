"""MotionData: what the page of a designed motion is made of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dynid.arrays import Array
from dynid.excitation import ExcitingMotion, Joined, Usage
from dynid.report.units import JointUnits, joint_units
from dynid.robot import Robot

_LIMIT_SIGNALS = ("position", "velocity", "acceleration", "jerk", "torque")  # limits of which a share is used


@dataclass(frozen=True, eq=False)
class MotionData:
    """What the page shows. values (base,): what deviations are relative to, nan where not known. theta (parameters,):
    to compute torques with, or None; whose: in words, whose parameters these are. before (base,): deviations that
    earlier logs gave, or None. notes: what to know. command: repeats it at the command line. sizes (base,):
    what is large of each parameter, which deviations were judged by, or None. unchecked: what the motion was not
    checked against, in words."""

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

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints."""
        return self.robot.joint_names

    @cached_property
    def units(self) -> tuple[JointUnits, ...]:
        """Of every joint."""
        return joint_units(self.excitation.model, self.robot)

    @cached_property
    def relative(self) -> Array:
        """Expected deviations in percent of the values (base,), infinite where there is no value."""
        size = np.abs(self.values)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(size > 0, 100.0 * self.excitation.deviations / size, np.inf)

    @property
    def worst(self) -> list[int]:
        """Base parameters, those that will be known worst first."""
        judged = self.relative if self.sizes is None else self.excitation.deviations / self.sizes
        return [int(k) for k in np.argsort(-judged, kind="stable")]

    @property
    def core(self) -> tuple[float, float]:
        """Seconds between which the exciting part runs."""
        whole = self.excitation.trajectory
        start = float(whole.starts[1]) if isinstance(whole, Joined) and whole is not self.excitation.core else 0.0
        return start, start + self.excitation.core.duration


def used(usage: Usage) -> float | None:
    """Percent of a limit that is used; None where that says nothing (distances, postures)."""
    if usage.kind in _LIMIT_SIGNALS and np.isfinite(usage.excess):
        return max(100.0 * (1.0 + usage.excess), 0.0)
    return None
