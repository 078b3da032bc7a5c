"""A second look at the data with an estimate in hand: residuals, how they correlate in time, and what that costs.

Least squares takes every row for independent news. Filtered torques are not: neighbours share the same noise. With
residual autocovariance c_j(k) of joint j, the honest covariance of the weighted estimate is

    H^-1 (sum_j w_j^4 X_j' C_j X_j) H^-1,   H = sum_j w_j^2 X_j' X_j,   (C_j)_st = c_j(s - t),

and X_j' C_j X_j is X_j' times X_j convolved with c_j, one more pass over the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft

from dynid.dynamics.threads import pool, thread_count
from dynid.model import LinearModel
from dynid.recording import Samples
from dynid.regression.base import BaseParameters
from dynid.regression.fold import Layout, Piece, Progress, piece_entries, pieces
from dynid.robot.inertia import Array

PIECE = 65536  # rows at once: long against any correlation, short against memory
_ENOUGH_ROWS = 262144  # rows of which correlation is learnt; more data is scaled up from these


@dataclass(frozen=True, eq=False)
class Residuals:
    """Residuals of one set of samples as regression saw them.

    t (m,), measured and predicted (m, dof) torques, keep (m, dof): which counted.
    """

    t: Array
    measured: Array
    predicted: Array
    keep: NDArray[np.bool_]
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
    columns: tuple[NDArray[np.int64], ...]
    rows: Array
    effective: Array
    rate: float


def residuals(model: LinearModel, samples: Samples, base: BaseParameters, beta: Array) -> Residuals:
    """Measured and predicted torques in the rows that regression uses, decimated as they were."""
    layout = Layout.of(model, base)
    measured, predicted, keeps, times = [], [], [], []
    for piece in pieces(samples, unit=PIECE):
        entries, keep = piece_entries(layout, samples, piece)
        measured.append(np.stack([entries[layout.joint(j).stop - 1] for j in range(model.dof)], axis=1))
        predicted.append(np.stack([beta[layout.columns[j]] @ entries[layout.joint(j)][:-1]
                                   for j in range(model.dof)], axis=1))
        keeps.append(keep)
        times.append(samples.t[piece.rows.start:piece.rows.stop:piece.rows.step])
    step = 1 if samples.decimation is None else samples.decimation.total
    return Residuals(np.concatenate(times), np.concatenate(measured), np.concatenate(predicted),
                     np.concatenate(keeps), samples.rate / step, samples.source)


def autocovariance(residual: Array, keep: NDArray[np.bool_]) -> Array:
    """c(k) (lags,) of one joint's residuals (m,), rows not kept being gaps, smoothly cut to zero.

    The lags reach ten times the time the correlation lasts. A Parzen window ends them: its transform is positive, so
    no variance computed from c can come out negative.
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
    return raw[:last] * parzen


def correlation(model: LinearModel, samples: Sequence[Samples], base: BaseParameters, beta: Array, *,
                threads: int | None = None, progress: Progress | None = None) -> Correlation:
    """How the residuals of an estimate correlate in time, and what that does to its covariance."""
    layout = Layout.of(model, base)
    series = [residuals(model, part, base, beta) for part in samples]
    count = np.sum([r.keep.sum(axis=0) for r in series], axis=0).astype(float)
    longest = series[int(np.argmax([len(r.t) for r in series]))]
    shapes = [autocovariance(longest.residual[:, j], longest.keep[:, j]) for j in range(model.dof)]
    # The shape in time from the longest log, the size from all of them.
    power = np.sum([np.where(r.keep, r.residual, 0.0).__pow__(2).sum(axis=0) for r in series], axis=0)
    shapes = [shape * (power[j] / max(count[j], 1.0) / shape[0]) if shape[0] > 0 else shape
              for j, shape in enumerate(shapes)]
    work = [(part, piece) for part in samples for piece in pieces(part, unit=PIECE)]
    every = max(1, sum(len(piece.rows) for _, piece in work) // _ENOUGH_ROWS)
    used = work[::every]

    def one(item: tuple[Samples, Piece]) -> tuple[list[Array], Array]:
        entries, keep = piece_entries(layout, *item)
        found = [_noise(entries[layout.joint(j)][:-1], keep[:, j], shapes[j]) for j in range(model.dof)]
        if progress is not None:
            progress(len(item[1].rows))
        return found, keep.sum(axis=0)

    threads = min(thread_count(threads), len(used))
    results = list(map(one, used) if threads <= 1 else pool(threads).map(one, used))
    seen = np.sum([rows for _, rows in results], axis=0)
    share = np.where(seen > 0, count / np.maximum(seen, 1), 0.0)
    noise = tuple(share[j] * np.sum([found[j] for found, _ in results], axis=0) for j in range(model.dof))
    effective = np.array([n * c[0] / (2.0 * c.sum() - c[0]) if c[0] > 0 else n
                          for n, c in zip(count, shapes, strict=True)])
    return Correlation(tuple(shapes), noise, layout.columns, count, np.minimum(effective, count), longest.rate)


def _noise(columns: Array, keep: NDArray[np.bool_], shape: Array) -> Array:
    """X' C X of one joint's columns (k, m), C the matrix of autocovariances."""
    x = np.where(keep, columns, 0.0)
    if len(shape) == 1:
        return shape[0] * (x @ x.T)
    size = next_fast_len(x.shape[1] + len(shape))
    kernel = np.zeros(size)
    kernel[:len(shape)] = shape
    kernel[-(len(shape) - 1):] = shape[:0:-1]
    smooth = irfft(rfft(x, size) * rfft(kernel).real, size)[:, :x.shape[1]]
    product = x @ smooth.T
    return 0.5 * (product + product.T)
