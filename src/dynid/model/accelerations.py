"""Compute joint accelerations from an inertia matrix and torques."""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array
from dynid.errors import NotPossibleError


def solve_motion(inertia: Array, torque: Array) -> Array:
    """Return the acceleration (..., dof) that solves inertia (..., dof, dof) times acceleration = torque (..., dof)."""
    try:
        return np.asarray(np.linalg.solve(inertia, torque[..., None])[..., 0], dtype=float)
    except np.linalg.LinAlgError:
        raise NotPossibleError("the inertia matrix is singular with these parameters, so the motion cannot "
                               "be computed; add rotor inertia or use physically consistent parameters") from None
