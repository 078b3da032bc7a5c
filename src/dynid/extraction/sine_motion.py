"""A synthetic motion for comparisons: sinusoidal velocities inside a robot's limits (Simionato, eq. 5.2)."""

from __future__ import annotations

import numpy as np

from dynid.recording import Samples
from dynid.robot import Robot

SECONDS, RATE = 10.0, 50.0  # duration of the motion, s, and its sampling rate, Hz
_PERIOD_RANGE = (3.0, 10.0)  # s, between which each joint's period is drawn
USED_SHARE_OF_LIMITS = 0.8  # share of the limits of a robot that the motion uses
# rad/s and rad/s^2 (scaled for prismatic joints): limits of a robot whose file states none
_DEFAULT_TOP_SPEED, _DEFAULT_TOP_ACCELERATION = 2.0, 8.0


def new_motion(robot: Robot, seed: int = 0, *, rate: float = RATE) -> Samples:
    """Return a motion with velocities A sin(2 pi t / T) about the middle of each joint's range, with zero torques.

    rate: sampling rate, Hz. From its start position q0, a joint moves to q0 + A T / pi; velocities reach A, and
    accelerations 2 pi A / T. A is the largest value that respects all three limits.
    """
    rng = np.random.default_rng(seed)
    period = rng.uniform(*_PERIOD_RANGE, robot.dof)
    wide = np.array([0.2 if joint.prismatic else np.pi / 2 for joint in robot.joints])
    low, high = robot.limit("lower"), robot.limit("upper")
    low, high = np.where(np.isfinite(low), low, -wide), np.where(np.isfinite(high), high, wide)
    speed, hard = robot.limit("velocity"), robot.limit("acceleration")
    speed = np.where(np.isfinite(speed), speed, _DEFAULT_TOP_SPEED * wide / (np.pi / 2))
    hard = np.where(np.isfinite(hard), hard, _DEFAULT_TOP_ACCELERATION * wide / (np.pi / 2))
    pulsation = 2.0 * np.pi / period
    size = USED_SHARE_OF_LIMITS * np.minimum(np.minimum(speed, hard / pulsation), 0.5 * (high - low) * pulsation)
    t = np.arange(0.0, SECONDS, 1.0 / rate)[:, None]
    middle = 0.5 * (low + high)
    q = middle - size / pulsation * np.cos(pulsation * t)
    return Samples.from_arrays(q, size * np.sin(pulsation * t), size * pulsation * np.cos(pulsation * t),
                               np.zeros_like(q), rate=rate)
