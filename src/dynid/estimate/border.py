"""Covariance of a constrained estimate: it may only move along the border of the set."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynid.arrays import Array, Bools
from dynid.consistency import Consistency, Fit
from dynid.consistency.blocks import Block, smat, svec
from dynid.estimate.problem import Problem
from dynid.regression import Stacked

_SIGNIFICANT = 2.0  # deviations by which the unconstrained estimate must break an equality before it counts as active
_ONE_SIDED = 0.5  # share of the variance that is left of errors of which one side is cut off
_VANISHED = 1e-6  # share of the unconstrained variance below which a projected one has vanished
_SINGULAR = 1e-4  # eigenvalue, in kilograms and decimetres, below which an active body stands on the border


def projected_covariance(problem: Problem, consistency: Consistency, best: Fit, stacked: Stacked,
                         free: Array, covariance: Array) -> Array:
    """Covariance of the estimate when it may only move along the conditions that hold it back.

    To first order a body on the border keeps its null vectors: v_a' dP v_b = 0. What is left of the unconstrained
    estimate's errors is their projection on these moves, in the metric of the fit. A limit on what the data see
    themselves, friction held at zero for one, pins nothing: on which side of it the truth lies is known, how far from
    it only as well as the data say. An equality that the unconstrained estimate (base,) `free` breaks by no more than
    its own doubt pins nothing either. What limits pin only together keeps the deviation of a truth on the border: half
    of the unconstrained errors fall outside and are taken back, so that half of their square is left.
    """
    equal = np.array([block.cone == "zero" for block, rows in _pins(consistency, best) for _ in rows], dtype=bool)
    found = [row for _, rows in _pins(consistency, best) for row in rows]
    rows = np.array(found).reshape(-1, len(best.theta))
    rows = rows[~_open(problem, rows, equal, free, covariance)]
    if not len(rows):
        return covariance
    scale = np.linalg.norm(rows, axis=1)
    active = rows / np.where(scale > 0, scale, 1.0)[:, None]
    _, values, right = np.linalg.svd(active)
    rank = int(np.sum(values > 1e-9 * values[0]))
    moves = problem.base.matrix @ right[rank:].T
    u, sizes, _ = np.linalg.svd(stacked.r @ moves, full_matrices=False)
    u = u[:, sizes > 1e-10 * sizes[0]]
    keep = np.linalg.lstsq(stacked.r, u @ (u.T @ stacked.r), rcond=1e-12)[0]
    projected = keep @ covariance @ keep.T
    least = _ONE_SIDED * np.diag(covariance)
    gone = np.diag(projected) < _VANISHED * np.diag(covariance)
    projected[gone, gone] = least[gone]
    return projected


def _pins(consistency: Consistency, best: Fit) -> list[tuple[Block, list[Array]]]:
    """The active conditions, each with the rows (parameters,) of moves that it forbids."""
    return [(block, _active_rows(block.cone, block.value(best.theta), block.balance, z, block.rows, block.columns,
                            len(best.theta)))
            for block, z in zip(consistency.blocks, best.duals, strict=True) if block in best.active]


def _open(problem: Problem, rows: Array, equal: Bools, free: Array, covariance: Array) -> Bools:
    """Whether conditions rows (k, parameters) theta >= 0 leave the estimate open (k,): the data see them, and those
    that are equalities, equal (k,), are broken by no more than noise would."""
    seen = np.linalg.lstsq(problem.base.matrix.T, rows.T, rcond=None)[0].T
    # Not a function of the base parameters: the data alone say nothing of it.
    other = np.linalg.norm(seen @ problem.base.matrix - rows, axis=1) > 1e-9 * np.linalg.norm(rows, axis=1)
    spread = np.sqrt(np.maximum(np.einsum("ki,ij,kj->k", seen, covariance, seen), 0.0))
    return ~other & (~equal | (np.abs(seen @ free) < _SIGNIFICANT * spread))


def _active_rows(cone: str, value: Array, balance: Array, z: Array, rows: Array, columns: Any,
                 width: int) -> list[Array]:
    """Rows (width,) of the linear conditions that an active cone puts on moves of theta."""
    found = []
    if cone == "psd":
        matrix = smat(value * balance)
        values, vectors = np.linalg.eigh(matrix)
        null = vectors[:, values < max(_SINGULAR * np.trace(matrix), values[0] * (1 + 1e-9))]
        for a in range(null.shape[1]):
            for b in range(a, null.shape[1]):
                pair = np.outer(null[:, a], null[:, b])
                found.append((svec(pair + pair.T) * balance) @ rows)
    elif cone == "soc":
        found.append(z @ rows)
    else:
        found += [row for row, multiplier in zip(rows, z, strict=True) if abs(multiplier) > 1e-6 * np.abs(z).max()]
    full = []
    for row in found:
        wide = np.zeros(width)
        wide[columns] = row
        full.append(wide)
    return full
