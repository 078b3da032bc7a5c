"""Causal preparation: raw positions and torques to rows of a regression, with a delay that is known.

Positions go to a uniform grid by their stamps, through a symmetric low-pass and differences of fourth order; rows of
the regressor and torques then go through the same low-pass together (parallel decimation, Janot, Vandanjon, Gautier,
s. 2), so that steps of dry friction are treated alike in both, and one in so many is kept. Both kernels are symmetric:
all signals are late by the same, and nothing is distorted by phase.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from dynid.arrays import Array, Bools

_PERIODS = 1.25  # of the cut-off, half the length of a low-pass
_ROWS = 2.5  # a second and Hz of the cut-off, that are kept
STOPS = 0.01  # share of the top speed below which a joint's row is left out

Entries = Callable[[Array, Array, Array, Array], Array]  # q, dq, ddq, tau (m, dof) -> rows (layout.rows, m)


def low_pass_kernel(cutoff: float, rate: float) -> Array:
    """A symmetric low-pass (odd,) with sum one and gain 1/2 at the cut-off (Hz): a sinc under a Kaiser window."""
    half = max(2, round(_PERIODS * rate / cutoff))
    k = np.arange(-half, half + 1)
    kernel = np.sinc(2.0 * cutoff / rate * k) * np.kaiser(2 * half + 1, 5.0)
    return kernel / kernel.sum()


def derivative_kernels(kernel: Array, rate: float) -> tuple[Array, Array, Array]:
    """The kernel, and it with first and second differences of fourth order, all (odd + 4,)."""
    first = rate / 12.0 * np.array([-1.0, 8.0, 0.0, -8.0, 1.0])  # as convolved, the newest sample first
    second = rate ** 2 / 12.0 * np.array([-1.0, 16.0, -30.0, 16.0, -1.0])
    return (np.convolve(kernel, [0.0, 0.0, 1.0, 0.0, 0.0]), np.convolve(kernel, first), np.convolve(kernel, second))


class Grid:
    """The uniform grid of one run, at `rate` Hz from its first stamp."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self._raw: tuple[Array, Array, Array] | None = None  # stamp, q, tau of the last raw sample
        self._start, self._count = 0.0, 0  # first stamp, and grid points so far

    def push(self, t: Array, q: Array, tau: Array) -> tuple[Array, Array] | None:
        """Raw samples (m,), (m, dof), (m, dof), and positions and torques (n, dof) at the grid points they reach; None
        for none."""
        if self._raw is None:
            self._start = float(t[0])
        else:
            t, q, tau = (np.concatenate([old, new]) for old, new in zip(self._raw, (t, q, tau), strict=True))
        self._raw = (t[-1:], q[-1:], tau[-1:])
        last = int(np.floor((float(t[-1]) - self._start) * self.rate + 1e-9))
        if last < self._count:
            return None
        at = self._start + np.arange(self._count, last + 1) / self.rate
        self._count = last + 1
        return _interpolated(at, t, q), _interpolated(at, t, tau)


class GridMotion:
    """Motion of one run: raw samples in, positions and their derivatives at grid points out, each by one of the kernels
    (taps,), all of one length; torques of `late` points before. top (dof,): the top speed so far, kept up."""

    def __init__(self, rate: float, kernels: Sequence[Array], late: int, top: Array) -> None:
        self.kernels, self.late, self.top = tuple(kernels), late, top
        self._grid, self._reach = Grid(rate), len(kernels[0]) - 1
        self._q, self._tau = np.zeros((0, len(top))), np.zeros((0, len(top)))

    def push(self, t: Array, q: Array, tau: Array) -> tuple[list[Array], Array] | None:
        """Raw samples (m,), (m, dof), (m, dof), and q, dq, .., tau (n, dof) of the points that they complete, with the
        top speed so far at each (n, dof), however they came in blocks; None for none."""
        found = self._grid.push(t, q, tau)
        if found is None:
            return None
        self._q, self._tau = np.vstack([self._q, found[0]]), np.vstack([self._tau, found[1]])
        reach = self._reach
        if len(self._q) <= reach:
            return None
        motion = [convolved(self._q, kernel) for kernel in self.kernels]
        motion.append(self._tau[reach - self.late:len(self._tau) - self.late])
        self._q, self._tau = self._q[-reach:], self._tau[-reach:]
        tops = np.maximum.accumulate(np.vstack([self.top, np.abs(motion[1])]))[1:]
        self.top[:] = tops[-1]
        return [np.ascontiguousarray(x) for x in motion], tops


class CausalRows:
    """Rows of one run: raw samples in, rows of the regression out, `delay` seconds late.

    rate: of the grid, cutoff: of both low-passes, Hz. slow: rad/s or m/s, None for a hundredth of the top speed so far.
    top (dof,): that speed. stands: share of a row, as the low-pass weighs it, in which its joint may be slow: friction
    of a joint that stands can be anything.
    """

    def __init__(self, entries: Entries, rate: float, cutoff: float, slow: float | None, top: Array,
                 stands: float = np.inf) -> None:
        self.entries, self.rate, self.slow, self.stands = entries, rate, slow, stands
        kernel = low_pass_kernel(cutoff, rate)
        self.kernel, self.kernels = kernel, derivative_kernels(kernel, rate)
        self.step = max(1, int(rate / (_ROWS * cutoff)))
        self.delay = (len(self.kernels[0]) // 2 + len(kernel) // 2) / rate
        self._motion = GridMotion(rate, self.kernels, len(self.kernels[0]) // 2, top)
        self._rows, self._speeds, self._row = np.zeros((0, 0)), np.zeros((0, len(top))), 0
        self._tops = np.zeros((0, len(top)))  # top speed so far at each of these rows

    def push(self, t: Array, q: Array, tau: Array) -> tuple[Array, Bools] | None:
        """Raw samples (m,), (m, dof), (m, dof) of the run, and the rows (layout.rows, n) they complete with which of
        them count (n, dof); None for none."""
        found = self._motion.push(t, q, tau)
        if found is None:
            return None
        motion, tops = found
        rows = self.entries(*motion).T
        self._rows = rows if not len(self._rows) else np.vstack([self._rows, rows])
        self._speeds, self._tops = np.vstack([self._speeds, motion[1]]), np.vstack([self._tops, tops])
        return self._decimated()

    def _decimated(self) -> tuple[Array, Bools] | None:
        """One row in `step`, low-passed with torques and all."""
        reach, have = len(self.kernel) - 1, len(self._rows)
        first = -(-self._row // self.step) * self.step - self._row  # of the windows that are asked for
        starts = np.arange(first, have - reach, self.step)
        if not len(starts):
            return None
        found = np.array([self.kernel @ self._rows[k:k + reach + 1] for k in starts])
        least = STOPS * self._tops[starts + reach] if self.slow is None else np.full((len(starts), 1), self.slow)
        keep = np.abs(self._speeds[starts + reach // 2]) >= least
        if np.isfinite(self.stands):
            keep &= np.array([np.abs(self.kernel) @ (np.abs(self._speeds[k:k + reach + 1]) < low)
                              for k, low in zip(starts, least, strict=True)]) <= self.stands
        gone = int(starts[-1]) + 1
        self._rows, self._speeds, self._tops = self._rows[gone:], self._speeds[gone:], self._tops[gone:]
        self._row += gone
        return np.ascontiguousarray(found.T), keep


def _interpolated(at: Array, t: Array, x: Array) -> Array:
    return np.column_stack([np.interp(at, t, column) for column in x.T])


def convolved(x: Array, kernel: Array) -> Array:
    """(rows - len(kernel) + 1, columns): kernel on every window of x (rows, columns), its first entry on the newest."""
    return np.asarray(sliding_window_view(x, len(kernel), axis=0) @ kernel[::-1])
