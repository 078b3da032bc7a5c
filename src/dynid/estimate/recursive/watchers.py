"""Periodic operations that some forms of forgetting need, between two calls of the recursive kernel."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.arrays import Array
from dynid.estimate.recursive.forgetting import Bounded, Evidence, Forgetting, TowardsPrior
from dynid.lapack import solve_triangular
from dynid.regression.autocorrelation import autocovariance
from dynid.regression.factor import triangular, weighted_rows
from dynid.regression.known import Prior

if TYPE_CHECKING:
    from dynid.estimate.recursive.recursion import Recursion

_SAMPLES_BETWEEN_LOOKS = 256  # default number of samples between two calls
MIN_WINDOWS_FOR_MEAN = 8  # windows needed before mean and spread of the innovations are used
_LONG_MEAN_WINDOWS = 100.0  # windows over which a long-term mean is taken
_MIN_LOG_ODDS = 3.0  # log odds by which a shorter memory must be better: strong evidence after Jeffreys
_CUSUM_ALLOWANCE, _CUSUM_THRESHOLD = 1.5, 12.0  # in spreads: subtracted at every window, and alarm threshold of the sum


def make_watcher(forgetting: Forgetting, dof: int, base: int) -> Watcher | None:
    """Return the periodic operation that a form of forgetting needs, or None if it needs none."""
    if isinstance(forgetting, TowardsPrior):
        return InnovationTest(forgetting, dof, base)
    if isinstance(forgetting, Bounded):
        return BoundCheck(forgetting)
    if isinstance(forgetting, Evidence):
        return MemoryChoice(forgetting)
    return None


class InnovationTest:
    """Detector of changes in the innovations, which restarts the recursion.

    The mean squared innovation of a window relative to its long-term mean is 1 while nothing changes. The standard
    deviation of this ratio depends on the autocorrelation and is estimated too. Excesses of (ratio - 1) over 1.5
    standard deviations are summed in units of these (CUSUM). A sum above 12, with the ratio above the threshold, is a
    change.

    Attributes:
        usual: long-term mean of the squared innovations of each joint (dof,).
        seen: number of windows of each joint (dof,).
        spread: estimated mean square of (ratio - 1).
        total: the CUSUM sum.
    """

    def __init__(self, forgetting: TowardsPrior, dof: int, base: int) -> None:
        self.forgetting, self.every, self.least = forgetting, int(forgetting.window), 4 * base // dof
        self.usual, self.seen = np.zeros(dof), np.zeros(dof)
        self.spread, self.windows, self.total = 0.0, 0, 0.0

    def look(self, recursion: Recursion) -> None:
        # Plain Python numbers: for seven joints numpy would take three times as long.
        power, rows, _ = recursion.tally.tolist()
        settled = recursion.memory.weight > self.least
        known = [(p / u, n) for p, n, u, seen in zip(power, rows, self.usual.tolist(), self.seen.tolist(), strict=True)
                 if n > 0 and seen >= MIN_WINDOWS_FOR_MEAN]
        if settled and known:
            total = sum(n for _, n in known)
            ratio = sum(p for p, _ in known) / total
            self._sum_up(ratio, total)
            if (self.windows >= MIN_WINDOWS_FOR_MEAN and self.total > _CUSUM_THRESHOLD
                    and ratio > self.forgetting.threshold):
                self.restart(recursion)
        if settled and self.total == 0.0:
            self._follow(power, rows)
        recursion.tally[:] = 0.0

    def _sum_up(self, ratio: float, rows: float) -> None:
        spread = math.sqrt(max(self.spread, 2.0 / rows))
        self.total = (max(0.0, self.total + (ratio - 1.0) / spread - _CUSUM_ALLOWANCE)
                      if self.windows >= MIN_WINDOWS_FOR_MEAN else 0.0)
        self.windows += 1
        excess = min(ratio - 1.0, 3.0 * spread) if self.windows > MIN_WINDOWS_FOR_MEAN else min(ratio - 1.0, 3.0)
        self.spread += (excess ** 2 - self.spread) / min(self.windows, _LONG_MEAN_WINDOWS)

    def _follow(self, power: list[float], rows: list[float]) -> None:
        """Update the long-term mean of the squared innovations, over all windows, or about the last hundred."""
        for j, (p, n) in enumerate(zip(power, rows, strict=True)):
            if n > 0:
                self.seen[j] += 1
                self.usual[j] += (p / n - self.usual[j]) / min(self.seen[j], _LONG_MEAN_WINDOWS)

    def restart(self, recursion: Recursion) -> None:
        """Restart from a prior around the current estimate, with a covariance increased by the innovations."""
        matrix = after_change(recursion, self.every)
        if recursion.outside is not None:
            matrix = np.vstack([matrix, recursion.outside.matrix])
        recursion.begin_anew(Prior(matrix, matrix @ recursion.beta, {}))
        self.total = 0.0

    def rescale(self, factor: Array) -> None:
        """Multiply the stored innovations by factor (dof,), after a change of the rows' weights."""
        self.usual *= factor ** 2

    def arrays(self) -> dict[str, Any]:
        return {"usual": self.usual, "seen": self.seen, "state": np.array([self.spread, self.windows, self.total])}

    def restore(self, arrays: Mapping[str, Any]) -> None:
        self.usual, self.seen = np.array(arrays["usual"]), np.array(arrays["seen"])
        self.spread, self.windows, self.total = float(arrays["state"][0]), int(arrays["state"][1]), float(
            arrays["state"][2])


def after_change(recursion: Recursion, window: int) -> Array:
    """Return prior equations (base, base) of unit variance, for parameters that may just have changed.

    Their covariance is P times the low-frequency power of the noise, plus a change of every parameter. This change is
    proportional to the value that alone explains the torque, and scaled to the innovations of the last two windows.
    """
    b, dof = len(recursion.beta), len(recursion.joints)
    r, norms = recursion.r, np.where(recursion.norms > 0.0, recursion.norms, np.inf)
    alone = math.sqrt(float(np.sum(r[:, -1] ** 2))) / np.sqrt(norms)
    alone = np.where(alone > 0.0, alone, np.median(alone[alone > 0.0]) if np.any(alone > 0.0) else 1.0)
    # Parameters without excitation get a thousand times this standard deviation, so that the factor is invertible.
    whole = triangular(np.vstack([r[:b, :b], np.diag(1e-3 / alone)]))
    last = recursion.innovations()[-2 * window:]
    excess = max(float(np.mean(last[last != 0.0] ** 2)) - 1.0, 0.0) if np.any(last) else 0.0
    # Each parameter alone explains the mean squared torque; all parameters change independently.
    torque = float(np.sum(r[:, -1] ** 2)) / max(recursion.memory.weight * dof, 1.0)
    size = math.sqrt(excess / max(torque * b, 1e-300))
    inverse = solve_triangular(whole, np.eye(b), trans=1) * math.sqrt(max(low_power(recursion.innovations()), 1.0))
    both = triangular(np.vstack([inverse, np.diag(max(size, 1e-9) * alone)]))
    return solve_triangular(both, np.eye(b), trans=1)


class BoundCheck:
    """Check that suspends forgetting while the standard error of a parameter exceeds its limit."""

    every = _SAMPLES_BETWEEN_LOOKS

    def __init__(self, forgetting: Bounded) -> None:
        self.forgetting, self.allowed = forgetting, np.zeros(0)

    def look(self, recursion: Recursion) -> None:
        if len(self.allowed) == 0:
            self.allowed = self.forgetting.limit * self._at_start(recursion)
        b = len(recursion.beta)
        diagonal = np.diag(recursion.r)[:b]
        if np.any(diagonal <= 1e-9 * np.sqrt(recursion.norms)):
            recursion.resting = True
            return
        inverse = solve_triangular(recursion.r[:b, :b], np.eye(b))
        recursion.resting = bool(np.any(np.linalg.norm(inverse, axis=1) > self.allowed))

    @staticmethod
    def _at_start(recursion: Recursion) -> Array:
        """Return a standard deviation per base parameter at the start of the stream: that of the prior, or without a
        complete prior the value with which the parameter alone would explain all torque."""
        if recursion.prior is not None:
            h = recursion.prior.matrix.T @ recursion.prior.matrix
            if np.linalg.matrix_rank(h) == len(h):
                return np.sqrt(np.diag(np.linalg.inv(h)))
        torque = math.sqrt(float(np.sum(recursion.r[:, -1] ** 2)))
        return torque / np.sqrt(np.where(recursion.norms > 0, recursion.norms, np.inf))

    def rescale(self, factor: Array) -> None:
        """Recompute the limits, which are in units of the noise, after a change of the rows' weights."""
        self.allowed = np.zeros(0)

    def arrays(self) -> dict[str, Any]:
        return {"allowed": self.allowed}

    def restore(self, arrays: Mapping[str, Any]) -> None:
        self.allowed = np.array(arrays["allowed"])


class MemoryChoice:
    """Choice among memory lengths by the predictive evidence of each block of samples.

    Attributes:
        factors: one triangular factor of the weighted data per memory length.
        score: log evidence of recent blocks for each memory length.
        chosen: index of the best memory length.
        before: triangular factor of the last block.
        power: noise power at the rate of blocks, per parameter, from the increase of the residual when neighbouring
            blocks share parameters. The power of single rows would mistake slow noise for a change.
    """

    every = _SAMPLES_BETWEEN_LOOKS

    def __init__(self, forgetting: Evidence) -> None:
        self.forgetting = forgetting
        self.factors: list[Array] = []
        self.score, self.chosen = np.zeros(len(forgetting.memories)), len(forgetting.memories) - 1
        self.before, self.power, self.pairs = np.zeros((0, 0)), 1.0, 0

    def look(self, recursion: Recursion) -> None:
        recursion.memory.settle()
        block = triangular(weighted_rows(recursion.memory.last, recursion.scale, recursion.width - 1))
        self._follow(block)
        if not self.factors:  # the first block: all factors are equal
            self.factors = [recursion.r.copy() for _ in self.forgetting.memories]
            return
        gains = np.zeros(len(self.factors))
        for k, memory in enumerate(self.forgetting.memories):
            old = forget_what_comes(self.factors[k], block, self._share(memory))
            self.factors[k] = triangular(np.vstack([old, block]))
            gains[k] = log_evidence(old, self.factors[k], self.power)
        self.score = self.score * (1.0 - 1.0 / self.forgetting.recent) + gains
        good = np.flatnonzero(self.score >= self.score.max() - _MIN_LOG_ODDS)
        self.chosen = int(good[np.argmax(np.asarray(self.forgetting.memories)[good])])
        recursion.memory.fade_by_age(math.log(self._share(self.forgetting.memories[self.chosen])) / self.every)
        recursion.take(self.factors[self.chosen].copy())

    def _follow(self, block: Array) -> None:
        """Update the noise power with one more pair of neighbouring blocks. The mean logarithm is robust to changes."""
        if len(self.before):
            both = triangular(np.vstack([self.before, block]))
            lost = max(both[-1, -1] ** 2 - self.before[-1, -1] ** 2 - block[-1, -1] ** 2, 1e-300) / (len(both) - 1)
            self.pairs += 1
            self.power *= (lost / self.power) ** (1.0 / min(self.pairs, _LONG_MEAN_WINDOWS))
        self.before = block

    def rescale(self, factor: Array) -> None:
        """Discard all data but keep the chosen memory length, after a change of the rows' weights."""
        self.factors, self.before, self.pairs = [], np.zeros((0, 0)), 0

    def _share(self, memory: float) -> float:
        """Return the share of earlier information that remains after a block, for a memory length in samples."""
        return math.exp(-self.every / memory)

    def arrays(self) -> dict[str, Any]:
        return {"factors": np.array(self.factors), "score": self.score, "before": self.before,
                "state": np.array([self.chosen, self.power, self.pairs])}

    def restore(self, arrays: Mapping[str, Any]) -> None:
        self.factors, self.before = list(np.array(arrays["factors"])), np.array(arrays["before"])
        self.score, (chosen, self.power, pairs) = np.array(arrays["score"]), arrays["state"]
        self.chosen, self.pairs = int(chosen), int(pairs)


Watcher = InnovationTest | BoundCheck | MemoryChoice  # periodic operations, after every `every` samples


def forget_what_comes(r: Array, block: Array, share: float) -> Array:
    """Return the triangular factor (base + 1, base + 1) after forgetting only in directions that the new block excites.

    The factor is multiplied by `share`, but in no direction is more information removed than the block adds. With
    R_block R^-1 = U S V', the factor is V'R with row i times sqrt(max(share, 1 - S_i^2)).
    """
    b = len(r) - 1
    diagonal = np.diag(r)[:b]
    if share == 1.0 or np.any(diagonal <= 1e-9 * np.linalg.norm(r[:, :b], axis=0)):
        return r
    seen = solve_triangular(r[:b, :b], block[:, :b].T, trans=1).T
    _, size, turn = np.linalg.svd(seen, full_matrices=True)
    news = np.zeros(b)
    news[:len(size)] = size ** 2
    found = np.zeros_like(r)
    found[:b] = np.sqrt(np.maximum(share, 1.0 - news))[:, None] * (turn @ r[:b])
    found[b, b] = math.sqrt(share) * r[b, b]
    return triangular(found)


def log_evidence(old: Array, new: Array, power: float) -> float:
    """Return the log predictive probability of the rows between an old and a new triangular factor, up to a common
    constant. power: low-frequency noise power, in units of the rows.

    The result is -(rest_new - rest_old) / (2 power) - sum log(R_new,ii / R_old,ii), with `rest` the residual sum of
    squares.
    """
    low, high = (np.diag(r)[:-1] for r in (old, new))
    known = (low > 1e-9 * np.linalg.norm(old[:, :-1], axis=0)) & (high > 0.0)
    rest = float(new[-1, -1] ** 2 - old[-1, -1] ** 2)
    return -0.5 * rest / max(power, 1e-300) - float(np.sum(np.log(high[known] / low[known])))


def low_power(innovations: Array) -> float:
    """Return the low-frequency power of innovations (samples, dof), the mean over the joints."""
    found = [2.0 * c.sum() - c[0] for c in (autocovariance(x, x != 0.0) for x in innovations.T) if c[0] > 0.0]
    return float(np.mean(found)) if found else 1.0
