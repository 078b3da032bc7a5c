"""A second look at the data with an estimate in hand: residuals, how they correlate in time, and what that costs.

Least squares takes every row for independent news. Filtered torques are not: neighbours share the same noise. With
residual autocovariance c_j(k) of joint j, the honest covariance of the weighted estimate is

    H^-1 (sum_j w_j^4 X_j' C_j X_j) H^-1,   H = sum_j w_j^2 X_j' X_j,   (C_j)_st = c_j(s - t),

and X_j' C_j X_j is X_j' times X_j convolved with c_j, one more pass over the data.

Residuals are smaller than the noise, and most of all at the slow rhythms of the motion, where the parameters have
absorbed it and where it hurts them most. With q_i the columns of w_j X_j made orthonormal in H, the share of the noise
that is gone at a frequency is the sum of |q_i|^2 there over the number of rows; c_j is given it back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft

from dynid.arrays import Array, Bools, Ints
from dynid.model import LinearModel
from dynid.recording import Samples
from dynid.regression.base import BaseParameters
from dynid.regression.fold import Layout, Piece, Progress, piece_entries, pieces
from dynid.threads import side_by_side

PIECE = 16384  # rows at once: long against any correlation, short against memory
_ENOUGH_ROWS = 262144  # rows of which correlation is learnt; more data is scaled up from these
_MOST_ABSORBED = 0.9  # share of the noise that may be gone at a frequency before nothing can be said of it
_REACH = 3  # how much longer autocovariances get when what was absorbed is put back


@dataclass(frozen=True, eq=False)
class Residuals:
    """Residuals of one set of samples as regression saw them.

    t (m,), measured and predicted (m, dof) torques, keep (m, dof): which counted.
    """

    t: Array
    measured: Array
    predicted: Array
    keep: Bools
    rate: float
    source: str

    @property
    def residual(self) -> Array:
        return self.measured - self.predicted


@dataclass(frozen=True, eq=False)
class Correlation:
    """How the residuals of each joint hang together in time.

    autocovariance: c_j(k), k = 0, 1, .., one array a joint (lags,), smoothly cut. noise: X_j' C_j X_j among the joint's
    own columns, one a joint. rows: equations of each joint. effective: how many independent ones they are worth.
    rate: of the rows, Hz.
    """

    autocovariance: tuple[Array, ...]
    noise: tuple[Array, ...]
    columns: tuple[Ints, ...]
    rows: Array
    effective: Array
    rate: float


def residuals(model: LinearModel, samples: Samples, base: BaseParameters, beta: Array, *,
              mix: Array | None = None, threads: int | None = 1) -> Residuals:
    """Measured and predicted torques in the rows that regression uses, decimated as they were; mixed as `fold` does."""
    layout = Layout.of(model, base, mix)
    work = pieces(samples, unit=PIECE)
    ends = np.cumsum([len(piece.rows) for piece in work], dtype=np.int64)
    count = int(ends[-1]) if work else 0
    t, keep = np.empty(count), np.empty((count, model.dof), dtype=bool)
    measured, predicted = np.empty((count, model.dof)), np.empty((count, model.dof))

    def one(k: int) -> None:
        rows, here = work[k].rows, slice(int(ends[k]) - len(work[k].rows), int(ends[k]))
        entries, keep[here] = piece_entries(layout, samples, work[k])
        t[here] = samples.t[rows.start:rows.stop:rows.step]
        for j in range(model.dof):
            own = entries[layout.joint(j)]
            measured[here, j], predicted[here, j] = own[-1], beta[layout.columns[j]] @ own[:-1]

    side_by_side(one, range(len(work)), threads)
    step = 1 if samples.decimation is None else samples.decimation.total
    return Residuals(t, measured, predicted, keep, samples.rate / step, samples.source)


def autocovariance(residual: Array, keep: Bools, absorbed: Array | None = None) -> Array:
    """c(k) (lags,) of one joint's residuals (m,), rows not kept being gaps, smoothly cut to zero.

    The lags reach ten times the time the correlation lasts. A Parzen window ends them: its transform is positive, so
    no variance computed from c can come out negative. absorbed (m,): sum over t of P[t, t + k] of the projection P onto
    what was estimated; what it took from the noise is put back.
    """
    x = np.where(keep, residual, 0.0)
    count = int(keep.sum())
    if count < 2:
        return np.zeros(1)
    size = next_fast_len(2 * len(x))
    product = irfft(np.abs(rfft(x, size)) ** 2, size)[:len(x)]
    # The biased estimate, over all rows whatever the lag: gaps thin it out no more than they thin the data.
    raw = product / count
    limit = max(1, len(x) // 5)
    if raw[0] <= 0:
        return np.zeros(1)
    # Sokal's rule: the integrated correlation time, summed up to the first lag beyond six times itself.
    time = 1.0 + 2.0 * np.cumsum(raw[1:limit] / raw[0])
    lags = np.arange(1, len(time) + 1)
    beyond = np.flatnonzero(lags >= 6.0 * np.maximum(time, 1.0))
    last = int(lags[beyond[0]]) if len(beyond) else limit
    last = int(np.clip(2 * last, 8, limit))
    u = np.arange(last) / last
    parzen = np.where(u < 0.5, 1 - 6 * u ** 2 + 6 * u ** 3, 2 * (1 - u) ** 3)
    shape = raw[:last] * parzen
    if absorbed is None:
        return shape
    reach = min(last, len(absorbed))
    return _put_back(shape, absorbed[:reach] * parzen[:reach] / count)


def _put_back(shape: Array, absorbed: Array) -> Array:
    """Autocovariance of the noise, from that of residuals: its spectrum over the share that was left of it."""
    reach = _REACH * len(shape)
    size = next_fast_len(2 * reach)
    left = 1.0 - np.clip(_spectrum(absorbed, size), 0.0, _MOST_ABSORBED)
    return irfft(_spectrum(shape, size) / left, size)[:reach]


def _spectrum(shape: Array, size: int) -> Array:
    """Spectrum (size // 2 + 1,) of an autocovariance given for lags from zero."""
    kernel = np.zeros(size)
    kernel[:len(shape)] = shape
    if len(shape) > 1:
        kernel[-(len(shape) - 1):] = shape[:0:-1]
    return rfft(kernel).real


def correlation(model: LinearModel, samples: Sequence[Samples], base: BaseParameters, beta: Array, *,
                inverse: Array | None = None, weights: Array | None = None, mix: Array | None = None,
                influence: Callable[[Array], Array] | None = None, threads: int | None = None,
                progress: Progress | None = None) -> Correlation:
    """How the residuals of an estimate correlate in time, and what that does to its covariance.

    inverse (base, base) and weights (dof,): H^-1 and w of the estimate, to put back the noise it absorbed; without
    them residuals are taken for the noise. mix: as `fold` takes it. influence: of residuals (m, dof), what a robust
    estimate feels of them (m, dof).
    """
    layout, samples = Layout.of(model, base, mix), _enough(samples)
    rows, power = np.zeros((2, len(samples), model.dof))
    # The shape in time from the longest log, the size from all of them.
    most = int(np.argmax([sum(len(piece.rows) for piece in pieces(part)) for part in samples]))
    for k, part in enumerate(samples):
        r = residuals(model, part, base, beta, mix=mix, threads=threads)
        felt = r.residual if influence is None else influence(r.residual)
        rows[k] = r.keep.sum(axis=0)
        power[k] = [np.sum(felt[r.keep[:, j], j] ** 2) for j in range(model.dof)]
        if k == most:
            longest, keep, rate = felt, r.keep, r.rate
        del r, felt  # as large as the log itself
    count = rows.sum(axis=0)
    absorbed: Sequence[Array | None] = [None] * model.dof
    if inverse is not None:
        absorbed = _absorbed(layout, samples[most], inverse, weights, threads)
    shapes = [autocovariance(longest[:, j], keep[:, j], absorbed[j]) for j in range(model.dof)]
    size, first = power.sum(axis=0) / np.maximum(count, 1.0), power[most] / np.maximum(rows[most], 1.0)
    shapes = [shape * (size[j] / first[j]) if first[j] > 0 else shape for j, shape in enumerate(shapes)]

    def noise_of(j: int, columns: Array, keep: Bools) -> Array:
        return _noise(columns, keep, shapes[j])

    noise = _over(layout, [(part, piece) for part in samples for piece in pieces(part, unit=PIECE)], noise_of, threads,
                  progress)
    effective = np.array([n * c[0] / (2.0 * c.sum() - c[0]) if c[0] > 0 else n
                          for n, c in zip(count, shapes, strict=True)])
    return Correlation(tuple(shapes), tuple(noise), layout.columns, count, np.clip(effective, 1.0, count), rate)


def _enough(samples: Sequence[Samples]) -> list[Samples]:
    """The samples, or of more than enough of them some whole stretches all along; who asked scales up by the rows."""
    found = []
    every = max(1, sum(len(piece.rows) for part in samples for piece in pieces(part)) // _ENOUGH_ROWS)
    for part in samples:
        kept = pieces(part, unit=PIECE)[::every]
        found.append(part if every == 1 else replace(part, segments=np.array(
            [[piece.rows.start, min(piece.rows.stop, piece.segment[1])] for piece in kept])))
    return found


def _over(layout: Layout, work: list[tuple[Samples, Piece]], one: Callable[[int, Array, Bools], Array],
          threads: int | None, progress: Progress | None = None) -> list[Array]:
    """Sum of one(joint, columns (k, m), keep (m,)) over all pieces, for each joint."""
    joints = range(layout.model.dof)

    def sums(item: tuple[Samples, Piece]) -> list[Array]:
        entries, keep = piece_entries(layout, *item)
        found = [one(j, entries[layout.joint(j)][:-1], keep[:, j]) for j in joints]
        if progress is not None:
            progress(len(item[1].rows))
        return found

    results = side_by_side(sums, work, threads)
    return [np.sum([found[j] for found in results], axis=0) for j in joints]


def _absorbed(layout: Layout, samples: Samples, inverse: Array, weights: Array | None,
              threads: int | None) -> list[Array]:
    """For each joint the sum over t of P[t, t + k] (lags,), P = w_j^2 X_j H^-1 X_j' its part of the projection."""
    lags = min(PIECE, max(1, len(samples) // 5))  # as far as `autocovariance` looks
    weights = np.ones(layout.model.dof) if weights is None else weights
    halves = []
    for weight, own in zip(weights, layout.columns, strict=True):
        values, vectors = np.linalg.eigh(weight ** 2 * inverse[np.ix_(own, own)])
        halves.append((vectors * np.sqrt(np.maximum(values, 0.0))).T)

    def one(j: int, columns: Array, keep: Bools) -> Array:
        q = halves[j] @ np.where(keep, columns, 0.0)
        size = next_fast_len(2 * q.shape[1])
        power = np.sum([np.abs(rfft(row, size)) ** 2 for row in q], axis=0)  # all at once would take much memory
        found = irfft(power, size)[:min(lags, q.shape[1])]
        return np.pad(found, (0, lags - len(found)))

    return _over(layout, [(samples, piece) for piece in pieces(samples, unit=PIECE)], one, threads)


def _noise(columns: Array, keep: Bools, shape: Array) -> Array:
    """X' C X of one joint's columns (k, m), C the matrix of autocovariances."""
    x = np.where(keep, columns, 0.0)
    if len(shape) == 1:
        return shape[0] * (x @ x.T)
    shape = shape[:x.shape[1]]
    size = next_fast_len(x.shape[1] + len(shape))
    smooth = irfft(rfft(x, size) * _spectrum(shape, size), size)[:, :x.shape[1]]
    product = x @ smooth.T
    return 0.5 * (product + product.T)
