"""Spectrum of the noise at the low frequencies of a motion, from residuals of a fit.

A log of some seconds contains few periods of slow noise, and the fit absorbs most of it. A window in time then smooths
the peak of the spectrum at frequency zero, which makes standard errors too small. Here the spectrum is a sum of given
shapes with coefficients that are not negative: white noise, noise of one and two differentiations, and noise whose
correlation decays exponentially, with memories of one row to a fifth of the log in octaves. Pink noise is such a sum.
The coefficients maximise Whittle's likelihood of the periodogram, in which the share that the fit absorbs is missing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.fft import rfft

from dynid.arrays import Array, Ints
from dynid.order_statistics import distinct
from dynid.signals import fast_length

MOST_ABSORBED = 0.9  # share of the noise that may be absorbed at a frequency before nothing can be said of it
_LEAST_FREE = 1e-3  # share of the noise at a frequency that any fit is taken to leave: keeps logarithms finite
_BAND_SHARE = 0.5  # share of the absorbed noise below the frequency that measures the width of the motion's band
_BAND_WIDTHS = 4  # such frequencies in the band of the fit: far enough that the residuals keep most of the noise
_MIN_BAND = 32  # frequencies of the band, at least: more than there are shapes
_SINGLE_FREQUENCIES = 16  # first frequencies, which are fitted in pairs: the periodogram is padded to twice its length
_BINS_PER_OCTAVE = 6  # of the other frequencies
_SPECTRUM_ITERATIONS = 100  # of the multiplicative update; coefficients then change by less than a percent of their sum
_LONGEST_MEMORY = 0.2  # of the log: slower noise is not distinguished from a trend


def spectrum(shape: Array, size: int) -> Array:
    """Return the spectrum (size // 2 + 1,) of an autocovariance given for lags from zero."""
    kernel = np.zeros(size)
    kernel[:len(shape)] = shape
    if len(shape) > 1:
        kernel[-(len(shape) - 1):] = shape[:0:-1]
    return rfft(kernel).real


@dataclass(frozen=True, eq=False)
class LowFrequencyNoise:
    """Spectrum of noise below a frequency.

    Attributes:
        coefficients: of the shapes (shapes,), in squares of the residual.
        memories: of the exponentially correlated shapes, rows.
        top: upper end of the band, radians per row.
    """

    coefficients: Array
    memories: Array
    top: float

    @staticmethod
    def of(residual: Array, absorbed: Array, count: int) -> LowFrequencyNoise:
        """Return the noise that residuals (m,) show, zero in gaps.

        Args:
            residual: residuals of one joint.
            absorbed: sum over t of P[t, t + k] of the projection P of the fit, by lag k (lags,).
            count: number of residuals that are not gaps.
        """
        size = fast_length(2 * len(residual))
        return LowFrequencyNoise.from_periodogram(np.abs(rfft(residual, size)) ** 2 / count,
                                                  spectrum(absorbed / count, size), len(residual), size)

    @staticmethod
    def from_periodogram(power: Array, absorbed: Array, rows: int, size: int) -> LowFrequencyNoise:
        """Return the noise that the periodogram (size // 2 + 1,) of residuals shows.

        Args:
            power: squared transform over the number of residuals.
            absorbed: share of the noise at each frequency that the fit absorbs.
            rows: length of the residuals.
            size: rows of the transform.
        """
        free = np.clip(1.0 - absorbed, _LEAST_FREE, 1.0)
        total = np.cumsum(1.0 - free)
        band = _BAND_WIDTHS * int(np.searchsorted(total, _BAND_SHARE * total[-1]))
        band = min(max(band, _MIN_BAND), len(free))
        memories = 2.0 ** np.arange(1.0 + np.log2(max(_LONGEST_MEMORY * rows, 1.0)))
        edges = _bin_edges(band)
        starts, widths = edges[:-1], np.diff(edges)
        seen = np.add.reduceat(power[:band], starts) / widths
        left = _shapes(memories, 2.0 * np.pi * np.arange(band) / size) * free[:band]
        parts = np.add.reduceat(left, starts, axis=1) / widths
        # A frequency has two degrees of freedom, of which the fit leaves the share that is free.
        weights = np.add.reduceat(free[:band], starts)
        return LowFrequencyNoise(_fitted(parts, seen, weights), memories, 2.0 * np.pi * band / size)

    def spectrum(self, size: int) -> Array:
        """Return the spectrum at the frequencies of a real series of `size` rows (size // 2 + 1,), zero above the
        band."""
        angle = 2.0 * np.pi * np.arange(size // 2 + 1) / size
        return np.where(angle < self.top, self.coefficients @ _shapes(self.memories, angle), 0.0)


def _shapes(memories: Array, angle: Array) -> Array:
    """Return the spectra (shapes, frequencies) at frequencies in radians per row."""
    keep, turn = np.exp(-1.0 / memories)[:, None], np.cos(angle)[None]
    rise = 1.0 - turn
    return np.vstack([np.ones_like(rise), rise, rise ** 2, (1.0 - keep ** 2) / (1.0 - 2.0 * keep * turn + keep ** 2)])


def _bin_edges(band: int) -> Ints:
    """Return the first frequency of every bin and the end of the last one."""
    octaves = np.log2(max(band / _SINGLE_FREQUENCIES, 1.0))
    wide = _SINGLE_FREQUENCIES * 2.0 ** (np.arange(octaves * _BINS_PER_OCTAVE) / _BINS_PER_OCTAVE)
    edges = distinct(np.concatenate([np.arange(0, _SINGLE_FREQUENCIES, 2), np.round(wide), [band]]).astype(np.int64))
    return np.asarray(edges[edges <= band])


def _fitted(parts: Array, power: Array, weights: Array) -> Array:
    """Return coefficients (shapes,) that maximise Whittle's likelihood of binned power (bins,) with weights (bins,),
    parts (shapes, bins): the multiplicative update of the Itakura-Saito divergence, which cannot decrease it."""
    if not power.any():
        return np.zeros(len(parts))
    found = power.mean() / len(parts) / parts.mean(axis=1)
    for _ in range(_SPECTRUM_ITERATIONS):
        expected = found @ parts
        found *= np.sqrt((parts @ (weights * power / expected ** 2)) / (parts @ (weights / expected)))
    return np.asarray(found)
