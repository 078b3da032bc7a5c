"""Drift: friction that changes slowly with time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.model.elements import Dry, Element, Linear, axis, on_joints
from dynid.model.kinds import FRICTION
from dynid.model.parameters import Parameter
from dynid.model.sign import Sign
from dynid.model.term import Entries, MotionSegment, TorqueModel
from dynid.model.terms import chosen, joint_parameter, joint_unit
from dynid.robot import Robot


@dataclass(frozen=True, eq=False)
class Drift:
    """Drifting dry friction sum_k Fwk r_k(t) sign(dq), which changes by Fwk from one knot of time to the next.

    r_k rises from 0 to 1 between two of knots + 1 evenly spaced times over the data. Its mean is subtracted, so that
    the rest of the model describes the mean. One knot gives a straight line. `ridge` regularises every Fwk toward zero,
    which makes several knots a random walk. With `viscous`, viscous friction changes likewise, Fyk r_k(t) dq. `span` is
    the first and last time, s; None takes them from the data. A motion without times, and a simulated machine, use the
    last time.
    """

    kind = "drift"
    learned: ClassVar[Mapping[str, str]] = {"span": "times"}
    knots: int = 1
    viscous: bool = False
    ridge: float = 1e-3
    joints: tuple[str | int, ...] | None = None
    sign: Sign = field(default_factory=Sign)
    span: ArrayLike | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.knots <= 99:
            raise ModelError(f"drift needs 1 to 99 time knots, got {self.knots}")
        if not (np.isfinite(self.ridge) and self.ridge >= 0):
            raise ModelError(f"the ridge of drift must not be negative, got {self.ridge}")

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        symbol = "Fy" if self.viscous else "Fw"
        units = ("N m s/rad", "N s/m") if self.viscous else ("N m", "N")
        return tuple(replace(joint_parameter(robot, f"{symbol}{k + 1}_", j, joint_unit(robot, j, *units),
                                             kind=FRICTION), ridge=self.ridge)
                     for j in chosen(robot, self.joints) for k in range(self.knots))

    def ramps(self, t: Array) -> Array:
        """Return the ramps r_k at times (samples,), as an array (samples, knots)."""
        first, last = (0.0, 1.0) if self.span is None else np.asarray(self.span, dtype=float)
        place = self.knots * (t - first) / max(float(last - first), 1e-9)
        knot = np.arange(self.knots)
        return np.asarray(np.clip(place[:, None] - knot, 0.0, 1.0) - (1.0 - (knot + 0.5) / self.knots))

    @property
    def _last(self) -> Array:
        """Return the ramps r_k (knots,) of the drift at the last time of the data."""
        return (np.arange(self.knots) + 0.5) / self.knots

    def channels(self, robot: Robot) -> int:
        return self.knots

    def memory(self, model: TorqueModel, motion: MotionSegment) -> Array:
        return self.ramps(motion.t)

    def _carrier(self, velocity: Array) -> Array:
        return velocity if self.viscous else self.sign(velocity)

    def remembered(self, robot: Robot, q: Array, dq: Array, ddq: Array, memory: Array) -> Entries:
        for n, j in enumerate(chosen(robot, self.joints)):
            for k in range(self.knots):
                yield j, n * self.knots + k, memory[:, k] * self._carrier(dq[:, j])

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        for n, j in enumerate(chosen(robot, self.joints)):
            for k, share in enumerate(self._last.tolist()):
                yield j, n * self.knots + k, share * self._carrier(dq[:, j])

    def elements(self, robot: Robot, values: Array) -> Iterator[Element]:
        joints, now = chosen(robot, self.joints), values.reshape(-1, self.knots) @ self._last
        if self.viscous:
            yield Linear(viscous=np.diag(on_joints(robot.dof, joints, now)))
            return
        for j, value in zip(joints, now.tolist(), strict=True):
            yield Dry(axis(robot.dof, j), value, value, self.sign)
