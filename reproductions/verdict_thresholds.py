"""What half and twice of each threshold of the verdict changes: faults named, wrong causes and false alarms.

Logs with all faults and all healthy conditions are identified once by the defaults; the verdict on each is repeated
with every threshold of `dynid.validate.thresholds` halved and doubled. A share above one half is doubled to one at
most. Machines of the robots that thresholds were chosen on, with seeds that chose nothing.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

import dynid.validate
from dynid.errors import DynidError
from dynid.validate import thresholds
from reproductions._faults import FAULTS, Fault, Put
from reproductions._faulty_machines import machine
from reproductions._verdicts import Judged, Outcome, Task, given_robot, judged, outcome_of, percent

OWN_STUDY = True  # no document prints it
SEED = 1601  # of the machines: settings were chosen on seeds below
ROBOTS = ("arm3r", "planar4")
FACTORS = (0.5, 2.0)
# The smaller study of `--all`: every fourth fault.
IN_ALL = {"robots": ("arm3r",), "names": ("MATERIAL", "PATTERN_SHARE", "RIVAL_WEIGHT"),
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
        return outcome_of(self.judged.verdict, self.task, self.fault, self.put, self.robot)


def cases(robots: Sequence[str], seed: int = SEED, faults: Sequence[int] | None = None) -> list[Case]:
    """The logs of some robots with every fault, or with those at some places of FAULTS."""
    found = []
    for robot in robots:
        made = machine(robot, seed)
        for k in range(len(FAULTS)) if faults is None else faults:
            put = FAULTS[k].put(made, np.random.default_rng([seed, k]))
            if put is None:
                continue
            try:
                one = judged(given_robot(made.model.robot, put), put)
            except DynidError:
                continue
            found.append(Case(Task("chosen on", robot, seed, (k,)), FAULTS[k], put, one, made.model.robot))
    return found


def names_of_thresholds() -> tuple[str, ...]:
    """Names of all numbers of the table."""
    return tuple(name for name, value in vars(thresholds).items() if name.isupper() and isinstance(value, float | int))


def varied_value(name: str, factor: float) -> float:
    """A threshold times a factor; a share at most one, a count rounded."""
    value = getattr(thresholds, name)
    changed = factor * value
    if isinstance(value, int):
        return max(1, round(changed))
    return min(changed, 1.0) if value < 1.0 and any(word in name for word in SHARE_NAMES) else changed


@contextmanager
def threshold(name: str, value: float) -> Iterator[None]:
    """Set a threshold in every module of the verdict that uses it."""
    users, before = [one for one in _modules() if hasattr(one, name)], getattr(thresholds, name)
    try:
        for one in users:
            setattr(one, name, value)
        yield
    finally:
        for one in users:
            setattr(one, name, before)


def _modules() -> list[ModuleType]:
    found = pkgutil.walk_packages(dynid.validate.__path__, "dynid.validate.")
    return [importlib.import_module(one.name) for one in found if ".contract" not in one.name]


def totals(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Percent of the faults that are named, that have a wrong cause, and of healthy logs with a finding."""
    sick, well = [one for one in outcomes if not one.healthy], [one for one in outcomes if one.healthy]
    return {"named": percent([one.named for one in sick]), "wrong": percent([bool(one.wrong) for one in sick]),
            "false": percent([bool(one.findings) for one in well]), "faulty": len(sick), "healthy": len(well)}


def run(progress: Callable[[str], None], robots: Sequence[str] = ROBOTS, names: Sequence[str] = (),
        seed: int = SEED, faults: Sequence[int] | None = None) -> dict[str, Any]:
    progress("identifying logs with faults")
    logs = cases(robots, seed, faults)
    before = [one.outcome for one in logs]
    rows = []
    for name in names or names_of_thresholds():
        for factor in FACTORS:
            with threshold(name, varied_value(name, factor)):
                after = [one.outcome for one in logs]
            moved = [f"{a.robot}, {a.fault}: {', '.join(b.found) or 'nothing'} ({', '.join(a.found) or 'nothing'})"
                     for a, b in zip(before, after, strict=True) if (a.found, a.findings) != (b.found, b.findings)]
            rows.append({"name": name, "value": getattr(thresholds, name), "at": varied_value(name, factor),
                         **totals(after), "changed": moved})
        progress(f"{name}: {sum(len(row['changed']) for row in rows[-2:])} verdicts changed")
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
