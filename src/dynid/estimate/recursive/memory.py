"""Memory: what a stream said, stretch by stretch, in triangular factors that fade.

A stream is folded chunk by chunk into one factor a joint, as any data are. Some thirty blocks of time are kept apart,
neighbours being joined, those that say least first; so memory does not grow, and the deviations of an estimate can be
found by leaving blocks out (`dynid.estimate.covariance`), however long the stream and whatever was forgotten. What a
block says is the share it has of all squares of a column, the mean over the columns: ten minutes at rest become one
block, a few seconds of motion before them stay many.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dynid.arrays import Array, Bools
from dynid.regression import BaseParameters, Block, Factor, Regression, Span
from dynid.regression.equations import Layout
from dynid.regression.factor import triangular

MOST_BLOCKS = 32
SMALLEST, LARGEST = 64, 512  # samples of a chunk; a short one early, so that there are blocks soon


class _Stored(NamedTuple):
    """A block: the sum of log factors at its end, its first sample and the one behind its last, its factors, and the
    squared norm of every column."""

    log: float
    start: int
    stop: int
    factors: tuple[Factor, ...]
    squares: Array


class Memory:
    """Blocks of a stream. layout: of the rows. chunk: samples folded at a time; grows with the data unless given. last:
    factors of the last chunk. weight: how many samples of now all that is remembered is worth."""

    def __init__(self, layout: Layout, chunk: int | None = None) -> None:
        self.layout, self.chunk = layout, chunk
        self.last: tuple[Factor, ...] = ()
        self.entries = np.zeros((LARGEST, layout.rows))  # a sample is contiguous: it is written in one go
        self.keep = np.zeros((LARGEST, len(layout.columns)), dtype=bool)
        self.logs = np.zeros(LARGEST)  # of the fading when a row came
        self.filled, self.size = 0, SMALLEST if chunk is None else chunk
        self.log, self.weight = 0.0, 0.0  # sum of the logarithms of all factors so far
        self.done = 0  # samples
        self.blocks: list[_Stored] = []

    def add(self, entries: Array, keep: Bools, factors: Array | None) -> None:
        """Samples (rows, m), what counts of them (m, dof), and by what each made all before it fade (m,)."""
        at, m = 0, entries.shape[1]
        if m == 1 and factors is None:  # the way of a stream that comes sample by sample
            self.entries[self.filled], self.keep[self.filled] = entries[:, 0], keep[0]
            self.logs[self.filled] = self.log
            self.filled, self.done, self.weight = self.filled + 1, self.done + 1, self.weight + 1.0
            if self.filled == self.size:
                self.flush()
            return
        while at < m:
            count = min(m - at, self.size - self.filled)
            place = slice(self.filled, self.filled + count)
            self.entries[place] = entries[:, at:at + count].T
            self.keep[place] = keep[at:at + count]
            if factors is None:
                self.logs[place] = self.log
                self.weight += count
            else:
                self.logs[place] = self.log + np.cumsum(np.log(factors[at:at + count]))
                before, self.log = self.log, float(self.logs[place.stop - 1])
                self.weight *= math.exp(self.log - before)
                self.weight += float(np.exp(self.log - self.logs[place]).sum())
            self.filled, self.done, at = place.stop, self.done + count, at + count
            if self.filled == self.size:
                self.flush()

    def fade(self, factor: float) -> None:
        """All that is known so far counts `factor` times as much."""
        self.log += math.log(factor)
        self.weight *= factor

    def clear(self) -> None:
        """Nothing is remembered but how many samples there were."""
        self.blocks, self.filled, self.log, self.weight = [], 0, 0.0, 0.0
        self.size = SMALLEST if self.chunk is None else self.chunk

    def fade_by_age(self, log: float) -> None:
        """What is known counts exp(log) times as much for each sample that came after it, whatever was said before."""
        self.log = 0.0
        self.blocks = [block._replace(log=-log * (self.done - block.stop)) for block in self.blocks]
        self.logs[:self.filled] = 0.0
        self.weight = self.filled + sum((one.stop - one.start) * math.exp(-one.log) for one in self.blocks)

    def flush(self) -> None:
        """The rows at hand become a block."""
        if self.filled:
            self.last = self._chunk()
            self.blocks.append(self._block(self.last))
            self.filled = 0
            if len(self.blocks) > MOST_BLOCKS:
                self._join()
            if self.chunk is None:
                wanted = max(self.weight / (2 * MOST_BLOCKS), 1.0)
                self.size = min(max(2 ** int(math.log2(wanted)), SMALLEST), LARGEST)

    def _chunk(self) -> tuple[Factor, ...]:
        """Factors of the rows at hand, faded to now."""
        part, found = slice(0, self.filled), []
        entries = self.entries[part]
        if self.logs[0] != self.log:
            entries = entries * np.exp(0.5 * (self.log - self.logs[part]))[:, None]
        for j, columns in enumerate(self.layout.columns):
            kept = self.keep[part, j]
            rows = entries[:, self.layout.joint(j)] if kept.all() else entries[kept, self.layout.joint(j)]
            found.append(Factor(columns, triangular(rows), len(rows), float(rows[:, -1] @ rows[:, -1])))
        return tuple(found)

    def _squares(self, factors: tuple[Factor, ...]) -> Array:
        """Squared norm of every column (columns,), all joints together."""
        found = np.zeros(max(int(own.max(initial=0)) for own in self.layout.columns) + 1)
        for one in factors:
            found[one.columns] += np.sum(one.r[:, :-1] ** 2, axis=0)
        return found

    def _join(self) -> None:
        """The two neighbours that say least together become one block."""
        squares = np.array([math.exp(self.log - block.log) * block.squares for block in self.blocks])
        total = squares.sum(axis=0)
        says = np.mean(squares / np.where(total > 0.0, total, 1.0), axis=1)
        k = int(np.argmin(says[:-1] + says[1:]))
        one, two = self.blocks[k:k + 2]
        share = two.log - one.log
        both = tuple(a + b for a, b in zip(_faded(one.factors, share, count=True), two.factors, strict=True))
        self.blocks[k:k + 2] = [_Stored(two.log, one.start, two.stop, both,
                                        math.exp(share) * one.squares + two.squares)]

    def _block(self, factors: tuple[Factor, ...]) -> _Stored:
        """The rows at hand, which have these factors."""
        return _Stored(self.log, self.done - self.filled, self.done, factors, self._squares(factors))

    def regression(self, base: BaseParameters, joints: tuple[str, ...], sources: Sequence[str] = ("stream",)
                   ) -> Regression:
        """All that is remembered as a fold in blocks, faded to now; its rows are how many of now it is worth."""
        blocks = list(self.blocks)
        if self.filled:
            blocks.append(self._block(self._chunk()))
        if not blocks:
            empty = tuple(Factor(c, np.zeros((len(c) + 1, len(c) + 1)), 0, 0.0) for c in self.layout.columns)
            blocks = [_Stored(self.log, 0, 0, empty, np.zeros(0))]
        return Regression.of(base, [Block((Span(sources[0], float(one.start), float(one.stop)),),
                                          _faded(one.factors, self.log - one.log, count=True)) for one in blocks],
                             joints, tuple(sources))

    # -- files -----------------------------------------------------------------------------------
    def arrays(self) -> dict[str, Any]:
        """Plain arrays from which `restore` makes the same."""
        found: dict[str, Any] = {
            "memory_entries": self.entries[:self.filled], "memory_keep": self.keep[:self.filled],
            "memory_logs": self.logs[:self.filled],
            "memory_state": np.array([self.log, self.weight, self.done, self.size]),
            "memory_blocks": np.array([block[:3] for block in self.blocks]).reshape(-1, 3),
            "memory_rows": np.array([[f.rows for f in block.factors] for block in self.blocks], dtype=np.int64),
            "memory_power": np.array([[f.power for f in block.factors] for block in self.blocks])}
        for j in range(len(self.layout.columns)):
            found[f"memory_r{j}"] = np.array([block.factors[j].r for block in self.blocks])
        return found

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """The state that `arrays` gave."""
        self.filled = len(arrays["memory_entries"])
        self.entries[:self.filled] = arrays["memory_entries"]
        self.keep[:self.filled], self.logs[:self.filled] = arrays["memory_keep"], arrays["memory_logs"]
        self.log, self.weight = map(float, arrays["memory_state"][:2])
        self.done, self.size = map(int, arrays["memory_state"][2:])
        self.blocks = []
        for k, (log, start, stop) in enumerate(arrays["memory_blocks"]):
            factors = tuple(Factor(own, arrays[f"memory_r{j}"][k], int(arrays["memory_rows"][k, j]),
                                   float(arrays["memory_power"][k, j])) for j, own in enumerate(self.layout.columns))
            self.blocks.append(_Stored(float(log), int(start), int(stop), factors, self._squares(factors)))


def _faded(factors: tuple[Factor, ...], log: float, count: bool = False) -> tuple[Factor, ...]:
    """The same factors when they count exp(log) times as much; count: their rows too."""
    share = math.exp(log)
    return tuple(Factor(f.columns, math.sqrt(share) * f.r, round(share * f.rows) if count else f.rows, share * f.power)
                 for f in factors)
