"""Export of the cone programme in the sparse format of SDPA, which many solvers read (Sousa, s. 7.2)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dynid.arrays import Array
from dynid.consistency.blocks import ConeConstraint, arrow, smat
from dynid.consistency.consistency import Consistency
from dynid.consistency.interior import scales
from dynid.errors import ModelError
from dynid.files import write_whole


def write_sdpa(path: str | Path, consistency: Consistency, matrix: Array, values: Array) -> Array:
    """Write a cone programme as a file: minimise t subject to |matrix theta - values| <= t and consistent theta.

    matrix (k, parameters), values (k,). Returns the unit (parameters,) of each variable: theta = unit * x. SDPA's form
    is min c'x with F_1 x_1 + ... + F_m x_m - F_0 positive semidefinite in blocks. With e = matrix theta - values, the
    distance is the block [[t 1, e], [e', t]]; second-order cones are blocks of the same kind, and equalities are two
    inequalities each.
    """
    matrix, values = np.atleast_2d(np.asarray(matrix, dtype=float)), np.asarray(values, dtype=float)
    width = len(consistency.parameters)
    if matrix.shape != (len(values), width):
        raise ModelError(f"{len(values)} values of {width} parameters need a matrix of shape {(len(values), width)}, "
                         f"got {matrix.shape}")
    unit = scales(consistency)
    sizes, lines = list[int](), list[str]()
    blocks = [_arrow(matrix * unit, values), *(_matrices(block, unit) for block in consistency.blocks)]
    for number, (size, diagonal, entries) in enumerate(blocks, 1):
        sizes.append(-size if diagonal else size)
        lines += [f"{variable} {number} {row + 1} {column + 1} {value:.17g}" for variable, row, column, value in entries
                  if value != 0.0]
    goal = " ".join(["0"] * width + ["1"])
    text = "\n".join([f'"{consistency.form} conditions of {len(consistency.bodies)} bodies', str(width + 1),
                      str(len(sizes)), " ".join(map(str, sizes)), goal, *lines]) + "\n"
    with write_whole(Path(path)) as file:
        file.write(text)
    return unit


# Variable (0: the constant F_0), row and column from 0 (row <= column), value.
Entry = tuple[int, int, int, float]


def _arrow(matrix: Array, values: Array) -> tuple[int, bool, list[Entry]]:
    """Return |matrix x - values| <= t as a semidefinite block: t on the diagonal, the error in the last column."""
    count, width = matrix.shape
    found: list[Entry] = [(width + 1, k, k, 1.0) for k in range(count + 1)]
    found += [(0, row, count, float(value)) for row, value in enumerate(values)]
    found += [(int(c) + 1, int(row), count, float(matrix[row, c])) for row, c in np.argwhere(matrix != 0.0)]
    return count + 1, False, found


def _matrices(block: ConeConstraint, unit: Array) -> tuple[int, bool, list[Entry]]:
    """Return a condition of the consistent set as a block of SDPA: size, whether it is diagonal, and entries."""
    rows, offset = block.rows * unit[block.columns] * block.balance[:, None], block.offset * block.balance
    columns = [int(c) + 1 for c in block.columns]
    if block.cone in ("psd", "soc"):
        made = smat if block.cone == "psd" else arrow
        every = [(0, -made(offset)), *zip(columns, map(made, rows.T), strict=True)]
        upper = list(zip(*np.triu_indices(len(every[0][1])), strict=True))
        return len(every[0][1]), False, [(variable, int(row), int(column), float(matrix[row, column]))
                                         for variable, matrix in every for row, column in upper]
    if block.cone == "zero":
        rows, offset = np.vstack([rows, -rows]), np.concatenate([offset, -offset])
    flat: list[Entry] = []
    for k in range(len(offset)):
        flat.append((0, k, k, -float(offset[k])))
        flat += [(c, k, k, float(x)) for c, x in zip(columns, rows[k], strict=True)]
    return len(offset), True, flat
