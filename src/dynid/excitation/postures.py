"""Postures spread over the ranges of the joints, for motions that go through them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import DynidError, NotPossibleError
from dynid.excitation.limits.motion_limits import Limits

_POSTURE_TRIES = 200  # postures drawn for one that is free


def ranges(limits: Limits, reach: float = 1.0) -> tuple[Array, Array]:
    """Return lowest and highest positions (dof,) of a share `reach` of every range; a joint without limits has one
    turn."""
    low = np.where(np.isfinite(limits.lower), limits.lower, -np.pi)
    high = np.where(np.isfinite(limits.upper), limits.upper, np.pi)
    middle, half = 0.5 * (low + high), 0.5 * reach * (high - low)
    return middle - half, middle + half


def home_posture(home: ArrayLike | None, limits: Limits) -> Array:
    """Return the given posture (dof,) after a check, or the middle of every range."""
    middle = np.where(np.isfinite(limits.upper - limits.lower), 0.5 * (limits.lower + limits.upper), 0.0)
    posture = middle if home is None else np.array(home, dtype=float)
    if posture.shape != (limits.dof,) or ((posture < limits.lower) | (posture > limits.upper)).any():
        raise DynidError(f"the home posture must be {limits.dof} numbers within the joint limits")
    return posture


def spread_postures(limits: Limits, count: int, rng: np.random.Generator, reach: float = 0.9) -> Array:
    """Return postures (count, dof) spread evenly over each joint's range, in random order (Latin hypercube).

    Postures outside the workspace limits are drawn again.
    """
    if count < 2 or not 0.0 < reach <= 1.0:
        raise DynidError("a motion through random postures needs at least two postures and a reach above 0 and up to "
                         f"1, got {count} and {reach:g}")
    low, high = ranges(limits, reach)
    strata = np.stack([rng.permutation(count) for _ in range(limits.dof)], axis=1)
    rows = low + (strata + rng.random(strata.shape)) / count * (high - low)
    if limits.space is None:
        return rows
    for _ in range(_POSTURE_TRIES):
        shut = np.min(limits.space.slack(rows), axis=1) < 0.0
        if not shut.any():
            return rows
        rows[shut] = rng.uniform(low, high, (int(shut.sum()), limits.dof))
    raise NotPossibleError("almost no posture within the joint limits is free of collisions; enlarge the workspace or "
                           "give way-points")
