"""Terms: what adds to the torque, each linear in its own parameters.

A term is any object with
    parameters(robot) -> its parameters in order,
    entries(robot, q, dq, ddq) -> (joint, parameter, values (samples,)) for each entry of its columns that is
        not always zero, joint and parameter counted from 0,
and, where it pays, `fill(robot, q, dq, ddq, place, out)` that writes chosen entries straight into the rows of
`out` (see `fill_entries`). Nothing has to be inherited. `accelerates = False` says that it never uses ddq.
`kind` is the name that robot files and the command line know it by.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from dynid import dynamics
from dynid.arrays import Array, Ints
from dynid.errors import ModelError
from dynid.model.parameters import Parameter
from dynid.robot import BASE, Robot
from dynid.robot import inertia as ten

Entries = Iterator[tuple[int, int, Array]]
Place = Ints


class Term(Protocol):
    """What a model is a sum of."""

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]: ...

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries: ...


@runtime_checkable
class Shaped(Protocol):
    """A term that is nonlinear in some parameters of its own, its shape (see `Stribeck`)."""

    def shape_names(self, robot: Robot) -> tuple[str, ...]: ...

    def shape(self, robot: Robot) -> Array: ...

    def with_shape(self, robot: Robot, values: Array) -> Term: ...


def fill_entries(term: Term, robot: Robot, q: Array, dq: Array, ddq: Array, place: Place, out: Array) -> None:
    """Write a term's entries into rows of out (rows, samples): place (joints, parameters) says where, -1 nowhere."""
    fill = getattr(term, "fill", None)
    if fill is not None:
        fill(robot, q, dq, ddq, place, out)
        return
    for joint, parameter, values in term.entries(robot, q, dq, ddq):
        if place[joint, parameter] >= 0:
            out[place[joint, parameter]] = values


def joint_parameter(robot: Robot, kind: str, joint: int, unit: str, *, positive: bool = False) -> Parameter:
    """A parameter of one joint, with the value the robot's source gives it."""
    name = f"{kind}{joint + 1}"
    return Parameter(name, unit, joint, robot.joints[joint].name, positive=positive, nominal=robot.values.get(name))


def joint_unit(robot: Robot, joint: int, turning: str, sliding: str) -> str:
    return sliding if robot.joints[joint].prismatic else turning


@dataclass(frozen=True)
class RigidBodies:
    """Ten numbers of every body the joints move."""

    kind = "rigid"

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        return tuple(parameter for i in range(robot.dof)
                     for parameter in body_parameters(str(i + 1), i, robot.bodies[i].name, robot.bodies[i].inertia))

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        y = dynamics.regressor(robot, q, dq, ddq)
        for joint, body in np.argwhere(robot.supports):
            for k in range(10 * body, 10 * body + 10):
                yield joint, k, y[:, joint, k]

    def fill(self, robot: Robot, q: Array, dq: Array, ddq: Array, place: Place, out: Array) -> None:
        dynamics.regressor_columns(robot, q, dq, ddq, place, out)


def body_parameters(number: str, owner: int, body: str, values: Array | None) -> Iterator[Parameter]:
    for k, (name, unit) in enumerate(zip(ten.NAMES, ten.UNITS, strict=True)):
        nominal = None if values is None else float(values[k])
        yield Parameter(name + number, unit, owner, body, body=body, nominal=nominal)


@dataclass(frozen=True)
class RotorInertia:
    """Ia: inertia of rotor and gears, seen at the joint (Janot, Vandanjon, Gautier, eq. 49). joints: all, or some."""

    kind = "rotor"
    joints: tuple[str | int, ...] | None = None

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        return tuple(joint_parameter(robot, "Ia", j, joint_unit(robot, j, "kg m^2", "kg"), positive=True)
                     for j in chosen(robot, self.joints))

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        for k, j in enumerate(chosen(robot, self.joints)):
            yield j, k, ddq[:, j]


def chosen(robot: Robot, joints: Sequence[str | int] | None) -> list[int]:
    """Indices of the joints a term acts on: all, or those named (or numbered from 1)."""
    return list(range(robot.dof)) if joints is None else [robot.joint_index(joint) for joint in joints]


@dataclass(frozen=True, eq=False)
class Payload:
    """A rigid load on a frame: ten numbers in that frame (Ardiani, s. 1.2.5), named XXL .. ML."""

    kind = "payload"
    frame: str
    pose: Array = field(default_factory=lambda: np.eye(4))  # of the load's frame in the named one
    label: str = "L"
    nominal: Sequence[float] | None = None

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        body = self._body(robot)
        values = None if self.nominal is None else np.asarray(self.nominal, dtype=float)
        if values is not None and values.shape != (10,):
            raise ModelError(f"the payload's nominal values must be ten numbers, got shape {values.shape}")
        return tuple(body_parameters(self.label, body, f"payload {self.label}", values))

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        body = self._body(robot)
        carriers = np.flatnonzero(robot.supports[:, body])
        place = np.full((robot.dof, 10 * robot.dof), -1, dtype=np.int64)
        place[carriers, 10 * body:10 * body + 10] = np.arange(10 * len(carriers)).reshape(-1, 10)
        out = np.empty((len(carriers), 10, len(q)))
        dynamics.regressor_columns(robot, q, dq, ddq, place, out.reshape(-1, len(q)))
        # theta_body = X theta_load, so Y_load = Y_body X.
        to_body = ten.change_frame(robot.frame(self.frame).pose @ np.asarray(self.pose, dtype=float))
        for joint, rows in zip(carriers, np.einsum("kl,jks->jls", to_body, out), strict=True):
            for k in range(10):
                yield int(joint), k, rows[k]

    def _body(self, robot: Robot) -> int:
        frame = robot.frame(self.frame)
        if frame.body == BASE:
            raise ModelError(f"a payload on frame '{self.frame}' rests on the base and cannot be identified")
        return frame.body


@dataclass(frozen=True)
class Spring:
    """A spring or counterbalance on one joint: tau = K (q - rest), the pattern for a term of one's own."""

    kind = "spring"
    joint: str | int
    rest: float = 0.0  # position without force, rad or m

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        j = robot.joint_index(self.joint)
        return (joint_parameter(robot, "K", j, joint_unit(robot, j, "N m/rad", "N/m"), positive=True),)

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        j = robot.joint_index(self.joint)
        yield j, 0, q[:, j] - self.rest

    accelerates = False


def coupling_matrix(robot: Robot, coupling: Any) -> Array:
    """A motor-joint coupling matrix T (joints, motors), checked: tau = T tau_m, dq_m = T' dq (Sousa, eq. 4.1-4.2)."""
    matrix = np.asarray(coupling, dtype=float)
    if matrix.shape != (robot.dof, robot.dof) or not np.isfinite(matrix).all():
        raise ModelError(f"the coupling matrix of robot '{robot.name}' must be {robot.dof} x {robot.dof} finite "
                         f"numbers, got shape {matrix.shape}")
    if np.linalg.matrix_rank(matrix) < robot.dof:
        raise ModelError(f"the coupling matrix of robot '{robot.name}' is singular: two motors would do the same")
    return matrix
