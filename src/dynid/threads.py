"""Outer threads: the kernels and LAPACK release the interpreter lock, so plain Python threads run them side by side.

numba's own pool is not used, and while our threads work the BLAS keeps to one each: pools inside pools make all of
them wait for each other, a hundred times slower than either alone.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import TypeVar, cast

from threadpoolctl import ThreadpoolController

from dynid.errors import ModelError

Item = TypeVar("Item")
Result = TypeVar("Result")

_WORTH_A_THREAD = 512  # samples; below that, starting one costs more than it gives
_THREAD_NAME = "dynid"  # of our threads


def thread_count(threads: int | None = None) -> int:
    """Threads to use: the argument, the variable DYNID_THREADS, or one for each core this process may use."""
    if threads is None:
        text = os.environ.get("DYNID_THREADS", "")
        if not text:
            return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        if not text.isdigit():
            raise ModelError(f"the variable DYNID_THREADS must be a whole number from 1, got '{text}'")
        threads = int(text)
    if threads < 1:
        raise ModelError(f"the number of threads must be at least 1, got {threads}", code="thread-count")
    return threads


@lru_cache(maxsize=8)
def pool(threads: int, name: str = _THREAD_NAME) -> ThreadPoolExecutor:
    """Worker threads, kept for the life of the process."""
    return ThreadPoolExecutor(threads, thread_name_prefix=name)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=pool.cache_clear)  # a forked process has no threads: it would wait for ever


def _inside() -> bool:
    """Whether this is one of our threads: work it hands on would wait for threads that wait for it."""
    return threading.current_thread().name.startswith(_THREAD_NAME)


def over_samples(work: Callable[[int, int], object], samples: int, threads: int | None = None) -> list[object]:
    """work(start, stop) over all samples, cut into one piece for each thread; its results in order."""
    worth = samples // _WORTH_A_THREAD
    count = 1 if worth <= 1 and threads is None else min(thread_count(threads), max(1, worth))
    if count == 1 or _inside():
        return [work(0, samples)]
    cuts = [samples * k // count for k in range(count + 1)]
    return list(pool(count).map(work, cuts[:-1], cuts[1:]))


@lru_cache(maxsize=1)
def _blas() -> ThreadpoolController:
    import dynid.lapack  # its BLAS must be loaded to be found

    assert dynid.lapack
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[object]:
    """While it lasts BLAS keeps to one thread: on a busy machine many small products wait for each other otherwise."""
    return cast(AbstractContextManager[object], _blas().limit(limits=1, user_api="blas"))


def side_by_side(work: Callable[[Item], Result], items: Iterable[Item], threads: int | None = None) -> list[Result]:
    """work(item) for every item, on several threads; the results in order. BLAS calls inside use one thread each."""
    todo = list(items)
    count = min(thread_count(threads), len(todo))
    with one_blas_thread():
        return list(map(work, todo) if count <= 1 or _inside() else pool(count).map(work, todo))
