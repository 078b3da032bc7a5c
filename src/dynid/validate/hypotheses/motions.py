"""Hypotheses about the motion: time stamps, delays, gear ratios, gaps in gears, positions of other joints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from dynid.model import LinearModel
from dynid.recording import Samples
from dynid.validate.hypotheses.hypothesis import Change, Hypothesis
from dynid.validate.hypotheses.play import lag_of_link, position_cutoff

RATES = (0.1, 0.25, 0.5, 0.8, 1.25, 2.0, 4.0, 10.0)  # times that the clock may have run too fast
GEARS = (0.8, 1.25)
DELAYS = (-0.01, 0.01)  # s that the torque may come late
GAP = 0.01  # rad, of a gear, where the search for it begins
_NUMBERS = {"time-scale", "gear-ratio", "residual-follows-delay", "residual-follows-backlash"}  # causes with a number


def stretched(factor: float) -> Change:
    """Time stamps multiplied by a factor."""
    def change(model: LinearModel, logs: tuple[Samples, ...]) -> tuple[LinearModel, tuple[Samples, ...]]:
        return model, tuple(replace(log, t=log.t * factor, dq=log.dq / factor, ddq=log.ddq / factor ** 2,
                                    rate=log.rate / factor) for log in logs)

    return change


def time_scale(factor: float) -> Hypothesis:
    """Time stamps are wrong by a factor: the true ones are `factor` times those of the log."""
    return Hypothesis("time-scale", (), stretched(factor), values=(factor,), parameters=1)


def gear_ratio(j: int, factor: float, dof: int, torque: bool) -> Hypothesis:
    """The true position of joint j is `factor` times the logged one, and with `torque` its torque the inverse."""
    scale, inverse = np.ones(dof), np.ones(dof)
    scale[j] = factor
    inverse[j] = 1.0 / factor if torque else 1.0

    def change(model: LinearModel, logs: tuple[Samples, ...]) -> tuple[LinearModel, tuple[Samples, ...]]:
        return model, tuple(replace(log, q=log.q * scale, dq=log.dq * scale, ddq=log.ddq * scale,
                                    tau=log.tau * inverse) for log in logs)

    return Hypothesis("gear-ratio", (j,), change, inverse, (factor,), 1, {"torque": float(torque)})


def swapped_positions(j: int, k: int, dof: int) -> Hypothesis:
    """The positions of joints j and k stand in each other's columns."""
    order = np.arange(dof)
    order[[j, k]] = k, j

    def change(model: LinearModel, logs: tuple[Samples, ...]) -> tuple[LinearModel, tuple[Samples, ...]]:
        def swap(x: np.ndarray) -> np.ndarray:
            return np.ascontiguousarray(x[:, order])

        return model, tuple(replace(log, q=swap(log.q), dq=swap(log.dq), ddq=swap(log.ddq)) for log in logs)

    return Hypothesis("positions-swapped", (j, k), change)


def position_sign(j: int, dof: int) -> Hypothesis:
    """The position of joint j is counted the other way round."""
    scale = np.ones(dof)
    scale[j] = -1.0

    def change(model: LinearModel, logs: tuple[Samples, ...]) -> tuple[LinearModel, tuple[Samples, ...]]:
        return model, tuple(replace(log, q=log.q * scale, dq=log.dq * scale, ddq=log.ddq * scale) for log in logs)

    return Hypothesis("position-sign", (j,), change)


def delay(late: float) -> Hypothesis:
    """All torques come `late` seconds after the motion they belong to."""
    def change(model: LinearModel, logs: tuple[Samples, ...]) -> tuple[LinearModel, tuple[Samples, ...]]:
        return model, tuple(replace(log, tau=_advanced(log, late)) for log in logs)

    return Hypothesis("residual-follows-delay", (), change, values=(late,), parameters=1)


def _advanced(log: Samples, late: float) -> np.ndarray:
    """Torques (samples, dof) as they were `late` seconds after each row, inside each segment."""
    out = np.empty_like(log.tau)
    for start, stop in log.segments:
        t = log.t[start:stop]
        for j in range(log.dof):
            out[start:stop, j] = np.interp(t + late, t, log.tau[start:stop, j])
    return out


def backlash(j: int, gap: float) -> Hypothesis:
    """The gear of joint j has a gap (rad or m), and its encoder is the motor's."""
    def change(model: LinearModel, logs: tuple[Samples, ...]) -> tuple[LinearModel, tuple[Samples, ...]]:
        return model, tuple(_without_gap(log, j, gap) for log in logs)

    return Hypothesis("residual-follows-backlash", (j,), change, values=(gap,), parameters=1)


def _without_gap(log: Samples, j: int, gap: float) -> Samples:
    q, dq, ddq = log.q.copy(), log.dq.copy(), log.ddq.copy()
    lag = lag_of_link(log.q[:, j], gap, log.rate, position_cutoff(log), log.segments)
    for x, off in zip((q, dq, ddq), lag, strict=True):
        x[:, j] += off
    return replace(log, q=q, dq=dq, ddq=ddq)


def motion_hypotheses(dof: int, doubted: Sequence[int], rough: Sequence[int]) -> Iterator[Hypothesis]:
    """All that are tried without fitting a number. doubted: joints whose motion may be wrong. rough: joints whose own
    equations do not explain their torque, as those of joints in wrong columns do not."""
    yield from (time_scale(factor) for factor in RATES)
    yield from (delay(late) for late in DELAYS)
    for j in doubted:
        yield position_sign(j, dof)
        yield backlash(j, GAP)
        for factor in GEARS:
            yield gear_ratio(j, factor, dof, torque=True)
            yield gear_ratio(j, factor, dof, torque=False)
    yield from (swapped_positions(j, k, dof) for j in rough for k in rough if j < k)


def refined(start: Hypothesis, misfit: Callable[[Hypothesis], float], dof: int) -> Hypothesis:
    """The same hypothesis with the number that leaves least: golden section about where it began, on the number's
    logarithm where it is a factor."""
    if start.cause not in _NUMBERS:
        return start
    first = start.values[0]
    factor = start.cause in ("time-scale", "gear-ratio")

    def at(x: float) -> Hypothesis:
        number = float(np.exp(x)) if factor else x
        if start.cause == "time-scale":
            return time_scale(number)
        if start.cause == "gear-ratio":
            return gear_ratio(start.joints[0], number, dof, bool(start.details["torque"]))
        return delay(number) if start.cause == "residual-follows-delay" else backlash(start.joints[0], number)

    low, high = (np.log(first) - 0.5, np.log(first) + 0.5) if factor else (0.0, 4.0 * first)
    golden = 0.5 * (np.sqrt(5.0) - 1.0)
    a, b = high - golden * (high - low), low + golden * (high - low)
    fa, fb = misfit(at(a)), misfit(at(b))
    for _ in range(9):
        if fa < fb:
            high, b, fb = b, a, fa
            a = high - golden * (high - low)
            fa = misfit(at(a))
        else:
            low, a, fa = a, b, fb
            b = low + golden * (high - low)
            fb = misfit(at(b))
    return at(0.5 * (low + high))
