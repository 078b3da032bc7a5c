"""Excerpts: a bounded part of a stream's raw samples, to choose a model from and to restart an estimate with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dynid.arrays import Array
from dynid.recording import Recording
from dynid.recording.clean import ABSURD, ABSURD_TIME

STRETCH_SECONDS = 5.0  # s: length of an interval, long compared with the border effects of a low-pass filter
MOST_SAMPLES = 60_000  # samples in an excerpt, as many as the choice of the cut-off uses; 7 MB for seven joints
GAP_SECONDS = 1.0  # s between intervals that are not consecutive, in a recording of the excerpt
CLOCK_JUMP = 1.0  # s: a clock that goes back by more was reset; by less, one sample is out of order


@dataclass
class SampleSegment:
    """Consecutive raw samples.

    Attributes:
        number: index of the interval in the stream.
        blocks: time stamps (m,), positions, torques (m, dof).
    """

    number: int
    blocks: list[tuple[Array, Array, Array]] = field(default_factory=list)

    def joined(self) -> tuple[Array, Array, Array]:
        """Return all samples of the interval as one block."""
        if len(self.blocks) > 1:
            t, q, tau = (np.concatenate(parts) for parts in zip(*self.blocks, strict=True))
            self.blocks = [(t, q, tau)]
        return self.blocks[0]

    @property
    def seconds(self) -> float:
        return float(self.blocks[-1][0][-1] - self.blocks[0][0][0])

    def __len__(self) -> int:
        return sum(len(t) for t, _, _ in self.blocks)


class Excerpt:
    """Intervals of a stream, evenly spread over time: all intervals at first, then one in two, one in four and so on.

    Attributes:
        seconds: length of the stream so far, s, including dropped intervals.
        is_whole: whether no interval was dropped.
    """

    def __init__(self, joints: Sequence[str], most: int = MOST_SAMPLES) -> None:
        self.joints, self.most, self.seconds = tuple(joints), most, 0.0
        self._stretches: list[SampleSegment] = []
        self._every, self._next, self._last = 1, 0, -np.inf

    @property
    def is_whole(self) -> bool:
        return self._every == 1

    def add(self, t: Array, q: Array, tau: Array) -> None:
        """Store the valid samples of raw time stamps t (m,), s, positions q (m, dof), or (m, 2 dof) with commanded
        positions, and torques tau (m, dof)."""
        good = ((np.abs(t) <= ABSURD_TIME) & (np.abs(q) <= ABSURD["position"]).all(axis=1)
                & (np.abs(tau) <= ABSURD["torque"]).all(axis=1))
        if good.any() and t[good][0] < self._last - CLOCK_JUMP:
            self._last, self._next = -np.inf, self._next + 1  # the clock was reset: the next interval is separate
            self._begin()
        before = np.maximum.accumulate(np.concatenate([[self._last], np.where(good, t, -np.inf)]))[:-1]
        good &= t > before
        if not good.any():
            return
        t, q, tau = t[good], q[good], tau[good]
        if not self._stretches or (self._stretches[-1].blocks and self._stretches[-1].seconds >= STRETCH_SECONDS):
            self._begin()
        self.seconds += float(t[-1]) - (self._last if np.isfinite(self._last) else float(t[0]))
        self._last = float(t[-1])
        self._stretches[-1].blocks.append((t, q, tau))

    def _begin(self) -> None:
        """Begin a new interval. One interval in `_every` is kept; if there are too many intervals, every second one is
        dropped."""
        if self._stretches and (not self._stretches[-1].blocks or self._stretches[-1].number % self._every):
            self._stretches.pop()
        if sum(len(one) for one in self._stretches) > self.most:
            self._every *= 2
            self._stretches = [one for one in self._stretches if one.number % self._every == 0]
        self._stretches.append(SampleSegment(self._next))
        self._next += 1

    def begin_at(self, stamp: float) -> None:
        """Drop all samples before a time stamp (s), such as those before a change of the robot."""
        kept: list[SampleSegment] = []
        for one in reversed([one for one in self._stretches if one.blocks]):
            t, q, tau = one.joined()
            late = t >= stamp
            if late.any():
                kept.insert(0, replace(one, blocks=[(t[late], q[late], tau[late])]))
            if not late.all():
                break
        self._stretches, self._every = kept, 1
        self.seconds = max(self._last - stamp, 0.0)

    def blocks(self) -> Iterator[tuple[Array, ...]]:
        """Yield the intervals in order: time stamps (m,), positions, torques (m, dof), and references if given."""
        dof = len(self.joints)
        for t, q, tau in (one.joined() for one in self._stretches if one.blocks):
            yield (t, q, tau) if q.shape[1] == dof else (t, q[:, :dof], tau, q[:, dof:])

    def recording(self) -> Recording:
        """Return the excerpt as one log; intervals that are not consecutive are `GAP_SECONDS` apart."""
        parts, shift, last = list[Array](), 0.0, None
        for one in self._stretches:
            if one.blocks:
                t = one.joined()[0]
                if last is not None and one.number != last.number + 1:
                    shift = float(parts[-1][-1]) + GAP_SECONDS - float(t[0])
                parts.append(t + shift)
                last = one
        _, q, tau, *more = (np.concatenate(signals) for signals in zip(*self.blocks(), strict=True))
        return Recording(np.concatenate(parts), q, tau, reference=more[0] if more else None, joints=self.joints,
                         source="the stream")
