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

    unit: one unit, or those for a revolute and for a prismatic joint. Other arguments: see `Parameter`.
    """
    name, one = f"{symbol}{joint + 1}", robot.joints[joint]
    own = unit if isinstance(unit, str) else unit[one.prismatic]
    return Parameter(name, own, joint, one.name, positive=positive, nominal=robot.values.get(name), kind=kind,
                     symbol=symbol, bounds=bounds, ridge=ridge)


@dataclass(frozen=True)
class RigidBodies:
    """Rigid bodies: ten inertial parameters of every body that the joints move, except virtual bodies without mass."""

    kind = "rigid"

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        return tuple(parameter for i in _massive(robot)
                     for parameter in body_parameters(str(i + 1), i, robot.bodies[i].name, robot.bodies[i].inertia))

    def entries(self, robot: Robot, q: Array, dq: Array, ddq: Array) -> Entries:
        # `fill` needs this kernel too; that of `regressor` would take seconds to compile.
        place, shows = np.arange(10 * robot.dof ** 2).reshape(robot.dof, -1), _shows(robot)
        rows = np.zeros((place.size, len(q)))
        _, (q, dq, ddq), _ = rooted(robot, q=q, dq=dq, ddq=ddq)
        dynamics.regressor_columns(robot, q, dq, ddq, place, rows)
        for first, body in enumerate(_massive(robot)):
            for joint in np.flatnonzero(shows[:, body]):
                for k in range(10):
                    yield int(joint), 10 * first + k, rows[place[joint, 10 * body + k]]

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


def _massive(robot: Robot) -> list[int]:
    """Return the indices of the independent bodies that are not virtual."""
    return [i for i, body in enumerate(robot.bodies) if not body.virtual]


def _columns(robot: Robot) -> Ints:
    """Return the indices of the massive bodies' ten parameters among those of all bodies."""
    return (10 * np.array(_massive(robot), dtype=np.int64)[:, None] + np.arange(10)).reshape(-1)


def _on_all(robot: Robot, place: Place) -> Place:
    """Return rows (dof, 10 dof) of the entries of all bodies, from those (dof, parameters) of the bodies with mass."""
    if place.shape[1] == 10 * robot.dof:
        return place
    whole = np.full((robot.dof, 10 * robot.dof), -1, dtype=np.int64)
    whole[:, _columns(robot)] = place
    return whole


def _numbers(robot: Robot, values: Array) -> Array:
    """Return ten inertial parameters of every body (dof, 10), zero for virtual ones."""
    if len(values) == 10 * robot.dof:
        return values.reshape(-1, 10)
    whole = np.zeros((robot.dof, 10))
    whole[_massive(robot)] = values.reshape(-1, 10)
    return whole


def _shows(robot: Robot) -> Bools:
    """Return the mask (dof, dof) whose entry [j, i] is True if body i affects the torque of joint j."""
    followers = robot.followers
    return np.asarray(robot.supports if followers is None else followers.shows[:, list(followers.free)], dtype=bool)


def body_columns(robot: Robot, body: int, q: Array, dq: Array, ddq: Array) -> tuple[Ints, Array]:
    """Return the joints (k,) whose torques depend on a body, and the columns (k, 10, samples) of its ten parameters."""
    followers = robot.followers
    place = followers.place(body) if followers is not None else body
    joints = np.flatnonzero((robot.supports if followers is None else followers.shows)[:, place])
    bodies = robot.dof if followers is None else followers.tree.dof
    rows = np.full((robot.dof, 10 * bodies), -1, dtype=np.int64)
    rows[joints, 10 * place:10 * place + 10] = np.arange(10 * len(joints)).reshape(-1, 10)
    out = np.empty((len(joints), 10, len(q)))
    if followers is None:
        dynamics.regressor_columns(robot, q, dq, ddq, rows, out.reshape(-1, len(q)))
    else:
        closed_columns(robot, tree_motion(robot, q, dq, ddq, threads=1), rows, out.reshape(-1, len(q)))
    return joints, out


def body_parameters(number: str, owner: int, body: str, values: Array | None) -> Iterator[Parameter]:
    """Yield the ten parameters of a body, with nominal values (10,) or None."""
    for k, (name, unit, kind) in enumerate(zip(ten.NAMES, ten.UNITS, BODY, strict=True)):
        nominal = None if values is None else float(values[k])
        yield Parameter(name + number, unit, owner, body, body=body, nominal=nominal, kind=kind)


@dataclass(frozen=True)
class RotorInertia:
    """Inertia Ia of rotor and gears at the joint side, of all or some joints (Janot, Vandanjon, Gautier, eq. 49)."""

    kind = "rotor"
    joints: tuple[str | int, ...] | None = None

    def parameters(self, robot: Robot) -> tuple[Parameter, ...]:
        return tuple(joint_parameter(robot, "Ia", j, ("kg m^2", "kg"), kind=ROTOR, positive=True)
                     for j in chosen(robot, self.joints))

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
    """Return the indices of the joints that a term acts on: all except a free base, or those given by name or number
    from 1."""
    if joints is None:
        return list(range(robot.free_coordinates, robot.dof))
    return [robot.joint_index(joint) for joint in joints]


def sign_entries(robot: Robot, joints: Sequence[str | int] | None, sign: Sign, dq: Array, each: int = 1) -> Entries:
    """Yield entries sign(dq) of the first of `each` parameters of every joint that a term of dry friction acts on."""
    for k, j in enumerate(chosen(robot, joints)):
        yield j, each * k, sign.of_joint(j)(dq[:, j])


def of_chosen(robot: Robot, joints: Sequence[str | int] | None, signal: Array) -> Array:
    """Return the entries of a signal (dof,) at the joints that a term acts on."""
    return signal[robot.free_coordinates:] if joints is None else signal[chosen(robot, joints)]


def one_each(robot: Robot, joints: Sequence[str | int] | None) -> tuple[Ints, Ints]:
    """Return joints and parameters of the entries of a term with one parameter per joint."""
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
        body, to_body = self.body(robot), self.to_body(robot)
        carriers = np.flatnonzero(robot.supports[:, body])
        whole = np.full((robot.dof, 10 * robot.dof), -1, dtype=np.int64)
        whole[carriers, 10 * body:10 * body + 10] = np.arange(10 * len(carriers)).reshape(-1, 10)
        both = np.empty((2, len(carriers), 10, len(q)))
        momentum_columns(robot, q, dq, whole, both[0].reshape(-1, len(q)), both[1].reshape(-1, len(q)),
                         changing=changing)
        for found, out in zip(np.einsum("kl,ajks->ajls", to_body, both), (momentum, force), strict=True):
            for rows, own in zip(found, place[carriers], strict=True):
                out[own[own >= 0]] = rows[own >= 0]

    def pull_back(self, robot: Robot, q: Array, dq: Array, ddq: Array, place: Place, weights: Array,
                  out: Array) -> None:
        if robot.has_free_base or robot.followers is not None:
            out += entry_differences(self, robot, q, dq, ddq, place, weights)
            return
        # Y_load = Y_body X, so a weight on the load is the weight times X' on its body.
        body, to_body = self.body(robot), self.to_body(robot)
        carriers = np.flatnonzero(robot.supports[:, body])
        moved = np.zeros((10 * len(carriers), len(q)))
        whole = np.full((robot.dof, 10 * robot.dof), -1, dtype=np.int64)
        for c, joint in enumerate(carriers):
            given = np.zeros((10, len(q)))
            used = place[joint] >= 0
            given[used] = weights[place[joint, used]]
            moved[10 * c:10 * c + 10] = to_body @ given
            whole[joint, 10 * body:10 * body + 10] = np.arange(10 * c, 10 * c + 10)
        adjoint_kernel(*robot_tree(robot), q, dq, ddq, whole, moved, out, 0, len(q))

    def elements(self, robot: Robot, values: Array) -> Iterator[Bodies]:
        numbers = np.zeros((robot.dof if robot.followers is None else robot.followers.tree.dof, 10))
        numbers[self.body(robot)] = self.to_body(robot) @ values
        yield Bodies(numbers)

    def to_body(self, robot: Robot) -> Array:
        """Return the matrix X (10, 10) that converts the load's parameters to those of the body that carries it."""
        return ten.change_frame(robot.frame(self.frame).pose @ np.asarray(self.pose, dtype=float))

    def body(self, robot: Robot) -> int:
        """Return the index of the body that carries the load; dependent bodies are numbered last."""
        frame = robot.frame(self.frame)
        if frame.body == BASE:
            raise ModelError(f"a payload on frame '{self.frame}' is fixed to the base and cannot be identified; "
                             "choose a frame that moves")
        return frame.body


@dataclass(frozen=True)
class Spring:
    """A spring or counterbalance on one joint: tau = K (q - rest); an example for a custom term."""

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
