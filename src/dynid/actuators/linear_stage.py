"""First stage: least squares of each joint with the drive law as its torque, from filtered positions.

The columns of the regression and the torque of the law go through the same low-pass (parallel filtering), so that the
filter has the same effect on both sides of the equation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from dynid.actuators.laws import DriveSignals
from dynid.actuators.problem import ChainLog, ChainProblem
from dynid.arrays import Array, Bools, Ints
from dynid.dynamics.kernels import TORQUES, dynamics_kernel
from dynid.errors import DynidError
from dynid.recording import Recording
from dynid.recording.preparation.filters import differentiate, differentiate_twice, low_pass
from dynid.recording.sample_preparation import prepare
from dynid.regression.autocorrelation import correlated_covariance

_LINEAR_PARAMETERS = ("armature", "viscous", "coulomb", "offset")
_OFFSET_ROW = 3  # of these; it may have any sign
_FILTER_ORDER = 4
_MIN_CUTOFF, _MAX_CUTOFF_SHARE = 1.0, 0.2  # Hz, and share of the rate: cut-off of the low-pass
_BORDER_PERIODS = 1.0  # periods of the cut-off left out at both ends of a segment


@dataclass(frozen=True, eq=False)
class LinearFit:
    """Least-squares values of one joint by name, and their standard errors."""

    values: Mapping[str, float]
    std: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class _Filtered:
    """A log on a uniform grid: q, dq, ddq of its filtered positions (rows, n), the mask of used rows, and
    the low-pass."""

    log: ChainLog
    t: Array
    q: Array
    dq: Array
    ddq: Array
    keep: Bools
    rate: float
    cutoff: float
    segments: Ints

    def low(self, x: Array) -> Array:
        """Return columns (rows, k) after the low-pass."""
        return low_pass(x, self.cutoff, self.rate, _FILTER_ORDER, self.segments)

    @staticmethod
    def of(log: ChainLog) -> _Filtered:
        s = log.signals
        rate = 1.0 / float(np.median(np.diff(s.t)))
        bounds = [*s.starts, len(s.t)] if len(s.starts) < 2 or np.any(np.diff(s.t) > 3.0 / rate) else [0, len(s.t)]
        grids = [np.arange(s.t[a], s.t[b - 1], 1.0 / rate) for a, b in pairwise(bounds)]
        grids = [grid for grid in grids if len(grid) > 8]
        ends = np.cumsum([0, *map(len, grids)])
        segments = np.column_stack([ends[:-1], ends[1:]])
        t = np.concatenate(grids)
        cutoff = _cutoff(log, rate)
        q = np.column_stack([np.interp(t, s.t, own) for own in s.q.T])
        low = low_pass(q, cutoff, rate, _FILTER_ORDER, segments)
        keep = np.zeros(len(t), dtype=bool)
        border = int(_BORDER_PERIODS * rate / cutoff)
        for start, stop in segments:
            keep[start + min(border, (stop - start) // 4):stop - min(border, (stop - start) // 4)] = True
        return _Filtered(log, t, low, differentiate(low, rate, segments), differentiate_twice(low, rate, segments),
                         keep, rate, cutoff, segments)

    def drive(self, j: int, delay: float) -> DriveSignals:
        """Return the unfiltered signals of the law of joint j, with commands delayed by `delay` s."""
        s = self.log.signals
        at = np.clip(np.searchsorted(s.t, self.t - delay, side="right") - 1, 0, len(s.t) - 1)
        # The mean of the held command over one interval, which is continuous in the delay.
        late, half = self.t - delay, 0.5 / self.rate
        upper, lower = (np.interp(late + side, s.t, s.total[:, j]) for side in (half, -half))
        span = np.clip(late + half, s.t[0], s.t[-1]) - np.clip(late - half, s.t[0], s.t[-1])
        command = np.where(span > 0.5 * half, (upper - lower) / np.maximum(span, 0.5 * half), s.command[at, j])
        error = command - np.interp(self.t, s.t, s.q[:, j])
        integral = np.cumsum(error) / self.rate
        return DriveSignals(error, integral, s.rate[at, j], self.dq[:, j], self.q[:, j] - self.q[0, j],
                            np.interp(self.t, s.t, s.feed[:, j]), np.interp(self.t, s.t, s.supply[:, j]))

    def link_torque(self) -> Array:
        """Return the torques (rows, n) of the known links along the filtered motion, N m."""
        tree, out = self.log.chain.tree, np.zeros_like(self.q)
        dynamics_kernel(tree.parent, tree.pose, tree.axis, tree.gravity, self.log.chain.bodies, self.q, self.dq,
                        self.ddq, TORQUES, out.reshape(-1), 0, len(out))
        return out


def _cutoff(log: ChainLog, rate: float) -> float:
    """Return the cut-off, Hz, that preparation chooses for the positions, within bounds."""
    s = log.signals
    try:
        chosen = prepare(Recording(t=s.t, q=s.q, tau=s.command - s.q, source=log.recording.source),
                         saturation="none").settings["cutoff"]
    except DynidError:  # too short or too quiet for a spectrum; the bounds decide
        chosen = None
    return float(np.clip(chosen or np.inf, _MIN_CUTOFF, _MAX_CUTOFF_SHARE * rate))


def filtered_logs(problem: ChainProblem) -> list[_Filtered]:
    """Return the filtered logs of a chain, which are used for every delay that is tried."""
    known = replace(problem, unknowns=())
    return [_Filtered.of(replace(log, signals=log.signals.at_speeds(known.speed_limits(np.zeros(0), log))))
            for log in problem.logs]


def linear_fit(problem: ChainProblem, logs: list[_Filtered], delay: float = 0.0, *, has_errors: bool = True) \
        -> list[LinearFit]:
    """Return the estimates of each joint of a chain.

    Args:
        problem: the chain.
        logs: its logs, filtered.
        delay: s by which commands arrive late.
        has_errors: whether to compute standard errors, which takes most of the time.
    """
    torques = [log.link_torque() for log in logs]
    found = []
    for j in range(problem.dof):
        matrices, targets, factors = [], [], dict[str, Array]()
        for log, torque in zip(logs, torques, strict=True):
            known = {**problem.known[j], **log.log.gains}
            drive = log.drive(j, delay)
            fixed, factors = problem.law.terms(known, drive)
            dq, is_on = log.dq[:, j], drive.supply > 0.0  # a drive that is switched off neither pushes nor brakes
            rows = np.column_stack([log.ddq[:, j], dq, np.sign(dq), np.ones_like(dq),
                                    *(-(is_on * column) for column in factors.values()), is_on * fixed - torque[:, j]])
            low = log.low(rows)
            matrices.append(low[:, :-1])
            targets.append(low[:, -1])
        keep = np.concatenate([log.keep for log in logs])
        found.append(_solve(problem, j, np.concatenate(matrices).T, np.concatenate(targets), keep, tuple(factors),
                            has_errors))
    return found


def _solve(problem: ChainProblem, j: int, matrix: Array, target: Array, keep: Bools,
           factors: tuple[str, ...], has_errors: bool) -> LinearFit:
    size = np.maximum(np.sqrt(np.mean(matrix ** 2, axis=1)), 1e-12)
    scaled = matrix / size[:, None]
    free, found = np.ones(len(scaled), dtype=bool), np.zeros(len(scaled))
    while True:  # what may not be negative is left out where it is, and the others are fitted again
        found[:] = 0.0
        found[free] = np.linalg.lstsq(scaled[free][:, keep].T, target[keep], rcond=1e-10)[0]
        wrong = free & (found < 0)
        wrong[_OFFSET_ROW] = False
        if not wrong.any():
            break
        free &= ~wrong
    std = np.full(len(scaled), np.nan)
    if has_errors:
        covariance = correlated_covariance(scaled[free], target - scaled[free].T @ found[free], keep)
        std[free] = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    names = (*_LINEAR_PARAMETERS, *factors)
    values = {name: float(value) for name, value in zip(names, found / size, strict=True)}
    law = problem.law.from_factors(problem.known[j], {name: values[name] for name in factors})
    errors = {name: float(one) for name, one in zip(names, std / size, strict=True)
              if name in _LINEAR_PARAMETERS or name in law}
    return LinearFit({**{name: values[name] for name in _LINEAR_PARAMETERS}, **law}, errors)
