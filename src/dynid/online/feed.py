"""Preparation of raw positions and torques whose time stamps may be late, lost, repeated or invalid."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError, NotPossibleError
from dynid.online.causal import CausalFilter, CausalRows, TimedRows
from dynid.online.events import Events
from dynid.online.motion_rows import RowEntries
from dynid.quantities import CUTOFF, RATE, check_quantity
from dynid.recording.clean import ABSURD, ABSURD_TIME
from dynid.recording.preparation.cutoff import position_spectrum
from dynid.recording.preparation.row_filter import KernelOptions, RowFilter
from dynid.recording.preparation.selection import least_ranges, moving_joints
from dynid.signals import at_times

# s after which rate and cut-off are determined; the second value holds if `_SAMPLES_FOR_RATE` samples have arrived
_LEARNT_AFTER, _LEARNT_EARLIEST = 10.0, 4.0
_SAMPLES_FOR_RATE, _MIN_SAMPLES_FOR_RATE = 1000, 20  # the second is the smallest number from which a rate is computed
# sample periods, or periods of the cut-off: the longest interpolated interval
_BRIDGED_SAMPLE_PERIODS, _BRIDGED_CUTOFF_PERIODS = 5.0, 0.1
_AT_ONCE = 4096  # raw samples prepared at a time
_RUN_GAP = 50.0  # sample periods: a longer interval ends the part whose spectrum is computed
_EXTRA_KERNEL_SAMPLES = 8  # samples of the shortest kernel in excess of its order
REST_SECONDS = 5.0  # s: samples kept before the first motion, in which its beginning is searched
MOTION_CHECKS = 0.25  # s between two searches for the first motion
ONSET_SHARE = 0.02  # share of a joint's range so far: deviation from the first position at which a motion begins

Take = Callable[[TimedRows], None]
_PAUSE_LENGTH = 60.0  # s: a longer gap is a pause
_FROZEN_SECONDS = 0.1  # s: shortest time of an exactly repeated position that is tested
_CREEP_SPEED_SHARE = 0.05  # share of the top speed: a slower joint may have been stopped by friction
# s, and encoder steps that the joint must have moved in the last such interval
_MOVING_STRETCH_SECONDS, _MIN_COUNTS_BEFORE_FREEZE = 0.03, 4.0


@dataclass(frozen=True)
class FeedOptions:
    """Options of the preparation of raw samples.

    Attributes:
        cutoff: cut-off of the low-pass filter, Hz; by default from the first four to ten seconds.
        rate: rate of the grid, Hz; by default from the first four to ten seconds.
        gap: longest interpolated interval, s; default: the larger of five sampling periods and a tenth of the period of
            the cut-off.
        equations: "torque", or "kernel" for rows without accelerations.
        kernel_window: length of the kernel, s; by default its gain at the cut-off is 1/2. The other kernel options are
            those of `Preparation`.
        step: decimation: one row is kept per `step` samples; default: the largest that the cut-off allows.
        stuck: whether samples are skipped while the position of a joint is stuck.
    """

    cutoff: float | None = None
    rate: float | None = None
    gap: float | None = None
    equations: str = "torque"
    kernel_window: float | None = None
    kernel_order: int = 1
    kernel_alpha: float = 3.0
    kernel_beta: float = 3.0
    kernel_delay: float | None = None
    product_order: int = 2
    suppress: tuple[float, ...] = ()
    step: int | None = None
    stuck: bool = True

    @property
    def kernel_options(self) -> KernelOptions:
        """Options of the kernel filter, without the length of its window."""
        return KernelOptions(self.kernel_order, self.kernel_alpha, self.kernel_beta, self.kernel_delay,
                             tuple(self.suppress), self.product_order)

    def __post_init__(self) -> None:
        if self.equations not in ("torque", "kernel"):
            raise ModelError(f"a stream supports equations of 'torque' or 'kernel', got '{self.equations}'; equations "
                             "of the whole robot need recorded logs", code="equations-not-supported")
        for name in ("cutoff", "rate", "gap", "kernel_window", "step"):
            value = getattr(self, name)
            if value is not None and not (np.isfinite(value) and value > 0.0):
                raise ModelError(f"{name} of a stream must be positive, got {value}", code="out-of-range")
        if self.rate is not None:
            check_quantity(RATE, self.rate, "the rate of a stream", ModelError)
        if self.cutoff is not None:
            check_quantity(CUTOFF, self.cutoff, "the cut-off of a stream", ModelError)
        if self.cutoff is not None and self.rate is not None and self.cutoff > 0.4 * self.rate:
            raise ModelError(f"the cut-off {self.cutoff:g} Hz is too high for a rate of {self.rate:g} Hz; use at most "
                             "two fifths of the rate", code="cutoff-above-rate")


class Feed:
    """Conversion of raw samples to rows of a regression with their times, which are passed to the callback `take`.

    Args:
        joints: names of the joints.
        entries: entries of the regressor along a motion.
        take: function that receives the rows.
        options: rate, cut-off and other options.
        slow: speed below which a joint's row is not used, rad/s or m/s; None for 1 % of the top speed so far.
        top: initial top speeds (dof,), rad/s or m/s.
        stands: largest share of a row's window in which its joint may be slow, see `CausalRows`.

    Attributes:
        rate, cutoff: rate of the grid and cut-off of the filter, Hz; 0 while unknown.
    """

    def __init__(self, joints: Sequence[str], entries: RowEntries, take: Take, options: FeedOptions, slow: float | None,
                 top: Array | None = None, stands: float = np.inf) -> None:
        self._stands = stands
        if options.cutoff is None and options.kernel_window is not None:
            cutoff = options.kernel_options.cutoff("kernel", options.kernel_window)
            options = replace(options, cutoff=float(f"{cutoff:.6g}"))
        self.options, self._entries, self._take, self._slow = options, entries, take, slow
        self.stamps = Stamps(joints, options.stuck)
        self.rate, self.cutoff = options.rate or 0.0, options.cutoff or 0.0
        self.stamps.gap = options.gap or 0.0
        self._rows: CausalRows | None = None
        self._run, self._top = -1, np.zeros(len(joints)) if top is None else top.copy()
        self._first: list[tuple[float, Array, Array]] = []  # raw samples that wait for the filter
        # With dry friction, rows at rest are not informative; without it they are used from the start.
        self.has_moved, self._looked = slow is not None, -np.inf

    @property
    def has_samples(self) -> bool:
        """Whether the stream has samples, used or waiting for the filter."""
        return bool(self._first) or np.isfinite(self.stamps.last_stamp)

    @property
    def delay(self) -> float:
        """Delay of the rows relative to the raw samples, s; nan while the filter is not known."""
        return float("nan") if self._rows is None else self._rows.filter.delay

    def push(self, t: Array, q: Array, tau: Array) -> int:
        """Add raw samples: stamps (m,), positions (m, dof) or (m, 2 dof) with references, torques (m, dof); return the
        number of completed rows."""
        self._first += [(float(stamp), x, y) for stamp, x, y in zip(t, q, tau, strict=True)]
        is_known = self._ready() and self.has_moved
        return self._go() if is_known or (self._moves() and (self._ready() or self._learn())) else 0

    def _moves(self) -> bool:
        """Return whether the robot has moved, and drop samples that are long before its first motion."""
        if self.has_moved or not self._first:
            return self.has_moved
        last = self._first[-1][0]
        if 0.0 <= last - self._looked < MOTION_CHECKS:
            return False
        self._looked = last
        good = [one for one in self._first if usable(*one)]
        q = np.array([one[1][:len(self._top)] for one in good])
        moving = moving_joints(q) if len(good) else np.zeros(0, dtype=bool)
        if moving.any():
            # Half of the range of a joint at rest: noise does not reach it, and a moving joint always does.
            away = np.abs(q - q[0]) > np.maximum(ONSET_SHARE * np.ptp(q, axis=0), 0.5 * least_ranges(q))
            onset = good[int(np.argmax(away[:, moving].any(axis=1)))][0]
            self.has_moved = True
        else:
            onset = last - REST_SECONDS + 1.0
        self._first = [one for one in self._first if not one[0] < onset - 1.0]
        return self.has_moved

    def finish(self) -> int:
        """Process the waiting samples at the end of the source, and return the number of completed rows. The filter is
        chosen from the available samples, even if they are few."""
        return self._go() if self._first and (self._ready() or self._learn(ended=True)) else 0

    def _go(self) -> int:
        """Convert the waiting raw samples to rows of the regression, and return the number of completed rows."""
        done, samples, self._first = 0, self._first, []
        for start in range(0, len(samples), _AT_ONCE):
            for sample in samples[start:start + _AT_ONCE]:
                run, held = self.stamps.run, (self.stamps.t, self.stamps.q, self.stamps.tau)
                self.stamps.add(*sample)
                if self.stamps.run != run and self.stamps.events.last[-1].code != "stuck-encoder":
                    done += self._prepare(run, *held)  # samples before the break are valid
            done += self._prepare(self.stamps.run, self.stamps.t, self.stamps.q, self.stamps.tau)
        return done

    def _prepare(self, run: int, t: list[float], q: list[Array], tau: list[Array]) -> int:
        """Convert the buffered samples of a segment to rows, empty the buffer, and return the number of rows."""
        if not t:
            return 0
        if self._rows is None or run != self._run:
            self._entries.restart()
            self._rows, self._run = CausalRows(self._entries, self._filter(), self._slow, self._top, self._stands), run
        found = self._rows.push(np.array(t), np.array(q), np.array(tau))
        if run == self.stamps.run:
            self.stamps.t, self.stamps.q, self.stamps.tau = [], [], []
        if found is None:
            return 0
        self._take(found)
        return len(found.t)

    def _filter(self) -> CausalFilter:
        """Return the filter of a new segment from the present options."""
        options = self.options.kernel_options
        if self.options.equations == "torque":
            found = CausalFilter.low_pass(self.cutoff, self.rate)
        else:
            window = self.options.kernel_window or max(options.window("kernel", self.cutoff),
                                                       (options.order + _EXTRA_KERNEL_SAMPLES) / self.rate)
            found = CausalFilter.momentum(RowFilter.from_options("kernel", window, options, self.rate, sys.maxsize, 1))
        return replace(found, step=self.options.step or found.step)

    def facts(self) -> dict[str, Any]:
        """Return the options in use (rate, cut-off, gap and others) as plain data."""
        now = replace(self.options, cutoff=self.cutoff or None, rate=self.rate or None, gap=self.stamps.gap or None)
        return {**asdict(now), "suppress": list(now.suppress)}

    def _ready(self) -> bool:
        return bool(self.rate and self.cutoff and self.stamps.gap)

    def _learn(self, ended: bool = False) -> bool:
        """Determine rate, gap and cut-off from the first samples, and return whether this was possible. ended: whether
        the source has ended, so that few samples must suffice."""
        given = self.options.rate is not None and self.options.cutoff is not None
        long = 0.0 if given or ended else _LEARNT_EARLIEST if len(self._first) >= _SAMPLES_FOR_RATE else _LEARNT_AFTER
        if len(self._first) < _MIN_SAMPLES_FOR_RATE or self._first[-1][0] - self._first[0][0] < long:
            return False
        good = [one for one in self._first if usable(*one)]
        t, q = np.array([one[0] for one in good]), np.array([one[1][:len(self._top)] for one in good])
        if len(t) < _MIN_SAMPLES_FOR_RATE:
            return False
        forward = np.concatenate([[True], t[1:] > np.maximum.accumulate(t)[:-1]])
        t, q = t[forward], q[forward]
        if len(t) < _MIN_SAMPLES_FOR_RATE:
            return False
        period = float(np.median(np.diff(t)))
        rate = self.options.rate or float(f"{1.0 / period:.6g}")
        if not RATE.low <= rate <= RATE.high:
            return False
        self.rate = rate
        if not self.cutoff:
            self.cutoff = self._cutoff(t, q)
        # Linear interpolation over a tenth of the cut-off's period has an error of a hundredth of the motion.
        self.stamps.gap = self.options.gap or max(_BRIDGED_SAMPLE_PERIODS * period,
                                                  _BRIDGED_CUTOFF_PERIODS / self.cutoff)
        return True

    def _cutoff(self, t: Array, q: Array) -> float:
        """Return the cut-off (Hz) from the spectrum of the first positions q (m, dof) with time stamps t (m,), s."""
        rows = _longest_run(t, _RUN_GAP / self.rate)
        t, q = t[rows], q[rows]
        at = t[0] + np.arange(int((t[-1] - t[0]) * self.rate)) / self.rate
        grid = at_times(at, t, q)
        moving = moving_joints(grid)
        try:
            if not moving.any():
                raise NotPossibleError("no joint moves")
            return position_spectrum(grid, self.rate, np.array([[0, len(grid)]]), moving, "the stream").common
        except NotPossibleError:
            return 0.05 * self.rate


def _longest_run(t: Array, gap: float) -> slice:
    """Return the rows of the longest interval of time stamps t (m,), s, without a gap above `gap` s."""
    ends = np.concatenate([[0], np.flatnonzero(np.diff(t) > gap) + 1, [len(t)]])
    longest = int(np.argmax(np.diff(ends)))
    return slice(int(ends[longest]), int(ends[longest + 1]))


def usable(t: float, q: Array, tau: Array) -> bool:
    """Return whether a time stamp t (s), positions q (dof,) and torques tau (dof,) are plausible numbers."""
    return bool(abs(t) <= ABSURD_TIME and (np.abs(q) <= ABSURD["position"]).all()
                and (np.abs(tau) <= ABSURD["torque"]).all())


class Stamps:
    """Check of raw samples one by one, and storage of the valid samples.

    Attributes:
        gap: longest interpolated interval, s.
        run: number of the present segment, that is, of an interval of samples without a gap.
        t, q, tau: samples of the present segment that are not yet processed.
        last_stamp: time stamp of the last valid sample, s.
    """

    def __init__(self, joints: Sequence[str], stuck: bool = True) -> None:
        self.joints, self.gap, self.run, self._watches = tuple(joints), 0.0, 0, stuck
        self.events, self.skipped = Events(), 0
        self.last_stamp = float("nan")
        self.t: list[float] = []
        self.q: list[Array] = []
        self.tau: list[Array] = []
        self._last: tuple[float, Array] | None = None
        self._past: deque[tuple[float, Array]] = deque()  # the last stamps and positions
        self._changed = np.full(len(joints), -np.inf)  # time when each joint last moved
        self._fastest = np.zeros(len(joints))  # top speed of each joint so far, rad/s or m/s
        self._stuck, self._judged = np.zeros((2, len(joints)), dtype=bool)

    def add(self, t: float, q: Array, tau: Array) -> None:
        """Add a raw sample: time stamp (s), positions (dof,), or (2 dof,) with commanded positions, torques (dof,)."""
        if not usable(t, q, tau):
            self._skip(t, "not-finite", self._what(t, q, tau))
            return
        if self._last is not None:
            step = t - self._last[0]
            if step <= 0.0 and step >= -1.0:
                code = "repeated-stamp" if step == 0.0 else "backward-stamp"
                self._skip(t, code, f"the time stamp {t:.6g} s does not follow {self._last[0]:.6g} s: skipped")
                return
            if step < 0.0:
                self._break(t, "clock-restarted", f"the clock went back by {-step:.4g} s: a new run begins")
            elif self.gap > 0.0 and step > self.gap:
                self._break(t, "pause" if step > _PAUSE_LENGTH else "gap",
                            f"no sample for {step:.4g} s: a new run begins, the estimate is kept")
            elif self._watches and self._is_stuck(t, q[:len(self.joints)]):
                self._last = (t, q[:len(self.joints)])
                return
        self._last, self.last_stamp = (t, q[:len(self.joints)]), t
        self._past.append(self._last)
        while self._past[0][0] < t - 2.0 * _FROZEN_SECONDS:
            self._past.popleft()
        if t > self._past[0][0] + _MOVING_STRETCH_SECONDS:
            np.maximum(self._fastest, np.abs(self._last[1] - self._past[0][1]) / (t - self._past[0][0]),
                       out=self._fastest)
        self.t.append(t)
        self.q.append(q)
        self.tau.append(tau)

    def _is_stuck(self, t: float, q: Array) -> bool:
        """Return whether a joint repeats its position exactly after steady motion, without deceleration."""
        assert self._last is not None
        same = q == self._last[1]
        self._changed = np.where(same, self._changed, t)
        self._stuck &= same
        self._judged &= same
        for j in np.flatnonzero(same & ~self._judged & (t - self._changed >= _FROZEN_SECONDS)):
            self._judged[j] = True
            if self._stopped_dead(int(j)):
                self._stuck[j] = True
                self._break(t, "stuck-encoder", f"the position of joint '{self.joints[j]}' is stuck at {q[j]:.6g}: "
                                                "ignored until it moves")
        self.skipped += bool(self._stuck.any())
        return bool(self._stuck.any())

    def _stopped_dead(self, j: int) -> bool:
        """Return whether joint j stopped without deceleration, that is, moved equally far in the last two intervals
        before the stop. False at the beginning of a segment."""
        if not self._past:
            return False
        end = float(self._changed[j])
        stamps, places = np.array([one[0] for one in self._past]), np.array([one[1][j] for one in self._past])
        at = np.interp([end - 2.0 * _MOVING_STRETCH_SECONDS, end - _MOVING_STRETCH_SECONDS, end], stamps, places)
        first, second = np.abs(np.diff(at))
        steps = np.abs(np.diff(places[stamps <= end]))
        count = float(steps[steps > 0.0].min(initial=np.inf))
        steady = second > 0.6 * first and second > max(
            _MIN_COUNTS_BEFORE_FREEZE * count, _CREEP_SPEED_SHARE * _MOVING_STRETCH_SECONDS * self._fastest[j])
        return bool(stamps[0] <= end - 2.0 * _MOVING_STRETCH_SECONDS and steady)

    def _what(self, t: float, q: Array, tau: Array) -> str:
        if not abs(t) <= ABSURD_TIME:
            return f"a time stamp of {t:.6g} s is not plausible: skipped"
        name, x = ("torque", tau) if (np.abs(q) <= ABSURD["position"]).all() else ("position", q)
        k = int(np.argmin(np.abs(x) <= ABSURD[name]))
        what = f"{x[k]:g}, which is not plausible," if np.isfinite(x[k]) else "not finite"
        commanded, joint = divmod(k, len(self.joints))
        return f"the {'commanded ' * commanded}{name} of joint '{self.joints[joint]}' is {what} at {t:.6g} s: skipped"

    def _skip(self, t: float, code: str, text: str) -> None:
        self.skipped += 1
        self.events.add(float(t) if np.isfinite(t) else -1.0, code, text)

    def _break(self, t: float, code: str, text: str) -> None:
        """Start a new segment and discard buffered samples."""
        self.events.add(t, code, text)
        self.run += 1
        self.t, self.q, self.tau = [], [], []
        self._past.clear()
