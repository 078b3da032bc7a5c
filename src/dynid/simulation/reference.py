"""Reference motion of the controller, one row per control step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import ModelError, RecordingError
from dynid.recording import Recording


@dataclass(frozen=True, eq=False)
class Reference:
    """Reference positions, velocities and accelerations (ticks, dof) at `rate` Hz, from `start` seconds on.

    The controller reads one row at each of its sampling instants (ticks) and applies a constant torque until the next
    one.
    """

    q: Array
    dq: Array
    ddq: Array
    rate: float
    start: float = 0.0

    def __post_init__(self) -> None:
        if self.q.ndim != 2 or len(self.q) < 2:
            raise ModelError("a reference is an array (samples, joints) with at least two samples, got shape "
                             f"{self.q.shape}")
        for name in ("q", "dq", "ddq"):
            array = getattr(self, name)
            if array.shape != self.q.shape:
                raise ModelError(f"{name} of the reference has shape {array.shape}, but its positions have shape "
                                 f"{self.q.shape}")
            if not np.isfinite(array).all():
                row, joint = np.argwhere(~np.isfinite(array))[0]
                raise ModelError(f"{name} of the reference of joint {joint + 1} is not finite in sample {row}")
        if not self.rate > 0:
            raise ModelError(f"the rate of a reference must be positive, got {self.rate}")

    def __len__(self) -> int:
        return len(self.q)

    @property
    def t(self) -> Array:
        return self.start + np.arange(len(self)) / self.rate

    @property
    def duration(self) -> float:
        """Time from the first to the last sampling instant, s."""
        return (len(self) - 1) / self.rate

    @property
    def speed(self) -> Array:
        """Largest reference speed of each joint (dof,), rad/s or m/s."""
        return np.abs(self.dq).max(axis=0)

    @staticmethod
    def from_arrays(q: ArrayLike, dq: ArrayLike | None = None, ddq: ArrayLike | None = None, *, rate: float,
                    start: float = 0.0) -> Reference:
        """Return a reference from arrays at the controller's rate; missing derivatives are central differences."""
        position = np.ascontiguousarray(q, dtype=float)
        if position.ndim != 2 or len(position) < 3:
            raise ModelError("a reference is an array (samples, joints) with at least three samples, got shape "
                             f"{position.shape}")
        velocity = np.gradient(position, 1.0 / rate, axis=0) if dq is None else np.ascontiguousarray(dq, dtype=float)
        if ddq is not None:
            acceleration = np.ascontiguousarray(ddq, dtype=float)
        elif dq is not None:
            acceleration = np.gradient(velocity, 1.0 / rate, axis=0)
        else:
            acceleration = np.empty_like(position)
            acceleration[1:-1] = (position[2:] - 2.0 * position[1:-1] + position[:-2]) * rate ** 2
            acceleration[0], acceleration[-1] = acceleration[1], acceleration[-2]
        return Reference(position, velocity, acceleration, float(rate), float(start))

    @staticmethod
    def from_recording(recording: Recording, rate: float | None = None) -> Reference:
        """Return the reference in a log, resampled to a uniform grid of `rate` Hz from its first to its last sample;
        default: the rate of the log."""
        if recording.reference is None:
            raise RecordingError(f"{recording.source}: the log has no reference; map its columns with --set "
                                 "'log.reference=[...]', or let the method use the filtered positions",
                                 code="no-reference")
        if rate is None:
            # Time stamps are rounded, so the mean rate of a uniform log is far more accurate than the median.
            even = np.linspace(recording.t[0], recording.t[-1], len(recording))
            mean = (len(recording) - 1) / recording.duration
            rate = mean if np.abs(recording.t - even).max() < 0.1 / mean else recording.rate
        start, ticks = float(recording.t[0]), round(recording.duration * rate) + 1
        grid = start + np.arange(ticks) / rate
        velocity = recording.reference_velocity
        if ticks == len(recording) and np.allclose(grid, recording.t, rtol=0.0, atol=1e-3 / rate):
            return Reference.from_arrays(recording.reference, velocity, rate=rate, start=start)
        q = resampled(recording.t, recording.reference, grid)
        dq = None if velocity is None else resampled(recording.t, velocity, grid)
        return Reference.from_arrays(q, dq, rate=rate, start=start)

    def at(self, rate: float) -> Reference:
        """Return the reference resampled to another rate, Hz, by cubic splines."""
        if rate == self.rate:
            return self
        ticks = int(np.floor(self.duration * rate + 1e-9)) + 1
        grid = self.start + np.arange(ticks) / rate
        q, dq, ddq = (resampled(self.t, x, grid) for x in (self.q, self.dq, self.ddq))
        return Reference(q, dq, ddq, rate, self.start)


def resampled(t: Array, x: Array, grid: Array) -> Array:
    """Return signals (grid, columns) at the times `grid`, s, by cubic splines through signals x at times t."""
    from scipy.interpolate import CubicSpline

    return np.ascontiguousarray(CubicSpline(t, x, axis=0)(np.clip(grid, t[0], t[-1])))
