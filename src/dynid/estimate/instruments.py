"""The fold of [Z Y tau]: measured equations seen through noise-free instruments.

Z is the regressor along a motion without noise. Two columns of care, both needed when nothing is filtered:

- The sign of a noisy velocity is wrong near standstill in a way that no instrument repairs, for its error follows the
  true velocity. Columns that are no polynomial of the velocity (dry friction of any kind) are therefore computed from
  the measured velocity smoothed over a short window: its sign is right but for the few rows next to a reversal. (The
  instrument's own sign would do only where the simulated loop is exactly the machine's: at half its bandwidth it
  reverses late and takes two thirds of the dry friction with it. A dead zone loses the rows that tell dry from
  viscous friction.)
- A second difference of encoder steps has a huge deviation and almost no power at the frequencies of the motion. Summed
  against a smooth Z it cancels; at a jump of Z it does not. So Z is tapered instead of cut where rows are left out, and
  its dry columns are smoothed over a short window. Any such change keeps Z a valid instrument.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from dynid.arrays import Array, Bools
from dynid.model import LinearModel
from dynid.recording import Decimation, Samples
from dynid.recording.decimate import decimate_piece, reach
from dynid.regression.base import BaseParameters
from dynid.regression.equations import Layout
from dynid.regression.factor import triangular
from dynid.threads import pool, thread_count

WINDOW = 0.04  # s, over which instruments are tapered and their dry columns smoothed
_CHUNK = 8192  # rows worked on at once
_MEMORY = 400_000_000  # bytes of measured entries kept between iterations
LOW_RATE = 100.0  # Hz, at which residuals are judged: above the motion, below the noise of differences


@dataclass(frozen=True, eq=False)
class Columns:
    """Of one joint's equations: z (columns, rows) instruments, y (columns, rows) measured regressor, tau (rows,);
    clean (columns, rows): the regressor of the clean motion as it stands, where asked for; kept (rows,): how much of
    its instruments each row keeps."""

    z: Array
    y: Array
    tau: Array
    kept: Array
    clean: Array | None = None


@dataclass(frozen=True, eq=False)
class Shadow:
    """Measured equations beside the noise-free motion that stands in for them (same rows), and how much of Z each
    equation keeps: taper (samples, dof) between 0 and 1."""

    measured: Measured
    clean: Samples
    taper: Array


class Measured:
    """The entries of measured samples, dry columns from the smoothed velocity; kept where memory allows, as every
    iteration asks for them again. steady: the samples with that velocity."""

    def __init__(self, layout: Layout, samples: Samples, dry: Bools) -> None:
        self.layout, self.samples, self.dry = layout, samples, dry
        place = np.full_like(layout.place, -1)
        columns = layout.base.independent[dry]
        place[:, columns] = layout.place[:, columns]
        self.rows = place[place >= 0]
        self._only_dry = replace(layout, place=place)
        self.steady = replace(samples, dq=smoothed_velocity(samples))
        self._kept: dict[tuple[int, int], Array] = {}
        self._room = _MEMORY

    def entries(self, low: int, high: int) -> Array:
        """(layout.rows, high - low), as `Layout.entries`."""
        if (low, high) in self._kept:
            return self._kept[low, high]
        out = self.layout.entries(self.samples, slice(low, high))
        if len(self.rows):
            out[self.rows] = self._only_dry.entries(self.steady, slice(low, high))[self.rows]
        if out.nbytes <= self._room:
            self._kept[low, high] = out
            self._room -= out.nbytes
        return out


def smoothed_velocity(samples: Samples) -> Array:
    """Measured velocities (samples, dof) smoothed over the window, each segment by itself."""
    window, out = hann(samples), samples.dq.copy()
    for start, stop in samples.segments:
        if stop - start > len(window):
            for j in range(samples.dof):
                out[start:stop, j] = _smooth(samples.dq[start:stop, j], window)
    return out


def dry_columns(model: LinearModel, base: BaseParameters) -> Bools:
    """Which base columns are no polynomial of the velocity up to the second degree (base,)."""
    rng = np.random.default_rng(0)
    q, dq, ddq = rng.normal(size=(3, 20, model.dof))
    # The third difference over equal steps of any quadratic is zero; that of a sign or a Stribeck curve is not.
    y = [model.regressor(q, s * dq, ddq)[:, :, base.independent] for s in (-3.0, -1.0, 1.0, 3.0)]
    third = np.abs(y[3] - 3.0 * y[2] + 3.0 * y[1] - y[0]).max(axis=(0, 1))
    size = np.max([np.abs(x).max(axis=(0, 1)) for x in y], axis=0)
    return third > 1e-9 * np.maximum(size, 1e-300)


def hann(samples: Samples, length: float = WINDOW) -> Array:
    """Weights of a window of this length (s), odd in number, sum 1."""
    half = max(2, round(0.5 * length * samples.rate))
    weights = np.hanning(2 * half + 3)[1:-1]
    return weights / weights.sum()


def taper(samples: Samples, settled: float) -> Array:
    """(samples, dof): 1 inside the rows that count, falling smoothly to 0 where they end, 0 while the start is not yet
    forgotten. Gaps shorter than the window are bridged: noise makes them."""
    from scipy.ndimage import binary_closing

    window, out = hann(samples), np.zeros(samples.q.shape)
    for start, stop in samples.segments:
        for j in range(samples.dof):
            keep = samples.keep[start:stop, j].copy()
            keep[samples.t[start:stop] < samples.t[0] + settled] = False
            room = len(window)
            keep = binary_closing(np.pad(keep, room), np.ones(room, dtype=bool))[room:-room]
            out[start:stop, j] = keep
            out[[start, stop - 1], j] = 0.0  # a segment's own ends are borders too
    return soften(out > 0.0, samples)


def soften(mask: Bools, samples: Samples, length: float = WINDOW) -> Array:
    """A mask (samples, dof) with its ones falling to zero inside them, over a window (s); each segment by itself."""
    from scipy.ndimage import binary_erosion

    window, out = hann(samples, length), np.zeros(mask.shape)
    for start, stop in samples.segments:
        for j in range(mask.shape[1]):
            ones = binary_erosion(mask[start:stop, j], np.ones(len(window), dtype=bool), border_value=1)
            if stop - start > len(window):
                out[start:stop, j] = np.clip(_smooth(ones.astype(float), window), 0.0, 1.0)
    out[out < 1e-9] = 0.0
    return out


def equations(layout: Layout, shadow: Shadow, dry: Bools, decimation: Decimation | None,
              with_clean: bool = False) -> Iterator[list[Columns]]:
    """All equations in pieces, each a list with one entry a joint, decimated in parallel if asked."""
    samples = shadow.measured.samples
    window = hann(samples)
    margin = len(window) // 2 + (reach(decimation) if decimation else 0)
    step = decimation.total if decimation else 1
    for start, stop in samples.segments:
        grid = range(int(start), int(stop), step)
        for k in range(0, len(grid), max(1, _CHUNK // step)):
            rows = grid[k:k + max(1, _CHUNK // step)]
            low, high = max(rows[0] - margin, int(start)), min(rows[-1] + margin + 1, int(stop))
            part = slice(low, high)
            measured, clean = shadow.measured.entries(low, high), layout.entries(shadow.clean, part)
            z = clean.copy()
            for j in range(layout.model.dof):
                own = layout.joint(j)
                for r in np.flatnonzero(dry[layout.columns[j]]) + own.start:
                    z[r] = _smooth(z[r], window)
                z[own] *= shadow.taper[part, j]
            kinds = [z, measured, clean] if with_clean else [z, measured]
            if decimation:
                at, segment = np.array(rows), (int(start), int(stop))
                kinds = [decimate_piece(np.ascontiguousarray(x.T), decimation, at, low, segment).T for x in kinds]
            else:
                kinds = [x[:, rows[0] - low:rows[-1] + 1 - low] for x in kinds]
            yield [Columns(kinds[0][own][:-1], kinds[1][own][:-1], kinds[1][own][-1],
                           shadow.taper[rows.start:rows.stop:rows.step, j], kinds[2][own][:-1] if with_clean else None)
                   for j, own in enumerate(layout.joint(j) for j in range(layout.model.dof))]


def _smooth(x: Array, window: Array) -> Array:
    from scipy.signal import oaconvolve

    half = len(window) // 2
    return oaconvolve(np.pad(x, half, mode="edge"), window, mode="valid")


def fold_instruments(layout: Layout, shadows: list[Shadow], dry: Bools, threads: int | None = None) -> list[Array]:
    """Triangular factor of [Z_j Y_j tau_j] for each joint, (2 columns + 1) square, over all logs."""
    pieces = (piece for shadow in shadows
              for piece in equations(layout, shadow, dry, shadow.measured.samples.decimation))

    def one(piece: list[Columns]) -> list[Array]:
        return [triangular(np.vstack([c.z, c.y, c.tau[None]]).T) for c in piece]

    count = thread_count(threads)
    total: list[Array] | None = None
    for factors in map(one, pieces) if count <= 1 else pool(count).map(one, pieces):
        total = factors if total is None else [triangular(np.vstack(both)) for both in zip(total, factors, strict=True)]
    return total or []


def low_decimation(samples: Samples) -> Decimation | None:
    """How samples come down to the rate at which residuals are judged; None where they are there already."""
    if samples.decimation is not None:
        return samples.decimation
    factor = int(samples.rate // LOW_RATE)
    return Decimation(factor) if factor > 1 else None
