"""Rows of a polynomial kernel from a stream: momentum, force and torque, no acceleration, with a delay that is known.

Positions go to a uniform grid by their stamps and through the motion's kernel, which gives velocities; momentum and
force then go through the rows' kernel and its derivative, beside the torques: those of `FilteredEquations`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dynid.arrays import Array, Bools
from dynid.model import LinearModel, complete
from dynid.model.momentum import MomentumForm
from dynid.online.causal import STOPS, GridMotion
from dynid.recording.preparation.row_filter import RowFilter
from dynid.regression import BaseParameters
from dynid.regression.equations import Layout

MomentumEntries = Callable[[Array, Array, Array], tuple[Array, Array]]  # q, dq, tau (m, dof) -> (layout.rows, m) each


def momentum_entries(model: LinearModel, form: MomentumForm, now: Callable[[], tuple[BaseParameters, Layout]]
                     ) -> MomentumEntries:
    """A function that gives momenta and forces of a model with torques below, on what a stream looks for now."""
    def entries(q: Array, dq: Array, tau: Array) -> tuple[Array, Array]:
        base, layout = now()
        momentum, force = np.empty((layout.rows, len(q))), np.empty((layout.rows, len(q)))
        form.fill(q, dq, layout.place, momentum, force)
        known = _known(model, form, base, q, dq)
        for j in range(model.dof):
            row = layout.joint(j).stop - 1
            momentum[row], force[row] = -known[0][j], tau[:, j] - known[1][j]
        return momentum, force

    return entries


def _known(model: LinearModel, form: MomentumForm, base: BaseParameters, q: Array, dq: Array) -> Array:
    """Momentum and force (2, dof, m) of parameters whose values are known."""
    if not base.known:
        return np.zeros((2, model.dof, len(q)))
    theta, seen = np.zeros(len(base.parameters)), complete(model).structure
    theta[[base.parameters.index(name) for name in base.known]] = list(base.known.values())
    joints, columns = np.nonzero(seen & (theta != 0.0))
    place = np.full(seen.shape, -1, dtype=np.int64)
    place[joints, columns] = np.arange(len(joints))
    both = np.zeros((2, len(joints), len(q)))
    form.fill(q, dq, place, both[0], both[1])
    out = np.zeros((2, model.dof, len(q)))
    for k, (joint, column) in enumerate(zip(joints, columns, strict=True)):
        out[:, joint] += theta[column] * both[:, k]
    return out


class KernelRows:
    """Rows of one run: raw samples in, rows of the regression out, `delay` seconds late.

    slow: rad/s or m/s, None for a hundredth of the top speed so far. top (dof,): that speed.
    """

    def __init__(self, entries: MomentumEntries, row_filter: RowFilter, slow: float | None, top: Array) -> None:
        self.entries, self.filter, self.slow = entries, row_filter, slow
        motion, rate = row_filter.motion, row_filter.rate
        self.delay, self.step = row_filter.delay, row_filter.step
        self._motion = GridMotion(rate, (motion.taps(rate), motion.taps(rate, 1)), round(motion.delay_s * rate), top)
        dof = len(top)
        self._momentum, self._force = np.zeros((0, 0)), np.zeros((0, 0))
        self._speeds, self._tops, self._row = np.zeros((0, dof)), np.zeros((0, dof)), 0

    def push(self, t: Array, q: Array, tau: Array) -> tuple[Array, Bools] | None:
        """Raw samples (m,), (m, dof), (m, dof) of the run, and the rows (layout.rows, n) they complete with which of
        them count (n, dof); None for none."""
        found = self._motion.push(t, q, tau)
        if found is None:
            return None
        moved, tops = found
        momentum, force = (x.T for x in self.entries(*moved))
        first = not len(self._momentum)
        self._momentum = momentum if first else np.vstack([self._momentum, momentum])
        self._force = force if first else np.vstack([self._force, force])
        self._speeds, self._tops = np.vstack([self._speeds, moved[1]]), np.vstack([self._tops, tops])
        return self._rows()

    def _rows(self) -> tuple[Array, Bools] | None:
        """One row in `step` whose window is all there."""
        rates, taps, step = self.filter.rates[::-1], self.filter.taps[::-1], self.step
        reach, first = len(taps) - 1, -(-self._row // step) * step - self._row
        starts = np.arange(first, len(self._force) - reach, step)
        if not len(starts):
            return None
        found = np.array([rates @ self._momentum[k:k + reach + 1] + taps @ self._force[k:k + reach + 1]
                          for k in starts])
        speeds = np.abs(self._speeds[starts + self.filter.before])
        keep = speeds >= (STOPS * self._tops[starts + reach] if self.slow is None else self.slow)
        gone = int(starts[-1]) + 1
        self._momentum, self._force = self._momentum[gone:], self._force[gone:]
        self._speeds, self._tops, self._row = self._speeds[gone:], self._tops[gone:], self._row + gone
        return np.ascontiguousarray(found.T), keep
