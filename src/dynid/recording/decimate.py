"""Parallel decimation: the same low-pass and thinning for the torques and every column of the regressor.

Janot, Vandanjon, Gautier, s. 2. A linear combination of the rows of tau = Y theta is again a valid equation, so the
filter does not change the parameters.

The filter is the zero-phase Butterworth low-pass as its symmetric impulse response, truncated where it has decayed.
Only the kept rows are computed, by a banded matrix, which is faster for many columns than the recursion over every
row. A row needs only the `reach` rows on either side, so data larger than memory can be processed in pieces.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from dynid.arrays import Array, Ints
from dynid.errors import RecordingError
from dynid.recording.samples import Decimation, Samples
from dynid.signals import butterworth, fast_length, filtered

_DIED_OUT = 1e-4  # share of the maximum below which the impulse response is cut, for torques and regressor alike
_PRODUCT_ROWS = 16  # decimated rows per matrix product; larger blocks multiply more zeros


def impulse_response(decimation: Decimation) -> Array:
    """Return the filter weights of rows -reach .. reach about a kept row, (2 reach + 1,); symmetric, with sum 1."""
    return _weights(decimation.factor, decimation.stages, decimation.order, decimation.share)


def reach(decimation: Decimation) -> int:
    """Return the number of rows before and after a decimated row that affect its value."""
    return len(impulse_response(decimation)) // 2


def decimated_rows(segments: Ints, decimation: Decimation) -> Ints:
    """Return the rows that decimation keeps: every `total`-th of each segment, from its first."""
    picks = [np.arange(start, stop, decimation.total, dtype=np.int64) for start, stop in segments]
    return np.concatenate(picks) if picks else np.zeros(0, dtype=np.int64)


def decimate_columns(x: Array, decimation: Decimation, segments: Ints) -> Array:
    """Decimate x (samples, ...) -> (decimated rows, ...), segment by segment, at `decimated_rows`.

    Near the border of a segment the weights outside are omitted and the others scaled to sum 1.
    """
    flat = np.ascontiguousarray(x, dtype=float).reshape(len(x), -1)
    out = np.empty((len(decimated_rows(segments, decimation)), flat.shape[1]))
    done = 0
    for start, stop in segments:
        rows = np.arange(start, stop, decimation.total, dtype=np.int64)
        decimate_piece(flat, decimation, rows, 0, (int(start), int(stop)), out[done:done + len(rows)])
        done += len(rows)
    return out.reshape(len(out), *x.shape[1:])


def decimated(samples: Samples) -> Samples:
    """Return samples at the decimated rows: decimated torques, and the motion at the same instants.

    This makes fits fast, but discontinuous columns such as signs of velocity are not filtered like the torques, so a
    result should be confirmed with the full samples.
    """
    if samples.decimation is None:
        return samples
    tau = decimate_columns(samples.tau, samples.decimation, samples.segments)
    return replace(samples.every(samples.decimated_by), tau=tau, raw_tau=None)


def decimate_piece(x: Array, decimation: Decimation, rows: Ints, first: int,
                   segment: tuple[int, int], out: Array | None = None) -> Array:
    """Return the decimated values at `rows` of one segment from a piece of the data.

    x (piece, columns): rows first .. first + len(x) of the data, including the `reach` rows on either side of `rows`
    inside the segment. rows: consecutive elements of `decimated_rows`. The result is that of `decimate_columns`.
    """
    weights = impulse_response(decimation)
    half, step = len(weights) // 2, decimation.total
    if out is None:
        out = np.empty((len(rows), x.shape[1]))
    inner = _band(weights, step, _PRODUCT_ROWS)
    for k in range(0, len(rows), _PRODUCT_ROWS):
        block = rows[k:k + _PRODUCT_ROWS]
        low, high = int(block[0]) - half, int(block[-1]) + half + 1
        if low >= segment[0] and high <= segment[1] and len(block) == _PRODUCT_ROWS:
            band = inner
        else:
            skip, end = max(segment[0] - low, 0), max(high - segment[1], 0)
            band = _band(weights, step, len(block))
            band = band[:, skip:band.shape[1] - end]
            band = band / band.sum(axis=1, keepdims=True)
            low, high = low + skip, high - end
        if low < first or high > first + len(x):
            raise RecordingError(f"decimation needs rows {low} to {high - 1}, but only rows {first} to "
                                 f"{first + len(x) - 1} were given", code="rows-missing")
        np.matmul(band, x[low - first:high - first], out=out[k:k + len(block)])
    return out


def low_passed(x: Array, decimation: Decimation) -> Array:
    """Return x (rows, columns) of one segment after the low-pass filter of the decimation, at every row.

    At the kept rows the values equal those of `decimate_columns`.
    """
    weights = impulse_response(decimation)
    half, length = len(weights) // 2, fast_length(len(x) + len(weights) - 1)
    response = np.fft.rfft(weights, length)

    def passed(signal: Array) -> Array:
        spread = np.fft.irfft(np.fft.rfft(signal, length, axis=0) * response[:, None], length, axis=0)
        return np.asarray(spread[half:half + len(x)], dtype=float)

    return passed(x) / passed(np.ones((len(x), 1)))


@lru_cache(maxsize=16)
def _weights(factor: int, stages: int, order: int, share: float) -> Array:
    if factor == 1:
        return np.ones(1)
    # The response decays within some tens of periods of the cut-off for any order up to ten.
    length = int(np.ceil(40 * factor / share))
    pulse = np.zeros(length)
    pulse[0] = 1.0
    forward = filtered(butterworth(order, share / factor), pulse)
    both = np.convolve(forward, forward[::-1])  # forward, then backward; the middle is row length - 1
    half = (length - 1) - int(np.argmax(np.abs(both) > _DIED_OUT * both[length - 1]))
    one = both[length - 1 - half:length + half]
    total = one
    for stage in range(1, stages):  # a later stage filters the decimated signal, so its weights are `step` rows apart
        spread = np.zeros((len(one) - 1) * factor ** stage + 1)
        spread[::factor ** stage] = one
        total = np.convolve(total, spread)
    total = 0.5 * (total + total[::-1])
    total /= total.sum()
    total.flags.writeable = False
    return total


def _band(weights: Array, step: int, rows: int) -> Array:
    """Return a band matrix (rows, (rows - 1) step + len(weights)) with the weights in each row, shifted by `step`."""
    band = np.zeros((rows, (rows - 1) * step + len(weights)))
    for k in range(rows):
        band[k, k * step:k * step + len(weights)] = weights
    return band
