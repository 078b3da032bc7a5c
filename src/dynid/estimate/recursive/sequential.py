"""Joint after joint from the last one, each with its own parameters only: the two sequential ways of Ardiani's table
3.3, for comparison. What a joint found is taken as known by those before it, so errors add up."""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array, Bools, Ints
from dynid.errors import ModelError
from dynid.estimate.recursive import kernels
from dynid.estimate.recursive.recursion import Recursion
from dynid.regression import BaseParameters, Regression


def owners(base: BaseParameters) -> Ints:
    """The joint (from 0) that each base parameter belongs to (base,)."""
    return np.array([base.parameters.items[c].owner for c in base.independent], dtype=np.int64)


def add_own(recursion: Recursion, entries: Array, keep: Bools, beta: Array) -> None:
    """Samples (layout.rows, m) into a recursion by S-IDIM-RLS-B: beta (base,) moves joint by joint, the factor as that
    of least squares. The prior must know something of every parameter."""
    b = len(beta)
    if np.any(np.diag(recursion.r)[:b] <= 0.0):
        raise ModelError("method 's-rls-b' needs a prior with a standard deviation for every base parameter")
    memory = recursion.memory
    kernels.update_own(recursion.padded, beta, recursion.rows, np.zeros(b), np.zeros(b), recursion.space,
                       recursion.which, entries, keep, memory.columns, memory.starts, recursion.scale,
                       owners(recursion.layout.base))
    memory.add(entries, keep)


def line_by_line(regression: Regression) -> Array:
    """Base values (base,) by least squares of each joint's own parameters on its own rows, from the last joint to the
    first, with those found before taken as known (de Wit and Aubin 1990)."""
    beta, owner = np.zeros(len(regression.base)), owners(regression.base)
    for j in range(regression.dof - 1, -1, -1):
        factor = regression.factors[j]
        mine = owner[factor.columns] == j
        if not mine.any():
            continue
        matrix = factor.r[:, :-1]
        rest = factor.r[:, -1] - matrix[:, ~mine] @ beta[factor.columns[~mine]]
        size = np.linalg.norm(matrix[:, mine], axis=0)
        size = np.where(size > 0.0, size, 1.0)
        beta[factor.columns[mine]] = np.linalg.lstsq(matrix[:, mine] / size, rest, rcond=1e-9)[0] / size
    return beta
