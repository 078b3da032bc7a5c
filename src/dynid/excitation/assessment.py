"""Assessment: what a motion tells about a model and what it leaves free of every limit, whoever made it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dynid.errors import NotPossibleError
from dynid.excitation.exciting_motion import ExcitingMotion, nominal_base_values
from dynid.excitation.limits.limit_check import check_limits
from dynid.excitation.limits.motion_limits import Limits
from dynid.excitation.limits.nonlinear import TorqueLimit
from dynid.excitation.search.experiment_design import ExperimentDesign, design_experiment
from dynid.excitation.search.options import Measurement, PriorKnowledge
from dynid.excitation.trajectories.composite import Slowed
from dynid.excitation.trajectories.families import Fourier
from dynid.excitation.trajectories.trajectory import Trajectory
from dynid.model import LinearModel
from dynid.robot import Robot

_SLOWER = 1.1  # stretch of a motion that asks too much
BISECTION_STEPS = 40
_BY_SPEED = ("velocity", "acceleration", "jerk", "torque")  # what a slower run mends
_UP_TO_SPEED = 0.3  # s to the top speed of a joint whose acceleration nobody limits
_MEASUREMENT, _NO_PRIOR = Measurement(), PriorKnowledge()


def assess(model: LinearModel | Robot, trajectory: Trajectory, limits: Limits | None = None, *,
           measurement: Measurement = _MEASUREMENT, prior: PriorKnowledge = _NO_PRIOR, seed: int = 0) -> ExcitingMotion:
    """A motion with its condition number, the standard deviations to expect of every base parameter and its use of
    every limit, as `excite` gives them for those it finds; run more slowly where limits or the nominal torques ask
    for it.

    model, limits, measurement, prior: as in `excite`. A motion that leaves the ranges or the space is refused.
    """
    return _assessed(design_experiment(model, limits, Fourier(), "condition", measurement, prior), trajectory, seed)


def assess_best(model: LinearModel | Robot, trajectories: Sequence[Trajectory], limits: Limits | None = None, *,
                measurement: Measurement = _MEASUREMENT, seed: int = 0) -> ExcitingMotion:
    """Return the motion with the smallest typical deviation as `assess` does; the others are not checked.

    The typical deviation is the median of the expected ones in shares of nominal values, at the speed as given.
    """
    design = design_experiment(model, limits, Fourier(), "condition", measurement, _NO_PRIOR)
    nominal = np.abs(nominal_base_values(design.base))

    def typical(trajectory: Trajectory) -> float:
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = design.deviations(trajectory) / nominal
        return float(np.median(np.where(np.isfinite(relative), relative, 1e12)))

    return _assessed(design, min(trajectories, key=typical), seed)


def _assessed(design: ExperimentDesign, trajectory: Trajectory, seed: int) -> ExcitingMotion:
    """A motion of a design, slowed down as far as limits ask for it, with what it should tell."""
    fitting = slow_enough(trajectory, design.limits, design.torque)
    report = replace(design.check(fitting), unchecked=design.unchecked)
    condition = design.condition(fitting)
    return ExcitingMotion(
        trajectory=fitting, core=fitting, model=design.model, base=design.base, limits=design.limits,
        criterion="condition", value=condition, condition=condition, deviations=design.deviations(fitting),
        noise=design.noise, rate=design.rate, history=(), report=report, torque=design.torque, seed=seed, starts=0,
        elapsed=0.0)


def slow_enough(trajectory: Trajectory, limits: Limits, torque: TorqueLimit | None = None) -> Trajectory:
    """The same way as slowly as velocity, acceleration, jerk and nominal torques need; an error where the way itself is
    not allowed."""
    stretch = 1.0
    for _ in range(BISECTION_STEPS):
        found = trajectory if stretch == 1.0 else Slowed(trajectory, stretch)
        wrong = check_limits(found, limits, torque).violated
        if not wrong:
            return found
        lasting = [usage for usage in wrong if usage.kind not in _BY_SPEED]
        if lasting:
            raise NotPossibleError(f"the motion violates a limit: {lasting[0]}")
        stretch *= _SLOWER
    raise NotPossibleError(f"the motion violates a limit even {stretch:.0f} times slower: {wrong[0]}")


def with_accelerations(limits: Limits) -> tuple[Limits, tuple[str, ...]]:
    """The limits with an acceleration for every joint that has a top speed, and the joints where it was assumed: that
    which reaches the top speed in 0.3 s."""
    assumed = ~np.isfinite(limits.acceleration) & np.isfinite(limits.velocity)
    names = tuple(name for name, yes in zip(limits.names, assumed, strict=True) if yes)
    return replace(limits, acceleration=np.where(assumed, limits.velocity / _UP_TO_SPEED, limits.acceleration)), names
