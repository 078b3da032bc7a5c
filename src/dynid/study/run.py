"""Execution of a study: every method on every log, on the available workers."""

from __future__ import annotations

from collections.abc import Callable

from dynid.study.bench import make_bench
from dynid.study.result import StudyResult, gather
from dynid.study.study import Study
from dynid.study.task import Outcome, perform
from dynid.workers import Workers

Progress = Callable[[int, int], None]  # (finished tasks, all tasks)


def run_study(study: Study, workers: int | None = None, scheduler: str | None = None,
              progress: Progress | None = None, tls: tuple[str, str, str] | None = None) -> StudyResult:
    """Run every method on every log; the result depends only on the seed, not on the number of processes.

    Args:
        study: settings.
        workers: number of processes, by default one per core.
        scheduler: address of a Dask scheduler instead ("tcp://host:8786").
        progress: called after every log.
        tls: PEM files of authority, certificate and key for a scheduler at tls://.
    """
    bench = make_bench(study)
    items = [(factor, repetition) for factor in study.noise.factors for repetition in range(study.repetitions)]
    outcomes: list[Outcome | None] = [None] * len(items)
    for finished, (k, outcome) in enumerate(Workers(workers, scheduler, tls).each(perform, bench, items), 1):
        outcomes[k] = outcome
        if progress is not None:
            progress(finished, len(items))
    return gather(study, bench, [one for one in outcomes if one is not None])
