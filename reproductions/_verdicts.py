"""Faults put into logs, judged as a run judges them: what was named, and whether that is right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from _faults import FAULTS, Fault, Put
from _faulty_machines import bare, machine, model_of, real_machine

from dynid.errors import DynidError
from dynid.estimate import Problem, identify
from dynid.estimate.cutoff_choice import choose_cutoff
from dynid.model import Model
from dynid.recording.preparation import Preparation
from dynid.recording.prepare import prepare
from dynid.validate import Verdict, cross_validate, cutoff_dependence, reconstruct, verdict

# Findings that speak of how much was learnt or of what was left, and name no cause.
NO_CAUSE = frozenset(("residuals-coloured", "low-r2", "badly-conditioned", "few-independent-samples", "odd-block",
                      "parameters-not-constant", "consistency-price", "indefinite-inertia", "impossible-links",
                      "energy-grows", "logs-differ", "does-not-carry-over", "worse-than-zero", "worse-than-mean",
                      "negative-friction", "unphysical-inertia", "negative-rotor-inertia", "large-offset",
                      "driving-friction"))
# Findings that blame a log or the robot's file: false on a real log as it is, where others may well be true.
BLAMES = frozenset(("torque-sign", "position-sign", "drive-gain", "torque-unit", "degrees-for-radians", "time-scale",
                    "gear-ratio", "torques-swapped", "positions-swapped", "encoder-stuck", "gravity-direction",
                    "payload", "residual-follows-delay", "residual-follows-backlash"))
HEALTHY = "healthy"


@dataclass(frozen=True)
class Outcome:
    """One case: what was put in, what was named, and whether that is right."""

    group: str
    robot: str
    seed: int
    fault: str
    found: tuple[str, ...]
    named: bool
    wrong: tuple[str, ...]
    findings: tuple[str, ...]

    @property
    def healthy(self) -> bool:
        return self.fault.startswith(HEALTHY)


@dataclass(frozen=True)
class Task:
    """Faults, by their places in FAULTS, to be put into logs of one machine; seed None: into its real log."""

    group: str
    robot: str
    seed: int | None
    faults: tuple[int, ...]


def in_turn(place: int, turns: int) -> tuple[int, ...]:
    """Places of the faults that the machine at some place meets: all healthy logs and every `turns`-th fault, so that
    machines one after the other meet all of them."""
    return tuple(k for k, fault in enumerate(FAULTS) if not fault.codes or (k + place) % turns == 0)


def judged(model: Model, put: Put, method: str = "wls") -> Verdict:
    """The verdict on a log, as a run comes to it."""
    choice = choose_cutoff(model, put.log)
    samples = choice.prepare(put.log)
    problem = Problem.of(model, samples, recordings=put.log)
    estimate = identify(problem, method=method)
    others = []
    if put.other is not None:
        others = [reconstruct(estimate, prepare(put.other, Preparation.of(dict(samples.settings)).elsewhere()))]
    return verdict(problem, estimate, reconstruct(estimate, samples), others,
                   cross_validate(problem, method, estimate=estimate),
                   cutoff=cutoff_dependence(problem, estimate, choice=choice))


def outcome(task: Task, fault: Fault, put: Put, model: Model, own: frozenset[str] = frozenset()) -> Outcome:
    """The verdict on a log with a fault; own: causes that the log has without it."""
    seed = task.seed or 0
    try:
        found = judged(bare(model) if put.bare else model, put).of("suspicious")
    except DynidError as error:
        return Outcome(task.group, task.robot, seed, fault.name, (type(error).__name__,), False, (), (str(error),))
    names = model.robot.joint_names
    wanted = None if put.joints is None else {names[j] for j in put.joints}
    of_fault = [one for one in found if one.code in fault.codes]
    joints = {joint for one in of_fault for joint in one.joints}
    right = bool(of_fault) and (wanted is None or not joints or bool(wanted & joints))
    if fault.codes in (("torque-sign",), ("drive-gain",)):
        right = right and joints == wanted
    causes = tuple(dict.fromkeys(one.code for one in found if one.code not in NO_CAUSE))
    wrong = tuple(code for code in causes if code not in fault.codes and code not in fault.also
                  and (task.seed is not None or (code in BLAMES and code not in own)))
    return Outcome(task.group, task.robot, seed, fault.name, causes, right if fault.codes else not wrong, wrong,
                   tuple(f"{one.code}: {one.text}" for one in found))


def tried(shared: None, task: Task) -> list[Outcome]:
    """The faults of a task on its machine."""
    if task.seed is None:
        return _tried_on_real(task)
    made = machine(task.robot, task.seed)
    found = []
    for k in task.faults:
        put = FAULTS[k].put(made, np.random.default_rng([task.seed, k]))
        if put is not None:
            found.append(outcome(task, FAULTS[k], put, model_of(made.model.robot)))
    return found


def _tried_on_real(task: Task) -> list[Outcome]:
    """The log as it is, where nothing of it or of the robot's file may be blamed, and with the faults of a task put in,
    where what else is said of the machine may be true."""
    made = real_machine(task.robot)
    healthy = Fault("healthy, real log", (), lambda m, rng: Put(m.record()))
    as_is = outcome(task, healthy, Put(made.record()), made.model)
    blamed = tuple(code for code in as_is.found if code in BLAMES)
    found = [Outcome(task.group, task.robot, 0, as_is.fault, as_is.found, not blamed, blamed,
                     tuple(words for words in as_is.findings if words.split(":")[0] in BLAMES))]
    for k in task.faults:
        put = FAULTS[k].put(made, np.random.default_rng([0, k])) if FAULTS[k].real else None
        if put is not None:
            found.append(outcome(task, FAULTS[k], put, made.model, frozenset(as_is.found)))
    return found


def percent(values: Sequence[bool]) -> float:
    return 100.0 * float(np.mean(values)) if len(values) else 0.0
