"""Choose among the friction models M1 to M6 by the simulation error in cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from dynid.actuators.estimate import FrictionTrial
from dynid.actuators.input_checks import GAP_INTERVALS
from dynid.actuators.parameters import FRICTION_MODELS, FRICTION_TITLES
from dynid.actuators.problem import ChainLog, ChainProblem
from dynid.actuators.refinement import refine
from dynid.arrays import Array
from dynid.errors import NotPossibleError
from dynid.findings import Note
from dynid.progress import ProgressCallback, prefixed

_BLOCKS_PER_PART = 10  # blocks of time per validation part: errors of adjacent blocks are nearly independent
_IMPROVEMENT_ERRORS = 2.0  # standard errors of the mean improvement, above which a model is significantly better
_MIN_IMPROVEMENT = 0.01  # smallest relative decrease of the squared error by a model with more parameters
_MANY_LOGS = 8  # number of logs from which on whole logs are left out in cross-validation, not halves of each log
CROSS_VALIDATION_PARTS = 2  # parts of the logs, each of which is fitted while the other is left out
_FOLD_ITERATIONS = 15  # iterations of a fit in the comparison, which starts near its solution
_START_ITERATIONS = 3  # iterations of the fit of initial states of a validation log
# Models in the order of their trials, each with the simpler models that it extends.
_EXTENDED_MODELS: Mapping[str, tuple[str, ...]] = {
    "m1": (), "m2": ("m1",), "m3": ("m1",), "m4": ("m2", "m3"), "m5": ("m4",), "m6": ("m5",)}


JointValues = list[dict[str, float]]  # values of the parameters of each joint of a chain by name


def validation_halves(problem: ChainProblem, restart: float | None) -> tuple[tuple[ChainLog, ...], ...]:
    """Return two halves of the logs, of which one is fitted and the other is predicted: every second log if there are
    many logs, otherwise one half of each log; restart: see `LogSignals.from_log`."""
    logs = problem.logs
    if len(logs) >= _MANY_LOGS:
        return logs[::2], logs[1::2]
    halves = []
    for log in logs:
        middle, gap = len(log.signals.t) // 2, GAP_INTERVALS * float(np.median(np.diff(log.signals.t)))
        halves.append((log.part(0, middle, gap, restart), log.part(middle, len(log.signals.t), gap, restart)))
    return tuple(zip(*halves, strict=True))


@dataclass(frozen=True, eq=False)
class ModelErrors:
    """Cross-validation errors of a friction model.

    Attributes:
        blocks: mean squared errors of blocks of time (blocks,), relative to the residuals of M1.
        mean: mean absolute error, rad.
        fitted: parameter values of each fit, two fits for each chain.
    """

    blocks: Array
    mean: float
    fitted: list[JointValues]


def left_out_errors(problems: Sequence[ChainProblem], start: Callable[[int, ChainProblem], Array],
                    restart: float | None, scale: list[Array], progress: ProgressCallback) -> ModelErrors:
    """Return the cross-validation errors of one friction model over all chains; start: function that returns initial
    values (unknowns,) of a fit. restart: see `LogSignals.from_log`. scale: RMS residuals of each chain (dof,), rad; the
    first friction model fills this list."""
    blocks, sums, count, fitted = [], 0.0, 0, list[JointValues]()
    for k, problem in enumerate(problems):
        halves = validation_halves(problem, restart)
        for part, (logs, left_out) in enumerate((halves, halves[::-1]), 1):
            place = f"chain {k + 1} of {len(problems)}, part {part} of 2"
            own_logs = replace(problem, logs=logs)
            fit = refine(own_logs, start(len(fitted), own_logs), max_iterations=_FOLD_ITERATIONS, finish=False,
                         progress=prefixed(progress, f"{place}, "))
            fitted.append(own_logs.values(fit.x))
            if len(scale) <= k:
                scale.append(np.maximum(np.sqrt(np.mean(fit.residual ** 2, axis=0)), 1e-6))
            for log in left_out:
                own = _predicted(problem, fit.x, log)
                blocks += [float(np.mean((part / scale[k]) ** 2)) for part in np.array_split(own, _BLOCKS_PER_PART)]
                sums, count = sums + float(np.sum(np.abs(own))), count + own.size
    return ModelErrors(np.array(blocks), sums / count, fitted)


def _predicted(problem: ChainProblem, x: Array, log: ChainLog) -> Array:
    """Return measured minus simulated positions (rows, dof) of a validation log, with parameters x (unknowns,). The
    initial state is fitted to this log, because its error does not decay in a freely swinging pendulum."""
    known = replace(problem, known=tuple(problem.values(x)), unknowns=(), logs=(log,))
    return refine(known, np.zeros(0), max_iterations=_START_ITERATIONS, finish=False).residual


def choose_friction(make: Callable[[str], list[ChainProblem]],
                    start: Callable[[int, ChainProblem, str, JointValues | None], Array],
                    restart: float | None, progress: ProgressCallback
                    ) -> tuple[str, tuple[FrictionTrial, ...], list[Note]]:
    """Return the simplest friction model that is not significantly worse than any other, the comparison, and notes.

    If M1 cannot be simulated on a part of the logs, no model is compared, and M1 is returned with a note. The
    comparison starts with Coulomb and viscous friction. A model is tried if the model that it extends was
    significantly better than the best simpler model.

    Args:
        make: function that returns the estimation problems of all chains for a friction model.
        start: function that returns initial values (unknowns,) of a fit, also from the solution of a simpler model.
        restart: see `LogSignals.from_log`.
        progress: called with progress messages.
    """
    kept, scale = "m1", list[Array]()
    errors: dict[str, ModelErrors] = {}
    better: dict[str, float] = {}
    for model, simpler in _EXTENDED_MODELS.items():
        if simpler and kept not in simpler and model != "m3":
            continue
        title = f"friction model {model.upper()} ({FRICTION_TITLES[model]})"
        try:
            errors[model] = left_out_errors(make(model), partial(_start_after, start, model, errors.get(kept)),
                                            restart, scale, prefixed(progress, f"{title}: "))
        except NotPossibleError as problem:
            if model == "m1":
                return kept, (), [Note("friction-not-compared", "The friction models were not compared, because on a "
                                       f"part of the logs {problem.reason}. M1 ({FRICTION_TITLES[model]}) is used.")]
            continue
        if model == "m1":
            better[model] = 0.0
            continue
        better[model] = improvement(errors[kept], errors[model])
        gain = 1.0 - float(np.mean(errors[model].blocks)) / float(np.mean(errors[kept].blocks))
        fewer = len(FRICTION_MODELS[model]) < len(FRICTION_MODELS[kept])
        clearly_better = better[model] > _IMPROVEMENT_ERRORS and gain > _MIN_IMPROVEMENT
        if clearly_better or (fewer and better[model] > -_IMPROVEMENT_ERRORS):
            kept = model
    return kept, tuple(FrictionTrial(model, FRICTION_TITLES[model], found.mean, better[model], model == kept)
                       for model, found in errors.items()), []


def _start_after(start: Callable[[int, ChainProblem, str, JointValues | None], Array], model: str,
                 kept: ModelErrors | None, fit: int, problem: ChainProblem) -> Array:
    """Return initial values (unknowns,) of fit number `fit` of a friction model, from the solution of the best simpler
    model `kept` if there is one."""
    return start(fit // CROSS_VALIDATION_PARTS, problem, model, None if kept is None else kept.fitted[fit])


def improvement(simple: ModelErrors, richer: ModelErrors) -> float:
    """Return the mean decrease of the logarithm of the squared error over blocks of time, in standard errors.
    Logarithms are used because single blocks with large errors would dominate differences."""
    decrease = np.log(np.maximum(simple.blocks, 1e-300) / np.maximum(richer.blocks, 1e-300))
    return float(np.mean(decrease) / max(np.std(decrease, ddof=1) / np.sqrt(len(decrease)), 1e-12))
