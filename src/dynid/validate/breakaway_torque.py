"""Breakaway friction: the torque at which a joint starts to move, measured at all starts from rest in a log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dynid.arrays import Array, Bools, Ints
from dynid.estimate import Estimate
from dynid.kernel_store import njit
from dynid.model import complete
from dynid.order_statistics import median
from dynid.output_fields import output_fields
from dynid.recording import Recording, Samples
from dynid.signals import at_times
from dynid.validate.friction_shape import friction_at, velocity_friction

_MIN_REST_TIME = 0.15  # s: shortest rest before a start
# s: interval around a start over which the friction torque is fitted by a parabola and evaluated at the start
_SECONDS_BEFORE_START, _SECONDS_AFTER_START = 0.02, 0.015
_REST_NOISE_STD = 6.0  # a joint is at rest within this multiple of the standard deviation of the position noise
MIN_STARTS = 3  # starts


@dataclass(frozen=True)
class Breakaway:
    """Breakaway friction of a joint.

    Attributes:
        joint: name of the joint.
        static: friction just before a start, median over the starts, N m or N.
        std: standard error of `static`.
        above: excess of `static` over the friction at low speed, Fb of `BreakawayFriction`.
        starts: number of starts.
    """

    joint: str
    static: float
    std: float
    above: float
    starts: int

    @output_fields(own_fields=True)
    def to_dict(self) -> dict[str, Any]:
        """Return the breakaway friction as plain data for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class _Start:
    """A start of a joint: the rows just before it, its time, s, and its direction."""

    rows: slice
    begin: float
    direction: float


def breakaway(estimate: Estimate, samples: Samples | Sequence[Samples],
              recordings: Recording | Sequence[Recording]) -> tuple[Breakaway, ...]:
    """Estimate the breakaway torque of joints that start from rest at least three times.

    Start times come from the unfiltered recordings; the estimate predicts the part of the torque that is not friction.
    """
    logs = (samples,) if isinstance(samples, Samples) else tuple(samples)
    behind = (recordings,) if isinstance(recordings, Recording) else tuple(recordings)
    dof, names = estimate.model.dof, complete(estimate.model).joint_names
    starts = [[_starts(raw.t, raw.q[:, j]) for raw in behind] for j in range(dof)]
    own, found = velocity_friction(estimate), []
    for j in range(dof):
        if sum(map(len, starts[j])) < MIN_STARTS:
            continue
        values = np.concatenate([_friction_at(estimate, j, own[j], log, raw, some)
                                 for log, raw, some in zip(logs, behind, starts[j], strict=True)])
        static = float(median(values))
        slow = float(friction_at(estimate, j, own[j], np.array([1e-6]))[0][0])
        spread = 1.4826 * float(median(np.abs(values - static)))
        std = 1.2533 * spread / float(np.sqrt(len(values)))  # standard error of a median
        found.append(Breakaway(names[j], static, std, max(static - slow, 0.0), len(values)))
    return tuple(found)


def _friction_at(estimate: Estimate, j: int, own: Bools, log: Samples, raw: Recording, starts: Sequence[_Start]
                 ) -> Array:
    """Return the friction of joint j in the direction of motion at each start (starts,); own (parameters,):
    parameters of its velocity-dependent friction."""
    if not starts:
        return np.empty(0)
    # Velocity and acceleration are set to zero, because the low-pass filter smears the motion over the time before the
    # start.
    dq, ddq = log.dq.copy(), log.ddq.copy()
    dq[:, j] = ddq[:, j] = 0.0
    rest = np.asarray(estimate.predict(log.q, dq, ddq))[:, j] - friction_at(estimate, j, own, dq[:, j])[0]
    friction = raw.tau[:, j] - at_times(raw.t, log.t, rest[:, None])[:, 0]
    return np.array([_at_begin(raw.t[one.rows] - one.begin, friction[one.rows]) * one.direction for one in starts])


def _at_begin(t: Array, x: Array) -> float:
    """Return the value at t = 0 of the least-squares parabola through x (rows,) at times t (rows,)."""
    scale = float(np.abs(t).max(initial=0.0)) or 1.0
    return float(np.linalg.lstsq(np.vander(t / scale, 3), x, rcond=None)[0][2])


def _starts(t: Array, q: Array) -> list[_Start]:
    """Return all starts of a joint from rest in a log."""
    rate = 1.0 / float(median(np.diff(t)))
    spans = (_MIN_REST_TIME, _SECONDS_BEFORE_START, _SECONDS_AFTER_START)
    rows, before, after = (max(round(span * rate), 3) for span in spans)
    noise = float(median(np.abs(np.diff(q, 2)))) / (0.6745 * np.sqrt(6.0))
    still = max(_REST_NOISE_STD * noise, 1e-9 * float(np.ptp(q)))
    found = []
    for since, k in departures(np.ascontiguousarray(q[:len(q) - after]), still, rows).tolist():
        direction = float(np.sign(q[k] - q[since]))
        origin = float(np.mean(q[since:k - rows // 2]))
        near = slice(max(k - 3 * after, since), k + after)
        begin = _begin(t[near], (q[near] - origin) * direction, k - near.start)
        stop = min(int(np.searchsorted(t, begin)), k - 1)
        own = slice(max(stop - before, since), stop)
        if own.stop - own.start >= before // 2:
            found.append(_Start(own, begin, direction))
    return found


def departures(q: Array, still: float, rows: int) -> Ints:
    """Return (rests, 2): first row of each rest of at least `rows` rows, and first row after it. A joint is at rest
    while its position q moves less than `still`."""
    found = np.empty((len(q) // max(rows, 1) + 1, 2), np.int64)
    return found[:_departures(q, float(still), rows, found)]


@njit(cache=True)
def _departures(q: Array, still: float, rows: int, out: Ints) -> int:
    """Write the row pairs of `departures` into out (n, 2) and return their number."""
    count, anchor, since = 0, q[0], 0
    for k in range(1, len(q)):
        if abs(q[k] - anchor) > still:
            if k - since >= rows:
                out[count, 0], out[count, 1] = since, k
                count += 1
            anchor, since = q[k], k
    return count


def _begin(t: Array, travel: Array, first: int) -> float:
    """Return the start time of a motion `travel` (rows,) at times t, from a fit with the square and the cube of the
    time. The square describes a jump of the acceleration as friction drops, the cube a smooth start.
    first: a moving row."""
    lost = []
    for start in t[:first + 1]:
        since = np.maximum(t - start, 0.0)
        columns = np.column_stack([since ** 2, since ** 3])
        values = np.maximum(np.linalg.lstsq(columns / columns[-1], travel, rcond=None)[0], 0.0)
        lost.append(float(np.sum((travel - columns / columns[-1] @ values) ** 2)))
    return float(t[int(np.argmin(lost))])
