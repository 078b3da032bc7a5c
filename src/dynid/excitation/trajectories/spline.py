"""B-splines as trajectories."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import DynidError
from dynid.excitation.trajectories.trajectory import Motion, joint_rows


def spline_functions(t: ArrayLike, knots: Array, degree: int) -> Array:
    """Return B-splines on any knots, with their three derivatives (4, m, len(knots) - degree - 1)."""
    from scipy.interpolate import BSpline as Spline

    u = np.clip(np.atleast_1d(np.asarray(t, dtype=float)), knots[degree], knots[-degree - 1])
    basis = Spline(knots, np.eye(len(knots) - degree - 1), degree)
    return np.stack([basis(u, nu=d) for d in range(4)])


@dataclass(frozen=True, eq=False)
class BSpline:
    """B-spline trajectory q_j(t) = sum_k coefficients_jk B_k(t); the first knot is 0 and the last is the duration.

    knots (K + degree + 1,) not decreasing; coefficients (dof, K) in rad or m.
    """

    knots: Array
    coefficients: Array
    degree: int = 5

    def __post_init__(self) -> None:
        knots, coefficients = np.array(self.knots, dtype=float), joint_rows("the coefficients", self.coefficients)
        if self.degree < 3:
            raise DynidError(f"a B-spline of degree {self.degree} has no defined jerk; use degree 3 or more, 5 for a "
                             "smooth motion")
        if knots.ndim != 1 or len(knots) != coefficients.shape[1] + self.degree + 1:
            raise DynidError(f"{coefficients.shape[1]} coefficients of degree {self.degree} need "
                             f"{coefficients.shape[1] + self.degree + 1} knots, got {knots.size}")
        if not np.isfinite(knots).all() or (np.diff(knots) < 0).any() or abs(knots[self.degree]) > 1e-12:
            raise DynidError("the knots of a B-spline must not decrease and its motion must begin at time 0")
        object.__setattr__(self, "knots", knots)
        object.__setattr__(self, "coefficients", coefficients)

    @property
    def dof(self) -> int:
        return len(self.coefficients)

    @property
    def duration(self) -> float:
        return float(self.knots[-self.degree - 1])

    def at(self, t: ArrayLike) -> Motion:
        return Motion(*(spline_functions(t, self.knots, self.degree) @ self.coefficients.T))
