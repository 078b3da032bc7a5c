"""Autocorrelation of residuals, and its effect on the covariance of an estimate.

Least squares assumes independent rows, but the noise of filtered torques is correlated between neighbours. With the
residual autocovariance c_j(k) of joint j, the covariance of the weighted estimate is

    H^-1 (sum_j w_j^4 X_j' C_j X_j) H^-1,   H = sum_j w_j^2 X_j' X_j,   (C_j)_st = c_j(s - t),

and X_j' C_j X_j is X_j' times X_j convolved with c_j, which takes one more pass over the data.

Residuals are smaller than the noise, mainly at the low frequencies of the motion, where the parameters absorb it.
With q_i the columns of w_j X_j made orthonormal in H, the absorbed share at a frequency is the sum of |q_i|^2 there
divided by the number of rows; c_j is corrected for it. Noise whose memory is long against the motion is fitted by a
model of its spectrum (`dynid.regression.noise_spectrum`), because a window of the log's length cannot resolve it.

If two equations i and j use the same torque (`FlexibleModel`), they share its noise, and X_i' C_ij X_j is added. With
each residual in units of its standard deviation, their sum and difference are assumed uncorrelated: the
autocovariances u of the sum and v of the difference give (u + v) / 4 for each and (u - v) / 4 between them, which is
positive semidefinite. Equations of a robot with a free base have common noise too (`dynid.regression.noise_spectrum`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.fft import irfft, rfft

from dynid.arrays import Array, Bools, Ints
from dynid.regression.derived import same_torque
from dynid.regression.equations import Equations, Piece, Rows
from dynid.regression.noise_spectrum import (
    MOST_ABSORBED,
    LowFrequencyNoise,
    common_noise_matrix,
    have_common_noise,
    multiplicity,
    residual_correlation,
    spectrum,
)
from dynid.regression.residual_series import PIECE, excerpt_pieces, log_residuals
from dynid.signals import fast_length
from dynid.threads import side_by_side

_ENOUGH_ROWS = 262144  # rows from which correlation is estimated; results are scaled up for more data
PARZEN_FREEDOM = 3.71  # degrees of freedom of a spectrum by a Parzen window, times lags over rows
_LAG_EXTENSION = 3  # extension of autocovariances after the correction for absorbed noise
_LONG_WINDOW = 0.5  # share of the longest window, above which it may truncate the correlation, so slow noise is fitted


@dataclass(frozen=True, eq=False)
class Correlation:
    """Autocorrelation of the torque residuals of each joint, and the noise that it causes in the normal equations.

    Attributes:
        autocovariance: c_j(k), k = 0, 1, .., windowed, one array (lags,) per joint.
        noise: X_j' C_j X_j on the joint's own columns, one per joint.
        columns: base parameters of each joint's columns.
        rows: number of equations of each joint.
        effective: effective number of independent equations of each joint.
        rate: sampling rate of the rows, Hz.
        shared: X_i' C_ij X_j of equations i and j that use the same torque, by (i, j).
        degrees_of_freedom: of the noise, the smallest of any joint; a bound for all variances derived from it.
        common: sum of w_i^2 w_j^2 X_i' C_ij X_j (base, base) over different equations of a robot with a free base, with
            the weights of the estimate; None for other robots.
    """

    autocovariance: tuple[Array, ...]
    noise: tuple[Array, ...]
    columns: tuple[Ints, ...]
    rows: Array
    effective: Array
    rate: float
    shared: Mapping[tuple[int, int], Array] = field(default_factory=dict)
    degrees_of_freedom: float = np.inf
    common: Array | None = None


def autocovariance(residual: Array, keep: Bools, absorbed: Array | None = None) -> Array:
    """Return the windowed autocovariance c(k) (lags,) of one joint's residuals (m,); rows outside `keep` are gaps.

    The lags reach ten correlation times. The Parzen window has a positive transform, so variances computed from c are
    not negative. `absorbed` (m,), the sum over t of P[t, t + k] of the projection P of the fit, corrects for absorbed
    noise.
    """
    return autocovariances([residual], [keep], [absorbed])[0]


def autocovariances(residuals: Sequence[Array], keep: Sequence[Bools], absorbed: Sequence[Array | None]) -> list[Array]:
    """Return the `autocovariance` of each of several residual series; their low-frequency noise is fitted jointly."""
    return [shape for shape, *_ in _lag_window_estimates(residuals, keep, absorbed)]


def _lag_window_estimates(residuals: Sequence[Array], keeps: Sequence[Bools], absorbed: Sequence[Array | None]
                          ) -> list[tuple[Array, float, float]]:
    """Return three values for each residual series: its `autocovariance`, the degrees of freedom of its spectrum at the
    frequencies that the fit absorbs, and the low-frequency noise in the sum of its autocovariance over all lags.

    A spectrum by a Parzen window of M lags from n rows has 3.71 n / M degrees of freedom (Priestley, section 6.2),
    reduced by the share that the fit absorbs.
    """
    found, windows, slow = [], list[tuple[int, Array, Array, int]](), dict[int, tuple[Array, Array, int]]()
    for k, (residual, keep, absorbed_part) in enumerate(zip(residuals, keeps, absorbed, strict=True)):
        x, count = np.where(keep, residual, 0.0), int(keep.sum())
        raw = _raw_autocovariance(x, count)
        if raw[0] <= 0:
            found.append((np.zeros(1), np.inf, 0.0))
            continue
        last, limit = _window_lags(raw), max(1, len(x) // 5)
        u = np.arange(last) / last
        parzen = np.where(u < 0.5, 1 - 6 * u ** 2 + 6 * u ** 3, 2 * (1 - u) ** 3)
        found.append((raw[:last] * parzen, PARZEN_FREEDOM * count / last, 0.0))
        if absorbed_part is not None:
            windows.append((k, parzen, absorbed_part, count))
            if last > _LONG_WINDOW * limit:
                slow[k] = x, absorbed_part[:len(x)], count
    low = dict(zip(slow, LowFrequencyNoise.from_series([*slow.values()]), strict=True))
    for k, parzen, absorbed_part, count in windows:
        shape, degrees_of_freedom, _ = found[k]
        reach = min(len(shape), len(absorbed_part))
        whole, left, part = _put_back(shape, absorbed_part[:reach] * parzen[:reach] / count, low.get(k))
        found[k] = whole, degrees_of_freedom * left, part
    return found


def _raw_autocovariance(x: Array, count: int) -> Array:
    """Return the biased autocovariance (m,) of a series (m,) that is zero in gaps; count: number of rows outside gaps.

    The sum over rows is divided by `count` at every lag.
    """
    size = fast_length(2 * len(x))
    return irfft(np.abs(rfft(x, size)) ** 2, size)[:len(x)] / count if count > 1 else np.zeros(1)


def lag_products(columns: Array) -> Array:
    """Return the sum of x[t] x[t + lag] over rows t and over all columns x (k, m), by lag (m,). For orthonormal columns
    this is the sum over t of P[t, t + lag] of the projection P onto the columns."""
    size = fast_length(2 * columns.shape[1])
    power = np.sum([np.abs(rfft(row, size)) ** 2 for row in columns], axis=0)  # saves memory
    return irfft(power, size)[:columns.shape[1]]


def _window_lags(raw: Array) -> int:
    """Return the length of the lag window for an autocovariance (m,): about ten correlation times, at most a fifth of
    the rows. By Sokal's rule, the integrated correlation time is summed up to the first lag beyond six times itself."""
    limit = max(1, len(raw) // 5)
    time = 1.0 + 2.0 * np.cumsum(raw[1:limit] / raw[0])
    lags = np.arange(1, len(time) + 1)
    beyond = np.flatnonzero(lags >= 6.0 * np.maximum(time, 1.0))
    last = int(lags[beyond[0]]) if len(beyond) else limit
    return int(np.clip(2 * last, 8, limit))


def _put_back(shape: Array, absorbed: Array, low: LowFrequencyNoise | None) -> tuple[Array, float, float]:
    """Return the autocovariance (lags,) of the noise: that of the residuals plus the part that the fit absorbs. Also
    return the mean share of noise in the residuals at the absorbed frequencies, and the low-frequency noise in the sum
    over all lags. low: spectrum of noise that is slow compared with the window, or None."""
    reach = _LAG_EXTENSION * len(shape)
    size = fast_length(2 * reach)
    absorbed_part = np.clip(spectrum(absorbed, size), 0.0, MOST_ABSORBED)
    mean = float(np.sum(absorbed_part * (1.0 - absorbed_part)) / absorbed_part.sum()) if absorbed_part.any() else 1.0
    windowed = spectrum(shape, size) / (1.0 - absorbed_part)
    found = windowed if low is None else np.maximum(windowed, low.spectrum(size))
    return irfft(found, size)[:reach], mean, float(found[0] - windowed[0])


def correlation(equations: Equations, beta: Array, *, inverse: Array | None = None, weights: Array | None = None,
                influence: Callable[[Array], Array] | None = None, matrices: bool = True,
                threads: int | None = None) -> Correlation:
    """Return the autocorrelation of the residuals of an estimate.

    Args:
        equations: rows of all logs.
        beta: base values (base,).
        inverse: H^-1 (base, base) of the estimate, to correct for absorbed noise; without it, residuals count as noise.
        weights: w (equations,) of the estimate.
        influence: maps residuals (m, equations) to their influence on a robust estimate (m, equations).
        matrices: whether to compute X' C X, which is one more pass over the data.
        threads: number of threads.

    For very long data an excerpt is used; `Correlation.rows` states the number of rows.
    """
    count, step = len(equations.joints), max((piece.rows.step for piece in equations.pieces(unit=PIECE)), default=1)
    work = excerpt_pieces(equations, _ENOUGH_ROWS * step)
    logs = sorted({piece.log for piece in work})
    rows, power = np.zeros((2, len(logs), count))
    # The shape in time comes from the longest log, or the mean over all that are as long; the size from all logs.
    lengths = [sum(len(piece.rows) for piece in work if piece.log == log) for log in logs]
    shapes, pairs = [np.zeros(1) for _ in range(count)], same_torque(equations)
    degrees_of_freedom, slow = np.zeros((2, count))
    between = {pair: (np.zeros(1), np.zeros(1)) for pair in pairs}
    rho = np.zeros((count, count)) if matrices and have_common_noise(equations) else None
    for k, log in enumerate(logs):
        own, is_longest = [piece for piece in work if piece.log == log], lengths[k] == max(lengths)
        taken = (_Absorbed.from_equations(equations, log, inverse, weights) if inverse is not None and is_longest
                 else None)
        r = log_residuals(equations, log, own, beta, threads, None if taken is None else taken.look)
        felt = r.residual if influence is None else influence(r.residual)
        rows[k] = r.keep.sum(axis=0)
        power[k] = [np.sum(felt[r.keep[:, j], j] ** 2) for j in range(count)]
        if is_longest:
            rate = r.rate
            absorbed_part: Sequence[Array | None] = [None] * count if taken is None else taken.sums()
            estimates = _lag_window_estimates([*felt.T], [*r.keep.T], absorbed_part)
            for j, (shape, own_freedom, own_slow) in enumerate(estimates):
                shapes[j], degrees_of_freedom[j] = _sum_of_lags(shapes[j], shape), degrees_of_freedom[j] + own_freedom
                slow[j] += own_slow / shape[0] if shape[0] > 0.0 else 0.0
            if rho is not None:
                rho += residual_correlation(felt, r.keep, absorbed_part)
            for i, j in pairs:
                found = _together(felt[:, [i, j]], r.keep[:, [i, j]], absorbed_part[i], absorbed_part[j])
                between[i, j] = _sum_of_lags(between[i, j][0], found[0]), _sum_of_lags(between[i, j][1], found[1])
        del r, felt  # as large as the log itself
    total = rows.sum(axis=0)
    longest = np.flatnonzero(np.equal(lengths, max(lengths)))
    for (i, j), (alone, other) in between.items():
        alone, other = alone / len(longest), other / len(longest)
        between[i, j] = alone, other
        shapes[i], shapes[j] = alone * shapes[i][0], alone * shapes[j][0]
    size = power.sum(axis=0) / np.maximum(total, 1.0)
    first = power[longest].sum(axis=0) / np.maximum(rows[longest].sum(axis=0), 1.0)
    shapes = [shape / len(longest) * (size[j] / first[j] if first[j] > 0 else 1.0) for j, shape in enumerate(shapes)]
    noise = _noise_matrices(equations, work, shapes, threads) if matrices else ()
    # Slow noise is excluded: it affects few parameters, those of constant torques.
    effective = np.array([n * c[0] / max(2.0 * c.sum() - (1.0 + slow[j] / len(longest)) * c[0], 1e-300)
                          if c[0] > 0 else n for j, (n, c) in enumerate(zip(total, shapes, strict=True))])
    shared = {(i, j): np.sqrt(shapes[i][0] * shapes[j][0]) * _shared_noise(equations, work, (i, j), *both, threads)
              for (i, j), both in between.items() if matrices}
    common = None if rho is None else common_noise_matrix(equations, work, shapes, rho / len(longest),
                                                          np.ones(count) if weights is None else weights)
    return Correlation(tuple(shapes), noise, equations.layout.columns, total, np.clip(effective, 1.0, total),
                       rate, shared, float(degrees_of_freedom.min(initial=np.inf)), common)


def _sum_of_lags(first: Array, second: Array) -> Array:
    """Return the sum of two functions of the lag (lags,), which are zero beyond their ends."""
    lags = max(len(first), len(second))
    return np.pad(first, (0, lags - len(first))) + np.pad(second, (0, lags - len(second)))


def _together(residual: Array, keep: Bools, absorbed: Array | None, other: Array | None) -> tuple[Array, Array]:
    """Return the normalised autocovariance (lags,) of two residual series (m, 2), each divided by its standard
    deviation, and the covariance (lags,) between the two."""
    both = np.all(keep, axis=1)
    unit = residual / np.maximum(np.sqrt(np.mean(residual[both] ** 2, axis=0)), 1e-300)
    taken = None if absorbed is None or other is None else 0.5 * (absorbed + other)
    found = [autocovariance(unit[:, 0] + sign * unit[:, 1], both, taken) for sign in (1.0, -1.0)]
    both_ways, between = _sum_of_lags(found[0], found[1]), _sum_of_lags(found[0], -found[1])
    whole = max(both_ways[0], 1e-300)
    return both_ways / whole, between / whole


def _shared_noise(equations: Equations, work: Sequence[Piece], pair: tuple[int, int], alone: Array, shape: Array,
                  threads: int | None) -> Array:
    """Return X_i' C_ij X_j of equations i, j with the same torque; alone, shape (lags,): autocovariance of the residual
    of each and covariance of the two, for residuals of variance one."""
    def one(piece: Piece) -> Array:
        rows = equations.rows(piece)
        i, j = (np.where(rows.keep[:, e], rows.joint(e)[:-1], 0.0) for e in pair)
        return _product(i, j, shape, alone)

    return np.asarray(np.sum(side_by_side(one, work, threads), axis=0))


def _noise_matrices(equations: Equations, work: Sequence[Piece], shapes: Sequence[Array], threads: int | None
                    ) -> tuple[Array, ...]:
    """Return X_j' C_j X_j of each equation j over pieces of the data; shapes: autocovariance (lags,) of each."""
    def of_piece(piece: Piece) -> list[Array]:
        rows = equations.rows(piece)
        return [noise_matrix(rows.joint(j)[:-1], rows.keep[:, j], shape) for j, shape in enumerate(shapes)]

    return tuple(sum(parts[1:], parts[0]) for parts in zip(*side_by_side(of_piece, work, threads), strict=True))


@dataclass(frozen=True, eq=False)
class _Absorbed:
    """The noise that the fit absorbs, by lag k: the sum over t of P[t, t + k] (lags,) for each equation j, with its
    part P = w_j^2 X_j H^-1 X_j' of the projection onto the regressor.

    Attributes:
        halves: square roots of w_j^2 H^-1, one per equation.
        lags: number of lags.
        found: the sums of each piece by its first row.
    """

    halves: tuple[Array, ...]
    lags: int
    found: dict[int, list[Array]] = field(default_factory=dict)

    @staticmethod
    def from_equations(equations: Equations, log: int, inverse: Array, weights: Array | None) -> _Absorbed:
        lags = min(PIECE, max(1, len(equations.logs[log]) // 5))  # the largest lag in `autocovariance`
        weights = np.ones(len(equations.joints)) if weights is None else weights
        halves = []
        for weight, own in zip(weights, equations.layout.columns, strict=True):
            values, vectors = np.linalg.eigh(weight ** 2 * inverse[np.ix_(own, own)])
            halves.append((vectors * np.sqrt(np.maximum(values, 0.0))).T)
        return _Absorbed(tuple(halves), lags)

    def look(self, piece: Piece, rows: Rows) -> None:
        """Store the share of noise that the fit absorbs in one piece of the data, by lag, for each equation."""
        self.found[piece.rows.start] = [self._of_piece(half, rows.joint(j)[:-1], rows.keep[:, j])
                                        for j, half in enumerate(self.halves)]

    def _of_piece(self, half: Array, columns: Array, keep: Bools) -> Array:
        if not len(columns):  # a joint without columns absorbs nothing
            return np.zeros(self.lags)
        found = lag_products(half @ np.where(keep, columns, 0.0))[:self.lags]
        return np.pad(found, (0, self.lags - len(found)))

    def sums(self) -> list[Array]:
        """Return the share of noise (lags,) that the fit absorbs in all pieces of the data, for each equation."""
        return [np.sum(parts, axis=0) for parts in zip(*(self.found[k] for k in sorted(self.found)), strict=True)]


def noise_matrix(columns: Array, keep: Bools, shape: Array) -> Array:
    """Return X' C X (k, k), the covariance of the score, for columns X (k, m) and residual autocovariances C."""
    x = np.where(keep, columns, 0.0)
    product = _product(x, x, shape)
    return 0.5 * (product + product.T)


def correlated_covariance(columns: Array, residual: Array, keep: Bools) -> Array:
    """Return the covariance (k, k) of least squares on columns (k, m) with autocorrelated residuals (m,) and gaps."""
    x = np.where(keep, columns, 0.0)
    inverse = np.linalg.pinv(x @ x.T, hermitian=True, rcond=1e-24)
    return np.asarray(inverse @ noise_matrix(columns, keep, autocovariance(residual, keep)) @ inverse)


def _product(x: Array, other: Array, shape: Array, limit: Array | None = None) -> Array:
    """Return X C Y' (k, l) for columns X (k, m) and Y (l, m), with C the matrix of autocovariances `shape` (lags,).

    An autocovariance that is cut off at its last lag may have a negative spectrum, and variances computed from it would
    be negative. Negative values of the spectrum therefore count as zero. limit (lags,): for the covariance of two
    series, the autocovariance of each; the spectrum of `shape` then has any sign, and at most the size of this one.
    """
    if len(shape) == 1 and limit is None:
        return max(shape[0], 0.0) * (x @ other.T)
    shape, limit = shape[:x.shape[1]], (shape if limit is None else limit)[:x.shape[1]]
    size = fast_length(x.shape[1] + max(len(shape), len(limit)))
    most = np.maximum(spectrum(limit, size), 0.0)
    power = multiplicity(size) / size * np.clip(spectrum(shape, size), -most, most)
    spectra = rfft(x, size).view(float)  # real and imaginary parts alternate
    others = spectra if other is x else rfft(other, size).view(float)
    return np.asarray((spectra * np.repeat(power, 2)) @ others.T)  # Parseval
