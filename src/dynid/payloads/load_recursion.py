"""Recursive estimation of a load, together with the uncertainties of the robot, from a stream of rows.

The data are in a `Recursion` with exponential forgetting. The prior (`Unknowns`) is not forgotten: the part of it that
is lost with each sample is added again. If the robot is at rest or moves little, the estimate therefore returns to the
prior, and its covariance is bounded.

The test for a change differs from that of `TowardsPrior`. `TowardsPrior` estimates the spread of its innovations over
eight windows (10 s), and would not detect loads that change every 7 s. For a load, the noise is known beforehand, so a
change is detected in the first window. The load has changed if the mean square of the innovations, in units of their
predicted standard deviations, is above a threshold, and a new load from some block of the window on explains them. The
recursion restarts from the blocks that the new load explains. Innovations that no load explains, such as those of a
contact, are not a change of the load; such blocks are excluded.

The model of the robot and its drive gains are never exact, so that the loads of two windows differ by more than noise.
A change must therefore explain a multiple of the sum of squares that another load explains in windows without a
change. The usual sum of squares is learnt from the stream (`UsualGain`); before enough windows have passed, the sum is
predicted from the uncertainty of the drive gains.

The unknowns are the load and the uncertainties of the robot. Rows of loaded equations are [W, W_F, W_L] (dbeta, phi,
theta) = tau - W beta_0. The errors dbeta of the robot identified without load have its covariance and that of friction
changes. The unknown phi is load-dependent friction, theta the load's ten parameters. Each has a prior of mean zero.
"""

from __future__ import annotations

import copy
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array, Bools, Ints
from dynid.errors import ModelError
from dynid.estimate import Estimate
from dynid.estimate.recursive.forgetting import Exponential
from dynid.estimate.recursive.recursion import Recursion
from dynid.estimate.recursive.watchers import log_evidence, low_power
from dynid.lapack import solve_triangular
from dynid.payloads.payload_methods import LoadedModel
from dynid.payloads.result import FRICTION_STD, LEAST_FRICTION, LOAD_FRICTION_STD
from dynid.regression.equations import Layout
from dynid.regression.factor import triangular
from dynid.regression.known import Prior
from dynid.robot import BASE, Robot

WINDOW_BLOCKS = 5  # blocks per window, between which a load may change
MAX_DOUBTS = 2  # tests that indicate another load only in the last block, before it is accepted
MIN_ROWS = 20  # rows that another load must explain: twice its number of parameters
TRUSTED_ROWS = 100.0  # rows that the noise estimate of the unloaded robot counts as
LASTING_ROWS = 2500.0  # memory of the noise estimate in rows
NOISE_CHANGE = 0.1  # relative change of a variance above which rows are weighted again
RING_SAMPLES = 1024  # innovations that are kept
FIRST_INFLATION, FIRST_SAMPLES = 4.0, 50  # initial inflation by autocorrelation, and samples that it counts as
CHANCE_SPREADS = 6.0  # standard deviations of the mean squared innovation that are not random
MIN_GAIN = 40.0  # sum of squares that another load must explain: noise exceeds it in one of 10^5 windows
USUAL_MULTIPLE = 3.0  # multiple of the usual gain of another load, above which the load has changed
PREDICTED_WINDOWS = 48.0  # windows after which the prediction from drive gains counts half: one minute of varied motion
PEAK_WINDOWS = 480.0  # windows over which a peak decays by e: ten minutes
_LOAD_DISTANCE_OF_REACH = 0.2  # share of an arm's reach: default distance of a load from its frame
_STANDARD_GRAVITY = 9.81  # m/s^2
LEAST_SHARE = 1e-6  # lower bound of scaled standard deviations of the robot's parameters, as a share of the largest


@dataclass
class RowBlock:
    """Block of a few samples of a stream.

    Attributes:
        entries, keep: entries of the regression (layout.rows, m), and mask of used rows (m, dof).
        innovations: innovations (m, dof) in standard deviations, zero for excluded rows.
        is_doubtful: whether the innovations are too large for noise.
        by_gains: sum of squared innovations for an error of one standard deviation of the drive gains.
    """

    entries: Array
    keep: Bools
    innovations: Array
    is_doubtful: bool = False
    by_gains: float = 0.0

    @property
    def misfit(self) -> float:
        return float(np.sum(self.innovations ** 2))

    @property
    def rows(self) -> int:
        return int(self.keep.sum())


@dataclass
class UsualGain:
    """Largest sum of squares that another load explains in a window without a change.

    Attributes:
        peak: largest value so far, which decays over `PEAK_WINDOWS`.
        windows: number of windows.
        latest: value of the last window, which counts once the next window shows no change either.
    """

    peak: float = 0.0
    windows: int = 0
    latest: float | None = None

    def add(self, value: float) -> None:
        """Update the usual gain with a window in which no change of the load was detected."""
        if self.latest is not None:
            self.peak = max(self.latest, math.exp(-1.0 / PEAK_WINDOWS) * self.peak)
            self.windows += 1
        self.latest = value

    def limit(self, predicted: float) -> float:
        """Return the sum of squares above which a load has changed; predicted: the sum due to drive gain errors."""
        unknown = PREDICTED_WINDOWS / (PREDICTED_WINDOWS + self.windows)
        return max(MIN_GAIN, USUAL_MULTIPLE * (self.peak + unknown * predicted))


class LoadRecursion:
    """Recursive estimation of a load with forgetting, and the test for a change of the load.

    Args:
        layout: Layout of the rows, on the columns of `Unknowns`.
        joints: Names of the joints.
        unknowns: The prior of the load and of the errors of the robot.
        noise: Standard deviation of the torque noise (dof,), from data without load; a joint with zero is excluded.
        memory: Samples after which the weight of data falls by a factor of e.
        window: Number of samples in the test for a change.
        threshold: Threshold of the mean squared innovation.
        gains: Variance of the relative drive gains (dof,).
    """

    def __init__(self, layout: Layout, joints: tuple[str, ...], unknowns: Unknowns, noise: Array, memory: float,
                 window: int, threshold: float, gains: Array) -> None:
        for name, value in (("memory", memory), ("window", window), ("threshold", threshold)):
            if not value > 0:
                raise ModelError(f"{name} of a live payload must be positive, got {value}", code="not-above-zero")
        self.layout, self.joints, self.unknowns, self.threshold = layout, joints, unknowns, threshold
        self.factor, self.size = math.exp(-1.0 / memory), max(1, round(window / WINDOW_BLOCKS))
        self.heard = noise > 0.0
        self._first = np.where(self.heard, noise, 1.0) ** 2
        self.variance, self._seen = self._first.copy(), np.zeros((2, len(noise)))  # squares and rows
        self._prior = np.column_stack([unknowns.prior.matrix, unknowns.prior.values])
        self.samples, self.restarts = 0, list[int]()
        self._last: deque[RowBlock] = deque()
        self._ring: deque[Array] = deque(maxlen=RING_SAMPLES)
        self._gains, self._usual, self._blocks = gains, UsualGain(), 0  # blocks since the last restart
        self._doubts = 0  # consecutive tests that indicate another load only in the last block
        self._former: Recursion | None = None  # data before the last restart
        self.recursion = self._fresh()
        self._now = np.zeros((layout.rows, 0)), np.zeros((0, len(noise)), dtype=bool)  # the present block

    def _fresh(self) -> Recursion:
        return Recursion(self.layout, self.joints, Exponential(self.factor), prior=self.unknowns.prior,
                         noise=np.sqrt(self.variance))

    # -- data ------------------------------------------------------------------------------------
    def add(self, entries: Array, keep: Bools) -> None:
        """Add samples (layout.rows, m) with their mask of used rows (m, dof)."""
        keep, at = keep & self.heard, 0
        while at < len(keep):
            part = slice(at, at + self.size - len(self._now[1]))
            self._now = np.hstack([self._now[0], entries[:, part]]), np.vstack([self._now[1], keep[part]])
            self.samples += len(keep[part])
            at = part.stop
            if len(self._now[1]) == self.size:
                self.pause()

    def pause(self) -> None:
        """End the present block and add it to the data. A block with too large innovations waits in the window for the
        detection of a change, and is excluded if no change is detected."""
        (entries, keep), (r, b) = self._now, (self.recursion.r, len(self.layout.base))
        if not len(keep):
            return
        self._now = entries[:, :0], keep[:0]
        rows, innovations = self._weighted(entries, keep), np.zeros(keep.shape)
        spread = 1.0 + np.sum(solve_triangular(r[:b, :b], rows[:, :b].T, trans=1) ** 2, axis=0)
        innovations.T[keep.T] = (rows[:, b] - rows[:, :b] @ self.recursion.beta) / np.sqrt(spread)
        load = rows[:, self.unknowns.load] @ self.recursion.beta[self.unknowns.load]
        now = RowBlock(entries, keep, innovations, by_gains=float(np.repeat(self._gains, keep.sum(axis=0)) @ load ** 2))
        now.is_doubtful = now.misfit > self.threshold * now.rows
        if not now.is_doubtful:
            self._take(self.recursion, entries, keep)
        self._last.append(now)
        if len(self._last) > WINDOW_BLOCKS:
            self._learn(self._last.popleft())
        self._blocks += 1
        start = self._change()
        if start is not None:
            self._restart(start)
        elif self._blocks % WINDOW_BLOCKS == 0:
            blocks = list(self._last)
            explained = sum(block.misfit for block in blocks) - self._with(self._prior, blocks)[-1, -1] ** 2
            self._usual.add(explained / self.inflation)

    def _take(self, recursion: Recursion, entries: Array, keep: Bools) -> None:
        """Add samples to the data; the forgotten part of the prior is added again."""
        recursion.add(np.ascontiguousarray(entries), np.ascontiguousarray(keep))
        root = math.sqrt(1.0 - self.factor ** len(keep))
        recursion.add_rows(root * self._prior[:, :-1], root * self._prior[:, -1])

    def _weighted(self, entries: Array, keep: Bools) -> Array:
        """Return rows (n, base + 1) of the joints in turn, in units of their noise."""
        found, at = np.zeros((int(keep.sum()), len(self.layout.base) + 1)), 0
        for j, columns in enumerate(self.layout.columns):
            own = entries[self.layout.joint(j)][:, keep[:, j]].T / math.sqrt(self.variance[j])
            found[at:at + len(own), columns], found[at:at + len(own), -1] = own[:, :-1], own[:, -1]
            at += len(own)
        return found

    def _learn(self, block: RowBlock) -> None:
        """Update the noise from a block that leaves the window; rejected blocks are clipped at the threshold."""
        rows = block.keep.sum(axis=0)
        squares = np.sum(block.innovations ** 2, axis=0)
        self._seen += [self.variance * np.minimum(squares, self.threshold * rows), rows]
        self._seen *= np.minimum(1.0, LASTING_ROWS / np.maximum(self._seen[1], 1.0))
        variance = (TRUSTED_ROWS * self._first + self._seen[0]) / (TRUSTED_ROWS + self._seen[1])
        most = np.sqrt(self.threshold) if block.is_doubtful else np.inf
        self._ring.extend(np.clip(block.innovations, -most, most))
        if np.any(np.abs(variance / self.variance - 1.0) > NOISE_CHANGE):
            self.variance = variance
            self._weigh(self.recursion)

    def _weigh(self, recursion: Recursion) -> None:
        """Weight the rows of a recursion by the current noise estimate."""
        recursion.scale = 1.0 / np.sqrt(self.variance)
        data = recursion.memory.regression(self.layout.base, self.joints).stack(recursion.scale, prior=False)
        rest = np.append(np.zeros(len(data.rho)), math.sqrt(data.rest))
        recursion.take(triangular(np.vstack([np.column_stack([data.r, data.rho]), rest, self._prior])))

    # -- changes ---------------------------------------------------------------------------------
    def _change(self) -> int | None:
        """Return the index of the block of the last window from which another load explains the innovations, or
        None."""
        blocks = list(self._last)
        rows = np.cumsum([block.rows for block in blocks[::-1]])[::-1]  # rows from each block on
        later = [k for k, count in enumerate(rows) if count >= MIN_ROWS]
        mean, inflation = sum(block.misfit for block in blocks) / max(rows[0], 1), self.inflation
        if not later or mean <= max(self.threshold, 1.0 + CHANCE_SPREADS * math.sqrt(2.0 * inflation / rows[0])):
            return None
        before = np.cumsum([0.0, *(block.misfit for block in blocks)])
        left = [before[k] + self._with(self._prior, blocks[k:])[-1, -1] ** 2 for k in later]
        best = int(np.argmin(left))
        gain = mean * rows[0] - left[best]
        limit = self._usual.limit(sum(block.by_gains for block in blocks) / inflation)
        if mean <= self.threshold * max(left[best] / rows[0], 1.0) or gain < limit * inflation:
            return None
        # The last block may contain both loads: the next one decides.
        self._doubts = self._doubts + 1 if later[best] == len(blocks) - 1 else 0
        return later[best] if self._doubts in (0, MAX_DOUBTS) else None

    def _with(self, r: Array, blocks: Sequence[RowBlock]) -> Array:
        """Return the triangular factor (base + 1, base + 1) of prior rows r together with blocks of samples."""
        return triangular(np.vstack([r, *(self._weighted(block.entries, block.keep) for block in blocks)]))

    def _restart(self, start: int) -> None:
        """Restart the estimation from block `start` of the window on. If the blocks since then are more likely under
        the state before the last restart, that state is restored: a push has ended, or a tool is back."""
        kept, former, fresh = list(self._last)[start:], self._former, self._fresh()
        self._former, self.recursion = self.recursion, fresh
        if former is not None:
            self._weigh(former)
            known, new = (log_evidence(one.r, self._with(one.r, kept), 1.0) for one in (former, fresh))
            self.recursion = former if known > new else fresh
        for block in kept:
            self._take(self.recursion, block.entries, block.keep)
        self.restarts.append(self.samples - sum(len(block.keep) for block in kept))
        self._last.clear()
        self._doubts, self._blocks, self._usual.latest = 0, 0, None

    # -- results ------------------------------------------------------------------------------------
    @property
    def theta(self) -> Array:
        """The load's ten inertial parameters (10,)."""
        r = triangular(np.vstack([self.recursion.r, self._weighted(*self._now)]))
        return np.asarray(solve_triangular(r[:-1, :-1], r[:-1, -1])[self.unknowns.load])

    def settled(self) -> Recursion:
        """Return a copy of the recursion with all samples so far, including those of the present block."""
        settled = copy.deepcopy(self.recursion)
        if len(self._now[1]):
            self._take(settled, *self._now)
        return settled

    @property
    def inflation(self) -> float:
        """Ratio of the innovations' low-frequency power to that of white noise, at least one (autocorrelation)."""
        seen = len(self._ring)
        power = low_power(np.array(self._ring)) if seen > WINDOW_BLOCKS else 0.0
        return max((FIRST_SAMPLES * FIRST_INFLATION + seen * power) / (FIRST_SAMPLES + seen), 1.0)


@dataclass(frozen=True, eq=False)
class Unknowns:
    """Prior of the unknowns of the loaded equations: errors of the robot, load-dependent friction, and the load.

    Attributes:
        prior: Independent prior equations, each with standard deviation one, about the values without load.
        known: Values without load (columns,), zero for columns that are not the robot's.
        robot, friction, load: Column indices of the three groups of unknowns, and their row indices in the prior.
        own: Share (b, b) of the robot's prior variance that comes from the covariance of its estimate; the rest is the
            change of friction under load.
        sizes: Standard deviations of the load's ten parameters (10,).
    """

    prior: Prior
    known: Array
    robot: Ints
    friction: Ints
    load: Ints
    own: Array
    sizes: Array

    @staticmethod
    def from_estimate(estimate: Estimate, made: LoadedModel, largest: tuple[float, float]) -> Unknowns:
        """Return the prior of the unknowns for a robot that was identified without load.

        largest: standard deviations of mass (kg) and of the distance of a load from its frame (m).
        """
        count = len(made.base)
        more = _friction_std(estimate)
        whole = estimate.covariance + np.diag(more ** 2)
        size = np.sqrt(np.maximum(np.diag(whole), 1e-300))
        values, vectors = np.linalg.eigh(whole / np.outer(size, size))
        root = np.sqrt(np.maximum(values, LEAST_SHARE ** 2 * values.max(initial=0.0)))
        mass, length = largest
        sizes = mass * np.array([length ** 2] * 6 + [length] * 3 + [1.0])
        rows, known = np.zeros((count, count)), np.zeros(count)
        rows[np.ix_(made.robot, made.robot)] = back = (vectors / root).T / size
        rows[made.friction, made.friction] = 1.0 / LOAD_FRICTION_STD
        rows[made.load, made.load] = 1.0 / sizes
        known[made.robot] = estimate.values
        return Unknowns(Prior(rows, rows @ known, {}), known, made.robot, made.friction, made.load,
                        back @ estimate.covariance @ back.T, sizes)


def _friction_std(estimate: Estimate) -> Array:
    """Return the standard deviations of changes of each base parameter under load (b,): a fifth of friction and
    offsets, but for torques at least a fiftieth of the joint's torque during identification."""
    base, torque = estimate.base, training_torques(estimate)
    alone = np.count_nonzero(base.matrix, axis=1) == 1
    std = np.zeros(len(base))
    for k, place in enumerate(base.independent):
        item = base.parameters.items[place]
        if alone[k] and item.kind.group in ("friction", "offset") and base.ridge[k] == 0:
            least = LEAST_FRICTION * torque[item.owner] if item.unit in ("N m", "N") else 0.0
            std[k] = max(FRICTION_STD * abs(float(estimate.values[k])), least)
    return std


def training_torques(estimate: Estimate) -> Array:
    """Return the RMS torque of each joint (dof,) in the data of the robot's identification, N m or N."""
    error = np.array(estimate.diagnostics.relative_error_per_joint, dtype=float)
    left = np.array(estimate.diagnostics.residual_std_per_joint, dtype=float)
    return np.where(error > 0.0, 100.0 * left / np.where(error > 0.0, error, 1.0), 0.0)


def largest_load(estimate: Estimate, robot: Robot, frame: str,
                 given: tuple[float, float] | None) -> tuple[float, float]:
    """Return the largest expected mass (kg) of a load and its distance from its frame (m). Without given values, the
    mass is the payload of the robot file, or the mass that the strongest joint can carry with the arm outstretched. The
    distance is a fifth of the reach."""
    if given is not None:
        if len(given) != 2 or not all(np.isfinite(x) and x > 0.0 for x in given):
            raise ModelError("the largest expected load must be a positive mass in kg and distance in m, got "
                             f"{given}", code="bad-largest-load")
        return float(given[0]), float(given[1])
    lever = load_lever(robot, frame)
    torque = float(training_torques(estimate).max(initial=0.0))
    mass = robot.payload or torque * _LOAD_DISTANCE_OF_REACH / (_STANDARD_GRAVITY * lever)
    return max(mass, 1e-3), lever


def load_lever(robot: Robot, frame: str) -> float:
    """Return the assumed distance of a load from its frame, m: a fifth of the reach of the arm or longest limb."""
    place = robot.frame(frame)
    reach = float(np.linalg.norm(place.pose[:3, 3])) + _reach(robot, place.body)
    if robot.has_free_base:
        reach = max(reach, *(_reach(robot, body) for body in range(robot.dof)))
    return _LOAD_DISTANCE_OF_REACH * max(reach, 0.1)


def _reach(robot: Robot, body: int) -> float:
    """Return the length of the links between the base and a body, m."""
    reach = 0.0
    while body != BASE and body < robot.dof:
        joint = robot.joints[body]
        reach += float(np.linalg.norm(joint.before[:3, 3]) + np.linalg.norm(joint.after[:3, 3]))
        body = joint.parent
    return reach
