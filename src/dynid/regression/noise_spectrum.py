"""Spectrum of the noise at the low frequencies of a motion, from residuals of a fit.

A log of some seconds contains few periods of slow noise, and the fit absorbs most of it. A window in time then smooths
the peak of the spectrum at frequency zero, which makes standard errors too small. Here the spectrum is a sum of given
shapes with coefficients that are not negative: white noise, noise of one and two differentiations, and noise whose
correlation decays exponentially, with memories of one row to a fifth of the log in octaves. Pink noise is such a sum.
The coefficients maximise Whittle's likelihood of the periodogram, in which the share that the fit absorbs is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    def of(series: Sequence[tuple[Array, Array, int]]) -> list[LowFrequencyNoise]:
        """Return the noise that each of some residuals shows. All of them are fitted together.

        Args:
            series: residuals of one joint (m,), zero in gaps; the sum over t of P[t, t + k] of the projection P of
                their fit, by lag k (lags,); and the number of residuals that are not gaps.
        """
        sizes = [fast_length(2 * len(residual)) for residual, *_ in series]
        return LowFrequencyNoise.from_periodograms([
            (np.abs(rfft(residual, size)) ** 2 / count, spectrum(gone / count, size), len(residual), size)
            for (residual, gone, count), size in zip(series, sizes, strict=True)])

    @staticmethod
    def from_periodograms(series: Sequence[tuple[Array, Array, int, int]]) -> list[LowFrequencyNoise]:
        """Return the noise that the periodograms of residuals show.

        Args:
            series: of each residual its squared transform over the number of residuals (size // 2 + 1,), the share of
                the noise at each frequency that the fit absorbs, its length, and the rows `size` of the transform.
        """
        bands = [_Band.of(*one) for one in series]
        return [LowFrequencyNoise(coefficients, band.memories, band.top)
                for coefficients, band in zip(_fitted(bands), bands, strict=True)]

    def spectrum(self, size: int) -> Array:
        """Return the spectrum at the frequencies of a real series of `size` rows (size // 2 + 1,), zero above the
        band."""
        angle = 2.0 * np.pi * np.arange(size // 2 + 1) / size
        return np.where(angle < self.top, self.coefficients @ _shapes(self.memories, angle), 0.0)


@dataclass(frozen=True, eq=False)
class _Band:
    """Low frequencies of a periodogram in bins: power (bins,), shapes (shapes, bins) and weights (bins,)."""

    parts: Array
    power: Array
    weights: Array
    memories: Array
    top: float

    @staticmethod
    def of(power: Array, absorbed: Array, rows: int, size: int) -> _Band:
        """Return the bins of a periodogram, see `LowFrequencyNoise.from_periodograms`."""
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
        return _Band(parts, seen, np.add.reduceat(free[:band], starts), memories, 2.0 * np.pi * band / size)


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


def _fitted(bands: Sequence[_Band]) -> list[Array]:
    """Return coefficients (shapes,) that maximise Whittle's likelihood of the power of each band.

    The multiplicative update of the Itakura-Saito divergence cannot decrease it. Bands are filled up with shapes and
    bins of no weight, so that one update serves all.
    """
    found = [np.zeros(len(band.parts)) for band in bands]
    some = [k for k, band in enumerate(bands) if band.power.any()]
    if not some:
        return found
    shapes, bins = (max(bands[k].parts.shape[axis] for k in some) for axis in (0, 1))
    parts, values = np.ones((len(some), shapes, bins)), np.zeros((len(some), 1, shapes))
    power, weights = np.zeros((2, len(some), bins, 1))
    for i, k in enumerate(some):
        own = bands[k]
        rows, columns = own.parts.shape
        parts[i, :rows, :columns], power[i, :columns, 0], weights[i, :columns, 0] = own.parts, own.power, own.weights
        values[i, 0, :rows] = own.power.mean() / rows / own.parts.mean(axis=1)
    for _ in range(_SPECTRUM_ITERATIONS):
        expected = (values @ parts).transpose(0, 2, 1)
        seen = weights / expected
        values *= np.sqrt((parts @ (seen * power / expected)) / (parts @ seen)).transpose(0, 2, 1)
    for i, k in enumerate(some):
        found[k] = values[i, 0, :len(found[k])]
    return found
