"""Verdicts on logs with added faults, computed as in a run, and whether their findings are right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.datasets import Dataset
from dynid.errors import DynidError
from dynid.estimate import Estimate, Problem, identify
from dynid.estimate.cutoff_choice import CutoffChoice, prepare_dataset
from dynid.estimate.torque_errors import with_torque_errors
from dynid.model import LinearModel
from dynid.recording.preparation import Preparation
from dynid.recording.sample_preparation import prepare
from dynid.robot import Robot
from dynid.runs.choices import choose
from dynid.runs.models import make_model
from dynid.runs.settings import RunSettings
from dynid.validate import Verdict, cross_validate, cutoff_dependence, physics, reconstruct, verdict
from reproductions._faults import FAULTS, Fault, Put
from reproductions._faulty_machines import bare, machine, model_of

# Findings that speak of how much was learnt or of what was left, and name no cause.
NO_CAUSE = frozenset(("residuals-autocorrelated", "low-r2", "badly-conditioned", "few-independent-samples", "odd-block",
                      "parameters-not-constant", "consistency-price", "indefinite-inertia", "impossible-links",
                      "energy-grows", "logs-differ", "does-not-carry-over", "worse-than-zero", "worse-than-mean",
                      "negative-friction", "unphysical-inertia", "negative-rotor-inertia", "large-offset",
                      "driving-friction", "cutoff-dependent", "unexplained-misfit"))
# Findings that blame a log or the robot's file: false on a real log as it is, where others may well be true.
BLAMES = frozenset(("torque-sign", "position-sign", "drive-gain", "torque-unit", "degrees-for-radians", "time-scale",
                    "gear-ratio", "torques-swapped", "positions-swapped", "encoder-stuck", "gravity-direction",
                    "payload", "residual-follows-delay", "residual-follows-backlash", "another-machine",
                    "position-offset", "load-changed", "torques-unrelated", "torques-exchanged", "cutoff-too-high"))
HEALTHY = "healthy"
DEFAULTS, NAMED = "defaults", "friction named"  # how a user runs it: nothing named, or wls with the usual friction


@dataclass(frozen=True)
class Outcome:
    """One case: the added fault, the findings, and whether they are right."""

    group: str
    robot: str
    seed: int
    fault: str
    found: tuple[str, ...]
    named: bool
    wrong: tuple[str, ...]
    findings: tuple[str, ...]
    how: str = DEFAULTS
    harm: float | None = None  # times the healthy fit's error on a healthy second log; None where it was not tried

    @property
    def healthy(self) -> bool:
        return self.fault.startswith(HEALTHY)


@dataclass(frozen=True)
class Task:
    """Faults, by their indices in FAULTS, that are added to logs of one machine. seed: seed of a virtual machine, None
    for a real one. how: see DEFAULTS and NAMED."""

    group: str
    robot: str
    seed: int | None
    faults: tuple[int, ...]
    how: str = DEFAULTS


def in_turn(place: int, turns: int) -> tuple[int, ...]:
    """Return the indices of the faults for the machine at a given index: every `turns`-th fault, so that consecutive
    machines cover all faults."""
    return tuple(k for k in range(len(FAULTS)) if (k + place) % turns == 0)


@dataclass(frozen=True, eq=False)
class Judged:
    """An estimate with everything that its verdict uses, as a run computes it."""

    estimate: Estimate
    problem: Problem
    evidence: dict[str, Any]

    @property
    def verdict(self) -> Verdict:
        return verdict(self.estimate, self.problem.torques, **self.evidence)


def judged(robot: Robot, put: Put, how: str = DEFAULTS) -> Judged:
    """Return the estimate from a log, computed as in a run."""
    given = {} if put.cutoff is None else {"cutoff": put.cutoff}
    dataset, method = Dataset.from_recordings([put.log]), "wls"
    model: LinearModel
    cutoff: CutoffChoice | None
    if how == DEFAULTS:
        settings = RunSettings(robot=robot.name, logs=("log",), prepare=given)
        chosen = choose(settings, robot, dataset)
        method, dataset, cutoff = settings.method, chosen.dataset, chosen.cutoff
        model = make_model(chosen.settings, chosen.robot)
    else:
        model = model_of(robot)
        dataset, cutoff = prepare_dataset(model, dataset, Preparation.from_settings(given))
    problem = Problem.from_model(model, dataset)
    estimate = with_torque_errors(identify(problem, method=method), problem)
    samples = problem.data
    others = []
    if put.other is not None:
        others = [reconstruct(estimate, prepare(put.other, samples[0].preparation))]
    return Judged(estimate, problem, {
        "reconstruction": reconstruct(estimate, samples, for_tests=True), "validation": others,
        "cross": cross_validate(problem, method, estimate=estimate), "physics": physics(estimate, samples[0]),
        "cutoff": cutoff_dependence(problem, estimate, choice=cutoff)})


def given_robot(robot: Robot, put: Put) -> Robot:
    """Return the robot of the file that the user gives with a log."""
    return bare(put.robot or robot) if put.bare else put.robot or robot


def outcome(task: Task, fault: Fault, put: Put, robot: Robot) -> Outcome:
    """Return the outcome of the verdict on a log with a fault."""
    try:
        said = judged(given_robot(robot, put), put, task.how).verdict
    except DynidError as error:
        return refused(error, task, fault)
    return outcome_of(said, task, fault, put, robot)


def refused(error: DynidError, task: Task, fault: Fault) -> Outcome:
    """Return the outcome of a log that a run refuses."""
    return Outcome(task.group, task.robot, task.seed or 0, fault.name, (type(error).__name__,), False, (),
                   (str(error),), task.how)


def outcome_of(said: Verdict, task: Task, fault: Fault, put: Put, robot: Robot,
               own: frozenset[str] = frozenset()) -> Outcome:
    """Return whether a verdict is right; own: causes that the log has without the fault."""
    names, found = robot.joint_names, said.of_kind("problem")
    if put.joints is not None:  # which scales the data cannot decide is stated of healthy logs too, and blames nothing
        found += tuple(one for one in said.findings if one.code in fault.codes and one not in found)
    wanted = None if put.joints is None else {names[j] for j in put.joints}
    of_fault = [one for one in found if one.code in fault.codes]
    joints = {joint for one in of_fault for joint in one.joints}
    right = bool(of_fault) and (wanted is None or not joints or bool(wanted & joints))
    if fault.codes in (("torque-sign",), ("drive-gain",)):
        right = right and joints == wanted
    causes = tuple(dict.fromkeys(one.code for one in found if one.code not in NO_CAUSE))
    wrong = tuple(code for code in causes if code not in fault.codes and code not in fault.also
                  and (task.seed is not None or (code in BLAMES and code not in own)))
    if not fault.codes or (fault.by_choice and task.how == DEFAULTS):
        right = not wrong
    return Outcome(task.group, task.robot, task.seed or 0, fault.name, causes, right, wrong,
                   tuple(f"{one.code}: {one.text}" for one in found if one.code not in fault.also), task.how)


def tried(shared: None, task: Task) -> list[Outcome]:
    """Return the outcomes of the faults of a task on its simulated machine."""
    seed = task.seed or 0
    made = machine(task.robot, seed)
    found = []
    for k in task.faults:
        put = FAULTS[k].put(made, np.random.default_rng([seed, k]))
        if put is not None:
            found.append(outcome(task, FAULTS[k], put, made.model.robot))
    return found


def percent(values: Sequence[bool]) -> float:
    return 100.0 * float(np.mean(values)) if len(values) else 0.0
