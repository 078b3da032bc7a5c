"""Friction of each joint over its velocity, and the breakaway torque at which it starts to move from rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array, Bools, Ints
from dynid.estimate import Estimate
from dynid.kernel_store import njit
from dynid.model import complete
from dynid.order_statistics import median
from dynid.plain import PlainFields
from dynid.recording import Recording, Samples
from dynid.regression.residual_series import Residuals
from dynid.signals import at_times
from dynid.validate.reconstruction import Reconstruction

_CURVE_POINTS = 81  # points of a curve
_VELOCITY_BINS = 24  # velocity bins in each direction
MIN_BIN_ROWS = 5  # rows of a bin that is shown
_MIN_REST_TIME = 0.15  # s: shortest rest before a start
# s: interval around a start over which the friction torque is fitted by a parabola and evaluated at the start
_SECONDS_BEFORE_START, _SECONDS_AFTER_START = 0.02, 0.015
_REST_NOISE_STD = 6.0  # a joint is at rest within this multiple of the standard deviation of the position noise
MIN_STARTS = 3  # starts


@dataclass(frozen=True, eq=False)
class FrictionShape:
    """Velocity-dependent friction of one joint, and the measured torque minus all other terms.

    Attributes:
        joint: name of the joint.
        velocity, torque, std: (points,), the curve and its standard error, rad/s or m/s and N m or N.
        centres, medians, low, high: (bins,), velocities of the bins, and medians and quartiles of the data in each.
    """

    joint: str
    velocity: Array
    torque: Array
    std: Array
    centres: Array
    medians: Array
    low: Array
    high: Array


def friction_shapes(reconstruction: Reconstruction) -> tuple[FrictionShape, ...]:
    """Return the velocity-dependent friction of each moving joint; load-dependent friction is excluded."""
    estimate = reconstruction.estimate
    own = velocity_friction(estimate)
    found = []
    for j, name in enumerate(reconstruction.names):
        speeds, left = _rows(reconstruction, j)
        if not own[j].any() or not len(speeds) or not np.abs(speeds).max() > 0:
            continue
        top = float(np.abs(speeds).max())
        # Points are denser near zero velocity, where friction changes sign.
        half = top * np.linspace(0.0, 1.0, _CURVE_POINTS // 2 + 1)[1:] ** 2
        grid = np.concatenate([-half[::-1], half])
        torque, std = friction_at(estimate, j, own[j], grid)
        edges = top * np.linspace(0.0, 1.0, _VELOCITY_BINS + 1) ** 2
        edges = np.concatenate([-edges[:0:-1], edges])
        data = left + friction_at(estimate, j, own[j], speeds)[0]
        found.append(FrictionShape(name, grid, torque, std, *_binned(speeds, data, edges)))
    return tuple(found)


def velocity_friction(estimate: Estimate) -> Bools:
    """Return a mask (dof, parameters) of the friction parameters of each joint that depend on velocities alone."""
    model, parameters = complete(estimate.model), estimate.model.parameters
    friction = parameters.of_group("friction")
    loaded = getattr(estimate.model, "loaded", np.zeros(len(parameters), dtype=bool))
    return np.asarray(model.structure & friction & ~loaded, dtype=np.bool_)


def friction_at(estimate: Estimate, joint: int, own: Bools, velocity: Array) -> tuple[Array, Array]:
    """Return friction torque and its standard error (samples,) of some parameters at velocities of one joint, with all
    other joints at rest. own (parameters,): mask of these parameters."""
    chosen: Ints = np.flatnonzero(own)
    dq, place = np.zeros((len(velocity), estimate.model.dof)), np.full((estimate.model.dof, len(own)), -1)
    dq[:, joint], place[joint, chosen] = velocity, np.arange(len(chosen))
    y = np.zeros((len(chosen), len(velocity)))
    complete(estimate.model).fill(np.zeros_like(dq), dq, np.zeros_like(dq), place, y)
    base: Ints = np.flatnonzero(own[estimate.base.independent] & estimate.identified)
    columns = y[np.searchsorted(chosen, estimate.base.independent[base])].T
    spread = np.einsum("si,ij,sj->s", columns, estimate.covariance[np.ix_(base, base)], columns)
    return estimate.full[own] @ y, np.sqrt(np.maximum(spread, 0.0))


def _rows(reconstruction: Reconstruction, joint: int) -> tuple[Array, Array]:
    """Return velocities and residuals (rows,) of a joint in the rows of the fit."""
    parts: Sequence[Residuals] = reconstruction.series
    speeds, left = [], []
    for samples, part in zip(reconstruction.samples, parts, strict=True):
        keep = part.keep[:, joint]
        rows = np.clip(np.searchsorted(samples.t, part.t[keep] - 0.5 / samples.rate), 0, len(samples) - 1)
        speeds.append(np.asarray(samples.dq[rows, joint]))
        left.append(part.residual[keep, joint])
    return np.concatenate(speeds), np.concatenate(left)


def _binned(x: Array, y: Array, edges: Array) -> tuple[Array, Array, Array, Array]:
    """Return centres, medians and quartiles (bins,) of y by bins of x with enough rows."""
    which = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, len(edges) - 2)
    starts = np.searchsorted(np.sort(which), np.arange(len(edges)))
    full = np.flatnonzero(np.diff(starts) >= MIN_BIN_ROWS)
    first, count = starts[:-1][full], np.diff(starts)[full]

    def at(values: Array, share: float) -> Array:
        """Return a quantile of the sorted values in each bin (bins,), interpolated linearly."""
        place = share * (count - 1)
        low, part = first + np.floor(place).astype(np.int64), place % 1.0
        return np.asarray(values[low] + part * (values[np.minimum(low + 1, len(values) - 1)] - values[low]))

    by_x, by_y = (values[np.lexsort((values, which))] for values in (x, y))
    return at(by_x, 0.5), at(by_y, 0.5), at(by_y, 0.25), at(by_y, 0.75)


@dataclass(frozen=True)
class Breakaway(PlainFields):
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


@dataclass(frozen=True)
class _Start:
    """A start of a joint from rest: the rows just before the start, its time, s, and the direction of motion, +-1."""

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
