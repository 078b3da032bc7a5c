"""Measured equations beside their instruments, in pieces, and the fold of [Z Y tau]."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from dynid.arrays import Array
from dynid.estimate.instruments.measured import Measured
from dynid.estimate.instruments.windows import hann, smooth
from dynid.recording import Decimation, Samples
from dynid.recording.decimate import decimate_piece, reach
from dynid.regression.equations import Layout, Piece, log_pieces
from dynid.regression.factor import triangular
from dynid.threads import side_by_side

_CHUNK = 8192  # rows worked on at once


@dataclass(frozen=True, eq=False)
class Instrumented:
    """The measured equations of one log beside a motion without noise at the same rows, whose regressor gives the
    instruments Z, and how much of Z each equation keeps: taper (samples, dof) between 0 and 1."""

    measured: Measured
    motion: Samples
    taper: Array

    @property
    def layout(self) -> Layout:
        return self.measured.layout

    def instruments(self, low: int, high: int) -> Array:
        """Z (layout.rows, high - low): entries along the motion, dry columns smoothed, tapered."""
        z, window = self.layout.entries(self.motion, slice(low, high)), hann(self.motion.rate)
        for r in self.measured.dry_rows:
            z[r] = smooth(z[r], window)
        for j in range(self.layout.model.dof):
            z[self.layout.joint(j)] *= self.taper[low:high, j]
        return z

    def cut(self, decimation: Decimation | None) -> list[Piece]:
        """The rows of all equations in pieces, after decimation."""
        return log_pieces(replace(self.measured.samples, decimation=decimation), unit=_CHUNK)

    def at(self, piece: Piece, decimation: Decimation | None, *kinds: Callable[[int, int], Array]) -> list[Array]:
        """Entries (layout.rows, m) of a piece, of each kind: a function of the first row and that behind the last;
        decimated in parallel if asked."""
        rows, segment = piece.rows, piece.segment
        margin = len(hann(self.motion.rate)) // 2 + (reach(decimation) if decimation else 0)
        low, high = max(rows[0] - margin, segment[0]), min(rows[-1] + margin + 1, segment[1])
        full = [entries(low, high) for entries in kinds]
        if decimation is None:
            return [x[:, rows[0] - low:rows[-1] + 1 - low] for x in full]
        return [decimate_piece(np.ascontiguousarray(x.T), decimation, np.array(rows), low, segment).T for x in full]


def fold_instruments(logs: Sequence[Instrumented], threads: int | None = None) -> list[Array]:
    """Triangular factor of [Z_j Y_j tau_j] for each joint, (2 columns + 1) square, over all logs."""
    work = [(log, piece) for log in logs for piece in log.cut(log.measured.samples.decimation)]

    def one(item: tuple[Instrumented, Piece]) -> list[Array]:
        log, piece = item
        z, y = log.at(piece, log.measured.samples.decimation, log.instruments, log.measured.entries)
        joints = [log.layout.joint(j) for j in range(log.layout.model.dof)]
        return [triangular(np.vstack([z[own][:-1], y[own]]).T) for own in joints]

    def add(total: list[Array], more: list[Array]) -> list[Array]:
        return [triangular(np.vstack(both)) for both in zip(total, more, strict=True)]

    return reduce(add, side_by_side(one, work, threads))
