"""Terms of bodies, rotors, loads and springs, and functions shared by terms of joints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dynid import dynamics
from dynid.arrays import Array, Bools, Ints
from dynid.dynamics.adjoint import adjoint_kernel
from dynid.dynamics.following import closed_columns, tree_motion
from dynid.dynamics.momentum import momentum_columns
from dynid.dynamics.motion_case import rooted
from dynid.dynamics.physics import regressor_of_checked
from dynid.dynamics.tree import robot_tree
from dynid.errors import ModelError
from dynid.model.elements import Bodies, Linear, on_joints
from dynid.model.parameters import BODY, OTHER, ROTOR, SPRING, Kind, Parameter
from dynid.model.sign import Sign
from dynid.model.term import Entries, Place, entry_differences
from dynid.robot import BASE, Robot
from dynid.robot import inertia as ten

TORQUE, RATE = ("N m", "N"), ("N m s/rad", "N s/m")  # units for revolute and for prismatic joints
ANY_VALUE, NOT_NEGATIVE = (-np.inf, np.inf), (0.0, np.inf)  # bounds of parameters


def joint_parameter(robot: Robot, symbol: str, joint: int, unit: str | tuple[str, str], *, kind: Kind = OTHER,
                    positive: bool = False, bounds: tuple[float, float] = ANY_VALUE, ridge: float = 0.0) -> Parameter:
    """Return a parameter of one joint, named by `symbol` and the joint's number, with its value in the robot file.

    unit: one unit, or the units for a revolute and for a prismatic joint. Other arguments: see `Parameter`.
    """
    name, owner = f"{symbol}{joint + 1}", robot.joints[joint]
    own = unit if isinstance(unit, str) else unit[owner.prismatic]
    return Parameter(name, own, joint, owner.name, positive=positive, nominal=robot.values.get(name), kind=kind,
                     symbol=symbol, bounds=bounds, ridge=ridge)


def joint_parameters(robot: Robot, joints: Sequence[str | int] | None, *parts: tuple[str, str | tuple[str, str], Kind],
                     **options: Any) -> tuple[Parameter, ...]:
    """Return the parameters of all joints that a term acts on, joint by joint.

    parts: symbol, unit and kind of each parameter of a joint. options: further arguments of `joint_parameter`.
    """
    return tuple(joint_parameter(robot, symbol, j, unit, kind=kind, **options)
                 for j in chosen(robot, joints) for symbol, unit, kind in parts)


@dataclass(frozen=True)
class RigidBodies:
    """Rigid bodies: ten inertial parameters of every body that the joints move, except virtual bodies without mass."""

    kind = "rigid"

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        return tuple(parameter for i in _massive(robot)
                     for parameter in body_parameters(str(i + 1), i, robot.bodies[i].name, robot.bodies[i].inertia))

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        _, (q, dq, ddq), _ = rooted(robot, q=q, dq=dq, ddq=ddq)
        return filled_entries(self, robot, _shows(robot)[:, _massive(robot)], q, dq, ddq)

    def fill(self, robot: Robot, q: Array, dq: Array, ddq: Array, place: Place, out: Array) -> None:
        dynamics.regressor_columns(robot, q, dq, ddq, _on_all(robot, place), out)

    def momentum(self, robot: Robot, q: Array, dq: Array, place: Place, momentum: Array, force: Array,
                 changing: bool) -> None:
        momentum_columns(robot, q, dq, _on_all(robot, place), momentum, force, changing=changing)

    def instant(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Array:
        found = regressor_of_checked(robot, q, dq, ddq)
        found = dynamics.regressor(robot, q, dq, ddq) if found is None else found
        return (found if len(_massive(robot)) == robot.dof else found[:, _columns(robot)]).reshape(-1)

    def instant_entries(self, robot: Robot) -> tuple[Ints, Ints]:
        count = 10 * len(_massive(robot))
        every = np.arange(robot.dof * count)
        return every // count, every % count

    def pull_back(self, robot: Robot, q: Array, dq: Array, ddq: Array, place: Place, weights: Array,
                  out: Array) -> None:
        if robot.has_free_base or (robot.followers is not None and robot.followers.carrying):
            out += entry_differences(self, robot, q, dq, ddq, place, weights)
            return
        adjoint_kernel(*robot_tree(robot), q, dq, ddq, _on_all(robot, place), weights, out, 0, len(q))

    def torques(self, robot: Robot, values: Array, q: Array, dq: Array, ddq: Array) -> Array:
        return dynamics.inverse_dynamics(robot, _numbers(robot, values), q, dq, ddq)

    def inertia(self, robot: Robot, values: Array, q: Array) -> Array:
        return dynamics.inertia_matrix(robot, _numbers(robot, values), q)

    def elements(self, robot: Robot, values: Array) -> Iterator[Bodies]:
        yield Bodies(_numbers(robot, values))


def filled_entries(term: Any, robot: Robot, shows: Bools, q: Array, dq: Array, ddq: Array) -> Entries:
    """Yield the entries that the method `fill` of a term of bodies computes.

    shows (dof, bodies of the term): mask whose entry [j, i] is True if body i affects the torque of joint j.
    """
    shown = np.repeat(shows, 10, axis=1)
    place = np.full(shown.shape, -1, dtype=np.int64)
    place[shown] = np.arange(np.count_nonzero(shown))
    out = np.empty((np.count_nonzero(shown), len(q)))
    term.fill(robot, q, dq, ddq, place, out)
    for (joint, parameter), values in zip(np.argwhere(shown).tolist(), out, strict=True):
        yield joint, parameter, values


def _massive(robot: Robot) -> list[int]:
    """Return the indices of the independent bodies that are not virtual."""
    return [i for i, body in enumerate(robot.bodies) if not body.virtual]


def _columns(robot: Robot) -> Ints:
    """Return the indices of the ten parameters of each body with mass among the parameters of all bodies."""
    return (10 * np.array(_massive(robot), dtype=np.int64)[:, None] + np.arange(10)).reshape(-1)


def _on_all(robot: Robot, place: Place) -> Place:
    """Return the output row of each regressor entry of all bodies (dof, 10 dof), -1 for virtual bodies, from that of
    the bodies with mass (dof, parameters)."""
    if place.shape[1] == 10 * robot.dof:
        return place
    rows = np.full((robot.dof, 10 * robot.dof), -1, dtype=np.int64)
    rows[:, _columns(robot)] = place
    return rows


def _numbers(robot: Robot, values: Array) -> Array:
    """Return ten inertial parameters of every body (dof, 10), zero for virtual bodies."""
    if len(values) == 10 * robot.dof:
        return values.reshape(-1, 10)
    numbers = np.zeros((robot.dof, 10))
    numbers[_massive(robot)] = values.reshape(-1, 10)
    return numbers


def _shows(robot: Robot) -> Bools:
    """Return the mask (dof, dof) whose entry [j, i] is True if body i affects the torque of joint j."""
    followers = robot.followers
    return np.asarray(robot.supports if followers is None else followers.shows[:, list(followers.free)], dtype=bool)


def body_columns(robot: Robot, body: int, q: Array, dq: Array, ddq: Array) -> tuple[Ints, Array]:
    """Return the joints (k,) whose torques depend on a body, and the columns (k, 10, samples) of its ten parameters."""
    followers = robot.followers
    joints, rows = _body_rows(robot, body)
    out = np.empty((len(joints), 10, len(q)))
    if followers is None:
        dynamics.regressor_columns(robot, q, dq, ddq, rows, out.reshape(-1, len(q)))
    else:
        closed_columns(robot, tree_motion(robot, q, dq, ddq, threads=1), rows, out.reshape(-1, len(q)))
    return joints, out


def _body_rows(robot: Robot, body: int) -> tuple[Ints, Ints]:
    """Return the joints (k,) whose torques depend on a body, and the output row of each regressor entry (dof, 10 bodies
    of the tree): 0 to 10 k - 1 for the ten parameters of this body, -1 for all other entries."""
    followers = robot.followers
    place = body if followers is None else followers.place(body)
    joints = np.flatnonzero((robot.supports if followers is None else followers.shows)[:, place])
    rows = np.full((robot.dof, 10 * robot.tree.dof), -1, dtype=np.int64)
    rows[joints, 10 * place:10 * place + 10] = np.arange(10 * len(joints)).reshape(-1, 10)
    return joints, rows


def body_parameters(number: str, owner: int, body: str, values: Array | None) -> Iterator[Parameter]:
    """Yield the ten inertial parameters of a body; values (10,): their nominal values, or None."""
    for k, (name, unit, kind) in enumerate(zip(ten.NAMES, ten.UNITS, BODY, strict=True)):
        nominal = None if values is None else float(values[k])
        yield Parameter(name + number, unit, owner, body, body=body, nominal=nominal, kind=kind)


@dataclass(frozen=True)
class RotorInertia:
    """Inertia Ia of rotor and gears at the joint side, for all or some joints (Janot, Vandanjon, Gautier, eq. 49)."""

    kind = "rotor"
    joints: tuple[str | int, ...] | None = None

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        return joint_parameters(robot, self.joints, ("Ia", ("kg m^2", "kg"), ROTOR), positive=True)

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        for k, j in enumerate(chosen(robot, self.joints)):
            yield j, k, ddq[:, j]

    def instant(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Array:
        return of_chosen(robot, self.joints, ddq)

    def instant_entries(self, robot: Robot) -> tuple[Ints, Ints]:
        return one_each(robot, self.joints)

    def elements(self, robot: Robot, values: Array) -> Iterator[Linear]:
        yield Linear(inertia=np.diag(on_joints(robot.dof, chosen(robot, self.joints), values)))


def chosen(robot: Robot, joints: Sequence[str | int] | None) -> list[int]:
    """Return the indices of the joints that a term acts on.

    joints: names of joints, or their numbers from 1. Default: all joints except the coordinates of a free base.
    """
    if joints is None:
        return list(range(robot.free_coordinates, robot.dof))
    return [robot.joint_index(joint) for joint in joints]


def sign_entries(robot: Robot, joints: Sequence[str | int] | None, sign: Sign, dq: Array, each: int = 1) -> Entries:
    """Yield the entries sign(dq) of a dry friction term, for the first of the `each` parameters that a joint has."""
    for k, j in enumerate(chosen(robot, joints)):
        yield j, each * k, sign.of_joint(j)(dq[:, j])


def of_chosen(robot: Robot, joints: Sequence[str | int] | None, signal: Array) -> Array:
    """Return the entries of a signal (dof,) at the joints that a term acts on."""
    return signal[robot.free_coordinates:] if joints is None else signal[chosen(robot, joints)]


def one_each(robot: Robot, joints: Sequence[str | int] | None) -> tuple[Ints, Ints]:
    """Return the indices of the joint and the parameter of each entry, for a term with one parameter per joint."""
    own = np.array(chosen(robot, joints), dtype=np.int64)
    return own, np.arange(len(own))


@dataclass(frozen=True, eq=False)
class Payload:
    """A rigid load on a frame: ten inertial parameters in that frame (Ardiani, s. 1.2.5), named XXL .. ML."""

    kind = "payload"
    frame: str
    pose: Array = field(default_factory=lambda: np.eye(4))  # pose of the load's frame in the named frame
    label: str = "L"
    nominal: Sequence[float] | None = None

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        body = self.body(robot)
        values = None if self.nominal is None else np.asarray(self.nominal, dtype=float)
        if values is not None and values.shape != (10,):
            raise ModelError(f"the payload's nominal values must be ten numbers, got shape {values.shape}")
        followers = robot.followers
        owner = body if body < robot.dof or followers is None else followers.owners[body - robot.dof]
        return tuple(body_parameters(self.label, owner, f"payload {self.label}", values))

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        carriers, out = body_columns(robot, self.body(robot), q, dq, ddq)
        # theta_body = X theta_load, so Y_load = Y_body X.
        for joint, rows in zip(carriers, np.einsum("kl,jks->jls", self.to_body(robot), out), strict=True):
            for k in range(10):
                yield int(joint), k, rows[k]

    def momentum(self, robot: Robot, q: Array, dq: Array, place: Place, momentum: Array, force: Array,
                 changing: bool) -> None:
        carriers, rows = _body_rows(robot, self.body(robot))
        both = np.empty((2, len(carriers), 10, len(q)))
        momentum_columns(robot, q, dq, rows, *both.reshape(2, -1, len(q)), changing=changing)
        own = place[carriers]
        of_load = np.einsum("kl,ajks->ajls", self.to_body(robot), both)
        momentum[own[own >= 0]], force[own[own >= 0]] = of_load[:, own >= 0]

    def pull_back(self, robot: Robot, q: Array, dq: Array, ddq: Array, place: Place, weights: Array,
                  out: Array) -> None:
        if robot.has_free_base or robot.followers is not None:
            out += entry_differences(self, robot, q, dq, ddq, place, weights)
            return
        # Y_load = Y_body X, so weights of the load's entries, times X', are weights of the body's entries.
        carriers, rows = _body_rows(robot, self.body(robot))
        own = place[carriers]
        given = np.zeros((*own.shape, len(q)))
        given[own >= 0] = weights[own[own >= 0]]
        moved = (self.to_body(robot) @ given).reshape(-1, len(q))
        adjoint_kernel(*robot_tree(robot), q, dq, ddq, rows, moved, out, 0, len(q))

    def elements(self, robot: Robot, values: Array) -> Iterator[Bodies]:
        numbers = np.zeros((robot.tree.dof, 10))
        numbers[self.body(robot)] = self.to_body(robot) @ values
        yield Bodies(numbers)

    def to_body(self, robot: Robot) -> Array:
        """Return the matrix X (10, 10) that converts parameters of the load to those of the body that carries it."""
        return ten.change_frame(robot.frame(self.frame).pose @ np.asarray(self.pose, dtype=float))

    def body(self, robot: Robot) -> int:
        """Return the index of the body that carries the load; dependent bodies have the last indices."""
        frame = robot.frame(self.frame)
        if frame.body == BASE:
            raise ModelError(f"a payload on frame '{self.frame}' is fixed to the base and cannot be identified; "
                             "choose a frame that moves")
        return frame.body


@dataclass(frozen=True)
class Spring:
    """A spring or counterbalance on one joint with torque K (q - rest); also an example of a custom term."""

    kind = "spring"
    joint: str | int
    rest: float = 0.0  # position without force, rad or m

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        j = robot.joint_index(self.joint)
        return (joint_parameter(robot, "K", j, ("N m/rad", "N/m"), kind=SPRING, positive=True),)

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        j = robot.joint_index(self.joint)
        yield j, 0, q[:, j] - self.rest

    def elements(self, robot: Robot, values: Array) -> Iterator[Linear]:
        stiffness = on_joints(robot.dof, [robot.joint_index(self.joint)], values)
        yield Linear(stiffness=stiffness, constant=-self.rest * stiffness)


def coupling_matrix(robot: Robot, coupling: Any) -> Array:
    """Return a checked motor-joint coupling matrix T (joints, motors): tau = T tau_m (Sousa, eq. 4.1-4.2)."""
    matrix = np.asarray(coupling, dtype=float)
    if matrix.shape != (robot.dof, robot.dof) or not np.isfinite(matrix).all():
        raise ModelError(f"the coupling matrix of robot '{robot.name}' must be {robot.dof} x {robot.dof} finite "
                         f"numbers, got shape {matrix.shape}")
    if np.linalg.matrix_rank(matrix) < robot.dof:
        raise ModelError(f"the coupling matrix of robot '{robot.name}' is singular: its motors are not independent",
                         code="singular-coupling")
    return matrix
