"""Compression of equations into one triangular factor per joint (`fold`).

The triangular factor of [Y_j tau_j] of joint j is sufficient for least squares. Factors of pieces are stacked and made
triangular again. This operation combines files, chunks, threads and machines, and memory does not grow with the data.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add

import numpy as np

from dynid.arrays import Array
from dynid.errors import NotPossibleError
from dynid.regression.equations import Equations, Piece, Rows, piece_span
from dynid.regression.factor import Factor, householder, signed
from dynid.regression.regression import Block, Regression
from dynid.threads import side_by_side

Progress = Callable[[int], None]  # called with the number of processed rows

CHUNK = 1024  # rows per Householder step: the block of the widest joint fits into the second-level cache
# Samples: with fewer, most of the time is spent in the interpreter, for which threads would wait for each other.
_WORTH_THREADS = 20_000


def fold(equations: Equations, *, blocks: int = 10, threads: int | None = None,
         progress: Progress | None = None) -> Regression:
    """Compress the equations of logs into one triangular factor per joint and block of time.

    Args:
        equations: rows of all logs, see `TorqueEquations`.
        blocks: number of separate intervals of time, for cross-validation and standard errors. Every log is divided
            into this number; if this gives more in total, neighbours are joined (see `Regression.joined`).
        threads: number of threads, which does not affect the result.
        progress: called with the number of processed rows.

    >>> model = dynid.Model(dynid.Robot.load("arm3r"))
    >>> q, dq, ddq = np.random.default_rng(0).normal(size=(3, 200, 3))
    >>> tau = model.inverse_dynamics(model.parameters.nominal, q, dq, ddq)
    >>> tau += 0.01 * np.random.default_rng(1).normal(size=tau.shape)
    >>> samples = dynid.Samples.from_arrays(q, dq, ddq, tau, rate=100.0)
    >>> folded = dynid.fold(dynid.regression.TorqueEquations.from_model(model, samples))
    >>> [factor.r.shape for factor in folded.factors]
    [(16, 16), (15, 15), (8, 8)]
    """
    def one(piece: Piece) -> tuple[Factor, ...]:
        factors = fold_piece(equations, piece)
        if progress is not None:
            progress(piece.rows.stop - piece.rows.start)
        return factors

    work = equations.pieces(max(1, blocks))
    if not work:
        raise NotPossibleError("the data contain no samples; give at least one log with samples", code="no-samples")
    if threads is None and sum(piece.rows.stop - piece.rows.start for piece in work) < _WORTH_THREADS:
        threads = 1
    found: dict[tuple[int, int], list[Block]] = {}
    for piece, factors in zip(work, side_by_side(one, work, threads), strict=True):
        found.setdefault((piece.log, piece.stretch), []).append(Block((piece_span(equations, piece),), factors))
    whole = [reduce(add, found[key]) for key in sorted(found)]
    sources = tuple(dict.fromkeys(log.source for log in equations.logs))
    return Regression.from_blocks(equations.base, whole, equations.joints, sources).joined(max(1, blocks))


def fold_piece(equations: Equations, piece: Piece) -> tuple[Factor, ...]:
    """Return the triangular factor of each joint's equations in one piece of a log."""
    layout = equations.layout
    widths = [len(columns) + 1 for columns in layout.columns]
    triangles = [np.zeros((width, width)) for width in widths]
    counts, powers = [0] * len(widths), [0.0] * len(widths)
    # Decimated rows are few, but need their neighbours at full rate, so they are computed at once.
    for part in piece.parts(CHUNK) if piece.rows.step == 1 else [piece]:
        rows = equations.rows(part)
        for k in range(0, len(rows.keep), CHUNK):
            _add_rows(rows, slice(k, k + CHUNK), triangles, counts, powers)
    return tuple(Factor(layout.columns[j], signed(r), counts[j], powers[j]) for j, r in enumerate(triangles))


def _add_rows(rows: Rows, part: slice, triangles: list[Array], counts: list[int], powers: list[float]) -> None:
    """Add equations to each joint's triangular factor R, by a Householder factorisation of [R; equations]."""
    for j, r in enumerate(triangles):
        block, keep = rows.joint(j)[:, part], rows.keep[part, j]
        torque = block[-1] if rows.known is None else block[-1] + rows.known[j, part]
        if not keep.all():
            block, torque = block[:, keep], torque[keep]
        triangles[j] = householder(r, block.T) if counts[j] else householder(block.T)
        counts[j] += block.shape[1]
        powers[j] += float(torque @ torque)
