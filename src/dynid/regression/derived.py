"""Equations derived from others: cached, with some rows only, summed over joints, weighted, or multiplied by a matrix.

Contacts add J' f to the torques of a robot with a free base. Rows of the null space of J do not contain the unknown f:
with an orthonormal N of that null space, N' Y theta = N' tau. `dynid.floating` computes the matrices. `Samples.keep`
states which of a sample's rows are used, since their number changes with the contacts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from dynid.arrays import Array, Bools, Ints
from dynid.model import LinearModel, Model
from dynid.model.term import fill_entries
from dynid.order_statistics import distinct
from dynid.recording import Samples
from dynid.regression.base import BaseParameters
from dynid.regression.equations import UNIT, Equations, Layout, Piece, Rows, TorqueEquations, piece_entries

KEPT_BYTES = 32 << 20  # bytes of cached rows: a minute of seven joints at 100 Hz
_ROWS_AT_ONCE = 1024  # samples whose dense rows are in memory at a time


def noise_model(equations: Equations) -> LinearModel | None:
    """Return the model that determines which of the equations have common noise; None for sums over joints."""
    while isinstance(equations, Derived) and not isinstance(equations, Mixed):
        equations = equations.equations
    return None if isinstance(equations, Mixed) else equations.layout.model


def same_torque(equations: Equations) -> tuple[tuple[int, int], ...]:
    """Return pairs of equations, counted from 0, that contain the same measured torque (see `FlexibleModel`)."""
    return tuple(getattr(noise_model(equations), "same_torque", ()))


@dataclass(frozen=True, eq=False)
class Derived:
    """Base class of equations derived from other equations, with the same base parameters, joints and logs."""

    equations: Equations

    @property
    def base(self) -> BaseParameters:
        return self.equations.base

    @property
    def layout(self) -> Layout:
        return self.equations.layout

    @property
    def joints(self) -> tuple[str, ...]:
        return self.equations.joints

    @property
    def logs(self) -> tuple[Samples, ...]:
        return self.equations.logs

    def pieces(self, stretches: int = 1, unit: int = UNIT) -> list[Piece]:
        return self.equations.pieces(stretches, unit)


@dataclass(frozen=True, eq=False)
class CachedEquations(Derived):
    """Equations of logs that are evaluated once, in large pieces, and then returned for pieces of any size.

    Compression, covariances and validation use the same rows. A piece of decimated or filtered rows also needs the
    samples around it, which many small pieces would evaluate several times. The rows must not be modified.
    """

    @staticmethod
    def from_equations(equations: Equations) -> Equations:
        """Return the equations with a cache if all of them fit into `KEPT_BYTES`, otherwise unchanged."""
        rows = sum(len(piece.rows) for piece in equations.pieces())
        return CachedEquations(equations) if 8 * rows * equations.layout.rows <= KEPT_BYTES else equations

    def rows(self, piece: Piece) -> Rows:
        whole = self._segments[piece.log, piece.segment]
        first = (piece.rows.start - piece.segment[0]) // piece.rows.step
        part = slice(first, first + len(piece.rows))
        known = None if whole.known is None else whole.known[:, part]
        return Rows(whole.layout, np.ascontiguousarray(whole.entries[:, part]), whole.keep[part], known)

    @cached_property
    def _segments(self) -> dict[tuple[int, tuple[int, int]], Rows]:
        """Equations of each segment of the logs, evaluated at first use."""
        return rows_of_segments(self.equations)


@dataclass(frozen=True, eq=False)
class Selected(Derived):
    """Equations of logs, of which only selected samples and joints are valid.

    Attributes:
        keep: for each log (samples, joints), mask of the rows to keep.
    """

    keep: tuple[Bools, ...]

    def rows(self, piece: Piece) -> Rows:
        found, rows = self.equations.rows(piece), piece.rows
        stay = self.keep[piece.log][rows.start:rows.stop:rows.step]
        return Rows(found.layout, found.entries, found.keep & stay, found.known)


@dataclass(frozen=True, eq=False)
class Mixed(Derived):
    """Sums of the equations of several joints: sum i has the factors matrix[i], in samples where all are valid."""

    matrix: Array

    @cached_property
    def layout(self) -> Layout:
        """Layout in which each sum of equations has the columns of all its summands."""
        plain = self.equations.layout
        return plain.with_columns([distinct(np.concatenate([plain.columns[j] for j in np.flatnonzero(row)]))
                                   for row in self.matrix])

    @cached_property
    def _mixing(self) -> Any:
        """Sparse matrix (rows, original rows) that computes the columns of the sums from the original ones."""
        from scipy.sparse import csr_array

        plain, own = self.equations.layout, self.layout
        to, take, value = [], [], []
        for i, j in np.argwhere(self.matrix):
            place = np.append(np.searchsorted(own.columns[i], plain.columns[j]), len(own.columns[i]))
            to.append(own.first[i] + place)
            take.append(np.arange(plain.joint(j).start, plain.joint(j).stop))
            value.append(np.full(len(place), self.matrix[i, j]))
        return csr_array((np.concatenate(value), (np.concatenate(to), np.concatenate(take))), (own.rows, plain.rows))

    def rows(self, piece: Piece) -> Rows:
        plain = self.equations.rows(piece)
        keep = np.repeat(np.all(plain.keep, axis=1, keepdims=True), len(self.matrix), axis=1)
        known = None if plain.known is None else self.matrix @ plain.known
        return Rows(self.layout, self._mixing @ plain.entries, keep, known)


Weight = Callable[[int, Array], Array]  # equation j and its rows [Y_j tau_j]' (columns + 1, m) -> weights (m,)


@dataclass(frozen=True, eq=False)
class Weighted(Derived):
    """Equations with a weight for each sample: weight(j, equations of joint j) returns the weights (m,)."""

    weight: Weight

    def rows(self, piece: Piece) -> Rows:
        plain = self.equations.rows(piece)
        factors = [self.weight(j, plain.joint(j)) for j in range(len(self.joints))]
        entries = np.concatenate([plain.joint(j) * factor for j, factor in enumerate(factors)])
        known = None if plain.known is None else plain.known * np.array(factors)
        return replace(plain, entries=entries, known=known)


@dataclass(frozen=True, eq=False)
class ProjectedEquations(TorqueEquations):
    """Torque equations of each sample, multiplied by its matrix in `Samples.mixing`; logs without it are unchanged."""

    @cached_property
    def plain(self) -> TorqueEquations:
        """The torque equations before they are multiplied by `Samples.mixing`."""
        return TorqueEquations(self.model, self.logs, self.base)

    @cached_property
    def layout(self) -> Layout:
        return Layout.from_model(self.model, self.base).with_columns([np.arange(len(self.base))] * self.model.dof)

    def entries(self, samples: Samples, rows: slice) -> Array:
        plain, n, b = self.plain.layout, self.model.dof, len(self.base)
        given = self.plain.entries(samples, rows)
        known = n if self.base.known else 0
        out = np.zeros((self.layout.rows + known, given.shape[1]))
        for start in range(0, given.shape[1], _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            dense = np.zeros((n, b + 2, given[:, part].shape[1]))
            for j in range(n):
                own = given[plain.joint(j), part]
                dense[j, plain.columns[j]], dense[j, b] = own[:-1], own[-1]
                if known:
                    dense[j, b + 1] = given[plain.rows + j, part]
            if samples.mixing is not None:
                dense = (samples.mixing[rows][part] @ dense.transpose(2, 0, 1)).transpose(1, 2, 0)
            for j in range(n):
                out[self.layout.joint(j), part] = dense[j, :b + 1]
                if known:
                    out[self.layout.rows + j, part] = dense[j, b + 1]
        return out


def torque_equations(model: LinearModel, logs: Sequence[Samples], base: BaseParameters | None = None
                     ) -> TorqueEquations:
    """Return the torque equations of several logs; those of a robot with contacts are multiplied by the matrices
    `Samples.mixing`, which eliminate the contact forces."""
    kind = ProjectedEquations if any(log.mixing is not None for log in logs) else TorqueEquations
    return kind.from_model(model, logs, base)


Segment = tuple[int, int]


@dataclass(frozen=True, eq=False)
class KeptColumns:
    """Cached regressor columns of a model: its layout, and the columns (layout.rows, m) for each segment of a log.

    They are cached as long as the samples exist. The choice of friction, the fit and its checks use the same samples
    with models that differ in a few terms, so that only the columns of new terms are evaluated.
    """

    model: Model
    layout: Layout
    entries: Mapping[Segment, Array]


# By samples: columns of the model with the most columns.
_KEPT: WeakKeyDictionary[Samples, KeptColumns] = WeakKeyDictionary()


def rows_of_segments(equations: Equations) -> dict[tuple[int, Segment], Rows]:
    """Return the equations of every segment of the logs, by (index of the log, (start, stop) of the segment)."""
    pieces: dict[tuple[int, Segment], list[Piece]] = {}
    for piece in equations.pieces():
        if len(piece.rows):
            pieces.setdefault((piece.log, piece.segment), []).append(piece)
    # Only torque columns without known values and memory can be cached.
    if type(equations) is not TorqueEquations or equations.base.known or not isinstance(equations.model, Model) \
            or equations.model.channels:
        return {key: _joined([equations.rows(piece) for piece in some]) for key, some in pieces.items()}
    model = equations.model
    found = {key: _with_kept(equations, model, some) for key, some in pieces.items()}
    for log, samples in enumerate(equations.logs):
        kept = _KEPT.get(samples)
        if kept is None or kept.model.robot is not model.robot or kept.layout.rows < equations.layout.rows:
            _KEPT[samples] = KeptColumns(model, equations.layout, {segment: rows.entries for (k, segment), rows
                                                                   in found.items() if k == log})
    return found


def _joined(parts: Sequence[Rows]) -> Rows:
    """Return the equations of consecutive pieces of a segment as one piece."""
    known = [part.known for part in parts if part.known is not None]
    return Rows(parts[0].layout, np.concatenate([part.entries for part in parts], axis=1),
                np.concatenate([part.keep for part in parts]), np.concatenate(known, axis=1) if known else None)


def _with_kept(equations: TorqueEquations, model: Model, pieces: Sequence[Piece]) -> Rows:
    """Return the equations of one segment; columns of terms that an earlier model had too are taken from the cache."""
    samples, segment, layout = equations.logs[pieces[0].log], pieces[0].segment, equations.layout
    kept = _KEPT.get(samples)
    before = None if kept is None or kept.model.robot is not model.robot else kept.entries.get(segment)
    if kept is None or before is None:
        return _joined([equations.rows(piece) for piece in pieces])
    source = _sources(layout, model, kept)
    fresh = np.flatnonzero(source < 0)
    row = np.full(layout.rows + 1, -1)
    row[fresh] = np.arange(len(fresh))
    place = row[layout.place]  # the last entry, for places of -1, is -1
    parts = [(term, np.ascontiguousarray(place[:, columns])) for term, columns in model.parts]

    def evaluated(rows: slice) -> Array:
        out = np.empty((len(fresh), rows.stop - rows.start))
        for term, own in parts:
            if own.max(initial=-1) >= 0:
                fill_entries(term, model.robot, samples.q[rows], samples.dq[rows], samples.ddq[rows], own, out)
        return out

    entries = before[source]
    if len(fresh):
        entries[fresh] = np.concatenate([piece_entries(samples, piece, evaluated) for piece in pieces], axis=1)
    keep = [samples.keep[piece.rows.start:piece.rows.stop:piece.rows.step] for piece in pieces]
    return Rows(layout, entries, np.concatenate(keep))


def _sources(layout: Layout, model: Model, kept: KeptColumns) -> Ints:
    """Return, for each row of a layout, its row among the cached columns; -1 for columns that are not cached."""
    source = np.full(layout.rows, -1)
    for j in range(model.dof):
        source[layout.joint(j).stop - 1] = kept.layout.joint(j).stop - 1  # the torque
    for term, columns in model.parts:
        same = next((own for other, own in kept.model.parts if _is_same(term, other)), None)
        if same is not None:
            mine, theirs = layout.place[:, columns], kept.layout.place[:, same]
            shared = (mine >= 0) & (theirs >= 0)
            source[mine[shared]] = theirs[shared]
    return source


def _is_same(one: object, other: object) -> bool:
    """Return whether two terms are the same object, or equal by value."""
    try:
        return one is other or (type(one) is type(other) and bool(one == other))
    except ValueError:  # comparison of arrays
        return False
