"""Causal preparation of raw positions and torques into rows of a regression, with a known delay.

Positions are resampled to a uniform grid and filtered by kernels that give the motion. The entries of the regressor
along this motion and the torques then pass the same filter, so that steps of dry friction are smoothed alike in both.
Regressor and torques are decimated afterwards (Janot, Vandanjon, Gautier, s. 2). `CausalFilter` has the kernels:

    low pass    position, velocity and acceleration; the regressor and the torques by the same low-pass
    momentum    position and velocity; momentum by g', force and torque by a kernel g, as in `FilteredEquations`
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from dynid.arrays import Array, Bools
from dynid.recording.preparation.row_filter import RowFilter
from dynid.signals import at_times

_LOWPASS_PERIODS = 1.25  # periods of the cut-off: half the length of a low-pass kernel
_FLATTENING_TERMS = 3  # even powers of the factor that flattens a low-pass kernel; more would amplify noise
_FLAT_SHARE, _GRID = 0.4, 40  # share of the cut-off up to which the gain is one, and frequencies at which it is fitted
_ROWS_PER_CYCLE = 2.5  # rows kept per second and Hz of the cut-off
STOPS = 0.01  # share of a joint's top speed below which the rows of the joint are not used

Entries = Callable[..., tuple[Array, ...]]  # q, dq, .., tau (m, dof) -> rows (entries, m), one array per kernel


def low_pass_kernel(cutoff: float, rate: float) -> Array:
    """Return a symmetric low-pass (odd,) with sum one and gain 1/2 at the cut-off (Hz): a sinc with a Kaiser window.

    A polynomial factor makes the gain one in the band of the motion, in least squares with weights 1 / frequency^2,
    because motions have larger amplitudes at lower frequencies. The ripple of a truncated sinc, half a percent there,
    would bias the parameters by ten standard errors where the cut-off is low.
    """
    half = max(2, round(_LOWPASS_PERIODS * rate / cutoff))
    k = np.arange(-half, half + 1)
    kernel = np.sinc(2.0 * cutoff / rate * k) * np.kaiser(2 * half + 1, 5.0)
    parts = kernel * np.vander((k / half) ** 2, _FLATTENING_TERMS, increasing=True).T
    shares = _FLAT_SHARE * np.linspace(0.0, 1.0, _GRID + 1)[1:]
    gains = np.cos(2.0 * np.pi * cutoff / rate * np.outer(shares, k)) @ parts.T
    flat = np.linalg.lstsq(gains / shares[:, None] ** 2, shares ** -2.0, rcond=None)[0] @ parts
    return np.asarray(flat / flat.sum())


def derivative_kernels(kernel: Array, rate: float) -> tuple[Array, Array, Array]:
    """Return a smoothing kernel and kernels of the first and second derivative (differences of fourth order). kernel:
    smoothing kernel (odd,). rate: sampling rate, Hz. All three results are (odd + 4,)."""
    first = rate / 12.0 * np.array([-1.0, 8.0, 0.0, -8.0, 1.0])  # as convolved: the newest sample first
    second = rate ** 2 / 12.0 * np.array([-1.0, 16.0, -30.0, 16.0, -1.0])
    return (np.convolve(kernel, [0.0, 0.0, 1.0, 0.0, 0.0]), np.convolve(kernel, first), np.convolve(kernel, second))


@dataclass(frozen=True, eq=False)
class CausalFilter:
    """Kernels that compute the rows of a regression from raw samples on a uniform grid.

    Attributes:
        rate: Rate of the grid, Hz.
        motion: Kernels (taps,) of the position and its derivatives, all of one length, the newest sample first.
        motion_late: Delay of the filtered motion in samples.
        rows: Kernels (lags,), one for each array that an `Entries` function returns, all of one length, the oldest
            sample first; a row is the sum of the filtered arrays.
        late: Number of samples from the time of a row to its newest sample.
        step: Decimation: one row is kept per `step` samples.
    """

    rate: float
    motion: tuple[Array, ...]
    motion_late: int
    rows: tuple[Array, ...]
    late: int
    step: int

    @staticmethod
    def low_pass(cutoff: float, rate: float) -> CausalFilter:
        """Return a filter with accelerations by differences, and one low-pass (cut-off in Hz) for motion and rows."""
        kernel = low_pass_kernel(cutoff, rate)
        motion, step = derivative_kernels(kernel, rate), max(1, int(rate / (_ROWS_PER_CYCLE * cutoff)))
        return CausalFilter(rate, motion, len(motion[0]) // 2, (kernel,), len(kernel) // 2, step)

    @staticmethod
    def momentum(row_filter: RowFilter) -> CausalFilter:
        """Return a filter for momentum and force, without accelerations."""
        motion, rate = row_filter.motion, row_filter.rate
        return CausalFilter(rate, (motion.taps(rate), motion.taps(rate, 1)), round(motion.delay_s * rate),
                            (row_filter.rates[::-1], row_filter.taps[::-1]), row_filter.late, row_filter.step)

    @property
    def delay(self) -> float:
        """Delay of an equation row relative to the newest sample, s."""
        return (self.motion_late + self.late) / self.rate


class TimedRows(NamedTuple):
    """Rows of a regression: t (n,), s, the time of each; entries (rows, n); keep (n, dof): mask of used equations."""

    t: Array
    entries: Array
    keep: Bools


class Grid:
    """Resampling of one segment of a stream to a uniform grid of `rate` Hz, which begins at time stamp `start` (s)."""

    def __init__(self, rate: float) -> None:
        self.rate, self.start = rate, 0.0
        self._raw: tuple[Array, Array, Array] | None = None  # time stamp, q, tau of the last raw sample
        self._count = 0  # number of grid points so far

    def push(self, t: Array, q: Array, tau: Array) -> tuple[Array, Array] | None:
        """Add raw time stamps (m,), positions and torques (m, dof); return positions and torques (n, dof) at the grid
        points that they complete, or None."""
        if self._raw is None:
            self.start = float(t[0])
        else:
            t, q, tau = (np.concatenate([old, new]) for old, new in zip(self._raw, (t, q, tau), strict=True))
        self._raw = (t[-1:], q[-1:], tau[-1:])
        last = int(np.floor((float(t[-1]) - self.start) * self.rate + 1e-9))
        if last < self._count:
            return None
        at = self.start + np.arange(self._count, last + 1) / self.rate
        self._count = last + 1
        return at_times(at, t, q), at_times(at, t, tau)


class CausalRows:
    """Conversion of the raw samples of one segment to rows of the regression, with a delay of `filter.delay` seconds.

    Args:
        entries: function that computes the entries of the regressor along a motion.
        causal_filter: kernels of motion and rows.
        slow: speed below which a joint's row is not used, rad/s or m/s; None for 1 % of the top speed so far.
        top: top speeds so far (dof,), which are updated.
        stands: largest share of a row's window, weighted by the last kernel, in which its joint may be slow.
    """

    def __init__(self, entries: Entries, causal_filter: CausalFilter, slow: float | None, top: Array,
                 stands: float = np.inf) -> None:
        self.entries, self.filter, self.slow, self.top, self.stands = entries, causal_filter, slow, top, stands
        self._grid, dof = Grid(causal_filter.rate), len(top)
        self._reach = len(causal_filter.motion[0]) - 1
        self._motion: tuple[Array, Array] | None = None  # positions and torques on the grid
        self._held: list[Array] = []  # entries (m, rows) for future rows
        self._speeds, self._tops = np.zeros((0, dof)), np.zeros((0, dof))
        self._first = 0  # index on the grid of the first stored entry

    def push(self, t: Array, q: Array, tau: Array) -> TimedRows | None:
        """Add raw samples of the segment; return the rows that they complete, or None.

        t: time stamps (m,), s. q: positions (m, dof), or (m, 2 dof) with commanded ones. tau: torques (m, dof).
        """
        resampled = self._grid.push(t, q, tau)
        if resampled is None:
            return None
        positions, torques = resampled if self._motion is None else (
            np.concatenate(both) for both in zip(self._motion, resampled, strict=True))
        reach, late = self._reach, self.filter.motion_late
        self._motion = positions[-reach:], torques[-reach:]
        if len(positions) <= reach:
            return None
        motion = [convolved(positions, kernel) for kernel in self.filter.motion]
        motion.append(torques[reach - late:len(torques) - late])
        speeds = motion[1][:, :len(self.top)]
        tops = np.maximum.accumulate(np.concatenate([self.top[None], np.abs(speeds)]))[1:]
        self.top[:] = tops[-1]
        new = [rows.T for rows in self.entries(*(np.ascontiguousarray(x) for x in motion))]
        self._held = [np.concatenate(both) for both in zip(self._held, new, strict=True)] if self._held else new
        self._speeds = np.concatenate([self._speeds, speeds])
        self._tops = np.concatenate([self._tops, tops])
        return self._rows()

    def _rows(self) -> TimedRows | None:
        """Return the decimated rows whose samples have all arrived, or None if there are none."""
        kernels, step = self.filter.rows, self.filter.step
        reach, first = len(kernels[0]) - 1, -(-self._first // step) * step - self._first
        starts = np.arange(first, len(self._speeds) - reach, step)
        if not len(starts):
            return None
        middle = starts + reach - self.filter.late
        entries = np.array([_filtered(kernels, self._held, k, reach) for k in starts.tolist()])
        least = STOPS * self._tops[starts + reach] if self.slow is None else np.full((len(starts), 1), self.slow)
        keep = np.abs(self._speeds[middle]) >= least
        if np.isfinite(self.stands):
            keep &= np.array([np.abs(kernels[-1]) @ (np.abs(self._speeds[k:k + reach + 1]) < low)
                              for k, low in zip(starts, least, strict=True)]) <= self.stands
        late = self._reach - self.filter.motion_late
        t = self._grid.start + (self._first + middle + late) / self.filter.rate
        dropped = int(starts[-1]) + 1
        self._held, self._first = [x[dropped:] for x in self._held], self._first + dropped
        self._speeds, self._tops = self._speeds[dropped:], self._tops[dropped:]
        return TimedRows(t, np.ascontiguousarray(entries.T), keep)


def _filtered(kernels: tuple[Array, ...], held: list[Array], start: int, reach: int) -> Array:
    """Return the filtered entries (rows,) of one time: the sum of each kernel applied to its entries (m, rows). start:
    index of the first entry of the window. reach: length of the window in entries, minus one."""
    row = kernels[0] @ held[0][start:start + reach + 1]
    for kernel, entries in zip(kernels[1:], held[1:], strict=True):
        row += kernel @ entries[start:start + reach + 1]
    return np.asarray(row)


def convolved(x: Array, kernel: Array) -> Array:
    """Return the convolution (rows - taps + 1, columns) of x (rows, columns) with a kernel (taps,), along the rows."""
    return np.asarray(sliding_window_view(x, len(kernel), axis=0) @ kernel[::-1])
