"""Hypotheses about the motion: time stamps, delays, gear ratios, zero positions, backlash, other joints' positions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from dynid.arrays import Array, Ints
from dynid.kernel_store import njit
from dynid.recording import Samples
from dynid.recording.preparation.filters import differentiate, differentiate_twice, low_pass
from dynid.validate.hypotheses.hypothesis import Change, Hypothesis
from dynid.validate.thresholds import COMMAND_PERIODS, SHORT_DELAY_WORTH

RATES = (0.1, 0.25, 0.5, 0.8, 1.25, 2.0, 4.0, 10.0)  # factors by which the clock may run too fast
GEARS = (0.8, 1.25)
OFFSETS = (-0.05, 0.05)  # rad or m: offset from the zero position of the robot file; refined up to 64 times as far
DELAYS = (-0.01, 0.01)  # s by which the torque may be later than the motion
GAPS = (0.004, 0.0064, 0.01, 0.016, 0.026)  # rad or m: backlash of a gear, in small steps
_LOGARITHMIC_SEARCHES = {"time-scale", "gear-ratio", "residual-follows-backlash"}  # searched on a logarithmic scale
_EXTENSIONS = 3  # steps of the search beyond the tried numbers, each four times as far
_PARABOLAS = 3  # steps of the search for a number
_POLISHED_SHARE = 0.2  # share of a number: distance to both sides of it at which its last parabola is evaluated
_HARDLY_FILTERED = 0.05  # share of the sampling rate: cut-off if the samples state none


def _of_each(change: Callable[[Samples], Samples]) -> Change:
    """Return a correction that changes each log by itself, and not the model."""
    return lambda model, logs: (model, tuple(map(change, logs)))


def _scaled(scale: Array, torque: Array | float = 1.0) -> Change:
    """Return the correction that multiplies the motion and the torque of each joint by a factor (dof,)."""
    return _of_each(lambda log: replace(log, q=log.q * scale, dq=log.dq * scale, ddq=log.ddq * scale,
                                        tau=log.tau * torque))


def stretched(factor: float) -> Change:
    """Return the correction that multiplies the time stamps of samples by a factor."""
    return _of_each(lambda log: replace(log, t=log.t * factor, dq=log.dq / factor, ddq=log.ddq / factor ** 2,
                                        rate=log.rate / factor, settings={**log.settings, **{
                                            name: value / factor for name in ("cutoff", "torque_cutoff")
                                            if isinstance(value := log.settings.get(name), float | int)}}))


def time_scale(factor: float) -> Hypothesis:
    """Return the hypothesis that the true time stamps are `factor` times those of the log."""
    return Hypothesis("time-scale", (), stretched(factor), values=(factor,), parameters=1, remake=time_scale)


def gear_ratio(j: int, factor: float, dof: int, torque: bool) -> Hypothesis:
    """Return the hypothesis that joint j moves `factor` times as far as logged; if `torque`, with 1/factor of the
    logged torque."""
    scale, inverse = np.ones(dof), np.ones(dof)
    scale[j] = factor
    inverse[j] = 1.0 / factor if torque else 1.0
    return Hypothesis("gear-ratio", (j,), _scaled(scale, inverse), inverse, (factor,), 1, {"torque": float(torque)},
                      remake=lambda number: gear_ratio(j, number, dof, torque))


def swapped_positions(j: int, k: int, dof: int) -> Hypothesis:
    """Return the hypothesis that the positions of joints j and k are exchanged."""
    order = np.arange(dof)
    order[[j, k]] = k, j

    def swap(x: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(x[:, order])

    return Hypothesis("positions-swapped", (j, k), _of_each(
        lambda log: replace(log, q=swap(log.q), dq=swap(log.dq), ddq=swap(log.ddq))))


def position_sign(joints: tuple[int, ...], dof: int, torque: bool = False) -> Hypothesis:
    """Return the hypothesis that the positions of these joints (from 0) have the opposite sign, with `torque` also
    their torques, as if the axis of the robot file points in the opposite direction."""
    sign = np.where(np.isin(range(dof), joints), -1.0, 1.0)
    return Hypothesis("position-sign", joints, _scaled(sign, sign if torque else 1.0), sign if torque else None,
                      details={"torque": float(torque)})


def position_offset(j: int, offset: float, dof: int) -> Hypothesis:
    """Return the hypothesis that the position of joint j exceeds the logged one by `offset` (rad or m)."""
    more = np.zeros(dof)
    more[j] = offset
    change = _of_each(lambda log: replace(log, q=log.q + more))
    return Hypothesis("position-offset", (j,), change, values=(offset,), parameters=1,
                      remake=lambda number: position_offset(j, number, dof))


def delay(late: float) -> Hypothesis:
    """Return the hypothesis that all torques are logged `late` seconds after the motion that they cause."""
    change = _of_each(lambda log: replace(log, tau=_advanced(log, late)))
    return Hypothesis("residual-follows-delay", (), change, values=(late,), parameters=1, between_rows=True,
                      remake=delay)


def held_for(log: Samples) -> float:
    """Return the time by which torque and motion of a log may differ due to sampling alone, s."""
    return COMMAND_PERIODS / log.rate


def worth_of_delay(late: float, hold: float) -> float:
    """Return the factor by which a delay of `late` seconds has to explain more torque than a delay above `hold`
    seconds."""
    return 1.0 if abs(late) > hold else SHORT_DELAY_WORTH


def _advanced(log: Samples, late: float) -> np.ndarray:
    """Return the torques (samples, dof) logged `late` seconds after each row, inside each segment."""
    out = np.empty_like(log.tau)
    for start, stop in log.segments:
        t = log.t[start:stop]
        for j in range(log.dof):
            out[start:stop, j] = np.interp(t + late, t, log.tau[start:stop, j])
    return out


def backlash(j: int, gap: float) -> Hypothesis:
    """Return the hypothesis that the gear of joint j has backlash (rad or m), with its encoder on the motor side."""
    change = _of_each(lambda log: _without_gap(log, j, gap))
    return Hypothesis("residual-follows-backlash", (j,), change, values=(gap,), parameters=1, between_rows=True,
                      remake=lambda number: backlash(j, number))


def presliding(j: int, width: float) -> Hypothesis:
    """Return the hypothesis that friction of joint j changes sign over a displacement (rad or m) after a reversal.

    The link follows its encoder, so inertia and gravity torques are as logged; this distinguishes it from backlash.
    """
    change = _of_each(lambda log: replace(log, dq=_without_gap(log, j, width).dq))
    return Hypothesis("residual-follows-reversal", (j,), change, values=(width,), parameters=1, between_rows=True)


def _without_gap(log: Samples, j: int, gap: float) -> Samples:
    q, dq, ddq = log.q.copy(), log.dq.copy(), log.ddq.copy()
    lag = lag_of_link(log.q[:, j], gap, log.rate, position_cutoff(log), log.segments)
    for x, off in zip((q, dq, ddq), lag, strict=True):
        x[:, j] += off
    return replace(log, q=q, dq=dq, ddq=ddq)


def motion_hypotheses(dof: int, doubted: Sequence[int], mixed: Sequence[int]) -> Iterator[Hypothesis]:
    """Return all hypotheses about the motion, with the initial values of their numbers.

    Args:
        dof: number of joints.
        doubted: joints whose motion may be wrong.
        mixed: joints whose own equations leave large residuals, as with backlash or wrong columns.
    """
    yield from (time_scale(factor) for factor in RATES)
    yield from (delay(seconds) for seconds in DELAYS)
    yield from (backlash(j, gap) for j in mixed for gap in GAPS)
    for j in doubted:
        yield position_sign((j,), dof)
        yield position_sign((j,), dof, torque=True)
        # The inertias of the last body absorb a position offset of its joint.
        yield from (position_offset(j, offset, dof) for offset in OFFSETS if j < dof - 1)
        for factor in GEARS:
            yield gear_ratio(j, factor, dof, torque=True)
            yield gear_ratio(j, factor, dof, torque=False)
    yield from (swapped_positions(j, k, dof) for j in mixed for k in mixed if j < k)


def _number(hypothesis: Hypothesis) -> float:
    """Return the number of a hypothesis on the scale of the search: the logarithm of factors and of backlash."""
    [value] = hypothesis.values
    return float(np.log(value)) if hypothesis.cause in _LOGARITHMIC_SEARCHES else value


def _with_number(start: Hypothesis, x: float) -> Hypothesis:
    """Return the hypothesis of the same kind and joint with another number x, on the scale of `_number`."""
    assert start.remake is not None
    return start.remake(float(np.exp(x)) if start.cause in _LOGARITHMIC_SEARCHES else x)


def hoped(tried: Sequence[tuple[float, Hypothesis]]) -> float:
    """Return the smallest possible residual ratio of hypotheses of one kind: that of the best tried number, or of a
    parabola through numbers on both sides of the uncorrected data, whose ratio is 1."""
    least = min(value for value, _ in tried)
    if not tried[0][1].parameters:
        return least
    at = {_number(one): value for value, one in tried}
    below, above = max((x for x in at if x < 0), default=None), min((x for x in at if x > 0), default=None)
    if below is None or above is None:
        return least
    slopes = (1.0 - at[below]) / -below, (at[above] - 1.0) / above
    curve = 2.0 * (slopes[1] - slopes[0]) / (above - below)
    slope = slopes[0] - 0.5 * curve * below
    return min(least, 1.0 - 0.5 * slope ** 2 / curve) if curve > 0 else least


def refined(tried: Sequence[tuple[float, Hypothesis]], misfit: Callable[[Hypothesis], float]) -> Hypothesis:
    """Return a hypothesis of one kind with the best number, by parabolas through the residual ratios of tried numbers.

    Args:
        tried: residual ratios and hypotheses of one kind.
        misfit: returns the residual ratio of another hypothesis; the ratio of the uncorrected data is 1.
    """
    start = min(tried, key=lambda pair: pair[0])[1]
    if not start.parameters:
        return start
    at, best = {_number(one): value for value, one in tried}, _number(start)
    if start.cause != "residual-follows-backlash":  # the logarithm of no gap is infinite
        at[0.0] = 1.0
    # Tried factors span the plausible range.
    for _ in range(1 if start.cause in _LOGARITHMIC_SEARCHES else _EXTENSIONS):
        if _lowest(at) not in (min(at), max(at)):
            break
        best = best + np.copysign(0.5, best - np.mean(list(at))) if start.cause in _LOGARITHMIC_SEARCHES else 4.0 * best
        at[best] = misfit(_with_number(start, best))
    for _ in range(_PARABOLAS):
        if (x := _lowest(at)) in at:
            break
        at[x] = misfit(_with_number(start, x))
    return _with_number(start, _lowest(at))


def polished(start: Hypothesis, misfit: Callable[[Hypothesis], float]) -> Hypothesis:
    """Return a hypothesis with its number fitted again, by a parabola through the residual ratios at three numbers."""
    if not start.parameters:
        return start
    x = _number(start)
    near = x + _POLISHED_SHARE * min(abs(x), 1.0) * np.array([-1.0, 0.0, 1.0])
    return _with_number(start, _lowest({one: misfit(_with_number(start, one)) for one in near.tolist()}))


def _lowest(tried: Mapping[float, float]) -> float:
    """Return the number at the minimum of a parabola through the smallest of the tried values and its neighbours.

    tried: values by number.
    """
    order = sorted(tried)
    k = min(max(order.index(min(tried, key=lambda x: tried[x])), 1), len(order) - 2)
    left, middle, right = order[k - 1:k + 2]
    low, high = ((tried[b] - tried[a]) / (b - a) for a, b in ((left, middle), (middle, right)))
    curve = (high - low) / (right - left)  # divided differences are accurate for close points too
    if not curve > 0:
        return min(order, key=lambda value: tried[value])
    return float(np.clip(0.5 * (left + middle) - 0.5 * low / curve, left, right))


def position_cutoff(log: Samples) -> float:
    """Return the cut-off (Hz) of the positions of samples, or a very high one if they have none."""
    cutoff = log.settings.get("cutoff")
    return float(cutoff) if isinstance(cutoff, float | int) and 0 < cutoff < 0.45 * log.rate \
        else _HARDLY_FILTERED * log.rate


def lag_of_link(q: Array, gap: float, rate: float, cutoff: float, segments: Ints) -> tuple[Array, Array, Array]:
    """Return the difference of a link's position from its motor's position q (samples,), with two derivatives, for a
    gap in the gear (rad or m). The result is low-passed at the cut-off (Hz) of the positions."""
    off = np.zeros((len(q), 1))
    for start, stop in segments:
        off[start:stop, 0] = q[start:stop]
        _follow(off[start:stop, 0], 0.5 * abs(gap))
        off[start:stop, 0] -= q[start:stop]
    off = low_pass(off, cutoff, rate, 4, segments)
    return off[:, 0], differentiate(off, rate, segments)[:, 0], differentiate_twice(off, rate, segments)[:, 0]


@njit(cache=True, nogil=True)
def _follow(x: Array, half: float) -> None:
    """Replace the motor positions x (samples,) by those of the link, in place.

    The link moves only while the motor is in contact at one end of the gap.
    """
    link = x[0] if len(x) else 0.0
    for k in range(len(x)):
        link = min(max(link, x[k] - half), x[k] + half)
        x[k] = link
