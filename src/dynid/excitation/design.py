"""A design: what is asked of a motion, put together once, so that any motion can be valued and checked against it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import DynidError, NotPossibleError
from dynid.excitation.check import LimitReport, check
from dynid.excitation.constraints import Constraint, SpaceLimit, TorqueLimit
from dynid.excitation.criteria import Criterion
from dynid.excitation.family import Family, family
from dynid.excitation.information import Information, magnitudes
from dynid.excitation.limits import Limits
from dynid.excitation.search import Problem
from dynid.excitation.trajectory import Trajectory
from dynid.model import LinearModel, Model, complete, make_terms
from dynid.regression import BaseParameters, Regression, base_parameters
from dynid.robot import Robot

_SAMPLES_A_WAVE = 40  # of the highest frequency
_FEWEST, _MOST = 160, 500
_SMOOTH = 0.015  # width of a smooth sign as a share of the top speed


@dataclass(frozen=True, eq=False)
class Design:
    """problem: what the search works on, with smooth signs. sharp: the information of the model as it is.

    torque: the nominal model against the torque limits, if it is known; unchecked: what could not be looked at.
    rate: of the log to come, Hz. free_knots: whether the knots of a B-spline are searched for too.
    """

    problem: Problem
    sharp: Information
    torque: TorqueLimit | None
    unchecked: tuple[str, ...]
    rate: float
    free_knots: bool = False

    @property
    def model(self) -> LinearModel:
        return self.sharp.layout.model

    @property
    def base(self) -> BaseParameters:
        return self.sharp.layout.base

    @property
    def limits(self) -> Limits:
        return self.problem.limits

    def log(self, trajectory: Trajectory) -> tuple[Array, Array, Array]:
        """q, dq, ddq of the log to come; the last instant is left out because it may be the first again."""
        count = max(2, round(trajectory.duration * self.rate))
        motion = trajectory.at(np.linspace(0.0, trajectory.duration, count, endpoint=False))
        return motion.q, motion.dq, motion.ddq

    def value(self, trajectory: Trajectory) -> float:
        """The criterion itself, with hard signs and the samples of the log to come."""
        return self.problem.criterion(self.sharp.matrix(self.sharp.entries(*self.log(trajectory))))[0]

    def deviations(self, trajectory: Trajectory) -> Array:
        """Expected deviation of every base parameter (base,)."""
        return self.sharp.deviations(*self.log(trajectory))

    def condition(self, trajectory: Trajectory) -> float:
        """Condition number of the unscaled, unweighted base regressor."""
        plain = Information.of(self.model, self.base)
        s = np.linalg.svd(plain.factor(*self.log(trajectory)), compute_uv=False)
        return float(s[0] / s[-1]) if s[-1] > 0 else np.inf

    def check(self, trajectory: Trajectory) -> LimitReport:
        """Every limit on a grid at least ten times finer than the search's."""
        points = max(10 * len(self.problem.t), 5000)
        return check(trajectory, self.limits, self.torque, points=points, unchecked=self.unchecked)


def design(model: LinearModel | Robot, limits: Limits | None = None, *, duration: float = 20.0, harmonics: int = 5,
           kind: str = "fourier", period: float | None = None, rest: bool = True,
           knots: Array | Literal["free"] | None = None, pieces: int = 12, criterion: str | Criterion = "condition",
           noise: Array | float | None = None, scale: Literal["prior"] | Array | None = None,
           known: Regression | None = None, nominal: ArrayLike | None = None, base: BaseParameters | None = None,
           rate: float = 100.0) -> Design:
    """What is asked of a motion; the arguments are those of `excite`."""
    if isinstance(model, Robot):
        model = Model(model, make_terms(model, defaults=True))
    if limits is None:
        robot = complete(model).robot
        if robot is None:
            raise DynidError("a model without a robot has no limits of its own; give some, e.g. Limits(...)")
        limits = Limits.of(robot)
    if limits.dof != model.dof:
        raise DynidError(f"the limits are for {limits.dof} joints, the model has {model.dof}")
    if not rate > 0:
        raise DynidError(f"the sampling rate must be above zero, got {rate}")
    criterion = Criterion(criterion) if isinstance(criterion, str) else criterion
    base = base_parameters(model) if base is None else base
    if scale is None and criterion.name in ("a", "largest"):
        scale = "prior"
    scales = magnitudes(base, complete(model).robot) if isinstance(scale, str) else scale
    torque, unchecked = _torque_limit(model, base, limits, nominal)
    free_knots = isinstance(knots, str)
    if free_knots and (knots != "free" or kind != "bspline"):
        raise DynidError("knots are an array of inner knots, or 'free' for a search, and belong to 'bspline'")
    inner = None if isinstance(knots, str) else knots
    motions = _family(kind, limits, duration, harmonics, period, rest, inner, pieces)
    sharp = Information.of(model, base, noise=noise, scale=scales, known=known)
    problem = _problem(motions, sharp, criterion, limits, torque, harmonics, period)
    return Design(problem, sharp, torque, unchecked, rate, free_knots)


def _torque_limit(model: LinearModel, base: BaseParameters, limits: Limits,
                  nominal: ArrayLike | None) -> tuple[TorqueLimit | None, tuple[str, ...]]:
    """The nominal model against the torque limits, and what about it cannot be checked."""
    if not np.isfinite(limits.torque).any():
        return None, ()
    notes: tuple[str, ...] = ()
    if nominal is None:
        values = [p.nominal for p in model.parameters]
        bodies = [p.nominal is None for p in model.parameters if p.body is not None]
        if any(bodies) or all(v is None for v in values):
            return None, ("torque limits were not checked: the robot's source gives no inertias; "
                          "give nominal=, parameters to compute torques with",)
        missing = [p.name for p in model.parameters if p.nominal is None]
        if missing:
            notes = (f"torques were computed without {', '.join(missing[:4])}{' ..' if len(missing) > 4 else ''}, "
                     "whose values are not known",)
        theta = np.array([0.0 if v is None else v for v in values])
    else:
        theta = model.parameters.vector(nominal)
    return TorqueLimit(Information.of(model, base), base.reduce(theta), limits.torque, limits.names), notes


def _family(kind: str, limits: Limits, duration: float, harmonics: int, period: float | None, rest: bool,
            knots: Array | None, pieces: int) -> Family:
    if not (duration > 0 and np.isfinite(duration)):
        raise DynidError(f"a motion needs a duration above zero, got {duration}")
    if np.isfinite(limits.bandwidth):
        if kind != "fourier":
            raise DynidError(f"a bandwidth of {limits.bandwidth:g} Hz can only be kept by the family 'fourier', "
                             f"got '{kind}'")
        most = int(np.floor(limits.bandwidth * (period or duration) + 1e-9))
        if most < 1:
            raise NotPossibleError(f"a bandwidth of {limits.bandwidth:g} Hz leaves no harmonic of a period of "
                                   f"{period or duration:g} s: allow a longer period or a higher bandwidth")
        harmonics = min(harmonics, most)
    for j, name in enumerate(limits.names):
        if not (np.isfinite(limits.upper[j] - limits.lower[j]) or np.isfinite(limits.velocity[j])
                or np.isfinite(limits.acceleration[j])):
            raise DynidError(f"joint '{name}' has neither a range nor a limit of velocity or acceleration: nothing "
                             "bounds its motion, so give one of them")
    return family(kind, limits.dof, duration, harmonics=harmonics, period=period, rest=rest, start=limits.start,
                  end=limits.end, knots=knots, pieces=pieces)


def _problem(motions: Family, sharp: Information, criterion: Criterion, limits: Limits, torque: TorqueLimit | None,
             harmonics: int, period: float | None) -> Problem:
    runs = motions.duration / (period or motions.duration)
    waves = motions.null.shape[0] / 2 if motions.kind == "bspline" else harmonics * runs
    count = int(np.clip(_SAMPLES_A_WAVE * waves, _FEWEST, _MOST))
    t = np.linspace(0.0, motions.duration, count)
    speed = limits.velocity[np.isfinite(limits.velocity)]
    width = _SMOOTH * float(np.median(speed)) if len(speed) else 0.03
    gentle = complete(sharp.layout.model).with_smooth_signs(width)
    information = replace(sharp, layout=replace(sharp.layout, model=gentle))
    curved: list[Constraint] = []
    if torque is not None:
        curved.append(replace(torque, information=replace(torque.information,
                                                          layout=replace(torque.information.layout, model=gentle))))
    if limits.space is not None and len(limits.space.names):
        curved.append(SpaceLimit(limits.space))
    return Problem(motions, information, criterion, limits, tuple(curved), t)
