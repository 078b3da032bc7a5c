"""Equations [Z Y tau]: measured equations together with their instruments, for `fold`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dynid.arrays import Array
from dynid.estimate.instruments.measured import Measured
from dynid.estimate.instruments.windows import hann, smooth
from dynid.recording import Samples
from dynid.regression import BaseParameters
from dynid.regression.equations import UNIT, Layout, Piece, Rows, piece_entries


@dataclass(frozen=True, eq=False)
class Instrumented:
    """Measured equations preceded by the instruments Z: the regressor along noise-free motions.

    motions: one per log, at the rows of its samples. tapers: factor on Z of each equation (samples, dof), between 0
    and 1. A row with zero Z has no influence.
    """

    measured: Measured
    motions: tuple[Samples, ...]
    tapers: tuple[Array, ...]

    @cached_property
    def base(self) -> BaseParameters:
        """The base parameters twice: columns of the instruments, then those of the regressor."""
        base = self.measured.base
        return replace(base, independent=np.tile(base.independent, 2), matrix=np.vstack([base.matrix, base.matrix]))

    @cached_property
    def layout(self) -> Layout:
        plain, behind = self.measured.layout, len(self.measured.base)
        return plain.with_columns([np.concatenate([own, behind + own]) for own in plain.columns])

    @property
    def joints(self) -> tuple[str, ...]:
        return self.measured.joints

    @property
    def logs(self) -> tuple[Samples, ...]:
        return self.measured.logs

    def pieces(self, stretches: int = 1, unit: int = UNIT) -> list[Piece]:
        return self.measured.pieces(stretches, unit)

    def rows(self, piece: Piece) -> Rows:
        measured, z, plain = self.measured.rows(piece), self.instruments(piece), self.measured.layout
        entries = np.vstack([part for j in range(len(self.joints))
                             for part in (z[plain.joint(j)][:-1], measured.joint(j))])
        return Rows(self.layout, entries, np.ones_like(measured.keep), measured.known)

    def instruments(self, piece: Piece) -> Array:
        """Return Z (rows of the measured layout, m) of a piece, tapered, with smoothed dry columns. Its torque rows
        are meaningless."""
        motion, taper, layout = self.motions[piece.log], self.tapers[piece.log], self.measured.layout
        window = hann(motion.rate)
        half = len(window) // 2

        def full(rows: slice) -> Array:
            low, high = max(rows.start - half, piece.segment[0]), min(rows.stop + half, piece.segment[1])
            z = layout.entries(motion, slice(low, high))
            for r in self.measured.dry_rows:
                z[r] = smooth(z[r], window)
            z = z[:, rows.start - low:rows.stop - low]
            for j in range(len(self.joints)):
                z[layout.joint(j)] *= taper[rows, j]
            return z

        return piece_entries(self.logs[piece.log], piece, full)

    def along_motion(self, piece: Piece) -> Array:
        """Return the regressor along the motion (rows of the measured layout, m) of a piece."""
        motion = self.motions[piece.log]
        return piece_entries(self.logs[piece.log], piece, lambda rows: self.measured.layout.entries(motion, rows))

    def taper(self, piece: Piece) -> Array:
        """Return the factor on the instruments of each row of a piece (m, dof), between 0 and 1."""
        return self.tapers[piece.log][piece.rows.start:piece.rows.stop:piece.rows.step]
