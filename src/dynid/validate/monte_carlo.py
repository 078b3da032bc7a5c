"""A benchmark of methods where the truth is known: many logs of a virtual robot, every method on each of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.threads import thread_count
from dynid.errors import DynidError, ModelError, NotPossibleError
from dynid.estimate import Problem, identify
from dynid.recording.prepare import prepare
from dynid.regression import BaseParameters, base_parameters
from dynid.robot.inertia import Array
from dynid.simulate import Reference, VirtualRobot

_COVERED = 1.959964  # deviations of a 95 % interval


@dataclass(frozen=True)
class Contestant:
    """One way to estimate: a method with its options, and how the log is prepared for it."""

    label: str
    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
    preparation: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Study:
    """What is repeated: a machine, its path, the contestants. noise: factors on encoder steps and all noise of the
    machine, each a study of its own. seed: of the first repetition; the same seed gives the same numbers anywhere."""

    machine: VirtualRobot
    path: Reference
    contestants: tuple[Contestant, ...]
    repetitions: int = 100
    noise: tuple[float, ...] = (1.0,)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.repetitions < 2 or not self.contestants or not self.noise:
            raise ModelError("a study needs at least two repetitions, one contestant and one noise level")
        labels = [one.label for one in self.contestants]
        if len(set(labels)) < len(labels):
            raise ModelError("every contestant of a study needs a label of its own")


@dataclass(frozen=True, eq=False)
class Score:
    """How one contestant did at one noise level. values, std (converged, base). reasons: sentences of the others."""

    label: str
    noise: float
    truth: Array
    values: Array
    std: Array
    seconds: Array
    reasons: tuple[str, ...]

    @property
    def converged(self) -> float:
        """Share of repetitions that gave an estimate."""
        return len(self.values) / max(len(self.values) + len(self.reasons), 1)

    @property
    def bias(self) -> Array:
        """Mean error (base,)."""
        return self.values.mean(axis=0) - self.truth

    @property
    def spread(self) -> Array:
        """Deviation over the repetitions (base,)."""
        return self.values.std(axis=0, ddof=1)

    @property
    def coverage(self) -> Array:
        """Share of repetitions whose stated 95 % interval holds the truth (base,)."""
        return np.mean(np.abs(self.values - self.truth) <= _COVERED * self.std, axis=0)


@dataclass(frozen=True, eq=False)
class MonteCarlo:
    """The outcome of a study. inertial (base,): parameters that are no friction, reported apart from those that are."""

    base: BaseParameters
    inertial: NDArray[np.bool_]
    scores: tuple[Score, ...]
    repetitions: int

    def summary(self) -> list[dict[str, Any]]:
        """One row a contestant and noise level, plain values."""
        rows = []
        for score in self.scores:
            row: dict[str, Any] = {"method": score.label, "noise": score.noise, "converged": score.converged,
                                   "seconds": float(np.median(score.seconds)) if len(score.seconds) else None}
            if len(score.values) > 1:
                ratio = np.abs(score.bias) / np.maximum(score.spread, 1e-300)
                for name, group in (("inertial", self.inertial), ("friction", ~self.inertial)):
                    if group.any():
                        row[name] = {"bias_over_spread": float(np.median(ratio[group])),
                                     "unbiased_share": float(np.mean(ratio[group] < 0.3)),
                                     "biased_share": float(np.mean(ratio[group] > 1.0)),
                                     "coverage": float(np.mean(score.coverage[group]))}
            rows.append(row)
        return rows

    def table(self) -> list[tuple[str, ...]]:
        """Rows for people, the head first."""
        rows: list[tuple[str, ...]] = [("method", "noise", "converged", "bias / spread", "unbiased", "coverage",
                                        "friction bias / spread", "friction coverage", "time")]
        for row in self.summary():
            cells = [f"{part['bias_over_spread']:.2f}" if (part := row.get("inertial")) else "-",
                     f"{100 * part['unbiased_share']:.0f} %" if part else "-",
                     f"{100 * part['coverage']:.0f} %" if part else "-"]
            dry = row.get("friction")
            cells += [f"{dry['bias_over_spread']:.2f}", f"{100 * dry['coverage']:.0f} %"] if dry else ["-", "-"]
            seconds = "-" if row["seconds"] is None else f"{row['seconds']:.2f} s"
            rows.append((row["method"], f"{row['noise']:g}", f"{100 * row['converged']:.0f} %", *cells, seconds))
        return rows


Outcome = list[tuple[Array, Array, float] | str]  # values, deviations and seconds of each contestant, or why not


def repetition(study: Study, base: BaseParameters, noise: float, number: int) -> Outcome:
    """One log and all contestants on it; the log depends on the study's seed and the number alone."""
    machine = study.machine
    louder = replace(machine, **{name: np.multiply(getattr(machine, name), noise)
                                 for name in ("encoder", "position_noise", "torque_noise", "jitter")})
    recording = louder.record(study.path, seed=study.seed + number)
    found: Outcome = []
    for one in study.contestants:
        start = time.perf_counter()
        try:
            samples = prepare(recording, **one.preparation)
            problem = Problem.of(machine.model, samples, base=base, threads=1, recordings=recording,
                                 controller=machine.controller)
            estimate = identify(problem, one.method, one.options)
        except NotPossibleError as error:
            found.append(str(error))
            continue
        found.append((estimate.values, estimate.std, time.perf_counter() - start))
    return found


def monte_carlo(study: Study, *, workers: int | None = None, scheduler: str | None = None,
                progress: Callable[[int], None] | None = None) -> MonteCarlo:
    """Run a study on all cores (workers: on so many), or on the Dask cluster whose scheduler is at this address."""
    base = base_parameters(study.machine.model)
    truth = base.reduce(np.asarray(study.machine.theta, dtype=float))
    work = [(noise, number) for noise in study.noise for number in range(study.repetitions)]
    outcomes: list[Outcome] = []
    with _mapper(workers, scheduler) as run:
        for outcome in run(_Task(study, base), work):
            outcomes.append(outcome)
            if progress is not None:
                progress(1)
    scores = []
    for k, noise in enumerate(study.noise):
        part = outcomes[k * study.repetitions:(k + 1) * study.repetitions]
        for c, one in enumerate(study.contestants):
            good = [item[c] for item in part if not isinstance(item[c], str)]
            reasons = tuple(str(item[c]) for item in part if isinstance(item[c], str))
            values, std, seconds = (np.array([x[i] for x in good]) for i in range(3))
            shape = (len(good), len(base))
            scores.append(Score(one.label, noise, truth, values.reshape(shape), std.reshape(shape), seconds, reasons))
    inertial = np.array([not name.startswith("F") for name in base.names])
    return MonteCarlo(base, inertial, tuple(scores), study.repetitions)


@dataclass(frozen=True, eq=False)
class _Task:
    """A study as a function of (noise, number) that can travel to another process or machine."""

    study: Study
    base: BaseParameters

    def __call__(self, item: tuple[float, int]) -> Outcome:
        return repetition(self.study, self.base, *item)


Mapper = Callable[[_Task, Sequence[tuple[float, int]]], Iterable[Outcome]]


@contextmanager
def _mapper(workers: int | None, scheduler: str | None) -> Iterator[Mapper]:
    """Something that maps a task over items in order: this process, a pool of processes, or a cluster."""
    if scheduler is not None:
        with _cluster(scheduler) as client:
            yield lambda task, items: client.gather(client.map(task, items, pure=False))
        return
    count = thread_count(workers)
    if count == 1:
        yield lambda task, items: map(task, items)
        return
    # A fresh process each: forking one that runs threads of its own is not safe.
    with ProcessPoolExecutor(count, mp_context=get_context("spawn")) as pool:
        yield lambda task, items: pool.map(task, items, chunksize=max(1, len(items) // (8 * count)))


@contextmanager
def _cluster(address: str) -> Iterator[Any]:
    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise DynidError("a study on a cluster needs Dask; pip install 'dynid[scale]' brings it") from None
    try:
        client = Client(address, timeout=10)
    except (OSError, TimeoutError, ValueError) as error:
        raise DynidError(f"no Dask scheduler answers at {address}: {error}") from None
    try:
        yield client
    finally:
        client.close()
