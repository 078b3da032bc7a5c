"""Spectrum of the noise at the low frequencies of a motion, from residuals, and noise that equations have in common.

A log of some seconds contains few periods of slow noise, and the fit absorbs most of it. A window in time then smooths
the peak of the spectrum at frequency zero, which makes standard errors too small. Here the spectrum is a sum of given
shapes with coefficients that are not negative: white noise, noise of one and two differentiations, and noise whose
correlation decays exponentially, with memories of one row to a fifth of the log in octaves. Pink noise is such a sum.
The coefficients maximise Whittle's likelihood of the periodogram, in which the share that the fit absorbs is missing.

The acceleration of the base enters all equations, and a force at a foot those of the base and of its leg: their noise
is correlated between equations. With the correlation coefficients R of the residuals and the spectrum S_j of each
equation's noise, the spectrum between two equations is R_ij sqrt(S_i S_j), which is positive semidefinite. The
covariance of the score then has the additional part

    sum of w_i^2 w_j^2 X_i' C_ij X_j over i != j.

R is computed at the frequencies of the regressor: noise at other frequencies, such as that of unfiltered torques, does
not affect the estimate. It is shrunk toward zero by its own standard errors (Schaefer and Strimmer 2005).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.fft import rfft

from dynid.arrays import Array, Bools, Ints
from dynid.order_statistics import distinct
from dynid.regression.derived import noise_model
from dynid.regression.equations import Equations, Piece
from dynid.signals import fast_length

MOST_ABSORBED = 0.9  # largest share of absorbed noise at a frequency that is used
_LEAST_FREE = 1e-3  # smallest share of noise at a frequency that a fit leaves, which keeps logarithms finite
_BAND_SHARE = 0.5  # share of the absorbed noise below the frequency that measures the width of the motion's band
_BAND_WIDTHS = 4  # multiples of that frequency in the fitted band, where residuals retain most of the noise
_MIN_BAND = 32  # smallest number of frequencies in the band, more than there are shapes
_SINGLE_FREQUENCIES = 16  # first frequencies, fitted in pairs, because the periodogram is padded to twice its length
_BINS_PER_OCTAVE = 6  # bins of the other frequencies
_SPECTRUM_ITERATIONS = 100  # multiplicative updates; coefficients then change by less than a percent of their sum
_LONGEST_MEMORY = 0.2  # share of the log: slower noise is not distinguished from a trend
_ROWS_AT_ONCE = 1024  # rows: longer than the correlation of filtered noise, small in memory
_MIN_POWER = 1e-8  # share of the power of the largest frequency below which one is ignored, since filters remove it


def spectrum(shape: Array, size: int) -> Array:
    """Return the spectrum (size // 2 + 1,) of an autocovariance (lags,), given for lags from zero."""
    kernel = np.zeros(size)
    kernel[:len(shape)] = shape
    if len(shape) > 1:
        kernel[-(len(shape) - 1):] = shape[:0:-1]
    return rfft(kernel).real


def multiplicity(size: int) -> Array:
    """Return the number of frequencies that each entry of a one-sided spectrum (size // 2 + 1,) represents: two, itself
    and its negative, or one at both ends."""
    found = np.full(size // 2 + 1, 2.0)
    found[[0, -1] if size % 2 == 0 else 0] = 1.0
    return found


@dataclass(frozen=True, eq=False)
class LowFrequencyNoise:
    """Model of the noise spectrum at low frequencies, a sum of given shapes.

    Attributes:
        coefficients: coefficient of each shape (shapes,), in squared units of the residual.
        memories: correlation times of the exponentially correlated shapes, rows.
        top: upper end of the band, radians per row.
    """

    coefficients: Array
    memories: Array
    top: float

    @staticmethod
    def from_series(series: Sequence[tuple[Array, Array, int]]) -> list[LowFrequencyNoise]:
        """Return the low-frequency noise of each of several residual series. All series are fitted jointly.

        Args:
            series: residuals of one joint (m,), zero in gaps; the sum over t of P[t, t + k] of the projection P of
                their fit, by lag k (lags,); and the number of residuals that are not gaps.
        """
        sizes = [fast_length(2 * len(residual)) for residual, *_ in series]
        return LowFrequencyNoise.from_periodograms([
            (np.abs(rfft(residual, size)) ** 2 / count, spectrum(loss / count, size), len(residual), size)
            for (residual, loss, count), size in zip(series, sizes, strict=True)])

    @staticmethod
    def from_periodograms(series: Sequence[tuple[Array, Array, int, int]]) -> list[LowFrequencyNoise]:
        """Return the low-frequency noise from the periodograms of residuals.

        Args:
            series: four values for each residual: its periodogram (size // 2 + 1,), the share of the noise that the fit
                absorbs at each frequency, its number of rows, and the `size` of the Fourier transform.
        """
        bands = [_Band.from_power(*one) for one in series]
        return [LowFrequencyNoise(coefficients, band.memories, band.top)
                for coefficients, band in zip(_fitted(bands), bands, strict=True)]

    def spectrum(self, size: int) -> Array:
        """Return the spectrum (size // 2 + 1,) at the frequencies of `size` rows, zero above the band."""
        angle = 2.0 * np.pi * np.arange(size // 2 + 1) / size
        return np.where(angle < self.top, self.coefficients @ _shapes(self.memories, angle), 0.0)


@dataclass(frozen=True, eq=False)
class _Band:
    """Low frequencies of a periodogram, averaged in bins: their power (bins,), the power of each shape of noise that
    a fit leaves (shapes, bins), and weights (bins,)."""

    parts: Array
    power: Array
    weights: Array
    memories: Array
    top: float

    @staticmethod
    def from_power(power: Array, absorbed: Array, rows: int, size: int) -> _Band:
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
        # A frequency has two degrees of freedom, reduced by the share that the fit absorbs.
        return _Band(parts, seen, np.add.reduceat(free[:band], starts), memories, 2.0 * np.pi * band / size)


def _shapes(memories: Array, angle: Array) -> Array:
    """Return the spectra (shapes, frequencies) of which noise is composed; angle: frequencies, radians per row."""
    keep, turn = np.exp(-1.0 / memories)[:, None], np.cos(angle)[None]
    rise = 1.0 - turn
    return np.vstack([np.ones_like(rise), rise, rise ** 2, (1.0 - keep ** 2) / (1.0 - 2.0 * keep * turn + keep ** 2)])


def _bin_edges(band: int) -> Ints:
    """Return the index of the first frequency of every bin, and the end of the last bin."""
    octaves = np.log2(max(band / _SINGLE_FREQUENCIES, 1.0))
    wide = _SINGLE_FREQUENCIES * 2.0 ** (np.arange(octaves * _BINS_PER_OCTAVE) / _BINS_PER_OCTAVE)
    edges = distinct(np.concatenate([np.arange(0, _SINGLE_FREQUENCIES, 2), np.round(wide), [band]]).astype(np.int64))
    return np.asarray(edges[edges <= band])


def _fitted(bands: Sequence[_Band]) -> list[Array]:
    """Return coefficients (shapes,) that maximise Whittle's likelihood of the power of each band.

    The multiplicative update of the Itakura-Saito divergence cannot decrease the likelihood. Bands are padded with
    shapes and bins of zero weight, so that all are updated at once.
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


def have_common_noise(equations: Equations) -> bool:
    """Return whether the noise of different equations is correlated, which is so for a robot with a free base."""
    robot = getattr(noise_model(equations), "robot", None)
    return robot is not None and bool(robot.has_free_base)


def residual_correlation(residual: Array, keep: Bools, absorbed: Sequence[Array | None]) -> Array:
    """Return correlation coefficients (equations, equations) between the residuals (m, equations).

    absorbed: sum over t of P[t, t + k] (lags,) of each equation's part of the projection of the fit; the sum of their
    spectra is the weight of a frequency. Without it all frequencies count.
    """
    size = fast_length(2 * len(residual))
    found = rfft(np.where(keep, residual, 0.0), size, axis=0)
    weight = np.ones(len(found))
    if all(sums is not None for sums in absorbed):
        weight = np.maximum(spectrum(np.sum([sums for sums in absorbed if sums is not None], axis=0), size), 0.0)
    scaled = (found * np.sqrt(weight)[:, None]).view(float).reshape(len(found), residual.shape[1], 2)
    product = np.einsum("fic,fjc->ij", scaled, scaled)
    spread = np.sqrt(np.maximum(np.diag(product), 1e-300))
    rho = product / np.outer(spread, spread)
    np.fill_diagonal(rho, 0.0)
    total = float(np.sum(rho ** 2))
    # Because of twofold padding half of the frequencies are independent, each with a real and an imaginary part.
    count = max(float(weight.sum()) ** 2 / max(float(np.sum(weight ** 2)), 1e-300), 2.0)
    error = float(np.sum(np.where(rho != 0.0, (1.0 - rho ** 2) ** 2, 0.0))) / count
    rho *= max(0.0, 1.0 - error / total) if total > 0.0 else 0.0
    return np.asarray(rho + np.eye(len(rho)))


def common_noise_matrix(equations: Equations, work: Sequence[Piece], shapes: Sequence[Array], rho: Array,
                        weights: Array) -> Array:
    """Return the sum of w_i^2 w_j^2 X_i' C_ij X_j (base, base) over pairs of different equations.

    Args:
        equations: rows of all logs.
        work: pieces to sum over.
        shapes: autocovariance (lags,) of each equation's noise.
        rho: correlation coefficients (equations, equations).
        weights: w (equations,).
    """
    count, width = len(rho), len(equations.base)
    others, total = rho - np.eye(count), np.zeros((width, width))
    if not np.any(others):
        return total
    lags = max(map(len, shapes))
    size = fast_length(_ROWS_AT_ONCE + min(lags, _ROWS_AT_ONCE))
    power = np.array([np.maximum(spectrum(one[:size // 2], size), 0.0) for one in shapes])
    scale = np.asarray(weights)[:, None] ** 2 * np.sqrt(power * multiplicity(size) / size)
    for piece in work:
        rows = equations.rows(piece)
        for start in range(0, len(piece.rows), _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            spectra = [rfft(np.where(rows.keep[part, j], rows.joint(j)[:-1, part], 0.0), size) * scale[j]
                       for j in range(count)]
            each = np.sum([np.sum(np.abs(one) ** 2, axis=0) for one in spectra], axis=0)
            used = each > _MIN_POWER * each.max()
            scaled = np.zeros((count, int(used.sum()), width), dtype=complex)
            for j, columns in enumerate(equations.layout.columns):
                scaled[j][:, columns] = spectra[j][:, used].T
            mixed = np.tensordot(others, scaled, axes=1)
            first, second = (one.view(float).reshape(-1, width, 2) for one in (scaled, mixed))
            total += first[:, :, 0].T @ second[:, :, 0] + first[:, :, 1].T @ second[:, :, 1]
    return 0.5 * (total + total.T)
