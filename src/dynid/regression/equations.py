"""Equations: the rows of a linear regression, evaluated in pieces of a log, with their valid samples.

Rows of any kind (measured, decimated, summed over joints, weighted, with instruments) are `Equations` for `fold`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from threading import Lock
from typing import Protocol, Self
from weakref import WeakKeyDictionary

import numpy as np

from dynid.arrays import Array, Bools, Ints, like
from dynid.errors import ModelError
from dynid.model import LinearModel, complete
from dynid.model.term import MotionSegment
from dynid.recording import Recording, Samples
from dynid.recording.decimate import decimate_piece, reach
from dynid.regression.base import BaseParameters, base_parameters
from dynid.regression.regression import Span

_FOUND_STATES: WeakKeyDictionary[Samples, WeakKeyDictionary[LinearModel, Array]] = WeakKeyDictionary()
_COMPUTING = Lock()
UNIT = 16384  # full-rate rows per piece of work; fixed, so that results do not depend on the number of threads


@dataclass(frozen=True)
class Piece:
    """Samples range(start, stop, step) of one log, within one segment without a gap, and within one of the intervals of
    time (`stretch`) into which the log is divided."""

    log: int
    segment: tuple[int, int]
    rows: range
    stretch: int = 0

    def parts(self, size: int) -> list[Piece]:
        """Return the samples of a piece divided into pieces of at most `size` samples."""
        return [replace(self, rows=self.rows[k:k + size]) for k in range(0, len(self.rows), size)]


@dataclass(frozen=True, eq=False)
class Layout:
    """Arrangement of regressor columns and torques in `Rows.entries`: for each joint its columns, then its torque.

    Attributes:
        model, base: the model, and its base parameters.
        columns: base parameters of each joint.
        first: row of each joint's first column.
        place: row of each entry (dof, parameters), -1 for none, in the form of `Model.fill`.
        rows: total number of rows.
    """

    model: LinearModel
    base: BaseParameters
    columns: tuple[Ints, ...]
    first: tuple[int, ...]
    place: Ints
    rows: int

    @staticmethod
    def from_model(model: LinearModel, base: BaseParameters) -> Layout:
        structure = complete(model).structure
        columns = tuple(np.flatnonzero(structure[j, base.independent]) for j in range(model.dof))
        place, (first, rows) = np.full((model.dof, len(model.parameters)), -1, dtype=np.int64), _first(columns)
        for j, own in enumerate(columns):
            place[j, base.independent[own]] = np.arange(first[j], first[j] + len(own))
        return Layout(model, base, columns, first, place, rows)

    def with_columns(self, columns: Sequence[Ints]) -> Layout:
        """Return a layout with other base parameters for each joint, whose columns are not evaluated from the model."""
        first, rows = _first(columns)
        return replace(self, columns=tuple(columns), first=first, rows=rows, place=np.full_like(self.place, -1))

    def joint(self, j: int) -> slice:
        """Return the rows of joint j in `Rows.entries`: its regressor columns and then its torque."""
        return slice(self.first[j], self.first[j] + len(self.columns[j]) + 1)

    def entries(self, samples: Samples, rows: slice) -> Array:
        """Return regressor columns and torques of samples at full rate (self.rows, samples), contiguous in time."""
        q, dq, ddq = samples.q[rows], samples.dq[rows], samples.ddq[rows]
        out = np.empty((self.rows, len(q)))
        memory = memory_states(self.model, samples, rows)
        complete(self.model).fill(q, dq, ddq, self.place, out, *(() if memory is None else (memory,)))
        for j in range(self.model.dof):
            out[self.joint(j).stop - 1] = samples.tau[rows, j]
        return out


def _first(columns: Sequence[Ints]) -> tuple[tuple[int, ...], int]:
    """Return the first row of each joint in a layout, and the number of rows; columns: base parameters by joint."""
    ends = np.cumsum([len(own) + 1 for own in columns])
    return (0, *(int(end) for end in ends[:-1])), int(ends[-1])


@dataclass(frozen=True, eq=False)
class Rows:
    """Regressor columns and torques of all joints in one piece of a log, each contiguous in time.

    Attributes:
        layout: position of the entries.
        entries: columns and torques (layout.rows, m), without the torque of known parameters.
        keep: valid rows (m, dof).
        known: the subtracted torque of known parameters (dof, m), or None.
    """

    layout: Layout
    entries: Array
    keep: Bools
    known: Array | None = None

    @staticmethod
    def from_entries(layout: Layout, entries: Array, keep: Bools) -> Rows:
        """Return the equations from their columns and torques (layout.rows, m). If these are followed by the torques
        (dof, m) of known parameters, the latter are subtracted."""
        entries, known = entries[:layout.rows], entries[layout.rows:]
        for j, torque in enumerate(known):
            entries[layout.joint(j).stop - 1] -= torque
        return Rows(layout, entries, keep, known if len(known) else None)

    def joint(self, j: int) -> Array:
        """Return regressor columns and torque [Y_j tau_j]' (columns + 1, m) of joint j."""
        return self.entries[self.layout.joint(j)]


class Equations(Protocol):
    """Protocol of the equations of a regression. `joints` names the equations of a sample, `logs` are the data."""

    @property
    def base(self) -> BaseParameters: ...

    @property
    def layout(self) -> Layout: ...

    @property
    def joints(self) -> tuple[str, ...]: ...

    @property
    def logs(self) -> tuple[Samples, ...]: ...

    def pieces(self, stretches: int = 1, unit: int = UNIT) -> list[Piece]:
        """Return all samples in pieces of `unit` samples at full rate; each log is cut into `stretches` intervals."""
        ...

    def rows(self, piece: Piece) -> Rows: ...


def unmeasured_joints(logs: Sequence[Samples | Recording]) -> list[int]:
    """Return the joints, counted from 0, whose torque was not measured in any log."""
    return [j for j, name in enumerate(logs[0].joints) if all(name in log.unmeasured for log in logs)] if logs else []


@dataclass(frozen=True, eq=False)
class TorqueEquations:
    """Torque equations tau = Y(q, dq, ddq) beta of logs, one per joint and sample, decimated as the samples specify."""

    model: LinearModel
    logs: tuple[Samples, ...]
    base: BaseParameters

    @classmethod
    def from_model(cls, model: LinearModel, samples: Samples | Sequence[Samples],
                   base: BaseParameters | None = None) -> Self:
        """Return the torque equations of logs; base: by default the parameters that measured torques determine."""
        logs = (samples,) if isinstance(samples, Samples) else tuple(samples)
        for log in logs:
            if log.dof != model.dof:
                raise ModelError(f"{log.source} has {log.dof} joints, the model has {model.dof}", code="joint-count")
        if base is None:
            base = base_parameters(model, unmeasured=unmeasured_joints(logs))
        return cls(model, logs, base)

    @classmethod
    def from_layout(cls, layout: Layout, model: LinearModel, logs: tuple[Samples, ...]) -> Self:
        """Return the torque equations of logs with the layout of other equations, without a new search for its columns.
        model: a model with the same parameters, which may have another gravity."""
        equations = cls(model, logs, layout.base)
        vars(equations)["layout"] = replace(layout, model=model)
        return equations

    @cached_property
    def layout(self) -> Layout:
        return Layout.from_model(self.model, self.base)

    @cached_property
    def joints(self) -> tuple[str, ...]:
        named = next((log.joints for log in self.logs if log.joints), ())
        return named or complete(self.model).joint_names

    def pieces(self, stretches: int = 1, unit: int = UNIT) -> list[Piece]:
        return [piece for k, log in enumerate(self.logs) for piece in log_pieces(log, k, stretches, unit)]

    def rows(self, piece: Piece) -> Rows:
        samples, rows = self.logs[piece.log], piece.rows
        keep = samples.keep[rows.start:rows.stop:rows.step]
        entries = piece_entries(samples, piece, lambda full: self.entries(samples, full))
        return Rows.from_entries(self.layout, entries, keep)

    def entries(self, samples: Samples, rows: slice) -> Array:
        """Return regressor columns and torques of samples at full rate (layout.rows, samples), followed by the torques
        of known parameters (dof, samples) if there are any."""
        entries = self.layout.entries(samples, rows)
        if not self.base.known:
            return entries
        known = known_torque(self.model, self.base, samples.q[rows], samples.dq[rows], samples.ddq[rows],
                             memory_states(self.model, samples, rows))
        return np.concatenate([entries, known.T])


def piece_entries(samples: Samples, piece: Piece, entries: Callable[[slice], Array]) -> Array:
    """Return signals (k, m) at the samples of a piece, decimated as its log specifies. entries: function that returns
    these signals (k, rows) for any rows at full rate."""
    rows = piece.rows
    if samples.decimation is None:
        return entries(slice(rows.start, rows.stop))
    margin = reach(samples.decimation)
    low, high = max(rows[0] - margin, piece.segment[0]), min(rows[-1] + margin + 1, piece.segment[1])
    thin = decimate_piece(entries(slice(low, high)).T, samples.decimation, np.array(rows), low, piece.segment)
    return np.ascontiguousarray(thin.T)


def known_torque(model: LinearModel, base: BaseParameters, q: Array, dq: Array, ddq: Array,
                 memory: Array | None = None) -> Array:
    """Return the torque (samples, dof) of known parameters; memory (samples, channels): states of terms, or None."""
    def filled(place: Ints, rows: int) -> tuple[Array]:
        out = np.empty((rows, len(q)))
        complete(model).fill(q, dq, ddq, place, out, *(() if memory is None else (memory,)))
        return (out,)

    return known_sums(model, base, filled)[0].T


def known_sums(model: LinearModel, base: BaseParameters, filled: Callable[[Ints, int], tuple[Array, ...]]
               ) -> tuple[Array, ...]:
    """Return sums (dof, samples) of regressor columns times the values of known parameters, one per array of `filled`.

    filled: function that returns arrays of entries (rows, samples), such as torques or momentum and force. Its
    arguments are the row of each entry (dof, parameters), -1 for none, and the number of rows.
    """
    places, values = np.array([base.parameters.index(name) for name in base.known]), np.array([*base.known.values()])
    joints, columns = np.nonzero(complete(model).structure[:, places])
    place = np.full((model.dof, len(base.parameters)), -1, dtype=np.int64)
    place[joints, places[columns]] = np.arange(len(joints))
    weights = np.zeros((model.dof, len(joints)))
    weights[joints, np.arange(len(joints))] = values[columns]
    return tuple(weights @ one for one in filled(place, len(joints)))


def log_pieces(samples: Samples, log: int = 0, stretches: int = 1, unit: int = UNIT,
               step: int | None = None) -> list[Piece]:
    """Return all rows of a log, cut at the borders of its segments and of its intervals of time.

    Intervals have equal numbers of samples at which some joint moves, so that a long rest leaves none of them empty.
    `step` is the decimation, by default that of the samples.
    """
    if step is None:
        step = samples.decimated_by
    size = max(1, unit // step)
    cuts = [0, *inner_cuts(samples, stretches), len(samples)]
    found = []
    for start, stop in samples.segments:
        grid = range(int(start), int(stop), step)
        # The first row of the grid at or after each cut.
        at = [max(-(-(cut - grid.start) // step), 0) for cut in cuts]
        for k in range(stretches):
            found += Piece(log, (int(start), int(stop)), grid[at[k]:at[k + 1]], k).parts(size)
    return found


def inner_cuts(samples: Samples, stretches: int) -> list[int]:
    """Return the first sample of each interval of a log except the first, see `log_pieces`."""
    used = np.flatnonzero(samples.keep.any(axis=1)) if stretches > 1 else np.arange(0)
    return [int(used[len(used) * k // stretches]) if len(used) else 0 for k in range(1, stretches)]


def piece_span(equations: Equations, piece: Piece) -> Span:
    """Return the time interval of a log that a piece covers."""
    samples = equations.logs[piece.log]
    return Span(samples.source, float(samples.t[piece.rows[0]]), float(samples.t[piece.rows[-1]]), piece.log)


def memory_states(model: LinearModel, samples: Samples, part: slice) -> Array | None:
    """Return the states (samples, channels) of the model's terms with memory; None for a model without memory."""
    whole = complete(model)
    if not whole.channels:
        return None
    with _COMPUTING:
        own = _FOUND_STATES.setdefault(samples, WeakKeyDictionary())
        if model not in own:
            found = like(samples.q, (len(samples), whole.channels))
            found[:] = 0.0
            for start, stop in samples.segments:
                rows = slice(int(start), int(stop))
                warm = None if samples.temperature is None else samples.temperature[rows]
                found[rows] = whole.memory(MotionSegment(samples.t[rows], samples.q[rows], samples.dq[rows],
                                                         samples.ddq[rows], warm))
            own[model] = found
        return own[model][part]


def torques_along(model: LinearModel, theta: Array, samples: Samples, part: slice = slice(None)) -> Array:
    """Return the torques (samples, dof) of a model with parameters theta along a log, with its terms with memory."""
    memory = memory_states(model, samples, part)
    return complete(model).inverse_dynamics(theta, samples.q[part], samples.dq[part], samples.ddq[part],
                                            **({} if memory is None else {"memory": memory}))
