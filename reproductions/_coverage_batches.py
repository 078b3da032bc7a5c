"""Coverage of the intervals of several methods in a batch of logs, for the worker processes of the study `coverage`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from dynid.arrays import Array
from dynid.datasets import Dataset
from dynid.errors import NotPossibleError
from dynid.estimate import Estimate, Problem, identify
from dynid.model import complete
from dynid.online import Online
from dynid.recording import Recording
from dynid.recording.sample_preparation import prepare
from dynid.recording.write import write_csv
from dynid.runs.choices import choose
from dynid.runs.loading import load_problem
from dynid.runs.models import make_model
from dynid.runs.settings import RunSettings
from dynid.workers import Workers
from reproductions._machines import NOMINAL_WRONG, Machine


@dataclass(frozen=True)
class Case:
    """Logs of one kind, and the methods that are tested on them.

    Attributes:
        methods: Names of methods; "unnamed" is a run that chooses cut-off, friction and method, "watch" a stream.
        is_closed: Whether the noise of the positions goes through the control law into the torques.
        is_coarse: Whether the encoders have 15 bits.
        is_pink: Whether the torque noise is pink.
        wrong: Share by which the nominal model errs.
    """

    methods: tuple[str, ...]
    is_closed: bool = False
    is_coarse: bool = False
    is_pink: bool = False
    wrong: float = NOMINAL_WRONG


# The methods that use the nominal model or instruments have rows in the open loop under the further cases.
CASES: dict[str, Case] = {
    "": Case(("wls", "irls", "pc-wls")),
    "closed loop": Case(("wls", "irls", "pc-wls", "ridge", "pc-ridge", "iv"), is_closed=True),
    "15-bit encoder": Case(("wls", "pc-wls"), is_closed=True, is_coarse=True),
    "pink noise": Case(("wls", "iv"), is_pink=True),
    "default": Case(("unnamed",)),
    "live": Case(("watch",)),
    "nominal 30 % off": Case(("ridge", "pc-ridge"), wrong=0.3),
    "nominal 100 % off": Case(("ridge", "pc-ridge"), wrong=1.0)}


@dataclass(frozen=True)
class Batch:
    """Some logs of a machine, by their seeds, and the methods to test in each case of `CASES`."""

    machine: str
    seeds: tuple[int, ...]
    methods: dict[str, tuple[str, ...]]


@dataclass(frozen=True, eq=False)
class Held:
    """Whether intervals contain the true values in some logs.

    Attributes:
        held: (logs, base), NaN where a parameter was not identified.
        z: (logs, base), errors over stated standard errors.
        failures: Logs without an estimate.
        reasons: Codes of notes with how many logs had them.
        width: (logs, base), standard errors over those of the oracle, weighted least squares with the true model.
    """

    held: Array
    z: Array
    failures: int
    reasons: dict[str, int]
    width: Array

    def __add__(self, other: Held) -> Held:
        codes = {*self.reasons, *other.reasons}
        return Held(np.vstack([self.held, other.held]), np.vstack([self.z, other.z]), self.failures + other.failures,
                    {code: self.reasons.get(code, 0) + other.reasons.get(code, 0) for code in sorted(codes)},
                    np.vstack([self.width, other.width]))

    @property
    def coverage(self) -> Array:
        """Return the percentage (base,) of logs in which each interval contains the true value; NaN if no log
        identifies it."""
        counts = np.sum(np.isfinite(self.held), axis=0)
        return np.where(counts > 0, 100.0 * np.nansum(self.held, axis=0) / np.maximum(counts, 1), np.nan)


@cache
def machine_of(name: str) -> Machine:
    return Machine.from_name(name)


def cover(_: None, batch: Batch) -> dict[tuple[str, str], Held]:
    """Return whether the intervals of a batch contain the true values, by case and method.

    Cases that differ only in their nominal model share a log."""
    machine = machine_of(batch.machine)
    truth = machine.base.reduce(machine.theta)
    found: dict[tuple[str, str], Held] = {}
    for seed in batch.seeds:
        shared: dict[tuple[bool, bool, bool], tuple[Problem, Recording, Array]] = {}
        for name, methods in batch.methods.items():
            case = CASES[name]
            kind = (case.is_closed, case.is_coarse, case.is_pink)
            if kind not in shared:
                shared[kind] = _problem(machine, seed, case)
            problem, log, oracle = shared[kind]
            problem = replace(problem, nominal=machine.nominal(seed, case.wrong))
            for method in methods:
                one = _tried(problem, method, truth, log, oracle)
                found[name, method] = found[name, method] + one if (name, method) in found else one
    return found


def _problem(machine: Machine, seed: int, case: Case) -> tuple[Problem, Recording, Array]:
    """Return a log with its equations, and the standard errors (base,) of weighted least squares with the true
    model."""
    log = machine.record(seed, closed=case.is_closed, is_coarse=case.is_coarse, is_pink=case.is_pink)
    problem = Problem.from_model(machine.model, prepare(log), base=machine.base, recordings=log, controller=machine.law)
    return problem, log, identify(problem, method="wls").std


def workers_change(name: str, seed: int) -> float:
    """Return the largest change of an estimate by `--workers 2`, in standard errors, for a run with no options except
    the robot and two logs."""
    machine = machine_of(name)
    found = []
    with TemporaryDirectory() as folder:
        for k in range(2):
            write_csv(machine.record(seed + k, closed=False), Path(folder) / f"log{k}.csv")
        settings = RunSettings.from_values({"robot": name, "logs": [folder]})
        for workers in (None, Workers(2)):
            loaded = load_problem(settings, machine.robot, workers=workers)
            found.append(identify(loaded.problem, method=settings.method))
    one, two = found
    return float(np.max(np.abs(np.vstack([two.values - one.values, two.std - one.std])) / one.std))


def _tried(problem: Problem, method: str, truth: Array, log: Recording, oracle: Array) -> Held:
    try:
        found = _watched(problem, log) if method == "watch" else _unnamed(problem, log) if method == "unnamed" else \
            identify(problem, method=method)
    except NotPossibleError:
        none = np.empty((0, len(truth)))
        return Held(none, none, 1, {}, none)
    # A chosen model may have more parameters than the machine, or fewer: those of the machine are counted.
    places = [found.names.index(name) if name in found.names else -1 for name in problem.base.names]
    here, std = np.array(places) >= 0, np.where(np.array(places) >= 0, found.std[places], np.nan)
    values, (low, high) = found.values[places], found.conf_int()[places].T
    held = np.where(here & found.identified[places], (low <= truth) & (truth <= high), np.nan)
    codes = {note.code for note in found.notes}
    return Held(held[None], ((values - truth) / std)[None], 0, dict.fromkeys(sorted(codes), 1),
                (std / oracle)[None])


def _unnamed(problem: Problem, log: Recording) -> Estimate:
    """Return the estimate of a run without options."""
    robot = complete(problem.model).robot
    assert robot is not None
    settings = RunSettings(robot=robot.name, logs=("log",))
    chosen = choose(settings, robot, Dataset.from_recordings([log]))
    return identify(Problem.from_model(make_model(chosen.settings, chosen.robot), chosen.dataset),
                    method=settings.method)


def _watched(problem: Problem, log: Recording) -> Estimate:
    """Return the estimate at the end of a stream of the log."""
    online = Online(problem.model, base=problem.base)
    online.feed(log.t, log.q, log.tau)
    online.finish()
    return online.estimate()
