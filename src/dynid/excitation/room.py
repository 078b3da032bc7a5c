"""Motions of a two-wheeled robot inside a room (Ardiani, s. E.3.2): Fourier series with minimal condition number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError, NotPossibleError
from dynid.model import DifferentialDrive

SERIES_TERMS = 5  # number of terms of the Fourier series (eq. E.19)
SEARCH_POINTS = 76  # points in time at which the search checks limits: 15 per period of the last term
SEARCH_SHARE = 0.97  # share of the limits that the search uses at these points, for values between them
START_AMPLITUDE = 0.1  # m/s and rad/s: amplitude of the random series from which a search starts
_SPEED_MODEL = DifferentialDrive()  # speed and yaw rate as coordinates: the regressor depends on them alone


@dataclass(frozen=True)
class Room:
    """Limits of a motion of a two-wheeled robot in a square room around its start.

    Attributes:
        half: Half the edge of the square room, m.
        speed: Largest speed, m/s.
        turn: Largest yaw rate, rad/s.
        speed_rate: Largest acceleration, m/s^2.
        turn_rate: Largest yaw acceleration, rad/s^2.
        heading: Largest heading angle in either direction, rad, which excludes full circles.
    """

    half: float
    speed: float
    turn: float
    speed_rate: float
    turn_rate: float
    heading: float

    def __post_init__(self) -> None:
        wrong = [f"{name} = {value!r}" for name, value in vars(self).items()
                 if not (np.isfinite(value) and value > 0.0)]
        if wrong:
            raise ModelError(f"limits of a room motion must be above zero, got {', '.join(wrong)}", code="wrong-room")

    def left(self, speeds: Array, rates: Array, pose: Array) -> Array:
        """Return the unused share of each limit (limits,); negative values are violations.

        Args:
            speeds: Forward speed and yaw rate (rows, 2), m/s and rad/s.
            rates: Time derivatives of `speeds` (rows, 2).
            pose: Position, m, and heading, rad (rows, 3).
        """
        parts = [pose[:, :2] / self.half, pose[:, 2:] / self.heading, speeds / (self.speed, self.turn),
                 rates / (self.speed_rate, self.turn_rate)]
        values = np.concatenate([part.ravel() for part in parts])
        return np.concatenate([1.0 - values, 1.0 + values])


@dataclass(frozen=True, eq=False)
class RoomMotion:
    """Forward speed and yaw rate as Fourier series from rest (eq. E.19).

    Attributes:
        cosines: Coefficients (2, terms), m/s and rad/s.
        sines: Coefficients (2, terms).
        pulsation: Angular frequency of the first term, rad/s.
        duration: Duration, s.
    """

    cosines: Array
    sines: Array
    pulsation: float
    duration: float

    @staticmethod
    def from_free(x: Array, pulsation: float, duration: float) -> RoomMotion:
        """Return the motion of free coefficients x (4 terms - 2,); the last cosine of each series follows from the
        start at rest."""
        free = x[:2 * (SERIES_TERMS - 1)].reshape(2, SERIES_TERMS - 1)
        return RoomMotion(np.column_stack([free, -free.sum(axis=1)]),
                          x[2 * (SERIES_TERMS - 1):].reshape(2, SERIES_TERMS), pulsation, duration)

    def at(self, t: Array) -> tuple[Array, Array]:
        """Return forward speed and yaw rate (rows, 2), and their time derivatives (rows, 2), at times t (rows,), s."""
        w = self.pulsation * np.arange(1, self.cosines.shape[1] + 1)
        c, s = np.cos(np.outer(t, w)), np.sin(np.outer(t, w))
        return c @ self.cosines.T + s @ self.sines.T, c @ (self.sines * w).T - s @ (self.cosines * w).T

    def sampled(self, rate: float) -> tuple[Array, Array, Array]:
        """Return speeds (rows, 2), their time derivatives (rows, 2) and the pose (rows, 3), sampled at `rate` Hz."""
        speeds, rates = self.at(np.arange(int(self.duration * rate)) / rate)
        return speeds, rates, _SPEED_MODEL.pose(speeds, rate)

    def condition_number(self, points: int = 20 * SEARCH_POINTS) -> float:
        """Return the condition number of the regressor along the motion."""
        return speeds_condition(*self.at(np.linspace(0.0, self.duration, points)))


def speeds_condition(speeds: Array, rates: Array) -> float:
    """Return the condition number of the regressor for forward speed and yaw rate (rows, 2) and their derivatives
    (rows, 2)."""
    return float(np.linalg.cond(_SPEED_MODEL.regressor(np.zeros_like(speeds), speeds, rates).reshape(-1, 8)))


def room_motion(room: Room, *, pulsation: float = 0.1, duration: float = 30.0, seed: int = 0, starts: int = 1
                ) -> RoomMotion:
    """Return the motion of least condition number inside a room, by sequential quadratic programming.

    Args:
        room: Limits of the motion.
        pulsation: Angular frequency of the first term of the series, rad/s.
        duration: Duration of the motion, s.
        seed: Seed of the random start; start k has seed + k.
        starts: Number of searches, of which the best is returned.

    Raises:
        NotPossibleError: If no search ends inside the limits.
    """
    from scipy.optimize import minimize

    t, rate = np.linspace(0.0, duration, SEARCH_POINTS), (SEARCH_POINTS - 1) / duration

    def goal(x: Array) -> float:
        return float(np.log(speeds_condition(*RoomMotion.from_free(x, pulsation, duration).at(t))))

    def left(x: Array) -> Array:
        speeds, rates = RoomMotion.from_free(x, pulsation, duration).at(t)
        return room.left(speeds, rates, _SPEED_MODEL.pose(speeds, rate)) - (1.0 - SEARCH_SHARE)

    inside = []
    for k in range(starts):
        start = START_AMPLITUDE * np.random.default_rng(seed + k).normal(size=4 * SERIES_TERMS - 2)
        x = minimize(goal, start, method="SLSQP", constraints=[{"type": "ineq", "fun": left}],
                     options={"maxiter": 100, "ftol": 1e-4}).x
        motion = RoomMotion.from_free(x, pulsation, duration)
        if room.left(*motion.sampled(20.0 * SEARCH_POINTS / duration)).min() >= 0.0:
            inside.append(motion)
    if not inside:
        raise NotPossibleError(f"no motion of {duration:g} s inside the room was found in {starts} searches",
                               "try more starts, a longer duration or wider limits", "no-motion-in-room")
    return min(inside, key=RoomMotion.condition_number)
