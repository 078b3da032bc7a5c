"""Threads over samples: kernels and LAPACK release the interpreter lock, so Python threads run them in parallel.

numba's own pool is not used, and BLAS uses one thread while these threads work: nested pools would wait for each other
and be a hundred times slower.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from contextlib import ContextDecorator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from threadpoolctl import ThreadpoolController

from dynid.errors import ModelError

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

Item = TypeVar("Item")
Result = TypeVar("Result")

_WORTH_A_THREAD = 4096  # samples, about 1 ms of a kernel: with fewer, waking a thread costs more than it saves
_THREAD_NAME = "dynid"  # name of dynid's threads


def thread_count(threads: int | None = None) -> int:
    """Return the number of threads: the argument, the variable DYNID_THREADS, or one for each available core."""
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
    """Return an executor with worker threads, which exist as long as the process."""
    from concurrent.futures import ThreadPoolExecutor  # short work needs none

    return ThreadPoolExecutor(threads, thread_name_prefix=name)


def _inside() -> bool:
    """Return whether the calling thread is one of the worker threads, from which no further work may be submitted."""
    return threading.current_thread().name.startswith(_THREAD_NAME)


def over_samples(work: Callable[[int, int], object], samples: int, threads: int | None = None) -> list[object]:
    """Return the results of work(start, stop) over all samples, divided into one piece per thread, in order."""
    worth = samples // _WORTH_A_THREAD
    count = 1 if worth <= 1 and threads is None else min(thread_count(threads), max(1, worth))
    if count == 1 or _inside():
        return [work(0, samples)]
    cuts = [samples * k // count for k in range(count + 1)]
    return list(pool(count).map(work, cuts[:-1], cuts[1:]))


@lru_cache(maxsize=1)
def _blas() -> ThreadpoolController:
    import dynid.lapack  # BLAS must be loaded to be found

    assert dynid.lapack
    return ThreadpoolController()


class one_blas_thread(ContextDecorator):
    """Context, and decorator of functions, in which BLAS uses one thread.

    Small products in many threads wait for each other: beside another busy process they take ten times as long. The
    limit holds for the whole process from the first context to the end of the last; nested contexts cost little.
    """

    _lock = threading.Lock()
    _depth = 0
    _limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if one_blas_thread._depth == 0:
                one_blas_thread._limit = _blas().limit(limits=1, user_api="blas")
            one_blas_thread._depth += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            one_blas_thread._depth -= 1
            if one_blas_thread._depth == 0:
                one_blas_thread._limit.restore_original_limits()


def _forget_threads() -> None:
    """Forget the worker threads in a forked process, which has none of them and would wait for them forever."""
    pool.cache_clear()
    one_blas_thread._lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


def side_by_side(work: Callable[[Item], Result], items: Iterable[Item], threads: int | None = None) -> list[Result]:
    """Return work(item) for every item, on several threads, in order. BLAS calls inside use one thread each."""
    todo = list(items)
    count = min(thread_count(threads), len(todo))
    with one_blas_thread():
        return list(map(work, todo) if count <= 1 or _inside() else pool(count).map(work, todo))
