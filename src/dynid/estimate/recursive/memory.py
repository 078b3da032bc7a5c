"""Data of a stream, compressed to triangular factors of blocks of time, with forgetting.

A stream is compressed sample by sample into one factor per joint, with new ones after every chunk of samples. About
thirty blocks of time are kept; neighbours with the least information are merged, so memory does not grow and the
blocks still show standard errors (`dynid.estimate.covariance`). The information of a block is its mean share of
the squared norm of each column: ten minutes at rest become one block. A full chunk is processed in small steps, one
per sample, so that no sample takes much longer than another.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from dynid.arrays import Array, Bools
from dynid.estimate.recursive.rotation import GROUP, fold_rows, merge, stride, working_space
from dynid.regression import BaseParameters, Block, Factor, Regression, Span
from dynid.regression.equations import Layout

MOST_BLOCKS = 32
SMALLEST, LARGEST = 64, 512  # samples of a chunk; the first ones are short, so that blocks are available soon
_EQUAL_SHARES = np.zeros(0)  # weights of samples without forgetting


def factor_width(layout: Layout) -> int:
    """Return the width of a triangular factor: base parameters, further columns of the layout, and the torque."""
    return 1 + max(int(own.max(initial=len(layout.base) - 1)) + 1 for own in layout.columns)


class _Stored(NamedTuple):
    """One stored block of a stream: the sum of log forgetting factors at its end, its range of samples, its triangular
    factors, and the squared norm of every column."""

    log: float
    start: int
    stop: int
    factors: tuple[Factor, ...]
    squares: Array


class Memory:
    """Data of a stream, compressed to blocks of time, with forgetting.

    Attributes:
        layout: layout of the rows.
        chunk: samples per chunk; grows with the data unless given.
        last: factors of the last chunk.
        weight: effective number of samples.
        factor, squares, counts: data of the current chunk, see `fold_rows`, with the weights at its first sample.
    """

    def __init__(self, layout: Layout, chunk: int | None = None) -> None:
        self.layout, self.chunk = layout, chunk
        self.last: tuple[Factor, ...] = ()
        widest = max(len(own) + 1 for own in layout.columns)
        self.factor = np.zeros((layout.rows, stride(widest)))
        self.squares = np.zeros(layout.rows)
        self.counts = np.zeros((2, len(layout.columns)))
        self.filled, self.size = 0, SMALLEST if chunk is None else chunk
        self.log, self.begun, self.weight = 0.0, 0.0, 0.0  # log of all factors, now and at the chunk start
        self.done = 0  # samples
        self.blocks: list[_Stored] = []
        self._full = np.zeros_like(self.factor)  # factor of the last full chunk, zero after it became a block
        self._steps: Iterator[None] = iter(())  # pending operations on it
        self._space, self._which = working_space(GROUP)
        last = factor_width(layout) - 1
        self.columns = np.concatenate([np.append(own, last) for own in layout.columns]).astype(np.int64)
        self.starts = np.array([*layout.first, layout.rows], dtype=np.int64)

    @property
    def room(self) -> int:
        """Return the number of samples until the current chunk of the stream is full."""
        return self.size - self.filled

    def shares(self, factors: Array) -> Array:
        """Return the weights (m,) of the next samples of this chunk. factors (m,): factor by which each of these
        samples reduces the weight of all earlier ones."""
        return np.asarray(np.exp(0.5 * (self.begun - self.log - np.cumsum(np.log(factors)))))

    def took(self, count: int, factors: Array | None) -> None:
        """Count `count` samples that were added to the current chunk, with their forgetting factors (count,)."""
        if factors is None:
            self.weight += count
        else:
            logs = np.cumsum(np.log(factors))
            self.log += float(logs[-1])
            self.weight = self.weight * math.exp(logs[-1]) + float(np.exp(logs[-1] - logs).sum())
        self.filled, self.done = self.filled + count, self.done + count
        if self.filled == self.size:
            self.flush()

    def add(self, entries: Array, keep: Bools) -> None:
        """Add samples (rows, m) with their valid rows (m, dof), without forgetting."""
        at, m, x = 0, entries.shape[1], np.zeros((GROUP, self.factor.shape[1]))
        while at < m:
            count = min(m - at, self.room)
            fold_rows(self.factor, self.squares, self.counts, x, self._space, self._which, entries, keep,
                      self.starts, at, at + count, _EQUAL_SHARES)
            self.took(count, None)
            at += count
        self.settle()

    def clear(self) -> None:
        """Remove all data of the stream except the number of samples."""
        self.settle()
        self.blocks, self.log, self.weight = [], 0.0, 0.0
        self.factor[:] = 0.0
        self._begin()
        self.size = SMALLEST if self.chunk is None else self.chunk

    def _begin(self) -> None:
        """Begin a new chunk of samples with an empty triangular factor."""
        self.squares, self.counts = np.zeros_like(self.squares), np.zeros_like(self.counts)
        self.filled, self.begun = 0, self.log

    def fade_by_age(self, log: float) -> None:
        """Replace all earlier forgetting: weight data by exp(log * age); log: logarithm of the factor per sample of
        age."""
        self.settle()
        self.log = self.begun = 0.0
        self.blocks = [block._replace(log=-log * (self.done - block.stop)) for block in self.blocks]
        self.weight = self.filled + sum((block.stop - block.start) * math.exp(-block.log) for block in self.blocks)

    def flush(self) -> None:
        """Store the equations of the current chunk as a block of time."""
        if self.filled:
            self.settle()
            block = _Stored(self.log, self.done - self.filled, self.done, (), self._squares())
            self.factor, self._full = self._full, self.factor
            self._steps = self._store(block, math.exp(self.log - self.begun), self.counts)
            self._begin()
            if self.chunk is None:
                wanted = max(self.weight / (2 * MOST_BLOCKS), 1.0)
                self.size = min(max(2 ** int(math.log2(wanted)), SMALLEST), LARGEST)

    def step(self) -> None:
        """Compress a small part of the last full chunk of samples."""
        next(self._steps, None)

    def settle(self) -> None:
        """Compress all remaining parts of the last full chunk of samples."""
        for _ in self._steps:
            pass

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for copies, after all pending compression steps, which cannot be copied."""
        self.settle()
        return {**self.__dict__, "_steps": iter(())}

    def _store(self, block: _Stored, share: float, counts: Array) -> Iterator[None]:
        """Store the full chunk as a block; if there are too many, merge the two neighbours with least information."""
        found: list[Factor] = []
        for j in range(len(self.layout.columns)):
            found.append(self._factor(self._full, j, share, counts))
            self._full[self.layout.joint(j)] = 0.0
            yield
        self.last = tuple(found)
        self.blocks.append(block._replace(factors=self.last))
        if len(self.blocks) <= MOST_BLOCKS:
            return
        squares = np.array([one.squares for one in self.blocks])
        yield
        k = self._least(squares)
        one, two = self.blocks[k:k + 2]
        log, joined = two.log - one.log, list[Factor]()
        for a, b in zip(one.factors, two.factors, strict=True):
            yield
            joined.append(self._merged(_faded(a, log), b))
        self.blocks[k:k + 2] = [_Stored(two.log, one.start, two.stop, tuple(joined),
                                        math.exp(log) * one.squares + two.squares)]

    def _factor(self, factor: Array, j: int, share: float, counts: Array) -> Factor:
        """Return the triangular factor of joint j in a chunk, weighted by `share`."""
        columns = self.layout.columns[j]
        part = factor[self.layout.joint(j), :len(columns) + 1]
        return Factor(columns, math.sqrt(share) * part, int(counts[0, j]), share * float(counts[1, j]))

    def _squares(self) -> Array:
        """Return the squared norm of each column over the current chunk, with forgetting."""
        found = np.bincount(self.columns, weights=self.squares, minlength=self.columns[-1] + 1)[:-1]
        return math.exp(self.log - self.begun) * np.asarray(found, dtype=float)

    def _least(self, squares: Array) -> int:
        """Return the index of the block that has the least information together with its successor."""
        squares = np.exp([self.blocks[-1].log - block.log for block in self.blocks])[:, None] * squares
        total = squares.sum(axis=0)
        says = (squares / np.where(total > 0.0, total, 1.0)).sum(axis=1)
        return int(np.argmin(says[:-1] + says[1:]))

    def _merged(self, first: Factor, second: Factor) -> Factor:
        """Return the triangular factor of the combined data of two factors."""
        n = len(second.r)
        both = np.zeros((2, n, stride(n)))
        both[0, :, :n], both[1, :, :n] = second.r, first.r
        merge(both[0], both[1], self._space, self._which)
        return Factor(second.columns, both[0, :, :n].copy(), first.rows + second.rows, first.power + second.power)

    def regression(self, base: BaseParameters, joints: tuple[str, ...]) -> Regression:
        """Return all stored blocks as a regression, with forgetting; its number of rows is the effective one."""
        self.settle()
        blocks = list(self.blocks)
        if self.filled:
            share = math.exp(self.log - self.begun)
            factors = tuple(self._factor(self.factor, j, share, self.counts) for j in range(len(self.layout.columns)))
            blocks.append(_Stored(self.log, self.done - self.filled, self.done, factors, self._squares()))
        if not blocks:
            empty = tuple(Factor(c, np.zeros((len(c) + 1, len(c) + 1)), 0, 0.0) for c in self.layout.columns)
            blocks = [_Stored(self.log, 0, 0, empty, np.zeros(0))]
        faded = [Block((Span("stream", float(block.start), float(block.stop)),),
                       tuple(_faded(f, self.log - block.log) for f in block.factors)) for block in blocks]
        return Regression.from_blocks(base, faded, joints, ("stream",))

    # -- files -----------------------------------------------------------------------------------
    def arrays(self) -> dict[str, Any]:
        """Return the state as plain arrays for a file; `restore` reads them."""
        self.settle()
        found: dict[str, Any] = {
            "memory_factor": self.factor, "memory_squares": self.squares, "memory_counts": self.counts,
            "memory_state": np.array([self.log, self.begun, self.weight, self.done, self.filled, self.size]),
            "memory_blocks": np.array([block[:3] for block in self.blocks]).reshape(-1, 3),
            "memory_says": np.array([block.squares for block in self.blocks]),
            "memory_rows": np.array([[f.rows for f in block.factors] for block in self.blocks], dtype=np.int64),
            "memory_power": np.array([[f.power for f in block.factors] for block in self.blocks])}
        for j in range(len(self.layout.columns)):
            found[f"memory_r{j}"] = np.array([block.factors[j].r for block in self.blocks])
        return found

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """Restore the stored blocks of the stream from the arrays that `arrays` returned."""
        self.factor[:], self.squares[:] = arrays["memory_factor"], arrays["memory_squares"]
        self.counts[:] = arrays["memory_counts"]
        self.log, self.begun, self.weight = map(float, arrays["memory_state"][:3])
        self.done, self.filled, self.size = map(int, arrays["memory_state"][3:])
        self.blocks = []
        for k, (log, start, stop) in enumerate(arrays["memory_blocks"]):
            factors = tuple(Factor(own, arrays[f"memory_r{j}"][k], int(arrays["memory_rows"][k, j]),
                                   float(arrays["memory_power"][k, j])) for j, own in enumerate(self.layout.columns))
            self.blocks.append(_Stored(float(log), int(start), int(stop), factors, np.array(arrays["memory_says"][k])))


def _faded(factor: Factor, log: float) -> Factor:
    """Return a triangular factor whose information is multiplied by exp(log), for forgetting."""
    share = math.exp(log)
    return Factor(factor.columns, math.sqrt(share) * factor.r, round(share * factor.rows), share * factor.power)
