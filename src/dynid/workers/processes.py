"""Worker processes of this machine, which receive items and parts through pipes; a lost process loses one task."""

from __future__ import annotations

import os
import pickle
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from dynid.errors import NotPossibleError
from dynid.threads import one_blas_thread
from dynid.workers.job import LOST, TRIES, Job

_MAX_ITEMS_AHEAD = 8  # items per worker that may finish before an earlier one, which limits memory
_EXIT_TIMEOUT = 30  # s: longest wait for a process to end


@dataclass(eq=False)
class PartialSum:
    """Sum of the results of some items: its two summands `made_of` until it is computed, then its value `packed` as
    bytes. needed_by: the larger sum of which this sum is a summand."""

    packed: bytes | None = None
    made_of: tuple[PartialSum, PartialSum] | None = None
    needed_by: PartialSum | None = None


@dataclass(eq=False)
class _Task:
    """A task of a worker process: the item of index `place`, or for -1 the addition of two parts. tries: number of
    workers that were lost during the task."""

    place: int = -1
    part: PartialSum = field(default_factory=PartialSum)
    tries: int = 0


class Processes(AbstractContextManager["Processes"]):
    """At most `count` processes that execute a job. The processes are started when there is work and end with it."""

    def __init__(self, job: Job[Any, Any, Any], count: int) -> None:
        self._job, self._count = job, count
        # New processes, because forking a process with threads is not safe.
        self._context = get_context("spawn")
        self._busy: dict[Connection, tuple[BaseProcess, _Task]] = {}
        self._idle: list[tuple[Connection, BaseProcess]] = []
        self._sums: deque[_Task] = deque()
        self._again: deque[_Task] = deque()
        self._items: Sequence[Any] = ()
        self._next = self._end = 0
        self._done: dict[int, tuple[Any, PartialSum]] = {}

    def __exit__(self, *_: object) -> None:
        for line, (process, _task) in self._busy.items():
            process.terminate()
            _end(line, process)
        for line, process in self._idle:
            _end(line, process)

    def reports(self, items: Sequence[Any], ordered: bool) -> Iterator[tuple[int, Any, PartialSum]]:
        """Yield, for every item, its index, its report, and its partial result."""
        self._items = items
        for taken in range(len(items)):
            self._end = min(len(items), taken + _MAX_ITEMS_AHEAD * self._count)
            while not (taken in self._done if ordered else self._done):
                self._step()
            place = taken if ordered else next(iter(self._done))
            yield place, *self._done.pop(place)

    def add(self, one: PartialSum, other: PartialSum) -> PartialSum:
        """Return the sum of two parts, computed by a worker when both are available."""
        found = PartialSum(made_of=(one, other))
        one.needed_by = other.needed_by = found
        self._queue(found)
        return found

    def value(self, handle: PartialSum) -> Any:
        """Wait for a partial sum and return it."""
        while handle.packed is None:
            self._step()
        return pickle.loads(handle.packed)

    def _queue(self, part: PartialSum) -> None:
        if part.made_of is not None and all(one.packed is not None for one in part.made_of):
            self._sums.append(_Task(part=part))

    def _step(self) -> None:
        """Assign available tasks to worker processes, and process finished tasks; wait for at least one."""
        while (task := self._task()) is not None:
            self._hand(task)
        for ready in wait(list(self._busy)):
            assert isinstance(ready, Connection)
            process, task = self._busy.pop(ready)
            try:
                good, report, packed = ready.recv()
            except (EOFError, OSError):
                _end(ready, process)
                self._retry(task)
                continue
            self._idle.append((ready, process))
            if not good:
                raise report
            self._take(task, report, packed)

    def _task(self) -> _Task | None:
        """Return the next task of a free worker: sums first, to limit the number of stored parts."""
        if not self._idle and len(self._busy) >= self._count:
            return None
        if self._sums:
            return self._sums.popleft()
        if self._again:
            return self._again.popleft()
        if self._next < self._end:
            self._next += 1
            return _Task(self._next - 1)
        return None

    def _hand(self, task: _Task) -> None:
        if not self._idle:
            line, far = self._context.Pipe()
            process: BaseProcess = self._context.Process(target=_serve, args=(far, self._job.for_workers), daemon=True)
            process.start()
            far.close()
            self._idle.append((line, process))
        free, worker = self._idle.pop()
        self._busy[free] = worker, task
        made_of = task.part.made_of
        message = (True, self._items[task.place]) if made_of is None else (False, tuple(one.packed for one in made_of))
        try:
            free.send(message)
        except OSError:  # the process has ended, which the connection reports next
            pass

    def _retry(self, task: _Task) -> None:
        """Assign the task of a lost worker to another worker, or give the task up after several losses."""
        task.tries += 1
        if task.tries < TRIES:
            (self._again if task.part.made_of is None else self._sums).appendleft(task)
        elif task.part.made_of is not None:
            raise NotPossibleError(LOST.format(tries=TRIES), code="worker-lost")
        else:
            self._take(task, self._job.given_up(self._items[task.place]), pickle.dumps(None))

    def _take(self, task: _Task, report: Any, packed: bytes) -> None:
        part = task.part
        part.packed, part.made_of = packed, None  # its summands may be deleted
        if part.needed_by is not None:
            self._queue(part.needed_by)
        if task.place >= 0:
            self._done[task.place] = report, part


def _end(line: Connection, process: BaseProcess) -> None:
    line.close()  # a worker ends when its connection is closed
    process.join(timeout=_EXIT_TIMEOUT)


def _serve(line: Connection, job: Job[Any, Any, Any]) -> None:
    """Run a worker process: receive items and pairs of parts, send results, until the connection is closed.

    A worker uses one thread, because more would compete with the other workers for the same cores.
    """
    os.environ["DYNID_THREADS"] = "1"
    with one_blas_thread():
        _work(line, job)


def _work(line: Connection, job: Job[Any, Any, Any]) -> None:
    while True:
        try:
            is_item, given = line.recv()
        except (EOFError, OSError, KeyboardInterrupt):  # closed, or the parent was killed
            return
        try:
            report, part = job.perform(given) if is_item else (None, job.summed(*map(pickle.loads, given)))
            answer: tuple[bool, Any, bytes] = True, report, pickle.dumps(part)
        except Exception as error:
            answer = False, error, b""
        try:
            line.send(answer)
        except OSError:
            return
