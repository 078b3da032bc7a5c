"""Residuals of an estimate, in a second pass over the data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.arrays import Array, Bools, like
from dynid.recording.excerpts import RowRanges, stretches
from dynid.regression.equations import Equations, Piece, Rows
from dynid.threads import side_by_side

PIECE = 16384  # rows at once: longer than any correlation, small in memory


def excerpt_pieces(equations: Equations, rows: int) -> list[Piece]:
    """Return the samples of logs in pieces of at most `PIECE` samples. If there are more than `rows` samples at full
    rate, only the intervals of `recording.excerpts` are included; filters also use the samples around an interval."""
    pieces, chosen = equations.pieces(unit=PIECE), stretches(equations.logs, rows)
    return pieces if chosen is None else pieces_within(pieces, chosen)


def pieces_within(pieces: Sequence[Piece], chosen: Sequence[RowRanges]) -> list[Piece]:
    """Return the parts of pieces that are inside the chosen row ranges of each log."""
    found = []
    for piece in pieces:
        for bounds in chosen[piece.log]:
            first, last = (max(-(-(row - piece.rows.start) // piece.rows.step), 0) for row in bounds)
            found.append(replace(piece, rows=piece.rows[first:last]))
    return [piece for piece in found if len(piece.rows)]


@dataclass(frozen=True, eq=False)
class Residuals:
    """Residuals of one log in the rows of the regression.

    Attributes:
        t: (m,), s.
        measured, predicted: (m, dof), torques, N m or N.
        keep: (m, dof), valid rows.
        rate, source: sampling rate, Hz, and name of the log.
    """

    t: Array
    measured: Array
    predicted: Array
    keep: Bools
    rate: float
    source: str

    @property
    def residual(self) -> Array:
        return self.measured - self.predicted


def residuals(equations: Equations, beta: Array, *, threads: int | None = 1,
              seen: Callable[[Piece, Rows], None] | None = None) -> tuple[Residuals, ...]:
    """Return measured and predicted torques of each log at the regression's samples. seen: function that is called with
    each piece and its rows."""
    work = equations.pieces(unit=PIECE)
    return tuple(log_residuals(equations, k, [piece for piece in work if piece.log == k], beta, threads, seen)
                 for k in range(len(equations.logs)))


def log_residuals(equations: Equations, log: int, work: Sequence[Piece], beta: Array, threads: int | None = 1,
                  seen: Callable[[Piece, Rows], None] | None = None) -> Residuals:
    """Return measured and predicted torques of one log in the pieces `work`. seen: function that is called with each
    piece and its rows."""
    samples, count = equations.logs[log], len(equations.joints)
    ends = np.cumsum([len(piece.rows) for piece in work], dtype=np.int64)
    rows = int(ends[-1]) if len(ends) else 0
    t, keep = like(samples.t, rows), like(samples.keep, (rows, count))
    measured, predicted = like(samples.q, (rows, count)), like(samples.q, (rows, count))

    def one(k: int) -> None:
        piece, here = work[k], slice(int(ends[k]) - len(work[k].rows), int(ends[k]))
        found = equations.rows(piece)
        if seen is not None:
            seen(piece, found)
        keep[here] = found.keep
        t[here] = samples.t[piece.rows.start:piece.rows.stop:piece.rows.step]
        for j, columns in enumerate(equations.layout.columns):
            own = found.joint(j)
            known = 0.0 if found.known is None else found.known[j]
            measured[here, j], predicted[here, j] = own[-1] + known, beta[columns] @ own[:-1] + known

    side_by_side(one, range(len(work)), threads)
    step = max((piece.rows.step for piece in work), default=1)
    return Residuals(t, measured, predicted, keep, samples.rate / step, samples.source)


def torque_sums(part: Residuals) -> Array:
    """Return sums (dof, 6) of tau^2, tau, e^2, tau tau_hat, tau_hat^2 and 1 over the valid rows; e = tau - tau_hat."""
    found = np.zeros((part.keep.shape[1], 6))
    for start in range(0, len(part.t), PIECE):
        rows = slice(start, start + PIECE)
        keep = part.keep[rows]
        tau, hat = np.where(keep, part.measured[rows], 0.0), np.where(keep, part.predicted[rows], 0.0)
        found += np.stack([(tau ** 2).sum(axis=0), tau.sum(axis=0), ((tau - hat) ** 2).sum(axis=0),
                           (tau * hat).sum(axis=0), (hat ** 2).sum(axis=0), keep.sum(axis=0).astype(float)], axis=1)
    return found
