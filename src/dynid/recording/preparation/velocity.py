"""Comparison of a measured velocity with the derivative of the position, which decides whether it is used."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array, Bools, like
from dynid.lapack import least_squares
from dynid.order_statistics import median
from dynid.quantities import percent_text
from dynid.recording.preparation.filters import Segments, differentiate, differentiate_twice, low_pass
from dynid.signals import at_times, cubic_spline

MAX_COMPARED_ROWS = 200_000  # rows of the longest segment that are compared
_SCALE_OFF = 0.02  # largest scale error
_MAX_UNEXPLAINED = 0.05  # largest share of the velocity that scale and delay do not explain
_NEARLY_PARALLEL = 1e-6  # squared sine of the angle of two signals below which normal equations are inaccurate
_NO_SHIFT = 0.05  # samples: shorter delays are not corrected


@dataclass(frozen=True, eq=False)
class Comparison:
    """Comparison of a measured velocity with the derivative of the position.

    Values by joint (joints,) are nan for joints at rest.

    Attributes:
        scale: measured velocity over derivative.
        noise_ratio: variance of the measured velocity's noise over that of the position, 1/s^2; the median at rest.
        delay: delay of the measured velocity, median over the good joints, s.
        good: joints whose measured velocity is to be used.
        reason: sentence on the result.
    """

    scale: Array
    noise_ratio: Array
    delay: float
    good: Bools
    reason: str


def compare(q: Array, dq: Array, rate: float, cutoff: float, segments: Segments, moving: Bools,
            names: tuple[str, ...]) -> Comparison:
    """Return the comparison of the measured velocity dq with the position q (samples, joints) on a uniform grid.

    Motion is compared below `cutoff` (Hz), noise above it.
    """
    start, stop = segments[int(np.argmax(segments[:, 1] - segments[:, 0]))]
    stop = min(stop, start + MAX_COMPARED_ROWS)
    edge = min(int(np.ceil(2.0 * rate / cutoff)), (stop - start) // 4)
    inside, whole = slice(edge, stop - start - edge), np.array([[0, stop - start]])
    scale, delay, rest, noise, own, position = np.full((6, q.shape[1]), np.nan)
    raw_q, raw_v = (np.ascontiguousarray(x[start:stop, moving]) for x in (q, dq))
    smooth_q, smooth_v = (low_pass(x, cutoff, rate, 4, whole) for x in (raw_q, raw_v))
    v, raw_slope = (differentiate(x, rate, whole)[inside] for x in (smooth_q, raw_q))
    a = differentiate_twice(smooth_q, rate, whole)[inside]
    for k, j in enumerate(np.flatnonzero(moving)):
        scale[j], delay[j], rest[j] = _scale_delay_rest(smooth_v[inside, k], v[:, k], a[:, k], rate)
        noise[j] = np.var((raw_v[:, k] - smooth_v[:, k])[inside])
        own[j] = np.var(raw_slope[:, k] - v[:, k])
        position[j] = np.var((raw_q[:, k] - smooth_q[:, k])[inside])
    good, late, reason = _verdict(scale, rest, noise, own, delay, cutoff, moving, names)
    ratio = noise / np.maximum(position, 1e-300)
    known = np.isfinite(ratio) & (ratio > 0.0)
    ratio = np.where(known, ratio, median(ratio[known]) if np.any(known) else 1.0)
    return Comparison(scale, ratio, late, good, reason)


def _scale_delay_rest(measured: Array, v: Array, a: Array, rate: float) -> tuple[float, float, float]:
    """Return scale, delay (s) and relative residual of measured(t) = scale * v(t - delay), by three Gauss-Newton steps.

    A step linearises the delay: v(t - d - e) = v(t - d) - e a(t - d), with the acceleration a.
    """
    scale, delay, rest = 1.0, 0.0, 1.0
    size = max(float(np.std(v)), 1e-300)
    for _ in range(3):
        both = np.stack([_later(v, delay * rate), -_later(a, delay * rate)])
        found = _two_values(both, measured)
        rest = float(np.std(measured - found @ both)) / size
        scale = float(found[0])
        if scale == 0.0:
            break
        delay = float(np.clip(delay + found[1] / scale, -0.25 * len(v) / rate, 0.25 * len(v) / rate))
    return scale, delay, rest


def _later(x: Array, rows: float) -> Array:
    """Return x (samples,) delayed by a number of rows, interpolated linearly and constant beyond the ends."""
    if rows == 0.0:
        return x
    whole = int(np.floor(rows))
    at = np.arange(len(x)) - whole
    newer, older = x.take(at, mode="clip"), x.take(at - 1, mode="clip")
    return np.asarray(newer + (rows - whole) * (older - newer))


def _two_values(both: Array, measured: Array) -> Array:
    """Return the coefficients (2,) of two signals (2, samples) fitted to a measured one (samples,).

    Velocity and acceleration are nearly orthogonal, so normal equations are accurate.
    """
    normal, along = both @ both.T, both @ measured
    rest = normal[0, 0] * normal[1, 1] - normal[0, 1] ** 2
    if not rest > _NEARLY_PARALLEL * normal[0, 0] * normal[1, 1]:
        return least_squares(both.T, measured, float(np.finfo(float).eps) * len(measured))
    return np.array([normal[1, 1] * along[0] - normal[0, 1] * along[1],
                     normal[0, 0] * along[1] - normal[0, 1] * along[0]]) / rest


def _verdict(scale: Array, rest: Array, noise: Array, own: Array, delay: Array, cutoff: float, moving: Bools,
             names: tuple[str, ...]) -> tuple[Bools, float, str]:
    """Return the joints (joints,) at rest or with usable measured velocity, the velocity's delay (s), and reasons."""
    good, why = np.zeros(len(names), dtype=bool), list[str]()
    louder = np.sqrt(noise / np.maximum(own, 1e-300))
    for j in np.flatnonzero(moving):
        if not abs(scale[j] - 1.0) <= _SCALE_OFF:
            why.append(f"the velocity of {names[j]} is {scale[j]:.3g} times the derivative of its position (check "
                       "its unit and gear ratio)")
        elif not rest[j] <= _MAX_UNEXPLAINED:
            why.append(f"the velocity of {names[j]} differs from the derivative of its position "
                       f"by {percent_text(100 * rest[j])}")
        elif not abs(delay[j]) <= 0.25 / cutoff:
            why.append(f"the velocity of {names[j]} lags the position by {1000.0 * delay[j]:.3g} ms, more than a "
                       f"filter at {cutoff:.3g} Hz can correct")
        elif not louder[j] < 1.0:
            why.append(f"the velocity of {names[j]} is too noisy: its noise is {louder[j]:.2g} times that of the "
                       "differentiated position")
        else:
            good[j] = True
    if not np.any(good):
        return good, float(median(delay[moving])), "; ".join(why)
    late = float(median(delay[good]))
    quieter = 1 / max(float(median(louder[good])), 1e-12)
    text = (f"scale within {100 * np.max(np.abs(scale[good] - 1.0)):.2g} %, {1e3 * late:.3g} ms late, {quieter:.2g} "
            f"times less noise than the differentiated position")
    return good | ~moving, late, "; ".join([text, *why])


def advance(x: Array, delay: float, rate: float, segments: Segments) -> Array:
    """Return x (samples, joints) with a delay (s) removed, by cubic splines.

    At the end of a segment, where the advanced value is unknown, rows have the segment's last value.
    """
    if abs(delay) * rate < _NO_SHIFT:
        return x
    out = like(x)  # rows outside all segments stay zero
    for start, stop in segments:
        rows = np.arange(stop - start, dtype=float)
        at = np.clip(rows + delay * rate, 0.0, rows[-1])
        part = x[start:stop]
        out[start:stop] = cubic_spline(rows, part, at) if len(rows) > 3 else at_times(at, rows, part)
    return out
