"""95 % intervals of six methods on six virtual robots, in open and closed loop, from raw logs with default settings.

The positions have encoder steps and noise, the torques white and coloured noise, the nominal model of the ridges errs
by about a fifth. In the closed loop the noise of the positions goes round through the control law, so that the machine
trembles and the torques show it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from _machines import JUDGED_ON, MACHINES, Machine
from scipy.special import bdtrik

from dynid.errors import NotPossibleError
from dynid.estimate import Problem, identify
from dynid.recording.prepare import prepare

LOGS = 40
METHODS = ("wls", "irls", "pc-wls", "ridge", "pc-ridge", "iv")
OPTIONS: dict[str, dict[str, Any]] = {"iv": {"start": "nominal"}}
MEDIAN, WORST = (90.0, 98.0), 80.0  # percent of the logs in which an interval should hold the truth
# Codes of notes by which an estimate says that its deviations are not of noise alone.
REASONS = ("noise-in-motion", "leans-on-nominal")
_BY_CHANCE = 0.01  # how often a worst parameter that is covered in 80 % may be called worse


def cover(machine: Machine, *, closed: bool, logs: Sequence[int] = range(LOGS), methods: Sequence[str] = METHODS
          ) -> dict[str, dict[str, Any]]:
    """For each method how often (base,) its intervals held the truth, in percent of the logs that it identified a
    parameter from; bias and stated deviation over the spread (base,); share of the logs that state a reason; failures.
    """
    truth = machine.base.reduce(machine.theta)
    values: dict[str, list[Any]] = {method: [] for method in methods}
    stds: dict[str, list[Any]] = {method: [] for method in methods}
    held: dict[str, list[Any]] = {method: [] for method in methods}
    said: dict[str, list[bool]] = {method: [] for method in methods}
    for seed in logs:
        recording = machine.record(seed, closed=closed)
        problem = Problem.of(machine.model, prepare(recording), base=machine.base, nominal=machine.nominal(seed),
                             recordings=recording, controller=machine.law)
        for method in methods:
            try:
                found = identify(problem, method=method, **OPTIONS.get(method, {}))
            except NotPossibleError:
                continue
            low, high = found.conf_int().T
            held[method].append(np.where(found.identified, (low <= truth) & (truth <= high), np.nan))
            values[method].append(found.values)
            stds[method].append(found.std)
            said[method].append(any(note.code in REASONS for note in found.diagnostics.notes))
    return {method: _scores(truth, np.array(held[method]), np.array(values[method]), np.array(stds[method]))
            | {"said": float(np.mean(said[method])), "failures": len(logs) - len(said[method])}
            for method in methods if said[method]}


def _scores(truth: Any, held: Any, values: Any, stds: Any) -> dict[str, Any]:
    spread = np.maximum(values.std(axis=0), 1e-300)
    return {"coverage": 100.0 * np.nanmean(held, axis=0), "bias": (values.mean(axis=0) - truth) / spread,
            "stated": np.sqrt(np.mean(stds ** 2, axis=0)) / spread}


def fewest(logs: int, parameters: int) -> int:
    """How many of so many intervals must hold: fewer would be a rare chance in the worst of so many parameters that
    are covered in 80 %."""
    return int(np.ceil(bdtrik(_BY_CHANCE / parameters, logs, WORST / 100.0)))


def run(progress: Callable[[str], None], logs: int = LOGS, machines: Sequence[str] = MACHINES) -> dict[str, Any]:
    rows, checks = [], {}
    for name in machines:
        machine = Machine.of(name)
        names = machine.base.names
        for closed in (False, True):
            loop = "closed" if closed else "open"
            progress(f"{name}, {loop} loop, {logs} logs")
            for method, one in cover(machine, closed=closed, logs=range(logs)).items():
                percent = one["coverage"]
                worst = int(np.argmin(percent))
                row = {"robot": name, "judged": name in JUDGED_ON, "loop": loop, "method": method,
                       "parameters": len(names), "mean": float(percent.mean()), "median": float(np.median(percent)),
                       "worst": float(percent[worst]), "worst_parameter": names[worst],
                       "worst_bias": float(one["bias"][worst]), "worst_stated": float(one["stated"][worst]),
                       "said": one["said"], "failures": one["failures"]}
                rows.append(row)
                few = 100.0 * fewest(logs - one["failures"], len(names)) / (logs - one["failures"])
                fine = one["said"] > 0.5 or (MEDIAN[0] <= row["median"] <= MEDIAN[1] and row["worst"] >= few)
                checks[f"{name}, {loop} loop, {method}: {row['median']:.0f} % in the median parameter, {MEDIAN[0]:g} "
                       f"to {MEDIAN[1]:g} wanted, {row['worst']:.0f} in the worst, not below {few:.0f} by chance where "
                       f"{WORST:g} are wanted; a reason is stated in {100.0 * one['said']:.0f} %"] = bool(fine)
    return {"logs": logs, "rows": rows, "checks": checks}


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    return [("robot", "loop", "method", "mean, %", "median", "worst", "of", "a reason is stated, % of logs"),
            *((row["robot"], row["loop"], row["method"], f"{row['mean']:.1f}", f"{row['median']:.0f}",
               f"{row['worst']:.0f}", row["worst_parameter"], f"{100.0 * row['said']:.0f}") for row in result["rows"])]
