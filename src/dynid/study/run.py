"""Run a study: on all cores of this machine by processes of their own, or unchanged on a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any

from dynid.errors import DynidError, NotPossibleError
from dynid.study.bench import Bench, make_bench
from dynid.study.result import StudyResult, gather
from dynid.study.study import Study
from dynid.study.task import Outcome, perform
from dynid.threads import thread_count
from dynid.version import __version__

Progress = Callable[[int, int], None]  # tasks done, of how many
Item = tuple[float, int]  # factor of the noise, repetition
_PATIENCE = 30  # s, for a cluster to answer

_bench: Bench | None = None  # of a worker process, sent once instead of with every task


def run_study(study: Study, workers: int | None = None, scheduler: str | None = None,
              progress: Progress | None = None) -> StudyResult:
    """Every method on every log; the same numbers for the same seed wherever and in however many processes it runs.

    workers: processes, by default one for each core. scheduler: address of a Dask scheduler instead ("tcp://host:8786").
    progress: told after every log.
    """
    bench = make_bench(study)
    items = [(factor, repetition) for factor in study.noise.factors for repetition in range(study.repetitions)]
    outcomes: list[Outcome | None] = [None] * len(items)
    count = min(thread_count(workers), len(items))
    if scheduler is not None:
        done = _cluster(bench, items, scheduler)
    else:
        done = _here(bench, items) if count == 1 else _processes(bench, items, count)
    for finished, (k, outcome) in enumerate(done, 1):
        outcomes[k] = outcome
        if progress is not None:
            progress(finished, len(items))
    return gather(study, bench, [one for one in outcomes if one is not None])


def _here(bench: Bench, items: Sequence[Item]) -> Iterator[tuple[int, Outcome]]:
    for k, item in enumerate(items):
        yield k, perform(bench, *item)


def _processes(bench: Bench, items: Sequence[Item], count: int) -> Iterator[tuple[int, Outcome]]:
    # Fresh processes: forking one that runs threads of its own is not safe.
    pool = ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=_begin, initargs=(bench,))
    try:
        futures = {pool.submit(_perform, item): k for k, item in enumerate(items)}
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BrokenProcessPool:
        raise NotPossibleError("a worker process of the study ended before its work was done: too little memory, or a "
                               "script that starts the study without \"if __name__ == '__main__':\" around it; "
                               "use fewer workers, or workers = 1") from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _begin(bench: Bench) -> None:
    global _bench
    _bench = bench


def _perform(item: Item) -> Outcome:
    assert _bench is not None
    return perform(_bench, *item)


def _cluster(bench: Bench, items: Sequence[Item], address: str) -> Iterator[tuple[int, Outcome]]:
    try:
        from distributed import Client
        from distributed import as_completed as completed
    except ModuleNotFoundError:
        raise NotPossibleError("a study on a cluster needs Dask; pip install 'dynid[scale]' brings it") from None
    try:
        client = Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise NotPossibleError(f"no Dask scheduler answers at {address}: {_words(error)}") from None
    with client:
        _check_workers(client, address)
        there = client.scatter(bench, broadcast=True, hash=False)
        futures = [client.submit(_perform_there, there, item, pure=False) for item in items]
        place = {future.key: k for k, future in enumerate(futures)}
        for future, outcome in completed(futures, loop=client.loop, with_results=True):
            yield place[future.key], outcome


def _perform_there(bench: Bench, item: Item) -> Outcome:
    return perform(bench, *item)


def _check_workers(client: Any, address: str) -> None:
    try:
        client.wait_for_workers(1, timeout=_PATIENCE)
        versions = set(client.run(_version).values())
    except TimeoutError:
        raise NotPossibleError(f"the Dask scheduler at {address} has no workers; start some with 'dask worker "
                               f"{address}'") from None
    except ModuleNotFoundError as error:
        raise NotPossibleError(f"the workers of the Dask scheduler at {address} have no module '{error.name}'; install "
                               f"dynid {__version__} there") from None
    if versions != {__version__}:
        raise DynidError(f"the workers of the Dask scheduler at {address} have dynid {', '.join(sorted(versions))}, "
                         f"here is {__version__}; install the same everywhere")


def _version() -> str:
    return __version__


def _words(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
