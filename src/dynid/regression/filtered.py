"""Filtered equations without accelerations: of each joint's momentum, or of the whole robot's power or energy.

`dynid.recording.preparation.row_filter` describes the equations. Power and energy would give fast motion too much
weight. Each such equation is therefore divided by the standard deviation that white torque noise causes in it. Its
variance is sum_j s_j^2 dq_j^2, filtered by the squared filter weights, with the RMS s_j of the high-frequency part of
joint j's torque.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from dynid.arrays import Array, Bools, Ints
from dynid.errors import ModelError
from dynid.kernel_store import njit
from dynid.model import LinearModel
from dynid.model.momentum import MomentumForm
from dynid.recording import Samples
from dynid.recording.preparation.row_filter import FilteredSignals
from dynid.regression.base import BaseParameters
from dynid.regression.derived import Derived, torque_equations
from dynid.regression.equations import (
    UNIT,
    Equations,
    Layout,
    Piece,
    Rows,
    TorqueEquations,
    known_sums,
    log_pieces,
    memory_states,
)
from dynid.regression.products import PRODUCT_ROWS_AT_ONCE, ProductForm, Windows

WHOLE_ROBOT = "all joints"  # name of the one equation of a robot's power or energy
_AT_ONCE = 512  # samples whose momentum and force are computed at a time, so that they stay in cache
# Share of the mean standard deviation of a row's noise: smaller ones are not assumed for rows at rest.
_MIN_NOISE_SHARE = 0.1


def prepared_equations(model: LinearModel, samples: Samples | Sequence[Samples],
                       base: BaseParameters | None = None) -> Equations:
    """Return the equations of the kind for which the samples were prepared: torque equations, or filtered ones."""
    logs = (samples,) if isinstance(samples, Samples) else tuple(samples)
    kinds = {None if log.filtered is None else log.filtered.filter.kind for log in logs}
    if len(kinds) > 1:
        raise ModelError(f"the logs were prepared for different equations; prepare {logs[0].source} and the others "
                         "with the same options", code="different-equations")
    if kinds <= {None}:
        return torque_equations(model, logs, base)
    plain = TorqueEquations.from_model(model, logs, base)
    whole = not kinds <= {"kernel", "products"}
    form = MomentumForm.from_model(model, symmetric=whole)
    if kinds == {"products"}:
        return ProductEquations(plain, form, whole, ProductForm.from_momentum(form))
    return FilteredEquations(plain, form, whole)


@dataclass(frozen=True, eq=False)
class FilteredEquations(Derived):
    """Filtered equations of logs, without accelerations.

    equations: the same data as torque equations. form: their momentum form. whole: whether rows are those of the whole
    robot instead of each joint.
    """

    equations: TorqueEquations
    form: MomentumForm
    whole: bool

    @property
    def joints(self) -> tuple[str, ...]:
        return (WHOLE_ROBOT,) if self.whole else self.equations.joints

    @cached_property
    def layout(self) -> Layout:
        return self.equations.layout.with_columns([np.arange(len(self.base))]) if self.whole else self.equations.layout

    @cached_property
    def _along(self) -> tuple[Samples, ...]:
        """The logs with filtered positions and velocities, and without accelerations, for terms with memory."""
        return tuple(replace(log, q=signals.q, dq=signals.dq, ddq=np.broadcast_to(0.0, signals.q.shape), filtered=None)
                     for log in self.logs for signals in [filtered_signals(log)])

    @cached_property
    def _noise(self) -> tuple[Array, ...]:
        """High-frequency standard deviation s_j (joints,) of each log's torques."""
        return tuple(torque_noise(log) for log in self.logs)

    def pieces(self, stretches: int = 1, unit: int = UNIT) -> list[Piece]:
        return [piece for k, log in enumerate(self.logs)
                for piece in log_pieces(log, k, stretches, unit, filtered_signals(log).filter.step)]

    def rows(self, piece: Piece) -> Rows:
        samples = self.logs[piece.log]
        filter_, rows = filtered_signals(samples).filter, np.array(piece.rows, dtype=np.int64)
        keep = kept(samples, piece.rows)
        inside = (rows - filter_.before >= piece.segment[0]) & (rows + filter_.late < piece.segment[1])
        entries = np.zeros((self.layout.rows + (len(self.joints) if self.base.known else 0), len(rows)))
        some = np.flatnonzero(inside)
        if len(some):
            self._add(piece.log, rows[some], entries[:, some[0]:some[-1] + 1])
        return Rows.from_entries(self.layout, entries, keep)

    def _add(self, log: int, rows: Ints, out: Array) -> None:
        """Add the filtered columns and torques of neighbouring samples `rows` to out (layout.rows, rows). Further rows
        of out receive the filtered torques of known parameters."""
        filter_ = filtered_signals(self.logs[log]).filter
        first, last = int(rows[0]) - filter_.before, int(rows[-1]) + filter_.late + 1
        rates, taps = filter_.rates[::-1].copy(), filter_.taps[::-1].copy()  # the oldest sample first
        for start in range(first, last, _AT_ONCE):
            part = slice(start, min(start + _AT_ONCE, last))
            changing, steady = self._whole_robot(log, part) if self.whole else self._of_joints(log, part)
            add_strided(changing, steady, rates, taps, filter_.step, start - first, out)
        if self.whole:
            out *= self._weights(log, slice(first, last), len(rows))

    def _of_joints(self, log: int, part: slice) -> tuple[Array, Array]:
        """Return momenta and forces (entries, samples) of the regressor columns of all joints, with the torques among
        the forces; each array is followed by the values of known parameters."""
        layout, signals = self.equations.layout, filtered_signals(self.logs[log])
        momentum, force = self._filled(log, part, layout.place, layout.rows, changing=True)
        for j in range(self.equations.model.dof):
            momentum[layout.joint(j).stop - 1] = 0.0
            force[layout.joint(j).stop - 1] = signals.tau[part, j]
        if not self.base.known:
            return momentum, force
        known = self._known(log, part, changing=True)
        return np.concatenate([momentum, known[0]]), np.concatenate([force, known[1]])

    def _whole_robot(self, log: int, part: slice) -> tuple[Array, Array]:
        """Return kinetic energies and powers (entries, samples) of the regressor columns, with the power of the
        torques; each array is followed by the value of known parameters."""
        plain, signals = self.equations.layout, filtered_signals(self.logs[log])
        dq = signals.dq[part].T
        momentum, force = self._filled(log, part, plain.place, plain.rows, changing=False)
        b, more = len(self.base), 1 if self.base.known else 0
        energy, power = np.zeros((2, b + 1 + more, dq.shape[1]))
        for j, own in enumerate(plain.columns):
            rows = slice(plain.first[j], plain.first[j] + len(own))
            energy[own] += 0.5 * dq[j] * momentum[rows]
            power[own] += dq[j] * force[rows]
        power[b] = np.sum(dq * signals.tau[part].T, axis=0)
        if more:
            known = self._known(log, part, changing=False)
            energy[-1], power[-1] = 0.5 * np.sum(dq * known[0], axis=0), np.sum(dq * known[1], axis=0)
        return energy, power

    def _filled(self, log: int, part: slice, place: Ints, rows: int, *, changing: bool) -> tuple[Array, Array]:
        """Return momentum and force (rows, samples) of regressor columns; place (dof, parameters): rows, or -1."""
        signals = filtered_signals(self.logs[log])
        memory = memory_states(self.equations.model, self._along[log], part)
        q, dq = np.ascontiguousarray(signals.q[part]), np.ascontiguousarray(signals.dq[part])
        momentum, force = np.empty((rows, len(q))), np.empty((rows, len(q)))
        self.form.fill(q, dq, place, momentum, force, memory, changing=changing)
        return momentum, force

    def _known(self, log: int, part: slice, *, changing: bool) -> tuple[Array, ...]:
        """Return momentum and force (dof, samples) of the parameters with known values."""
        return known_sums(self.equations.model, self.base,
                          lambda place, rows: self._filled(log, part, place, rows, changing=changing))

    def _weights(self, log: int, part: slice, count: int) -> Array:
        """Return the inverse noise standard deviation (rows,) of filtered equations, relative to mean speed."""
        signals, noise = filtered_signals(self.logs[log]), self._noise[log]
        filter_ = signals.filter
        squares = (signals.dq[part] ** 2 @ noise ** 2)[None]
        found = np.zeros((1, count))
        taps = filter_.taps[::-1] ** 2
        add_strided(squares, squares, np.zeros_like(taps), taps, filter_.step, 0, found)
        mean = float(np.mean(signals.dq ** 2, axis=0) @ noise ** 2) * float(taps.sum())
        return np.asarray(1.0 / np.sqrt(np.maximum(found[0] / max(mean, 1e-300), _MIN_NOISE_SHARE ** 2)))


@dataclass(frozen=True, eq=False)
class ProductEquations(FilteredEquations):
    """Filtered equations computed from products of signals instead of momenta, see `dynid.regression.products`."""

    products: ProductForm

    def _add(self, log: int, rows: Ints, out: Array) -> None:
        signals, layout = filtered_signals(self.logs[log]), self.layout
        filter_ = signals.filter
        for some in np.array_split(np.arange(len(rows)), max(1, len(rows) // PRODUCT_ROWS_AT_ONCE)):
            own = rows[some]
            part = slice(int(own[0]) - filter_.before, int(own[-1]) + filter_.late + 1)
            windows = Windows.from_motion(signals.q[part], signals.dq[part], filter_.products, filter_.step,
                                          memory_states(self.equations.model, self._along[log], part))
            entries = self.products.filled(windows, layout.place, layout.rows)
            for j in range(self.equations.model.dof):
                entries[layout.joint(j).stop - 1] = windows.through(signals.tau[part, j][None], filter_.products.smooth)
            if self.base.known:
                known = known_sums(self.equations.model, self.base, partial(self._filled_products, windows))
                entries = np.concatenate([entries, known[0]])
            out[:, some] += entries

    def _filled_products(self, windows: Windows, place: Ints, count: int) -> tuple[Array]:
        """Return the filtered regressor columns (count, rows) in a tuple, as `known_sums` requires."""
        return (self.products.filled(windows, place, count),)


def filtered_signals(samples: Samples) -> FilteredSignals:
    """Return the filtered signals of samples; raise an error if the samples were prepared for torque equations."""
    if samples.filtered is None:
        raise ModelError(f"{samples.source} was prepared for torque equations; prepare it with equations = 'kernel', "
                         "'power' or 'energy'")
    return samples.filtered


def torque_noise(samples: Samples) -> Array:
    """Return the high-frequency standard deviation (joints,) of the torques, relative to the largest of them."""
    signals = filtered_signals(samples)
    kernel, rate = signals.filter.motion, signals.filter.rate
    fast = signals.tau - kernel.applied(signals.tau, rate, samples.segments)
    found = np.array([np.sqrt(np.mean(fast[signals.whole[:, j], j] ** 2)) if signals.whole[:, j].any() else 0.0
                      for j in range(samples.dof)])
    top = float(found.max(initial=0.0))
    return np.maximum(found / top, 1e-3) if top > 0.0 else np.ones(samples.dof)


def kept(samples: Samples, rows: range) -> Bools:
    """Return the mask (rows, equations) of valid filtered equations: the sample is valid, and its window has no gap."""
    signals = filtered_signals(samples)
    filter_ = signals.filter
    if not len(rows):
        return np.zeros((0, samples.dof if filter_.is_of_joints else 1), dtype=bool)
    low, high = max(rows[0] - filter_.before, 0), min(rows[-1] + filter_.late + 1, len(samples))
    whole = signals.whole[low:high]
    own = samples.keep[rows.start:rows.stop:rows.step]
    if not filter_.is_of_joints:
        whole, own = np.asarray(whole.all(axis=1))[:, None], np.asarray(own.any(axis=1))[:, None]
    broken = np.concatenate([np.zeros((1, whole.shape[1]), dtype=np.int64), np.cumsum(~whole, axis=0)])
    first, last = np.array(rows) - filter_.before - low, np.array(rows) + filter_.late + 1 - low
    inside = (first >= 0) & (last <= high - low)
    breaks = broken[np.clip(last, 0, high - low)] - broken[np.clip(first, 0, high - low)]
    # At the border of a segment, rows of a window are incomplete, because the motion's kernel ends earlier.
    return np.asarray(own & inside[:, None] & (breaks == 0))


@njit(nogil=True, cache=True, error_model="numpy", fastmath=True)
def add_strided(changing: Array, steady: Array, rates: Array, taps: Array, step: int, first: int, out: Array) -> None:
    """Add filtered signals to out (signals, rows): at row k the sum over lags i of rates[i] changing[k * step + i] +
    taps[i] steady[k * step + i]. `changing` and `steady` (signals, samples) begin at sample `first`."""
    lags, last = len(taps), first + steady.shape[1]
    low, high = max(0, (first - lags) // step + 1), min(out.shape[1], (last - 1) // step + 1)
    for signal in range(out.shape[0]):
        for row in range(low, high):
            start = row * step - first
            begin, end = max(0, -start), min(lags, last - row * step)
            # Slices, because indices that may be negative prevent vectorisation by the compiler.
            x, y = changing[signal, start + begin:start + end], steady[signal, start + begin:start + end]
            v, w, total = rates[begin:end], taps[begin:end], 0.0
            for i in range(end - begin):
                total += v[i] * x[i] + w[i] * y[i]
            out[signal, row] += total
