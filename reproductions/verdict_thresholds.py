"""Sensitivity of the verdict to half and twice of each threshold: faults found, wrong causes and false findings.

Logs with all faults and all healthy conditions are identified once with the defaults. One verdict on each log with
traced thresholds (`_traced`) shows which thresholds of `dynid.validate.thresholds` could change it at half or twice
their value. The verdict is repeated with these thresholds. A share above one half is doubled to one at most. The
machines are robots on which the thresholds were chosen, with new seeds, and real logs, unchanged and with faults.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

import dynid.validate
from dynid.errors import DynidError
from dynid.validate import thresholds
from reproductions._data import DATA
from reproductions._faults import FAULTS, Fault, Put
from reproductions._faulty_machines import RealMachine, machine
from reproductions._real_logs import open_machine
from reproductions._traced import Key, Traced
from reproductions._verdicts import Judged, Outcome, Task, given_robot, judged, outcome_of, percent
from reproductions.verdict_real import FAULTS as REAL_FAULTS
from reproductions.verdict_real import HEALTHY, conditions

OWN_STUDY = True  # no document prints it
SEED = 1601  # of the machines: settings were chosen on seeds below
ROBOTS = ("arm3r", "planar4")  # each fault is put into a log of one of them in turn
MACHINES = ("emps", "ur3")  # real ones, of those that rules were chosen on: a slide and an arm
REAL_CONDITIONS = ("log", "log to second log", "one row in four")
FACTORS = (0.5, 2.0)
# The smaller study of `--all`: every fourth fault.
IN_ALL = {"robots": ("arm3r",), "machines": (), "names": ("MATERIAL", "PATTERN_SHARE", "RIVAL_WEIGHT"),
          "faults": tuple(range(0, len(FAULTS), 4))}
SHARE_NAMES = ("SHARE", "EXPLAIN", "BLOCKS", "JOINTS", "R2", "CORRELATION")  # in names of numbers that are at most one


@dataclass(frozen=True, eq=False)
class Case:
    """A log with a fault, identified, and what its verdict is compared with."""

    task: Task
    fault: Fault
    put: Put
    judged: Judged
    robot: Any

    @property
    def outcome(self) -> Outcome:
        found = outcome_of(self.judged.verdict, self.task, self.fault, self.put, self.robot)
        # What is not modelled of a real machine may well be reported: only blame is false there.
        return replace(found, findings=found.wrong) if self.task.seed is None else found


def cases(robots: Sequence[str], seed: int = SEED, faults: Sequence[int] | None = None) -> list[Case]:
    """Return logs of some robots with every fault, or with the faults at some indices of FAULTS."""
    found = []
    for place, robot in enumerate(robots):
        made = machine(robot, seed)
        for k in [*(range(len(FAULTS)) if faults is None else faults)][place::len(robots)]:
            put = FAULTS[k].put(made, np.random.default_rng([seed, k]))
            if put is None:
                continue
            try:
                one = judged(given_robot(made.model.robot, put), put)
            except DynidError:
                continue
            found.append(Case(Task("chosen on", robot, seed, (k,)), FAULTS[k], put, one, made.model.robot))
    return found


def real_cases(machines: Sequence[str]) -> list[Case]:
    """Return the logs of some real machines, unchanged and with every fault of `verdict-real`."""
    found = []
    for name in machines if DATA.is_dir() else ():
        real = open_machine(name)
        own = RealMachine(real.log, real.other, real.robot)
        puts = [(replace(HEALTHY, name=f"{HEALTHY.name}, {words}"), put) for words, put in conditions(real)
                if words in REAL_CONDITIONS]
        puts += [(fault, fault.put(own, np.random.default_rng([29, k]))) for k, fault in enumerate(REAL_FAULTS)]
        for fault, put in puts:
            try:
                one = None if put is None else judged(given_robot(real.robot, put), put)
            except DynidError:
                continue
            if put is not None and one is not None:
                found.append(Case(Task("real", name, None, ()), fault, put, one, real.robot))
    return found


def names_of_thresholds() -> tuple[str, ...]:
    """Names of all numbers of the table."""
    return tuple(name for name, value in vars(thresholds).items() if name.isupper() and isinstance(value, float | int))


def varied_value(name: str, factor: float) -> float:
    """A threshold times a factor; a share at most one."""
    value = getattr(thresholds, name)
    changed = factor * value
    return min(changed, 1.0) if value < 1.0 and any(word in name for word in SHARE_NAMES) else changed


def deciding(case: Case, names: Sequence[str]) -> tuple[Outcome, set[Key]]:
    """Return the outcome of a log, and the thresholds and factors that could change it."""
    decided = set[Key]()
    with ExitStack() as varied:
        for name in names:
            others = {(name, factor): varied_value(name, factor) for factor in FACTORS}
            varied.enter_context(threshold(name, Traced(getattr(thresholds, name), others, decided)))
        found = case.outcome
    return found, decided


@contextmanager
def threshold(name: str, value: float | Traced) -> Iterator[None]:
    """Set a threshold in every module of the verdict that uses it."""
    users, before = [one for one in _modules() if hasattr(one, name)], getattr(thresholds, name)
    try:
        for one in users:
            setattr(one, name, value)
        yield
    finally:
        for one in users:
            setattr(one, name, before)


@cache
def _modules() -> list[ModuleType]:
    found = pkgutil.walk_packages(dynid.validate.__path__, "dynid.validate.")
    return [importlib.import_module(one.name) for one in found if ".contract" not in one.name]


def totals(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return the percentages of faults that are named, of faults with a wrong cause, and of healthy logs with a
    finding."""
    sick, well = [one for one in outcomes if not one.healthy], [one for one in outcomes if one.healthy]
    return {"named": percent([one.named for one in sick]), "wrong": percent([bool(one.wrong) for one in sick]),
            "false": percent([bool(one.findings) for one in well]), "faulty": len(sick), "healthy": len(well)}


def run(progress: Callable[[str], None], robots: Sequence[str] = ROBOTS, names: Sequence[str] = (),
        seed: int = SEED, faults: Sequence[int] | None = None, machines: Sequence[str] = MACHINES) -> dict[str, Any]:
    progress("identifying logs with faults")
    logs = [*cases(robots, seed, faults), *real_cases(machines)]
    names = tuple(names) or names_of_thresholds()
    before, varied = list[Outcome](), list[set[Key]]()
    for one in logs:
        found, decided = deciding(one, names)
        before.append(found)
        varied.append(decided)
    progress(f"{sum(map(len, varied))} of {len(logs) * len(names) * len(FACTORS)} verdicts could change")
    rows: list[dict[str, Any]] = []
    # Those that hardly any log decides first: they are candidates to be deleted.
    for name in sorted(names, key=lambda name: sum(key[0] == name for decided in varied for key in decided)):
        for factor in FACTORS:
            with threshold(name, varied_value(name, factor)):
                after = [one.outcome if (name, factor) in decided else was
                         for one, was, decided in zip(logs, before, varied, strict=True)]
            moved = [f"{a.robot}, {a.fault}: {', '.join(b.found) or 'nothing'} ({', '.join(a.found) or 'nothing'})"
                     for a, b in zip(before, after, strict=True) if (a.found, a.findings) != (b.found, b.findings)]
            rows.append({"name": name, "value": getattr(thresholds, name), "at": varied_value(name, factor),
                         **totals(after), "changed": moved})
        progress(f"{name}: {sum(len(row['changed']) for row in rows[-2:])} verdicts changed")
    rows.sort(key=lambda row: names.index(row["name"]))
    still = sorted({row["name"] for row in rows} - {row["name"] for row in rows if row["changed"]})
    return {"seed": seed, "before": totals(before), "rows": rows, "without_effect": still, "checks": {}}


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    def numbers(one: dict[str, Any]) -> tuple[str, ...]:
        return f"{one['named']:.0f} %", f"{one['wrong']:.1f} %", f"{one['false']:.1f} %"

    return [("threshold", "value", "at", "named", "wrong", "false", "verdicts changed"),
            ("as it is", "", "", *numbers(result["before"]),
             f"{result['before']['faulty']} faults, {result['before']['healthy']} healthy logs"),
            *((row["name"], f"{row['value']:g}", f"{row['at']:g}", *numbers(row), "; ".join(row["changed"]))
              for row in result["rows"])]
