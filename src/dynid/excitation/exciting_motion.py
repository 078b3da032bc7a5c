"""An exciting motion and its assessment: condition number, expected standard errors, and use of every limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import NotPossibleError
from dynid.excitation.information import relative_errors
from dynid.excitation.limits.limit_check import LimitReport, Usage, check_limits
from dynid.excitation.limits.motion_limits import Limits
from dynid.excitation.limits.nonlinear import TorqueLimit
from dynid.excitation.search.experiment_design import ExperimentDesign, Measurement, PriorKnowledge, design_experiment
from dynid.excitation.standing.whole_body_trajectory import WholeBodyTrajectory
from dynid.excitation.trajectories.families import Fourier
from dynid.excitation.trajectories.trajectory import Slowed, Trajectory
from dynid.excitation.trajectories.trajectory_file import write_trajectory
from dynid.excitation.waypoints import approach
from dynid.model import LinearModel
from dynid.regression import BaseParameters
from dynid.robot import Robot

_TORQUE_STEP = 1.1  # smallest factor on the duration of a motion whose torques are too large
_LARGEST_TORQUE_STEP = 2.0  # largest factor on the duration; gravity torques do not decrease at low speed
_SPARE_DURATION = 1e-3  # relative excess of the duration, so that a check on another grid agrees
_MAX_SLOWDOWN = 40.0  # factor on the duration beyond which a motion is refused
_DURATION_POWERS = {"velocity": 1, "acceleration": 2, "jerk": 3}  # quantity ~ 1 / duration ** power
_UP_TO_SPEED = 0.3  # s to reach the top speed of a joint without an acceleration limit
_MEASUREMENT, _NO_PRIOR = Measurement(), PriorKnowledge()


@dataclass(frozen=True, eq=False)
class ExcitingMotion:
    """An exciting motion with its expected accuracy and its use of the limits.

    Attributes:
        trajectory: the motion, with the path from and to the home posture, if requested.
        core: the exciting part of the motion, without the path from and to the home posture.
        model, base, limits: model, its base parameters, and limits of the motion.
        criterion, value: criterion and its value over the core at `rate` (Hz).
        condition: condition number of the unscaled base regressor.
        std: expected standard errors (base,) under torque noise `noise`, including earlier logs if given.
        noise: standard deviation of white torque noise (dof,), N m; default: a share of each joint's typical torque.
        history: (seconds, best value) during the search.
        report: use of every limit.
        torque: the nominal model with the torque limits, if known.
        seed, starts, elapsed: seed of the search, number of its starts, and its time, s.
        interrupted: whether the user stopped the search.
    """

    trajectory: Trajectory
    core: Trajectory
    model: LinearModel
    base: BaseParameters
    limits: Limits
    criterion: str
    value: float
    condition: float
    std: Array
    noise: Array
    rate: float
    history: tuple[tuple[float, float], ...]
    report: LimitReport
    torque: TorqueLimit | None
    seed: int
    starts: int
    elapsed: float
    interrupted: bool = False

    def from_home(self, home: ArrayLike) -> ExcitingMotion:
        """Return the motion with the path from a home posture (dof,) and back, by quintics within all limits."""
        whole = approach(self.core, home, self.limits, self.torque)
        limits = replace(self.limits, start=None, end=None).reaching(home)
        report = check_limits(whole, limits, self.torque, points=10000, unchecked=self.report.unchecked)
        return replace(self, trajectory=whole, report=report)

    @property
    def relative_std(self) -> Array:
        """Expected standard errors (base,) in percent of the nominal base parameters; infinite if unknown or zero."""
        return relative_errors(self.base, self.std)

    def configurations(self, t: ArrayLike) -> Array:
        """Return the configurations at times t (m,), s: (m, dof), or (m, 7 + n) for a free base."""
        if isinstance(self.trajectory, WholeBodyTrajectory):
            return self.trajectory.states(t).q
        return self.trajectory.at(t).q

    def torques(self, theta: Array, t: ArrayLike) -> Array:
        """Return the torques (m, dof) for parameters theta (parameters,) at times t (m,), s. With standing feet, the
        result has the torques of the nominal model, and nan for the base."""
        if isinstance(self.trajectory, WholeBodyTrajectory):
            joints = self.trajectory.torques(t)
            return np.hstack([np.full((len(joints), self.trajectory.dof - joints.shape[1]), np.nan), joints])
        q, dq, ddq, _ = self.trajectory.at(t)
        return self.model.regressor(*(np.ascontiguousarray(x) for x in (q, dq, ddq))) @ theta

    def summary(self) -> str:
        """Return a summary of the motion: condition number, expected standard errors and limits, in a few lines."""
        lines = [f"{self.core.duration:g} s motion of {self.core.dof} joints, {self.criterion} {self.value:.4g}, "
                 f"condition number {self.condition:.1f}, from {self.starts} starts in {self.elapsed:.1f} s"
                 + (" (interrupted, best so far)" if self.interrupted else "")]
        lines.append(f"expected standard errors at {self.rate:g} Hz and noise of "
                     f"{', '.join(f'{x:.3g}' for x in self.noise)} N m:")
        order = np.argsort(-self.relative_std)
        for k in order[:10]:
            relative = self.relative_std[k]
            shown = f"{relative:.2g} %" if np.isfinite(relative) else "nominal value unknown or zero"
            lines.append(f"  {self.base.names[k]:8s} {self.std[k]:.3g} {self.base.units[k]}  ({shown})")
        tight = sorted(self.report.usages, key=lambda u: -u.excess)[:5]
        lines += ["closest to their limits:", *(f"  {usage}" for usage in tight)]
        lines += [f"note: {note}" for note in self.report.unchecked]
        return "\n".join(lines)

    def save(self, path: str | Path, rate: float | None = None) -> None:
        """Write the motion atomically to .csv, .npz or .yaml (ROS 2 JointTrajectory), by the extension of the path.

        The file of a robot with standing feet also has the pose of the base and the torques of the nominal model. rate:
        rows per second, Hz; by default that of the future log.
        """
        rate, names = self.rate if rate is None else rate, self.limits.names
        whole = self.trajectory
        if isinstance(whole, WholeBodyTrajectory):
            write_trajectory(whole.joints, path, rate=rate, joints=names[-whole.joints.dof:], extra=whole.columns)
        else:
            write_trajectory(whole, path, rate=rate, joints=names)


def assess(model: LinearModel | Robot, trajectory: Trajectory, limits: Limits | None = None, *,
           measurement: Measurement = _MEASUREMENT, prior: PriorKnowledge = _NO_PRIOR, seed: int = 0) -> ExcitingMotion:
    """Return a given motion with its condition number, the expected standard errors of the base parameters and its use
    of every limit.

    The motion is slowed down if limits or nominal torques require it. An error is raised if the motion leaves the joint
    ranges or the workspace. Arguments model, limits, measurement and prior are those of `excite`.
    """
    return _assessed(design_experiment(model, limits, Fourier(), "condition", measurement, prior), trajectory, seed)


def assess_best(model: LinearModel | Robot, trajectories: Sequence[Trajectory], limits: Limits | None = None, *,
                measurement: Measurement = _MEASUREMENT, seed: int = 0) -> ExcitingMotion:
    """Return the motion with the smallest typical standard error of several motions, assessed as by `assess`.

    The typical standard error is the median of the expected standard errors relative to nominal values, at the given
    speed. Limits of the other motions are not checked.
    """
    design = design_experiment(model, limits, Fourier(), "condition", measurement, _NO_PRIOR)
    best = min(trajectories, key=lambda one: np.median(relative_errors(design.base, design.standard_errors(one))))
    return _assessed(design, best, seed)


def _assessed(design: ExperimentDesign, trajectory: Trajectory, seed: int) -> ExcitingMotion:
    """Return a motion with its expected accuracy and its use of limits, slowed down if necessary."""
    fitting = slow_enough(trajectory, design.limits, design.torque)
    report = replace(design.check(fitting), unchecked=design.unchecked)
    condition = design.condition(fitting)
    return ExcitingMotion(
        trajectory=fitting, core=fitting, model=design.model, base=design.base, limits=design.limits,
        criterion="condition", value=condition, condition=condition, std=design.standard_errors(fitting),
        noise=design.noise, rate=design.rate, history=(), report=report, torque=design.torque, seed=seed, starts=0,
        elapsed=0.0)


def slow_enough(trajectory: Trajectory, limits: Limits, torque: TorqueLimit | None = None) -> Trajectory:
    """Return a motion along the path of a trajectory, slowed down until it respects the limits of velocity,
    acceleration, jerk and nominal torque.

    Raises:
        NotPossibleError: If the path itself violates a limit, or the motion does so even 40 times slower.
    """
    slowdown, tried = 1.0, [(1.0, check_limits(trajectory, limits, torque))]
    while wrong := tried[-1][1].violated:
        lasting = [usage for usage in wrong if usage.kind not in (*_DURATION_POWERS, "torque")]
        if lasting:
            raise NotPossibleError(f"the motion violates a limit at any speed: {lasting[0]}", code="limits-exceeded")
        if slowdown >= _MAX_SLOWDOWN:
            raise NotPossibleError(f"the motion violates a limit even {slowdown:.0f} times slower: {wrong[0]}",
                                   code="limits-exceeded")
        slowdown = min(_MAX_SLOWDOWN, slowdown * max(_needed_factor(usage, tried) for usage in wrong))
        slowed = check_limits(Slowed(trajectory, slowdown), replace(limits, space=None), torque)  # of the same path
        tried.append((slowdown, slowed))
    return trajectory if slowdown == 1.0 else Slowed(trajectory, slowdown)


def _needed_factor(usage: Usage, tried: Sequence[tuple[float, LimitReport]]) -> float:
    """Return the factor on the duration that satisfies a violated limit; tried: previous slowdowns and their limit
    reports. The peak torque is extrapolated linearly from the last two reports. The peak is usually convex in 1 /
    slowdown, because it also contains gravity and friction, so the extrapolation does not overestimate the slowdown."""
    if usage.kind != "torque":
        return float((1.0 + usage.excess) ** (1.0 / _DURATION_POWERS[usage.kind])) * (1.0 + _SPARE_DURATION)
    if len(tried) == 1:
        return _TORQUE_STEP
    (before, report), (now, _) = tried[-2:]
    earlier = next(u.value for u in report.usages if u.kind == "torque" and u.where == usage.where)
    speed = 1.0 - (usage.value - usage.bound) / max(earlier - usage.value, 1e-300) * (now / before - 1.0)
    factor = 1.0 / speed if speed > 0.0 else np.inf
    return min(max(factor, _TORQUE_STEP), _LARGEST_TORQUE_STEP)


def with_accelerations(limits: Limits) -> tuple[Limits, tuple[str, ...]]:
    """Return the limits with an acceleration limit for every joint that has a top speed, and the names of the joints
    whose limit was assumed. The assumed acceleration reaches the top speed in 0.3 s."""
    assumed = ~np.isfinite(limits.acceleration) & np.isfinite(limits.velocity)
    names = tuple(name for name, yes in zip(limits.names, assumed, strict=True) if yes)
    return replace(limits, acceleration=np.where(assumed, limits.velocity / _UP_TO_SPEED, limits.acceleration)), names
