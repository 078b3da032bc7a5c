"""Sequential methods of Ardiani's table 3.3, joint after joint from the last one.

In S-IDIM-RLS (`add_in_turn`) each joint's rows update all parameters, and the estimate is that of least squares. The
two others, for comparison, update only a joint's own parameters and take later joints' parameters as known, so errors
accumulate.
"""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array, Bools, Ints
from dynid.errors import ModelError
from dynid.estimate.linear import joint_weights
from dynid.estimate.recursive import kernels
from dynid.estimate.recursive.recursion import RING, ROWS_PER_PARAMETER, Recursion
from dynid.regression import BaseParameters, Regression


def owners(base: BaseParameters) -> Ints:
    """Return the joint (from 0) of each base parameter (base,)."""
    return np.array([base.parameters.items[c].owner for c in base.independent], dtype=np.int64)


def add_in_turn(recursion: Recursion, entries: Array, keep: Bools) -> Array:
    """Add a block of samples by S-IDIM-RLS: all of them of the last joint, then of the one before it, and so on.

    Args:
        recursion: Without forgetting. Weights that are to be estimated are those of the first block, if it is long
            enough, because a joint's rows need their weight before the rows of the next joint.
        entries: Rows (layout.rows, m).
        keep: Mask of valid rows (m, dof).

    Returns:
        Estimates (dof, base), one after the samples of each joint.
    """
    memory, first, place = recursion.memory, recursion.done == 0, recursion.done % RING
    memory.add(entries, keep)
    if first and recursion.learn:
        found = recursion.regression()
        if sum(found.rows) > ROWS_PER_PARAMETER * len(recursion.beta):
            recursion.scale, recursion.learn = joint_weights(found), False
    stages = np.empty((keep.shape[1], len(recursion.beta)))
    kernels.update_in_turn(recursion.padded, recursion.norms, recursion.beta, recursion.rows, recursion.space,
                           recursion.which, entries, keep, memory.columns, memory.starts, recursion.scale,
                           recursion.ring, place, stages)
    return stages


def add_own(recursion: Recursion, entries: Array, keep: Bools, beta: Array) -> None:
    """Add samples (layout.rows, m) by S-IDIM-RLS-B: beta (base,) is updated joint by joint, the factor as in least
    squares. The prior must include every parameter."""
    b = len(beta)
    if np.any(np.diag(recursion.r)[:b] <= 0.0):
        raise ModelError("method 's-rls-b' needs a prior with a standard deviation for every base parameter")
    memory = recursion.memory
    kernels.update_own(recursion.padded, beta, recursion.rows, np.zeros(b), np.zeros(b), recursion.space,
                       recursion.which, entries, keep, memory.columns, memory.starts, recursion.scale,
                       owners(recursion.layout.base))
    memory.add(entries, keep)


def line_by_line(regression: Regression) -> Array:
    """Return base values (base,) by least squares of each joint's own parameters on its own rows, from the last joint
    to the first, with later parameters taken as known (de Wit and Aubin 1990)."""
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
