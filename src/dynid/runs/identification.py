"""Runs: from settings to an estimate, its validation and its verdict."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dynid.datasets import LogFacts
from dynid.datasets.log_folds import Failure
from dynid.errors import DynidError, ModelError, NotPossibleError, require_type
from dynid.estimate import Essential, Estimate, Problem, essential, identify
from dynid.estimate.choice import AUTO
from dynid.estimate.cutoff_choice import CutoffChoice
from dynid.estimate.cutoff_folds import CutoffFolds
from dynid.estimate.earlier import METHOD, Weight, with_prior
from dynid.estimate.friction_choice import FrictionChoice
from dynid.estimate.problem import find_method
from dynid.estimate.torque_errors import with_torque_errors
from dynid.findings import Finding
from dynid.floating.whole_body import whole_bodies
from dynid.model import Cable, LinearModel, required_robot_model
from dynid.progress import Progress, ProgressCallback, silent
from dynid.recording import Recording, Samples
from dynid.robot import Robot
from dynid.runs.loading import LoadedProblem, Resting, compressed, control_law, load_problem, prepared
from dynid.runs.models import make_robot
from dynid.runs.settings import ModelSettings, RunSettings
from dynid.threads import one_blas_thread
from dynid.validate import (
    Breakaway,
    CrossValidation,
    CutoffDependence,
    Deflection,
    Physics,
    Reconstruction,
    SimulationCheck,
    Tracking,
    Verdict,
    breakaway,
    cross_validate,
    cutoff_dependence,
    deflections,
    physics,
    reconstruct,
    simulation_checks,
    tracking_errors,
    verdict,
)
from dynid.validate.hypotheses.gravity import Gravity
from dynid.workers import Workers

if TYPE_CHECKING:
    from dynid.estimate.cable_choice import CableFit
    from dynid.estimate.loop_fit import ControllerFit
    from dynid.payloads.result import PayloadEstimate

_INERTIA_POSTURES = 300  # postures of a log at which inertias are tested
_ROWS_FOR_STEPS = 5000  # rows of a log above which simulating methods are not cross-validated, since it takes minutes
_CABLE_NOTE = ("torques that depend on the position of a joint (cable) are part of the model: without them the data "
               "contradict every physically consistent robot. Cables, hoses or torque sensors cause them; --friction "
               "viscous,coulomb,offset leaves them out")


@dataclass(frozen=True, eq=False)
class Run:
    """All results of a run.

    Attributes:
        settings, robot, problem, estimate: the input and the estimate.
        reconstruction, validations: torque predictions on the fitted logs and on the validation logs.
        cross, verdict, notes, seconds: cross-validation, verdict, remarks and computing times.
        simulations: simulations of the validation logs, or of the run's own logs; empty if not requested.
        physics: physical properties of the estimate, or None without inertias of every body.
        logs: facts on the reading of each log, validation logs last.
        choice: choice of the cut-off, or None if it was given.
        dependence: dependence of the parameters on the cut-off, or None.
        mounting: estimated direction of gravity, or None.
        friction: choice of the friction, or None if it was given.
        deflections: stiffness of joints whose motor and link positions are both logged.
        breakaway: breakaway torques of joints that start from rest.
        payloads: payloads of the logs that name one.
        essential: reduced model, or None.
        essential_on_others: relative error of the reduced model on each validation log, percent.
        tracking: tracking errors of each log with commanded and measured signals.
        controller_fit: identified control loops, for methods that simulate them.
        left_out: logs that cannot be used, or are copies of others.
    """

    settings: RunSettings
    robot: Robot
    problem: Problem
    estimate: Estimate
    reconstruction: Reconstruction
    validations: tuple[Reconstruction, ...]
    cross: CrossValidation | None
    verdict: Verdict
    notes: tuple[str, ...]
    seconds: float
    simulations: tuple[SimulationCheck, ...] = ()
    physics: Physics | None = None
    logs: tuple[LogFacts, ...] = ()
    choice: CutoffChoice | None = None
    dependence: CutoffDependence | None = None
    mounting: Gravity | None = None
    friction: FrictionChoice | None = None
    deflections: tuple[Deflection, ...] = ()
    breakaway: tuple[Breakaway, ...] = ()
    payloads: tuple[PayloadEstimate, ...] = ()
    essential: Essential | None = None
    essential_on_others: tuple[float, ...] = ()
    tracking: tuple[Tracking, ...] = ()
    controller_fit: ControllerFit | None = None
    left_out: tuple[Failure, ...] = ()

    def __repr__(self) -> str:
        return f"<Run of {self.robot.name}: {self.verdict.headline}>"

    def _repr_html_(self) -> str:
        return f"{self.verdict._repr_html_()}{self.estimate._repr_html_()}"

    def __getitem__(self, name: str) -> float:
        """Return the value of a parameter by name, as `Estimate` does."""
        return self.estimate[name]

    @property
    def model(self) -> LinearModel:
        return self.problem.model

    @property
    def samples(self) -> tuple[Samples, ...]:
        return self.problem.data


@one_blas_thread()
def run(settings: RunSettings, progress: ProgressCallback = silent, *, workers: Workers | None = None,
        store: Path | None = None) -> Run:
    """Read and prepare the logs, make the choices left open, identify, validate and give a verdict.

    Args:
        settings: settings of the run.
        progress: receives progress messages.
        workers: processes that read and compress the logs; default: this process.
        store: folder that keeps compressed logs, so that the next run reads only new ones.
    """
    require_type(settings, RunSettings, "run", "identify('robot.urdf', 'log.csv')")
    started, progress = time.perf_counter(), Progress.from_callback(progress)
    progress("reading the robot", 0.0)
    settings, earlier = from_prior(settings)
    faults = list[Finding]()
    robot = make_robot(settings, allows_free_base=True, add_finding=faults.append)
    loaded = replace(load_problem(settings, robot, progress.part(0.02, 0.5), workers=workers, store=store),
                     file_findings=tuple(faults))
    weight = None
    settings, robot = loaded.settings, loaded.robot
    if earlier is not None:
        loaded, weight = with_earlier(loaded, earlier)
    progress(f"identifying by {settings.method}" if settings.method != AUTO else "choosing a method by "
                                                                             "cross-validation", 0.5)
    if settings.essential is not None:
        result = _essential_run(loaded, progress.part(0.5, 0.95))
    else:
        loaded, estimate = estimate_of_run(loaded)
        settings = loaded.settings
        if robot.has_free_base:
            from dynid.estimate.whole_body import with_imu_errors  # imported here, for free bases alone

            estimate = with_imu_errors(estimate, loaded.problem, whole_bodies(loaded.problem.recordings))
        result = judge(loaded, estimate, settings, robot, progress.part(0.6, 0.95))
    if weight is not None:
        result = replace(result, notes=(weight.sentence, *result.notes))
    payloads = run_payloads(settings, robot, result.problem, result.estimate, progress.part(0.95, 1.0))
    return replace(result, payloads=payloads, seconds=time.perf_counter() - started)


def _essential_run(loaded: LoadedProblem, progress: Progress) -> Run:
    """Return the run with the essential (significant) parameters only."""
    settings, asked = loaded.settings, loaded.settings.essential
    assert asked is not None
    method = "wls" if settings.method == AUTO else settings.method
    progress(f"removing parameters by rule '{asked.rule}'", 0.0)
    found = essential(loaded.problem, criterion=asked.rule, threshold=asked.threshold, alpha=asked.alpha,
                      method=method, options=settings.options, unseen=True)
    # If a method estimated shape parameters, they are fixed from here on, and the remaining fit is linear.
    held = "wls" if found.estimate.method == method and "shape" in find_method(method).gives else method
    changes = {"method": held, "options": settings.options if held == method else {}}
    result = judge(replace(loaded, problem=found.problem), found.estimate, settings.model_copy(update=changes),
                   loaded.robot, progress.part(0.4, 1.0))
    others = tuple(reconstruct(found.full, one.samples).relative_error for one in result.validations)
    return replace(result, settings=settings, essential=found, essential_on_others=others)


def run_payloads(settings: RunSettings, robot: Robot, problem: Problem, estimate: Estimate,
                 progress: ProgressCallback = silent) -> tuple[PayloadEstimate, ...]:
    """Return the payloads of a run, each estimated from all logs that were recorded with it."""
    if not settings.payloads:
        return ()
    from dynid.payloads.estimation import payload  # imported here, because most runs have no payload
    chosen, found = problem.data[0].preparation, []
    for name, said in settings.payloads.items():
        logs = [samples for _, samples in prepared(settings.with_payload(name), settings, robot, chosen, progress)]
        if logs:
            progress(f"estimating payload '{name}'")
            found.append(payload(estimate, logs, said.frame, method=said.method, unloaded=problem, mass=said.mass,
                                 label=name))
    return tuple(found)


def judge(loaded: LoadedProblem, estimate: Estimate, settings: RunSettings, robot: Robot,
          progress: ProgressCallback = silent) -> Run:
    """Return the run with validation on its own data, other logs, simulation and cross-validation, and the verdict."""
    progress = Progress.from_callback(progress)
    progress("validating", 0.0)
    problem, estimate = loaded.problem, with_torque_errors(estimate, loaded.problem)
    own = reconstruct(estimate, problem.data, for_tests=True, equations=problem.torques.equations
                      if estimate.model is problem.model and estimate.base is problem.base else None)
    others, recordings, resting = list[Reconstruction](), list[Recording](), list[Resting]()
    chosen = problem.data[0].preparation
    for recording, samples in prepared(settings.validate_on, settings, robot, chosen, progress.part(0.05, 0.3),
                                       resting):
        recordings.append(recording)
        others.append(reconstruct(estimate, samples))
    free = robot.has_free_base  # contacts are not simulated, and the recordings have columns of the base
    pairs = list(zip((one.samples for one in others), recordings, strict=True)) or own_logs(problem)
    simulations = () if free else simulated(estimate, settings, pairs, progress.part(0.3, 0.5))
    cross, notes = None, []
    quick = not estimate.iterations or sum(map(len, problem.data)) <= _ROWS_FOR_STEPS or estimate.left_out is not None
    if len(problem.regression.blocks) > 2 and quick:
        progress("cross-validating over blocks of time", 0.5)
        try:
            cross = cross_validate(problem, settings.method, estimate=estimate, options=settings.options)
        except NotPossibleError as error:  # the estimate is valid, but fewer data may not determine all parameters
            notes.append(f"cross-validation is not available, because without one of its blocks of time {error}")
    body = physics(estimate, problem.data[0])
    progress("trying half and twice the cut-off", 0.7)
    dependence = cutoff_dependence(problem, estimate, options=settings.options, choice=loaded.cutoff)
    progress("computing the verdict", 0.9)
    faults = []
    if free:
        from dynid.validate.whole_body_faults import floating_findings  # imported here, for free bases alone

        faults = floating_findings(problem, estimate)
    said = verdict(estimate, problem.torques, reconstruction=own, validation=tuple(others), cross=cross, physics=body,
                   cutoff=dependence, found=[*loaded.findings, *(one.finding for one in resting), *faults])
    if loaded.friction is not None:
        said = replace(said, summary=replace(said.summary, chosen=(*said.summary.chosen, "friction")))
    validation_logs = [LogFacts.from_recording(one, "validation") for one in recordings]
    logs = [*loaded.logs, *validation_logs]
    notes += [log.sentence for log in validation_logs if log.dropped]
    return Run(settings, robot, problem, estimate, own, tuple(others), cross, said, (*loaded.notes, *notes), 0.0,
               simulations, body, tuple(logs), loaded.cutoff, dependence, loaded.mounting,
               loaded.friction, () if free else deflections(estimate, problem.data, problem.recordings),
               breakaway(estimate, problem.data, problem.recordings) if problem.recordings and not free else (),
               tracking=() if free else tracking_errors(problem.recordings),
               controller_fit=fitted_loops(problem, estimate),
               left_out=loaded.left_out)


def fitted_loops(problem: Problem, estimate: Estimate) -> ControllerFit | None:
    """Return the closed loops identified from logs with references, for iterative methods; None if there are none."""
    if not estimate.iterations or not problem.recordings or any(one.reference is None for one in problem.recordings):
        return None
    from dynid.estimate.loop_fit import identify_controller
    from dynid.simulation import joint_inertia

    try:
        inertia = np.max([joint_inertia(estimate.model, estimate.full, one.q[:: max(1, len(one) // _INERTIA_POSTURES)])
                          for one in problem.recordings], axis=0)
        return identify_controller(problem.recordings, inertia)
    except (ModelError, NotPossibleError):  # no closed loop, or no simulation of this robot
        return None


def simulated(estimate: Estimate, settings: RunSettings, logs: Sequence[tuple[Sequence[Samples], Recording | None]],
              progress: ProgressCallback = silent) -> tuple[SimulationCheck, ...]:
    """Return the validation by simulation according to the settings; empty if not requested."""
    if not settings.simulation.run:
        return ()
    Progress.from_callback(progress)("simulating", 0.0)
    return simulation_checks(estimate, logs, horizon=settings.simulation.horizon, controller=control_law(settings))


def own_logs(problem: Problem) -> list[tuple[Sequence[Samples], Recording | None]]:
    """Return the samples and the recording of each log of a problem."""
    recordings = problem.recordings or (None,) * len(problem.data)
    return [((samples,), recording) for samples, recording in zip(problem.data, recordings, strict=True)]


def from_prior(settings: RunSettings) -> tuple[RunSettings, Estimate | None]:
    """Return the settings of a run, by default with the terms of its prior, and the prior estimate, or None."""
    if settings.prior is None:
        return settings, None
    from dynid.runs.results import load  # imported here, because results imports this module

    if settings.method not in (AUTO, METHOD) or settings.essential is not None:
        raise DynidError(f"a prior can be combined only with method {METHOD} and all parameters; remove "
                         + ("[essential]" if settings.method in (AUTO, METHOD) else f"method '{settings.method}'")
                         + " or the prior")
    earlier, made_with = load(settings.prior, trust=settings.trust is True)
    model = made_with.model if settings.model == ModelSettings() else settings.model
    return settings.model_copy(update={"model": model, "method": METHOD}), earlier


def with_earlier(loaded: LoadedProblem, earlier: Estimate) -> tuple[LoadedProblem, Weight]:
    """Return the problem of a run with an earlier estimate as weighted prior."""
    problem, weight = with_prior(loaded.problem, earlier)
    cutoff = loaded.cutoff
    if cutoff is not None:  # its compressed data without the prior would be used again
        cutoff = replace(cutoff, folds=CutoffFolds.like(problem))
    return replace(loaded, problem=problem, cutoff=cutoff), weight


def estimate_of_run(loaded: LoadedProblem) -> tuple[LoadedProblem, Estimate]:
    """Return the estimate of a run, and its problem. If method and friction are chosen from the data, torques that
    depend on position (cables) are tried too."""
    settings, problem, dataset, friction = loaded.settings, loaded.problem, loaded.problem.dataset, loaded.friction
    is_chosen = settings.method == AUTO and not settings.options and friction is not None
    is_plain = not loaded.robot.has_free_base and problem.controller is None and problem.regression.prior is None
    if not (is_chosen and is_plain) or friction is None or dataset is None:
        return loaded, identify(problem, method=settings.method, **settings.options)
    names = loaded.robot.joint_names

    def with_cables(joints: Sequence[int]) -> Problem:
        return compressed(_with_cables(settings, [names[j] for j in joints]), loaded.robot, dataset)

    from dynid.estimate.cable_choice import identify_with_cables  # imported here, because few runs try cables

    found = identify_with_cables(problem, with_cables)
    if isinstance(found, Estimate):
        return loaded, found
    some = [names[j] for j in found.worths]
    loaded = replace(loaded, problem=found.problem, settings=_with_cables(settings, some),
                     friction=_chosen(friction, found, some), chosen_notes=(*loaded.chosen_notes, _CABLE_NOTE))
    return loaded, found.estimate


def _with_cables(settings: RunSettings, joints: Sequence[str]) -> RunSettings:
    """Return the settings with position-dependent torques (cables) at some joints."""
    model = settings.model
    return settings.model_copy(update={"model": model.model_copy(update={"terms": (*model.terms, _table(joints))})})


def _table(joints: Sequence[str]) -> dict[str, object]:
    return {"kind": Cable.kind, "joints": list(joints)}


def _chosen(friction: FrictionChoice, found: CableFit, joints: Sequence[str]) -> FrictionChoice:
    """Return the choice of friction, extended by the chosen torques that depend on position."""
    worths = dict(zip(joints, found.worths.values(), strict=True))
    each = tuple(replace(one, taken=(*one.taken, worths[one.joint])) if one.joint in worths else one
                 for one in friction.joints)
    return replace(friction, joints=each, tables=(*friction.tables, _table(joints)),
                   model=required_robot_model(found.problem.model, "the choice of friction"))
