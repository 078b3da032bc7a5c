"""Load-dependent dry friction, which grows with the torque that a gear transmits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from dynid import dynamics
from dynid.arrays import Array
from dynid.dynamics.adjoint import adjoint_kernel
from dynid.dynamics.tree import robot_tree
from dynid.model.elements import Load
from dynid.model.parameters import Kind, Parameter
from dynid.model.sign import Sign
from dynid.model.term import DQ, Entries, Place, entry_differences
from dynid.model.terms import chosen, joint_parameters
from dynid.robot import Robot

LOAD = Kind("load-dependent friction", "friction")
LARGEST = 0.5  # relative to the transmitted torque: a gear of less than 50 % efficiency would lock
SEPARATE_RIDGE = 1e-4  # penalty relative to squared columns, which keeps the two parameters of a joint near each other
_SOME_BODY = np.array([0.02, 0.0, 0.0, 0.02, 0.0, 0.02, 0.1, 0.1, 0.1, 1.0])  # for a link without known inertia


@dataclass(frozen=True, eq=False)
class LoadFriction:
    """Load-dependent dry friction Fl |tau_link| sign(dq) of a gear, proportional to the torque of its bodies.

    tau_link is the torque of the bodies alone, with inertias `bodies` (bodies, 10) from the last estimate. A fit is
    repeated until its inertias agree with `bodies`; before the first estimate, the robot's own inertias are used. Fl is
    between 0 and 0.5. With `separate`, a joint has two parameters: Flm if the motor drives the link and Flg if the link
    drives the motor. The difference Flm - Flg acts like a factor on the torque of the joint. Only the equations of
    other joints determine it; otherwise a small ridge penalty keeps Flm and Flg equal. `ridge` is the share of a
    column's squared norm by which Fl is regularised toward zero.
    """

    kind = "load"
    learned: ClassVar[Mapping[str, str]] = {"bodies": "bodies"}
    separate: bool = False
    joints: tuple[str | int, ...] | None = None
    sign: Sign = field(default_factory=Sign)
    bodies: Array | None = None
    ridge: float = 0.0

    @property
    def _symbols(self) -> tuple[str, ...]:
        return ("Flm", "Flg") if self.separate else ("Fl",)

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        return joint_parameters(robot, self.joints, *((symbol, "1", LOAD) for symbol in self._symbols), positive=True,
                                bounds=(0.0, LARGEST), ridge=max(SEPARATE_RIDGE if self.separate else 0.0, self.ridge))

    def link_numbers(self, robot: Robot) -> Array:
        """Return the inertial parameters (bodies, 10) that give the torques of the bodies, dependent bodies last."""
        if self.bodies is not None:
            return np.ascontiguousarray(self.bodies, dtype=float).reshape(-1, 10)
        followers = robot.followers
        dependent = () if followers is None else tuple(followers.tree.bodies[i] for i in followers.bodies)
        return np.array([np.zeros(10) if body.virtual else _SOME_BODY if body.inertia is None
                         or np.any(body.inertia[[0, 3, 5, 9]] <= 0) else body.inertia
                         for body in (*robot.bodies, *dependent)])

    def _link_torques(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Array:
        return dynamics.inverse_dynamics(robot, self.link_numbers(robot), q, dq, ddq, threads=1)

    def _ways(self, torque: Array, velocity: Array) -> tuple[Array | float, ...]:
        """Return the factor (samples,) of each load parameter of a joint.

        A joint with one parameter has the factor 1. With `separate`, the factor of Flm is 1 where the motor drives the
        link and 0 elsewhere; that of Flg is 1 where the link drives the motor.
        """
        if not self.separate:
            return (1.0,)
        drives = np.where(torque * velocity > 0, 1.0, 0.0)
        return drives, 1.0 - drives

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        yield from self.under_load(robot, self._link_torques(robot, q, dq, ddq), dq)

    def under_load(self, robot: Robot, torques: Array, dq: Array) -> Entries:
        """Yield the entries of load friction for given torques of the bodies (samples, dof)."""
        count = len(self._symbols)
        for k, j in enumerate(chosen(robot, self.joints)):
            friction = np.abs(torques[:, j]) * self.sign.of_joint(j)(dq[:, j])
            for c, direction in enumerate(self._ways(torques[:, j], dq[:, j])):
                yield j, count * k + c, friction * direction

    def pull_back(self, robot: Robot, q: Array, dq: Array, ddq: Array, place: Place, weights: Array,
                  out: Array) -> None:
        """Add the derivatives of load friction |tau| s, with body torques tau and the sign s of the velocity, which are
        sign(tau) s dtau + |tau| ds."""
        if robot.followers is not None:
            out += entry_differences(self, robot, q, dq, ddq, place, weights)
            return
        torques, numbers = self._link_torques(robot, q, dq, ddq), self.link_numbers(robot).ravel()
        count = len(self._symbols)
        of_torque = np.zeros((robot.dof, len(q)))
        for k, j in enumerate(chosen(robot, self.joints)):
            own = self.sign.of_joint(j)
            sign, slope = own(dq[:, j]), own.slope(dq[:, j])
            for c, direction in enumerate(self._ways(torques[:, j], dq[:, j])):
                row = place[j, count * k + c]
                if row >= 0:
                    of_torque[j] += weights[row] * direction * np.sign(torques[:, j]) * sign
                    out[DQ, :, j] += weights[row] * direction * np.abs(torques[:, j]) * slope
        rows = np.arange(robot.dof * len(numbers)).reshape(robot.dof, -1)
        rows[np.repeat(robot.supports, 10, axis=1) == 0] = -1
        moved = (of_torque[:, None, :] * numbers[:, None]).reshape(-1, len(q))
        adjoint_kernel(*robot_tree(robot), q, dq, ddq, rows, moved, out, 0, len(q))

    def elements(self, robot: Robot, values: Array) -> Iterator[Load]:
        both = np.repeat(values, 2) if not self.separate else values
        for j, (motoring, generating) in zip(chosen(robot, self.joints), both.reshape(-1, 2), strict=True):
            yield Load(j, motoring, generating, self.sign.of_joint(j))
