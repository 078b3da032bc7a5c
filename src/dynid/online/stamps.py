"""Checks of raw samples that may be late, lost, repeated or invalid, and their division into segments for filtering."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from dynid.arrays import Array
from dynid.online.events import Events
from dynid.recording.clean import ABSURD, ABSURD_TIME

_PAUSE_LENGTH = 60.0  # s: a longer gap is a pause, and a clock that goes back by more than a second was set anew
_FROZEN_SECONDS = 0.1  # s for which a joint must repeat its position to the last digit to be looked at
_CREEP_SPEED_SHARE = 0.05  # of its top speed: a joint that stops from less may have been held by friction
# s, and steps of its encoder that it must have gone in the last such stretch
_MOVING_STRETCH_SECONDS, _MIN_COUNTS_BEFORE_FREEZE = 0.03, 4.0


def usable(t: float, q: Array, tau: Array) -> bool:
    """Return whether a sample, its stamp (s), positions and torques (dof,), consists of plausible numbers."""
    return bool(abs(t) <= ABSURD_TIME and (np.abs(q) <= ABSURD["position"]).all()
                and (np.abs(tau) <= ABSURD["torque"]).all())


class Stamps:
    """Checks raw samples one by one and stores the valid ones.

    Attributes:
        gap: longest interpolated interval, s.
        run: number of the present segment without a gap.
        t, q, tau: its samples that are not yet processed.
        last_stamp: of the last valid sample, s.
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
        self._changed = np.full(len(joints), -np.inf)  # when each joint last moved
        self._fastest = np.zeros(len(joints))  # top speed of each joint so far, rad/s or m/s
        self._stuck, self._judged = np.zeros((2, len(joints)), dtype=bool)

    def add(self, t: float, q: Array, tau: Array) -> None:
        """Add one raw sample: stamp (s), positions (dof,) or (2 dof,) with the commanded ones, torques (dof,)."""
        if not usable(t, q, tau):
            self._skip(t, "not-finite", self._what(t, q, tau))
            return
        if self._last is not None:
            step = t - self._last[0]
            if step <= 0.0 and step >= -1.0:
                code = "repeated-stamp" if step == 0.0 else "backward-stamp"
                self._skip(t, code, f"the stamp {t:.6g} s does not follow {self._last[0]:.6g} s: skipped")
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
        """Return whether a joint repeats its position exactly although it moved steadily just before: a joint that
        comes to rest decelerates."""
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
        """Return whether joint j stopped without deceleration: it moved equally far in the last two intervals before
        the stop. False at the beginning of a segment.
        """
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
