"""Logarithmic barrier that keeps parameters inside the consistent set and, optionally, near a nominal model.

As a function of the parameters theta, the barrier is
    sum_i w_i (tr(C_i P_i) - log det P_i) - w' (sum of logs of the linear conditions and of the ellipsoids' matrices).
P_i is the matrix of body i minus the margin. With C_i the inverse of a nominal P_i, the bracket is the log-det
divergence of P_i from the nominal matrix (Wensing, Kim and Slotine 2018; Lee, Wensing and Park 2019). The divergence is
smallest at the nominal body, infinite for inconsistent bodies, and independent of units and frames.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dynid.arrays import Array, Ints
from dynid.consistency.blocks import arrow
from dynid.consistency.consistency import Consistency


@dataclass(frozen=True, eq=False)
class Matrices:
    """Matrices of a barrier P_b = sum_k theta[places[b, k]] basis[b, k] - shift I, positive definite inside the set.

    places (b, k): parameter indices. basis (b, k, n, n). weights (b,): barrier weights. inverse_nominal (b, n, n): of
    nominal P_b, or zeros.
    """

    places: Ints
    basis: Array
    shift: float
    weights: Array
    inverse_nominal: Array

    @property
    def total(self) -> float:
        """Sum of the barrier weights over all eigenvalues of all matrices."""
        return float(self.basis.shape[-1] * self.weights.sum())

    def along(self, step: Array) -> Array:
        """Return the change of the matrices P_b (b, n, n) by a step (parameters,) of theta."""
        b, k, n, _ = self.basis.shape
        return (step[self.places][:, None] @ self.basis.reshape(b, k, n * n)).reshape(b, n, n)

    def at(self, theta: Array) -> Array:
        """Return the matrices P_b (b, n, n) at theta (parameters,)."""
        return self.along(theta) - self.shift * np.eye(self.basis.shape[-1])

    def inverses(self, theta: Array) -> Array:
        """Return the inverses (b, n, n) of the matrices P_b at theta (parameters,)."""
        return np.asarray(np.linalg.inv(self.at(theta)), dtype=float)

    def traces(self, matrices: Array) -> Array:
        """Return the traces tr(B_k X_b) (b, k) of basis matrices B_k times symmetric matrices X (b, n, n)."""
        b, k, n, _ = self.basis.shape
        return (self.basis.reshape(b, k, n * n) @ matrices.reshape(b, n * n, 1))[:, :, 0]

    def products(self, left: Array, right: Array) -> Array:
        """Return the traces tr(B_k X_b B_m Y_b) (b, k, k) of basis matrices B with symmetric X and Y (b, n, n)."""
        b, k, n, _ = self.basis.shape
        one = (self.basis @ left[:, None]).reshape(b, k, n * n)
        other = np.swapaxes(self.basis @ right[:, None], 2, 3).reshape(b, k, n * n)
        found = one @ np.swapaxes(other, 1, 2)
        return 0.5 * (found + np.swapaxes(found, 1, 2))


@dataclass(frozen=True, eq=False)
class Barrier:
    """Logarithmic barrier of a consistent set as a function of the parameters, with weights of its conditions.

    inverse_nominal (bodies, n, n) and weights (bodies,): of each body's matrix. other: weight of the other conditions.
    """

    consistency: Consistency
    inverse_nominal: Array
    weights: Array
    other: float

    def times(self, factor: float) -> Barrier:
        """Return the barrier with all weights multiplied by a factor."""
        return replace(self, weights=factor * self.weights, other=factor * self.other)

    @cached_property
    def groups(self) -> tuple[Matrices, ...]:
        """Matrices of the barrier: those of the bodies, and those of the ellipsoids that limit centres of mass.

        The condition |u| < t of an ellipsoid holds if and only if t I, bordered by u, is positive definite.
        """
        found = []
        places, basis = self.consistency.places, self.consistency.basis
        if len(places):
            each = np.broadcast_to(basis, (len(places), *basis.shape)).copy()
            found.append(Matrices(places, each, self.consistency.margin, self.weights, self.inverse_nominal))
        cones = [block for block in self.consistency.blocks if block.cone == "soc"]
        if cones:
            arrows = np.array([[arrow(column) for column in block.rows.T] for block in cones])
            n = arrows.shape[-1]
            found.append(Matrices(np.array([block.columns for block in cones]), arrows, 0.0,
                                  np.full(len(cones), self.other), np.zeros((len(cones), n, n))))
        return tuple(found)

    @cached_property
    def planes(self) -> tuple[Array, Array]:
        """All linear conditions of the set as matrix (k, parameters) and offset (k,) of matrix theta + offset >= 0."""
        linear = [block for block in self.consistency.blocks if block.cone == "nonnegative"]
        width = len(self.consistency.parameters)
        return (np.vstack([np.zeros((0, width)), *(block.wide(width) for block in linear)]),
                np.concatenate([np.zeros(0), *(block.offset for block in linear)]))

    def value(self, theta: Array) -> float:
        """Return the value of the barrier at theta (parameters,); infinite outside the consistent set."""
        total = 0.0
        for group in self.groups:
            p = group.at(theta)
            eigenvalues = np.linalg.eigvalsh(p)
            if eigenvalues.min() <= 0:
                return np.inf
            traces = np.einsum("bij,bji->b", group.inverse_nominal, p)
            total += float(group.weights @ (traces - np.log(eigenvalues).sum(axis=1)))
        rows, offset = self.planes
        s = rows @ theta + offset
        if len(s) and s.min() <= 0:
            return np.inf
        return total - self.other * float(np.log(s).sum())

    def derivatives(self, theta: Array) -> tuple[Array, Array]:
        """Return the gradient (parameters,) and the Hessian (parameters, parameters) of the barrier."""
        size = len(theta)
        gradient, hessian = np.zeros(size), np.zeros((size, size))
        for group in self.groups:
            inverse = group.inverses(theta)
            np.add.at(gradient, group.places, group.weights[:, None] * group.traces(group.inverse_nominal - inverse))
            curvature = group.weights[:, None, None] * group.products(inverse, inverse)
            hessian[group.places[:, :, None], group.places[:, None, :]] += curvature
        rows, offset = self.planes
        scaled = rows / (rows @ theta + offset)[:, None]
        gradient -= self.other * scaled.sum(axis=0)
        hessian += self.other * (scaled.T @ scaled)
        return gradient, hessian
