"""The SCARA in closed form, an example of a user-defined model: any object with dof, parameters and regressor."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.model.accelerations import solve_motion
from dynid.model.kinds import DRY, INERTIA, MOMENT, VISCOUS, Kind
from dynid.model.parameters import Parameter, Parameters
from dynid.model.sign import Sign
from dynid.robot import numbered_joints


def two_columns(name: str, *signals: ArrayLike) -> list[Array]:
    """Return signals as finite arrays (..., 2) of one shape; `name` is that of the model in the message."""
    arrays = [np.asarray(signal, dtype=float) for signal in signals]
    if any(a.shape != arrays[0].shape or a.shape[-1:] != (2,) for a in arrays):
        raise ModelError(f"the {name} has two columns, got shapes {', '.join(str(a.shape) for a in arrays)}")
    if not all(np.isfinite(a).all() for a in arrays):
        raise ModelError(f"the {name} was given values that are not finite")
    return arrays


@dataclass(frozen=True)
class Scara:
    """Two vertical axes without gravity, in its eight base parameters (Janot, Vandanjon, Gautier, eq. 52-53)."""

    sign: Sign = field(default_factory=Sign)
    dof = 2

    @cached_property
    def parameters(self) -> Parameters:
        def one(name: str, unit: str, joint: int, kind: Kind, positive: bool = True) -> Parameter:
            return Parameter(name, unit, joint, numbered_joints(2)[joint], positive=positive, kind=kind)

        return Parameters((
            one("ZZ1R", "kg m^2", 0, INERTIA), one("Fv1", "N m s/rad", 0, VISCOUS), one("Fc1", "N m", 0, DRY),
            one("ZZ2R", "kg m^2", 1, INERTIA), one("LMX2", "kg m^2", 1, MOMENT, False),
            one("LMY2", "kg m^2", 1, MOMENT, False), one("Fv2", "N m s/rad", 1, VISCOUS), one("Fc2", "N m", 1, DRY)))

    def regressor(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike) -> Array:
        """Return the regressor Y (samples, 2, 8) with torques Y theta."""
        q, dq, ddq = two_columns("SCARA", q, dq, ddq)
        c, s = np.cos(q[..., 1]), np.sin(q[..., 1])
        d1, d2, dd1, dd2 = dq[..., 0], dq[..., 1], ddq[..., 0], ddq[..., 1]
        zero, signs = np.zeros_like(c), self.sign(dq)
        first = [dd1, d1, signs[..., 0], dd1 + dd2, (2 * dd1 + dd2) * c - d2 * (2 * d1 + d2) * s,
                 -(2 * dd1 + dd2) * s - d2 * (2 * d1 + d2) * c, zero, zero]
        second = [zero, zero, zero, dd1 + dd2, dd1 * c + d1 ** 2 * s, d1 ** 2 * c - dd1 * s, d2, signs[..., 1]]
        return np.stack([np.stack(first, axis=-1), np.stack(second, axis=-1)], axis=-2)

    def inverse_dynamics(self, theta: ArrayLike, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike) -> Array:
        return self.regressor(q, dq, ddq) @ self.parameters.vector(theta)

    def inertia_matrix(self, theta: ArrayLike, q: ArrayLike) -> Array:
        """Return the inertia matrix (samples, 2, 2)."""
        zz1, _, _, zz2, lmx, lmy, _, _ = self.parameters.vector(theta)
        angle = np.asarray(q, dtype=float)[..., 1]
        coupled = zz2 + lmx * np.cos(angle) - lmy * np.sin(angle)
        first = np.stack([zz1 + 2 * coupled - zz2, coupled], axis=-1)
        return np.stack([first, np.stack([coupled, np.full_like(coupled, zz2)], axis=-1)], axis=-2)

    def forward_dynamics(self, theta: ArrayLike, q: ArrayLike, dq: ArrayLike, tau: ArrayLike) -> Array:
        q, dq, tau = two_columns("SCARA", q, dq, tau)
        bias = self.inverse_dynamics(theta, q, dq, np.zeros_like(q))
        return solve_motion(self.inertia_matrix(theta, q), tau - bias)
