"""Tracking errors: difference between commanded and measured signals of one log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.output_fields import output_fields
from dynid.plain import plain
from dynid.recording import Recording
from dynid.robot import numbered_joints


@dataclass(frozen=True, eq=False)
class Tracking:
    """Commanded minus measured signals of one log.

    Attributes:
        source, joints: name of the log, and names of the joints.
        t: (rows,), s.
        error: (rows, dof), position error, rad or m.
        speed: (rows, dof), commanded velocity, rad/s or m/s.
        reach, torque_rms: (dof,), root mean square of the commanded motion about its mean, and of the measured torques.
        torque_error: (rows, dof), commanded minus measured torques, or None.
        external_torque: (rows, dof), the controller's estimate of external torques, or None.
    """

    source: str
    joints: tuple[str, ...]
    t: Array
    error: Array
    speed: Array
    reach: Array
    torque_rms: Array
    torque_error: Array | None = None
    external_torque: Array | None = None

    @cached_property
    def rms(self) -> Array:
        """Root mean square of the position error (dof,), rad or m."""
        return _rms(self.error)

    @cached_property
    def share(self) -> Array:
        """RMS error in percent of the RMS of the commanded motion about its mean (dof,); nan for a joint at rest."""
        return 100.0 * _ratio(self.rms, self.reach)

    @cached_property
    def lag(self) -> Array:
        """Delay d (dof,), s, that fits error = d speed best; nan for a joint at rest."""
        return _ratio(np.sum(self.speed * self.error, axis=0), np.sum(self.speed ** 2, axis=0))

    @cached_property
    def by_speed(self) -> Array:
        """Share of the squared position error that is proportional to the speed (dof,), percent (Ardiani, s. B.3.4)."""
        left = np.sum((self.error - np.nan_to_num(self.lag) * self.speed) ** 2, axis=0)
        return 100.0 * (1.0 - _ratio(left, np.sum(self.error ** 2, axis=0)))

    @cached_property
    def torque_share(self) -> Array | None:
        """Commanded minus measured torque in percent of the measured one (dof,), None without commanded torques."""
        return None if self.torque_error is None else 100.0 * _ratio(_rms(self.torque_error), self.torque_rms)

    @cached_property
    def external_rms(self) -> Array | None:
        """Root mean square of the external torques (dof,), None if the log has none."""
        return None if self.external_torque is None else _rms(self.external_torque)

    @output_fields(source=str, position_rms_per_joint=list[float | None],
                   position_largest_per_joint=list[float | None], position_error_per_joint=list[float | None],
                   lag_per_joint=list[float | None], share_by_speed_per_joint=list[float | None],
                   torque_error_per_joint=list[float | None] | None,
                   external_torque_rms_per_joint=list[float | None] | None)
    def to_dict(self) -> dict[str, Any]:
        """Return the tracking errors as plain data for JSON."""
        return plain({"source": self.source, "position_rms_per_joint": self.rms,
                      "position_largest_per_joint": np.abs(self.error).max(axis=0),
                      "position_error_per_joint": self.share, "lag_per_joint": self.lag,
                      "share_by_speed_per_joint": self.by_speed, "torque_error_per_joint": self.torque_share,
                      "external_torque_rms_per_joint": self.external_rms})


def tracking_errors(recordings: Sequence[Recording]) -> tuple[Tracking, ...]:
    """Return the tracking error of every log with commanded positions."""
    return tuple(_tracking(one) for one in recordings if one.reference is not None and len(one) > 2)


def _tracking(log: Recording) -> Tracking:
    command = log.reference
    assert command is not None
    speed = np.gradient(command, log.t, axis=0) if log.reference_velocity is None else log.reference_velocity
    torque = None if log.target_torque is None else log.target_torque - log.tau
    return Tracking(log.source, log.joints or numbered_joints(log.dof), log.t, command - log.q, speed,
                    _rms(command - command.mean(axis=0)), _rms(log.tau), torque, log.external_torque)


def _rms(x: Array) -> Array:
    return np.sqrt(np.mean(x ** 2, axis=0))


def _ratio(x: Array, size: Array) -> Array:
    """Return x / size (dof,); nan where size is zero."""
    return np.divide(x, size, out=np.full_like(x, np.nan), where=size > 0)
