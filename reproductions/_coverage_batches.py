"""How often intervals of several methods hold the truth in a batch of logs: what `coverage` does in processes of
their own, which find this file by its name."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from _machines import Machine

from dynid.arrays import Array
from dynid.errors import NotPossibleError
from dynid.estimate import Problem, identify
from dynid.recording.prepare import prepare


@dataclass(frozen=True)
class Batch:
    """Some logs of a machine, by their seeds, and the methods to try on them."""

    machine: str
    closed: bool
    seeds: tuple[int, ...]
    methods: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Held:
    """Whether intervals held the truth (logs, base), NaN where a parameter was not identified; z (logs, base): errors
    over stated deviations; failures: logs without an estimate; reasons: codes of notes with how many logs had them."""

    held: Array
    z: Array
    failures: int
    reasons: dict[str, int]

    def __add__(self, other: Held) -> Held:
        codes = {*self.reasons, *other.reasons}
        return Held(np.vstack([self.held, other.held]), np.vstack([self.z, other.z]), self.failures + other.failures,
                    {code: self.reasons.get(code, 0) + other.reasons.get(code, 0) for code in sorted(codes)})

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
        log = machine.record(seed, closed=batch.closed)
        problem = Problem.of(machine.model, prepare(log), base=machine.base, nominal=machine.nominal(seed),
                             recordings=log, controller=machine.law)
        for method in batch.methods:
            one = _tried(problem, method, truth)
            found[method] = found[method] + one if method in found else one
    return found


def _tried(problem: Problem, method: str, truth: Array) -> Held:
    try:
        found = identify(problem, method=method)
    except NotPossibleError:
        return Held(np.empty((0, len(truth))), np.empty((0, len(truth))), 1, {})
    low, high = found.conf_int().T
    held = np.where(found.identified, (low <= truth) & (truth <= high), np.nan)
    codes = {note.code for note in found.notes}
    return Held(held[None], ((found.values - truth) / found.std)[None], 0, dict.fromkeys(sorted(codes), 1))
