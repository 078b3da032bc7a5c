"""First stage of actuator identification: linear least squares of each joint, with the torque of its drive law.

The regressors and the torque of the drive law pass the same low-pass filter (parallel filtering), which therefore has
the same effect on both sides of the equation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from dynid.actuators import columns as c
from dynid.actuators.chains import SIMULATION_STEPS, Chain, robot_chains
from dynid.actuators.input_checks import GAP_INTERVALS
from dynid.actuators.laws import DriveLaw, DriveSignals
from dynid.actuators.parameters import FRICTION_MODELS, MECHANICAL_PARAMETERS
from dynid.actuators.problem import ActuatorLog, ChainLog, ChainProblem
from dynid.arrays import Array, Bools, Ints
from dynid.dynamics.kernels import TORQUES, dynamics_kernel
from dynid.errors import DynidError
from dynid.recording import Recording
from dynid.recording.preparation.filters import differentiate, differentiate_twice, low_pass
from dynid.recording.sample_preparation import prepare
from dynid.regression.autocorrelation import correlated_covariance
from dynid.robot import Robot

_LINEAR_PARAMETERS = ("armature", "viscous", "coulomb", "offset")
_OFFSET_ROW = 3  # index of the constant torque, which may have any sign
_FILTER_ORDER = 4  # order of the low-pass
_MIN_CUTOFF, _MAX_CUTOFF_SHARE = 1.0, 0.2  # Hz, and share of the rate: cut-off of the low-pass
_BORDER_PERIODS = 1.0  # periods of the cut-off left out at both ends of a segment
_STARTING_DELAYS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)  # initial delays of the second stage, in sampling intervals
_MAX_STEP_SHARE = 0.1  # largest error by the integration step during a search, relative to the residuals of a joint
_RICHARDSON_FACTOR = 4.0 / 3.0  # error of a step over its difference from half the step, for a second-order method
_ROWS_PER_PERIOD = 4.0  # rows in a period of the fastest oscillation that a log can show
_MIN_GAIN_SHARE = 0.1  # smallest initial gain of the second stage, as a share of the median gain of all joints
_DAMPING_RATIO = 0.5  # damping ratio of a joint whose damping the first stage estimates too low
_SPEED_ROWS = 5  # rows over which speeds are computed from positions, so that encoder rounding has little effect
_SPEED_SHARES = (1.0, 0.8, 0.6, 0.45, 0.3, 0.2)  # speed limits that are tried, relative to the largest measured speed


@dataclass(frozen=True, eq=False)
class LinearFit:
    """Least-squares estimates of one joint and their standard errors, by parameter name."""

    values: Mapping[str, float]
    std: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class _Filtered:
    """A log of one chain of n joints at a uniform rate, with filtered motion.

    Attributes:
        log: the log.
        t: times (rows,), s.
        q, dq, ddq: filtered positions, velocities and accelerations (rows, n).
        keep: mask of the used rows (rows,).
        rate, cutoff: rate of the rows and cut-off of the low-pass, Hz.
        segments: first row and row after the last of each segment without gaps (segments, 2).
    """

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
        """Return signals (rows, k) filtered by the low-pass of the log."""
        return low_pass(x, self.cutoff, self.rate, _FILTER_ORDER, self.segments)

    @staticmethod
    def from_log(log: ChainLog) -> _Filtered:
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
        """Return the unfiltered drive signals of joint j, with commands delayed by `delay` s."""
        s = self.log.signals
        at = np.clip(np.searchsorted(s.t, self.t - delay, side="right") - 1, 0, len(s.t) - 1)
        # Mean of the stepwise constant command over one interval, which is continuous in the delay.
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
    """Return the cut-off frequency, Hz, that signal preparation chooses for the positions of a log, within bounds."""
    s = log.signals
    try:
        chosen = prepare(Recording(t=s.t, q=s.q, tau=s.command - s.q, source=log.recording.source),
                         saturation="none").settings["cutoff"]
    except DynidError:  # too short or too little motion for a spectrum: the largest cut-off is used
        chosen = None
    return float(np.clip(chosen or np.inf, _MIN_CUTOFF, _MAX_CUTOFF_SHARE * rate))


def filtered_logs(problem: ChainProblem) -> list[_Filtered]:
    """Return the filtered logs of a chain, which do not depend on the delay of the commands."""
    known = replace(problem, unknowns=())
    return [_Filtered.from_log(replace(log, signals=log.signals.at_speeds(known.speed_limits(np.zeros(0), log))))
            for log in problem.logs]


def linear_fit(problem: ChainProblem, logs: list[_Filtered], delay: float = 0.0, *, has_errors: bool = True) \
        -> list[LinearFit]:
    """Return the least-squares estimates of each joint of a chain.

    Args:
        problem: estimation problem of the chain.
        logs: filtered logs of the chain.
        delay: delay of the commands, s.
        has_errors: whether to compute standard errors, which takes most of the time.
    """
    torques = [log.link_torque() for log in logs]
    fits = []
    for j in range(problem.dof):
        matrices, targets, factors = [], [], dict[str, Array]()
        for log, torque in zip(logs, torques, strict=True):
            known = {**problem.known[j], **log.log.gains}
            drive = log.drive(j, delay)
            fixed, factors = problem.law.terms(known, drive)
            dq, is_on = log.dq[:, j], drive.supply > 0.0  # a drive that is switched off has neither torque nor back-EMF
            rows = np.column_stack([log.ddq[:, j], dq, np.sign(dq), np.ones_like(dq),
                                    *(-(is_on * column) for column in factors.values()), is_on * fixed - torque[:, j]])
            low = log.low(rows)
            matrices.append(low[:, :-1])
            targets.append(low[:, -1])
        keep = np.concatenate([log.keep for log in logs])
        fits.append(_solve(problem, j, np.concatenate(matrices).T, np.concatenate(targets), keep, tuple(factors),
                           has_errors))
    return fits


def _solve(problem: ChainProblem, j: int, matrix: Array, target: Array, keep: Bools,
           factors: tuple[str, ...], has_errors: bool) -> LinearFit:
    size = np.maximum(np.sqrt(np.mean(matrix ** 2, axis=1)), 1e-12)
    scaled = matrix / size[:, None]
    free, found = np.ones(len(scaled), dtype=bool), np.zeros(len(scaled))
    while True:  # non-negative parameters with negative estimates are removed, and the others are fitted again
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


@dataclass(frozen=True, eq=False)
class Stage:
    """First-stage estimates of a chain, at the command delay with the smallest simulation error.

    Attributes:
        problem: estimation problem of the chain.
        linear: least-squares estimates of each joint, with standard errors.
        values: initial parameter values of each joint for the second stage, by name.
    """

    problem: ChainProblem
    linear: list[LinearFit]
    values: list[dict[str, float]]


def chain_problem(robot: Robot, k: int, entries: Sequence[ActuatorLog], law: DriveLaw,
                  known: Sequence[Mapping[str, float]], delay: float | None, restart: float | None,
                  still: Ints) -> ChainProblem:
    """Return the estimation problem of chain k, with no parameter to estimate yet."""
    logs = []
    chain = robot_chains(robot)[k]
    for entry in entries:
        own: Chain = robot_chains(entry.robot)[k] if entry.robot is not None else chain
        gap = GAP_INTERVALS * float(np.median(np.diff(entry.recording.t)))
        gains = dict(entry.gains)
        if law.name == "voltage" and entry.recording.voltage is not None:
            gains["vin"] = float("nan")  # the logged voltage is used instead
        logs.append(ChainLog.from_log(own, ActuatorLog(entry.recording, gains), law, gap, restart))
    names = tuple(robot.joint_names[j] for j in chain.joints)
    fixed = {} if delay is None else {"delay": delay}
    tables = tuple({**known[j], **fixed} for j in chain.joints)
    return ChainProblem(law, names, tuple(logs), tables, (),
                        still=tuple(np.flatnonzero(np.isin(chain.joints, still)).tolist()))


def first_stage(problem: ChainProblem) -> Stage:
    """Return the first stage of a chain: linear estimates with friction model M1, at the delay and speed limit with the
    smallest simulation error."""
    interval = float(np.median(np.diff(problem.logs[0].signals.t)))
    given = problem.known[0].get("delay")
    best: tuple[float, float, ChainProblem, list[dict[str, float]]] | None = None
    for limit in _speed_limits(problem):
        limited = problem if limit == np.inf else replace(
            problem, known=tuple({**table, "speed_limit": limit} for table in problem.known))
        filtered = filtered_logs(limited)
        for late in [given] if given is not None else [share * interval for share in _STARTING_DELAYS]:
            more = {"delay": late} if limit == np.inf else {"delay": late, "speed_limit": limit}
            values = [{**fit.values, **more} for fit in linear_fit(limited, filtered, late, has_errors=False)]
            for start in (values, _damped(problem, values, interval)):
                residual = problem.residuals(problem.start(start))
                cost = np.inf if residual is None else float(np.mean(residual ** 2))
                if best is None or cost < best[0]:
                    best = cost, late, limited, start
    assert best is not None
    _, late, limited, values = best
    linear = linear_fit(limited, filtered_logs(limited), late)
    return Stage(quick_enough(problem, problem.start(values)), linear, values)


def _speed_limits(problem: ChainProblem) -> list[float]:
    """Return initial values of the drive's speed limit, rad/s, for the second stage."""
    if not any(one.name == "speed_limit" for one in problem.unknowns):
        return [np.inf]
    return [share * largest_speed(problem)[1] for share in _SPEED_SHARES]


def largest_speed(problem: ChainProblem) -> tuple[float, float]:
    """Return the largest speeds of the commands and of the measured positions over a few rows, rad/s."""
    found = [(0.0, 0.0)]
    for log in problem.logs:
        s = log.signals
        span = (s.t[_SPEED_ROWS:] - s.t[:-_SPEED_ROWS])[:, None]
        is_on = (s.supply[_SPEED_ROWS:] > 0.0) & (s.supply[:-_SPEED_ROWS] > 0.0)
        found.append((float(np.max(np.abs(s.command[_SPEED_ROWS:] - s.command[:-_SPEED_ROWS]) / span * is_on)),
                      float(np.max(np.abs(s.q[_SPEED_ROWS:] - s.q[:-_SPEED_ROWS]) / span * is_on))))
    return max(one for one, _ in found), max(other for _, other in found)


def _damped(problem: ChainProblem, values: Sequence[Mapping[str, float]], interval: float) -> list[dict[str, float]]:
    """Return first-stage values with armature and damping raised until no joint oscillates faster than the log can
    resolve.

    At low rates, least squares may give zero for both, and the simulation of a stiff drive then diverges. A light joint
    with zero gains would not follow its commands, so each gain is at least a fraction of the median of all joints.
    """
    damped = []
    usual = {name: float(np.median([values[j][name] for j in problem.moving])) for name in problem.law.estimated
             if all(name in own for own in values)}
    for known, first in zip(problem.known, values, strict=True):
        own = {**first, **{name: max(first[name], _MIN_GAIN_SHARE * value) for name, value in usual.items()}}
        numbers = problem.law.numbers({**{item.name: item.value for item in problem.law.parameters}, **known, **own})
        stiffness = abs(numbers.get(c.KP, 0.0) * numbers.get(c.TORQUE_GAIN, 1.0))
        armature = max(own["armature"], stiffness * (interval * _ROWS_PER_PERIOD / (2.0 * np.pi)) ** 2)
        damping = max(own["viscous"], 2.0 * _DAMPING_RATIO * float(np.sqrt(stiffness * armature)))
        damped.append({**own, "armature": armature, "viscous": damping})
    return damped


def with_friction(problem: ChainProblem, model: str, also: Sequence[str], delay: float | None) -> ChainProblem:
    """Return the estimation problem with armature, a friction model, offset, unknown drive parameters and the
    parameters `also` as unknowns, and the delay unless it is given."""
    drive = [name for name in problem.law.estimated if any(name not in table for table in problem.known)
             and not all(name in log.gains for log in problem.logs)]
    own = {item.name for item in problem.law.parameters}
    more = [name for name in also if name in MECHANICAL_PARAMETERS or name in own]
    return problem.estimating(("armature", *FRICTION_MODELS[model], "offset", *drive, *more),
                              shared=() if delay is not None else ("delay",))


def quick_enough(problem: ChainProblem, x: Array) -> ChainProblem:
    """Return the problem with the longest integration step whose error is much smaller than the residuals at x
    (unknowns,)."""
    for step, error, finer in step_errors(problem, x):
        if np.all(np.mean(error ** 2, axis=0) <= _MAX_STEP_SHARE ** 2 * np.mean(finer ** 2, axis=0)):
            return replace(problem, step=step, slope_step=step)
    return replace(problem, step=SIMULATION_STEPS[-1], slope_step=SIMULATION_STEPS[-1])


def step_errors(problem: ChainProblem, x: Array) -> Iterator[tuple[float, Array, Array]]:
    """Yield integration steps, s, the longest first, each with its position error (rows, dof) and the residuals at half
    the step (rows, dof)."""
    interval = float(np.median(np.concatenate([np.diff(log.signals.t) for log in problem.logs])))
    for step in SIMULATION_STEPS:  # no step is longer than the interval between two rows
        own, finer = (replace(problem, step=one).residuals(x) for one in (step, 0.5 * min(step, interval)))
        if own is not None and finer is not None:
            yield step, _RICHARDSON_FACTOR * (own - finer), finer
