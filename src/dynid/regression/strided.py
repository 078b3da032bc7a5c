"""Correlation of many signals with a filter and its derivative, at selected rows."""

from __future__ import annotations

from dynid.arrays import Array
from dynid.kernel_store import njit


@njit(nogil=True, cache=True, error_model="numpy", fastmath=True)
def add_strided(changing: Array, steady: Array, rates: Array, taps: Array, step: int, first: int, out: Array) -> None:
    """Add to out (signals, rows) at row k the sum over lags i of rates[i] changing[k * step + i] + taps[i]
    steady[..], for the available samples; `changing` and `steady` (signals, samples) begin at sample `first`."""
    lags, last = len(taps), first + steady.shape[1]
    low, high = max(0, (first - lags) // step + 1), min(out.shape[1], (last - 1) // step + 1)
    for signal in range(out.shape[0]):
        for row in range(low, high):
            start = row * step - first
            begin, end = max(0, -start), min(lags, last - row * step)
            # Slices, since an index that might be negative would keep the compiler from SIMD.
            x, y = changing[signal, start + begin:start + end], steady[signal, start + begin:start + end]
            v, w, total = rates[begin:end], taps[begin:end], 0.0
            for i in range(end - begin):
                total += v[i] * x[i] + w[i] * y[i]
            out[signal, row] += total
