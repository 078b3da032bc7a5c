"""Assessment of a motion: expected standard errors and use of every limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dynid.errors import NotPossibleError
from dynid.excitation.exciting_motion import ExcitingMotion, nominal_base_values
from dynid.excitation.limits.limit_check import LimitReport, Usage, check_limits
from dynid.excitation.limits.motion_limits import Limits
from dynid.excitation.limits.nonlinear import TorqueLimit
from dynid.excitation.search.experiment_design import ExperimentDesign, Measurement, PriorKnowledge, design_experiment
from dynid.excitation.trajectories.families import Fourier
from dynid.excitation.trajectories.trajectory import Slowed, Trajectory
from dynid.model import LinearModel
from dynid.robot import Robot

_TORQUE_STEP = 1.1  # smallest factor on the duration of a motion whose torques are too large
_LARGEST_TORQUE_STEP = 2.0  # the largest; torques of gravity alone would ask for a standstill
_SPARE_DURATION = 1e-3  # share that a motion lasts longer than its limits ask: a check on another grid must agree
_MAX_SLOWDOWN = 40.0  # factor on the duration beyond which a motion is refused
_DURATION_POWERS = {"velocity": 1, "acceleration": 2, "jerk": 3}  # quantity ~ 1 / duration ** power
_UP_TO_SPEED = 0.3  # s to the top speed of a joint whose acceleration nobody limits
_MEASUREMENT, _NO_PRIOR = Measurement(), PriorKnowledge()


def assess(model: LinearModel | Robot, trajectory: Trajectory, limits: Limits | None = None, *,
           measurement: Measurement = _MEASUREMENT, prior: PriorKnowledge = _NO_PRIOR, seed: int = 0) -> ExcitingMotion:
    """Return a motion with its condition number, the expected standard errors of every base parameter and its use of
    every limit, slowed down if limits or nominal torques require it.

    model, limits, measurement, prior: as in `excite`. Refuses a motion that leaves the joint ranges or the workspace.
    """
    return _assessed(design_experiment(model, limits, Fourier(), "condition", measurement, prior), trajectory, seed)


def assess_best(model: LinearModel | Robot, trajectories: Sequence[Trajectory], limits: Limits | None = None, *,
                measurement: Measurement = _MEASUREMENT, seed: int = 0) -> ExcitingMotion:
    """Return the motion with the smallest typical standard error as `assess` does; the others are not checked.

    The typical standard error is the median of the expected ones relative to nominal values, at the given speed.
    """
    design = design_experiment(model, limits, Fourier(), "condition", measurement, _NO_PRIOR)
    nominal = np.abs(nominal_base_values(design.base))

    def typical(trajectory: Trajectory) -> float:
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = design.deviations(trajectory) / nominal
        return float(np.median(np.where(np.isfinite(relative), relative, 1e12)))

    return _assessed(design, min(trajectories, key=typical), seed)


def _assessed(design: ExperimentDesign, trajectory: Trajectory, seed: int) -> ExcitingMotion:
    """Return an assessed motion of a design, slowed down if necessary."""
    fitting = slow_enough(trajectory, design.limits, design.torque)
    report = replace(design.check(fitting), unchecked=design.unchecked)
    condition = design.condition(fitting)
    return ExcitingMotion(
        trajectory=fitting, core=fitting, model=design.model, base=design.base, limits=design.limits,
        criterion="condition", value=condition, condition=condition, deviations=design.deviations(fitting),
        noise=design.noise, rate=design.rate, history=(), report=report, torque=design.torque, seed=seed, starts=0,
        elapsed=0.0)


def slow_enough(trajectory: Trajectory, limits: Limits, torque: TorqueLimit | None = None) -> Trajectory:
    """Return the same path as slowly as the limits of velocity, acceleration, jerk and nominal torque need.

    Raises:
        NotPossibleError: If the path itself violates a limit, or the motion does so even 40 times slower.
    """
    slowdown, tried = 1.0, [(1.0, check_limits(trajectory, limits, torque))]
    while wrong := tried[-1][1].violated:
        lasting = [usage for usage in wrong if usage.kind not in (*_DURATION_POWERS, "torque")]
        if lasting:
            raise NotPossibleError(f"the motion violates a limit: {lasting[0]}", code="limits-exceeded")
        if slowdown >= _MAX_SLOWDOWN:
            raise NotPossibleError(f"the motion violates a limit even {slowdown:.0f} times slower: {wrong[0]}",
                                   code="limits-exceeded")
        slowdown = min(_MAX_SLOWDOWN, slowdown * max(_needed_factor(usage, tried) for usage in wrong))
        tried.append((slowdown, check_limits(Slowed(trajectory, slowdown), limits, torque)))
    return trajectory if slowdown == 1.0 else Slowed(trajectory, slowdown)


def _needed_factor(usage: Usage, tried: Sequence[tuple[float, LimitReport]]) -> float:
    """Return the factor on the duration for a violated limit; tried: all slowdowns so far and their reports.

    Torques also contain gravity and friction. If inertia adds to their peak, it is convex in 1 / slowdown, so a line
    through the last two reports does not overestimate the slowdown.
    """
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
    """Return the limits with an acceleration limit for every joint that has a top speed, and the joints where it was
    assumed.

    The assumed acceleration reaches the top speed in 0.3 s.
    """
    assumed = ~np.isfinite(limits.acceleration) & np.isfinite(limits.velocity)
    names = tuple(name for name, yes in zip(limits.names, assumed, strict=True) if yes)
    return replace(limits, acceleration=np.where(assumed, limits.velocity / _UP_TO_SPEED, limits.acceleration)), names
