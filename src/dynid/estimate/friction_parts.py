"""Compressed data without one block of time, for fast ridge solutions in a few candidate columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array, Ints
from dynid.lapack import solve_positive, solve_triangular
from dynid.regression import Block, Regression
from dynid.regression.factor import triangular

SMALLEST_RIDGE = 1e-14  # relative to a column's squared norm, for columns that the data may not determine


@dataclass(frozen=True, eq=False)
class Part:
    """Normal equations of the data without one block of time, and of that block, in the candidate columns.

    All other columns are eliminated.

    Attributes:
        normal, right: (k, k) and (k,), normal equations of the data without the block.
        squares: (k,), squared norm of each column before the elimination, the scale of its ridge.
        grams, sides, powers: (dof, k, k), (dof, k) and (dof,), the same for the errors on each joint of the block.
    """

    normal: Array
    right: Array
    squares: Array
    grams: Array
    sides: Array
    powers: Array

    @staticmethod
    def from_block(others: Regression, block: Block, weights: Array, columns: Ints) -> Part:
        """Return the normal equations of a block and of the `others`; columns: indices of the candidate columns."""
        certain = np.setdiff1d(np.arange(len(others.base)), columns)
        stacked = others.stack(weights)
        squares = np.sum(stacked.r ** 2, axis=0)
        trace = np.diag(np.sqrt(SMALLEST_RIDGE * np.maximum(squares, np.finfo(float).tiny)))
        order, n = np.concatenate([certain, columns]), len(certain)
        r = triangular(np.column_stack([np.vstack([stacked.r, trace])[:, order],
                                        np.concatenate([stacked.rho, np.zeros(len(squares))])]))
        eliminated = solve_triangular(r[:n, :n], r[:n, n:])  # of the columns and of the torque
        grams, sides, powers = [], [], []
        for weight, factor in zip(weights, block.factors, strict=True):
            matrix = np.zeros((len(factor.r), len(others.base)))
            matrix[:, factor.columns] = weight * factor.r[:, :-1]
            error = matrix[:, columns] - matrix[:, certain] @ eliminated[:, :-1]
            left = weight * factor.r[:, -1] - matrix[:, certain] @ eliminated[:, -1]
            grams.append(error.T @ error)
            sides.append(error.T @ left)
            powers.append(left @ left)
        inner = r[n:-1, n:]
        return Part(inner[:, :-1].T @ inner[:, :-1], inner[:, :-1].T @ inner[:, -1], squares[columns],
                    np.array(grams), np.array(sides), np.array(powers))

    def values(self, ridge: Array) -> Array:
        """Return least-squares values (k,) of the candidate columns with ridges (k,); zero for an infinite ridge."""
        found = np.zeros(len(ridge))
        own = np.flatnonzero(np.isfinite(ridge) & (self.squares > 0))
        if len(own):
            penalty = np.maximum(ridge[own], SMALLEST_RIDGE) * self.squares[own]
            scale = 1.0 / np.sqrt(self.squares[own])
            normal = scale[:, None] * (self.normal[np.ix_(own, own)] + np.diag(penalty)) * scale
            found[own] = scale * solve_positive(normal, scale * self.right[own])
        return found

    def losses(self, ridge: Array) -> Array:
        """Return the weighted squared errors (dof,) on the excluded block of the fit with ridges (k,)."""
        x = self.values(ridge)
        return np.asarray(self.powers - 2.0 * self.sides @ x + (self.grams @ x) @ x)
