"""LiveFold: what a stream says of a load and of the robot beside it, in information form, forgetting towards a prior.

With N_j the sum of x'x over the rows of joint j, [x r] in units of `Unknowns`, and s_j their noise, what is known is

    H = 1 + sum_j N_j / s_j^2,

of which the data fade with a memory and the prior does not: a robot that stands, or moves little, falls back to what is
known of it, and nothing winds up. A change is looked for where the innovations of the last window, in units of the
deviations they were foreseen with, have a mean square above a threshold, and a new load from some moment of the window
on leaves that much less. The fold then goes on from the data since that moment alone. What no load explains, a hand
that puts a weight in or a contact, is no change of the load: such rows are left out.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dynid.arrays import Array, Bools
from dynid.errors import ModelError
from dynid.estimate.recursive.watchers import low_power
from dynid.payloads.live_unknowns import Unknowns
from dynid.regression.equations import Layout

_BLOCKS = 5  # of a window, between which a load may change
_PATIENCE = 2  # looks at which only the last block is another load, before that is believed
_FEWEST = 20.0  # rows that another load must explain: twice as many as it has numbers
_TRUSTED = 100.0  # rows that the noise of the unloaded robot's data is worth
_LASTING = 2500.0  # rows from which noise is learnt at most: later it follows
_RING = 1024  # samples of innovations that are kept
_LASTS, _WORTH = 4.0, 50  # what noise that lasts adds before it is known, and samples that this guess is worth
_SPREADS = 6.0  # of the mean squared innovation, beyond which it is no chance
_GAIN = 40.0  # squares that another load must explain: of its ten numbers alone, one window in 10^5 has more by chance


@dataclass
class Block:
    """A few samples: normal (dof, u + 1, u + 1) of their rows, rows (dof,), power (dof,) of the torques, misfit: sum of
    squared innovations in units of their deviation, noise (dof,): their part that is the torque's noise; innovations:
    each sample's (dof,), in units of their deviation, zero where a row does not count. doubtful: they are too large."""

    normal: Array
    rows: Array
    power: Array
    noise: Array
    misfit: float = 0.0
    innovations: list[Array] = field(default_factory=list)
    doubtful: bool = False

    @staticmethod
    def empty(dof: int, unknowns: int) -> Block:
        return Block(np.zeros((dof, unknowns + 1, unknowns + 1)), *np.zeros((3, dof)))


class LiveFold:
    """The fold of a stream on `unknowns`. noise (dof,): one-sigma of the rows' torques, from data without load; a joint
    without any is left out. memory: rows after which data count e times less; window: rows of the test; threshold: of
    the mean squared innovation.

    z (u,): the unknowns; inverse (u, u) of H. restarts: samples after which the data before were let go.
    """

    def __init__(self, layout: Layout, unknowns: Unknowns, noise: Array, memory: float, window: int,
                 threshold: float) -> None:
        for name, value in (("memory", memory), ("window", window), ("threshold", threshold)):
            if not value > 0:
                raise ModelError(f"{name} of a live payload must be above zero, got {value}")
        self.layout, self.unknowns, self.memory, self.threshold = layout, unknowns, memory, threshold
        self.size = max(1, round(window / _BLOCKS))
        self.dof, self.u = len(layout.columns), unknowns.scale.shape[1]
        self.silent = ~(noise > 0.0)
        self._first = np.where(self.silent, 1.0, noise) ** 2
        self.variance = self._first.copy()
        self._seen = np.zeros((2, self.dof))  # squares and rows that noise was learnt from
        self.normal = np.zeros((self.dof, self.u + 1, self.u + 1))
        self.rows, self.squares, self.power = np.zeros((3, self.dof))  # sums of weights, of their squares, of torques^2
        self.samples, self.rejected, self.restarts = 0, 0, list[int]()
        self._last: deque[Block] = deque()
        self._now = Block.empty(self.dof, self.u)
        self._former: tuple[Array, Array, Array, Array] | None = None  # the data before the last restart
        self._doubts = 0  # looks in a row at which only the last block was of another load
        self._ring: deque[Array] = deque(maxlen=_RING)
        self._parts = [unknowns.scale[columns] for columns in layout.columns]
        self._known = [unknowns.known[columns] for columns in layout.columns]
        self.z: Array = np.zeros(self.u)
        self.inverse: Array = np.eye(self.u)
        self._foreseen = (self.z, self.inverse)  # those before the present block

    # -- data ------------------------------------------------------------------------------------
    def add(self, entries: Array, keep: Bools) -> None:
        """Samples (layout.rows, m) and which of their rows count (m, dof)."""
        at, m = 0, entries.shape[1]
        while at < m:
            count = min(m - at, self.size - len(self._now.innovations))
            self._gather(entries[:, at:at + count], keep[at:at + count])
            at += count
            if len(self._now.innovations) == self.size:
                self._look()
        self.settle()

    def pause(self) -> None:
        """Samples are missing or were left out: what comes next is no longer the same block."""
        if self._now.innovations:
            self._look()

    def _gather(self, entries: Array, keep: Bools) -> None:
        """More rows for the present block, held against what was foreseen before it."""
        now, (m, _) = self._now, keep.shape
        seen = np.zeros(keep.shape)
        for j in range(self.dof):
            rows = np.flatnonzero(keep[:, j])
            if self.silent[j] or not len(rows):
                continue
            own = entries[self.layout.joint(j)][:, rows].T
            x = np.empty((len(rows), self.u + 1))
            x[:, :-1], x[:, -1] = own[:, :-1] @ self._parts[j], own[:, -1] - own[:, :-1] @ self._known[j]
            now.normal[j] += x.T @ x
            now.rows[j] += len(rows)
            now.power[j] += float(own[:, -1] @ own[:, -1])
            z, inverse = self._foreseen
            variance = self.variance[j] + np.einsum("ij,ij->i", x[:, :-1] @ inverse, x[:, :-1])
            off = (x[:, -1] - x[:, :-1] @ z) / np.sqrt(variance)
            now.misfit += float(off @ off)
            now.noise[j] += float(off @ off) * self.variance[j]
            seen[rows, j] = off
        now.innovations.extend(seen)
        self.samples += m

    def _look(self) -> None:
        """The present block ends. It becomes a part of the data unless its innovations are too large: then it waits in
        the window for a change to be seen, and is left out where none is."""
        now, self._now = self._now, Block.empty(self.dof, self.u)
        now.doubtful = now.misfit > self.threshold * float(now.rows.sum())
        if not now.doubtful:
            self._take(now, math.exp(-len(now.innovations) / self.memory))
        self._last.append(now)
        if len(self._last) > _BLOCKS:
            self._learn(self._last.popleft())
        start = self._change()
        if start is not None:
            self._restart(start)
        self.settle()
        self._foreseen = (self.z, self.inverse)

    def _take(self, block: Block, fade: float) -> None:
        """A block among the data, of which those before count `fade` times as much."""
        self.normal = fade * self.normal + block.normal
        self.rows, self.power = fade * self.rows + block.rows, fade * self.power + block.power
        self.squares = fade ** 2 * self.squares + block.rows

    def _learn(self, block: Block) -> None:
        """Noise from a block that leaves the window; from one that was left out as much as could be let in."""
        noise = np.minimum(block.noise, self.threshold * self.variance * block.rows)
        self.rejected += len(block.innovations) if block.doubtful else 0
        self._seen += [noise, block.rows]
        self._seen *= np.minimum(1.0, _LASTING / np.maximum(self._seen[1], 1.0))
        self.variance = (_TRUSTED * self._first + self._seen[0]) / (_TRUSTED + self._seen[1])
        most = np.sqrt(self.threshold)
        self._ring.extend(np.clip(one, -most, most) if block.doubtful else one for one in block.innovations)

    def _change(self) -> int | None:
        """The block of the last window from which on another load explains the innovations; None for none."""
        blocks = list(self._last)
        rows = np.cumsum([float(block.rows.sum()) for block in blocks[::-1]])[::-1]  # from each block on
        later = [k for k, count in enumerate(rows) if count >= _FEWEST]
        mean = sum(block.misfit for block in blocks) / max(rows[0], 1.0)
        inflation = self.inflation
        if not later or mean <= max(self.threshold, 1.0 + _SPREADS * math.sqrt(2.0 * inflation / rows[0])):
            return None
        before = np.cumsum([0.0, *(block.misfit for block in blocks)])
        left = [before[k] + self._left(blocks[k:]) for k in later]
        best = int(np.argmin(left))
        gain = mean * rows[0] - left[best]
        if mean <= self.threshold * max(left[best] / rows[0], 1.0) or gain < _GAIN * inflation:
            return None
        # The last block may hold both loads: the next one tells.
        self._doubts = self._doubts + 1 if later[best] == len(blocks) - 1 else 0
        return later[best] if self._doubts in (0, _PATIENCE) else None

    def _left(self, blocks: Sequence[Block]) -> float:
        """Squares that the best new load leaves of some blocks, in units of the noise."""
        known, right, power = self._weighted(np.sum([block.normal for block in blocks], axis=0))
        return power - float(right @ np.linalg.solve(known, right))

    def _restart(self, start: int) -> None:
        """The data from one block of the window on, and none before; but those before the last restart, where these
        blocks are more likely under what was known then: a push is over, or a tool is back."""
        kept, former = list(self._last)[start:], self._former
        new = np.sum([block.normal for block in kept], axis=0)
        nothing = (np.zeros_like(self.normal), *np.zeros((3, self.dof)))
        back = former is not None and self._evidence(former[0], new) > self._evidence(nothing[0], new)
        self._former = (self.normal, self.rows, self.squares, self.power)
        self.normal, self.rows, self.squares, self.power = former if former is not None and back else nothing
        for block in kept:
            self._take(block, 1.0)
        self.restarts.append(self.samples - sum(len(block.innovations) for block in kept))
        self._last.clear()
        self._doubts = 0

    def _evidence(self, before: Array, data: Array) -> float:
        """Log of the probability of data N_j (dof, u + 1, u + 1) after others, up to what all have in common."""
        found = 0.0
        for sign, normal in ((-1.0, before), (1.0, before + data)):
            known, right, power = self._weighted(normal)
            found -= 0.5 * sign * (power - float(right @ np.linalg.solve(known, right))
                                   + float(np.linalg.slogdet(known)[1]))
        return found

    # -- what it says ----------------------------------------------------------------------------
    def _weighted(self, normal: Array) -> tuple[Array, Array, float]:
        """H (u, u), right sides (u,) and squares of data N_j (dof, u + 1, u + 1), in units of the noise."""
        total = np.tensordot(1.0 / self.variance, normal, 1)
        return np.eye(self.u) + total[:-1, :-1], total[:-1, -1], float(total[-1, -1])

    def settle(self) -> None:
        """The unknowns from all that came so far."""
        known, right, _ = self._weighted(self.data()[0])
        self.inverse = np.asarray(np.linalg.inv(known), dtype=np.float64)
        self.z = np.asarray(self.inverse @ right)

    def data(self) -> tuple[Array, Array, Array, Array]:
        """All that is remembered: N_j (dof, u + 1, u + 1), sums of the rows' weights (dof,), of the squares of these
        (dof,), and of weighted squared torques (dof,)."""
        now = self._now
        return self.normal + now.normal, self.rows + now.rows, self.squares + now.rows, self.power + now.power

    @property
    def theta(self) -> Array:
        """The load's ten numbers (10,)."""
        return self.unknowns.sizes * self.z[self.unknowns.load]

    @property
    def inflation(self) -> float:
        """Power of the innovations at low frequencies over that of white ones: how much noise that lasts adds."""
        seen = len(self._ring)
        found = low_power(np.array(self._ring)) if seen > _BLOCKS else 0.0
        return max((_WORTH * _LASTS + seen * found) / (_WORTH + seen), 1.0)

    @property
    def freedom(self) -> float:
        """How many independent rows the joint with the fewest is worth."""
        _, rows, squares, _ = self.data()
        worth = rows ** 2 / np.maximum(squares, 1e-300)
        return float(worth[rows > 0].min(initial=np.inf)) / self.inflation
