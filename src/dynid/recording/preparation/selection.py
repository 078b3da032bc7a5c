"""Selection of the rows of each joint: borders, slow motion, saturated torque, joints at rest."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Array, like, true_ranges
from dynid.order_statistics import median, quantile
from dynid.recording.preparation.filters import Segments

Mask = NDArray[np.bool_]

AT_REST = 1e-3  # rad or m: a joint with a smaller range of positions is at rest, and only its gear deflects
_AT_LIMIT = 1e-3  # relative distance from a given torque limit that counts as saturated
_SLOW_SHARE = 0.01  # share of a joint's top speed
_MIN_SAMPLES_AT_LIMIT = 10  # samples at the extreme value for it to be a limit


def moving_joints(q: Array) -> Mask:
    """Return whether each joint moves (joints,): its range is well above noise, encoder step and 1 mrad (or 1 mm)."""
    return np.ptp(q, axis=0) > least_ranges(q) if len(q) > 2 else np.zeros(q.shape[1], dtype=bool)


def least_ranges(q: Array) -> Array:
    """Return the ranges (joints,) of positions q (samples, joints) above which a joint moves, rad or m."""
    out = np.full(q.shape[1], AT_REST)
    for j in range(q.shape[1]):
        column = np.ascontiguousarray(q[:, j])
        noise = float(median(np.abs(np.diff(column, 2)))) / (0.6745 * np.sqrt(6.0)) if len(column) > 2 else 0.0
        out[j] = max(20.0 * noise, 5.0 * encoder_count(column), AT_REST)
    return out


def encoder_count(q: Array) -> float:
    """Return an upper bound on one encoder count of a position (samples,): the tenth percentile of its changes."""
    steps = np.abs(np.diff(q))
    return float(quantile(steps[steps > 0.0], 0.1)) if np.any(steps > 0.0) else 0.0


def equal_ranges(q: Array, least: int) -> Segments:
    """Return the row ranges (k, 2) over which a position (samples,) is constant for at least `least` rows."""
    found = true_ranges(np.diff(q) == 0.0) + np.array([0, 1])
    return found[found[:, 1] - found[:, 0] >= least]


def moving_spans(q: Array, rows: int) -> list[tuple[int, int]]:
    """Return the row ranges in which some joint of q (samples, joints) moves, half-open and in order.

    The robot moves in an interval of `rows` rows if the range of some joint does not count as rest. Rests of up to
    about two intervals between motions, and one before and after, are included, since filters need them and static
    torques are informative. Without motion everything is one range.
    """
    starts = np.arange(0, len(q), max(rows, 1))
    active = np.any(np.maximum.reduceat(q, starts, axis=0) - np.minimum.reduceat(q, starts, axis=0)
                    > least_ranges(q), axis=1)
    near = active.copy()
    near[1:] |= active[:-1]
    near[:-1] |= active[1:]
    bounds = [*starts.tolist(), len(q)]
    return [(bounds[a], bounds[b]) for a, b in true_ranges(near)] or [(0, len(q))]


def held_still(q: Array, dq: Array, ddq: Array, moving: Mask) -> tuple[Array, Array, Array]:
    """Return the motion (samples, joints) with each resting joint at its mean position and zero velocity."""
    if np.all(moving):
        return q, dq, ddq
    out = tuple(like(x) for x in (q, dq, ddq))
    for j in range(q.shape[1]):
        for x, quiet in zip((q, dq, ddq), out, strict=True):
            quiet[:, j] = x[:, j] if moving[j] else np.mean(q[:, j]) if x is q else 0.0
    return out[0], out[1], out[2]


def inside_borders(segments: Segments, samples: int, border: int) -> Mask:
    """Return the mask (samples,) of rows at least `border` rows from either end of their segment."""
    out = np.zeros(samples, dtype=bool)
    for start, stop in segments:
        out[start + border:max(stop - border, start + border)] = True
    return out


def longer_than(mask: Mask, rows: int) -> Mask:
    """Return the mask (samples,) with only those runs of True that have at least `rows` rows."""
    out = np.zeros(len(mask), dtype=bool)
    for start, stop in true_ranges(mask):
        out[start:stop] = stop - start >= rows
    return out


def widened(mask: Mask, rows: int, segments: Segments) -> Mask:
    """Return the mask (samples,) with `rows` more rows on either side of every True, inside its segment."""
    if rows < 1 or not np.any(mask):
        return mask
    out = np.zeros(len(mask), dtype=bool)
    for start, stop in segments:
        total = np.concatenate([[0], np.cumsum(mask[start:stop])])
        k = np.arange(stop - start)
        out[start:stop] = total[np.minimum(k + rows + 1, stop - start)] > total[np.maximum(k - rows, 0)]
    return out


def found_limits(tau: Array, rows: int) -> tuple[Array, Array]:
    """Return the lower and upper saturation torques (joints,), infinite if there are none.

    A saturated torque stays at one extreme value for at least `rows` consecutive samples and ten in all. It has this
    value three times as often as any of the three neighbouring values. A peak of a coarse signal also stays longest at
    its top, but only 2.4 times as long as one step below.
    """
    lower, upper = np.full(tau.shape[1], -np.inf), np.full(tau.shape[1], np.inf)
    for j in range(tau.shape[1]):
        for side, limit in ((1.0, upper), (-1.0, lower)):
            column = side * tau[:, j]
            top = column.max()
            at_top = column == top
            count = int(np.sum(at_top))
            if (top <= 0.0 or count < _MIN_SAMPLES_AT_LIMIT or count == len(column)
                    or not np.any(longer_than(at_top, rows))):
                continue
            _, counts = np.unique(column[column < top], return_counts=True)
            if count > 3 * counts[-3:].max():
                limit[j] = side * top
    return lower, upper


def at_limit(tau: Array, lower: Array, upper: Array, rows: int) -> Mask:
    """Return where the torque (samples, joints) is within 0.1 % of a limit (joints,) for at least `rows` samples."""
    out = np.zeros(tau.shape, dtype=bool)
    for j in range(tau.shape[1]):
        if np.isfinite(upper[j]):
            out[:, j] |= tau[:, j] >= upper[j] - _AT_LIMIT * abs(upper[j])
        if np.isfinite(lower[j]):
            out[:, j] |= tau[:, j] <= lower[j] + _AT_LIMIT * abs(lower[j])
        out[:, j] = longer_than(out[:, j], rows)
    return out


def drop_saturated(keep: Mask, tau: Array, lower: Array, upper: Array, rows: int, margin: int, segments: Segments,
                   names: tuple[str, ...]) -> list[str]:
    """Exclude saturated torques and `margin` rows around them from keep (samples, joints); return sentences on them."""
    steps = []
    hit = at_limit(tau, lower, upper, rows)
    for j in np.flatnonzero(np.any(hit, axis=0)):
        wide = widened(hit[:, j], margin, segments)
        limit = " and ".join(f"{x:.4g}" for x in (lower[j], upper[j]) if np.isfinite(x))
        steps.append(f"dropped {int(np.sum(keep[:, j] & wide))} rows of {names[j]}: its torque is saturated at its "
                     f"limit of {limit} in {int(np.sum(hit[:, j]))} rows")
        keep[:, j] &= ~wide
    return steps


def moving_speeds(dq: Array, keep: Mask) -> Array:
    """Return 1 % of the top speed of each joint (joints,), above which a row counts as moving.

    The top speed is that of the kept rows, if any, since a filter may overshoot at borders.
    """
    out = np.zeros(dq.shape[1])
    for j in range(dq.shape[1]):
        speed = np.abs(dq[:, j])
        out[j] = _SLOW_SHARE * np.max(speed[keep[:, j]] if keep[:, j].any() else speed, initial=0.0)
    return out


def slow_speeds(dq: Array, keep: Mask, moving: Mask) -> Array:
    """Return 1 % of the top speed of each moving joint with kept rows (joints,), to four digits; zero otherwise."""
    speeds = np.where(moving & keep.any(axis=0), moving_speeds(dq, keep), 0.0)
    return np.array([float(f"{x:.4g}") for x in speeds])


def drop_slow(keep: Mask, dq: Array, slow: Array, names: tuple[str, ...], all_joints: bool = False) -> list[str]:
    """Exclude a joint's rows below its speed `slow` (joints,) from keep (samples, joints); return sentences on this.
    all_joints: exclude the rows of all joints if one is slow."""
    before = keep.sum(axis=0)
    fast = np.abs(dq) >= slow
    keep &= np.all(fast, axis=1, keepdims=True) if all_joints else fast
    dropped = before - keep.sum(axis=0)
    what = ", ".join(f"{names[j]} {dropped[j]} below {slow[j]:.3g}" for j in np.flatnonzero(dropped))
    whose = "rows of all joints" if all_joints else "rows of each joint"
    steps = [f"dropped {whose} in slow motion (rad/s or m/s): {what}"] if what else []
    kept = [names[j] for j in np.flatnonzero((slow == 0.0) & np.any(dq != 0.0, axis=0))]
    return [*steps, f"rows in slow motion are kept for {', '.join(kept)}"] if kept else steps
