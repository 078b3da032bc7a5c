"""Error of `dynid identify` without options on unseen data, relative to a plain weighted least-squares fit.

Real machines: every split of the data folder, from log to log, half to half, slow to fast, and from the first seconds.
The margin by which a richer friction must win is the constant of the choice that data have set. Each split is therefore
repeated with other margins, and each machine is also stated with the margin that is best on all others.
Simulated machines: logs of 5, 20 and 60 s, predicted on another motion; also machines of one difficult kind.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks._cutoff_stability import cutoff_stability
from benchmarks._open_machines import MACHINES, splits
from benchmarks._plain_fit import PlainFit, relative_error, residual_of, rows_of
from benchmarks._random_machines import CONDITIONS, random_machine
from dynid.datasets import Dataset
from dynid.errors import DynidError
from dynid.estimate import Estimate, ridge_search
from dynid.model import Model, make_terms
from dynid.recording import Recording
from dynid.robot import Robot
from dynid.runs.choices import Choices, choose, choose_friction_step
from dynid.runs.identification import estimate_of_run
from dynid.runs.loading import LoadedProblem, loaded_problem
from dynid.runs.settings import RunSettings

LENGTHS = (5.0, 20.0, 60.0)  # s, of simulated logs
SIMULATED_CUTOFF = 8.0  # Hz, of the plain fit and the rows that are predicted
SIMULATED_MACHINES = 200
FIRST_JUDGED_SEED = 10_000  # rules are chosen on lower seeds
REAL = "real"  # in `only`: all real machines
SIMULATED = "simulated"
CUTOFFS = "cutoffs"
EVERY_CONDITION, CONDITION_SECONDS = "conditions", 20.0  # in `only`: machines of each condition, with logs of 20 s
OTHER_MARGINS = (0.5, 2.0)  # standard errors; the default is `ridge_search.STANDARD_ERRORS`


def run(progress: Callable[[str], None], only: Sequence[str] = (), machines: int = SIMULATED_MACHINES,
        first: int = FIRST_JUDGED_SEED) -> dict[str, Any]:
    """Return the ratios.

    Args:
        only: machines of the data folder by name, "real", "simulated" or one length of simulated logs such as
            "simulated-5"; all of these by default. "simulated-20-cable" are machines of one of the CONDITIONS,
            "conditions" those of each with logs of 20 s. "cutoffs" are the cut-offs of both halves of the real logs.
        machines: number of simulated machines.
        first: seed of the first one of them.
    """
    found: dict[str, Any] = {}
    kinds = [(seconds, condition) for condition in ("", *CONDITIONS) for seconds in LENGTHS
             if _is_asked(seconds, condition, only)]
    named = [name for name in only if name not in (REAL, EVERY_CONDITION, CUTOFFS) and not name.startswith(SIMULATED)]
    if CUTOFFS in only:
        found["cutoffs"] = cutoff_stability(progress, named)
    elif not only or named or REAL in only:
        found["splits"] = [one for one in _real(progress, () if REAL in only else named)]
        found["real"] = _by_machine(found["splits"])
    if kinds:
        found["simulated"] = _simulated(progress, machines, first, kinds)
    return found


def _is_asked(seconds: float, condition: str, only: Sequence[str]) -> bool:
    """Return whether simulated machines of one length, s, and condition are among those named."""
    name = f"{SIMULATED}-{seconds:g}" + (f"-{condition}" if condition else "")
    if condition:
        return name in only or (EVERY_CONDITION in only and seconds == CONDITION_SECONDS)
    return not only or SIMULATED in only or name in only


def _real(progress: Callable[[str], None], named: Sequence[str]) -> list[dict[str, Any]]:
    results = []
    for split in splits(named):
        progress(f"{split.machine}: {split.name}")
        one = compared(split.robot, split.fitted, split.tested, split.cutoff, OTHER_MARGINS)
        results.append({"machine": split.machine, "split": split.name, "is_short": split.is_short, **one})
    return results


def _by_machine(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return geometric mean and worst ratio of each machine, and over machines; long splits, then all."""
    found: dict[str, Any] = {"failures": sum("failure" in one for one in results), "machines": {}}
    for name in dict.fromkeys(one["machine"] for one in results):
        own = [one for one in results if one["machine"] == name and "ratio" in one]
        long = [one["ratio"] for one in own if not one["is_short"]]
        short = [one["ratio"] for one in own if one["is_short"]]
        found["machines"][name] = {"ratio": _mean(long), "worst": max(long, default=None), "short_ratio": _mean(short),
                                   "short_worst": max(short, default=None)}
    known = [one["ratio"] for one in found["machines"].values() if one["ratio"] is not None]
    worst = [one["worst"] for one in found["machines"].values() if one["worst"] is not None]
    return {**found, "median": float(np.median(known)) if known else None, "worst": max(worst, default=None),
            **_left_out(results)}


def _left_out(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return each machine's long splits with the margin that has the smallest mean ratio on all other machines."""
    margins = (ridge_search.STANDARD_ERRORS, *OTHER_MARGINS)
    long = [one for one in results if not one["is_short"] and "by_margin" in one]
    names = list(dict.fromkeys(one["machine"] for one in long))
    if len(names) < 2:
        return {}
    ratios = {name: {margin: [one["by_margin"][f"{margin:g}"] for one in long if one["machine"] == name]
                     for margin in margins} for name in names}
    found = {}
    for name in names:
        margin = min(margins, key=lambda m: sum(float(np.mean(np.log(ratios[other][m]))) for other in names
                                                if other != name))
        found[name] = {"margin": margin, "ratio": _mean(ratios[name][margin]), "worst": max(ratios[name][margin])}
    return {"left_out": found, "left_out_median": float(np.median([one["ratio"] for one in found.values()])),
            "left_out_worst": max(one["worst"] for one in found.values())}


def _mean(ratios: Sequence[float]) -> float | None:
    return float(np.exp(np.mean(np.log(ratios)))) if ratios else None


def _simulated(progress: Callable[[str], None], count: int, first: int, kinds: Sequence[tuple[float, str]]
               ) -> dict[str, Any]:
    """Return the ratios of simulated machines by length of their logs, s, and condition."""
    found: dict[str, Any] = {}
    for seconds, condition in kinds:
        name, each = f"{seconds:g} s" + (f", {condition}" if condition else ""), []
        for k in range(count):
            progress(f"simulated logs of {name}: machine {k + 1} of {count}")
            machine = random_machine(first + k, seconds, condition)
            one = compared(machine.robot, (machine.fitted,), (machine.tested,), SIMULATED_CUTOFF)
            each.append({"seed": first + k, "kinds": list(machine.friction), "has_rotor": machine.has_rotor, **one})
        ratios = [one["ratio"] for one in each if "ratio" in one]
        found[name] = {"mean": float(np.mean(ratios)), "worst": float(np.max(ratios)),
                       "above_1.3": int(np.sum(np.array(ratios) > 1.3)),
                       "failures": count - len(ratios), "machines": each}
    return found


def compared(robot: Robot, fitted: Sequence[Recording], tested: Sequence[Recording], cutoff: float,
             margins: Sequence[float] = ()) -> dict[str, Any]:
    """Return the errors of dynid's default and of the plain fit on unseen logs, their ratio, and what was chosen.

    Args:
        robot: of the machine.
        fitted, tested: logs.
        cutoff: Hz, of the plain fit and of the rows that are predicted.
        margins: standard errors, other margins of the choice of friction, whose ratios are added.
    """
    bodies = Model(robot, make_terms(robot)[:1])
    rows = [rows_of(log, cutoff) for log in tested]
    plain = PlainFit.from_logs(bodies, fitted, cutoff)
    error = relative_error([plain.residual(one) for one in rows], rows)

    def ratio(estimate: Estimate) -> float:
        return relative_error([residual_of(estimate, one) for one in rows], rows) / error

    start = time.process_time()
    try:
        settings = RunSettings(robot=robot.name, logs=tuple(log.source for log in fitted))
        chosen = choose(settings, robot, Dataset.from_recordings(fitted))
        loaded, estimate = _estimate(chosen)
        seconds = time.process_time() - start
        found = {f"{ridge_search.STANDARD_ERRORS:g}": ratio(estimate)}
        for margin in margins:
            other = _with_margin(replace(chosen, settings=settings), margin)
            is_same = other.settings.model == chosen.settings.model
            found[f"{margin:g}"] = ratio(estimate if is_same else _estimate(other)[1])
    except DynidError as problem:
        return {"plain_error": error, "failure": str(problem), "cpu_s": time.process_time() - start}
    own = ratio(estimate)
    has_rotor = any(one.get("kind") == "rotor" for one in chosen.settings.model.terms) or chosen.settings.model.rotor
    return {"ratio": own, "error": own * error, "plain_error": error, "cpu_s": seconds,
            "cutoff_hz": None if chosen.cutoff is None else chosen.cutoff.cutoff, "method": estimate.method,
            "friction": None if loaded.friction is None else loaded.friction.text, "rotor": has_rotor,
            **({"by_margin": found} if margins else {})}


def _estimate(chosen: Choices) -> tuple[LoadedProblem, Estimate]:
    """Return the problem and the estimate that a run with these choices makes."""
    return estimate_of_run(loaded_problem(chosen))


def _with_margin(state: Choices, margin: float) -> Choices:
    """Return the choices with friction that must win by another margin, standard errors."""
    before = ridge_search.STANDARD_ERRORS
    ridge_search.STANDARD_ERRORS = margin
    try:
        return choose_friction_step(state, lambda sentence: None)
    finally:
        ridge_search.STANDARD_ERRORS = before


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = [("fit -> test", "ratio", "error", "plain", "CPU s", "Hz", "method", "rotor")]
    for one in result.get("splits", ()):
        head = f"{one['machine']}: {one['split']}"
        if "failure" in one:
            rows.append((head, "failed", "", f"{one['plain_error']:.2f} %", f"{one['cpu_s']:.1f}", "", "", ""))
            continue
        rows.append((head, f"{one['ratio']:.2f}", f"{one['error']:.2f} %", f"{one['plain_error']:.2f} %",
                     f"{one['cpu_s']:.1f}", f"{one['cutoff_hz'] or 0:g}", one["method"],
                     "yes" if one["rotor"] else "no"))
    real = result.get("real")
    if real is not None:
        for name in (name for name in MACHINES if name in real["machines"]):
            one = real["machines"][name]
            short = "" if one["short_ratio"] is None else f"{one['short_ratio']:.2f} (worst {one['short_worst']:.2f})"
            rows.append((f"{name}: mean, worst; short", "" if one["ratio"] is None else f"{one['ratio']:.2f}",
                         "" if one["worst"] is None else f"{one['worst']:.2f}", short, "", "", "", ""))
        for name, one in real.get("left_out", {}).items():
            rows.append((f"{name}: mean, worst with the margin of the others", f"{one['ratio']:.2f}",
                         f"{one['worst']:.2f}", f"{one['margin']:g}", "", "", "", ""))
    for length, one in result.get("simulated", {}).items():
        rows.append((f"simulated, {length}: mean", f"{one['mean']:.2f}", f"worst {one['worst']:.2f}",
                     f"{one['above_1.3']} above 1.3", "", "", "", f"{one['failures']} failures"))
    for one in result.get("cutoffs", {}).get("each", ()):
        text = one.get("failure") or " and ".join(f"{cutoff:g} Hz" for cutoff in one["cutoffs_hz"])
        rows.append((f"{one['machine']}, halves of {one['logs']}", text, "" if "change" not in one else
                     f"changes the error by {100.0 * one['change']:.0f} %", "", "", "", "", ""))
    return rows
