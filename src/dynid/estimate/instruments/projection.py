"""Projection of all joints' equations on their instruments, its residuals, its bias and its covariance.

The rate of the residuals is above the frequencies of the motion and below those of the noise of second differences.

Noise of the measured positions is independent of the instruments and causes no bias. The dry friction columns,
however, use a smoothed velocity, and the machine may vibrate around a reversal. With Y_w the columns of the whole
motion, the bias is -(Z'Y)^-1 Z'(Y - Y_w) b, see `dynid.estimate.motion_errors`.

The covariance of the estimate is (Z'Y)^-1 S (Z'Y)^-T, with S the covariance of Z'residual under residuals correlated in
time and between joints. Bias and covariance are evaluated at the rate of the residuals, since Z has no faster parts. S
is summed over frequencies, S_jl = sum_k Z_j(k) P_jl(k) Z_l(k)* / rows with the residuals' cross-spectrum P, so that the
noise of second differences above the motion's frequencies does not count. Residuals are first divided by their local
amplitude, because a coarse encoder has most error where a joint is slow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Array, Bools, Ints
from dynid.errors import NotPossibleError
from dynid.estimate.instruments.equations import Instrumented
from dynid.estimate.linear import positive_std
from dynid.recording import Decimation, Samples
from dynid.regression import Regression, Stacked
from dynid.regression.autocorrelation import autocovariance
from dynid.regression.base import reduce_columns
from dynid.regression.noise_spectrum import LowFrequencyNoise, multiplicity
from dynid.regression.residual_series import PIECE

_NOT_EXCITED = 1e-8  # independent share of an instrument column, below which it is excluded
_LOST_RANK = 1e-12  # smallest singular value of Q_Z'Y relative to the largest, for a solution
LOW_RATE = 100.0  # Hz, at which residuals are evaluated
_NEAR_ROWS = 11  # of the low rate, at least, over which the amplitude of residuals is taken
# in correlation times: with so many independent residuals in a window
_BLOCK_CORRELATION_LENGTHS = 11
_NOISE_ITERATIONS = 6  # largest number of alternating estimates of amplitude and correlation time
_MIN_AMPLITUDE_SHARE = 0.2  # of the standard deviation of all residuals: lower bound of their amplitude
_LEAST_FREE = 0.1  # smallest share of the noise that remains after a fit, near a frequency


@dataclass(frozen=True, eq=False)
class Projected:
    """Equations of all joints projected on the instruments: minimise |r beta - rho| (Ardiani, eq. 2.9).

    Attributes:
        r: (kept, kept), Q_Z'Y with the QR factorisation Z = Q_Z z.
        rho: (kept,), Q_Z'tau.
        z: (kept, kept), triangular factor of Z.
        kept: indices of the excited base columns.
        base: number of all base columns.
        rest: weighted squared torque that the instruments do not explain.
        rows: number of equations.
    """

    r: Array
    rho: Array
    z: Array
    kept: Ints
    rest: float
    base: int
    rows: int

    @property
    def cross(self) -> Array:
        """The weighted product Z'Y (kept, kept) of instruments and regressor."""
        return self.z.T @ self.r

    @property
    def condition(self) -> float:
        """Condition number of the projected regressor r with columns of unit length."""
        singular = _singular_values(self.r)
        return float(singular[0] / singular[-1])

    def solution(self) -> Array:
        """Return the estimate (Z'Y)^-1 Z'tau (base,), zero for parameters that the instruments Z do not excite."""
        scale, beta = np.linalg.norm(self.r, axis=0), np.zeros(self.base)
        beta[self.kept] = np.linalg.solve(self.r / scale, self.rho) / scale
        return beta

    def stacked(self) -> Stacked:
        """Return the criterion of instrumental variables as a least-squares problem in all base parameters."""
        wide, rho = np.zeros((self.base, self.base)), np.zeros(self.base)
        wide[:len(self.kept), self.kept], rho[:len(self.kept)] = self.r, self.rho
        return Stacked(wide, rho, self.rest, self.rows)

    def change(self, new: Array, old: Array) -> float:
        """Return the relative change, from old to new base values (base,), of the torques along the instruments."""
        step, size = self.z @ (new - old)[self.kept], self.z @ new[self.kept]
        return float(np.linalg.norm(step)) / max(float(np.linalg.norm(size)), 1e-300)


def project(regression: Regression, weights: Array, rows: int) -> Projected:
    """Return compressed `Instrumented` equations, weighted by joint (dof,), projected on their instruments.

    With Z = Q_Z z, the triangular factor of [Z Y tau] contains Q_Z'Y and Q_Z'tau (Janot, Vandanjon, Gautier, eq. 34).
    """
    stacked, base = regression.stack(weights), regression.base
    b = len(base) // 2
    instruments = stacked.r[:b, :b]
    if not np.any(np.abs(instruments) > 0):
        raise NotPossibleError("no equation remains after the initial transient of the simulation is dropped",
                               "record longer or give a faster controller", "no-rows-left")
    kept = np.sort(reduce_columns(instruments, base.parameters, range(b), tolerance=_NOT_EXCITED).independent)
    k, chosen = len(kept), stacked.select(np.concatenate([kept, b + kept]))
    rest = float(np.sum(chosen.rho[k:] ** 2)) + chosen.rest
    found = Projected(chosen.r[:k, k:], chosen.rho[:k], chosen.r[:k, :k], kept, rest, b, rows)
    singular = _singular_values(found.r)
    if singular[-1] < _LOST_RANK * singular[0]:
        ridged = [base.parameters.items[c].name for c in base.independent if base.parameters.items[c].ridge > 0]
        if ridged:
            more = " and others" if len(ridged) > 4 else ""
            raise NotPossibleError("instrumental variables do not support a ridge penalty, but only a ridge penalty "
                                   f"determines {', '.join(ridged[:4])}{more}",
                                   "give a friction curve few widths, such as widths = [0.1], or use 'wls'",
                                   "instruments-without-ridge")
        raise NotPossibleError("the instruments have lost rank: the simulated motion differs from the measured one",
                               "check the controller's gains and the reference, or use start = 'wls'",
                               "instruments-lost-rank")
    return found


def _singular_values(r: Array) -> Array:
    scale = np.linalg.norm(r, axis=0)
    return np.asarray(np.linalg.svd(r / np.where(scale > 0, scale, 1.0), compute_uv=False), dtype=float)


def low_decimation(samples: Samples) -> Decimation | None:
    """Return the decimation of samples to the low rate of the residuals; None if they are not faster."""
    if samples.decimation is not None:
        return samples.decimation
    factor = int(samples.rate // LOW_RATE)
    return Decimation(factor) if factor > 1 else None


@dataclass(frozen=True, eq=False)
class LowRate:
    """Instruments and residuals of the equations at the low rate `LOW_RATE`.

    Attributes:
        z: instruments of each joint (columns, rows).
        residual: residuals (rows, dof).
        kept: taper of each row (rows, dof).
        columns: indices of each joint's columns among the base parameters.
        scale: rows of the regression per row at the low rate.
        residual_std: standard deviation of each joint's residuals (dof,).
        relative_error: relative error of the torques along the instruments, percent.
        unexplained: share of the torque that the measured equations do not explain.
    """

    z: list[Array]
    residual: Array
    kept: Array
    columns: tuple[Ints, ...]
    scale: float
    residual_std: Array
    relative_error: float
    unexplained: float

    def weights(self) -> Array:
        """Return 1 / standard deviation of each joint's residuals (dof,); ones if all fit exactly."""
        return 1.0 / positive_std(self.residual_std)


def at_low_rate(logs: Sequence[Samples]) -> tuple[Samples, ...]:
    """Return the samples with a decimation to `LOW_RATE`, at which residuals are evaluated."""
    return tuple(replace(log, decimation=low_decimation(log)) for log in logs)


def low_rate(equations: Instrumented, beta: Array, scale: float) -> LowRate:
    """Return instruments and residuals at the low rate (`at_low_rate`), for base values beta (base,).

    scale: rows of the regression per row at the low rate.
    """
    layout, pieces = equations.equations.layout, equations.pieces()
    columns, joints = layout.columns, range(len(layout.columns))
    z: list[list[Array]] = [[] for _ in joints]
    series: list[Array] = []
    for piece in pieces:
        instruments, motion = equations.instruments(piece), equations.along_motion(piece)
        measured, values = equations.equations.rows(piece), [beta[own] for own in columns]
        torque = np.array([measured.joint(j)[-1] for j in joints])
        residual = torque - [values[j] @ measured.joint(j)[:-1] for j in joints]
        misfit = torque - [values[j] @ motion[layout.joint(j)][:-1] for j in joints]
        whole = torque if measured.known is None else torque + measured.known
        series.append(np.array([residual, misfit, whole, equations.taper(piece).T]))
        for j in joints:
            z[j].append(instruments[layout.joint(j)][:-1])
    residual, misfit, torque, kept = np.concatenate(series, axis=2).transpose(0, 2, 1)
    counts = kept > 0.0
    residual = np.where(counts, residual, 0.0)
    deviation = np.sqrt((residual ** 2).sum(axis=0) / np.maximum(counts.sum(axis=0), 1))
    size = max(float(np.sum(torque[counts] ** 2)), 1e-300)
    return LowRate([np.concatenate(parts, axis=1) for parts in z], residual, kept, columns, scale, deviation,
                   100.0 * float(np.sqrt(np.sum(misfit[counts] ** 2) / size)),
                   float(np.sqrt(np.sum(residual ** 2) / size)))


def low_rate_scale(logs: Sequence[Samples]) -> float:
    """Return the number of equations of the regression per equation at the low rate (`LOW_RATE`)."""
    found = [low_decimation(log) for log in logs if log.decimation is None]
    return float(max((one.total for one in found if one is not None), default=1))


def instrument_shift(equations: Instrumented, projected: Projected, unseen: Sequence[Array], beta: Array,
                     weights: Array) -> Array:
    """Return the bias (base,) of base values beta (base,) by fast motion, for joint weights (dof,). unseen: velocities
    (samples, dof), one array per log, that smoothed velocities do not contain."""
    measured, layout = equations.equations, equations.equations.layout
    whole = [replace(steady, dq=steady.dq + more) for steady, more in zip(measured.steady, unseen, strict=True)]
    score = np.zeros(len(beta))
    for piece in equations.pieces(unit=PIECE) if len(measured.dry_rows) else ():
        off = np.zeros((layout.rows, len(piece.rows)))
        seen = measured.rows(piece).entries[measured.dry_rows]
        off[measured.dry_rows] = seen - measured.dry_entries(piece, whole[piece.log])
        z = equations.instruments(piece)
        for j, own in enumerate(layout.columns):
            at = slice(layout.joint(j).start, layout.joint(j).stop - 1)
            score[own] += weights[j] ** 2 * (z[at] @ (off[at].T @ beta[own]))
    shift = np.zeros(len(beta))
    shift[projected.kept] = -np.linalg.solve(projected.cross, score[projected.kept])
    return shift


Spectra = NDArray[np.complex128]


def spectral_covariance(projected: Projected, low: LowRate, weights: Array) -> Array:
    """Return the covariance (base, base) of the solution of a projected problem with joint weights (dof,)."""
    kept = projected.kept
    middle = low.scale ** 2 * _score_covariance(projected, low, weights)[np.ix_(kept, kept)]
    inverse = np.linalg.inv(projected.cross)
    covariance = np.zeros((projected.base, projected.base))
    covariance[np.ix_(kept, kept)] = inverse @ (0.5 * (middle + middle.T)) @ inverse.T
    return covariance


def spectral_freedom(projected: Projected, low: LowRate, weights: Array) -> float:
    """Return the degrees of freedom of the covariance: the smallest of the residual spectra of all joints.

    Every frequency of a periodogram has two degrees of freedom. The fit uses a part where instruments have power.
    """
    spectra, counted = _instrument_spectra(low, residual_amplitude(low)), multiplicity(len(low.residual))
    free = [_free(share) for share in _leverage(spectra, low.columns, weights, projected.kept, counted)]
    means = [np.sum((1.0 - share) * share) / np.sum(1.0 - share) for share in free if np.any(share < 1.0)]
    return 2.0 * (2 * _half_width(len(counted)) + 1) * float(min(means, default=1.0))


def _instrument_spectra(low: LowRate, amplitude: Array) -> list[Spectra]:
    """Return the spectra (columns, frequencies) of each joint's instruments, multiplied by its residual amplitude."""
    return [np.fft.rfft(z * a, axis=1) for z, a in zip(low.z, amplitude, strict=True)]


def _score_covariance(projected: Projected, low: LowRate, weights: Array) -> Array:
    """Return the covariance S (base, base) of the weighted product of instruments and residuals, at the low rate."""
    rows, dof = low.residual.shape
    amplitude, kept = residual_amplitude(low), low.kept.T
    instruments, counted = _instrument_spectra(low, amplitude), multiplicity(rows)
    spectra = np.fft.rfft(kept * low.residual.T / amplitude, axis=1)
    taken = _leverage(instruments, low.columns, weights, projected.kept, counted)
    powers = [np.abs(own) ** 2 / max(float(np.sum(keep ** 2)), 1.0) for own, keep in zip(spectra, kept, strict=True)]
    first = _slow_noise(powers, taken, rows)
    taken = [1.0 - (1.0 - share) * _beside_gaps(shape, keep)
             for share, shape, keep in zip(taken, first, kept, strict=True)]
    free = [_free(share) for share in taken]
    # Neighbours of a frequency near zero have less of slow noise: spectra are smoothed relative to its shape.
    slow = _slow_noise(powers, taken, rows)
    roots = [np.sqrt(_extended(shape)) for shape in slow]
    middle = np.zeros((projected.base, projected.base))
    for j in range(dof):
        for other in range(j, dof):
            count = max(float(np.sum(kept[j] * kept[other])), 1.0)
            root = roots[j] * roots[other]
            power = root * _near(spectra[j] * spectra[other].conj() / root) / (count * np.sqrt(free[j] * free[other]))
            if other == j:  # the fit may absorb most of the noise near zero, of which the shape then says more
                power = np.maximum(power.real, slow[j]).astype(complex)
            part = np.real((instruments[j] * (counted * power.conj())) @ instruments[other].conj().T) / rows
            part *= weights[j] ** 2 * weights[other] ** 2
            middle[np.ix_(low.columns[j], low.columns[other])] += part
            if other != j:
                middle[np.ix_(low.columns[other], low.columns[j])] += part.T
    return middle


def _slow_noise(powers: Sequence[Array], taken: Sequence[Array], rows: int) -> list[Array]:
    """Return the spectrum (frequencies,) of each joint's low-frequency noise, zero above its band."""
    return [one.spectrum(rows) for one in LowFrequencyNoise.from_periodograms(
        [(power, share, rows, rows) for power, share in zip(powers, taken, strict=True)])]


def _extended(shape: Array) -> Array:
    """Return a spectrum (frequencies,) continued above its band by its smallest value; ones for a zero spectrum."""
    return np.where(shape > 0.0, shape, np.min(shape[shape > 0.0], initial=np.inf)) if shape.any() \
        else np.ones_like(shape)


def _beside_gaps(shape: Array, kept: Array) -> Array:
    """Return the share (frequencies,) of noise that remains at its frequency although rows are missing. shape
    (frequencies,): spectrum of the noise. kept (rows,): weight of each row; gaps spread a peak of the spectrum."""
    rows, whole = len(kept), _extended(shape)
    window = np.fft.irfft(np.abs(np.fft.rfft(kept)) ** 2, rows) / max(float(np.sum(kept ** 2)), 1.0)
    return np.clip(np.fft.rfft(np.fft.irfft(whole, rows) * window).real / whole, _LEAST_FREE, 1.0)


def residual_amplitude(low: LowRate) -> Array:
    """Return the local amplitude (dof, rows) of each joint's residuals, at least a fifth of their standard deviation.

    The amplitude is averaged over many correlation times of the scaled residuals, because a shorter average would
    remove slow components. Amplitude and correlation time are determined iteratively, starting from short windows. Few
    correlation times fit into a short log: the logarithm of the amplitude over n rows of normal noise with
    autocorrelation rho has the variance sum rho^2 / 2n by chance. It is shrunk toward its mean by this share.
    """
    local = np.empty(low.residual.T.shape)
    for j, least in enumerate(np.maximum(_MIN_AMPLITUDE_SHARE * low.residual_std, 1e-300)):
        residual, counts, rows, rho = low.residual[:, j], low.kept[:, j] > 0.0, _NEAR_ROWS, np.ones(1)
        for _ in range(_NOISE_ITERATIONS):
            local[j] = np.maximum(_amplitude(residual, counts, rows), least)
            shape = autocovariance(residual / local[j], counts)
            rho = shape / shape[0] if shape[0] > 0.0 else np.ones(1)
            longer = min(round(_BLOCK_CORRELATION_LENGTHS * (2.0 * rho.sum() - 1.0)), len(residual) // 5) // 2 * 2 + 1
            if longer <= rows:
                break
            rows = longer
        if counts.any():
            size, chance = np.log(local[j]), 0.5 * (2.0 * float(rho @ rho) - 1.0) / rows
            mean, spread = float(size[counts].mean()), float(size[counts].var())
            local[j] = np.exp(mean + max(0.0, 1.0 - chance / max(spread, 1e-300)) * (size - mean))
    return local


def _amplitude(residual: Array, counts: Bools, rows: int) -> Array:
    """Return the root mean square (m,) of the valid residuals (m,) over a moving window of `rows`."""
    from scipy.ndimage import uniform_filter1d

    near = (uniform_filter1d(x, rows) for x in (np.where(counts, residual, 0.0) ** 2, counts.astype(float)))
    power, share = (np.maximum(x, 0.0) for x in near)  # running sums may become negative by rounding
    return np.asarray(np.sqrt(power / np.maximum(share, 1.0 / rows)))


def _free(taken: Array) -> Array:
    """Return the share (frequencies,) of a joint's noise that remains in its residuals, near each frequency."""
    return np.maximum(1.0 - _near(taken.astype(complex)).real, _LEAST_FREE)


def _leverage(instruments: Sequence[Spectra], columns: Sequence[Ints], weights: Array, kept: Ints,
              counted: Array) -> list[Array]:
    """Return the share of the noise that the fit absorbs at each joint and frequency (frequencies,), its leverage:
    w^2 z* (Z'W^2 Z)^-1 z. counted (frequencies,): see `multiplicity`."""
    wide = []
    for weight, z, own in zip(weights, instruments, columns, strict=True):
        full = np.zeros((int(max(kept.max(), own.max())) + 1, z.shape[1]), dtype=complex)
        full[own] = weight * z
        wide.append(full[kept])
    gram = np.sum([np.real((z * counted) @ z.conj().T) for z in wide], axis=0)
    scale = np.sqrt(np.maximum(np.diag(gram), 1e-300))[:, None]
    inverse = np.linalg.pinv(gram / (scale * scale.T), hermitian=True)
    return [np.real(np.sum((z / scale).conj() * (inverse @ (z / scale)), axis=0)) for z in wide]


def _near(spectrum: Spectra) -> Spectra:
    """Return a spectrum (frequencies,) averaged over neighbouring frequencies."""
    half = _half_width(len(spectrum))
    mirrored = np.concatenate([spectrum[half:0:-1].conj(), spectrum, spectrum[-2:-2 - half:-1].conj()])
    return np.convolve(mirrored, np.full(2 * half + 1, 1.0 / (2 * half + 1)), mode="valid")


def _half_width(frequencies: int) -> int:
    """Return the number of neighbouring frequencies on each side for smoothing a spectrum."""
    return min(max(4, frequencies // 50), max((frequencies - 1) // 2, 0))
