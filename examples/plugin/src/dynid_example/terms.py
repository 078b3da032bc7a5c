"""Air drag: a friction torque that grows with the square of the joint velocity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

import dynid
from dynid.model import chosen, joint_parameter
from dynid.model.elements import axis
from dynid.model.term import DQ

DRAG = dynid.terms.Kind("air drag", "friction")

@dynid.terms.curve
def drag_torque(q: float, dq: float, values: Sequence[float]) -> float:
    return values[0] * dq * abs(dq)

@dataclass(frozen=True)
class AirDrag:
    """tau = Cd dq |dq|, Cd in N m s^2/rad^2 for each joint in `joints` (all by default)."""

    kind = "air-drag"
    joints: tuple[str | int, ...] | None = None

    def parameters(self, robot: dynid.Robot) -> tuple[dynid.Parameter, ...]:
        return tuple(joint_parameter(robot, "Cd", j, "N m s^2/rad^2", kind=DRAG, positive=True)
                     for j in chosen(robot, self.joints))

    def entries(self, robot: dynid.Robot, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> Iterator[tuple]:
        for k, j in enumerate(chosen(robot, self.joints)):
            yield j, k, dq[:, j] * np.abs(dq[:, j])

    def slopes(self, robot: dynid.Robot, q: np.ndarray, dq: np.ndarray, ddq: np.ndarray) -> Iterator[tuple]:
        for k, j in enumerate(chosen(robot, self.joints)):
            yield j, k, DQ, j, 2.0 * np.abs(dq[:, j])

    def elements(self, robot: dynid.Robot, values: Sequence[float]) -> Iterator[dynid.terms.Curve]:
        for j, value in zip(chosen(robot, self.joints), values, strict=True):
            yield dynid.terms.Curve(axis(robot.dof, j), drag_torque, [value])
