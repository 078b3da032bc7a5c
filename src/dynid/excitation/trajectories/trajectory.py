"""Trajectory: a motion as a function of time, with exact derivatives.

Times outside 0..duration are taken at the nearest end, except that a Fourier series continues periodically.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import DynidError


class Motion(NamedTuple):
    """Positions and their three derivatives, (samples, joints) each: rad, rad/s, rad/s^2, rad/s^3 (or m)."""

    q: Array
    dq: Array
    ddq: Array
    jerk: Array


class Trajectory(Protocol):
    """Base class of motions as functions of time."""

    @property
    def duration(self) -> float: ...

    @property
    def dof(self) -> int: ...

    def at(self, t: ArrayLike) -> Motion: ...


def times(trajectory: Trajectory, rate: float) -> Array:
    """Return evenly spaced sample times (m,) at about `rate` (Hz), including both ends."""
    if not rate > 0:
        raise DynidError(f"the sampling rate must be above zero, got {rate}")
    return np.linspace(0.0, trajectory.duration, max(2, round(trajectory.duration * rate) + 1))


def joint_rows(what: str, values: ArrayLike) -> Array:
    """Return coefficients as an array (dof, K), one row per joint; raise if they are not finite."""
    array = np.array(values, dtype=float)
    if array.ndim != 2 or not np.isfinite(array).all():
        raise DynidError(f"{what} must be finite numbers, one row per joint, got shape {array.shape}")
    return array
