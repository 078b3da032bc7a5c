"""Task of a worker: one log and all estimates from the log, which depend only on bench, noise level and repetition."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace

import numpy as np
from threadpoolctl import threadpool_limits

from dynid.arrays import Array, Bools
from dynid.errors import NotPossibleError
from dynid.estimate import Problem, identify
from dynid.recording import Recording
from dynid.recording.sample_preparation import prepare
from dynid.simulation import VirtualRobot
from dynid.study.bench import Bench


@dataclass(frozen=True, eq=False)
class TaskEstimate:
    """Estimate of one contestant from one log: values, std and identified (base,). seconds: time of filtering,
    compression and estimation, s."""

    values: Array
    std: Array
    identified: Bools
    seconds: float


Outcome = tuple[TaskEstimate | str, ...]  # one per contestant; a sentence if there is no estimate


def perform(bench: Bench, item: tuple[float, int]) -> Outcome:
    """Simulate a log and estimate with every contestant. item: factor on the noise, and number of the repetition.

    A repetition uses the same random numbers at every level, so that levels differ by the noise alone. One thread is
    used, because the order of sums, and thus the last digit, must not depend on the machine.
    """
    factor, repetition = item
    with threadpool_limits(limits=1):
        state = np.random.SeedSequence(bench.seed, spawn_key=(1, repetition))
        phase, noise, start = state.generate_state(3, np.uint64).tolist()
        recording = _record(bench, factor, phase, noise)
        errors = _nominal_errors(bench, start)
        prepared: dict[str, tuple[Problem, float]] = {}
        return tuple(_try(bench, k, recording, prepared, errors) for k in range(len(bench.entries)))


def _record(bench: Bench, factor: float, phase: int, noise: int) -> Recording:
    encoder = factor * bench.encoder
    machine = VirtualRobot(bench.model, bench.theta, bench.controller, encoder=encoder,
                           position_noise=factor * bench.position_noise, torque_noise=factor * bench.torque_noise)
    # Each log starts at another fraction of an encoder count; otherwise all would have the same rounding errors.
    part = encoder * np.random.default_rng(phase).uniform(-0.5, 0.5, bench.model.dof)
    return machine.record(replace(bench.path, q=bench.path.q + part), seed=noise)


def _nominal_errors(bench: Bench, seed: int) -> Array:
    """Return one standard normal number x per parameter for erroneous nominal values e^(s x) theta, with any size s of
    the errors. x is equal for all ten parameters of a link, which keeps the link physically consistent."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=len(bench.theta))
    for places in bench.model.parameters.bodies.values():
        x[places] = x[places[0]]
    return x


def _try(bench: Bench, k: int, recording: Recording, prepared: dict[str, tuple[Problem, float]],
         errors: Array) -> TaskEstimate | str:
    entry = bench.entries[k]
    key = json.dumps(entry.prepare, sort_keys=True, default=str)
    options = dict(entry.options)
    try:
        if key not in prepared:
            begun = time.perf_counter()
            samples = prepare(recording, **entry.prepare)
            problem = Problem.from_model(bench.model, samples, base=bench.base, nominal=bench.theta, threads=1,
                                         recordings=recording, controller=bench.controller)
            prepared[key] = problem, time.perf_counter() - begun
        problem, spent = prepared[key]
        if isinstance(entry.start, float):
            problem = replace(problem, nominal=bench.theta * np.exp(entry.start * errors))
            options["start"] = "nominal"
        elif entry.start is not None:
            options["start"] = entry.start
        begun = time.perf_counter()
        estimate = identify(problem, method=entry.method, **options)
        seconds = spent + time.perf_counter() - begun
    except NotPossibleError as error:
        return str(error)
    except np.linalg.LinAlgError as error:
        return f"method '{entry.method}' encountered a singular matrix: {error}"
    if not np.isfinite(estimate.values).all():
        return f"method '{entry.method}' returned values that are not finite"
    return TaskEstimate(estimate.values, estimate.std, estimate.identified, seconds)
