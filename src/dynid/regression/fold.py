"""The fold: any amount of data becomes one small triangular factor a joint, and factors add up.

For joint j all that least squares can ever learn is the triangular factor of [Y_j tau_j]. Factors of pieces are
stacked and made triangular again, so files, chunks, threads and machines are all the same operation, and memory
does not grow with the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg.lapack import dgeqrf
from scipy.sparse import csr_array

from dynid.arrays import Array, Bools, Ints
from dynid.errors import ModelError, NotPossibleError, RecordingError
from dynid.files import write_whole
from dynid.model import LinearModel
from dynid.recording import Samples
from dynid.recording.decimate import decimate_piece, reach
from dynid.regression.base import BaseParameters, base_parameters
from dynid.threads import side_by_side

Progress = Callable[[int], None]  # called with the number of rows done
Reweight = Callable[[int, Array], Array]  # joint j and its rows [Y_j tau_j]' (k+1, m) -> factor of each row (m,)

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

    def select(self, kept: Ints) -> Factor:
        """The same rows with only some of the base parameters, kept (ascending), which are renumbered."""
        own = np.flatnonzero(np.isin(self.columns, kept))
        r = triangular(self.r[:, np.append(own, len(self.columns))])
        return Factor(np.searchsorted(kept, self.columns[own]), r, self.rows)

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

    def select(self, kept: ArrayLike) -> Stacked:
        """The same equations with only some of the base parameters, given by their indices in order."""
        b, columns = len(self.r), np.asarray(kept, dtype=np.int64)
        tall = np.zeros((b + 1, len(columns) + 1))
        tall[:b, :-1], tall[:b, -1], tall[b, -1] = self.r[:, columns], self.rho, np.sqrt(self.rest)
        r = triangular(tall)
        return Stacked(r[:-1, :-1], r[:-1, -1], float(r[-1, -1] ** 2), self.rows)

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

    def select(self, kept: ArrayLike) -> Regression:
        """The same data on a model that lacks some base parameters: kept are the indices of those it has."""
        kept = np.unique(np.asarray(kept, dtype=np.int64))
        base = BaseParameters(self.base.parameters, self.base.independent[kept], self.base.matrix[kept])
        return replace(self, base=base, factors=tuple(factor.select(kept) for factor in self.factors),
                       blocks=tuple(tuple(factor.select(kept) for factor in block) for block in self.blocks))

    def save(self, path: str | Path) -> None:
        """To an .npz file, whole or not at all."""
        arrays: dict[str, Any] = {"independent": self.base.independent, "matrix": self.base.matrix,
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
    """Where the wanted entries of the regressor go: joint after joint, its columns and then its torque, a row each.

    A mixed layout holds sums of the joints' equations instead: `mixed` is the plain layout and the matrix
    (rows, plain rows) that makes them from its entries.
    """

    model: LinearModel
    base: BaseParameters
    columns: tuple[Ints, ...]  # of each joint, among the base parameters
    first: tuple[int, ...]  # row of each joint's first column
    place: Ints  # (dof, parameters), as Model.fill wants it
    rows: int
    mixed: tuple[Layout, csr_array] | None = None

    @staticmethod
    def of(model: LinearModel, base: BaseParameters, mix: Array | None = None) -> Layout:
        """mix (dof, dof): equation i is the sum over j of mix[i, j] times joint j's equation; None: joint i's own."""
        structure = getattr(model, "structure", None)
        if structure is None:
            structure = np.ones((model.dof, len(model.parameters)), dtype=bool)
        columns = tuple(np.flatnonzero(structure[j, base.independent]) for j in range(model.dof))
        place = np.full((model.dof, len(model.parameters)), -1, dtype=np.int64)
        first = _first(columns)
        for j, own in enumerate(columns):
            place[j, base.independent[own]] = np.arange(first[j], first[j] + len(own))
        layout = Layout(model, base, columns, first, place, first[-1] + len(columns[-1]) + 1)
        return layout if mix is None else layout.sums(mix)

    def sums(self, matrix: Array) -> Layout:
        """The layout of sums of equations; each sees what any of its summands sees."""
        dof = self.model.dof
        columns = tuple(np.unique(np.concatenate([self.columns[j] for j in np.flatnonzero(row)])) for row in matrix)
        first = _first(columns)
        to, take, value = [], [], []
        for i, j in np.argwhere(matrix):
            to.append(first[i] + np.append(np.searchsorted(columns[i], self.columns[j]), len(columns[i])))
            take.append(np.arange(self.joint(j).start, self.joint(j).stop))
            value.append(np.full(len(to[-1]), matrix[i, j]))
        rows = first[-1] + len(columns[dof - 1]) + 1
        mixing = csr_array((np.concatenate(value), (np.concatenate(to), np.concatenate(take))), (rows, self.rows))
        return replace(self, columns=columns, first=first, rows=rows, mixed=(self, mixing))

    def joint(self, j: int) -> slice:
        """Rows of joint j: its columns and its torque."""
        return slice(self.first[j], self.first[j] + len(self.columns[j]) + 1)

    def entries(self, samples: Samples, rows: slice) -> Array:
        """(self.rows, samples): columns and torques at full rate, each contiguous in time."""
        if self.mixed is not None:
            plain, mixing = self.mixed
            return mixing @ plain.entries(samples, rows)
        q, dq, ddq = samples.q[rows], samples.dq[rows], samples.ddq[rows]
        out = np.empty((self.rows, len(q)))
        fill_columns(self.model, q, dq, ddq, self.place, out)
        for j in range(self.model.dof):
            out[self.joint(j).stop - 1] = samples.tau[rows, j]
        return out

    def keep(self, keep: Bools) -> Bools:
        """Which equations to use (m, dof), when keep (m, dof) says which joints' rows are good."""
        return keep if self.mixed is None else np.repeat(np.all(keep, axis=1, keepdims=True), self.model.dof, axis=1)


def _first(columns: Sequence[Ints]) -> tuple[int, ...]:
    """Row at which each joint starts when its columns and its torque take one each."""
    return tuple(int(n) for n in np.cumsum([0] + [len(own) + 1 for own in columns[:-1]]))


def fill_columns(model: LinearModel, q: Array, dq: Array, ddq: Array, place: Ints, out: Array) -> None:
    """Chosen entries of any model's regressor into rows of out (rows, samples), by its own `fill` if it has one."""
    fill = getattr(model, "fill", None)
    if fill is not None:
        fill(q, dq, ddq, place, out)
        return
    y = model.regressor(q, dq, ddq)
    for j, c in np.argwhere(place >= 0):
        out[place[j, c]] = y[:, j, c]


@dataclass(frozen=True)
class Piece:
    """Some of the rows that regression uses: range(start, stop, step) of the samples, all in one segment and block."""

    segment: tuple[int, int]
    rows: range
    block: int


def pieces(samples: Samples, blocks: int = 1, unit: int = UNIT) -> list[Piece]:
    """All rows that regression uses, cut at the borders of segments and of `blocks` equal stretches of time."""
    step = 1 if samples.decimation is None else samples.decimation.total
    size = max(1, unit // step)
    cuts = [len(samples) * k // blocks for k in range(blocks + 1)]
    found = []
    for start, stop in samples.segments:
        grid = range(int(start), int(stop), step)
        # The first of the grid at or behind each cut.
        at = [max(-(-(cut - grid.start) // step), 0) for cut in cuts]
        for block in range(blocks):
            inside = grid[at[block]:at[block + 1]]
            found += [Piece((int(start), int(stop)), inside[k:k + size], block) for k in range(0, len(inside), size)]
    return found


def piece_entries(layout: Layout, samples: Samples, piece: Piece) -> tuple[Array, Bools]:
    """Entries (layout.rows, m) of a piece as regression uses them, decimated if asked, and which to keep (m, dof)."""
    rows = piece.rows
    if samples.decimation is None:
        part = slice(rows.start, rows.stop)
        return layout.entries(samples, part), layout.keep(samples.keep[part])
    margin = reach(samples.decimation)
    low, high = max(rows[0] - margin, piece.segment[0]), min(rows[-1] + margin + 1, piece.segment[1])
    full = layout.entries(samples, slice(low, high))
    thin = decimate_piece(full.T, samples.decimation, np.array(rows), low, piece.segment)
    return np.ascontiguousarray(thin.T), layout.keep(samples.keep[rows.start:rows.stop:rows.step])


def _fold_piece(layout: Layout, samples: Samples, piece: Piece, reweight: Reweight | None) -> tuple[Factor, ...]:
    widths = [len(columns) + 1 for columns in layout.columns]
    stacks = [np.zeros((width + CHUNK, width), order="F") for width in widths]
    counts = [0] * layout.model.dof
    rows = piece.rows
    at_once = CHUNK if samples.decimation is None else len(rows)
    for lo in range(0, len(rows), at_once):
        entries, keep = piece_entries(layout, samples, replace(piece, rows=rows[lo:lo + at_once]))
        for k in range(0, len(keep), CHUNK):
            _add_rows(layout, entries[:, k:k + CHUNK], keep[k:k + CHUNK], stacks, counts, reweight)
    return tuple(Factor(layout.columns[j], _signed(stacks[j][:widths[j]]), counts[j]) for j in range(layout.model.dof))


def _signed(r: Array) -> Array:
    return np.ascontiguousarray(r * np.where(np.diag(r) < 0, -1.0, 1.0)[:, None])


def _add_rows(layout: Layout, entries: Array, keep: Bools, stacks: list[Array], counts: list[int],
              reweight: Reweight | None) -> None:
    """One Householder step a joint: [R; rows] becomes R."""
    for j, stack in enumerate(stacks):
        block, width = entries[layout.joint(j)], stack.shape[1]
        if not keep[:, j].all():
            block = block[:, keep[:, j]]
        if reweight is not None:
            block = block * reweight(j, block)
        count = block.shape[1]
        stack[width:width + count] = block.T
        stack[width + count:] = 0.0
        packed, _, _, _ = dgeqrf(stack, lwork=64 * width, overwrite_a=1)
        stack[:width] = np.triu(packed[:width])
        counts[j] += count


def fold(model: LinearModel, samples: Samples | Iterable[Samples], *, base: BaseParameters | None = None,
         blocks: int = 10, mix: Array | None = None, reweight: Reweight | None = None, threads: int | None = None,
         progress: Progress | None = None) -> Regression:
    """Fold samples, or a stream of them, into triangular factors on the model's base parameters.

    base: which base parameters (default: `base_parameters(model)`). blocks: stretches of time kept apart for
    cross-validation. mix (dof, dof): fold sums of the joints' equations, row i the sum over j of mix[i, j] times joint
    j's, in the rows where all joints are kept. reweight(j, rows): multiplies each row of joint j, given its rows
    [Y_j tau_j]' (k+1, m). The result does not depend on the number of threads.
    """
    base = base_parameters(model) if base is None else base
    layout = Layout.of(model, base, mix)
    total: list[tuple[Factor, ...] | None] = [None] * max(1, blocks)
    sources: list[str] = []
    joints: tuple[str, ...] = ()
    for part in [samples] if isinstance(samples, Samples) else samples:
        if part.dof != model.dof:
            raise ModelError(f"{part.source} has {part.dof} joints, the model has {model.dof}")
        sources.append(part.source)
        joints = joints or part.joints or tuple(f"joint{j + 1}" for j in range(part.dof))
        work = pieces(part, len(total))
        for piece, factors in zip(work, _fold_pieces(layout, part, work, reweight, threads, progress), strict=True):
            known = total[piece.block]
            total[piece.block] = factors if known is None else _sum([known, factors])
    filled = tuple(block for block in total if block is not None)
    if not filled:
        raise NotPossibleError("there is not a single sample to learn from")
    return Regression(base, _sum(filled), filled, joints, tuple(dict.fromkeys(sources)))


def _fold_pieces(layout: Layout, samples: Samples, work: list[Piece], reweight: Reweight | None,
                 threads: int | None, progress: Progress | None) -> list[tuple[Factor, ...]]:
    """Factors of every piece, in order; worked on side by side."""
    def one(piece: Piece) -> tuple[Factor, ...]:
        factors = _fold_piece(layout, samples, piece, reweight)
        if progress is not None:
            progress(piece.rows.stop - piece.rows.start)
        return factors

    return side_by_side(one, work, threads)
