"""Cache of a model's columns on logs in memory, which lives as long as the samples.

The choice of friction, the fit and its checks use the same samples with models that differ in a few terms. Only the
columns of new terms are evaluated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from dynid.arrays import Array, Ints
from dynid.model import Model
from dynid.model.term import fill_entries
from dynid.recording import Samples
from dynid.regression.equations import Equations, Layout, Piece, Rows, TorqueEquations, piece_entries

Segment = tuple[int, int]


@dataclass(frozen=True, eq=False)
class KeptColumns:
    """A model, the layout of its columns, and their entries (layout.rows, m) for each segment of a log."""

    model: Model
    layout: Layout
    entries: Mapping[Segment, Array]


# By samples: columns of the model with the most columns.
_KEPT: WeakKeyDictionary[Samples, KeptColumns] = WeakKeyDictionary()


def rows_of_segments(equations: Equations) -> dict[tuple[int, Segment], Rows]:
    """Return the rows of each segment of each log, by the indices of log and segment."""
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
    """Return consecutive pieces of rows as one piece."""
    known = [part.known for part in parts if part.known is not None]
    return Rows(parts[0].layout, np.concatenate([part.entries for part in parts], axis=1),
                np.concatenate([part.keep for part in parts]), np.concatenate(known, axis=1) if known else None)


def _with_kept(equations: TorqueEquations, model: Model, pieces: Sequence[Piece]) -> Rows:
    """Return the rows of a segment, with cached columns of terms of an earlier model."""
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
    """Return the row among the cached entries of each row of a layout, -1 for columns that are not cached."""
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
    """Whether two terms are the same, or equal if they are compared by value."""
    try:
        return one is other or (type(one) is type(other) and bool(one == other))
    except ValueError:  # comparison of arrays
        return False
