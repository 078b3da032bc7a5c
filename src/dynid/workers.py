"""Where work is done: this process, processes of their own on this machine's cores, or unchanged a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any, TypeVar

from dynid.errors import DynidError, NotPossibleError
from dynid.threads import thread_count
from dynid.version import __version__

Shared = TypeVar("Shared")
Item = TypeVar("Item")
Result = TypeVar("Result")

_PATIENCE = 30  # s, for a cluster to answer

_task: tuple[Callable[[Any, Any], Any], Any] | None = None  # of a worker process, sent once instead of with every item


@dataclass(frozen=True)
class Workers:
    """processes: by default one for each core. scheduler: address of a Dask scheduler instead ("tcp://host:8786")."""

    processes: int | None = None
    scheduler: str | None = None

    def each(self, work: Callable[[Shared, Item], Result], shared: Shared,
             items: Sequence[Item]) -> Iterator[tuple[int, Result]]:
        """work(shared, item) of every item with its place in items, in the order in which they are done.

        work is a function of a module, so that other processes find it; shared is sent to each of them once.
        """
        if self.scheduler is not None:
            return _cluster(work, shared, items, self.scheduler)
        count = min(thread_count(self.processes), len(items))
        if count <= 1:
            return ((k, work(shared, item)) for k, item in enumerate(items))
        return _processes(work, shared, items, count)


def _processes(work: Callable[[Shared, Item], Result], shared: Shared, items: Sequence[Item],
               count: int) -> Iterator[tuple[int, Result]]:
    # Fresh processes: forking one that runs threads of its own is not safe.
    pool = ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=_begin, initargs=(work, shared))
    try:
        futures = {pool.submit(_perform, item): k for k, item in enumerate(items)}
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BrokenProcessPool:
        raise NotPossibleError("a worker process ended before its work was done: too little memory, or a script that "
                               "starts workers without \"if __name__ == '__main__':\" around it; use fewer workers, or "
                               "workers = 1") from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _begin(work: Callable[[Any, Any], Any], shared: Any) -> None:
    global _task
    _task = work, shared


def _perform(item: Any) -> Any:
    assert _task is not None
    work, shared = _task
    return work(shared, item)


def _cluster(work: Callable[[Shared, Item], Result], shared: Shared, items: Sequence[Item],
             address: str) -> Iterator[tuple[int, Result]]:
    try:
        from distributed import Client
        from distributed import as_completed as completed
    except ModuleNotFoundError:
        raise NotPossibleError("work on a cluster needs Dask; pip install 'dynid[scale]' brings it") from None
    try:
        client = Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        words = " ".join(str(error).split()) or type(error).__name__
        raise NotPossibleError(f"no Dask scheduler answers at {address}: {words}") from None
    with client:
        _check_cluster(client, address)
        there = client.scatter(shared, broadcast=True, hash=False)
        futures = [client.submit(work, there, item, pure=False) for item in items]
        place = {future.key: k for k, future in enumerate(futures)}
        for future, result in completed(futures, loop=client.loop, with_results=True):
            yield place[future.key], result


def _check_cluster(client: Any, address: str) -> None:
    """Raise where a cluster has no workers, or these another dynid than this one."""
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
