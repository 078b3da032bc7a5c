"""Covariance of instrumental estimates, from the spectra of instruments and residuals.

(Z'Y)^-1 S (Z'Y)^-T, with S the covariance of Z'residual under residuals correlated in time and between joints. Both
are evaluated at the low rate, since Z has no faster parts. S is summed over frequencies, S_jl = sum_k Z_j(k) P_jl(k)
Z_l(k)* / rows with the residuals' cross-spectrum P, so that the noise of second differences above the motion's
frequencies does not count. Residuals are first divided by their local amplitude, because a coarse encoder has most
error where a joint is slow.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Array, Bools, Ints
from dynid.estimate.instruments.projection import LowRate, Projected
from dynid.regression.autocorrelation import autocovariance, has_long_memory
from dynid.regression.noise_spectrum import LowFrequencyNoise

Spectra = NDArray[np.complex128]

_NEAR_ROWS = 11  # of the low rate, at least, over which the amplitude of residuals is taken
# times as long as residuals are correlated: as many independent ones as there are white ones
_BLOCK_CORRELATION_LENGTHS = 11
_NOISE_ITERATIONS = 6  # of finding the two in turn, at most
_MIN_AMPLITUDE_SHARE = 0.2  # share of the deviation of all residuals below which their amplitude is not believed
_LEAST_FREE = 0.1  # share of the noise that any fit is taken to leave near a frequency


def spectral_covariance(projected: Projected, low: LowRate, weights: Array) -> Array:
    """Return the covariance (base, base) of the solution of a projected problem with joint weights (dof,)."""
    kept = projected.kept
    middle = low.scale ** 2 * _score_covariance(projected, low, weights)[np.ix_(kept, kept)]
    inverse = np.linalg.inv(projected.cross)
    covariance = np.zeros((projected.base, projected.base))
    covariance[np.ix_(kept, kept)] = inverse @ (0.5 * (middle + middle.T)) @ inverse.T
    return covariance


def spectral_freedom(projected: Projected, low: LowRate, weights: Array) -> float:
    """Return the degrees of freedom of the covariance: the smallest over the joints of the residuals' spectrum.

    Every frequency of a periodogram has two degrees of freedom, of which the fit uses a part at the frequencies of the
    instruments.
    """
    spectra = _instrument_spectra(low, residual_amplitude(low))
    count = len(_multiplicity(low))
    free = [_free(share) for share in _leverage(spectra, low.columns, weights, projected.kept, _multiplicity(low))]
    means = [np.sum((1.0 - share) * share) / np.sum(1.0 - share) for share in free if np.any(share < 1.0)]
    return 2.0 * (2 * _half_width(count) + 1) * float(min(means, default=1.0))


def _instrument_spectra(low: LowRate, amplitude: Array) -> list[Spectra]:
    """Return the spectra (columns, frequencies) of each joint's instruments, multiplied by its residual amplitude."""
    return [np.fft.rfft(z * a, axis=1) for z, a in zip(low.z, amplitude, strict=True)]


def _multiplicity(low: LowRate) -> Array:
    """Return how many frequencies of the full spectrum each frequency of a one-sided one represents (frequencies,).

    It is two, except at the ends, where it is one.
    """
    rows = len(low.residual)
    found = np.full(rows // 2 + 1, 2.0)
    found[0] = 1.0
    if rows % 2 == 0:
        found[-1] = 1.0
    return found


def _score_covariance(projected: Projected, low: LowRate, weights: Array) -> Array:
    """Return the covariance S (base, base) of the instruments times the residuals, weighted, at the low rate."""
    rows, dof = low.residual.shape
    amplitude, kept = residual_amplitude(low), low.kept.T
    instruments, multiplicity = _instrument_spectra(low, amplitude), _multiplicity(low)
    spectra = np.fft.rfft(kept * low.residual.T / amplitude, axis=1)
    taken = _leverage(instruments, low.columns, weights, projected.kept, multiplicity)
    free = [_free(share) for share in taken]
    middle = np.zeros((projected.base, projected.base))
    for j in range(dof):
        for other in range(j, dof):
            count = max(float(np.sum(kept[j] * kept[other])), 1.0)
            power = _near(spectra[j] * spectra[other].conj()) / (count * np.sqrt(free[j] * free[other]))
            if other == j and has_long_memory(low.residual[:, j] / amplitude[j], low.kept[:, j] > 0.0):
                # Slow noise: neighbours of a frequency near zero have less of it.
                slow = LowFrequencyNoise.from_periodograms([(np.abs(spectra[j]) ** 2 / count, taken[j], rows, rows)])[0]
                power = np.maximum(power.real, slow.spectrum(rows)).astype(complex)
            part = np.real((instruments[j] * (multiplicity * power.conj())) @ instruments[other].conj().T) / rows
            part *= weights[j] ** 2 * weights[other] ** 2
            middle[np.ix_(low.columns[j], low.columns[other])] += part
            if other != j:
                middle[np.ix_(low.columns[other], low.columns[j])] += part.T
    return middle


def residual_amplitude(low: LowRate) -> Array:
    """Return the local amplitude of the residuals of each joint (dof, rows), at least a fifth of their standard
    deviation.

    It is averaged over many correlation times of the scaled residuals, because a shorter average would remove slow
    components. Amplitude and correlation time are determined iteratively, starting from short windows.
    """
    local = np.empty(low.residual.T.shape)
    for j, least in enumerate(np.maximum(_MIN_AMPLITUDE_SHARE * low.deviation, 1e-300)):
        residual, counts, rows = low.residual[:, j], low.kept[:, j] > 0.0, _NEAR_ROWS
        for _ in range(_NOISE_ITERATIONS):
            local[j] = np.maximum(_amplitude(residual, counts, rows), least)
            shape = autocovariance(residual / local[j], counts)
            memory = (2.0 * shape.sum() - shape[0]) / shape[0] if shape[0] > 0.0 else 1.0
            longer = min(round(_BLOCK_CORRELATION_LENGTHS * memory), len(residual) // 5) // 2 * 2 + 1
            if longer <= rows:
                break
            rows = longer
    return local


def _amplitude(residual: Array, counts: Bools, rows: int) -> Array:
    """Return the root mean square (m,) of the valid residuals (m,) over a moving window of `rows`."""
    from scipy.ndimage import uniform_filter1d

    near = (uniform_filter1d(x, rows) for x in (np.where(counts, residual, 0.0) ** 2, counts.astype(float)))
    power, share = (np.maximum(x, 0.0) for x in near)  # running sums may end below zero by rounding
    return np.asarray(np.sqrt(power / np.maximum(share, 1.0 / rows)))


def _free(taken: Array) -> Array:
    """Return the share of the noise that remains in the residuals of a joint, near each frequency (frequencies,)."""
    return np.maximum(1.0 - _near(taken.astype(complex)).real, _LEAST_FREE)


def _leverage(instruments: Sequence[Spectra], columns: Sequence[Ints], weights: Array, kept: Ints,
              multiplicity: Array) -> list[Array]:
    """Return the share of the noise that the fit absorbs at each joint and frequency (frequencies,), its leverage:
    w^2 z* (Z'W^2 Z)^-1 z."""
    wide = []
    for weight, z, own in zip(weights, instruments, columns, strict=True):
        full = np.zeros((int(max(kept.max(), own.max())) + 1, z.shape[1]), dtype=complex)
        full[own] = weight * z
        wide.append(full[kept])
    gram = np.sum([np.real((z * multiplicity) @ z.conj().T) for z in wide], axis=0)
    scale = np.sqrt(np.maximum(np.diag(gram), 1e-300))[:, None]
    inverse = np.linalg.pinv(gram / (scale * scale.T), hermitian=True)
    return [np.real(np.sum((z / scale).conj() * (inverse @ (z / scale)), axis=0)) for z in wide]


def _near(spectrum: Spectra) -> Spectra:
    """Return the mean over neighbouring frequencies."""
    half = _half_width(len(spectrum))
    mirrored = np.concatenate([spectrum[half:0:-1].conj(), spectrum, spectrum[-2:-2 - half:-1].conj()])
    return np.convolve(mirrored, np.full(2 * half + 1, 1.0 / (2 * half + 1)), mode="valid")


def _half_width(frequencies: int) -> int:
    """Return the number of neighbouring frequencies on each side for smoothing a spectrum."""
    return min(max(4, frequencies // 50), max((frequencies - 1) // 2, 0))
