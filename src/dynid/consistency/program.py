"""Solve cone programmes with Clarabel: minimise |M theta - rho|^2 / 2 subject to named cone constraints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import Array, Ints
from dynid.consistency.blocks import ConeConstraint, slack
from dynid.errors import NotPossibleError
from dynid.lapack import load_for_cones

# Clarabel's default regularisation (1e-8) costs five digits of the objective at forty links; the status "almost solved"
# must still mean a relative error of the objective of 1e-7.
_SETTINGS: dict[str, Any] = {
    "verbose": False, "static_regularization_constant": 1e-12, "iterative_refinement_max_iter": 20,
    "iterative_refinement_stop_ratio": 2.0, "tol_gap_abs": 1e-9, "tol_gap_rel": 1e-9, "tol_feas": 1e-9,
    "reduced_tol_gap_abs": 1e-7, "reduced_tol_gap_rel": 1e-7, "reduced_tol_feas": 1e-7}
_MAX_VIOLATION = 1e-6  # kg and kg m^2: with a larger violation of a condition, a point proves no bound
_CONES = {"zero": "ZeroConeT", "nonnegative": "NonnegativeConeT", "soc": "SecondOrderConeT"}


@dataclass(frozen=True, eq=False)
class SparseColumns:
    """A sparse matrix as Clarabel reads it, with the attributes of `scipy.sparse.csc_matrix`, whose import is slow.

    Attributes:
        data: Entries (k,), column by column, and by row within a column.
        indices: Row (k,) of each entry.
        indptr: Index (columns + 1,) of the first entry of each column, and k.
        shape: Rows and columns.
    """

    data: Array
    indices: Ints
    indptr: Ints
    shape: tuple[int, int]
    has_canonical_format = True

    @staticmethod
    def from_entries(data: Array, rows: Ints, columns: Ints, shape: tuple[int, int]) -> SparseColumns:
        """Return the matrix with entries (k,) at distinct rows and columns, in any order."""
        order = np.lexsort((rows, columns))
        starts = np.searchsorted(columns[order], np.arange(shape[1] + 1))
        return SparseColumns(data[order], rows[order], starts, shape)

    @property
    def nnz(self) -> int:
        return len(self.data)


@dataclass(frozen=True, eq=False)
class ProgramSolution:
    """Solution of a cone programme: theta (parameters,), the dual (m,) of each constraint, and the solver's status.

    The duals z_i of constraints with matrices F_i satisfy M'(M theta - rho) = sum_i F_i' z_i at the optimum.
    """

    theta: Array
    duals: tuple[Array, ...]
    status: str
    iterations: int

    @property
    def solved(self) -> bool:
        return self.status in ("Solved", "AlmostSolved")

    @property
    def impossible(self) -> bool:
        """Whether no point satisfies all conditions, which the duals then prove (Farkas)."""
        return self.status in ("PrimalInfeasible", "AlmostPrimalInfeasible")


def solve_program(blocks: Sequence[ConeConstraint], matrix: Array, rho: Array, scale: Array, *, size: float = 1.0,
                  settings: Mapping[str, Any] | None = None) -> ProgramSolution:
    """Minimise |matrix theta - rho|^2 / 2 subject to cone constraints.

    Args:
        blocks: the constraints.
        matrix, rho: matrix (k, parameters) and right-hand side (k,) of the fit.
        scale: units of the parameters (parameters,): theta = scale * x with x of about one.
        size: unit of |matrix theta - rho|, which makes the solver's tolerances independent of the amount of data.
        settings: settings of Clarabel.
    """
    import clarabel  # imported here, because most methods do not need it

    load_for_cones()
    count, width = len(rho), matrix.shape[1]
    # Variables (x, e) with e = matrix theta - rho: the quadratic part is the identity, no normal equations are formed.
    fit = np.hstack([matrix * (scale / size), -np.eye(count)])
    order = sorted(range(len(blocks)), key=lambda k: blocks[k].cone == "psd")
    r, c = np.nonzero(fit)
    data, rows, cols = [fit[r, c]], [r], [c]
    right, cones = [rho / size], [clarabel.ZeroConeT(count)]
    at = count
    starts = [0] * len(blocks)
    for k in order:
        block = blocks[k]
        m = len(block.offset)
        entries = -block.rows * scale[block.columns] * block.balance[:, None]
        r, c = np.nonzero(entries)
        data.append(entries[r, c])
        rows.append(r + at)
        cols.append(block.columns[c])
        right.append(block.offset * block.balance)
        cones.append(clarabel.PSDTriangleConeT(int((np.sqrt(8 * m + 1) - 1) / 2 + 0.5)) if block.cone == "psd"
                     else getattr(clarabel, _CONES[block.cone])(m))
        starts[k] = at
        at += m
    a = SparseColumns.from_entries(np.concatenate(data), np.concatenate(rows), np.concatenate(cols),
                                   (at, width + count))
    errors = np.arange(width, width + count)
    p = SparseColumns.from_entries(np.ones(count), errors, errors, (width + count, width + count))
    options = clarabel.DefaultSettings()
    for name, value in {**_SETTINGS, **(settings or {})}.items():
        setattr(options, name, value)
    found = clarabel.DefaultSolver(p, np.zeros(width + count), a, np.concatenate(right), cones, options).solve()
    theta = np.asarray(found.x)[:width] * scale
    z = np.asarray(found.z)
    # Convert back to the units of |matrix theta - rho|^2 / 2 and of the given rows.
    duals = tuple(z[s:s + len(b.offset)] * b.balance * size ** 2 for s, b in zip(starts, blocks, strict=True))
    if not (np.isfinite(theta).all() and np.isfinite(z).all()):
        raise NotPossibleError("the cone solver returned values that are not finite; the conditions or data are badly "
                               "scaled")
    return ProgramSolution(theta, duals, str(found.status), int(found.iterations))


def optimality_gap(blocks: Sequence[ConeConstraint], matrix: Array, rho: Array, solution: ProgramSolution,
                   scale: Array, size: float = 0.0) -> float:
    """Return an upper bound of the suboptimality of f = |M theta - rho|^2 / 2, relative to f or to size^2 / 2 if that
    is larger; infinite if the solution proves no bound. `size` is the unit of |M theta - rho|. Triangular equations
    omit the residual of the data, so f can be much smaller than the misfit of the data, to which the accuracy is
    relative.

    With r = M'(M theta - rho) - sum_i F_i' z_i, every theta' of the set and all multipliers z of the dual cones satisfy
    f(theta') >= f(theta) - sum_i z_i (F_i theta + g_i) + r (theta' - theta). The vector r consists of rounding errors.
    The bound includes |r| times the magnitudes of the parameters, which are at least `scale` (parameters,).
    """
    theta, gap = solution.theta, 0.0
    error = matrix @ theta - rho
    left = matrix.T @ error
    for block, z in zip(blocks, solution.duals, strict=True):
        own = z / block.balance
        if block.cone != "zero" and (slack(block.cone, own) < -1e-12 * float(np.abs(own).max(initial=0.0))
                                     or block.slack(theta) < -_MAX_VIOLATION):
            return float(np.inf)
        left[block.columns] -= block.rows.T @ z
        gap += float(z @ block.value(theta))
    rounding = float(np.abs(left) @ np.maximum(np.abs(theta), scale))
    return (abs(gap) + rounding) / max(0.5 * float(error @ error), 0.5 * size ** 2, 1e-300)
