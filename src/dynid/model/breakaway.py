"""Dry friction that is larger at rest than in motion."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from dynid.arrays import Array
from dynid.model.elements import Dry, axis
from dynid.model.kinds import DRY
from dynid.model.parameters import Parameter
from dynid.model.sign import Sign
from dynid.model.term import Entries
from dynid.model.terms import chosen, joint_parameter, joint_unit, sign_entries
from dynid.robot import Robot


@dataclass(frozen=True)
class BreakawayFriction:
    """Dry friction Fc sign(dq) in motion, and up to Fc + Fb at rest, until the joint starts to move (Ardiani, fig.
    1.4d).

    Rows in motion determine Fc but not Fb, which acts at the last instant before a joint starts (see
    `dynid.terms.breakaway`). Fb is not negative.
    """

    kind = "breakaway"
    joints: tuple[str | int, ...] | None = None
    sign: Sign = field(default_factory=Sign)

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        return tuple(replace(joint_parameter(robot, symbol, j, joint_unit(robot, j, "N m", "N"), positive=True,
                                             kind=DRY if symbol == "Fc" else DRY.unwritten()), bounds=(0.0, np.inf))
                     for j in chosen(robot, self.joints) for symbol in ("Fc", "Fb"))

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        return sign_entries(robot, self.joints, self.sign, dq, 2)

    def elements(self, robot: Robot, values: Array) -> Iterator[Dry]:
        for j, (dry, more) in zip(chosen(robot, self.joints), values.reshape(-1, 2).tolist(), strict=True):
            yield Dry(axis(robot.dof, j), dry, dry, self.sign, static=more)
