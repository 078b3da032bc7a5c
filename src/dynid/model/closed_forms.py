"""Two models in closed form, as examples of users' own: any object with dof, parameters and regressor."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.model.accelerations import solve_motion
from dynid.model.kinds import DRY, INERTIA, MOMENT, VISCOUS, Kind
from dynid.model.parameters import Parameter, Parameters
from dynid.model.sign import Sign
from dynid.robot import numbered_joints


def _two(name: str, *signals: ArrayLike) -> list[Array]:
    arrays = [np.asarray(signal, dtype=float) for signal in signals]
    if any(a.shape != arrays[0].shape or a.shape[-1:] != (2,) for a in arrays):
        raise ModelError(f"the {name} has two columns, got shapes {', '.join(str(a.shape) for a in arrays)}")
    if not all(np.isfinite(a).all() for a in arrays):
        raise ModelError(f"the {name} was given values that are not finite")
    return arrays


@dataclass(frozen=True)
class Scara:
    """Two vertical axes without gravity, in its eight base parameters (Janot, Vandanjon, Gautier, eq. 52-53)."""

    sign: Sign = field(default_factory=Sign)
    dof = 2

    @cached_property
    def parameters(self) -> Parameters:
        def one(name: str, unit: str, joint: int, kind: Kind, positive: bool = True) -> Parameter:
            return Parameter(name, unit, joint, numbered_joints(2)[joint], positive=positive, kind=kind)

        return Parameters((
            one("ZZ1R", "kg m^2", 0, INERTIA), one("Fv1", "N m s/rad", 0, VISCOUS), one("Fc1", "N m", 0, DRY),
            one("ZZ2R", "kg m^2", 1, INERTIA), one("LMX2", "kg m^2", 1, MOMENT, False),
            one("LMY2", "kg m^2", 1, MOMENT, False), one("Fv2", "N m s/rad", 1, VISCOUS), one("Fc2", "N m", 1, DRY)))

    def regressor(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike) -> Array:
        """(samples, 2, 8)."""
        q, dq, ddq = _two("SCARA", q, dq, ddq)
        c, s = np.cos(q[..., 1]), np.sin(q[..., 1])
        d1, d2, dd1, dd2 = dq[..., 0], dq[..., 1], ddq[..., 0], ddq[..., 1]
        zero, signs = np.zeros_like(c), self.sign(dq)
        first = [dd1, d1, signs[..., 0], dd1 + dd2, (2 * dd1 + dd2) * c - d2 * (2 * d1 + d2) * s,
                 -(2 * dd1 + dd2) * s - d2 * (2 * d1 + d2) * c, zero, zero]
        second = [zero, zero, zero, dd1 + dd2, dd1 * c + d1 ** 2 * s, d1 ** 2 * c - dd1 * s, d2, signs[..., 1]]
        return np.stack([np.stack(first, axis=-1), np.stack(second, axis=-1)], axis=-2)

    def inverse_dynamics(self, theta: ArrayLike, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike) -> Array:
        return self.regressor(q, dq, ddq) @ self.parameters.vector(theta)

    def inertia_matrix(self, theta: ArrayLike, q: ArrayLike) -> Array:
        """(samples, 2, 2)."""
        zz1, _, _, zz2, lmx, lmy, _, _ = self.parameters.vector(theta)
        angle = np.asarray(q, dtype=float)[..., 1]
        coupled = zz2 + lmx * np.cos(angle) - lmy * np.sin(angle)
        first = np.stack([zz1 + 2 * coupled - zz2, coupled], axis=-1)
        return np.stack([first, np.stack([coupled, np.full_like(coupled, zz2)], axis=-1)], axis=-2)

    def forward_dynamics(self, theta: ArrayLike, q: ArrayLike, dq: ArrayLike, tau: ArrayLike) -> Array:
        q, dq, tau = _two("SCARA", q, dq, tau)
        bias = self.inverse_dynamics(theta, q, dq, np.zeros_like(q))
        return solve_motion(self.inertia_matrix(theta, q), tau - bias)


@dataclass(frozen=True)
class DifferentialDrive:
    """A two-wheeled robot whose centre of mass is off the wheel axis (Ardiani, eq. E.12-E.14).

    Its torques are those of the right and the left wheel. Its coordinates are path length and heading, so dq = (v,
    omega); or, with wheels = (radius, track) in m, the angles of the right and the left wheel. Only then does each
    torque drive its own coordinate, as methods that simulate a control loop require. Nothing depends on q.
    """

    wheels: tuple[float, float] | None = None
    dof = 2

    def __post_init__(self) -> None:
        if self.wheels is not None and not (len(self.wheels) == 2 and np.all(np.isfinite(self.wheels))
                                            and min(self.wheels) > 0):
            raise ModelError("the wheels of a differential drive need a radius and a distance above zero, in m, got "
                             f"{self.wheels}", code="wrong-wheels")

    @cached_property
    def to_body(self) -> Array:
        """Matrix (2, 2) from the rates of the coordinates to speed and turn rate (eq. E.1 and E.3 without slip)."""
        if self.wheels is None:
            return np.eye(2)
        radius, track = self.wheels
        return radius * np.array([[0.5, 0.5], [1.0 / track, -1.0 / track]])

    @cached_property
    def parameters(self) -> Parameters:
        units = ("kg m", "kg m^2", "N s", "N m s", "kg m^2", "kg m", "kg m", "kg m^2")
        return Parameters(tuple(Parameter(f"beta{k + 1}", unit, 0 if k < 6 else 1, "drive", positive=k in (2, 3),
                                          kind=VISCOUS if k in (2, 3) else MOMENT) for k, unit in enumerate(units)))

    def regressor(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike) -> Array:
        """Return the regressor (samples, 2, 8); rows are the right and the left wheel (eq. E.13)."""
        q, dq, ddq = _two("differential drive", q, dq, ddq)
        dq, ddq = dq @ self.to_body.T, ddq @ self.to_body.T
        v, w, dv, dw = dq[..., 0], dq[..., 1], ddq[..., 0], ddq[..., 1]
        zero = np.zeros_like(v)
        right = np.stack([dv, dw, v, w, -w ** 2, v * w, zero, zero], axis=-1)
        left = np.stack([zero, zero, v, -w, -w ** 2, -v * w, dv, -dw], axis=-1)
        return np.stack([right, left], axis=-2)

    def inverse_dynamics(self, theta: ArrayLike, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike) -> Array:
        return self.regressor(q, dq, ddq) @ self.parameters.vector(theta)

    def inertia_matrix(self, theta: ArrayLike, q: ArrayLike) -> Array:
        """(samples, 2, 2): wheel torques for unit accelerations; symmetric in the angles of the wheels alone."""
        theta = self.parameters.vector(theta)
        matrix = np.array([[theta[0], theta[1]], [theta[6], -theta[7]]]) @ self.to_body
        return np.broadcast_to(matrix, (*np.shape(q)[:-1], 2, 2))

    def forward_dynamics(self, theta: ArrayLike, q: ArrayLike, dq: ArrayLike, tau: ArrayLike) -> Array:
        _, dq, tau = _two("differential drive", q, dq, tau)
        theta = self.parameters.vector(theta)
        moved = dq @ self.to_body.T
        v, w = moved[..., 0], moved[..., 1]
        both, apart = theta[2] * v - theta[4] * w ** 2, theta[3] * w + theta[5] * v * w  # eq. E.13 without rates
        matrix = np.array([[theta[0], theta[1]], [theta[6], -theta[7]]]) @ self.to_body  # the same at all samples
        return solve_motion(matrix, tau - np.stack([both + apart, both - apart], axis=-1))

    @staticmethod
    def from_physical(m: float, inertia: float, wheel_inertia: float, friction: float, radius: float, track: float,
                      bx: float, by: float) -> Array:
        """The eight parameters from mass (kg), inertia about the centre of mass, inertia and viscous friction of a
        wheel (kg m^2, N m s/rad), wheel radius, distance between the wheels and place of the centre of mass (m)."""
        R, L, Ie = radius, track, wheel_inertia
        turn = 2 * R ** 2 * (by ** 2 * m + inertia + bx ** 2 * m) + Ie * L ** 2
        return np.array([
            (2 * Ie * L + L * R ** 2 * m - 2 * R ** 2 * by * m) / (2 * L * R),
            (turn - R ** 2 * by * m * L) / (2 * L * R),
            friction / R, friction * L / (2 * R), R * bx * m / 2, R * bx * m / L,
            (2 * Ie * L + L * R ** 2 * m + 2 * R ** 2 * by * m) / (2 * L * R),
            (turn + R ** 2 * by * m * L) / (2 * L * R)])
