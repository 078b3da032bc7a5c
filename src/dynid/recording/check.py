"""Checks of a log: rate and gaps, repeated or copied rows, joints at rest, stuck encoders, implausible units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array, Bools, Ints
from dynid.errors import RecordingError
from dynid.order_statistics import distinct, median, quantile
from dynid.quantities import RATE, check_quantity, percent_text
from dynid.recording.mapping import SECONDS
from dynid.recording.preparation.selection import encoder_count, equal_ranges
from dynid.robot import Robot

_MIN_CLOCK_RATE = 10.0  # Hz: mean rate below which a log of rows with other time stamps is not the recorded one
_MIN_TRAVEL = 0.05  # rad or m: range of a joint whose travel is larger than the noise of its positions
_ROWS_FOR_SPEED = 20_000  # rows in the middle of a log that are compared, which limits memory
_MOTOR_SIDE = "--set log.side=motor --set 'log.ratio=[MOTOR TURNS PER JOINT TURN, ...]'"
_SAME_UNIT = 0.05  # relative tolerance of the factor between two units
_SPEED_UNITS = {"deg": 180.0 / np.pi, "rad": np.pi / 180.0, "rpm": 30.0 / np.pi}  # size of 1 rad/s, of 1 deg/s in rad/s
_SPEED_NAMES = {"deg": "deg/s", "rad": "rad/s", "rpm": "rpm"}
WRONG_SPEED_UNIT = "velocities are"  # start of the note on velocities in another unit
_MIN_USUAL_RATE = 2.0  # Hz: logs at 1 kHz with time stamps in ms look like 1 Hz
JUMP_TIMES = 10.0  # ratio of a jump to neighbouring and to usual steps; motions are smooth over three rows
JUMP_QUANTILE = 0.99  # quantile of the steps of a moving joint: nearly all of them
JUMP_SIZE = 0.02  # rad or m: smaller steps may be those of coarse encoders
FEW = 100  # samples below which frequency and noise cannot be estimated
MIN_STUCK_SECONDS = 0.1  # s: shortest time of a stuck position
_SPEED_WINDOW = 0.04  # s before and after a stuck position, over which the speed is computed
_MISSED_COUNTS = 8.0  # encoder counts that a joint would move during the stuck time with its speed before or after it
_MIN_CHANGE_RATIO = 3.0  # ratio of that speed to the usual largest change of speed over such a window
LOST_SHARE = 0.02  # share of the rows above which missing rows are corrected: speeds are wrong by this share
LOST_WINDOW = 5  # rows on both sides, over which the speed of a motion below some Hz hardly changes
LOST_COUNTS_A_ROW = 3.0  # encoder counts, or standard deviations of noise, per row of joints that show missing rows
LOST_COUNT_QUANTILE = 0.01  # quantile of the steps of a joint that is about one encoder count
LOST_TOLERANCE = 0.25  # rows: largest distance from a whole number of missing rows
LOST_STANDARD_ERRORS = 8.0  # of a missing row; noise of 10^6 rows reaches 5
LOST_LEFT = 0.2  # share of the squared deviation of a step that a whole number of missing rows may leave
LOST_REGULAR = 0.05  # intervals: largest jitter of a time stamp that was written anew; measured ones are believed
LOST_PASSES = 3  # corrections of the time stamps
MOST_LOST = 20  # rows; over longer times the speed of a motion changes
LOST_TORQUE_CHANGES = 3.0  # times nearly all changes of a torque from row to row, by which it jumps to zero and back
LOST_TOGETHER = 3.0  # times as many zeros in all joints as by chance or in all joints but one, or between far torques
#                      as other small values there
LOST_PLACES = 10  # places with missing rows, or with zeros of one joint's coarse torques: fewer may be coincidences
COARSE_SHARE = 0.5  # share of distinct values of a torque below which zero is one of few values
_ROWS_FOR_NOISE = 50_000  # rows that are compared at once, which limits memory
_LOST_BORDER = 2 * LOST_WINDOW  # rows on both sides of them
MIN_ROWS_FOR_COPIES = 100  # rows below which copies are not searched
_COMPARED_ROWS = 10  # rows on each side over which motion is detected
_COUNTS_A_ROW = 2.0  # encoder counts per row of a moving joint, at least
_LEAST_APART = 20  # rows between a row and its copy, at least; nearer ones are repeated rows
DECIMAL_STEP_TOLERANCE = 1e-6  # relative tolerance of a decimal step, and of positions as its multiples
# steps in the range of a joint: with more, rounding is smaller than filter errors
_FINE_ROUNDING_STEPS = 1000.0


@dataclass(frozen=True, eq=False)
class Extremes:
    """Smallest and largest position and torque of each joint (joints,)."""

    low: Array
    high: Array
    torque_low: Array
    torque_high: Array

    @staticmethod
    def from_signals(q: Array, tau: Array) -> Extremes:
        return Extremes(q.min(axis=0), q.max(axis=0), tau.min(axis=0), tau.max(axis=0))

    def __or__(self, other: Extremes) -> Extremes:
        """Return the smallest and largest values over two parts of a log."""
        return Extremes(np.minimum(self.low, other.low), np.maximum(self.high, other.high),
                        np.minimum(self.torque_low, other.torque_low), np.maximum(self.torque_high, other.torque_high))


def check_rate(t: Array, said: bool, source: str) -> None:
    """Refuse time stamps t (samples,) s with an implausible median rate.

    A very low rate indicates stamps in ms or us, unless the mapping gives the unit or the rate (`said`).
    """
    if len(t) < FEW:
        return
    rate = 1.0 / float(median(np.diff(t)))
    if rate < _MIN_USUAL_RATE and not said:
        unit = next((unit for unit, scale in SECONDS.items() if rate / scale >= _MIN_USUAL_RATE), "ns")
        raise RecordingError(f"{source}: rows are {1.0 / rate:.4g} s apart, too long to show a motion: the time is "
                             f"probably in {unit}; add --set log.time_unit={unit}, or --set log.time_unit=s if it is "
                             "in seconds", where="log.time_unit", code="time-unit")
    check_quantity(RATE, rate, f"{source}: the median rate of the log", RecordingError)


def check_clock(t: Array, repeated: int, source: str) -> None:
    """Refuse a log in which most rows repeat the previous time stamp, so that few rows remain.

    t: time stamps (samples,) of the remaining rows, s; repeated: number of rows with a repeated stamp but new values.
    """
    if repeated > len(t) and (len(t) < FEW or (len(t) - 1) / float(t[-1] - t[0]) < _MIN_CLOCK_RATE):
        raise RecordingError(f"{source}: {repeated} of {repeated + len(t)} rows have the time stamp of the previous "
                             "row, but other values: the time column has too few digits, or is not the time of the "
                             "rows; name another column with --set log.time=NAME, or give the rate in Hz with --set "
                             "log.rate=N", where="log.time", code="coarse-clock")


def velocity_notes(t: Array, q: Array, dq: Array | None) -> list[str]:
    """Return a note if velocities dq (samples, joints) have another unit than positions q: for all joints that move, dq
    is then the same multiple of the derivative of q. t: time stamps (samples,), s."""
    if dq is None or len(t) < FEW:
        return []
    middle = slice(max(len(t) - _ROWS_FOR_SPEED, 0) // 2, (len(t) + _ROWS_FOR_SPEED) // 2)
    t, q, dq = t[middle], q[middle], dq[middle]
    travel = np.abs(dq).T @ np.gradient(t)
    moved = np.sum(np.abs(np.diff(q, axis=0)), axis=0)
    known = (np.ptp(q, axis=0) > _MIN_TRAVEL) & (travel > 0.0)
    factors = travel[known] / moved[known]
    for unit, factor in _SPEED_UNITS.items():
        if len(factors) and np.all(np.abs(factors / factor - 1.0) < _SAME_UNIT):
            return [f"{WRONG_SPEED_UNIT} {float(median(factors)):.3g} times the derivatives of the positions and are "
                    f"not used: they are probably in {_SPEED_NAMES[unit]}; add --set log.velocity_unit={unit}"]
    return []


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
                     f"a median of {1e3 * usual_step:.4g} ms, {percent_text(100 * off)} off by more than half of it")
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
        notes.append(f"{percent_text(100 * repeats)} of the rows repeat the positions of the row before")
    return notes


def content_notes(extremes: Extremes, joints: Sequence[str], unmeasured: Sequence[str] = ()) -> list[str]:
    """Return notes on joints at rest, and on torques that are zero or constant.

    joints: names of all joints. unmeasured: names of the joints without torque, which get no note on their torque.
    """
    names = list(joints) or [str(i + 1) for i in range(len(extremes.low))]

    def those(mask: Bools) -> str:
        chosen = [name for name, yes in zip(names, mask, strict=True) if yes]
        return ("joint " if len(chosen) == 1 else "joints ") + ", ".join(chosen)

    notes = []
    still = extremes.high - extremes.low < 1e-3  # rad or m: above encoder noise, below any useful motion
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

    Degrees read as radians are an error, unless the mapping gives the unit (`said`).
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
        text += ('; positions are probably in degrees: add --set log.unit=deg, or unit = "deg" under [log]; if they '
                 f"are those of the motors, add {_MOTOR_SIDE}")
        if np.any(turning & ~far):
            some = ", ".join('"m"' if not turns else '"deg"' if wrong else '"rad"'
                             for turns, wrong in zip(turning, far, strict=True))
            text += f"; if other joints are in radians, add --set 'log.unit=[{some}]'"
    else:
        text += f", more than degrees would give; positions are probably those of the motors: add {_MOTOR_SIDE}"
    if not said and bounded:
        raise RecordingError(f"{source}: {text}; if positions are in radians, add --set log.unit=rad", where="log.unit")
    return [text]


@dataclass(frozen=True)
class Jumps:
    """Discontinuities of positions, as between runs that were joined into one file.

    Attributes:
        times: time of the last row before each jump, s.
        joint: index of the joint with the largest step at the first jump.
        size: size of that step, rad or m.
        is_single: whether no other joint jumps, as if one encoder was reset.
    """

    times: tuple[float, ...]
    joint: int
    size: float
    is_single: bool


def find_jumps(t: Array, q: Array) -> Jumps | None:
    """Return the jumps of positions q (samples, joints) at times t (samples,), or None.

    A jump is a single step far larger than its neighbours and than nearly all steps of that joint. Spikes, positions
    that repeat over several rows and motion during a gap of the time stamps are not jumps.
    """
    if len(q) < FEW:
        return None
    spans = np.diff(t)
    steps = np.abs(np.diff(q, axis=0)) / np.maximum(spans / median(spans), 1.0)[:, None]
    usual = np.array([quantile(own[own > 0], JUMP_QUANTILE) if np.any(own > 0) else 0.0 for own in steps.T])
    neighbours = np.maximum(steps[:-2], steps[2:])
    jump = (steps[1:-1] > JUMP_TIMES * np.maximum(neighbours, usual)) & (steps[1:-1] > JUMP_SIZE)
    rows = np.flatnonzero(jump.any(axis=1)) + 1
    if not len(rows):
        return None
    joint = int(np.argmax(steps[rows[0]]))
    return Jumps(tuple(float(t[row]) for row in rows), joint, float(np.ptp(q[rows[0]:rows[0] + 2, joint])),
                 int(jump.any(axis=0).sum()) == 1)


@dataclass(frozen=True)
class Hang:
    """A joint (index from 0) whose logged position is stuck in the rows from `start` to before `stop`."""

    joint: int
    start: int
    stop: int


def hanging_positions(t: Array, q: Array) -> tuple[Hang, ...]:
    """Return the intervals in which positions q (samples, joints) at times t (samples,) are stuck.

    A joint that comes to rest decelerates first; a stuck one stops or starts within one row. An interval of equal
    values counts if the speed beside it exceeds usual changes of speed and would move the joint by several counts.
    """
    if len(t) < 20:
        return ()
    step = float(median(np.diff(t)))
    width, least = max(2, round(_SPEED_WINDOW / step)), max(5, round(MIN_STUCK_SECONDS / step))
    found = []
    for j in range(q.shape[1]):
        column = q[:, j]
        runs = equal_ranges(column, least)
        if not len(runs):
            continue
        count = encoder_count(column)
        usual = _usual_change(column, runs, width)
        for start, stop in runs:
            before = _speed(column, start - width, start) if start >= width else 0.0
            after = _speed(column, stop - 1, stop - 1 + width) if stop - 1 + width < len(column) else 0.0
            fastest = max(abs(before), abs(after))
            if fastest * (stop - start) > _MISSED_COUNTS * max(count, 1e-12) and fastest > _MIN_CHANGE_RATIO * usual:
                found.append(Hang(j, int(start), int(stop)))
    return tuple(found)


def _speed(column: Array, low: int, high: int) -> float:
    """Return the mean change per row of a position (samples,) between the rows `low` and `high`."""
    return float(column[high] - column[low]) / (high - low)


def _usual_change(column: Array, runs: Ints, width: int) -> float:
    """Return the 99th percentile of the changes of a position's speed (per row) between neighbouring windows of `width`
    rows, away from the intervals `runs` in which it is constant."""
    speed = (column[width:] - column[:-width]) / width
    change = np.abs(speed[width:] - speed[:-width])
    away = np.ones(len(change), dtype=bool)
    for start, stop in runs:
        away[max(start - 2 * width - 1, 0):stop + 1] = False
    return float(quantile(change[away], 0.99)) if away.sum() > 10 else np.inf


@dataclass(frozen=True, eq=False)
class LostRows:
    """Rows that are missing in a log although its time stamps do not show it.

    Attributes:
        rows: (k,), rows before which others are missing, from 0.
        counts: (k,), number of missing rows.
        interval: usual interval between rows, s.
    """

    rows: Ints
    counts: Ints
    interval: float

    def restamped(self, t: Array) -> Array:
        """Return time stamps (samples,) with an interval for each missing row, s."""
        missing = np.zeros(len(t))
        missing[self.rows] = self.counts
        return np.asarray(t + self.interval * np.cumsum(missing), dtype=float)


def lost_rows(t: Array, q: Array) -> LostRows | None:
    """Return the rows that are missing in positions q (samples, joints) with other time stamps t (samples,); None if
    they are fewer than LOST_SHARE of all rows or at fewer than LOST_PLACES places.

    At a lost row all joints move a whole multiple of the distance between neighbouring rows, while their time stamps
    are one interval apart. The distances are compared with medians over LOST_WINDOW rows on both sides, by the joints
    that move by several encoder counts and standard deviations of their noise. An interval counts if one whole number
    of missing rows explains the motion of all joints, with a certainty that noise does not reach, and if neighbouring
    intervals are not shorter instead, as with jitter or repeated rows. Time stamps that jitter there were measured.
    """
    if len(t) < FEW:
        return None
    usual = float(median(np.diff(t)))
    steps = np.abs(np.diff(q[:_ROWS_FOR_NOISE], axis=0))
    count = np.array([quantile(own[own > 0], LOST_COUNT_QUANTILE) if np.any(own > 0) else np.inf for own in steps.T])
    noise = np.maximum(_step_noise(t[:_ROWS_FOR_NOISE], q[:_ROWS_FOR_NOISE], usual), count)
    missing, stamps = np.zeros(len(t), dtype=np.int64), t
    for _ in range(LOST_PASSES):  # stamps that are corrected show further missing rows nearby
        more = np.zeros(len(t), dtype=np.int64)
        for start in range(0, len(t), _ROWS_FOR_NOISE):
            low, stop = max(start - _LOST_BORDER, 0), start + _ROWS_FOR_NOISE
            part = slice(low, min(stop + _LOST_BORDER, len(t)))
            more[start:stop] = _missing_before(stamps[part], q[part], usual, noise)[start - low:stop - low]
        if not more.any():
            break
        missing += more
        stamps = t + usual * np.cumsum(missing)
    rows = np.flatnonzero(missing)
    is_known = len(rows) >= LOST_PLACES and missing.sum() > LOST_SHARE * len(t)
    return LostRows(rows, missing[rows], usual) if is_known else None


def _speeds_around(t: Array, q: Array) -> Array:
    """Return the median velocity (samples - 1, joints) over LOST_WINDOW intervals on both sides of each interval."""
    speed = np.diff(q, axis=0) / np.diff(t)[:, None]
    wide = np.pad(speed, ((LOST_WINDOW, LOST_WINDOW), (0, 0)), mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(wide, 2 * LOST_WINDOW + 1, axis=0)
    return np.asarray(np.partition(windows, LOST_WINDOW, axis=-1)[..., LOST_WINDOW], dtype=float)


def _step_noise(t: Array, q: Array, usual: float) -> Array:
    """Return the standard deviation (joints,) of the steps of positions about those of their median velocity."""
    rest = np.diff(q, axis=0) - _speeds_around(t, q) * np.diff(t)[:, None]
    return np.array([1.4826 * float(median(np.abs(own))) for own in rest.T])


def _missing_before(t: Array, q: Array, usual: float, noise: Array) -> Ints:
    """Return the number of rows that are missing before each row (samples,) of a part of a log."""
    if len(t) < 2:
        return np.zeros(len(t), dtype=np.int64)
    dt, step, speed = np.diff(t), np.diff(q, axis=0), _speeds_around(t, q)
    known = np.abs(speed) * usual >= LOST_COUNTS_A_ROW * noise
    weight = np.where(known, 1.0 / np.where(noise > 0, noise, 1.0) ** 2, 0.0)
    power = np.sum(speed ** 2 * weight, axis=1)
    # Time that each step takes at the usual speed, and its excess over the time stamps, in intervals.
    lasts = np.where(power > 0, np.sum(step * speed * weight, axis=1) / np.where(power > 0, power, 1.0), dt)
    excess = (lasts - dt) / usual
    missing = np.round(excess)
    around = np.convolve(excess, np.ones(5), mode="same")
    before = np.sum((step - speed * dt[:, None]) ** 2 * weight, axis=1)
    after = np.sum((step - speed * lasts[:, None]) ** 2 * weight, axis=1)
    share = np.concatenate([[1.0], lasts / dt, [1.0]])
    lost = ((missing >= 1) & (missing <= MOST_LOST) & (np.abs(excess - missing) < LOST_TOLERANCE)
            & (excess * usual * np.sqrt(power) > LOST_STANDARD_ERRORS) & (around > 0.5 * excess)
            & (after < LOST_LEFT * before) & (share[:-2] > 0.5) & (share[2:] > 0.5)
            & (np.abs(np.mod(dt / usual + 0.5, 1.0) - 0.5) < LOST_REGULAR))
    return np.concatenate([[0], np.where(lost, missing, 0.0)]).astype(np.int64)


def lost_torques(q: Array, tau: Array) -> Bools:
    """Return where the torque (samples, joints) is exactly zero because it was not measured, while the robot moves.

    A recorder may write 0 for a missing number. The torques of one row are lost if all of them are exactly zero, in
    many more rows than if the joints' zeros were independent, and than rows in which one torque is not zero. The torque
    of a single joint is lost if it is far from zero in the rows before and after, compared with its usual changes from
    row to row and its resolution, and if other small values hardly occur between such rows, as they do in currents;
    torques with few values have to be lost at LOST_PLACES places.
    """
    zero = tau == 0.0
    lost = np.zeros(tau.shape, dtype=bool)
    zero[:, np.all(zero, axis=0)] = False  # a torque that is always zero is not measured
    if len(tau) < FEW or not zero.any():
        return lost
    some = np.any(tau != 0.0, axis=0)
    moving = rows_in_motion(q)
    rows = np.arange(len(tau))
    for j in np.flatnonzero(zero.any(axis=0)):
        own = np.flatnonzero(~zero[:, j])
        usual = np.abs(np.diff(tau[own, j]))[np.diff(own) == 1]
        if not len(own) or not len(usual):
            continue
        steps = usual[usual > 0.0]
        resolution = quantile(steps, LOST_COUNT_QUANTILE) if len(steps) else np.inf
        far = LOST_TORQUE_CHANGES * max(quantile(usual, JUMP_QUANTILE), resolution)
        after = np.searchsorted(own, rows)
        inner = (after > 0) & (after < len(own)) & zero[:, j] & moving
        left, right = (np.abs(tau[own[np.clip(after - k, 0, len(own) - 1)], j]) for k in (1, 0))
        dips = inner & (np.minimum(left, right) > far)
        size = np.abs(tau[:, j])
        others = (size[1:-1] > 0.0) & (size[1:-1] < 0.5 * far) & (np.minimum(size[:-2], size[2:]) > far) & moving[1:-1]
        places = np.count_nonzero(np.diff(dips.astype(np.int8)) == 1)
        is_coarse = len(distinct(tau[own, j])) < COARSE_SHARE * len(own)
        if places >= (LOST_PLACES if is_coarse else 1) and dips.sum() > LOST_TOGETHER * others.sum():
            lost[:, j] = dips
    every = np.all(zero[:, some], axis=1) & moving
    inside = np.flatnonzero(~np.all(zero[:, some], axis=1) & moving)
    if some.sum() > 1 and len(inside):
        every &= (rows > inside[0]) & (rows < inside[-1])
        chance = float(np.prod(zero[moving][:, some].mean(axis=0)))
        but_one = np.sum(zero[:, some], axis=1) == some.sum() - 1
        if every.sum() > LOST_TOGETHER * max(chance * moving.sum(), float(np.sum(but_one & moving))):
            lost |= every[:, None] & some
    return lost


@dataclass(frozen=True)
class Again:
    """An interval of a log that repeats an earlier one: number of copied rows, and time from a row to its copy, s."""

    rows: int
    after: float


def rows_in_motion(q: Array) -> Bools:
    """Return the mask (samples,) of rows in which a joint of q (samples, joints) moves by 2 encoder counts per row."""
    moving = np.zeros(len(q), dtype=bool)
    if len(q) < 2 * _COMPARED_ROWS + 1:
        return moving
    for column in q.T:
        steps = np.abs(np.diff(column))
        steps = steps[steps > 0.0]
        if len(steps):
            travel = np.abs(column[2 * _COMPARED_ROWS:] - column[:-2 * _COMPARED_ROWS])
            least = 2 * _COMPARED_ROWS * _COUNTS_A_ROW * float(quantile(steps, 0.01))
            moving[_COMPARED_ROWS:-_COMPARED_ROWS] |= travel > least
    return moving


def held_share(q: Array, tau: Array) -> float:
    """Return the share of the rows in motion that repeat the previous row in all numbers of q and tau (samples,
    joints); 0 if too few rows are in motion."""
    if len(q) < MIN_ROWS_FOR_COPIES:
        return 0.0
    same = np.all(q[1:] == q[:-1], axis=1) & np.all(tau[1:] == tau[:-1], axis=1)
    # Repeated rows count as moving if the distinct rows around them do.
    own = np.concatenate([[True], ~same])
    moving = rows_in_motion(q[own])
    rows = np.repeat(moving, np.diff(np.append(np.flatnonzero(own), len(q))))
    return float(np.mean(same[rows[1:]])) if rows.sum() >= MIN_ROWS_FOR_COPIES else 0.0


def repeated_stretch(t: Array, q: Array, tau: Array) -> Again | None:
    """Return the rows in motion that exactly repeat earlier q and tau (samples, joints), or None; t (samples,), s."""
    if len(t) < MIN_ROWS_FOR_COPIES:
        return None
    numbers = np.ascontiguousarray(np.column_stack([q, tau])).view(np.uint64)
    factors = np.random.default_rng(0).integers(1, 2**63, numbers.shape[1], dtype=np.uint64) | np.uint64(1)
    key = (numbers * factors).sum(axis=1, dtype=np.uint64)  # integer overflow is intended: a hash of each row
    moving = np.flatnonzero(rows_in_motion(q))
    _, first, inverse = np.unique(key[moving], return_index=True, return_inverse=True)
    distance = moving - moving[first][inverse]
    distance = distance[distance >= _LEAST_APART]
    if not len(distance):
        return None
    distances, counts = np.unique(distance, return_counts=True)
    most = int(np.argmax(counts))
    later = int(distances[most])
    return (Again(int(counts[most]), float(median(t[later:] - t[:-later])))
            if counts[most] >= MIN_ROWS_FOR_COPIES else None)


def decimal_step(column: Array) -> float | None:
    """Return the decimal step (1, 2 or 5 times 10^n) to which positions (samples,) are coarsely rounded, or None."""
    values = distinct(column)
    if len(values) < 3:
        return None
    step = float(np.diff(values).min())
    exponent = np.floor(np.log10(step * (1.0 + DECIMAL_STEP_TOLERANCE)))
    lead = step / 10.0 ** exponent
    nice = min((1.0, 2.0, 5.0), key=lambda one: abs(lead - one))
    exact = nice * 10.0 ** float(exponent)
    on_grid = np.abs(values / exact - np.round(values / exact)).max() < 1e-4
    coarse = float(values[-1] - values[0]) / exact < _FINE_ROUNDING_STEPS
    return exact if abs(lead / nice - 1.0) < 1e-3 and on_grid and coarse else None
