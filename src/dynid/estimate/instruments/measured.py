"""Equations of logs as measured, with the regressor columns of dry friction at the smoothed velocity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dynid.arrays import Array
from dynid.estimate.discontinuous_columns import dry_columns
from dynid.estimate.instruments.windows import smoothed_velocity
from dynid.model import LinearModel
from dynid.recording import Samples
from dynid.regression import BaseParameters, TorqueEquations
from dynid.regression.equations import UNIT, Layout, Piece, Rows, piece_entries

_MAX_CACHED_BYTES = 400_000_000  # bytes of measured entries kept between iterations


class Measured:
    """Torque equations whose dry friction columns use the smoothed velocity.

    They are cached if memory allows, because every iteration uses them.

    Attributes:
        steady: the logs with the smoothed velocity.
        dry_rows: rows of the dry friction columns in the layout.
    """

    def __init__(self, model: LinearModel, base: BaseParameters, logs: Sequence[Samples]) -> None:
        self.torques = TorqueEquations.of(model, logs, base)
        self.steady = tuple(replace(log, dq=smoothed_velocity(log)) for log in logs)
        layout = self.torques.layout
        place = np.full_like(layout.place, -1)
        columns = base.independent[dry_columns(model, base)]
        place[:, columns] = layout.place[:, columns]
        self.dry_rows = place[place >= 0]
        self._only_dry = replace(layout, place=place)
        self._kept: dict[Piece, Rows] = {}
        self._room = _MAX_CACHED_BYTES

    @property
    def base(self) -> BaseParameters:
        return self.torques.base

    @property
    def layout(self) -> Layout:
        return self.torques.layout

    @property
    def joints(self) -> tuple[str, ...]:
        return self.torques.joints

    @property
    def logs(self) -> tuple[Samples, ...]:
        return self.torques.logs

    def pieces(self, stretches: int = 1, unit: int = UNIT) -> list[Piece]:
        return self.torques.pieces(stretches, unit)

    def rows(self, piece: Piece) -> Rows:
        if piece in self._kept:
            return self._kept[piece]
        found = self.torques.rows(piece)
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
