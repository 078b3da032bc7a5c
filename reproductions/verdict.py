"""The verdict: faults put into logs of many robots, and the causes it names."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from _data import DATA
from _faults import FAULTS, Fault, Put
from _faulty_machines import CHOSEN_ON, JUDGED_ON, REAL, Machine, machine, model_of, real_machine

from dynid.errors import DynidError
from dynid.estimate import Problem, identify
from dynid.model import Model
from dynid.recording.preparation import Preparation
from dynid.recording.prepare import prepare
from dynid.validate import Verdict, cross_validate, reconstruct, verdict

SEEDS = int(os.environ.get("DYNID_VERDICT_SEEDS", "1"))  # machines of each type
NAMED, WRONG, FALSE = 80.0, 5.0, 5.0  # percent: what must be reached

# Findings that speak of how much was learnt or of what was left, and name no cause.
NO_CAUSE = frozenset(("residuals-coloured", "low-r2", "badly-conditioned", "few-independent-samples", "odd-block",
                      "parameters-not-constant", "consistency-price", "indefinite-inertia", "impossible-links",
                      "energy-grows", "logs-differ", "does-not-carry-over", "worse-than-zero", "worse-than-mean",
                      "negative-friction", "unphysical-inertia", "negative-rotor-inertia", "large-offset"))


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


def judged(model: Model, put: Put, method: str = "wls") -> Verdict:
    """The verdict on a log, as a run comes to it."""
    samples = prepare(put.log)
    problem = Problem.of(model, samples, recordings=put.log)
    estimate = identify(problem, method=method)
    others = []
    if put.other is not None:
        others = [reconstruct(estimate, prepare(put.other, Preparation.of(dict(samples.settings)).elsewhere()))]
    return verdict(problem, estimate, reconstruct(estimate, samples), others,
                   cross_validate(problem, method, estimate=estimate))


def outcome(group: str, robot: str, seed: int, fault: Fault, put: Put, model: Model) -> Outcome:
    try:
        found = judged(model, put).of("suspicious")
    except DynidError as error:
        return Outcome(group, robot, seed, fault.name, (type(error).__name__,), False, (), (str(error),))
    names = model.robot.joint_names
    wanted = None if put.joints is None else {names[j] for j in put.joints}
    of_fault = [one for one in found if one.code in fault.codes]
    joints = {joint for one in of_fault for joint in one.joints}
    right = bool(of_fault) and (wanted is None or not joints or bool(wanted & joints))
    if fault.codes in (("torque-sign",), ("drive-gain",)):
        right = right and joints == wanted
    causes = tuple(dict.fromkeys(one.code for one in found if one.code not in NO_CAUSE))
    wrong = tuple(code for code in causes if code not in fault.codes and code not in fault.also)
    return Outcome(group, robot, seed, fault.name, causes, right if fault.codes else not wrong, wrong,
                   tuple(f"{one.code}: {one.text}" for one in found))


def tried(group: str, robot: str, seed: int, faults: Sequence[Fault]) -> list[Outcome]:
    """All faults on one machine."""
    made: Machine = machine(robot, seed)
    found = []
    for k, fault in enumerate(faults):
        put = fault.put(made, np.random.default_rng([seed, k]))
        if put is not None:
            found.append(outcome(group, robot, seed, fault, put, model_of(made.model.robot)))
    return found


def tried_on_real(name: str, faults: Sequence[Fault]) -> list[Outcome]:
    """Faults put into a real log."""
    made = real_machine(name)
    puts = [(fault, fault.put(made, np.random.default_rng([0, k]))) for k, fault in enumerate(faults)]
    return [outcome("real logs", name, 0, fault, put, made.model) for fault, put in puts if put is not None]


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    outcomes: list[Outcome] = []
    for group, robots, first in (("chosen on", CHOSEN_ON, 0), ("judged on", JUDGED_ON, 30)):
        for robot in robots:
            for seed in range(first, first + SEEDS):
                progress(f"{robot}, machine {seed}")
                outcomes += tried(group, robot, seed, FAULTS)
    for name in REAL if DATA.is_dir() else ():
        progress(f"{name}, a real log")
        outcomes += tried_on_real(name, [fault for fault in FAULTS if fault.real])
    return summary(outcomes)


def summary(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Totals of each group, and by fault how often it was named, what else was, and how often."""
    totals = {}
    for group in dict.fromkeys(one.group for one in outcomes):
        own = [one for one in outcomes if one.group == group]
        sick = [one for one in own if not one.fault.startswith("healthy")]
        well = [one for one in own if one.fault.startswith("healthy")]
        totals[group] = {"cases": len(own), "named": _percent([one.named for one in sick]),
                         "wrong": _percent([bool(one.wrong) for one in sick]),
                         "false": _percent([bool(one.findings) for one in well])}
    rows = []
    for fault in dict.fromkeys(one.fault for one in outcomes):
        own = [one for one in outcomes if one.fault == fault]
        rows.append({"fault": fault, "cases": len(own), "named": sum(one.named for one in own),
                     "wrong": sum(bool(one.wrong) for one in own),
                     "causes": dict(Counter(code for one in own for code in one.found).most_common())})
    checks = {}
    for group, total in totals.items():
        if group == "real logs":  # machines with faults of their own: shown, and no wrong cause is asked for
            checks[f"{group}: a wrong cause in {total['wrong']:.1f} %, at most {WRONG:g} wanted"] = \
                total["wrong"] <= WRONG
            continue
        checks[f"{group}: named in {total['named']:.0f} % of {total['cases']}, at least {NAMED:g} wanted"] = \
            total["named"] >= NAMED
        checks[f"{group}: a wrong cause in {total['wrong']:.1f} %, at most {WRONG:g} wanted"] = total["wrong"] <= WRONG
        checks[f"{group}: false alarms in {total['false']:.1f} % of healthy logs, at most {FALSE:g} wanted"] = \
            total["false"] <= FALSE
    return {"seeds": SEEDS, "totals": totals, "rows": rows, "checks": checks,
            "outcomes": [vars(one) for one in outcomes]}


def _percent(values: Sequence[bool]) -> float:
    return 100.0 * float(np.mean(values)) if len(values) else 0.0


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    return [("fault put in", "logs", "named", "wrong", "causes named"),
            *((f"all, {group}", str(total["cases"]), f"{total['named']:.0f} %", f"{total['wrong']:.1f} %",
               f"false alarms {total['false']:.1f} %") for group, total in result["totals"].items()),
            *((row["fault"], str(row["cases"]), str(row["named"]), str(row["wrong"]),
               ", ".join(f"{code} {count}" for code, count in row["causes"].items())) for row in result["rows"])]
