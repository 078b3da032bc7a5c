"""Equations [Z Y tau] for instrumental variables: instruments Z, measured regressor Y with smoothed dry friction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dynid.arrays import Array, Bools
from dynid.model import LinearModel
from dynid.recording import Samples
from dynid.regression import BaseParameters, TorqueEquations
from dynid.regression.base import dry_columns
from dynid.regression.derived import Derived
from dynid.regression.equations import Layout, Piece, Rows, piece_entries


def doubled_base(base: BaseParameters) -> BaseParameters:
    """Return the base parameters listed twice: for the columns of the instruments, and for those of the regressor."""
    return replace(base, independent=np.tile(base.independent, 2), matrix=np.vstack([base.matrix, base.matrix]))


def instrumented_layout(plain: Layout) -> Layout:
    """Return the layout of equations [Z_j Y_j tau_j] of each joint j: instruments, regressor columns, torque."""
    return plain.with_columns([np.concatenate([own, len(plain.base) + own]) for own in plain.columns])


def instrumented_entries(plain: Layout, instruments: Array, measured: Array) -> Array:
    """Return the rows (layout.rows, m) of `instrumented_layout`, from the regressors along both motions."""
    return np.vstack([part for j in range(len(plain.columns))
                      for part in (instruments[plain.joint(j)][:-1], measured[plain.joint(j)])])


@dataclass(frozen=True, eq=False)
class Instrumented(Derived):
    """Measured equations [Z Y tau] with instruments Z, which are the regressor along noise-free motions.

    motions: one per log, at the rows of its samples. tapers: factor on Z of each equation (samples, dof), between 0
    and 1. A row with zero Z has no influence.
    """

    equations: Measured
    motions: tuple[Samples, ...]
    tapers: tuple[Array, ...]

    @cached_property
    def base(self) -> BaseParameters:
        return doubled_base(self.equations.base)

    @cached_property
    def layout(self) -> Layout:
        return instrumented_layout(self.equations.layout)

    def rows(self, piece: Piece) -> Rows:
        measured = self.equations.rows(piece)
        entries = instrumented_entries(self.equations.layout, self.instruments(piece), measured.entries)
        return Rows(self.layout, entries, np.ones_like(measured.keep), measured.known)

    def instruments(self, piece: Piece) -> Array:
        """Return the tapered instruments Z of a piece (layout.rows, samples), with smoothed dry friction columns."""
        motion, taper, layout = self.motions[piece.log], self.tapers[piece.log], self.equations.layout
        window = hann(motion.rate)
        half = len(window) // 2

        def full(rows: slice) -> Array:
            low, high = max(rows.start - half, piece.segment[0]), min(rows.stop + half, piece.segment[1])
            z = layout.entries(motion, slice(low, high))
            for r in self.equations.dry_rows:
                z[r] = smooth(z[r], window)
            z = z[:, rows.start - low:rows.stop - low]
            for j in range(len(self.joints)):
                z[layout.joint(j)] *= taper[rows, j]
            return z

        return piece_entries(self.logs[piece.log], piece, full)

    def along_motion(self, piece: Piece) -> Array:
        """Return the regressor columns (layout.rows, m) of a piece along its noise-free motion, without tapering."""
        motion = self.motions[piece.log]
        return piece_entries(self.logs[piece.log], piece, lambda rows: self.equations.layout.entries(motion, rows))

    def taper(self, piece: Piece) -> Array:
        """Return the factor (m, dof), between 0 and 1, on the instruments of a piece."""
        return self.tapers[piece.log][piece.rows.start:piece.rows.stop:piece.rows.step]


_MAX_CACHED_BYTES = 400_000_000  # bytes of measured entries kept between iterations


class Measured(Derived):
    """Torque equations whose dry friction columns use the smoothed velocity.

    They are cached if memory allows, because every iteration uses them.

    Attributes:
        steady: the logs with the smoothed velocity.
        dry_rows: rows of the dry friction columns in the layout.
    """

    def __init__(self, model: LinearModel, base: BaseParameters, logs: Sequence[Samples]) -> None:
        super().__init__(TorqueEquations.from_model(model, logs, base))
        self.steady = tuple(replace(log, dq=smoothed_velocity(log)) for log in logs)
        layout = self.layout
        place = np.full_like(layout.place, -1)
        columns = base.independent[dry_columns(model, base)]
        place[:, columns] = layout.place[:, columns]
        self.dry_rows = place[place >= 0]
        self._only_dry = replace(layout, place=place)
        self._kept: dict[Piece, Rows] = {}
        self._room = _MAX_CACHED_BYTES

    def rows(self, piece: Piece) -> Rows:
        if piece in self._kept:
            return self._kept[piece]
        found = self.equations.rows(piece)
        if len(self.dry_rows):
            found.entries[self.dry_rows] = self.dry_entries(piece, self.steady[piece.log])
        if found.entries.nbytes <= self._room:
            self._kept[piece] = found
            self._room -= found.entries.nbytes
        return found

    def dry_entries(self, piece: Piece, motion: Samples) -> Array:
        """Return the dry friction columns (dry rows, m) of a piece at the velocities of a motion.

        The motion is at the rows of the log's samples.
        """
        return piece_entries(motion, piece, lambda rows: self._only_dry.entries(motion, rows)[self.dry_rows])


WINDOW = 0.04  # s, over which instruments are tapered and their dry columns smoothed


def hann(rate: float, length: float = WINDOW) -> Array:
    """Return the weights of a Hann window of `length` seconds at `rate` Hz; their number is odd and their sum is 1."""
    half = max(2, round(0.5 * length * rate))
    weights = np.hanning(2 * half + 3)[1:-1]
    return weights / weights.sum()


def smooth(x: Array, window: Array) -> Array:
    """Return a series (rows,) averaged with the weights of a window, with constant extrapolation at the ends."""
    from scipy.signal import oaconvolve

    return oaconvolve(np.pad(x, len(window) // 2, mode="edge"), window, mode="valid")


def smoothed_velocity(samples: Samples) -> Array:
    """Return the measured velocities (samples, dof), smoothed by a short Hann window."""
    window, out = hann(samples.rate), samples.dq.copy()
    for start, stop in samples.segments:
        if stop - start > len(window):
            for j in range(samples.dof):
                out[start:stop, j] = smooth(samples.dq[start:stop, j], window)
    return out


def taper(samples: Samples, dropped: float) -> Array:
    """Return weights (samples, dof) of instruments: 1 in valid samples, decreasing smoothly to 0 at their ends, and 0
    in the first `dropped` seconds. Gaps shorter than the window are ignored, since noise causes them."""
    from scipy.ndimage import binary_closing

    size, out = len(hann(samples.rate)), np.zeros(samples.q.shape)
    for start, stop in samples.segments:
        for j in range(samples.dof):
            keep = samples.keep[start:stop, j].copy()
            keep[samples.t[start:stop] < samples.t[0] + dropped] = False
            out[start:stop, j] = binary_closing(np.pad(keep, size), np.ones(size, dtype=bool))[size:-size]
            out[[start, stop - 1], j] = 0.0  # a segment's own ends are borders too
    return soften(out > 0.0, samples)


def soften(mask: Bools, samples: Samples, length: float = WINDOW) -> Array:
    """Return a mask (samples, dof) as weights that decrease smoothly to 0 at the ends of intervals, over `length` s."""
    from scipy.ndimage import binary_erosion

    window, out = hann(samples.rate, length), np.zeros(mask.shape)
    for start, stop in samples.segments:
        for j in range(mask.shape[1]):
            ones = binary_erosion(mask[start:stop, j], np.ones(len(window), dtype=bool), border_value=1)
            if stop - start > len(window):
                out[start:stop, j] = np.clip(smooth(ones.astype(float), window), 0.0, 1.0)
    out[out < 1e-9] = 0.0
    return out
