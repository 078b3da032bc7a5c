"""Kalman filter and Rauch-Tung-Striebel smoother: position, velocity and acceleration driven by white jerk.

State of a joint: x = (q, dq / w, ddq / w^2) with w = 2 pi cutoff, which keeps its covariances of one size.

    x[k+1] = F x[k] + noise,   F = [1 a a^2/2; 0 1 a; 0 0 1],   a = w / rate
    measurements: q with variance 1, and dq, if it is used, with variance `velocity_noise` relative to that of q

For positions alone, jerk of density Q and measurement noise of density R, the optimal smoother has the gain 1 / (1 +
(R/Q) omega^6). This is the zero-phase Butterworth filter of order 3 with w^6 = Q / R. The cut-off therefore determines
the assumed jerk, and has the same meaning for all filters. With a measured velocity the information 1/R increases to
1/R + omega^2 / R_v, and Q is chosen for gain 1/2 at the cut-off again.

Unlike the other filters this one needs no padding at the borders and no differences.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dynid.arrays import Array, like
from dynid.kernel_store import njit
from dynid.recording.preparation.filters import Segments

EQUIVALENT_ORDER = 3  # order of the forward-backward Butterworth filter with the smoother's gain
_UNKNOWN_START = 1e8  # variance of the initial state, in measurement variances
# Smallest variance of the velocity relative to that of the position at the cut-off. Smaller ones, as of simulated
# velocities, make the covariance of the state singular.
_LEAST_VELOCITY_NOISE = 1e-6
_SETTLED_CHANGE = 1e-14  # relative change of the covariance below which it is constant


def smooth(q: Array, cutoff: float, rate: float, segments: Segments, dq: Array | None = None,
           velocity_noise: Array | None = None) -> tuple[Array, Array, Array]:
    """Return smoothed q, dq, ddq (samples, joints) from positions q and, if given, measured velocities dq.

    velocity_noise: (joints,), variance of dq (per s^2) over the variance of q; needed with dq.
    """
    out = like(q), like(q), like(q)  # rows outside all segments stay zero
    w = 2.0 * np.pi * cutoff
    for j in range(q.shape[1]):
        ratio = np.inf if dq is None or velocity_noise is None else max(float(velocity_noise[j]) / w**2,
                                                                        _LEAST_VELOCITY_NOISE)
        longest = int(np.max(segments[:, 1] - segments[:, 0])) if len(segments) else 0
        steps = gains(w / rate, ratio, longest)
        for start, stop in segments:
            rows = slice(int(start), int(stop))
            z = np.ascontiguousarray(q[rows, j])
            v = np.zeros(0) if dq is None else np.ascontiguousarray(dq[rows, j]) / w
            states = np.empty((len(z), 3))
            _forward_backward(z - z[0], v, w / rate, *steps, states)
            out[0][rows, j] = states[:, 0] + z[0]
            out[1][rows, j] = states[:, 1] * w
            out[2][rows, j] = states[:, 2] * w**2
    return out


def model(a: float, velocity_noise: float = np.inf) -> tuple[Array, Array]:
    """Return transition matrix and process noise covariance (3, 3) of the smoother, for a = 2 pi cutoff / rate.

    velocity_noise: variance of dq / w relative to that of q; infinite without a measured velocity.
    """
    f = np.array([[1.0, a, a**2 / 2], [0.0, 1.0, a], [0.0, 0.0, 1.0]])
    shape = np.array([[a**5 / 20, a**4 / 8, a**3 / 6], [a**4 / 8, a**3 / 3, a**2 / 2], [a**3 / 6, a**2 / 2, a]])
    return f, shape * a / (1.0 + 1.0 / velocity_noise)


def gains(a: float, velocity_noise: float, samples: int) -> tuple[Array, Array, Array]:
    """Return filter gains on position and velocity (steps, 3) and smoother gains (steps, 3, 3), to convergence."""
    f, noise = model(a, velocity_noise)
    p = np.eye(3) * _UNKNOWN_START
    on_q: list[Array] = []
    on_v: list[Array] = []
    back: list[Array] = []
    measured = [(0, 1.0, on_q)] + ([(1, velocity_noise, on_v)] if np.isfinite(velocity_noise) else [])
    previous = p
    for _ in range(max(samples, 1)):
        for i, variance, where in measured:
            gain = p[:, i] / (p[i, i] + variance)
            keep = np.eye(3)
            keep[:, i] -= gain
            p = keep @ p @ keep.T + variance * np.outer(gain, gain)  # Joseph form: stays positive definite
            where.append(gain)
        after = f @ p @ f.T + noise
        back.append(np.asarray(np.linalg.solve(after, f @ p).T, dtype=float))
        p = after
        if np.max(np.abs(p - previous)) < _SETTLED_CHANGE * np.max(np.abs(p)):
            break
        previous = p
    return np.array(on_q), np.array(on_v).reshape(-1, 3), np.array(back)


@njit(cache=True, nogil=True)
def _forward_backward(z: Any, v: Any, a: float, on_q: Any, on_v: Any, back: Any, x: Any) -> None:
    n, last = len(z), len(on_q) - 1
    x0, x1, x2 = 0.0, 0.0, 0.0
    for k in range(n):
        if k > 0:
            x0, x1 = x0 + a * x1 + 0.5 * a * a * x2, x1 + a * x2
        g = on_q[min(k, last)]
        e = z[k] - x0
        x0, x1, x2 = x0 + g[0] * e, x1 + g[1] * e, x2 + g[2] * e
        if len(v) > 0:
            g = on_v[min(k, last)]
            e = v[k] - x1
            x0, x1, x2 = x0 + g[0] * e, x1 + g[1] * e, x2 + g[2] * e
        x[k, 0], x[k, 1], x[k, 2] = x0, x1, x2
    for k in range(n - 2, -1, -1):
        c = back[min(k, last)]
        d0 = x[k + 1, 0] - (x[k, 0] + a * x[k, 1] + 0.5 * a * a * x[k, 2])
        d1 = x[k + 1, 1] - (x[k, 1] + a * x[k, 2])
        d2 = x[k + 1, 2] - x[k, 2]
        x[k, 0] += c[0, 0] * d0 + c[0, 1] * d1 + c[0, 2] * d2
        x[k, 1] += c[1, 0] * d0 + c[1, 1] * d1 + c[1, 2] * d2
        x[k, 2] += c[2, 0] * d0 + c[2, 1] * d1 + c[2, 2] * d2
