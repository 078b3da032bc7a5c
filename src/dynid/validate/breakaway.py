"""Breakaway: the friction that a joint must overcome to start, from the starts in a log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array
from dynid.estimate import Estimate
from dynid.model import complete
from dynid.recording import Recording, Samples
from dynid.signals import at_times
from dynid.validate.friction_shape import friction_at, velocity_friction

_REST = 0.15  # s that a joint stands before a start, at least
_BEFORE, _AFTER = 0.02, 0.015  # s before a start from which friction is carried on to it, and behind it
_STILL = 6.0  # deviations of the positions' noise within which a joint stands
_FEWEST = 3  # starts


@dataclass(frozen=True)
class Breakaway:
    """What a joint holds at rest. static, deviation: friction just before it starts, the median over its starts and one
    sigma of it, N m or N. above: how much of it is above the friction at low speed, Fb of `BreakawayFriction`."""

    joint: str
    static: float
    deviation: float
    above: float
    starts: int


def breakaway(estimate: Estimate, samples: Samples | Sequence[Samples],
              recordings: Recording | Sequence[Recording]) -> tuple[Breakaway, ...]:
    """What joints hold at rest, of those that start from rest three times or more, from logs as they were recorded and
    the samples made of them: positions and torques without any filter tell when a joint starts, the estimate what
    torque is not friction."""
    logs = (samples,) if isinstance(samples, Samples) else tuple(samples)
    behind = (recordings,) if isinstance(recordings, Recording) else tuple(recordings)
    own, found = velocity_friction(estimate), []
    peaks: list[list[float]] = [[] for _ in range(estimate.model.dof)]
    for log, raw in zip(logs, behind, strict=True):
        for j in range(estimate.model.dof):
            # As if the joint stood still: what a filter makes of its motion begins before it starts.
            dq, ddq = log.dq.copy(), log.ddq.copy()
            dq[:, j] = ddq[:, j] = 0.0
            rest = np.asarray(estimate.predict(log.q, dq, ddq))[:, j] - friction_at(estimate, j, own[j], dq[:, j])[0]
            friction = raw.tau[:, j] - at_times(raw.t, log.t, rest[:, None])[:, 0]
            peaks[j] += _at_starts(raw.t, raw.q[:, j], friction)
    for j, values in enumerate(peaks):
        if len(values) >= _FEWEST:
            static, name = float(np.median(values)), complete(estimate.model).joint_names[j]
            slow = float(friction_at(estimate, j, own[j], np.array([1e-6]))[0][0])
            spread = 1.4826 * float(np.median(np.abs(np.array(values) - static)))
            deviation = 1.2533 * spread / float(np.sqrt(len(values)))  # of a median
            found.append(Breakaway(name, static, deviation, max(static - slow, 0.0), len(values)))
    return tuple(found)


def _at_starts(t: Array, q: Array, friction: Array) -> list[float]:
    """Friction in the direction of motion at each start from rest."""
    rate = 1.0 / float(np.median(np.diff(t)))
    rows, before, after = (max(round(span * rate), 3) for span in (_REST, _BEFORE, _AFTER))
    noise = float(np.median(np.abs(np.diff(q, 2)))) / (0.6745 * np.sqrt(6.0))
    still = max(_STILL * noise, 1e-9 * float(np.ptp(q)))
    found, anchor, since = [], float(q[0]), 0
    for k in range(1, len(q) - after):
        if abs(q[k] - anchor) <= still:
            continue
        if k - since >= rows:
            origin = float(np.mean(q[since:k - rows // 2]))
            near = slice(max(k - 3 * after, since), k + after)
            begin = _begin(t[near], (q[near] - origin) * np.sign(q[k] - anchor), k - near.start)
            stop = min(int(np.searchsorted(t, begin)), k - 1)
            own = slice(max(stop - before, since), stop)
            if own.stop - own.start >= before // 2:
                found.append(float(np.polyfit(t[own] - begin, friction[own], 2)[2] * np.sign(q[k] - anchor)))
        anchor, since = float(q[k]), k
    return found


def _begin(t: Array, way: Array, first: int) -> float:
    """When a motion began that goes by `way` (rows,) at times t: from then on the square and the cube of the time, the
    one where friction falls at the start and the acceleration jumps, the other where it does not. first: the row that
    has surely moved."""
    lost = []
    for start in t[:first + 1]:
        since = np.maximum(t - start, 0.0)
        columns = np.column_stack([since ** 2, since ** 3])
        values = np.maximum(np.linalg.lstsq(columns / columns[-1], way, rcond=None)[0], 0.0)
        lost.append(float(np.sum((way - columns / columns[-1] @ values) ** 2)))
    return float(t[int(np.argmin(lost))])
