"""Motions of a two-wheeled robot that stay inside a room: pose from speeds, and the search (Ardiani, E.2.1, E.3.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array
from dynid.model import DifferentialDrive

TERMS = 5  # of the Fourier series (eq. E.19)
_POINTS = 76  # of the motion at which limits are held in the search
_INSIDE = 0.97  # of the limits, which the search keeps to between these points


@dataclass(frozen=True)
class Room:
    """Limits of a motion: half the edge of a square room about the start (m), speed (m/s) and turn rate (rad/s), their
    rates, and how far the robot may turn either way (rad), so that it makes no circles."""

    half: float
    speed: float
    turn: float
    speed_rate: float
    turn_rate: float
    heading: float

    def left(self, speeds: Array, rates: Array, pose: Array) -> Array:
        """What is left of each limit, a share of it (limits,): speeds, rates (rows, 2), pose (rows, 3)."""
        parts = [pose[:, :2] / self.half, pose[:, 2:] / self.heading, speeds / (self.speed, self.turn),
                 rates / (self.speed_rate, self.turn_rate)]
        values = np.concatenate([part.ravel() for part in parts])
        return np.concatenate([1.0 - values, 1.0 + values])


def body_speeds(drive: DifferentialDrive, wheels: Array, slip: Array | float = 0.0) -> Array:
    """Speed and turn rate (rows, 2) from the rates of both wheels (rows, 2), rad/s, and their slip, m/s (eq. E.1,
    E.3)."""
    radius = drive.wheels[0] if drive.wheels is not None else 1.0
    return (wheels + np.asarray(slip) / radius) @ drive.to_body.T


def pose(speeds: Array, rate: float, side: Array | float = 0.0) -> Array:
    """Place (m) and heading (rad) of the middle between the wheels (rows, 3) from speed and turn rate (rows, 2) and the
    lateral slip (rows,), m/s, from the origin (eq. E.2, trapezoidal)."""
    heading = _summed(speeds[:, 1], rate)
    c, s = np.cos(heading), np.sin(heading)
    across = np.broadcast_to(np.asarray(side, dtype=float), heading.shape)
    x, y = (_summed(one, rate) for one in (speeds[:, 0] * c - across * s, speeds[:, 0] * s + across * c))
    return np.column_stack([x, y, heading])


def _summed(x: Array, rate: float) -> Array:
    return np.append(0.0, np.cumsum(0.5 * (x[1:] + x[:-1]))) / rate


@dataclass(frozen=True, eq=False)
class Series:
    """Speed and turn rate as Fourier series: cosines, sines (2, terms), pulsation (rad/s) (eq. E.19)."""

    cosines: Array
    sines: Array
    pulsation: float

    @staticmethod
    def of(x: Array, pulsation: float) -> Series:
        """From free numbers (4 terms - 2,): the last cosine of each brings the start to rest."""
        free = x[:2 * (TERMS - 1)].reshape(2, TERMS - 1)
        return Series(np.column_stack([free, -free.sum(axis=1)]), x[2 * (TERMS - 1):].reshape(2, TERMS), pulsation)

    def at(self, t: Array) -> tuple[Array, Array]:
        """Speeds and their rates (rows, 2)."""
        w = self.pulsation * np.arange(1, TERMS + 1)
        c, s = np.cos(np.outer(t, w)), np.sin(np.outer(t, w))
        return c @ self.cosines.T + s @ self.sines.T, c @ (self.sines * w).T - s @ (self.cosines * w).T


def condition(drive: DifferentialDrive, speeds: Array, rates: Array) -> float:
    """Condition number of the regressor as it stands."""
    return float(np.linalg.cond(drive.regressor(np.zeros_like(speeds), speeds, rates).reshape(-1, 8)))


def motion_in(room: Room, pulsation: float, duration: float, seed: int) -> Series:
    """A motion of least condition number inside the room, from a random one (SQP, s. E.3.2)."""
    from scipy.optimize import minimize

    drive, t = DifferentialDrive(), np.linspace(0.0, duration, _POINTS)
    rate = (_POINTS - 1) / duration

    def goal(x: Array) -> float:
        return float(np.log(condition(drive, *Series.of(x, pulsation).at(t))))

    def left(x: Array) -> Array:
        speeds, rates = Series.of(x, pulsation).at(t)
        return room.left(speeds, rates, pose(speeds, rate)) - (1.0 - _INSIDE)

    start = 0.1 * np.random.default_rng(seed).normal(size=4 * TERMS - 2)
    found = minimize(goal, start, method="SLSQP", constraints=[{"type": "ineq", "fun": left}],
                     options={"maxiter": 100, "ftol": 1e-4})
    return Series.of(found.x, pulsation)
