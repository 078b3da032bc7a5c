"""Time delay between the positions and the torques of a log, as a term of the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dynid.arrays import Array
from dynid.model.elements import Element
from dynid.model.parameters import Kind, Parameter
from dynid.model.term import Entries, MotionSegment, TorqueModel
from dynid.model.terms import chosen, joint_parameters
from dynid.robot import Robot

DELAY = Kind("delay")
LONGEST = 0.1  # s: largest plausible delay
_SAMPLES_AT_ONCE = 1000  # samples processed at once, in one thread


@dataclass(frozen=True, eq=False)
class Delay:
    """Delay D, s, of the logged torques after the logged positions, as a torque D (tau(t - D0) - tau(t)) / D0.

    tau is the torque that the last estimate (parameters,) predicts along the log, and D0 is the delay of that estimate.
    The term is exact if D equals D0, and it is -D d(tau)/dt if D0 is less than half a sampling period. The term is zero
    before the first estimate and for a motion without times. The delay belongs to the log and not to the robot, so
    simulations ignore it.
    """

    kind = "delay"
    learned: ClassVar[Mapping[str, str]] = {"estimate": "estimate"}
    joints: tuple[str | int, ...] | None = None
    estimate: Array | None = None

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        return joint_parameters(robot, self.joints, ("D", "s", DELAY), bounds=(-LONGEST, LONGEST))

    def channels(self, robot: Robot) -> int:
        return len(chosen(robot, self.joints))

    def memory(self, model: TorqueModel, motion: MotionSegment) -> Array:
        """Return the regressor columns (samples, joints), N m/s: change of torques per second of delay."""
        own = chosen(model.robot, self.joints)
        if self.estimate is None or len(motion.t) < 3:
            return np.zeros((len(motion.t), len(own)))
        parts = [slice(k, k + _SAMPLES_AT_ONCE) for k in range(0, len(motion.t), _SAMPLES_AT_ONCE)]
        tau = np.concatenate([model.inverse_dynamics(self.estimate, motion.q[rows], motion.dq[rows],
                                                     motion.ddq[rows])[:, own] for rows in parts])
        slopes = -np.asarray(np.gradient(tau, motion.t, axis=0))
        for k, j in enumerate(own):
            late = float(np.clip(self.estimate[model.parameters.index(f"D{j + 1}")], -LONGEST, LONGEST))
            if abs(late) > 0.5 * (motion.t[-1] - motion.t[0]) / (len(motion.t) - 1):
                slopes[:, k] = (np.interp(motion.t - late, motion.t, tau[:, k]) - tau[:, k]) / late
        return slopes

    def remembered(self, robot: Robot, q: Array, dq: Array, ddq: Array, memory: Array) -> Entries:
        for k, j in enumerate(chosen(robot, self.joints)):
            yield j, k, memory[:, k]

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        yield from ()

    def elements(self, robot: Robot, values: Array) -> Iterator[Element]:
        yield from ()
