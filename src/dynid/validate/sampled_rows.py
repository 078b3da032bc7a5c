"""A few thousand rows of all logs, in which structure of the residuals is searched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from dynid.arrays import Array, Bools, Ints
from dynid.estimate import Estimate
from dynid.lapack import column_space
from dynid.order_statistics import median
from dynid.recording import Samples
from dynid.recording.decimate import decimate_piece, reach
from dynid.recording.excerpts import stretches
from dynid.regression.autocorrelation import autocovariance
from dynid.regression.derived import torque_equations
from dynid.regression.equations import Equations, Piece
from dynid.regression.residual_series import PIECE, Residuals, pieces_within
from dynid.validate.hypotheses.motions import lag_of_link, position_cutoff

ROWS = 4096  # largest number of rows per joint; more would only take longer
EXCERPT_ROWS = 131_072  # full-rate rows of all logs from which these are taken: two minutes at 1 kHz
BLOCKS = 8  # blocks of time for cross-validation
_DEPENDENT_SHARE = 1e-9  # singular value of a dependent direction, relative to the largest
_BACKLASH_OF_RANGE = 0.005  # share of a joint's range: backlash whose effect is searched


@dataclass(frozen=True, eq=False)
class SampledRows:
    """Decimated rows of some samples. All signals have the same decimation as the torques.

    Attributes:
        q, dq, ddq, signs: (m, dof), motion and signs of the velocity.
        turns, jerks: (m, dof), velocity and acceleration that backlash removes.
        rate: (m, dof), rate of the predicted torque, N m/s.
        course: (m,), -1 at the start of a log, 1 at its end.
        columns: (m, k_j), regressor columns of each joint.
        residual, predicted: (m, dof), torques.
        keep: (m, dof), rows of the fit in which the joint moves.
    """

    q: Array
    dq: Array
    ddq: Array
    signs: Array
    turns: Array
    jerks: Array
    rate: Array
    course: Array
    columns: tuple[Array, ...]
    residual: Array
    predicted: Array
    keep: Bools

    @property
    def measured(self) -> Array:
        return self.residual + self.predicted

    def blocks(self) -> Ints:
        """Index of the block of time of each row (m,)."""
        return np.arange(len(self.q)) * BLOCKS // max(len(self.q), 1)

    @cached_property
    def spans(self) -> tuple[Array | None, ...]:
        """Orthonormal basis (used rows, k) of each joint's regressor columns; None if it has too few rows."""
        return tuple(_span(own[keep]) for own, keep in zip(self.columns, self.keep.T, strict=True))

    @cached_property
    def inflation(self) -> float:
        """Ratio of standard errors to those for independent rows, from the residuals of each joint's own equations."""
        found = []
        for j, basis in enumerate(self.spans):
            if basis is None:
                continue
            rest = self.measured[self.keep[:, j], j]
            rest = rest - basis @ (basis.T @ rest)
            c = autocovariance(rest, np.ones(len(rest), dtype=bool))
            if c[0] > 0:
                found.append(np.sqrt(max(2.0 * c.sum() / c[0] - 1.0, 1.0)))
        return float(median(found)) if found else 1.0


def _span(columns: Array) -> Array | None:
    """Return an orthonormal basis of columns (m, k); None for too few rows or only zeros."""
    if len(columns) < 3 * columns.shape[1] + 10 or not columns.any():
        return None
    return column_space(columns, _DEPENDENT_SHARE)


@dataclass(frozen=True, eq=False)
class RowChoice:
    """About `ROWS` of the rows that the regression uses, evenly spread over an excerpt of all logs.

    Attributes:
        equations: equations of all logs.
        pieces: parts of the equations that are searched for structure.
        step: decimation of their rows.
        whole: whether these pieces are all equations.
    """

    equations: Equations
    pieces: tuple[Piece, ...]
    step: int
    whole: bool

    @staticmethod
    def from_logs(estimate: Estimate, logs: Sequence[Samples], equations: Equations | None = None) -> RowChoice:
        """Return the choice of rows for some logs. equations: of these logs and the estimate's model, if available."""
        equations = torque_equations(estimate.model, logs, estimate.base) if equations is None else equations
        pieces = equations.pieces(unit=PIECE)
        chosen = stretches(logs, max(EXCERPT_ROWS, ROWS * max(log.decimated_by for log in logs)))
        some = pieces if chosen is None else pieces_within(pieces, chosen)
        return RowChoice(equations, tuple(some), max(1, sum(len(piece.rows) for piece in some) // ROWS), chosen is None)

    @cached_property
    def taken(self) -> dict[Piece, Ints]:
        """Return which rows of each piece are used: every `step`-th of each log."""
        found, done = {}, dict.fromkeys(range(len(self.equations.logs)), 0)
        for piece in self.pieces:
            found[piece] = np.arange(-done[piece.log] % self.step, len(piece.rows), self.step)
            done[piece.log] += len(piece.rows)
        return found


def take_rows(choice: RowChoice, series: Sequence[Residuals], entries: Mapping[Piece, Array] | None) -> SampledRows:
    """Return the chosen rows. series: residuals of each log; entries: equations (k, rows) of each piece, if known."""
    if entries is None:
        entries = {piece: choice.equations.rows(piece).entries[:, own]
                   for piece, own in choice.taken.items() if len(own)}
    return _joined([_rows_of_log(choice, k, part, entries) for k, part in enumerate(series)
                    if any(piece.log == k for piece in choice.pieces)])


def _rows_of_log(choice: RowChoice, log: int, series: Residuals, entries: Mapping[Piece, Array]) -> SampledRows:
    """Return the rows of one log that are searched for structure."""
    samples, layout = choice.equations.logs[log], choice.equations.layout
    gaps = _BACKLASH_OF_RANGE * np.ptp(samples.q, axis=0)
    pieces = [(piece, own) for piece, own in choice.taken.items() if piece.log == log and len(own)]
    motion = np.concatenate([_motion(samples, piece, gaps)[own] for piece, own in pieces])
    q, dq, ddq, signs, turns, jerks = (np.ascontiguousarray(x) for x in np.split(motion, 6, axis=1))
    columns = tuple(np.ascontiguousarray(np.concatenate([entries[piece][layout.joint(j)][:-1] for piece, _ in pieces],
                                                        axis=1).T) for j in range(samples.dof))
    rows = np.searchsorted(series.t, samples.t[np.concatenate([np.array(piece.rows)[own] for piece, own in pieces])])
    before, after, t = np.maximum(rows - 1, 0), np.minimum(rows + 1, len(series.t) - 1), series.t[rows]
    rate = (series.predicted[after] - series.predicted[before]) / np.maximum(after - before, 1)[:, None] * series.rate
    course = 2.0 * (t - t[0]) / max(float(t[-1] - t[0]), 1e-12) - 1.0
    predicted = series.predicted[rows]
    return SampledRows(q, dq, ddq, signs, turns, jerks, rate, course, columns, series.measured[rows] - predicted,
                       predicted, series.keep[rows])


def _motion(samples: Samples, piece: Piece, gaps: Array) -> Array:
    """Return six signals of each joint (rows, 6 dof), with the same decimation as the equations: q, dq, ddq, the sign
    of dq, and the velocity and acceleration of the links that backlash `gaps` (dof,) would remove at reversals."""
    margin = 0 if samples.decimation is None else reach(samples.decimation)
    low, high = max(piece.rows[0] - margin, piece.segment[0]), min(piece.rows[-1] + margin + 1, piece.segment[1])
    part = slice(low, high)
    q, dq = samples.q[part], samples.dq[part]
    turns, jerks = np.zeros_like(dq), np.zeros_like(dq)
    whole, cutoff = np.array([[0, len(q)]]), position_cutoff(samples)
    for j, gap in enumerate(gaps):
        _, turns[:, j], jerks[:, j] = lag_of_link(q[:, j], gap, samples.rate, cutoff, whole)
    motion = np.concatenate([q, dq, samples.ddq[part], np.sign(dq), turns, jerks], axis=1)
    if samples.decimation is None:
        return motion[piece.rows.start - low:piece.rows.stop - low:piece.rows.step]
    return decimate_piece(motion, samples.decimation, np.array(piece.rows), low, piece.segment)


def _joined(parts: Sequence[SampledRows]) -> SampledRows:
    """Concatenate the rows of several logs."""
    if len(parts) == 1:
        return parts[0]
    joined: dict[str, Any] = {one.name: np.concatenate([getattr(part, one.name) for part in parts])
                              for one in fields(SampledRows) if one.name != "columns"}
    return SampledRows(columns=tuple(map(np.concatenate, zip(*(part.columns for part in parts), strict=True))),
                       **joined)
