"""Motions of a family that start and end at rest or in given postures.

Both are linear in the coefficients, so they hold by construction: c_j = fixed_j + null z_j, and z (dof, k) is free.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array
from dynid.errors import NotPossibleError
from dynid.excitation.trajectories.families import Family
from dynid.excitation.trajectories.polynomial import power_functions
from dynid.excitation.trajectories.trajectory import Trajectory

_REST_TO_REST = np.array([0.0, 0.0, 0.0, 10.0, -15.0, 6.0])  # powers of t / duration, from 0 to 1


@dataclass(frozen=True, eq=False)
class ConstrainedFamily:
    """Members of a family with end conditions.

    fixed (dof, K): coefficients of one member. null (K, k): basis of the free coefficients of each joint.
    """

    family: Family
    fixed: Array
    null: Array

    @staticmethod
    def of(family: Family, dof: int, start: Array | None = None, end: Array | None = None) -> ConstrainedFamily:
        """Return the members that rest at both ends if the family does, begin at `start` and end at `end` (dof,)."""
        conditions, targets = _end_conditions(family, dof, start, end)
        count = len(family.constant)
        if not len(conditions):
            return ConstrainedFamily(family, np.zeros((dof, count)), np.eye(count))
        u, s, vt = np.linalg.svd(conditions)
        rank = int((s > 1e-9 * s[0]).sum())
        null = vt[rank:].T
        fixed = (vt[:rank].T @ ((u[:, :rank].T @ targets) / s[:rank, None])).T
        if start is not None or end is not None:
            fixed = _nearest_to_quintic(family, fixed, null, start, end)
        if np.abs(conditions @ fixed.T - targets).max() > 1e-6 * (1.0 + np.abs(targets).max()):
            raise NotPossibleError("a Fourier series is periodic, so the first and the last posture must be the same; "
                                   "use the family 'fourier+quintic' or 'bspline' for different ones",
                                   code="motion-is-periodic")
        if null.shape[1] == 0:
            raise NotPossibleError(f"rest and given postures leave no free coefficient in a motion of {count} "
                                   "coefficients per joint; use more harmonics or pieces", code="no-free-coefficient")
        return ConstrainedFamily(family, fixed, null)

    @property
    def dof(self) -> int:
        return len(self.fixed)

    @property
    def size(self) -> int:
        """Number k of free coefficients per joint."""
        return self.null.shape[1]

    def coefficients(self, z: Array) -> Array:
        """Return the coefficients c (dof, K) for free coefficients z (dof, k)."""
        return self.fixed + z @ self.null.T

    def trajectory(self, z: Array) -> Trajectory:
        return self.family.trajectory(self.coefficients(z))

    def free(self, c: Array) -> Array:
        """Return the free coefficients z (dof, k) nearest to coefficients c (dof, K)."""
        return np.asarray(np.linalg.lstsq(self.null, (c - self.fixed).T, rcond=None)[0].T, dtype=float)

    def constant_motion(self, posture: Array) -> Array:
        """Return free coefficients (dof, k) of the member nearest to standing still in a posture (dof,)."""
        return self.free(np.outer(posture, self.family.constant))


def _end_conditions(family: Family, dof: int, start: Array | None, end: Array | None) -> tuple[Array, Array]:
    """Return conditions (r, K) of unit length on the coefficients of each joint, and their targets (r, dof)."""
    ends = family.functions(np.array([0.0, family.duration]))
    rows, targets = [], []
    if family.rest:
        rows += [ends[1, 0], ends[2, 0], ends[1, 1], ends[2, 1]]
        targets += [np.zeros(dof)] * 4
    for posture, place in ((start, 0), (end, 1)):
        if posture is not None:
            rows.append(ends[0, place])
            targets.append(np.asarray(posture, dtype=float))
    if not rows:
        return np.empty((0, ends.shape[2])), np.empty((0, dof))
    size = np.linalg.norm(rows, axis=1)[:, None]
    return np.array(rows) / size, np.array(targets) / size


def _nearest_to_quintic(family: Family, fixed: Array, null: Array, start: Array | None, end: Array | None) -> Array:
    """Return the coefficients (dof, K) of the member between the postures that is nearest to a rest-to-rest quintic."""
    grid = np.linspace(0.0, family.duration, 8 * len(family.constant))
    first = np.asarray(end if start is None else start, dtype=float)
    last = np.asarray(first if end is None else end, dtype=float)
    quintic = first + np.outer(power_functions(grid, family.duration)[0] @ _REST_TO_REST, last - first)
    values = family.functions(grid)[0]
    return fixed + np.linalg.lstsq(values @ null, quintic - values @ fixed.T, rcond=None)[0].T @ null.T
