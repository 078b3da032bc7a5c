"""Where work is done: this process, processes of their own on this machine's cores, or unchanged a Dask cluster."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

from dynid.errors import DynidError, NotPossibleError
from dynid.threads import thread_count
from dynid.version import __version__

Shared = TypeVar("Shared")
Item = TypeVar("Item")
Result = TypeVar("Result")
Lost = Callable[[Item, str], Result]

_PATIENCE = 30  # s, for a cluster to answer
_TRIES = 3  # workers that an item may cost before it is given up
_LOOK = 0.02  # s between two looks at a cluster
_LOST = ("a worker process ended before its work was done, {tries} times with the same item: too little memory, or a "
         "script that starts workers without \"if __name__ == '__main__':\" around it; use fewer workers, or "
         "workers = 1")


@dataclass(frozen=True)
class Workers:
    """processes: by default one for each core. scheduler: address of a Dask scheduler instead ("tcp://host:8786")."""

    processes: int | None = None
    scheduler: str | None = None

    def each(self, work: Callable[[Shared, Item], Result], shared: Shared, items: Sequence[Item],
             lost: Lost[Item, Result] | None = None) -> Iterator[tuple[int, Result]]:
        """work(shared, item) of every item with its place in items, in the order in which they are done.

        work is a function of a module, so that other processes find it; shared is sent to each of them once. A worker
        that is lost costs the item it had, which another one does again. lost: what stands for an item that cost
        several workers, from the item and a sentence; without it that ends the work.
        """
        if self.scheduler is not None:
            return _cluster(work, shared, items, self.scheduler, lost)
        count = min(thread_count(self.processes), len(items))
        if count <= 1:
            return ((k, work(shared, item)) for k, item in enumerate(items))
        return _processes(work, shared, items, count, lost)


# -- processes of this machine -----------------------------------------------------------------------
def _processes(work: Callable[[Shared, Item], Result], shared: Shared, items: Sequence[Item], count: int,
               lost: Lost[Item, Result] | None) -> Iterator[tuple[int, Result]]:
    # Fresh processes: forking one that runs threads of its own is not safe.
    context = get_context("spawn")
    crew: dict[Connection, tuple[BaseProcess, int]] = {}  # each worker's line, itself, and the item it has
    todo, tries = deque(range(len(items))), [0] * len(items)

    def hire() -> None:
        line, far = context.Pipe()
        process = context.Process(target=_serve, args=(far, work, shared), daemon=True)
        process.start()
        far.close()
        hand(line, process)

    def hand(line: Connection, process: BaseProcess) -> None:
        k = todo.popleft()
        crew[line] = process, k
        try:
            line.send(items[k])
        except OSError:  # it is gone, which the line says next
            pass

    try:
        while todo or crew:
            while todo and len(crew) < count:
                hire()
            for ready in wait(list(crew)):
                assert isinstance(ready, Connection)
                process, k = crew.pop(ready)
                try:
                    done, result = ready.recv()
                except (EOFError, OSError):
                    _end(ready, process)
                    tries[k] += 1
                    if tries[k] < _TRIES:
                        todo.appendleft(k)
                    elif lost is None:
                        raise NotPossibleError(_LOST.format(tries=_TRIES)) from None
                    else:
                        yield k, lost(items[k], _LOST.format(tries=_TRIES))
                    continue
                if todo:
                    hand(ready, process)
                else:
                    _end(ready, process)
                if not done:
                    raise result
                yield k, result
    finally:
        for line, (process, _) in crew.items():
            process.terminate()
            _end(line, process)


def _end(line: Connection, process: BaseProcess) -> None:
    line.close()  # a worker ends when nobody is at the other end
    process.join(timeout=_PATIENCE)


def _serve(line: Connection, work: Callable[[Any, Any], Any], shared: Any) -> None:
    """A worker process: items in, results out, until the line is closed. Its own threads would compete with the other
    workers for the same cores."""
    os.environ["DYNID_THREADS"] = "1"
    while True:
        try:
            item = line.recv()
        except (EOFError, KeyboardInterrupt):
            return
        try:
            answer: tuple[bool, Any] = True, work(shared, item)
        except Exception as error:
            answer = False, error
        try:
            line.send(answer)
        except OSError:
            return


# -- a Dask cluster ----------------------------------------------------------------------------------
def _cluster(work: Callable[[Shared, Item], Result], shared: Shared, items: Sequence[Item], address: str,
             lost: Lost[Item, Result] | None) -> Iterator[tuple[int, Result]]:
    try:
        from distributed import Client, KilledWorker
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
        queue = completed(futures, loop=client.loop)
        del futures  # a result that was taken may leave the cluster
        left = len(place)
        while left:
            for future in _next_batch(client, queue, address):
                left -= 1
                k = place[future.key]
                if future.status in ("cancelled", "lost"):
                    raise _gone(address)
                try:
                    result = future.result(timeout=_PATIENCE)
                except KilledWorker:
                    if lost is None:
                        raise NotPossibleError(_LOST.format(tries=_TRIES)) from None
                    result = lost(items[k], _LOST.format(tries=_TRIES))
                except (OSError, TimeoutError):
                    raise _gone(address) from None
                yield k, result


def _next_batch(client: Any, queue: Any, address: str) -> list[Any]:
    """Futures that are done, at least one."""
    silent = 0.0
    while True:
        batch = list(queue.next_batch(block=False))
        if batch:
            return batch
        time.sleep(_LOOK)
        silent = silent + _LOOK if client.status != "running" else 0.0
        if client.status in ("closing", "closed") or silent > _PATIENCE:
            raise _gone(address)


def _gone(address: str) -> NotPossibleError:
    return NotPossibleError(f"the Dask scheduler at {address} went away before the work was done",
                            "start it again and repeat the call; what was kept is not done twice")


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
