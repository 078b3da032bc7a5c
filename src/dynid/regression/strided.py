"""Sums of many signals with a filter and its derivative, at some rows only."""

from __future__ import annotations

from numba import njit

from dynid.arrays import Array


@njit(nogil=True, cache=True, error_model="numpy", fastmath=True)
def strided_sums(changing: Array, steady: Array, rates: Array, taps: Array, step: int, out: Array) -> None:
    """out (signals, rows): at sample k * step, the sum over i of rates[i] changing[k * step + i] + taps[i] steady[..],
    both (signals, samples)."""
    lags = len(taps)
    for signal in range(out.shape[0]):
        for row in range(out.shape[1]):
            at, total = row * step, 0.0
            for i in range(lags):
                total += rates[i] * changing[signal, at + i] + taps[i] * steady[signal, at + i]
            out[signal, row] = total
