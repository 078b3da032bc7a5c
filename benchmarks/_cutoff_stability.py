"""Cut-off frequencies chosen on both halves of the data of real machines, and the effect of their difference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks._open_machines import FIRST_HALF, in_motion, splits
from benchmarks._plain_fit import relative_error, residual_of, rows_of
from dynid.datasets import Dataset
from dynid.errors import DynidError
from dynid.estimate import Estimate
from dynid.recording import Recording
from dynid.robot import Robot
from dynid.runs.choices import Choices, choose
from dynid.runs.identification import estimate_of_run
from dynid.runs.loading import loaded_problem
from dynid.runs.settings import RunSettings

SAME_OCTAVE = 1.0  # octaves between two cut-offs that are as good as the same
NEGLIGIBLE_CHANGE = 0.1  # share of the error on the other half, below which a prediction does not depend on the cut-off


def cutoff_stability(progress: Callable[[str], None], named: Sequence[str] = ()) -> dict[str, Any]:
    """Return the cut-offs of both halves of each set of fitted logs, in how many octaves they differ, and the change.

    The change is that of the error on the other half, as a share, if the other half's cut-off is used; it is computed
    where the cut-offs are more than an octave apart.
    """
    each = []
    for machine, name, robot, halves, cutoff in _halves_of_logs(named):
        progress(f"cut-offs of {machine}, {name}")
        try:
            each.append({"machine": machine, "logs": name, **_compared(robot, halves, cutoff)})
        except DynidError as problem:
            each.append({"machine": machine, "logs": name, "failure": str(problem)})
    return {"each": each, "unstable": sum(not one["is_stable"] for one in each if "is_stable" in one),
            "failures": sum("failure" in one for one in each)}


def _halves_of_logs(named: Sequence[str]) -> Iterator[tuple[str, str, Robot, tuple[tuple[Recording, ...], ...], float]]:
    """Yield machine, name of the logs, robot, both halves of these logs, and the cut-off of the test, Hz."""
    done = set()
    for split in splits(named):
        key = (split.machine, *(log.source for log in split.fitted))
        if split.is_short or "slow" in split.name or key in done:
            continue
        done.add(key)
        logs, name = split.fitted, split.name.split(" -> ")[0]
        if name == FIRST_HALF:
            halves: tuple[tuple[Recording, ...], ...] = (logs, split.tested)
        elif len(logs) > 1:
            halves = (logs[:len(logs) // 2], logs[len(logs) // 2:])
        else:
            log = in_motion(logs[0])
            start, middle = float(log.t[0]), float(log.t[0]) + 0.5 * log.duration
            halves = (log.between(start, middle),), (log.between(middle, float(log.t[-1]) + 1.0),)
        yield split.machine, "its log" if name == FIRST_HALF else name, split.robot, halves, split.cutoff


def _compared(robot: Robot, halves: Sequence[tuple[Recording, ...]], cutoff: float) -> dict[str, Any]:
    chosen = [_chosen(robot, logs) for logs in halves]
    own = [_cutoff(one) for one in chosen]
    octaves = abs(float(np.log2(own[1] / own[0])))
    found: dict[str, Any] = {"cutoffs_hz": own, "octaves": octaves}
    if octaves > SAME_OCTAVE:
        rows = [[rows_of(log, cutoff) for log in logs] for logs in halves]

        def error(estimate: Estimate, tested: int) -> float:
            return relative_error([residual_of(estimate, one) for one in rows[tested]], rows[tested])

        ratios = [error(_estimate(_chosen(robot, halves[k], own[1 - k])), 1 - k) / error(_estimate(chosen[k]), 1 - k)
                  for k in (0, 1)]
        found["change"] = max(abs(float(np.log(ratio))) for ratio in ratios)
    return {**found, "is_stable": octaves <= SAME_OCTAVE or found["change"] <= NEGLIGIBLE_CHANGE}


def _chosen(robot: Robot, logs: Sequence[Recording], cutoff: float | None = None) -> Choices:
    prepare = {} if cutoff is None else {"cutoff": cutoff}
    settings = RunSettings(robot=robot.name, logs=tuple(log.source for log in logs), prepare=prepare)
    return choose(settings, robot, Dataset.from_recordings(logs))


def _cutoff(chosen: Choices) -> float:
    assert chosen.cutoff is not None
    return chosen.cutoff.cutoff


def _estimate(chosen: Choices) -> Estimate:
    return estimate_of_run(loaded_problem(chosen))[1]
