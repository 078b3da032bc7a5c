"""Options and inputs of a search for an optimal motion, with functions that evaluate and check any motion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import DynidError
from dynid.excitation.information import Information, assumed_noise, magnitudes
from dynid.excitation.limits.limit_check import LimitReport, check_limits
from dynid.excitation.limits.motion_limits import MARGIN, Limits
from dynid.excitation.limits.nonlinear import NonlinearLimit, TorqueLimit, WorkspaceLimit
from dynid.excitation.search.criteria import Criterion
from dynid.excitation.search.motion_problem import MotionProblem
from dynid.excitation.trajectories.families import ConstrainedFamily, Family
from dynid.excitation.trajectories.trajectory import Trajectory
from dynid.model import CompleteModel, LinearModel, Model, complete, make_terms
from dynid.quantities import RATE, check_quantity, check_samples
from dynid.regression import BaseParameters, Regression, base_parameters
from dynid.robot import Robot

_SAMPLES_A_WAVE = 40  # samples per period of the highest frequency, in the computation of the criterion
MIN_SAMPLES, MAX_SAMPLES = 160, 500  # smallest and largest number of samples in the computation of the criterion
NOISE_DEPENDENT = ("a", "largest")  # criteria that depend on the torque noise
_SIGN_WIDTH = 0.015  # width of a smooth sign relative to the top speed


@dataclass(frozen=True, eq=False)
class ExperimentDesign:
    """All inputs of a search for an optimal motion.

    Attributes:
        problem: the optimisation problem, with smooth signs of velocities.
        information: Fisher information of the actual model, with discontinuous signs.
        torque: the nominal model with the torque limits, if known.
        unchecked: limits that could not be checked.
        rate: sampling rate of the future log, Hz.
        noise: standard deviations of the torque noise (dof,), N m or N, for the expected standard errors.
    """

    problem: MotionProblem
    information: Information
    torque: TorqueLimit | None
    unchecked: tuple[str, ...]
    rate: float
    noise: Array

    @property
    def model(self) -> LinearModel:
        return self.information.layout.model

    @property
    def base(self) -> BaseParameters:
        return self.information.layout.base

    @property
    def limits(self) -> Limits:
        return self.problem.limits

    @property
    def all_limits(self) -> Limits:
        """Limits of all coordinates of the robot, including coordinates that depend on those of the search."""
        return self.limits

    def whole(self, trajectory: Trajectory) -> Trajectory:
        """Return the motion of the whole robot for a motion of the coordinates of the search."""
        return trajectory

    def samples(self, trajectory: Trajectory) -> tuple[Array, Array, Array]:
        """Return q, dq and ddq (samples, dof) of the future log, without the last instant, which may equal the first.
        """
        check_samples(trajectory.duration, self.rate)
        count = max(2, round(trajectory.duration * self.rate))
        motion = trajectory.at(np.linspace(0.0, trajectory.duration, count, endpoint=False))
        return motion.q, motion.dq, motion.ddq

    def value(self, trajectory: Trajectory) -> float:
        """Return the criterion at the samples of the future log, with discontinuous signs of velocities."""
        matrix = self.information.matrix(self.information.entries(*self.samples(trajectory)))
        return self.problem.criterion(matrix)[0]

    def standard_errors(self, trajectory: Trajectory) -> Array:
        """Return the expected standard error of every base parameter (base,)."""
        return replace(self.information, weights=1.0 / self.noise).standard_errors(*self.samples(trajectory))

    def condition(self, trajectory: Trajectory) -> float:
        """Return the condition number of the unscaled, unweighted base regressor."""
        plain = replace(self.information, weights=np.ones_like(self.information.weights),
                        scale=np.ones_like(self.information.scale), known=None)
        s = np.linalg.svd(plain.factor(*self.samples(trajectory)), compute_uv=False)
        return float(s[0] / s[-1]) if s[-1] > 0 else np.inf

    def nonlinear_excess(self, report: LimitReport) -> float:
        """Return the largest relative violation of the nonlinear limits in a report; zero if there are none."""
        return max((u.excess for u in report.usages if u.kind in ("torque", "space")), default=0.0)

    def check(self, trajectory: Trajectory) -> LimitReport:
        """Return the use of all limits by a motion, on a time grid at least ten times finer than that of the search."""
        points = max(10 * len(self.problem.t), 5000)
        return check_limits(trajectory, self.limits, self.torque, points=points, unchecked=self.unchecked)


def design_experiment(model: LinearModel | Robot, limits: Limits | None, family: Family, criterion: str | Criterion,
                      measurement: Measurement, prior: PriorKnowledge) -> ExperimentDesign:
    """Return the optimisation problem of a motion. The arguments are those of `excite`."""
    if isinstance(model, Robot):
        model = Model(model, make_terms(model, defaults=True))
    limits = _checked_limits(model, limits)
    criterion = Criterion(criterion) if isinstance(criterion, str) else criterion
    base = base_parameters(model, ordered=False) if prior.base is None else prior.base
    scale = prior.scale
    if isinstance(scale, str) or (scale is None and criterion.name in NOISE_DEPENDENT):
        scale = magnitudes(base, complete(model).robot)
    torque, unchecked = _torque_limit(model, base, limits, prior.nominal)
    noise, assumed = measurement.noise, None
    if noise is None and prior.regression is None:
        assumed = assumed_noise(model, limits, nominal_values(model, prior.nominal))
        noise = assumed if criterion.name in NOISE_DEPENDENT else None
    information = Information.from_model(model, base, noise=noise, scale=scale, known=prior.regression)
    problem = _problem(family, information, criterion, limits, torque)
    return ExperimentDesign(problem, information, torque, unchecked, measurement.rate,
                            1.0 / information.weights if assumed is None else assumed)


def nominal_values(model: LinearModel, given: ArrayLike | None = None) -> Array | None:
    """Return given parameters (parameters,), or nominal parameters of the robot file with zero for unknown friction;
    None if the file has no inertias."""
    if given is not None:
        return model.parameters.vector(given)
    if any(p.nominal is None for p in model.parameters if p.body is not None):
        return None
    return np.array([0.0 if p.nominal is None else p.nominal for p in model.parameters])


def _checked_limits(model: LinearModel, limits: Limits | None) -> Limits:
    """Return the given limits, or the robot's own; raise an error for a joint without any limit."""
    if limits is None:
        robot = complete(model).robot
        if robot is None:
            raise DynidError("a model without a robot has no limits of its own; give limits, e.g. Limits(...)",
                             code="no-limits")
        limits = Limits.from_robot(robot, margin=MARGIN)
    if limits.dof != model.dof:
        raise DynidError(f"the limits are for {limits.dof} joints, but the model has {model.dof}")
    limits.refuse_unbounded()
    return limits


def _torque_limit(model: LinearModel, base: BaseParameters, limits: Limits,
                  nominal: ArrayLike | None) -> tuple[TorqueLimit | None, tuple[str, ...]]:
    """Return the torque limits of the nominal model, and notes on torques that cannot be checked."""
    if not np.isfinite(limits.torque).any():
        return None, ()
    theta = nominal_values(model, nominal)
    missing = [p.name for p in model.parameters if p.nominal is None] if nominal is None else []
    if theta is None or len(missing) == len(theta):
        return None, ("torque limits were not checked: the robot file has no inertias; give nominal parameters, from "
                      "which torques are computed",)
    notes = (f"torques were computed without {', '.join(missing[:4])}{' ..' if len(missing) > 4 else ''}, "
             "whose values are not known",) if missing else ()
    return TorqueLimit(Information.from_model(model, base), base.reduce(theta), limits.torque, limits.names), notes


def _problem(family: Family, information: Information, criterion: Criterion, limits: Limits,
             torque: TorqueLimit | None) -> MotionProblem:
    """Return the search problem, with smooth signs of velocities so that criterion and limits are differentiable."""
    t = np.linspace(0.0, family.duration, int(np.clip(_SAMPLES_A_WAVE * family.waves, MIN_SAMPLES, MAX_SAMPLES)))
    model = smooth_model(information.layout.model, limits)
    nonlinear: list[NonlinearLimit] = []
    if torque is not None:
        nonlinear.append(replace(torque, information=with_model(torque.information, model)))
    if limits.space is not None and len(limits.space.names):
        nonlinear.append(WorkspaceLimit(limits.space))
    if limits.loops is not None:
        nonlinear.append(limits.loops)
    motions = ConstrainedFamily.from_family(family.below(limits.bandwidth), limits.dof, limits.start, limits.end)
    return MotionProblem(motions, with_model(information, model), criterion, limits, tuple(nonlinear), t)


def smooth_model(model: LinearModel, limits: Limits) -> CompleteModel:
    """Return the model with smooth signs of velocities, whose width is a share of the top speeds."""
    speed = limits.velocity[np.isfinite(limits.velocity)]
    return complete(model).with_smooth_signs(_SIGN_WIDTH * float(np.median(speed)) if len(speed) else 0.03)


def with_model(information: Information, model: LinearModel) -> Information:
    return replace(information, layout=replace(information.layout, model=model))


Progress = Callable[[float, float], None]  # seconds so far, best value so far


@dataclass(frozen=True, eq=False)
class BestSoFar:
    """The best motion so far of a running search.

    Attributes:
        seconds: time since the start, s.
        value: value of the criterion.
        condition: condition number of the base regressor.
        base, std: base parameters and their expected standard errors (base,).
    """

    seconds: float
    value: float
    condition: float
    base: BaseParameters
    std: Array


@dataclass(frozen=True, eq=False)
class Search:
    """Budget and start of a search.

    Attributes:
        budget: time limit, s.
        rounds: number of rounds of four starts. With rounds and no budget, the result depends on the seed alone.
        seed: seed of the random starts.
        start: motion of the family to start from.
        threads: number of threads. Default: all cores.
        progress: called with the seconds so far and the best value.
        best: called with every motion that is better than all before.
    """

    budget: float | None = 30.0
    rounds: int | None = None
    seed: int = 0
    start: Trajectory | None = None
    threads: int | None = None
    progress: Progress | None = None
    best: Callable[[BestSoFar], None] | None = None

    def __post_init__(self) -> None:
        if self.budget is None and self.rounds is None:
            raise DynidError("a search needs a budget in seconds, a number of rounds, or both", code="no-budget")


@dataclass(frozen=True, eq=False)
class Measurement:
    """The future log of a designed motion: its sampling rate, Hz, and the standard deviation of its torque noise, N m
    or N, one number or (dof,). The default noise is a share of the typical torque of each joint."""

    rate: float = 100.0
    noise: Array | float | None = None

    def __post_init__(self) -> None:
        check_quantity(RATE, self.rate, "the sampling rate")


@dataclass(frozen=True, eq=False)
class PriorKnowledge:
    """Knowledge that is available before the motion is designed.

    Attributes:
        regression: compressed regression of earlier logs, which the motion shall complement.
        nominal: parameters (parameters,) for the torque limits. Default: those of the model, zero if unknown.
        scale: magnitudes of the base parameters (base,), or "prior" for those of the nominal model. Default: "prior"
            for the criteria "a" and "largest", and one for the other criteria.
        base: base parameters of the model, to save their computation; None to compute the base parameters.
    """

    regression: Regression | None = None
    nominal: ArrayLike | None = None
    scale: Literal["prior"] | Array | None = None
    base: BaseParameters | None = None
