"""Short windows that taper instruments and smooth velocities, within each segment of a log."""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array, Bools
from dynid.recording import Samples

WINDOW = 0.04  # s, over which instruments are tapered and their dry columns smoothed


def hann(rate: float, length: float = WINDOW) -> Array:
    """Return the weights of a Hann window of this length (s) at `rate` Hz; their number is odd and their sum is 1."""
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
    """Return weights (samples, dof): 1 in valid rows, decreasing smoothly to 0 at their ends, 0 in the first
    `dropped` seconds. Gaps shorter than the window are ignored, since noise causes them."""
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
    """Return a mask (samples, dof) whose ones decrease smoothly to zero at the ends of each interval, over a window
    (s)."""
    from scipy.ndimage import binary_erosion

    window, out = hann(samples.rate, length), np.zeros(mask.shape)
    for start, stop in samples.segments:
        for j in range(mask.shape[1]):
            ones = binary_erosion(mask[start:stop, j], np.ones(len(window), dtype=bool), border_value=1)
            if stop - start > len(window):
                out[start:stop, j] = np.clip(smooth(ones.astype(float), window), 0.0, 1.0)
    out[out < 1e-9] = 0.0
    return out
