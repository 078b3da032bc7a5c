"""Measured: the equations of a log as measured, dry columns from the smoothed velocity."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynid.arrays import Array, Bools
from dynid.estimate.instruments.windows import smoothed_velocity
from dynid.model import LinearModel
from dynid.recording import Samples
from dynid.regression.base import BaseParameters
from dynid.regression.equations import Layout

_MEMORY = 400_000_000  # bytes of measured entries kept between iterations


def dry_columns(model: LinearModel, base: BaseParameters) -> Bools:
    """Which base columns are no polynomial of the velocity up to the second degree (base,)."""
    rng = np.random.default_rng(0)
    q, dq, ddq = rng.normal(size=(3, 20, model.dof))
    # The third difference over equal steps of any quadratic is zero; that of a sign or a Stribeck curve is not.
    y = [model.regressor(q, s * dq, ddq)[:, :, base.independent] for s in (-3.0, -1.0, 1.0, 3.0)]
    third = np.abs(y[3] - 3.0 * y[2] + 3.0 * y[1] - y[0]).max(axis=(0, 1))
    size = np.max([np.abs(x).max(axis=(0, 1)) for x in y], axis=0)
    return third > 1e-9 * np.maximum(size, 1e-300)


class Measured:
    """The entries of measured samples, dry columns (base,) from the smoothed velocity; kept where memory allows, as
    every iteration asks for them again. steady: the samples with that velocity."""

    def __init__(self, layout: Layout, samples: Samples, dry: Bools) -> None:
        self.layout, self.samples, self.dry = layout, samples, dry
        place = np.full_like(layout.place, -1)
        columns = layout.base.independent[dry]
        place[:, columns] = layout.place[:, columns]
        self.dry_rows = place[place >= 0]
        self.steady = replace(samples, dq=smoothed_velocity(samples))
        self._only_dry = replace(layout, place=place)
        self._kept: dict[tuple[int, int], Array] = {}
        self._room = _MEMORY

    def entries(self, low: int, high: int) -> Array:
        """(layout.rows, high - low), as `Layout.entries`."""
        if (low, high) in self._kept:
            return self._kept[low, high]
        out = self.layout.entries(self.samples, slice(low, high))
        if len(self.dry_rows):
            out[self.dry_rows] = self._only_dry.entries(self.steady, slice(low, high))[self.dry_rows]
        if out.nbytes <= self._room:
            self._kept[low, high] = out
            self._room -= out.nbytes
        return out
