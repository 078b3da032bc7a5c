"""Optimal design of an exciting motion within all limits."""

from __future__ import annotations

import time
from dataclasses import replace

from dynid.errors import require_type
from dynid.excitation.exciting_motion import ExcitingMotion
from dynid.excitation.limits.motion_limits import Limits
from dynid.excitation.search.criteria import Criterion
from dynid.excitation.search.experiment_design import Measurement, PriorKnowledge, Search, design_experiment
from dynid.excitation.search.multistart import MultiStart
from dynid.excitation.standing.options import Standing, refuse_without_feet
from dynid.excitation.trajectories.families import Family, Fourier
from dynid.model import LinearModel, Model, flexible_joint_model, make_terms
from dynid.robot import Robot
from dynid.threads import one_blas_thread

_RIGID_JOINTS_NOTE = ("joints are assumed to be rigid: their deflection, and the speed and torque of their vibration, "
                      "are not included")
_FOURIER, _MEASUREMENT, _NO_PRIOR, _SEARCH = Fourier(), Measurement(), PriorKnowledge(), Search()


@one_blas_thread()
def excite(model: LinearModel | Robot, limits: Limits | None = None, *, family: Family = _FOURIER,
           criterion: str | Criterion = "condition", measurement: Measurement = _MEASUREMENT,
           prior: PriorKnowledge = _NO_PRIOR, search: Search = _SEARCH,
           standing: Standing | None = None) -> ExcitingMotion:
    """Design the motion of a family that excites the base parameters best and respects every limit.

    Args:
        model: a model, or a robot with the terms that its file lists. Flexible joints are treated as rigid, with the
            rotors of their motors, and the report states this.
        limits: limits of the motion. Default: the robot's own limits less a margin of 5 %.
        family: `Fourier`, `FourierPlusQuintic` or `Splines`.
        criterion: "condition", "condition+", "frobenius", "d", "a", "largest" or "hadamard".
        measurement: rate and noise of the future log, for the expected standard errors.
        prior: earlier logs, nominal parameters and scales.
        search: time budget, number of rounds and seed of the search.
        standing: feet of a robot with a free base that stand still, and the conditions of the ground. The limits are
            then those of all 6 + n coordinates of base and joints.

    >>> model = dynid.Model(dynid.Robot.load("arm3r"))
    >>> from dynid.trajectories import Fourier, Search
    >>> found = dynid.excite(model, family=Fourier(5.0, 3), search=Search(budget=None, rounds=1))
    >>> found.report.ok, bool(found.condition < 100)
    (True, True)
    """
    if isinstance(model, str):
        require_type(model, (Model, Robot), "excite", "excite(dynid.Robot.load('robot.urdf'))")
    began = time.monotonic()
    if isinstance(model, Robot):
        model = Model(model, make_terms(model, defaults=True))
    notes: tuple[str, ...] = ()
    if standing is None:
        machine = getattr(model, "robot", None)
        if isinstance(machine, Robot):
            refuse_without_feet(machine)
        flexible = flexible_joint_model(model)
        if flexible is not None:
            model, notes = flexible.rigid, (_RIGID_JOINTS_NOTE,)
        design = design_experiment(model, limits, family, criterion, measurement, prior)
    else:
        from dynid.excitation.standing.stance_design import standing_design

        design, notes = standing_design(model, standing, limits, family, criterion, measurement, prior, search.seed)
    starts = MultiStart(design, search, began)
    best = starts.run()
    whole = design.whole(best.trajectory)
    return ExcitingMotion(
        trajectory=whole, core=whole, model=design.model, base=design.base, limits=design.all_limits,
        criterion=design.problem.criterion.name, value=best.value, condition=design.condition(best.trajectory),
        std=design.standard_errors(best.trajectory), noise=design.noise, rate=design.rate,
        history=tuple(starts.history), report=replace(best.report, unchecked=(*best.report.unchecked, *notes)),
        torque=design.torque, seed=search.seed, starts=starts.starts, elapsed=time.monotonic() - began,
        interrupted=starts.interrupted)
