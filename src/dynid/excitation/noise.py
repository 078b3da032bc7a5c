"""Expected torque noise of a robot without logs."""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array
from dynid.excitation.limits.motion_limits import Limits
from dynid.model import LinearModel, complete

NOISE_SHARE = 0.02  # of a joint's typical torque
_SHARE_OF_LIMIT = 0.3  # typical torque, as a share of its limit, where inertias are not known
_DRAWN_STATES = 256
_TOP_SPEED_RATE = 3.0  # 1/s: a joint without a limit of acceleration reaches its top speed in a third of a second


def assumed_noise(model: LinearModel, limits: Limits, theta: Array | None) -> Array:
    """Return the standard deviation of each joint's torque (dof,), N m or N: a fiftieth of its typical torque. theta
    (parameters,): nominal parameters, or None."""
    return np.asarray(NOISE_SHARE * typical_torques(model, limits, theta), dtype=float)


def typical_torques(model: LinearModel, limits: Limits, theta: Array | None) -> Array:
    """Return the RMS torque of each joint (dof,) over states within the limits, from the nominal parameters;
    otherwise a share of the torque limit, or 1."""
    dof = limits.dof
    limited = np.where(np.isfinite(limits.torque), _SHARE_OF_LIMIT * limits.torque, np.nan)
    found = np.full(dof, np.nan)
    if theta is not None:
        rng = np.random.default_rng(0)
        turn = np.isfinite(limits.upper - limits.lower)
        low, high = np.where(turn, limits.lower, -np.pi), np.where(turn, limits.upper, np.pi)
        speed = np.where(np.isfinite(limits.velocity), limits.velocity, 1.0)
        hard = np.where(np.isfinite(limits.acceleration), limits.acceleration, _TOP_SPEED_RATE * speed)
        q = rng.uniform(low, high, (_DRAWN_STATES, dof))
        dq, ddq = (top * rng.uniform(-1.0, 1.0, (_DRAWN_STATES, dof)) for top in (speed, hard))
        tau = complete(model).inverse_dynamics(theta, q, dq, ddq)
        found = np.sqrt(np.mean(np.minimum(np.abs(tau), limits.torque) ** 2, axis=0))
    known = np.where(np.isfinite(found) & (found > 0), found, limited)
    largest = float(np.nanmax(known)) if np.isfinite(known).any() else 1.0
    # A joint that carries nothing has its own noise all the same.
    return np.maximum(np.where(np.isfinite(known), known, largest), 1e-3 * largest)
