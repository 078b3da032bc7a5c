"""Bias of an instrumental estimate by motion that its dry friction columns do not contain.

Noise of the measured positions is independent of the instruments and causes no bias. The dry friction columns, however,
use a smoothed velocity, and the machine may vibrate around a reversal. With Y_w the columns of the whole motion, the
bias is -(Z'Y)^-1 Z'(Y - Y_w) b, see `dynid.estimate.motion_errors`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dynid.arrays import Array
from dynid.estimate.instruments.equations import Instrumented
from dynid.estimate.instruments.projection import Projected
from dynid.regression.residual_series import PIECE


def instrument_shift(equations: Instrumented, projected: Projected, unseen: Sequence[Array], beta: Array,
                     weights: Array) -> Array:
    """Return the bias (base,) of base values beta (base,) with these joint weights (dof,); unseen: velocities
    (samples, dof), one array per log, that the smoothed ones do not contain."""
    measured, layout = equations.measured, equations.measured.layout
    whole = [replace(steady, dq=steady.dq + more) for steady, more in zip(measured.steady, unseen, strict=True)]
    score = np.zeros(len(beta))
    for piece in equations.pieces(unit=PIECE) if len(measured.dry_rows) else ():
        off = np.zeros((layout.rows, len(piece.rows)))
        seen = measured.rows(piece).entries[measured.dry_rows]
        off[measured.dry_rows] = seen - measured.dry_entries(piece, whole[piece.log])
        z = equations.instruments(piece)
        for j, own in enumerate(layout.columns):
            at = slice(layout.joint(j).start, layout.joint(j).stop - 1)
            score[own] += weights[j] ** 2 * (z[at] @ (off[at].T @ beta[own]))
    shift = np.zeros(len(beta))
    shift[projected.kept] = -np.linalg.solve(projected.cross, score[projected.kept])
    return shift
