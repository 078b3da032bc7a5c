"""Butterworth filters, power densities and interpolation of sampled signals.

These functions are also in scipy.signal and scipy.interpolate, but importing those modules takes longer than
identifying a robot.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from dynid.arrays import Array
from dynid.kernel_store import njit
from dynid.lapack import solve_tridiagonal

_NUMBERS_AT_ONCE = 1 << 21  # numbers of windows that are transformed at once: 16 MB, and twice as much for spectra


@lru_cache(maxsize=64)
def butterworth(order: int, share: float) -> Array:
    """Return sections (n, 6) of a digital low-pass, each b0 b1 b2 1 a1 a2; share: cut-off (-3 dB) over half the rate.

    The analog poles are transformed by the bilinear transformation with the cut-off prewarped. The section whose poles
    are nearest to the unit circle is last, which keeps the values between sections small. Calls with the same arguments
    return the same array.
    """
    warped = 4.0 * math.tan(0.5 * math.pi * share)
    analog = -warped * np.exp(0.5j * math.pi * np.arange(1 - order, order, 2) / order)
    poles = (4.0 + analog) / (4.0 - analog)
    gain = float(np.real(np.prod(-analog / (4.0 - analog))))
    upper = poles[poles.imag > 1e-12]
    pairs = [(-2.0 * p.real, abs(p) ** 2, (1.0, 2.0, 1.0)) for p in upper[np.argsort(np.abs(upper))]]
    if order % 2:
        pairs.insert(0, (-float(poles[order // 2].real), 0.0, (1.0, 1.0, 0.0)))
    sections = np.array([[*zeros, 1.0, a1, a2] for a1, a2, zeros in pairs])
    sections[0, :3] *= gain
    return sections


def filtered(sections: Array, x: Array) -> Array:
    """Return a signal (samples,) filtered once, forward in time, by second-order sections that start at rest."""
    out = np.array(x, dtype=float)
    _run(sections, np.zeros((len(sections), 2)), out)
    return out


def filtered_both_ways(sections: Array, x: Array, padding: int) -> Array:
    """Return x (samples,) filtered forward and backward by the sections: no delay, and the squared gain.

    The signal is extended beyond its ends by `padding` rows of a point reflection, and the filter starts in the steady
    state of the first row.
    """
    padding = min(padding, len(x) - 1)
    out = np.concatenate([2.0 * x[0] - x[padding:0:-1], x, 2.0 * x[-1] - x[-2:-padding - 2:-1]])
    settled = _settled(sections)
    for _ in range(2):
        _run(sections, settled * out[0], out)
        out = out[::-1].copy()
    return out[padding:len(out) - padding]


def _settled(sections: Array) -> Array:
    """Return the internal states (sections, 2) of filter sections in the steady state for a constant input of one."""
    level, state = 1.0, np.empty((len(sections), 2))
    for k, (b0, b1, b2, _, a1, a2) in enumerate(sections):
        gain = (b0 + b1 + b2) / (1.0 + a1 + a2)
        last = b2 - a2 * gain
        state[k] = level * (b1 - a1 * gain + last), level * last
        level *= gain
    return state


@njit(cache=True, nogil=True)
def _run(sections: Array, state: Array, x: Array) -> None:
    """Apply filter sections to a signal in place, one after the other, in direct form II transposed."""
    for k in range(sections.shape[0]):
        b0, b1, b2, a1, a2 = sections[k, 0], sections[k, 1], sections[k, 2], sections[k, 4], sections[k, 5]
        first, second = state[k, 0], state[k, 1]
        for i in range(x.shape[0]):
            y = b0 * x[i] + first
            first = b1 * x[i] - a1 * y + second
            second = b2 * x[i] - a2 * y
            x[i] = y


def power_density(x: Array, rate: float, window: int, differences: int = 0) -> tuple[Array, Array]:
    """Return frequencies (n,), Hz, and one-sided power densities (n, columns), units^2/Hz, of x (samples, columns).

    Welch's method is used: Hann windows of `window` rows that overlap by half, each without its mean. Some windows are
    processed at a time, to limit memory. differences: number of times x is differenced before.
    """
    window = max(2, window)
    step, size = window - window // 2, len(x) - differences
    taper = 0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(window) / window)
    count, at_once = (size - window) // step + 1, max(1, _NUMBERS_AT_ONCE // (window * x.shape[1]))
    total = np.zeros((x.shape[1], window // 2 + 1))
    for first in range(0, count, at_once):
        last = min(first + at_once, count) - 1
        rows = np.diff(x[first * step:last * step + window + differences], differences, axis=0)
        pieces = np.lib.stride_tricks.sliding_window_view(rows, window, axis=0)[::step]  # (pieces, columns, window)
        spectra = np.fft.rfft((pieces - pieces.mean(axis=-1, keepdims=True)) * taper, axis=-1)
        total += np.sum(spectra.real ** 2 + spectra.imag ** 2, axis=0)
    density = total.T / (count * rate * np.sum(taper ** 2))
    density[1:len(density) - (window + 1) % 2] *= 2.0  # includes negative frequencies; 0 and half the rate have none
    return np.asarray(np.fft.rfftfreq(window, 1.0 / rate), dtype=float), density


def at_times(at: Array, t: Array, x: Array) -> Array:
    """Return signals x (rows, n) at other times (m, n), interpolated linearly and constant beyond the ends.

    t (rows,): times of x.
    """
    return np.column_stack([np.interp(at, t, x[:, j]) for j in range(x.shape[1])])


@lru_cache(maxsize=64)
def fast_length(least: int) -> int:
    """Return the smallest length from `least` without a prime factor above five, for fast Fourier transforms."""
    best = 1 << (least - 1).bit_length()
    fives = 1
    while fives < best:
        odd = fives
        while odd < best:
            best = min(best, odd << (-(-least // odd) - 1).bit_length())
            odd *= 3
        fives *= 5
    return best


def cubic_spline(t: Array, x: Array, at: Array) -> Array:
    """Return x (rows, n), given at ascending times t (rows,), at other times (m,) -> (m, n); at least four rows.

    Two derivatives are continuous everywhere, and the third at the second row and the last but one ("not a knot").
    """
    h = np.diff(t)
    slope = np.diff(x, axis=0) / h[:, None]
    band, right = np.zeros((3, len(t))), np.empty(x.shape)
    band[0, 2:], band[1, 1:-1], band[2, :-2] = h[:-1], 2.0 * (h[:-1] + h[1:]), h[1:]
    right[1:-1] = 3.0 * (h[1:, None] * slope[:-1] + h[:-1, None] * slope[1:])
    first, last = t[2] - t[0], t[-1] - t[-3]
    band[1, 0], band[0, 1], band[1, -1], band[2, -2] = h[1], first, h[-2], last
    right[0] = ((h[0] + 2.0 * first) * h[1] * slope[0] + h[0] ** 2 * slope[1]) / first
    right[-1] = (h[-1] ** 2 * slope[-2] + (2.0 * last + h[-1]) * h[-2] * slope[-1]) / last
    rate = solve_tridiagonal(band, right)
    i = np.clip(np.searchsorted(t, at, side="right") - 1, 0, len(t) - 2)
    u, width, chord = (at - t[i])[:, None], h[i, None], slope[i]
    bend = (rate[i] + rate[i + 1] - 2.0 * chord) / width
    return x[i] + u * (rate[i] + u * ((chord - rate[i]) / width - bend + u * bend / width))
