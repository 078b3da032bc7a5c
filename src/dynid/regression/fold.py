"""The fold: any amount of data becomes one small triangular factor a joint, and factors add up.

For joint j all that least squares can ever learn is the triangular factor of [Y_j tau_j]. Factors of pieces are
stacked and made triangular again, so files, chunks, threads and machines are all the same operation, and memory
does not grow with the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dgeqrf

from dynid.dynamics.threads import pool, thread_count
from dynid.errors import ModelError, NotPossibleError, RecordingError
from dynid.files import write_whole
from dynid.model import LinearModel, Model
from dynid.recording import Samples
from dynid.recording.decimate import decimate_piece, reach
from dynid.regression.base import BaseParameters, base_parameters
from dynid.robot.inertia import Array

Ints = NDArray[np.int64]
Progress = Callable[[int], None]  # called with the number of rows done

CHUNK = 1024  # rows of one Householder step: the block of the widest joint stays in the second-level cache
UNIT = 16384  # rows of one piece of work; fixed, so that results do not depend on the number of threads


def triangular(matrix: Array) -> Array:
    """R (columns, columns) of a matrix's QR with a diagonal that is not negative, rows of zeros where it is short."""
    width = matrix.shape[1]
    tall = np.zeros((max(len(matrix), width), width), order="F")
    tall[:len(matrix)] = matrix
    packed, _, _, info = dgeqrf(tall, lwork=64 * width, overwrite_a=1)
    if info != 0:
        raise NotPossibleError("the triangular factor of the data could not be computed")
    r = np.triu(packed[:width])
    return r * np.where(np.diag(r) < 0, -1.0, 1.0)[:, None]


@dataclass(frozen=True, eq=False)
class Factor:
    """All that one joint's rows say. columns (k,): which base parameters they can see. r (k+1, k+1): triangular factor
    of [Y_j tau_j]. rows: how many went in."""

    columns: Ints
    r: Array
    rows: int

    def __add__(self, other: Factor) -> Factor:
        return Factor(self.columns, triangular(np.vstack([self.r, other.r])), self.rows + other.rows)

    @property
    def power(self) -> float:
        """Sum of squared torques."""
        return float(np.sum(self.r[:, -1] ** 2))

    def misfit(self, beta: Array) -> float:
        """Sum of squared residuals for base values beta (base,)."""
        return float(np.sum((self.r[:, -1] - self.r[:, :-1] @ beta[self.columns]) ** 2))


@dataclass(frozen=True, eq=False)
class Stacked:
    """All joints as one weighted least-squares problem: minimise |r beta - rho|^2 + rest.

    r (base, base) upper triangular, rho (base,), rest: what no beta can explain, rows: equations that went in.
    """

    r: Array
    rho: Array
    rest: float
    rows: int

    def misfit(self, beta: Array) -> float:
        """Weighted sum of squared residuals for base values beta."""
        return float(np.sum((self.rho - self.r @ beta) ** 2) + self.rest)


@dataclass(frozen=True, eq=False)
class Regression:
    """The fold of some data on a model's base parameters. Regressions of the same model add up.

    factors: one a joint. blocks: the same, for each of several stretches of time, whose sum is `factors`; leaving one
    out is adding up the others. joints: names for messages. sources: the logs.
    """

    base: BaseParameters
    factors: tuple[Factor, ...]
    blocks: tuple[tuple[Factor, ...], ...]
    joints: tuple[str, ...]
    sources: tuple[str, ...] = ()

    def __add__(self, other: Regression) -> Regression:
        if self.base.expressions != other.base.expressions or self.joints != other.joints:
            raise ModelError("these regressions are of different models and cannot be added")
        if len(self.blocks) == len(other.blocks):
            blocks = tuple(tuple(a + b for a, b in zip(x, y, strict=True))
                           for x, y in zip(self.blocks, other.blocks, strict=True))
        else:
            blocks = self.blocks + other.blocks
        factors = tuple(a + b for a, b in zip(self.factors, other.factors, strict=True))
        return replace(self, factors=factors, blocks=blocks, sources=self.sources + other.sources)

    @property
    def dof(self) -> int:
        return len(self.factors)

    @property
    def rows(self) -> tuple[int, ...]:
        """Equations of each joint."""
        return tuple(factor.rows for factor in self.factors)

    def stack(self, weights: Sequence[float] | Array | None = None) -> Stacked:
        """All joints in one triangular factor, joint j's equations multiplied by weights[j]."""
        b = len(self.base)
        weights = np.ones(self.dof) if weights is None else np.asarray(weights, dtype=float)
        tall = np.zeros((sum(len(f.r) for f in self.factors), b + 1))
        at = 0
        for weight, factor in zip(weights, self.factors, strict=True):
            rows = slice(at, at + len(factor.r))
            tall[rows, factor.columns] = weight * factor.r[:, :-1]
            tall[rows, b] = weight * factor.r[:, -1]
            at = rows.stop
        r = triangular(tall)
        return Stacked(r[:b, :b], r[:b, b], float(r[b, b] ** 2), sum(self.rows))

    def misfits(self, beta: Array) -> Array:
        """Sum of squared residuals of each joint (dof,)."""
        return np.array([factor.misfit(beta) for factor in self.factors])

    def relative_errors(self, beta: Array) -> Array:
        """100 |tau - tau_hat| / |tau| of each joint (dof,), percent; 0 for a joint without torque."""
        power = np.array([factor.power for factor in self.factors])
        return 100.0 * np.sqrt(np.where(power > 0, self.misfits(beta) / np.where(power > 0, power, 1.0), 0.0))

    def relative_error(self, beta: Array) -> float:
        """100 |tau - tau_hat| / |tau| over all joints, percent."""
        power = sum(factor.power for factor in self.factors)
        return float(100.0 * np.sqrt(self.misfits(beta).sum() / power)) if power > 0 else 0.0

    def without(self, block: int) -> Regression:
        """All data but one block."""
        kept = [factors for k, factors in enumerate(self.blocks) if k != block]
        if not kept:
            raise ModelError("a regression of one block has nothing left without it")
        return replace(self, factors=_sum(kept), blocks=tuple(kept))

    def only(self, block: int) -> Regression:
        """The data of one block."""
        return replace(self, factors=self.blocks[block], blocks=(self.blocks[block],))

    def save(self, path: str | Path) -> None:
        """To an .npz file, whole or not at all."""
        arrays: dict[str, Array | Ints] = {"independent": self.base.independent, "matrix": self.base.matrix,
                                           "rows": np.array([[f.rows for f in block] for block in self.blocks])}
        for j in range(self.dof):
            arrays[f"columns{j}"] = self.factors[j].columns
            arrays[f"r{j}"] = np.array([block[j].r for block in self.blocks])
        arrays["names"] = np.array(self.base.parameters.names)
        arrays["joints"], arrays["sources"] = np.array(self.joints), np.array(self.sources)
        with write_whole(Path(path), "wb") as file:
            np.savez_compressed(file, **arrays)

    @staticmethod
    def load(path: str | Path, model: LinearModel) -> Regression:
        """From an .npz file, for the model it was folded with."""
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            names, joints = tuple(map(str, arrays["names"])), tuple(map(str, arrays["joints"]))
            base = BaseParameters(model.parameters, arrays["independent"], arrays["matrix"])
            blocks = tuple(tuple(Factor(arrays[f"columns{j}"], arrays[f"r{j}"][k], int(rows[j]))
                                 for j in range(len(joints))) for k, rows in enumerate(arrays["rows"]))
        except (OSError, KeyError, ValueError, EOFError):
            raise RecordingError(f"{path} is not a saved regression") from None
        if names != model.parameters.names:
            raise ModelError(f"{path} was folded with another model: it has {len(names)} parameters, "
                             f"this one {len(model.parameters)}")
        return Regression(base, _sum(blocks), blocks, joints, tuple(map(str, arrays["sources"])))


def _sum(blocks: Sequence[tuple[Factor, ...]]) -> tuple[Factor, ...]:
    return reduce(lambda a, b: tuple(x + y for x, y in zip(a, b, strict=True)), blocks)


@dataclass(frozen=True, eq=False)
class Layout:
    """Where the wanted entries of the regressor go: joint after joint, its columns and then its torque, a row each."""

    model: LinearModel
    base: BaseParameters
    columns: tuple[Ints, ...]  # of each joint, among the base parameters
    first: tuple[int, ...]  # row of each joint's first column
    place: Ints  # (dof, parameters), as Model.fill wants it
    rows: int

    @staticmethod
    def of(model: LinearModel, base: BaseParameters) -> Layout:
        structure = getattr(model, "structure", None)
        if structure is None:
            structure = np.ones((model.dof, len(model.parameters)), dtype=bool)
        columns = tuple(np.flatnonzero(structure[j, base.independent]) for j in range(model.dof))
        place = np.full((model.dof, len(model.parameters)), -1, dtype=np.int64)
        first, at = [], 0
        for j, own in enumerate(columns):
            first.append(at)
            place[j, base.independent[own]] = np.arange(at, at + len(own))
            at += len(own) + 1
        return Layout(model, base, columns, tuple(first), place, at)

    def joint(self, j: int) -> slice:
        """Rows of joint j: its columns and its torque."""
        return slice(self.first[j], self.first[j] + len(self.columns[j]) + 1)

    def entries(self, samples: Samples, rows: slice) -> Array:
        """(self.rows, samples): columns and torques at full rate, each contiguous in time."""
        q, dq, ddq = samples.q[rows], samples.dq[rows], samples.ddq[rows]
        out = np.empty((self.rows, len(q)))
        if isinstance(self.model, Model):
            self.model.fill(q, dq, ddq, self.place, out)
        else:
            y = self.model.regressor(q, dq, ddq)
            for j, c in np.argwhere(self.place >= 0):
                out[self.place[j, c]] = y[:, j, c]
        for j in range(self.model.dof):
            out[self.joint(j).stop - 1] = samples.tau[rows, j]
        return out


@dataclass(frozen=True)
class Piece:
    """Some of the rows that regression uses: range(start, stop, step) of the samples, all in one segment and block."""

    segment: tuple[int, int]
    rows: range
    block: int


def pieces(samples: Samples, blocks: int = 1, unit: int = UNIT) -> list[Piece]:
    """All rows that regression uses, cut at the borders of segments and of `blocks` equal stretches of time."""
    step = 1 if samples.decimation is None else samples.decimation.total
    cuts = [len(samples) * k // blocks for k in range(blocks + 1)]
    found = []
    for start, stop in samples.segments:
        grid = range(int(start), int(stop), step)
        for block in range(blocks):
            inside = grid[-(-max(cuts[block] - grid.start, 0) // step):max(-(-(cuts[block + 1] - grid.start) // step), 0)]
            found += [Piece((int(start), int(stop)), inside[k:k + unit // step], block)
                      for k in range(0, len(inside), unit // step)]
    return found


def piece_entries(layout: Layout, samples: Samples, piece: Piece) -> tuple[Array, NDArray[np.bool_]]:
    """Entries (layout.rows, m) of a piece as regression uses them, decimated if asked, and which to keep (m, dof)."""
    rows = piece.rows
    if samples.decimation is None:
        part = slice(rows.start, rows.stop)
        return layout.entries(samples, part), samples.keep[part]
    margin = reach(samples.decimation)
    low, high = max(rows[0] - margin, piece.segment[0]), min(rows[-1] + margin + 1, piece.segment[1])
    full = layout.entries(samples, slice(low, high))
    thin = decimate_piece(full.T, samples.decimation, np.array(rows), low, piece.segment)
    return np.ascontiguousarray(thin.T), samples.keep[rows.start:rows.stop:rows.step]


def _fold_piece(layout: Layout, samples: Samples, piece: Piece) -> tuple[Factor, ...]:
    widths = [len(columns) + 1 for columns in layout.columns]
    stacks = [np.zeros((width + CHUNK, width), order="F") for width in widths]
    counts = [0] * layout.model.dof
    rows = piece.rows
    at_once = CHUNK if samples.decimation is None else len(rows)
    for lo in range(0, len(rows), at_once):
        entries, keep = piece_entries(layout, samples, replace(piece, rows=rows[lo:lo + at_once]))
        for k in range(0, len(keep), CHUNK):
            _add_rows(layout, entries[:, k:k + CHUNK], keep[k:k + CHUNK], stacks, counts)
    return tuple(Factor(layout.columns[j], _signed(stacks[j][:widths[j]]), counts[j]) for j in range(layout.model.dof))


def _signed(r: Array) -> Array:
    return np.ascontiguousarray(r * np.where(np.diag(r) < 0, -1.0, 1.0)[:, None])


def _add_rows(layout: Layout, entries: Array, keep: NDArray[np.bool_], stacks: list[Array], counts: list[int]) -> None:
    """One Householder step a joint: [R; rows] becomes R."""
    for j, stack in enumerate(stacks):
        block, width = entries[layout.joint(j)], stack.shape[1]
        if not keep[:, j].all():
            block = block[:, keep[:, j]]
        count = block.shape[1]
        stack[width:width + count] = block.T
        stack[width + count:] = 0.0
        packed, _, _, _ = dgeqrf(stack, lwork=64 * width, overwrite_a=1)
        stack[:width] = np.triu(packed[:width])
        counts[j] += count


def fold(model: LinearModel, samples: Samples | Iterable[Samples], *, base: BaseParameters | None = None,
         blocks: int = 10, threads: int | None = None, progress: Progress | None = None) -> Regression:
    """Fold samples, or a stream of them, into triangular factors on the model's base parameters.

    base: which base parameters (default: `base_parameters(model)`). blocks: stretches of time kept apart for
    cross-validation. The result does not depend on the number of threads.
    """
    base = base_parameters(model) if base is None else base
    layout = Layout.of(model, base)
    total: list[tuple[Factor, ...] | None] = [None] * max(1, blocks)
    sources: list[str] = []
    joints: tuple[str, ...] = ()
    for part in [samples] if isinstance(samples, Samples) else samples:
        if part.dof != model.dof:
            raise ModelError(f"{part.source} has {part.dof} joints, the model has {model.dof}")
        sources.append(part.source)
        joints = joints or part.joints or tuple(f"joint{j + 1}" for j in range(part.dof))
        work = pieces(part, len(total))
        for piece, factors in zip(work, _fold_pieces(layout, part, work, threads, progress), strict=True):
            known = total[piece.block]
            total[piece.block] = factors if known is None else _sum([known, factors])
    filled = tuple(block for block in total if block is not None)
    if not filled:
        raise NotPossibleError("there is not a single sample to learn from")
    return Regression(base, _sum(filled), filled, joints, tuple(dict.fromkeys(sources)))


def _fold_pieces(layout: Layout, samples: Samples, work: list[Piece], threads: int | None,
                 progress: Progress | None) -> Iterator[tuple[Factor, ...]]:
    """Factors of every piece, in order; worked on side by side."""
    def one(piece: Piece) -> tuple[Factor, ...]:
        factors = _fold_piece(layout, samples, piece)
        if progress is not None:
            progress(piece.rows.stop - piece.rows.start)
        return factors

    count = min(thread_count(threads), len(work))
    return map(one, work) if count <= 1 else pool(count).map(one, work)
