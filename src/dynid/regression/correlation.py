"""How residuals correlate in time, and what that does to the covariance of an estimate.

Least squares takes every row for independent news. Filtered torques are not: neighbours share the same noise. With
residual autocovariance c_j(k) of joint j, the honest covariance of the weighted estimate is

    H^-1 (sum_j w_j^4 X_j' C_j X_j) H^-1,   H = sum_j w_j^2 X_j' X_j,   (C_j)_st = c_j(s - t),

and X_j' C_j X_j is X_j' times X_j convolved with c_j, one more pass over the data.

Residuals are smaller than the noise, and most of all at the slow rhythms of the motion, where the parameters have
absorbed it and where it hurts them most. With q_i the columns of w_j X_j made orthonormal in H, the share of the noise
that is gone at a frequency is the sum of |q_i|^2 there over the number of rows; c_j is given it back.

Where two equations i and j read the same torque (`FlexibleModel`), they share its noise, and X_i' C_ij X_j counts too.
With each residual in units of its own standard deviation, sum and difference of both are taken for uncorrelated: the
sum's autocovariance u and the difference's v give (u + v) / 4 for each and (u - v) / 4 between them, a noise that no
combination of both equations can have a negative variance under.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.fft import irfft, rfft

from dynid.arrays import Array, Bools, Ints
from dynid.regression.derived import same_torque
from dynid.regression.equations import Equations, Piece, Rows
from dynid.regression.residuals import PIECE, excerpt_pieces, log_residuals
from dynid.signals import fast_length
from dynid.threads import side_by_side

_ENOUGH_ROWS = 262144  # rows of which correlation is learnt; more data is scaled up from these
_MOST_ABSORBED = 0.9  # share of the noise that may be gone at a frequency before nothing can be said of it
PARZEN_FREEDOM = 3.71  # degrees of freedom of a spectrum by a Parzen window, times lags over rows
_LAG_EXTENSION = 3  # how much longer autocovariances get when what was absorbed is put back
_PIECES_AT_ONCE = 64  # whose sums are held together


@dataclass(frozen=True, eq=False)
class Correlation:
    """How the residuals of each joint hang together in time.

    autocovariance: c_j(k), k = 0, 1, .., one array a joint (lags,), smoothly cut. noise: X_j' C_j X_j among the joint's
    own columns, one per joint. rows: equations of each joint. effective: how many independent ones they are worth.
    rate: of the rows, Hz. shared: X_i' C_ij X_j of equations i and j that read the same torque, by (i, j). freedom: the
    fewest degrees of freedom of the noise of any joint, which bound those of any variance made of them.
    """

    autocovariance: tuple[Array, ...]
    noise: tuple[Array, ...]
    columns: tuple[Ints, ...]
    rows: Array
    effective: Array
    rate: float
    shared: Mapping[tuple[int, int], Array] = field(default_factory=dict)
    freedom: float = np.inf


def autocovariance(residual: Array, keep: Bools, absorbed: Array | None = None) -> Array:
    """c(k) (lags,) of one joint's residuals (m,), rows not kept being gaps, smoothly cut to zero.

    The lags reach ten times the time the correlation lasts. A Parzen window ends them: its transform is positive, so
    no variance computed from c can come out negative. absorbed (m,): sum over t of P[t, t + k] of the projection P onto
    what was estimated; what it took from the noise is put back.
    """
    return _lag_window_estimate(residual, keep, absorbed)[0]


def _lag_window_estimate(residual: Array, keep: Bools, absorbed: Array | None) -> tuple[Array, float]:
    """Return what `autocovariance` does, and its degrees of freedom at the frequencies that were absorbed.

    A spectrum by a Parzen window of M lags from n rows has 3.71 n / M degrees of freedom (Priestley, section 6.2). Of
    them the fit leaves a share, which is smallest where the estimate's own noise is.
    """
    x = np.where(keep, residual, 0.0)
    count = int(keep.sum())
    if count < 2:
        return np.zeros(1), np.inf
    size = fast_length(2 * len(x))
    product = irfft(np.abs(rfft(x, size)) ** 2, size)[:len(x)]
    # The biased estimate, over all rows whatever the lag: gaps thin it out no more than they thin the data.
    raw = product / count
    limit = max(1, len(x) // 5)
    if raw[0] <= 0:
        return np.zeros(1), np.inf
    # Sokal's rule: the integrated correlation time, summed up to the first lag beyond six times itself.
    time = 1.0 + 2.0 * np.cumsum(raw[1:limit] / raw[0])
    lags = np.arange(1, len(time) + 1)
    beyond = np.flatnonzero(lags >= 6.0 * np.maximum(time, 1.0))
    last = int(lags[beyond[0]]) if len(beyond) else limit
    last = int(np.clip(2 * last, 8, limit))
    u = np.arange(last) / last
    parzen = np.where(u < 0.5, 1 - 6 * u ** 2 + 6 * u ** 3, 2 * (1 - u) ** 3)
    shape = raw[:last] * parzen
    freedom = PARZEN_FREEDOM * count / last
    if absorbed is None:
        return shape, freedom
    reach = min(last, len(absorbed))
    found, left = _put_back(shape, absorbed[:reach] * parzen[:reach] / count)
    return found, freedom * left


def _put_back(shape: Array, absorbed: Array) -> tuple[Array, float]:
    """Autocovariance of the noise, from that of residuals: its spectrum over the share that was left of it; and the
    mean of this share over what was absorbed."""
    reach = _LAG_EXTENSION * len(shape)
    size = fast_length(2 * reach)
    gone = np.clip(_spectrum(absorbed, size), 0.0, _MOST_ABSORBED)
    mean = float(np.sum(gone * (1.0 - gone)) / gone.sum()) if gone.any() else 1.0
    return irfft(_spectrum(shape, size) / (1.0 - gone), size)[:reach], mean


def _spectrum(shape: Array, size: int) -> Array:
    """Spectrum (size // 2 + 1,) of an autocovariance given for lags from zero."""
    kernel = np.zeros(size)
    kernel[:len(shape)] = shape
    if len(shape) > 1:
        kernel[-(len(shape) - 1):] = shape[:0:-1]
    return rfft(kernel).real


def correlation(equations: Equations, beta: Array, *, inverse: Array | None = None, weights: Array | None = None,
                influence: Callable[[Array], Array] | None = None, matrices: bool = True,
                threads: int | None = None) -> Correlation:
    """How the residuals of an estimate correlate in time, and what that does to its covariance.

    inverse (base, base) and weights (equations,): H^-1 and w of the estimate, to put back the noise it absorbed;
    without them residuals are taken for the noise. influence: of residuals (m, equations), what a robust estimate
    feels of them (m, equations). matrices: whether X' C X is wanted, which is one more pass over the data. Of very
    long data some whole stretches all along are enough; `Correlation.rows` says how many rows were looked at.
    """
    count, work = len(equations.joints), _some_pieces(equations)
    logs = sorted({piece.log for piece in work})
    rows, power = np.zeros((2, len(logs), count))
    # The shape in time from the longest log, or the mean over all that are as long; the size from all of them.
    lengths = [sum(len(piece.rows) for piece in work if piece.log == log) for log in logs]
    shapes, pairs = [np.zeros(1) for _ in range(count)], same_torque(equations)
    freedom = np.zeros(count)
    between = {pair: (np.zeros(1), np.zeros(1)) for pair in pairs}
    for k, log in enumerate(logs):
        own, is_longest = [piece for piece in work if piece.log == log], lengths[k] == max(lengths)
        taken = _Absorbed.of(equations, log, inverse, weights) if inverse is not None and is_longest else None
        r = log_residuals(equations, log, own, beta, threads, None if taken is None else taken.look)
        felt = r.residual if influence is None else influence(r.residual)
        rows[k] = r.keep.sum(axis=0)
        power[k] = [np.sum(felt[r.keep[:, j], j] ** 2) for j in range(count)]
        if is_longest:
            rate = r.rate
            gone: Sequence[Array | None] = [None] * count if taken is None else taken.sums()
            for j in range(count):
                shape, own_freedom = _lag_window_estimate(felt[:, j], r.keep[:, j], gone[j])
                shapes[j], freedom[j] = _sum_of_lags(shapes[j], shape), freedom[j] + own_freedom
            for i, j in pairs:
                found = _together(felt[:, [i, j]], r.keep[:, [i, j]], gone[i], gone[j])
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
    noise = _over(equations, work, lambda j, columns, keep: noise_matrix(columns, keep, shapes[j]),
                  threads) if matrices else ()
    effective = np.array([n * c[0] / (2.0 * c.sum() - c[0]) if c[0] > 0 else n
                          for n, c in zip(total, shapes, strict=True)])
    shared = {(i, j): _shared_noise(equations, work, (i, j), other * np.sqrt(shapes[i][0] * shapes[j][0]), threads)
              for (i, j), (_, other) in between.items() if matrices}
    return Correlation(tuple(shapes), tuple(noise), equations.layout.columns, total, np.clip(effective, 1.0, total),
                       rate, shared, float(freedom.min(initial=np.inf)))


def _sum_of_lags(first: Array, second: Array) -> Array:
    """Sum of two functions of the lag (lags,), which are zero beyond their ends."""
    lags = max(len(first), len(second))
    return np.pad(first, (0, lags - len(first))) + np.pad(second, (0, lags - len(second)))


def _together(residual: Array, keep: Bools, absorbed: Array | None, other: Array | None) -> tuple[Array, Array]:
    """Autocovariance of either of two residuals (m, 2) in units of their standard deviations (lags,), 1 at lag zero,
    and the covariance between them (lags,)."""
    both = np.all(keep, axis=1)
    unit = residual / np.maximum(np.sqrt(np.mean(residual[both] ** 2, axis=0)), 1e-300)
    taken = None if absorbed is None or other is None else 0.5 * (absorbed + other)
    found = [autocovariance(unit[:, 0] + sign * unit[:, 1], both, taken) for sign in (1.0, -1.0)]
    lags = max(map(len, found))
    u, v = (np.pad(shape, (0, lags - len(shape))) for shape in found)
    whole = max(u[0] + v[0], 1e-300)
    return (u + v) / whole, (u - v) / whole


def _shared_noise(equations: Equations, work: Sequence[Piece], pair: tuple[int, int], shape: Array,
                  threads: int | None) -> Array:
    """X_i' C_ij X_j of two equations, C_ij the matrix of covariances between their residuals, `shape` (lags,)."""
    def one(piece: Piece) -> Array:
        rows = equations.rows(piece)
        i, j = (np.where(rows.keep[:, e], rows.joint(e)[:-1], 0.0) for e in pair)
        return _product(i, j, shape)

    return np.asarray(np.sum(side_by_side(one, work, threads), axis=0))


def _some_pieces(equations: Equations) -> list[Piece]:
    """All pieces, or those of an excerpt where there are more than `_ENOUGH_ROWS` rows."""
    step = max((piece.rows.step for piece in equations.pieces(unit=PIECE)), default=1)
    return excerpt_pieces(equations, _ENOUGH_ROWS * step)


def _over(equations: Equations, work: Sequence[Piece], one: Callable[[int, Array, Bools], Array],
          threads: int | None) -> list[Array]:
    """Sum of one(equation, columns (k, m), keep (m,)) over all pieces, for each equation."""
    count = len(equations.joints)

    def sums(piece: Piece) -> list[Array]:
        rows = equations.rows(piece)
        return [one(j, rows.joint(j)[:-1], rows.keep[:, j]) for j in range(count)]

    total: list[Array] = []
    for start in range(0, len(work), _PIECES_AT_ONCE):  # a piece may give as many numbers as it has rows
        for found in side_by_side(sums, work[start:start + _PIECES_AT_ONCE], threads):
            total = [one + more for one, more in zip(total, found, strict=True)] if total else found
    return total or [np.zeros(()) for _ in range(count)]


@dataclass(frozen=True, eq=False)
class _Absorbed:
    """For each equation the sum over t of P[t, t + k] (lags,), P = w_j^2 X_j H^-1 X_j' its part of the projection.

    halves: roots of w_j^2 H^-1, one an equation; found: the sums of each piece by its first row.
    """

    halves: tuple[Array, ...]
    lags: int
    found: dict[int, list[Array]] = field(default_factory=dict)

    @staticmethod
    def of(equations: Equations, log: int, inverse: Array, weights: Array | None) -> _Absorbed:
        lags = min(PIECE, max(1, len(equations.logs[log]) // 5))  # as far as `autocovariance` looks
        weights = np.ones(len(equations.joints)) if weights is None else weights
        halves = []
        for weight, own in zip(weights, equations.layout.columns, strict=True):
            values, vectors = np.linalg.eigh(weight ** 2 * inverse[np.ix_(own, own)])
            halves.append((vectors * np.sqrt(np.maximum(values, 0.0))).T)
        return _Absorbed(tuple(halves), lags)

    def look(self, piece: Piece, rows: Rows) -> None:
        """Add the rows of a piece."""
        self.found[piece.rows.start] = [self._of_piece(half, rows.joint(j)[:-1], rows.keep[:, j])
                                        for j, half in enumerate(self.halves)]

    def _of_piece(self, half: Array, columns: Array, keep: Bools) -> Array:
        if not len(columns):  # a joint of which the model knows nothing absorbs nothing
            return np.zeros(self.lags)
        q = half @ np.where(keep, columns, 0.0)
        size = fast_length(2 * q.shape[1])
        power = np.sum([np.abs(rfft(row, size)) ** 2 for row in q], axis=0)  # all at once would take much memory
        found = irfft(power, size)[:min(self.lags, q.shape[1])]
        return np.pad(found, (0, self.lags - len(found)))

    def sums(self) -> list[Array]:
        """Over all pieces, in their order."""
        return [np.sum(parts, axis=0) for parts in zip(*(self.found[k] for k in sorted(self.found)), strict=True)]


def noise_matrix(columns: Array, keep: Bools, shape: Array) -> Array:
    """X' C X of one joint's columns (k, m), C the matrix of autocovariances."""
    x = np.where(keep, columns, 0.0)
    product = _product(x, x, shape)
    return 0.5 * (product + product.T)


def correlated_covariance(columns: Array, residual: Array, keep: Bools) -> Array:
    """Covariance (k, k) of least squares on columns (k, m) with residuals (m,) correlated in time, rows not kept being
    gaps."""
    x = np.where(keep, columns, 0.0)
    inverse = np.linalg.pinv(x @ x.T, hermitian=True, rcond=1e-24)
    return np.asarray(inverse @ noise_matrix(columns, keep, autocovariance(residual, keep)) @ inverse)


def _product(x: Array, other: Array, shape: Array) -> Array:
    """X C X_other' (k, l) of columns (k, m) and (l, m), C the matrix of autocovariances `shape` (lags,)."""
    if len(shape) == 1:
        return shape[0] * (x @ other.T)
    shape = shape[:x.shape[1]]
    size = fast_length(x.shape[1] + len(shape))
    power = np.full(size // 2 + 1, 2.0 / size)  # each frequency stands for its negative too
    power[0] = 1.0 / size
    if size % 2 == 0:
        power[-1] = 1.0 / size
    spectra = rfft(x, size).view(float)  # real and imaginary parts in turn
    others = spectra if other is x else rfft(other, size).view(float)
    return np.asarray((spectra * np.repeat(power * _spectrum(shape, size), 2)) @ others.T)  # Parseval
