"""How often intervals of several methods hold the truth in a batch of logs: what `coverage` does in processes of
their own, which find this file by its name."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from dynid.arrays import Array
from dynid.datasets import Dataset
from dynid.errors import NotPossibleError
from dynid.estimate import Estimate, Problem, identify
from dynid.model import complete
from dynid.online import Online
from dynid.recording import Recording
from dynid.recording.sample_preparation import prepare
from dynid.runs.choices import choose
from dynid.runs.models import make_model
from dynid.runs.settings import RunSettings
from reproductions._machines import NOMINAL_WRONG, Machine


@dataclass(frozen=True)
class Batch:
    """Some logs of a machine, by their seeds, and the methods to try on them."""

    machine: str
    closed: bool
    seeds: tuple[int, ...]
    methods: tuple[str, ...]
    case: str = ""  # of `CASES`, or none for the plain study

    @property
    def is_closed(self) -> bool:
        return self.closed or self.case == "15-bit encoder"


# What else intervals must hold under, and the methods: "auto" is the default choice of the method, "unnamed" a run that
# chooses cut-off, friction and method, "watch" a stream.
CASES: dict[str, tuple[str, ...]] = {
    "15-bit encoder": ("wls", "pc-wls"), "pink noise": ("wls", "iv"), "default": ("auto", "unnamed"),
    "live": ("watch",),
    "nominal 30 % off": ("ridge", "pc-ridge"), "nominal 100 % off": ("ridge", "pc-ridge")}


@dataclass(frozen=True, eq=False)
class Held:
    """Whether intervals held the truth in some logs.

    Attributes:
        held: (logs, base), NaN where a parameter was not identified.
        z: (logs, base), errors over stated standard errors.
        failures: Logs without an estimate.
        reasons: Codes of notes with how many logs had them.
        width: (logs, base), standard errors over those of the oracle, weighted least squares with the true model; None
            where it is not asked for.
    """

    held: Array
    z: Array
    failures: int
    reasons: dict[str, int]
    width: Array | None = None

    def __add__(self, other: Held) -> Held:
        codes = {*self.reasons, *other.reasons}
        return Held(np.vstack([self.held, other.held]), np.vstack([self.z, other.z]), self.failures + other.failures,
                    {code: self.reasons.get(code, 0) + other.reasons.get(code, 0) for code in sorted(codes)},
                    None if self.width is None or other.width is None else np.vstack([self.width, other.width]))

    @property
    def coverage(self) -> Array:
        """Percent of the logs in which each interval held (base,); NaN where none identified the parameter."""
        counts = np.sum(np.isfinite(self.held), axis=0)
        return np.where(counts > 0, 100.0 * np.nansum(self.held, axis=0) / np.maximum(counts, 1), np.nan)


@cache
def machine_of(name: str) -> Machine:
    return Machine.of(name)


def cover(_: None, batch: Batch) -> dict[str, Held]:
    """How the intervals of each method did in a batch."""
    machine = machine_of(batch.machine)
    truth = machine.base.reduce(machine.theta)
    found: dict[str, Held] = {}
    for seed in batch.seeds:
        log = machine.record(seed, closed=batch.is_closed, is_coarse=batch.case == "15-bit encoder",
                             is_pink=batch.case == "pink noise")
        wrong = {"nominal 30 % off": 0.3, "nominal 100 % off": 1.0}.get(batch.case, NOMINAL_WRONG)
        problem = Problem.of(machine.model, prepare(log), base=machine.base, nominal=machine.nominal(seed, wrong),
                             recordings=log, controller=machine.law)
        oracle = identify(problem, method="wls").std if batch.case else None
        for method in batch.methods:
            one = _tried(problem, method, truth, log, oracle)
            name = f"{method}, {batch.case}" if batch.case else method
            found[name] = found[name] + one if name in found else one
    return found


def _tried(problem: Problem, method: str, truth: Array, log: Recording, oracle: Array | None) -> Held:
    try:
        found = _watched(problem, log) if method == "watch" else _unnamed(problem, log) if method == "unnamed" else \
            identify(problem, method=method)
    except NotPossibleError:
        none = np.empty((0, len(truth)))
        return Held(none, none, 1, {}, None if oracle is None else none)
    # A chosen model may have more parameters than the machine, or fewer: those of the machine are counted.
    places = [found.names.index(name) if name in found.names else -1 for name in problem.base.names]
    here, std = np.array(places) >= 0, np.where(np.array(places) >= 0, found.std[places], np.nan)
    values, (low, high) = found.values[places], found.conf_int()[places].T
    held = np.where(here & found.identified[places], (low <= truth) & (truth <= high), np.nan)
    codes = {note.code for note in found.notes}
    return Held(held[None], ((values - truth) / std)[None], 0, dict.fromkeys(sorted(codes), 1),
                None if oracle is None else (std / oracle)[None])


def _unnamed(problem: Problem, log: Recording) -> Estimate:
    """The estimate of a run that names nothing but the robot and the log."""
    robot = complete(problem.model).robot
    assert robot is not None
    settings = RunSettings(robot=robot.name, logs=("log",))
    chosen = choose(settings, robot, Dataset.from_recordings([log]))
    return identify(Problem.of(make_model(chosen.settings, chosen.robot), chosen.dataset), method=settings.method)


def _watched(problem: Problem, log: Recording) -> Estimate:
    """The estimate of a stream that ends with the log."""
    online = Online(problem.model, base=problem.base)
    online.feed(log.t, log.q, log.tau)
    online.finish()
    return online.estimate()
