"""Recursive compression of a data stream, with an estimate available at any time.

The current factor, a triangular factor, contains all joints' weighted rows (`kernels`). `Memory` keeps the same rows
joint by joint in blocks of time, for standard errors, weights and diagnostics.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynid.arrays import Array, Bools
from dynid.estimate.linear import joint_weights
from dynid.estimate.recursive import kernels
from dynid.estimate.recursive.forgetting import Forgetting
from dynid.estimate.recursive.memory import Memory, factor_width
from dynid.estimate.recursive.rotation import GROUP, solve, stride, working_space
from dynid.estimate.recursive.watchers import MemoryChoice, make_watcher
from dynid.regression import Regression, Stacked
from dynid.regression.equations import Layout
from dynid.regression.factor import triangular
from dynid.regression.known import Prior

RING = 4096  # number of stored innovations
FIRST_WEIGHTS = 256  # samples before the first estimate of the noise
ROWS_PER_PARAMETER = 4  # needed for an estimate of weights: with fewer rows residuals are too small
_NO_HISTORY, _NOTHING = np.zeros((0, 1)), np.zeros(0)
_MAX_SEGMENTS = 20  # stored segments between restarts


@dataclass(frozen=True, eq=False)
class RestartSegment:
    """Data of a stream between two restarts, samples start..stop, and the estimate (base,) before them."""

    start: int
    stop: int
    before: Array
    regression: Regression


class Recursion:
    """Recursive least squares: the compressed data of a stream, and the current estimate beta (base,).

    Attributes:
        layout: layout of the rows.
        joints: names of the joints.
        prior: prior rows; after a restart, the earlier information.
        outside: prior information from other sources, which is never discarded.
        scale: 1 / noise of each joint's torque (dof,).
        learn: whether `scale` is estimated, and the current factor recomputed, whenever the number of samples doubles.
        adds: smallest information gain x P x' of a valid row.
        robust: normalised innovation beyond which a row is down-weighted, 0 for never.
        restarts: samples after which the past was discarded.
    """

    def __init__(self, layout: Layout, joints: tuple[str, ...], forgetting: Forgetting, *, prior: Prior | None = None,
                 noise: Array | None = None, learn: bool = False, adds: float = 0.0, robust: float = 0.0,
                 outside: Prior | None = None) -> None:
        self.layout, self.joints, self.prior, self.forgetting = layout, joints, prior, forgetting
        self.outside = outside
        self.learn, self.adds, self.robust = learn, float(adds), float(robust)
        b, dof = len(layout.base), len(layout.columns)
        self.width = factor_width(layout)
        self.scale = np.ones(dof) if noise is None else 1.0 / noise
        self.beta, self.norms = np.zeros(b), np.zeros(b)
        self.padded = np.zeros((self.width, stride(self.width)))
        self.restarts: list[int] = []
        self.stretches: list[RestartSegment] = []  # the last completed segments
        self.before = np.zeros(b)  # the estimate at the last restart
        self.tally, self.ring, self.spread = np.zeros((3, dof)), np.zeros((RING, dof)), np.zeros((2, dof))
        self.resting = False  # forgetting is suspended
        self.rows, self._u = np.zeros((GROUP, stride(self.width))), np.zeros(b)
        self.space, self.which = working_space(2 * GROUP)
        self._plan = forgetting.plan(layout.base, 0, 1)
        self.watcher = make_watcher(forgetting, dof, b)
        self.memory = Memory(layout, self.watcher.every if isinstance(self.watcher, MemoryChoice) else None)
        if prior is not None:
            self.add_rows(prior.matrix, prior.values)

    @property
    def done(self) -> int:
        """Number of samples of the stream that were processed so far."""
        return self.memory.done

    @property
    def r(self) -> Array:
        """Triangular factor (width, width) of the current estimate, as a writable view."""
        return self.padded[:, :self.width]

    @property
    def instrumented(self) -> bool:
        """Whether the rows of the stream include instruments."""
        return self.width > len(self.beta) + 1

    # -- data ------------------------------------------------------------------------------------
    def add(self, entries: Array, keep: Bools, history: Array | None = None) -> None:
        """Add samples (layout.rows, m) with their mask of valid rows (m, dof).

        history (m, base): receives the estimate after each sample.
        """
        at, m = 0, entries.shape[1]
        keep = keep.copy() if self.adds > 0.0 else keep  # the kernel marks excluded rows
        memory = self.memory
        while at < m:
            vector = self._plan[0] == kernels.VECTOR
            if vector and self.instrumented and self.done and not self.resting:
                self._fade_instrumented(self._plan[1])
            single = m == 1 or (vector and (self.instrumented or self.done == 0))
            count = 1 if single else min(m - at, self._until_next_look(), memory.room)
            mode, factors = self._factors(at, count, m)
            fading, shares = None, _NOTHING
            if mode == kernels.NONE and factors[at] != 1.0:
                fading, shares = factors[at:at + count], np.zeros(m)
                shares[at:at + count] = memory.shares(fading)
            kernels.update(self.padded, self.norms, self.beta, self.rows, self._u, self.space, self.which, entries,
                           keep, memory.columns, memory.starts, self.scale, at, at + count, mode, factors, self.adds,
                           self.robust, self.spread, _NO_HISTORY if history is None else history, self.ring,
                           self.done % RING, self.tally, memory.factor, memory.squares, memory.counts, shares)
            memory.took(count, fading)
            at += count
            if self.watcher is not None and memory.done % self.watcher.every == 0:
                self.watcher.look(self)
            elif m == 1:
                memory.step()
            if self.learn and self._doubled():
                self.learn_noise()
        if m > 1:
            memory.settle()

    def _fade_instrumented(self, vector: Array) -> None:
        """Apply forgetting per parameter to rows with instruments: Z'Y := V Z'Y V, with the estimate unchanged.

        This is P := V^-1 P V^-1 (Ardiani, eq. 4.12) for P = (Z'Y)^-1. vector (base,): the factors, the diagonal of V.
        Columns of Z and Y are multiplied by the factors, and tau becomes tau - Y beta + Y V beta, so that its residual
        does not change.
        """
        self.solve()
        b, r = len(self.beta), self.r
        r[:, -1] += r[:, b:2 * b] @ ((vector - 1.0) * self.beta)
        r[:, :b] *= vector
        r[:, b:2 * b] *= vector
        self.norms *= vector ** 2

    def _until_next_look(self) -> int:
        """Return the number of samples until the next operation that is done between two calls of the kernel."""
        count = RING
        if self.watcher is not None:
            count = self.watcher.every - self.done % self.watcher.every
        return min(count, FIRST_WEIGHTS - self.done % FIRST_WEIGHTS) if self.learn else count

    def _doubled(self) -> bool:
        times = self.done / FIRST_WEIGHTS
        return times >= 1.0 and math.log2(times).is_integer()

    def _factors(self, at: int, count: int, m: int) -> tuple[int, Array]:
        """Return mode and forgetting factors of the kernel, for samples at..at + count of m samples."""
        mode, one = self._plan
        # With instruments, forgetting is applied between samples; the first sample uses the whole prior (eq. 4.12).
        if mode == kernels.VECTOR and (self.instrumented or self.done == 0):
            return kernels.NONE, np.ones(m)
        if mode in (kernels.VECTOR, kernels.VARIABLE) or (m == 1 and self.forgetting.steady and not self.resting):
            return mode, one
        factors = np.ones(m)
        if not self.resting:
            factors[at:at + count] = self.forgetting.plan(self.layout.base, self.done, count)[1]
        return mode, factors

    # -- operations of watchers ------------------------------------------------------------------------
    def add_rows(self, matrix: Array, values: Array) -> None:
        """Add prior equations matrix (k, base) beta = values (k,) of unit standard deviation to the factor."""
        front = matrix if self.instrumented else np.zeros((len(matrix), 0))
        self.r[:] = triangular(np.vstack([self.r, np.column_stack([front, matrix, values])]))
        self.norms += np.sum(matrix ** 2, axis=0)
        self.solve()

    def begin_anew(self, prior: Prior) -> None:
        """Discard all data, and restart the recursion from a prior."""
        self.stretches = self.since_restarts()[-_MAX_SEGMENTS:]
        self.prior, self.before = prior, self.beta.copy()
        self.restarts.append(self.done)
        self.memory.clear()
        self.padded[:], self.norms[:] = 0.0, 0.0
        self.add_rows(prior.matrix, prior.values)

    def take(self, r: Array) -> None:
        """Replace the triangular factor of the recursion by r, and update the estimate."""
        b = len(self.beta)
        self.r[:] = r
        self.norms = np.sum(self.r[:, :b] ** 2, axis=0)
        self.solve()

    def solve(self) -> None:
        """Compute the current estimate from the triangular factor."""
        b = len(self.beta)
        if not self.instrumented:
            solve(self.padded, self.norms, self.beta, b)
            return
        # R of [Z Y tau] contains Q_Z'Y and Q_Z'tau (Janot, Vandanjon, Gautier, eq. 34); minimum-norm solution.
        y, tau = self.r[:b, b:2 * b], self.r[:b, -1]
        size = np.linalg.norm(y, axis=0)
        size = np.where(size > 0.0, size, 1.0)
        self.beta[:] = np.linalg.lstsq(y / size, tau, rcond=1e-12)[0] / size

    def settle_noise(self) -> None:
        """Update the joint weights from the stored blocks before an estimate. With several memory lengths they are
        updated only when the number of samples doubles, because all factors must be recomputed."""
        if self.learn and not isinstance(self.watcher, MemoryChoice):
            self.learn_noise()

    def learn_noise(self) -> None:
        """Update the joint weights from the stored blocks, and recompute the factor of the current estimate. Nothing
        changes if there are too few rows, or if the blocks do not contain the same data as this factor."""
        found = self.regression()
        if not self.forgetting.scalar or sum(found.rows) <= ROWS_PER_PARAMETER * len(self.beta):
            return
        weights = joint_weights(found)
        self.ring *= weights / self.scale
        self.tally[0] *= (weights / self.scale) ** 2
        if self.watcher is not None:
            self.watcher.rescale(weights / self.scale)
        self.scale = weights
        self.take(self.stacked(found))

    def stacked(self, found: Regression) -> Array:
        """Return the triangular factor (base + 1, base + 1) of all stored blocks with the current weights.

        The prior is included with its forgetting.
        """
        data = found.stack(self.scale, prior=False).matrix
        if self.prior is None:
            return data
        share = math.exp(0.5 * self.memory.log)
        return triangular(data, share * np.column_stack([self.prior.matrix, self.prior.values]))

    # -- results ----------------------------------------------------------------------------
    def regression(self) -> Regression:
        """Return the stored blocks as a regression, with a prior that is reduced by forgetting."""
        found = self.memory.regression(self.layout.base, self.joints)
        if self.prior is None:
            return found
        share = math.exp(0.5 * self.memory.log)
        return replace(found, prior=Prior(share * self.prior.matrix, share * self.prior.values, self.prior.known))

    def since_restarts(self) -> list[RestartSegment]:
        """Return the data of the stream after each of the last restarts."""
        if not self.restarts:
            return []
        fold = self.memory.regression(self.layout.base, self.joints).joined(1)
        return [*self.stretches, RestartSegment(self.restarts[-1], self.done, self.before, fold)]

    def live(self) -> Stacked:
        """Return the current triangular factor as a least-squares problem with ridge penalties. With instruments, the
        problem is that of the torques on the instruments."""
        b, ridge = len(self.beta), self.layout.base.ridge * self.norms
        rows = round(self.memory.weight) * len(self.layout.columns)
        own = self.r[:, [*range(b), -1]]
        if ridge.any():
            return Stacked.from_matrix(np.vstack([own, np.column_stack([np.diag(np.sqrt(ridge)), np.zeros(b)])]), rows)
        return Stacked(own[:b, :b], own[:b, b], float(np.sum(own[b:, b] ** 2)), rows)

    def innovations(self) -> Array:
        """Return the last normalised innovations (samples, dof), the oldest first; zero for excluded rows."""
        if self.done < RING:
            return self.ring[:self.done].copy()
        return np.roll(self.ring, -(self.done % RING), axis=0)

    # -- files -----------------------------------------------------------------------------------
    def arrays(self) -> dict[str, Any]:
        """Return the state as plain arrays for a file; `restore` reads them."""
        found = {"live": self.r, "norms": self.norms, "beta": self.beta, "scale": self.scale, "tally": self.tally,
                 "ring": self.ring[:min(self.done, RING)], "spread": self.spread, "plan": self._plan[1],
                 "before": self.before, "restarts": np.array(self.restarts, dtype=np.int64),
                 "resting": np.array(self.resting)}
        if self.prior is not None:
            found |= {"now_matrix": self.prior.matrix, "now_values": self.prior.values}
        if self.watcher is not None:
            found |= {f"watcher_{name}": value for name, value in self.watcher.arrays().items()}
        for k, one in enumerate(self.stretches):
            found |= {f"segment{k}_{name}": value for name, value in one.regression.arrays().items()}
            found |= {f"segment{k}_samples": np.array([one.start, one.stop]), f"segment{k}_before": one.before}
        return {**found, **self.memory.arrays()}

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """Restore the state of the recursion from the arrays that `arrays` returned."""
        self.memory.restore(arrays)
        if self.prior is not None or "now_matrix" in arrays:
            self.prior = Prior(arrays["now_matrix"], arrays["now_values"], {} if self.prior is None
                               else self.prior.known)
        self.r[:], self.norms, self.beta = (np.array(arrays[name], dtype=float) for name in ("live", "norms", "beta"))
        self.scale, self.tally, self.spread = (np.array(arrays[name]) for name in ("scale", "tally", "spread"))
        self.ring[:len(arrays["ring"])], self.before = arrays["ring"], np.array(arrays["before"])
        self._plan = (self._plan[0], np.array(arrays["plan"], dtype=float))
        self.restarts, self.resting = [int(k) for k in arrays["restarts"]], bool(arrays["resting"])
        if self.watcher is not None:
            self.watcher.restore({name.removeprefix("watcher_"): value for name, value in arrays.items()
                                  if name.startswith("watcher_")})
        self.stretches = []
        while (head := f"segment{len(self.stretches)}_") + "samples" in arrays:
            own = {name.removeprefix(head): value for name, value in arrays.items() if name.startswith(head)}
            regression = Regression.from_arrays(own, self.layout.model, "the saved state")
            start, stop = map(int, own["samples"])
            self.stretches.append(RestartSegment(start, stop, np.array(own["before"]), regression))
