"""Limit on the distance of closed loops from singular postures."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dynid.arrays import Array, Ints
from dynid.dynamics.following import chain_of, closure_conditions
from dynid.robot import Robot

FACTOR = 10.0  # of the condition number in the posture of the loops, by default
LOOP_LIMIT_STEP = 1e-5  # rad or m, of differences
_NOT_CLOSED = 1e6  # times the largest condition number, where there is none


@dataclass(frozen=True, eq=False)
class LoopLimit:
    """Limit on the condition number of the closures' derivatives.

    The value is log10 of its ratio to the largest allowed one: an excess of 1 is a factor of ten. condition: the
    largest allowed; margin: kept free, in the same units.
    """

    robot: Robot
    condition: float
    margin: float = 0.0
    refinement = 1

    @staticmethod
    def of(robot: Robot, condition: float | None = None) -> LoopLimit | None:
        """Return the limit of a robot, by default FACTOR times the condition number in its reference posture; None
        without loops."""
        followers = robot.followers
        if followers is None or followers.loops is None:
            return None
        if condition is None:
            condition = FACTOR * float(closure_conditions(robot, chain_of(robot).begin[None, :robot.dof])[0])
        return LoopLimit(robot, condition)

    def tightened(self, excess: float) -> LoopLimit:
        return replace(self, margin=min(self.margin + excess, 0.5))

    def values(self, q: Array, dq: Array, ddq: Array) -> Array:
        found = np.minimum(closure_conditions(self.robot, q), _NOT_CLOSED * self.condition)
        return np.asarray(np.log10(found / self.condition) + self.margin)[:, None]

    def gradient(self, q: Array, dq: Array, ddq: Array, columns: Ints) -> Array:
        out = np.zeros((len(q), 3, q.shape[1]))
        for j in range(q.shape[1]):
            step = np.zeros(q.shape[1])
            step[j] = LOOP_LIMIT_STEP
            change = self.values(q + step, dq, ddq) - self.values(q - step, dq, ddq)
            out[:, 0, j] = change[:, 0] / (2.0 * LOOP_LIMIT_STEP)
        return out

    @property
    def names(self) -> str:
        """Names of the closed loops, as text for messages."""
        followers = self.robot.followers
        assert followers is not None and followers.loops is not None
        return followers.loops.names

    def describe(self, column: int) -> str:
        return f"the loops {self.names}, whose closures may have a condition number of at most {self.condition:.3g}"
