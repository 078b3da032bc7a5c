"""Model of a robot with flexible joints, linear in stiffness, damping and both inertias.

With q the positions of the links and th those of the motors, divided by the gear ratios (Ardiani, eq. 1.17):

    tau = Y(q, dq, ddq) theta + f_l(dq) + Jm ddth + f_m(dth)      motor and link together
    tau = Jm ddth + f_m(dth) + K (th - q) + Ko + D (dth - dq)     the motor alone

K, D, Ko: stiffness, damping and offset of the spring. Jm: rotor inertia. f_l, f_m: friction of link and motor. Both
equations have the same torque tau, and so the same noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, Bools, Ints
from dynid.errors import ModelError
from dynid.model.completion import LinearModel
from dynid.model.data_context import learned_fields
from dynid.model.model import Model
from dynid.model.parameters import Kind, Parameter, Parameters
from dynid.model.registry import FRICTION
from dynid.model.term import Entries
from dynid.model.term_capabilities import capabilities, term_name
from dynid.model.terms import NOT_NEGATIVE, RATE, TORQUE, RotorInertia, chosen, joint_parameter

STIFFNESS = Kind("joint stiffness")
DAMPING = Kind("joint damping")
SPRING_OFFSET = Kind("torque of a joint's spring when both encoders have the same reading", "offset")
SKEW = Kind("joint stiffness times the time offset between both encoders")


@dataclass(frozen=True, eq=False)
class FlexibleModel:
    """Model of a robot with flexible joints.

    The coordinates are the positions of the links, followed by those of the motors. `dynid.simulation.add_motor_side`
    converts a log to these coordinates, and every method then accepts the model.

    Parameters of joint 1: K1, D1 and Ko1 are stiffness, damping and offset of the spring, Jm1 is the rotor inertia, and
    Fvm1, Fcm1, ... are the friction of the motor.

    Args:
        links: the robot and the terms of its links.
        joints: flexible joints, by name or by number from 1. Default: all joints.
        motor_friction: kinds of friction of the motors.
        skew: also identify Ks1 = K s, where s is the delay (s) of the motor positions relative to the link positions.
            Without it, such a delay biases the damping and the viscous friction by up to K s.
    """

    links: Model
    joints: tuple[str | int, ...] | None = None
    motor_friction: tuple[str, ...] = ("viscous", "coulomb")
    skew: bool = False

    def __post_init__(self) -> None:
        unknown = [kind for kind in self.motor_friction if kind not in FRICTION]
        if unknown:
            raise ModelError(f"there is no friction term '{unknown[0]}' for motors; there are {', '.join(FRICTION)}")
        robot = self.links.robot
        for term in (*self.links.terms, *self.motors.terms):
            blank = [name for name in learned_fields(term) if getattr(term, name) is None]
            own = capabilities(term)
            if blank or own.history is not None or (own.shape is not None and own.shape.shape_names(robot)):
                raise ModelError(f"term '{term_name(term)}' depends on the data, which a model with flexible joints "
                                 "does not support; use viscous, coulomb, offset or another term of fixed shape")
            if isinstance(term, RotorInertia) and term is not self.motors.terms[0] \
                    and set(chosen(robot, term.joints)) & set(self.bending):
                raise ModelError("the rotor inertia of a flexible joint is Jm, so Ia applies only to rigid joints: "
                                 "list the rigid joints in the term 'rotor', or remove it")
        _ = self.parameters

    @cached_property
    def bending(self) -> tuple[int, ...]:
        """Indices of the flexible joints, from 0."""
        return tuple(chosen(self.links.robot, self.joints))

    @cached_property
    def motors(self) -> Model:
        """Model of the rotors and friction of the motors alone."""
        friction = (FRICTION[kind](joints=self.joints) for kind in self.motor_friction)
        return Model(self.links.robot, (RotorInertia(self.joints), *friction))

    @property
    def dof(self) -> int:
        return self.links.dof + len(self.bending)

    @cached_property
    def joint_names(self) -> tuple[str, ...]:
        names = self.links.joint_names
        return (*names, *(f"{names[j]} motor" for j in self.bending))

    @property
    def slow_joints(self) -> tuple[int, ...]:
        """Coordinates, counted from 0, for which a term models friction at low speed."""
        motors = set(self.motors.slow_joints)
        return (*self.links.slow_joints, *(self.links.dof + k for k, j in enumerate(self.bending) if j in motors))

    @cached_property
    def same_torque(self) -> tuple[tuple[int, int], ...]:
        """Pairs of equations, counted from 0, with the same torque: that of motor and link together, and that of the
        motor alone."""
        return tuple((j, self.links.dof + k) for k, j in enumerate(self.bending))

    @cached_property
    def motor_parameters(self) -> tuple[Parameter, ...]:
        """Rotor inertia Jm and friction parameters of the motors, in the order of the parameters of `motors`."""
        values = self.links.robot.values
        items = []
        for item in self.motors.parameters:
            symbol = "Jm" if item.symbol == "Ia" else f"{item.symbol}m"
            name = f"{symbol}{item.owner + 1}"
            items.append(replace(item, name=name, symbol=symbol, nominal=values.get(name)))
        return tuple(items)

    @cached_property
    def _spring_parameters(self) -> tuple[Parameter, ...]:
        """Parameters of the joint springs: stiffness K, damping D, offset Ko, and Ks for a delay between encoders."""
        robot = self.links.robot
        found = []
        for j in self.bending:
            found += [joint_parameter(robot, "K", j, ("N m/rad", "N/m"), kind=STIFFNESS, positive=True,
                                      bounds=NOT_NEGATIVE),
                      joint_parameter(robot, "D", j, RATE, kind=DAMPING, positive=True, bounds=NOT_NEGATIVE),
                      joint_parameter(robot, "Ko", j, TORQUE, kind=SPRING_OFFSET)]
            if self.skew:
                found.append(joint_parameter(robot, "Ks", j, RATE, kind=SKEW))
        return tuple(found)

    @cached_property
    def parameters(self) -> Parameters:
        return Parameters((*self.links.parameters, *self.motor_parameters, *self._spring_parameters))

    @cached_property
    def structure(self) -> Bools:
        """Mask (dof, parameters) whose entry [i, c] is True if parameter c can affect equation i."""
        found = np.zeros((self.dof, len(self.parameters)), dtype=bool)
        found[:self.links.dof, :len(self.links.parameters)] = self.links.structure
        for equation, parameter, _ in self._entries(*np.random.default_rng(0).normal(size=(3, 2, self.dof))):
            found[equation, parameter] = True
        return found

    def _entries(self, q: Array, dq: Array, ddq: Array) -> Entries:
        """Yield the entries of motors and springs: (equation, parameter, values (samples,))."""
        n, count, equation = self.links.dof, len(self.links.parameters), dict(self.same_torque)
        turned = []
        for signal in (q, dq, ddq):
            motor = signal[:, :n].copy()
            motor[:, list(self.bending)] = signal[:, n:]
            turned.append(motor)
        for term, places in self.motors.parts:
            for joint, parameter, values in term.entries(self.links.robot, *turned):
                yield joint, count + int(places[parameter]), values
                yield equation[joint], count + int(places[parameter]), values
        at = count + len(self.motor_parameters)
        for j, k in self.same_torque:
            yield k, at, q[:, k] - q[:, j]
            yield k, at + 1, dq[:, k] - dq[:, j]
            yield k, at + 2, np.ones(len(q))
            if self.skew:
                yield k, at + 3, dq[:, k]
            at += 4 if self.skew else 3

    def fill(self, q: Array, dq: Array, ddq: Array, place: Ints, out: Array, memory: Array | None = None) -> None:
        """Write selected entries of the regressor; see `Model.fill`."""
        n, count = self.links.dof, len(self.links.parameters)
        link = [np.ascontiguousarray(signal[:, :n]) for signal in (q, dq, ddq)]
        self.links.fill(link[0], link[1], link[2], np.ascontiguousarray(place[:n, :count]), out)
        for equation, parameter, values in self._entries(q, dq, ddq):
            if place[equation, parameter] >= 0:
                out[place[equation, parameter]] = values

    def regressor(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Return the regressor Y (samples, dof, parameters), where the torques are Y times the parameters."""
        q, dq, ddq = (np.atleast_2d(np.asarray(signal, dtype=float)) for signal in (q, dq, ddq))
        n = self.links.dof
        out = np.zeros((len(q), self.dof, len(self.parameters)))
        out[:, :n, :len(self.links.parameters)] = self.links.regressor(q[:, :n], dq[:, :n], ddq[:, :n])
        for equation, parameter, values in self._entries(q, dq, ddq):
            out[:, equation, parameter] = values
        return out

    def inverse_dynamics(self, theta: ArrayLike | Mapping[str, float], q: ArrayLike, dq: ArrayLike,
                         ddq: ArrayLike) -> Array:
        """Return the torques (samples, dof) of all equations: first those of motor and link together, then those of the
        motors alone."""
        values = self.parameters.vector(theta)
        q, dq, ddq = (np.asarray(signal, dtype=float) for signal in (q, dq, ddq))
        if q.ndim == 1:
            return self.inverse_dynamics(values, q[None], dq[None], ddq[None])[0]
        n, tau = self.links.dof, np.zeros(q.shape)
        tau[:, :n] = self.links.inverse_dynamics(values[:len(self.links.parameters)], q[:, :n], dq[:, :n], ddq[:, :n])
        for equation, parameter, column in self._entries(q, dq, ddq):
            tau[:, equation] += values[parameter] * column
        return tau

    @cached_property
    def rigid(self) -> Model:
        """Model with rigid joints, in which rotors and motor friction are added to the links."""
        present = set(self.links.parameters.names)
        more = (term for term in self.motors.terms
                if not present & {item.name for item in term.parameters(self.links.robot)})
        return Model(self.links.robot, (*self.links.terms, *more))

    def rigid_values(self, theta: ArrayLike | Mapping[str, float]) -> Array:
        """Return the parameter values (parameters,) of the model `rigid`: values of a link and its motor are added."""
        values = dict(zip(self.parameters.names, self.parameters.vector(theta), strict=True))
        for motor, item in zip(self.motor_parameters, self.motors.parameters, strict=True):
            values[item.name] = values.get(item.name, 0.0) + values[motor.name]
        return np.array([values[name] for name in self.rigid.parameters.names])


def flexible_joint_model(model: LinearModel) -> FlexibleModel | None:
    """Return a model as a `FlexibleModel`; None for a model with rigid joints and for a custom model."""
    return model if isinstance(model, FlexibleModel) else None
