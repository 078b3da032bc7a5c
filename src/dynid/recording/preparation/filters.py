"""Zero-phase filters: Butterworth forward and backward, central differences, Savitzky-Golay.

All take x (samples, joints) at `rate` Hz and process each segment and joint separately, with little memory.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dynid.arrays import Array, Ints, like
from dynid.signals import butterworth, filtered_both_ways

Segments = Ints

_PERIODS_OF_PADDING = 3.0  # memory of the filter in periods of the cut-off; scipy's default is far shorter


def low_pass(x: Array, cutoff: float, rate: float, order: int, segments: Segments) -> Array:
    """Return x after a Butterworth low-pass forward and backward in time: no delay, gain 1/2 at the cut-off (Hz).

    See Janot, Vandanjon, Gautier, s. 2, and Sousa, s. 4.3.3. The signal is extended beyond its ends by a point
    reflection (`filtfilt`), so that positions and velocities have no jump there.
    """
    sections = butterworth(order, 2.0 * cutoff / rate)
    memory = int(np.ceil(_PERIODS_OF_PADDING * rate / cutoff))
    return _by_column(x, segments, lambda column: filtered_both_ways(sections, column, memory))


def differentiate(x: Array, rate: float, segments: Segments) -> Array:
    """Return the first derivative by central differences (Ardiani, eq. 1.40), one-sided at the borders."""
    return _by_column(x, segments, lambda column: np.gradient(column, 1.0 / rate,
                                                              edge_order=2 if len(column) > 2 else 1))


def differentiate_twice(x: Array, rate: float, segments: Segments) -> Array:
    """Return the second derivative by three-point differences (Ardiani, eq. 1.40); constant at borders."""

    def curvature(column: Array) -> Array:
        out = np.zeros_like(column)
        if len(column) > 2:
            out[1:-1] = (column[2:] - 2.0 * column[1:-1] + column[:-2]) * rate**2
            out[0], out[-1] = out[1], out[-2]
        return out

    return _by_column(x, segments, curvature)


def savitzky_golay(x: Array, window: int, degree: int, rate: float, segments: Segments, derivative: int = 0) -> Array:
    """Return the `derivative`-th derivative of the polynomial of `degree` fitted to `window` rows (odd) about each row.

    The filter is exact for polynomials up to that degree. Within half a window of a border, the polynomial at the
    border is used. Powers of the row number (as in scipy) are inaccurate for long windows, so Legendre polynomials are
    used.
    """
    from scipy.signal import oaconvolve  # imported here, because it takes longer than most runs, which do not need it

    half = window // 2
    fit, value = _legendre_fit(window, degree, derivative)
    value *= (rate / half) ** derivative
    middle = (value[half] @ fit)[::-1]

    def change(column: Array) -> Array:
        out = np.empty_like(column)
        out[:half] = value[:half] @ (fit @ column[:window])
        out[len(column) - half:] = value[half + 1:] @ (fit @ column[len(column) - window:])
        out[half:len(column) - half] = oaconvolve(column, middle, mode="valid")
        return out

    return _by_column(x, segments, change)


def savitzky_golay_window(cutoff: float, rate: float, degree: int) -> int:
    """Return the number of rows (odd) of the longest window with gain 1/2 or more at `cutoff` Hz."""
    low, high = degree // 2 + 1, degree // 2 + 2
    while _gain(2 * high + 1, degree, cutoff / rate) > 0.5:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _gain(2 * middle + 1, degree, cutoff / rate) > 0.5 else (low, middle)
    return 2 * low + 1


def savitzky_golay_cutoff(window: int, rate: float, degree: int) -> float:
    """Return the frequency, Hz, at which the gain of a window first falls to 1/2; at most 0.45 of the rate."""
    from scipy.optimize import brentq

    high = 0.25 / window
    while high < 0.45 and _gain(window, degree, high) > 0.5:
        high += 0.25 / window
    if high >= 0.45:
        return 0.45 * rate
    return float(brentq(lambda f: _gain(window, degree, f) - 0.5, high - 0.25 / window, high)) * rate


def _legendre_fit(window: int, degree: int, derivative: int) -> tuple[Array, Array]:
    """Return two matrices: coefficients from window values (degree + 1, window), and derivative values from
    coefficients (window, degree + 1). The rows of a window are mapped to -1 .. 1."""
    x, legendre = np.linspace(-1.0, 1.0, window), np.polynomial.legendre
    fit = np.asarray(np.linalg.pinv(legendre.legvander(x, degree)), dtype=float)
    value = np.column_stack([legendre.legval(x, legendre.legder(unit, derivative)) for unit in np.eye(degree + 1)])
    return fit, np.asarray(value, dtype=float)


def _gain(window: int, degree: int, f: float) -> float:
    """Return the gain of the smoothing filter at a frequency f in cycles per sample."""
    fit, value = _legendre_fit(window, degree, 0)
    return float(value[window // 2] @ fit @ np.cos(2.0 * np.pi * f * (np.arange(window) - window // 2)))


def _by_column(x: Array, segments: Segments, change: Callable[[Array], Array]) -> Array:
    out = like(x)  # rows outside all segments stay zero
    for start, stop in segments:
        for j in range(x.shape[1]):
            out[start:stop, j] = change(np.ascontiguousarray(x[start:stop, j]))
    return out
