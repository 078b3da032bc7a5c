"""The machine as plain arrays: a model with a parameter vector, and what a model cannot say of a real machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, Ints
from dynid.dynamics.state import pack
from dynid.dynamics.tree import tree_of
from dynid.errors import ModelError
from dynid.model import (
    AsymmetricCoulomb,
    AsymmetricViscous,
    Coulomb,
    CoupledWrist,
    LinearModel,
    Model,
    MotorSide,
    Offset,
    Payload,
    RigidBodies,
    RotorInertia,
    Sign,
    Spring,
    Stribeck,
    Viscous,
)
from dynid.model.terms import chosen, coupling_matrix
from dynid.robot.inertia import change_frame

# An element of friction sees the velocity v = w.dq and gives the torques w f(v) (see `kernels.friction`).
KIND, WIDTH, FCP, FCN, FVP, FVN, FSC, DELTA, FNL, ALPHA, LOW, HIGH, DIRECTION = range(13)
TANH, ARCTAN, HARD, STICK = 0.0, 1.0, 2.0, 3.0


@dataclass(frozen=True, eq=False)
class LuGre:
    """Dry friction with a memory, for the machine only: no model that is linear in its parameters can copy it.

        dz = v - sigma0 |v| / g(v) z,  g = Fc + (Fs - Fc) exp(-(v / vs)^2),  torque = sigma0 z + sigma1 dz + sigma2 v

    Each is one number or one a joint. It comes on top of the model's own friction, which is usually left at zero.
    Fc, Fs: N m or N. vs: rad/s or m/s. sigma0: N m/rad, sigma1, sigma2: N m s/rad.
    """

    Fc: ArrayLike
    Fs: ArrayLike
    vs: ArrayLike = 0.05
    sigma0: ArrayLike = 1e3
    sigma1: ArrayLike = 1.0
    sigma2: ArrayLike = 0.0

    def array(self, dof: int) -> Array:
        """(dof, 6): sigma0 sigma1 sigma2 Fc Fs vs."""
        rows = [per_joint(getattr(self, name), dof, f"{name} of LuGre friction")
                for name in ("sigma0", "sigma1", "sigma2", "Fc", "Fs", "vs")]
        if np.any(rows[0] <= 0) or np.any(rows[3] <= 0) or np.any(rows[4] < rows[3]) or np.any(rows[5] <= 0):
            raise ModelError("LuGre friction needs sigma0, Fc and vs above zero and Fs not below Fc")
        return np.ascontiguousarray(np.column_stack(rows))


@dataclass(frozen=True, eq=False)
class Flexible:
    """Spring and damper between motor and link at every joint (Ardiani, eq. 1.17), one number or one a joint.

    stiffness: N m/rad, damping: N m s/rad. rotor: inertia of the motors; left out, the model's rotor inertia, which
    then turns with the motors instead of the links. The encoders sit on the motors.
    """

    stiffness: ArrayLike
    damping: ArrayLike = 0.0
    rotor: ArrayLike | None = None


@dataclass(frozen=True, eq=False)
class Ripple:
    """Torque of the motor that its current does not show: amplitude sin(periods q + phase), one or one a joint.

    amplitude: N m or N. periods: per rad (or m) of the joint. phase: rad.
    """

    amplitude: ArrayLike
    periods: ArrayLike = 40.0
    phase: ArrayLike = 0.0

    def array(self, dof: int) -> Array:
        return np.ascontiguousarray(np.column_stack([per_joint(getattr(self, name), dof, f"{name} of the ripple")
                                                     for name in ("amplitude", "periods", "phase")]))


class Plant(NamedTuple):
    """A machine in numbers. The torques of its joints, besides those of its bodies in `rows` (see `state.pack`):

    extra (n, n) or (0, n) ddq + viscous (n, n) or (0, n) dq + spring (n,) q + constant (n,)
    + friction elements (m, 12 + n) + LuGre (n, 6) or (0, 6) - ripple (n, 3) or (0, 3).
    flexible (n, 3) or (0, 3): stiffness, damping, rotor.
    """

    parent: Ints
    gravity: Array
    rows: Array
    extra: Array
    viscous: Array
    spring: Array
    constant: Array
    elements: Array
    lugre: Array
    ripple: Array
    flexible: Array

    @property
    def dof(self) -> int:
        return len(self.parent)

    @property
    def states(self) -> int:
        """Numbers of the state: q, dq, then LuGre's z, then motor positions and velocities."""
        return 2 * self.dof + len(self.lugre) + 2 * len(self.flexible)


class Parts:
    """The arrays of a plant while its terms are being added up."""

    def __init__(self, model: Model) -> None:
        n = model.dof
        self.robot = model.robot
        self.ten = np.zeros((n, 10))
        self.extra, self.viscous = np.zeros((n, n)), np.zeros((n, n))
        self.spring, self.constant = np.zeros(n), np.zeros(n)
        self.elements: list[Array] = []

    def element(self, direction: Mapping[int, float], sign: Sign | None = None, **values: float) -> None:
        n = len(self.spring)
        row = np.zeros(DIRECTION + n)
        kind, width = (HARD, 0.0) if sign is None or sign.kind == "hard" else (
            TANH if sign.kind == "tanh" else ARCTAN, sign.width)
        row[KIND], row[WIDTH] = kind, width
        for name, value in values.items():
            row[globals()[name.upper()]] = value
        row[LOW], row[HIGH] = min(direction), max(direction) + 1
        for j, w in direction.items():
            row[DIRECTION + j] = w
        self.elements.append(row)


def can_compile(model: LinearModel) -> bool:
    """Whether every term of the model is one that the kernels know."""
    return type(model) is Model and all(type(term) in _ADD for term in model.terms)


def make_plant(model: Model, theta: ArrayLike, *, lugre: LuGre | None = None, ripple: Ripple | None = None,
               flexible: Flexible | None = None) -> Plant:
    """The arrays of a model with parameters theta; hard signs are still hard (see `smoothed`)."""
    values = model.parameters.vector(theta)
    parts = Parts(model)
    for term, columns in zip(model.terms, model._columns[1], strict=True):
        _ADD[type(term)](parts, term, values[columns])
    n = model.dof
    bent = np.zeros((0, 3))
    if flexible is not None:
        rotor = np.diag(parts.extra).copy() if flexible.rotor is None else per_joint(flexible.rotor, n, "rotor inertia")
        if flexible.rotor is None:
            parts.extra[np.diag_indices(n)] = 0.0
        bent = np.column_stack([per_joint(flexible.stiffness, n, "stiffness"),
                                per_joint(flexible.damping, n, "damping"), rotor])
        if np.any(bent[:, [0, 2]] <= 0) or np.any(bent[:, 1] < 0):
            raise ModelError("flexible joints need stiffness and rotor inertia above zero and a damping not below it")
    elements = np.array(parts.elements) if parts.elements else np.zeros((0, DIRECTION + n))
    none = np.zeros((0, n))  # spares the kernels an empty sum
    extra, viscous = (x if np.any(x) else none for x in (parts.extra, parts.viscous))
    tree = tree_of(model.robot)
    return Plant(tree.parent, tree.gravity, pack(tree, parts.ten), extra, viscous, parts.spring, parts.constant,
                 elements, np.zeros((0, 6)) if lugre is None else lugre.array(n),
                 np.zeros((0, 3)) if ripple is None else ripple.array(n), np.ascontiguousarray(bent))


def smoothed(plant: Plant, widths: Array) -> Plant:
    """The same plant with every hard sign replaced by tanh(v / width), one width (rad/s or m/s) an element."""
    elements = plant.elements.copy()
    hard = elements[:, KIND] == HARD
    elements[hard, WIDTH], elements[hard, KIND] = widths[hard], TANH
    return plant._replace(elements=elements)


def sticking(plant: Plant) -> Plant:
    """The same plant whose dry friction with hard signs holds what is at rest (see `kernels.derivative_held`)."""
    elements = plant.elements.copy()
    dry = (elements[:, KIND] == HARD) & (elements[:, FCP] > 0) & (elements[:, FCN] > 0)
    elements[dry & (elements[:, FNL] == 0), KIND] = STICK
    return plant._replace(elements=elements)


def sign_widths(plant: Plant, inverse_inertia: Array, step: float, speed: Array) -> Array:
    """A width for the sign of each element (m,), as narrow as the integrator's step allows.

    Near rest dry friction pulls the velocity to zero at the rate Fc w'M^-1 w / width; RK4 stays stable up to
    2.78 / step. It is never below a thousandth of the fastest reference speed (n,).
    """
    directions = plant.elements[:, DIRECTION:]
    pull = np.einsum("ei,ij,ej->e", directions, inverse_inertia, directions)
    size = np.maximum(np.abs(plant.elements[:, FCP]), np.abs(plant.elements[:, FCN]))
    least = 1e-3 * np.maximum(np.abs(directions) @ speed, 1e-3)
    return np.maximum(step * size * np.abs(pull), least)


def per_joint(value: ArrayLike, dof: int, name: str) -> Array:
    """One finite number, or one a joint, as (dof,)."""
    try:
        values = np.atleast_1d(np.asarray(value, dtype=float))
    except (TypeError, ValueError):
        raise ModelError(f"{name} must be one number or {dof}, one a joint") from None
    if values.shape not in ((1,), (dof,)) or not np.isfinite(values).all():
        raise ModelError(f"{name} must be one finite number or {dof}, one a joint, got shape {values.shape}")
    return np.broadcast_to(values, (dof,)).copy()


# -- how each built-in term adds to the arrays ------------------------------------------------------
def _bodies(parts: Parts, term: RigidBodies, values: Array) -> None:
    parts.ten += values.reshape(-1, 10)


def _payload(parts: Parts, term: Payload, values: Array) -> None:
    frame = parts.robot.frame(term.frame)
    parts.ten[frame.body] += change_frame(frame.pose @ np.asarray(term.pose, dtype=float)) @ values


def _rotors(parts: Parts, term: RotorInertia, values: Array) -> None:
    for j, value in zip(chosen(parts.robot, term.joints), values, strict=True):
        parts.extra[j, j] += value


def _spring(parts: Parts, term: Spring, values: Array) -> None:
    j = parts.robot.joint_index(term.joint)
    parts.spring[j] += values[0]
    parts.constant[j] -= values[0] * term.rest


def _viscous(parts: Parts, term: Viscous, values: Array) -> None:
    for j, value in zip(chosen(parts.robot, term.joints), values, strict=True):
        parts.viscous[j, j] += value


def _offset(parts: Parts, term: Offset, values: Array) -> None:
    for j, value in zip(chosen(parts.robot, term.joints), values, strict=True):
        parts.constant[j] += value


def _coulomb(parts: Parts, term: Coulomb, values: Array) -> None:
    for j, value in zip(chosen(parts.robot, term.joints), values, strict=True):
        parts.element({j: 1.0}, term.sign, fcp=value, fcn=value)


def _asymmetric_coulomb(parts: Parts, term: AsymmetricCoulomb, values: Array) -> None:
    for j, (forward, backward) in zip(chosen(parts.robot, term.joints), values.reshape(-1, 2), strict=True):
        parts.element({j: 1.0}, term.sign, fcp=forward, fcn=backward)


def _asymmetric_viscous(parts: Parts, term: AsymmetricViscous, values: Array) -> None:
    for j, (forward, backward) in zip(chosen(parts.robot, term.joints), values.reshape(-1, 2), strict=True):
        parts.element({j: 1.0}, fvp=forward, fvn=backward)


def _stribeck(parts: Parts, term: Stribeck, values: Array) -> None:
    joints = chosen(parts.robot, term.joints)
    delta, alpha, steep = (term._shape(name, len(joints)) for name in term.SHAPES)
    for k, (j, (dry, fsc, viscous, offset, fnl)) in enumerate(zip(joints, values.reshape(-1, 5), strict=True)):
        parts.viscous[j, j] += viscous
        parts.constant[j] += offset
        parts.element({j: 1.0}, Sign("arctan", 1.0 / steep[k]), fcp=dry, fcn=dry, fsc=fsc, delta=delta[k], fnl=fnl,
                      alpha=alpha[k])


def _motor_side(parts: Parts, term: MotorSide, values: Array) -> None:
    coupling = coupling_matrix(parts.robot, term.coupling)
    for m, own in enumerate(values.reshape(-1, len(term.parts))):
        w = coupling[:, m]
        for part, value in zip(term.parts, own, strict=True):
            if part == "Fvm":
                parts.viscous += value * np.outer(w, w)
            elif part == "Iam":
                parts.extra += value * np.outer(w, w)
            elif part == "Fom":
                parts.constant += value * w
            else:
                parts.element({int(j): float(w[j]) for j in np.flatnonzero(w)}, term.sign, fcp=value, fcn=value)


def _wrist(parts: Parts, term: CoupledWrist, values: Array) -> None:
    a, b = chosen(parts.robot, term.joints)
    for i, j in ((a, b), (b, a)):
        parts.extra[i, j] += values[0]
        parts.viscous[i, j] += values[1]
    parts.element({a: 1.0, b: 1.0}, term.sign, fcp=values[2], fcn=values[2])


_ADD: dict[Any, Callable[[Parts, Any, Array], None]] = {
    RigidBodies: _bodies, Payload: _payload, RotorInertia: _rotors, Spring: _spring, Viscous: _viscous, Offset: _offset,
    Coulomb: _coulomb, AsymmetricCoulomb: _asymmetric_coulomb, AsymmetricViscous: _asymmetric_viscous,
    Stribeck: _stribeck, MotorSide: _motor_side, CoupledWrist: _wrist,
}
