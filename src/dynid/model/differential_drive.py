"""Examples of custom models in closed form: a SCARA, and a two-wheeled robot (Ardiani, appendix E)."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.dynamics.physics import solve_motion
from dynid.errors import ModelError
from dynid.model.parameters import DRY, INERTIA, MOMENT, VISCOUS, Kind, Parameter, Parameters
from dynid.model.sign import Sign
from dynid.robot import numbered_joints


@dataclass(frozen=True)
class DifferentialDrive:
    """A two-wheeled robot whose centre of mass is off the wheel axis (Ardiani, eq. E.12-E.14).

    The torques are those of the right and the left wheel. The coordinates are path length and heading, so dq = (v,
    omega). If wheels = (radius, track), m, are given, the coordinates are the angles of the right and the left wheel.
    Methods that simulate a control loop need wheel angles, so that each torque drives its own coordinate. The model
    does not depend on q.
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
        """Matrix (2, 2) that converts coordinate rates to forward speed and yaw rate (eq. E.1 and E.3 without slip)."""
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
        q, dq, ddq = two_columns("differential drive", q, dq, ddq)
        dq, ddq = dq @ self.to_body.T, ddq @ self.to_body.T
        v, w, dv, dw = dq[..., 0], dq[..., 1], ddq[..., 0], ddq[..., 1]
        zero = np.zeros_like(v)
        right = np.stack([dv, dw, v, w, -w ** 2, v * w, zero, zero], axis=-1)
        left = np.stack([zero, zero, v, -w, -w ** 2, -v * w, dv, -dw], axis=-1)
        return np.stack([right, left], axis=-2)

    def inverse_dynamics(self, theta: ArrayLike, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike) -> Array:
        return self.regressor(q, dq, ddq) @ self.parameters.vector(theta)

    def inertia_matrix(self, theta: ArrayLike, q: ArrayLike) -> Array:
        """Return wheel torques for unit accelerations (samples, 2, 2); symmetric only for wheel angles."""
        theta = self.parameters.vector(theta)
        return np.broadcast_to(self._inertia(theta), (*np.shape(q)[:-1], 2, 2))

    def _inertia(self, theta: Array) -> Array:
        return np.array([[theta[0], theta[1]], [theta[6], -theta[7]]]) @ self.to_body

    def forward_dynamics(self, theta: ArrayLike, q: ArrayLike, dq: ArrayLike, tau: ArrayLike) -> Array:
        _, dq, tau = two_columns("differential drive", q, dq, tau)
        theta = self.parameters.vector(theta)
        moved = dq @ self.to_body.T
        v, w = moved[..., 0], moved[..., 1]
        both, diff = theta[2] * v - theta[4] * w ** 2, theta[3] * w + theta[5] * v * w  # E.13 at zero acceleration
        return solve_motion(self._inertia(theta), tau - np.stack([both + diff, both - diff], axis=-1))

    def body_speeds(self, dq: ArrayLike, slip: ArrayLike = 0.0) -> Array:
        """Return forward speed and yaw rate of the midpoint between the wheels (eq. E.1, E.3, E.6).

        Args:
            dq: Rates of the coordinates (samples, 2).
            slip: Longitudinal slip speeds v_sr, v_sl of both wheels (samples, 2), m/s; needs `wheels`.

        Returns:
            v, m/s, and omega, rad/s (samples, 2).
        """
        dq, slip = np.asarray(dq, dtype=float), np.asarray(slip, dtype=float)
        if np.any(slip != 0.0):
            if self.wheels is None:
                raise ModelError("slip of a differential drive needs its wheels: DifferentialDrive(wheels=(radius, "
                                 "track)), in m", code="wheels-needed")
            dq = dq + slip / self.wheels[0]
        return np.asarray(dq @ self.to_body.T)

    def pose(self, dq: ArrayLike, rate: float, slip: ArrayLike = 0.0, side_slip: ArrayLike = 0.0) -> Array:
        """Return the planar pose by integration from the origin (eq. E.2, trapezoidal rule).

        Args:
            dq: Rates of the coordinates (samples, 2).
            rate: Samples per second, Hz.
            slip: Longitudinal slip speeds of both wheels (samples, 2), m/s.
            side_slip: Lateral slip speed u_s (samples,), m/s.

        Returns:
            x, y, m, and heading, rad, of the midpoint between the wheels (samples, 3).
        """
        if not (np.isfinite(rate) and rate > 0.0):
            raise ModelError(f"the rate of a pose must be above zero, in Hz, got {rate!r}", code="wrong-rate")
        v, w = self.body_speeds(dq, slip).T
        heading = _summed(w, rate)
        c, s, u = np.cos(heading), np.sin(heading), np.broadcast_to(np.asarray(side_slip, dtype=float), v.shape)
        return np.column_stack([_summed(v * c - u * s, rate), _summed(v * s + u * c, rate), heading])

    @staticmethod
    def from_physical(m: float, inertia: float, wheel_inertia: float, friction: float, radius: float, track: float,
                      bx: float, by: float) -> Array:
        """Return the eight parameters (8,) of the model from physical quantities, which `MobileBase` describes."""
        R, L, Ie = radius, track, wheel_inertia
        turn = 2 * R ** 2 * (by ** 2 * m + inertia + bx ** 2 * m) + Ie * L ** 2
        return np.array([
            (2 * Ie * L + L * R ** 2 * m - 2 * R ** 2 * by * m) / (2 * L * R),
            (turn - R ** 2 * by * m * L) / (2 * L * R),
            friction / R, friction * L / (2 * R), R * bx * m / 2, R * bx * m / L,
            (2 * Ie * L + L * R ** 2 * m + 2 * R ** 2 * by * m) / (2 * L * R),
            (turn + R ** 2 * by * m * L) / (2 * L * R)])


def _summed(x: Array, rate: float) -> Array:
    return np.append(0.0, np.cumsum(0.5 * (x[1:] + x[:-1]))) / rate


@dataclass(frozen=True)
class MobileBase:
    """Physical parameters of a two-wheeled robot (Ardiani, table E.1), and its disturbances (eq. E.12).

    Attributes:
        m: Mass, kg.
        inertia: Inertia about the centre of mass, kg m^2.
        wheel_inertia: Inertia of a wheel with its drive, kg m^2.
        friction: Viscous friction of a wheel, N m s/rad.
        radius: Radius of the wheels, m.
        track: Distance between the wheels, m.
        bx: Distance of the centre of mass in front of the wheel axis, m.
        by: Distance of the centre of mass to the left of the midpoint, m.
    """

    m: float
    inertia: float
    wheel_inertia: float
    friction: float
    radius: float
    track: float
    bx: float
    by: float

    @property
    def drive(self) -> DifferentialDrive:
        """Model of the robot with wheel angles as coordinates."""
        return DifferentialDrive((self.radius, self.track))

    @property
    def theta(self) -> Array:
        """The eight parameters (8,) of the model `drive` (Ardiani, eq. E.14)."""
        return DifferentialDrive.from_physical(**asdict(self))

    def disturbance(self, turn_rate: ArrayLike, *, slip: ArrayLike = (0.0, 0.0), slip_rate: ArrayLike = (0.0, 0.0),
                    side_slip: ArrayLike = 0.0, side_slip_rate: ArrayLike = 0.0, force: ArrayLike = (0.0, 0.0),
                    point: ArrayLike = (0.0, 0.0), moment: ArrayLike = 0.0) -> Array:
        """Return the disturbance force delta_1, N, and moment delta_2, N m (samples, 2), of eq. E.12.

        Args:
            turn_rate: yaw rate omega (samples,), rad/s.
            slip: Longitudinal slip speeds of the right and the left wheel (samples, 2), m/s.
            slip_rate: Time derivatives of `slip` (samples, 2), m/s^2.
            side_slip: Lateral slip speed (samples,), m/s.
            side_slip_rate: Time derivative of `side_slip` (samples,), m/s^2.
            force: External force, forward and left component (samples, 2), N.
            point: Point of this force relative to the midpoint between the wheels (samples, 2), m.
            moment: External moment (samples,), N m.
        """
        omega, side, side_rate, turn = (np.asarray(x, dtype=float)
                                        for x in (turn_rate, side_slip, side_slip_rate, moment))
        speeds, rates, push, place = (np.asarray(x, dtype=float) for x in (slip, slip_rate, force, point))
        wheels = (self.friction * speeds + self.wheel_inertia * rates) / self.radius ** 2  # forces of slipping wheels
        right, left = wheels[..., 0], wheels[..., 1]
        ahead = self.m * omega * side + right + left + push[..., 0]
        about = (0.5 * self.track * (right - left) + self.by * (right + left) - self.bx * self.m * side_rate
                 + place[..., 0] * push[..., 1] - (place[..., 1] - self.by) * push[..., 0] + turn)
        return np.stack(np.broadcast_arrays(ahead, about), axis=-1)

    def wheel_torques(self, disturbance: ArrayLike) -> Array:
        """Return the torques of both wheels (samples, 2), N m, that are equivalent to a disturbance (samples, 2)."""
        half = 0.5 * self.track
        matrix = np.array([[1.0, 1.0], [half + self.by, self.by - half]]) / self.radius
        return np.asarray(np.linalg.solve(matrix, np.asarray(disturbance, dtype=float)[..., None])[..., 0])


def two_columns(name: str, *signals: ArrayLike) -> list[Array]:
    """Return signals as finite arrays (..., 2) of equal shape; name: name of the model in error messages."""
    arrays = [np.asarray(signal, dtype=float) for signal in signals]
    if any(a.shape != arrays[0].shape or a.shape[-1:] != (2,) for a in arrays):
        raise ModelError(f"signals of the {name} need two columns, got {', '.join(str(a.shape) for a in arrays)}")
    if not all(np.isfinite(a).all() for a in arrays):
        raise ModelError(f"the {name} was given values that are not finite")
    return arrays


@dataclass(frozen=True)
class Scara:
    """SCARA robot: two vertical axes, with eight base parameters (Janot, Vandanjon, Gautier, eq. 52-53)."""

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
        """Return the regressor Y (samples, 2, 8) with torques Y theta."""
        q, dq, ddq = two_columns("SCARA", q, dq, ddq)
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
        """Return the inertia matrix (samples, 2, 2)."""
        zz1, _, _, zz2, lmx, lmy, _, _ = self.parameters.vector(theta)
        angle = np.asarray(q, dtype=float)[..., 1]
        coupled = zz2 + lmx * np.cos(angle) - lmy * np.sin(angle)
        first = np.stack([zz1 + 2 * coupled - zz2, coupled], axis=-1)
        return np.stack([first, np.stack([coupled, np.full_like(coupled, zz2)], axis=-1)], axis=-2)

    def forward_dynamics(self, theta: ArrayLike, q: ArrayLike, dq: ArrayLike, tau: ArrayLike) -> Array:
        q, dq, tau = two_columns("SCARA", q, dq, tau)
        bias = self.inverse_dynamics(theta, q, dq, np.zeros_like(q))
        return solve_motion(self.inertia_matrix(theta, q), tau - bias)
