"""Checks of a log: rate and gaps, repeated rows, joints at rest, implausible units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array, Bools
from dynid.errors import RecordingError
from dynid.order_statistics import median, quantile
from dynid.quantities import RATE, check_quantity
from dynid.recording.mapping import SECONDS
from dynid.robot import Robot

_MIN_USUAL_RATE = 2.0  # Hz; logs at 1 kHz with stamps in ms look like 1 Hz
JUMP_TIMES = 10.0  # a step over those beside it and over usual ones: motions are smooth over three rows
JUMP_QUANTILE = 0.99  # of the steps of a joint that moves: nearly all of them
JUMP_SIZE = 0.02  # rad or m: smaller steps are those of coarse encoders
FEW = 100  # samples; below this nothing can be said about frequency or noise


@dataclass(frozen=True, eq=False)
class Extremes:
    """Smallest and largest position and torque of each joint (joints,)."""

    low: Array
    high: Array
    torque_low: Array
    torque_high: Array

    @staticmethod
    def of(q: Array, tau: Array) -> Extremes:
        return Extremes(q.min(axis=0), q.max(axis=0), tau.min(axis=0), tau.max(axis=0))

    def __or__(self, other: Extremes) -> Extremes:
        """Return the extremes over two parts of a log."""
        return Extremes(np.minimum(self.low, other.low), np.maximum(self.high, other.high),
                        np.minimum(self.torque_low, other.torque_low), np.maximum(self.torque_high, other.torque_high))


def check_rate(t: Array, said: bool, source: str) -> None:
    """Refuse stamps t (samples,) s with an implausible median rate.

    A very low rate indicates stamps in ms or us, unless the mapping gave the unit or the rate (`said`).
    """
    if len(t) < FEW:
        return
    rate = 1.0 / float(median(np.diff(t)))
    if rate < _MIN_USUAL_RATE and not said:
        unit = next((unit for unit, scale in SECONDS.items() if rate / scale >= _MIN_USUAL_RATE), "ns")
        raise RecordingError(f"{source}: rows come every {1.0 / rate:.4g} s, too seldom to show a motion: the time is "
                             f"probably in {unit}; add --set log.time_unit={unit}, or --set log.time_unit=s if it is "
                             "in seconds", where="log.time_unit", code="time-unit")
    check_quantity(RATE, rate, f"{source}: the median rate of the log", RecordingError)


def timing_notes(t: Array, q: Array) -> list[str]:
    """Return notes on rate, jitter, gaps and repeated rows, with numbers; t (samples,) s, q (samples, joints)."""
    n = len(t)
    if n < 2:
        return [f"only {n} sample"]
    steps = np.diff(t)
    usual_step = float(median(steps))
    span = float(t[-1] - t[0])
    notes = [f"{n} samples over {span:.6g} s, median rate {1 / usual_step:.5g} Hz, mean rate {(n - 1) / span:.5g} Hz"]
    if n < FEW:
        notes.append(f"only {n} samples, too few to filter or to validate a fit")
    off = float(np.mean(np.abs(steps / usual_step - 1.0) > 0.5))
    if np.max(np.abs(steps / usual_step - 1.0)) > 0.05:
        notes.append(f"time stamps jitter: intervals from {1e3 * steps.min():.4g} to {1e3 * steps.max():.4g} ms around "
                     f"a median of {1e3 * usual_step:.4g} ms, {100 * off:.2g} % off by more than half")
    longest = int(np.argmax(steps))
    if steps[longest] > 5 * usual_step:
        gaps = int(np.sum(steps > 5 * usual_step))
        notes.append(f"{gaps} gap{'s' * (gaps > 1)} longer than 5 intervals, the longest {steps[longest]:.4g} s "
                     f"at t = {t[longest]:.6g} s")
    parts = [float(median(part)) for part in np.array_split(steps, 4)] if n >= 40 else [usual_step]
    if max(parts) > 1.1 * min(parts):
        notes.append(f"the rate changes along the log, from {1 / max(parts):.4g} to {1 / min(parts):.4g} Hz")
    if not 10.0 <= 1 / usual_step <= 1e5:
        notes.append(f"a rate of {1 / usual_step:.4g} Hz is unusual for a robot's log: check the unit of the time, for "
                     "example --set log.time_unit=ms")
    repeats = float(np.mean(np.all(q[1:] == q[:-1], axis=1)))
    if repeats > 0.01:
        notes.append(f"{100 * repeats:.2g} % of the rows repeat the positions of the row before")
    return notes


def content_notes(extremes: Extremes, joints: Sequence[str], unmeasured: Sequence[str] = ()) -> list[str]:
    """Return notes on joints at rest and torques that are zero or constant; unmeasured ones are listed separately."""
    names = list(joints) or [str(i + 1) for i in range(len(extremes.low))]

    def those(mask: Bools) -> str:
        chosen = [name for name, yes in zip(names, mask, strict=True) if yes]
        return ("joint " if len(chosen) == 1 else "joints ") + ", ".join(chosen)

    notes = []
    still = extremes.high - extremes.low < 1e-3  # rad or m: encoder noise stays below, no motion worth identifying does
    if np.any(still):
        notes.append(f"{those(still)} never moved (range below 0.001), so the log does not determine "
                     f"{'its' if np.sum(still) == 1 else 'their'} inertia and friction")
    said = np.array([name not in unmeasured for name in names])
    zero = (extremes.torque_low == 0) & (extremes.torque_high == 0) & said
    constant = (extremes.torque_low == extremes.torque_high) & ~zero & said
    if np.any(zero):
        notes.append(f"the torque of {those(zero)} is zero in every row")
    if np.any(constant):
        notes.append(f"the torque of {those(constant)} is the same in every row")
    return notes


def unit_notes(extremes: Extremes, robot: Robot, said: bool, source: str) -> list[str]:
    """Return notes on positions beyond the robot's limits.

    Degrees read as radians are an error, unless the mapping gave the unit (`said`).
    """
    low, high = extremes.low, extremes.high
    turning = np.array([not joint.prismatic for joint in robot.joints])
    limit = np.maximum(np.abs(robot.limit("lower")), np.abs(robot.limit("upper")))
    limit = np.where(np.isfinite(limit) & (limit > 0), limit, 2 * np.pi)  # a joint without limits: one turn
    reach = np.maximum(np.abs(low), np.abs(high))
    far = turning & (reach > 3 * limit)
    if not np.any(far):
        over = (low < robot.limit("lower") - 0.05) | (high > robot.limit("upper") + 0.05)
        return [f"joint {joint.name} goes to {low[i]:.4g} and {high[i]:.4g}, outside its limits {joint.lower:.4g} "
                f"and {joint.upper:.4g}" for i, joint in enumerate(robot.joints) if over[i]]
    worst = int(np.argmax(np.where(far, reach / limit, 0.0)))
    bounded = np.isfinite(robot.limit("upper"))[worst]
    text = (f"joint {robot.joints[worst].name} goes to {reach[worst]:.4g} rad, more than three times "
            + (f"its limit of {limit[worst]:.4g} rad" if bounded else "a full turn"))
    if np.all(np.deg2rad(reach[turning]) <= 1.2 * limit[turning]):
        text += '; they are probably in degrees: add --set log.unit=deg, or unit = "deg" under [log]'
    else:
        text += (", more than degrees would give; they look like positions of the motor side: add --set log.side=motor "
                 "--set 'log.ratio=[MOTOR TURNS PER JOINT TURN, ...]'")
    if not said and bounded:
        raise RecordingError(f"{source}: {text}; if they are in radians, add --set log.unit=rad", where="log.unit")
    return [text]


@dataclass(frozen=True)
class Jumps:
    """Discontinuities of positions, as between runs that were joined into one file.

    Attributes:
        times: s, of the last row before each jump.
        joint: index of the joint with the largest step at the first jump.
        size: of that step, rad or m.
    """

    times: tuple[float, ...]
    joint: int
    size: float


def find_jumps(t: Array, q: Array) -> Jumps | None:
    """Return the jumps of positions q (samples, joints) at times t (samples,), or None.

    A jump is a single step far larger than the steps before and after it, and than nearly all steps of that joint.
    Spikes, which return, and positions held for several rows are not jumps.
    """
    if len(q) < FEW:
        return None
    steps = np.abs(np.diff(q, axis=0))
    usual = np.array([quantile(own[own > 0], JUMP_QUANTILE) if np.any(own > 0) else 0.0 for own in steps.T])
    beside = np.maximum(steps[:-2], steps[2:])
    jump = (steps[1:-1] > JUMP_TIMES * np.maximum(beside, usual)) & (steps[1:-1] > JUMP_SIZE)
    rows = np.flatnonzero(jump.any(axis=1)) + 1
    if not len(rows):
        return None
    joint = int(np.argmax(steps[rows[0]]))
    return Jumps(tuple(float(t[row]) for row in rows), joint, float(steps[rows[0], joint]))
