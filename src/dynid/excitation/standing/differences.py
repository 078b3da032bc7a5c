"""Derivatives by central differences of functions of a motion, sample by sample."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dynid.arrays import Array

_STEPS = (1e-5, 1e-4, 1e-2)  # of central differences in driving coordinates and their two derivatives
_SAMPLES_AT_ONCE = 2048  # samples whose values are held at a time


def differences(function: Callable[[Array, Array, Array], Array], x: Array, dx: Array, ddx: Array) -> Array:
    """Return derivatives (3, samples, m) of a function by driving coordinates and their two derivatives.

    Args:
        function: returns values (copies, samples) for signals (copies * samples, m), several copies of all samples.
        x, dx, ddx: driving coordinates and their two derivatives (samples, m).
    """
    samples, m = x.shape
    moves = [(order, j) for order in range(3) for j in range(m)]
    out = np.empty((3, samples, m))
    at_once = max(1, _SAMPLES_AT_ONCE // (2 * samples))
    for start in range(0, len(moves), at_once):
        part = moves[start:start + at_once]
        signals = np.broadcast_to(np.stack([x, dx, ddx])[:, None, None], (3, 2, len(part), samples, m)).copy()
        for k, (order, j) in enumerate(part):
            signals[order, 0, k, :, j] += _STEPS[order]
            signals[order, 1, k, :, j] -= _STEPS[order]
        ahead, behind = function(*signals.reshape(3, -1, m)).reshape(2, len(part), samples)
        for k, (order, j) in enumerate(part):
            out[order, :, j] = (ahead[k] - behind[k]) / (2.0 * _STEPS[order])
    return out
