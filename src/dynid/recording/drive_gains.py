"""Drive gains, torque per unit of current of every joint, from a log's target torque and target current."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, Bools
from dynid.errors import NotPossibleError, RecordingError
from dynid.output_fields import array_of, output_fields, record
from dynid.plain import finite
from dynid.quantities import percent_text
from dynid.recording.recording import Recording
from dynid.robot import numbered_joints

# Uncertainty of torques without a calibration by weights: published gains of one robot give masses from 17 % too small
# to 10 % too large. Half of the variance is common to all joints, as of one data sheet.
GAIN_STD = 0.08
_GAIN_BLOCKS = 10  # blocks of time for cross-validation
MAX_GAIN_UNCERTAINTY = 0.1  # relative standard error above which a gain is not identified
_AT_REST = 0.02  # share of a joint's top speed below which the sign of friction is unknown
_ZERO_TORQUE_SHARE = 1e-6  # share of the largest torque that is a rounding error
_REST_SPEED = 1e-4  # rad/s or m/s: a slower joint is at rest
_MAX_GAIN_STD = 100.0  # relative: with a larger standard error a gain is unknown
MIN_GAIN_STD = 0.005  # relative: smallest error of a controller's drive model


_JOINT_GAIN = record("DriveGain", joint=str, gain=float | None, std=float | None, relative_std=float | None,
                     identified=bool, reason=str)


@dataclass(frozen=True, eq=False)
class DriveGains:
    """Drive gains, torque per unit of current, with their standard errors.

    Attributes:
        joints: names of the joints.
        values, std: (joints,), nan and infinite for a gain that the data do not determine.
        method: how the gains were estimated, as the end of a sentence.
        reasons: why a joint has no gain, by name.
        covariance: (joints, joints), of the relative errors if they are correlated.
    """

    joints: tuple[str, ...]
    values: Array
    std: Array
    method: str
    reasons: dict[str, str]
    covariance: Array | None = None

    @property
    def identified(self) -> Bools:
        """Whether each joint has a drive gain (joints,)."""
        return np.asarray(np.isfinite(self.std), dtype=np.bool_)

    @property
    def relative_std(self) -> Array:
        """Standard errors relative to the values (joints,)."""
        return np.where(self.identified, self.std / np.abs(np.where(self.identified, self.values, 1.0)), np.inf)

    def applied(self, recording: Recording) -> Recording:
        """Return a recording of currents converted to torques; the torque of a joint without a gain is unknown."""
        known = self.identified
        sure = ", ".join(f"{name} {value:.5g} +- {percent_text(100 * share)}" if yes
                         else f"{name} none ({self.reasons[name]})" for name, value, share, yes in
                         zip(self.joints, self.values, self.relative_std, known, strict=True))
        if not known.any():
            raise NotPossibleError(f"{recording.source}: no drive gain is identifiable: {sure}",
                                   "give the gains as numbers with --set 'log.drive_gain=[...]'")
        silent = [name for name, yes in zip(self.joints, known, strict=True) if not yes]
        return replace(recording, tau=recording.tau * np.where(known, self.values, 0.0), unscaled=False,
                       gain_covariance=self.relative_covariance, joints=self.joints,
                       unmeasured=tuple(dict.fromkeys((*recording.unmeasured, *silent))),
                       notes=(*recording.notes, f"drive gains {self.method}: {sure}"))

    @property
    def relative_covariance(self) -> Array:
        """Relative covariance (joints, joints) of the gains; zero for a joint without one."""
        known = self.identified
        found = np.diag(np.where(known, self.relative_std, 0.0) ** 2) if self.covariance is None else self.covariance
        return np.where(np.outer(known, known), found, 0.0)

    @output_fields(method=str, joints=array_of(_JOINT_GAIN))
    def to_dict(self) -> dict[str, Any]:
        """Return the drive gains as plain data for JSON; None for a joint without a gain."""
        return {"method": self.method, "joints": [
            {"joint": name, "gain": finite(value), "std": finite(std), "relative_std": finite(share),
             "identified": bool(known), "reason": self.reasons.get(name, "")}
            for name, value, std, share, known in zip(self.joints, self.values, self.std, self.relative_std,
                                                      self.identified, strict=True)]}


def gain_covariance(std: ArrayLike | None, dof: int) -> Array:
    """Return the covariance (dof, dof) of relative drive gains. std: a covariance, independent standard deviations
    (dof,), or one for all joints (default: GAIN_STD), of which half of the variance is common."""
    given = np.asarray(GAIN_STD if std is None else std, dtype=float)
    if not np.all(np.abs(given) <= _MAX_GAIN_STD) or (given.ndim < 2 and (given < 0).any()):
        raise RecordingError("standard deviations of drive gains must be finite and not negative, shares of at most "
                             f"{_MAX_GAIN_STD:g}, got {given.tolist()}", code="bad-gain-std")
    if given.ndim == 0:
        return 0.5 * float(given) ** 2 * (np.eye(dof) + 1.0)
    if given.shape == (dof,):
        return np.diag(given ** 2)
    if given.shape != (dof, dof):
        raise RecordingError("standard deviations of drive gains must be one number, one number per joint, or a "
                             f"covariance of {dof} joints, got shape {given.shape}")
    return given


def gains_from_log(recording: Recording) -> DriveGains:
    """Return drive gains (torque per unit of current) from the target torque and target current of a controller.

    The model is target_current = target_torque / gain + friction compensation. At rest, the ratio of a joint that
    carries gravity is its gain. In motion, viscous friction, Coulomb friction, an offset and the rotor are regressed
    out. Standard errors come from cross-validation over blocks of time.
    """
    torque, current = recording.target_torque, recording.target_current
    if torque is None or current is None:
        raise RecordingError(f"{recording.source}: has no target torque and target current to determine drive gains "
                             "from; map their columns with --set 'log.target_torque=[...]' and --set "
                             "'log.target_current=[...]'", code="no-targets")
    speed = recording.reference_velocity if recording.reference_velocity is not None else recording.dq
    if speed is None:
        speed = np.gradient(recording.q, recording.t, axis=0)
    names = recording.joints or numbered_joints(recording.dof)
    values, std = np.full(recording.dof, np.nan), np.full(recording.dof, np.inf)
    reasons: dict[str, str] = {}
    nothing = _ZERO_TORQUE_SHARE * float(np.abs(torque).max(initial=0.0))
    for j, name in enumerate(names):
        felt = np.where(np.abs(torque[:, j]) > nothing, torque[:, j], 0.0)
        columns = _columns(felt, speed[:, j], recording.t)
        slope, spread, why = _slope(columns, current[:, j])
        if why:
            reasons[name] = why
        else:
            values[j], std[j] = 1.0 / slope, max(spread, MIN_GAIN_STD * abs(slope)) / slope ** 2
    return DriveGains(names, values, std, "from the controller's target torque and target current", reasons)


def _columns(torque: Array, speed: Array, t: Array) -> Array:
    """Return the regressors of a target current (samples, k): torque, offset, friction, and in motion rotor inertia."""
    top = float(np.abs(speed).max())
    if top < _REST_SPEED:
        return np.column_stack([torque])
    return np.column_stack([torque, np.ones_like(torque), speed, np.tanh(speed / (_AT_REST * top)),
                            np.gradient(speed, t)])


def _slope(columns: Array, current: Array) -> tuple[float, float, str]:
    """Return the current per torque and its standard error, or the reason why the data do not determine it."""
    if not np.any(columns[:, 0]):
        return 0.0, np.inf, "its target torque is always zero: it carries no weight and does not accelerate"
    if not np.any(current):
        return 0.0, np.inf, "its target current is always zero"
    size = np.linalg.norm(columns, axis=0)
    unit = columns / np.where(size > 0, size, 1.0)
    rows = np.array_split(np.arange(len(current)), _GAIN_BLOCKS)
    grams = np.array([unit[r].T @ unit[r] for r in rows])
    sides = np.array([unit[r].T @ current[r] for r in rows])
    gram, side = grams.sum(axis=0), sides.sum(axis=0)
    whole = _solve(gram, side)
    found = [_solve(gram - one, side - other) for one, other in zip(grams, sides, strict=True)]
    slopes = np.array(found) / size[0]
    slope, n = whole / size[0], len(rows)
    std = math.sqrt((n - 1) / n * float(np.sum((slopes - slopes.mean()) ** 2)))
    if not slope > 0 or std > MAX_GAIN_UNCERTAINTY * slope:
        return 0.0, np.inf, ("its target torque can hardly be distinguished from friction and acceleration, as on a "
                             "vertical axis, which carries no weight")
    return slope, std, ""


def _solve(gram: Array, side: Array) -> float:
    """Return the first unknown of normal equations with columns scaled to unit length."""
    return float((np.linalg.pinv(gram, rcond=1e-10, hermitian=True) @ side)[0])
