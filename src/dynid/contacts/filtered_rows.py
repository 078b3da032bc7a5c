"""FilteredRows: raw positions and torques in, filtered columns of a model and filtered torques out, each with its time.

    momentum   sum g' P + sum g F = sum g tau: what a momentum observer integrates, over a window, without its own state
    inverse    torques of the inverse model and those measured, both through one low-pass

P and F are momentum and force (`MomentumForm`), g a kernel of `RowFilter`. Both are the ways that `Online.feed` takes,
with its stamps, gaps and delays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from dynid.arrays import Array, Bools
from dynid.errors import ModelError
from dynid.model import LinearModel, complete
from dynid.model.momentum import MomentumForm
from dynid.online.feed import Feed, FeedOptions
from dynid.online.kernel_rows import momentum_entries
from dynid.quantities import RATE, WINDOW, check_quantity
from dynid.regression import BaseParameters
from dynid.regression.equations import Layout, known_torque

Way = Literal["momentum", "inverse"]
WAYS: tuple[Way, ...] = ("momentum", "inverse")

_LAGS = 9  # samples that the shortest window holds
_GAP = 5.0  # periods of the samples that are bridged
_INVERSE = 0.6  # windows a period of the cut-off: as smooth as the momentum observer, and three times as late


@dataclass(frozen=True)
class FilterOptions:
    """way: see above. window: s, of the kernel. rate: of the samples, Hz. speeds (dof,): rad/s or m/s below which a
    joint is slow."""

    way: Way
    window: float
    rate: float
    speeds: tuple[float, ...]

    def __post_init__(self) -> None:
        if self.way not in WAYS:
            raise ModelError(f"forces from outside are found by way 'momentum' or 'inverse', got '{self.way}'")
        check_quantity(WINDOW, self.window, "the window of an observer", ModelError)
        check_quantity(RATE, self.rate, "the rate of the samples", ModelError)

    @property
    def used_window(self) -> float:
        """s of the window, longer where it would hold too few samples."""
        return max(self.window, _LAGS / self.rate)

    def feeding(self) -> FeedOptions:
        """The same as options of a feed. A joint that stops dead may be held by somebody: it is not left out."""
        if self.way == "momentum":
            return FeedOptions(rate=self.rate, gap=_GAP / self.rate, equations="kernel",
                               kernel_window=self.used_window, step=1, stuck=False)
        cutoff = min(1.0 / (_INVERSE * self.used_window), 0.4 * self.rate)
        return FeedOptions(cutoff=cutoff, rate=self.rate, gap=_GAP / self.rate, step=1, stuck=False)


class Rows(NamedTuple):
    """Filtered rows. t (m,): s. q, dq, tau (m, dof): position, speed and torque. columns (m, dof, base): of the model.
    slow (m, dof): share of the window in which a joint was slow, where dry friction can be anything."""

    t: Array
    q: Array
    dq: Array
    tau: Array
    columns: Array
    slow: Array


class FilteredRows:
    """Rows of a model on base parameters, sample by sample."""

    def __init__(self, model: LinearModel, base: BaseParameters, options: FilterOptions) -> None:
        self.base, self.model, self.layout = base, complete(model), Layout.of(model, base)
        self._own, self._slow, self._done = model, np.array(options.speeds), list[Rows]()
        self._torque_rows = np.array([self.layout.joint(j).stop - 1 for j in range(model.dof)])
        # The clock goes along as one more column of positions: every row then has its time, whatever was filtered.
        names = (*self.model.joint_names, "clock")
        momentum = self._momentum() if options.way == "momentum" else None
        self._feed = Feed(names, self._inverse, self._take, options.feeding(), 0.0, momentum)

    @property
    def delay(self) -> float:
        """Seconds after its own time that a row is known; nan before the first."""
        return self._feed.delay

    @property
    def events(self) -> tuple[str, ...]:
        """What was wrong with the samples."""
        return tuple(one.text for one in self._feed.stamps.events.last)

    def push(self, t: Array, q: Array, tau: Array) -> Rows:
        """Raw samples (m,), (m, dof), (m, dof), and the rows that they complete."""
        clock = t[:, None]
        self._feed.push(t, np.hstack([q, clock]), np.hstack([tau, np.zeros_like(clock)]))
        found, self._done = self._done, []
        if len(found) == 1:
            return found[0]
        n = self.model.dof
        none = np.zeros((0, n))
        empty = Rows(np.zeros(0), none, none, none, np.zeros((0, n, len(self.base))), none)
        return Rows(*(np.concatenate(parts) for parts in zip(*(found or [empty]), strict=True)))

    def _momentum(self) -> Callable[[Array, Array, Array], tuple[Array, Array]]:
        own = momentum_entries(self._own, MomentumForm.of(self._own), lambda: (self.base, self.layout))

        def entries(q: Array, dq: Array, tau: Array) -> tuple[Array, Array]:
            n = self.model.dof
            moved = [np.ascontiguousarray(x[:, :n]) for x in (q, dq, tau)]
            momentum, force = own(*moved)
            along = self._along(q, moved[1])
            return np.vstack([momentum, np.zeros_like(along)]), np.vstack([force, along])

        return entries

    def _inverse(self, q: Array, dq: Array, ddq: Array, tau: Array) -> Array:
        n = self.model.dof
        at, speed, rate = (np.ascontiguousarray(x[:, :n]) for x in (q, dq, ddq))
        rows = np.empty((self.layout.rows, len(q)))
        self.model.fill(at, speed, rate, self.layout.place, rows)
        known = known_torque(self._own, self.base, at, speed, rate) if self.base.known else 0.0
        rows[self._torque_rows] = (tau[:, :n] - known).T
        return np.vstack([rows, self._along(q, speed)])

    def _along(self, q: Array, dq: Array) -> Array:
        """Rows that go through the filter beside those of the regression (1 + 3 dof, m): clock, positions, speeds, and
        whether slow."""
        return np.vstack([q[:, -1:].T, q[:, :-1].T, dq.T, (np.abs(dq) < self._slow).T.astype(float)])

    def _take(self, rows: Array, keep: Bools) -> None:
        n, along = self.model.dof, rows[self.layout.rows:]
        columns, tau = np.zeros((rows.shape[1], n, len(self.base))), np.empty((rows.shape[1], n))
        for j in range(n):
            part = rows[self.layout.joint(j)]
            columns[:, j, self.layout.columns[j]], tau[:, j] = part[:-1].T, part[-1]
        q, dq, slow = (along[1 + k * n:1 + (k + 1) * n].T.copy() for k in range(3))
        self._done.append(Rows(along[0].copy(), q, dq, tau, columns, np.abs(slow)))
