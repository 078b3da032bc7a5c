"""Choice among the friction models M1 to M6 by the simulation error of parts that were left out of the fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dynid.actuators.estimate import FrictionTrial
from dynid.actuators.input_checks import GAP_INTERVALS
from dynid.actuators.parameters import FRICTION_MODELS, FRICTION_TITLES
from dynid.actuators.problem import ChainLog, ChainProblem
from dynid.actuators.refinement import refine
from dynid.arrays import Array
from dynid.errors import NotPossibleError
from dynid.progress import Tell, prefixed

_BLOCKS = 10  # of time of each part that is left out: neighbours are nearly independent
_SIGNIFICANT = 2.0  # standard errors of the mean improvement
_MIN_IMPROVEMENT = 0.01  # relative: a model with more parameters must predict at least so much better
_MANY_LOGS = 4  # logs from which on whole logs are left out, not halves of each
_FOLD_ITERATIONS = 15  # of a fit in the comparison; it starts near its solution
# Models that are tried after those before it were compared, and the simpler models it is an extension of.
_EXTENDS: Mapping[str, tuple[str, ...]] = {"m1": (), "m2": ("m1",), "m3": ("m1",), "m4": ("m2", "m3"), "m5": ("m4",),
                                           "m6": ("m5",)}


@dataclass(frozen=True, eq=False)
class Fold:
    """Logs of one chain that are fitted, and logs for validation."""

    fitted: tuple[ChainLog, ...]
    left_out: tuple[ChainLog, ...]


def folds_of(problem: ChainProblem, restart: float | None) -> list[Fold]:
    """Return two folds: whole logs in turn if there are many, otherwise the halves of each log."""
    logs = problem.logs
    if len(logs) >= _MANY_LOGS:
        first, second = logs[::2], logs[1::2]
    else:
        halves = []
        for log in logs:
            middle, gap = len(log.signals.t) // 2, GAP_INTERVALS * float(np.median(np.diff(log.signals.t)))
            halves.append((log.part(problem.law, 0, middle, gap, restart),
                           log.part(problem.law, middle, len(log.signals.t), gap, restart)))
        first, second = tuple(one for one, _ in halves), tuple(one for _, one in halves)
    return [Fold(first, second), Fold(second, first)]


@dataclass(frozen=True, eq=False)
class ModelErrors:
    """Validation errors of a model.

    They are the mean squares of blocks (blocks,), in units of the residuals of M1, and the mean absolute error, rad.
    """

    blocks: Array
    mean: float


def left_out_errors(problems: Sequence[ChainProblem], starts: Sequence[Array], restart: float | None,
                    scale: list[Array], tell: Tell) -> ModelErrors:
    """Return the validation errors of one friction model over all chains.

    scale: RMS residuals of each chain (dof,), set by the first model.
    """
    blocks, sums, count = [], 0.0, 0
    for k, (problem, start) in enumerate(zip(problems, starts, strict=True)):
        for part, fold in enumerate(folds_of(problem, restart), 1):
            place = f"chain {k + 1} of {len(problems)}, part {part} of 2"
            fit = refine(problem.with_logs(fold.fitted), start, max_iterations=_FOLD_ITERATIONS, finish=False,
                         tell=prefixed(tell, f"{place}, "))
            if len(scale) <= k:
                scale.append(np.maximum(np.sqrt(np.mean(fit.residual ** 2, axis=0)), 1e-6))
            for log in fold.left_out:
                own = problem.with_logs((log,)).residuals(fit.x)
                if own is None:
                    raise NotPossibleError("the simulation of a part that was left out diverges")
                blocks += [float(np.mean((part / scale[k]) ** 2)) for part in np.array_split(own, _BLOCKS)]
                sums, count = sums + float(np.sum(np.abs(own))), count + own.size
    return ModelErrors(np.array(blocks), sums / count)


def choose_friction(make: Callable[[str, Mapping[str, float] | None], tuple[list[ChainProblem], list[Array]]],
                    restart: float | None, tell: Tell) -> tuple[str, tuple[FrictionTrial, ...]]:
    """Return the simplest model that is not significantly worse than any other, and the comparison.

    make: returns problems and initial values of all chains for a model. A model is tried if a model that it extends was
    significantly better than the one before; Coulomb and viscous friction come first.
    """
    kept, scale = "m1", list[Array]()
    errors: dict[str, ModelErrors] = {}
    better: dict[str, float] = {}
    for model, simpler in _EXTENDS.items():
        if simpler and not any(one == kept for one in simpler) and model not in ("m3",):
            continue
        title = f"friction model {model.upper()} ({FRICTION_TITLES[model]})"
        try:
            problems, starts = make(model, None)
            errors[model] = left_out_errors(problems, starts, restart, scale, prefixed(tell, f"{title}: "))
        except NotPossibleError:
            continue
        if model == "m1":
            better[model] = 0.0
            continue
        better[model] = improvement(errors[kept], errors[model])
        gain = 1.0 - float(np.mean(errors[model].blocks)) / float(np.mean(errors[kept].blocks))
        fewer = len(FRICTION_MODELS[model]) < len(FRICTION_MODELS[kept])
        if (better[model] > _SIGNIFICANT and gain > _MIN_IMPROVEMENT) or (fewer and better[model] > -_SIGNIFICANT):
            kept = model
    return kept, tuple(FrictionTrial(model, FRICTION_TITLES[model], found.mean, better[model], model == kept)
                       for model, found in errors.items())


def improvement(simple: ModelErrors, richer: ModelErrors) -> float:
    """Return the mean decrease of the squared errors of the blocks, in units of its standard error."""
    decrease = simple.blocks - richer.blocks
    return float(np.mean(decrease) / max(np.std(decrease, ddof=1) / np.sqrt(len(decrease)), 1e-12))
