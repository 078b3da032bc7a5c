"""Work on several threads, also where it hands on work of its own."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from dynid.threads import one_blas_thread, over_samples, side_by_side


def test_work_that_hands_on_work_does_not_wait_for_itself() -> None:
    def inner(k: int) -> int:
        return sum(len(range(*part)) for part in over_samples(lambda start, stop: (start, stop), 65536, 2)) + k

    with ThreadPoolExecutor(1) as outside:  # so that a fault ends the test rather than holding it up
        found = outside.submit(side_by_side, inner, range(8), 2)
        assert found.result(timeout=120.0) == [65536 + k for k in range(8)]


def test_library_calls_use_one_blas_thread_and_give_the_others_back() -> None:
    import dynid.lapack  # BLAS of scipy is loaded before threads are counted

    assert dynid.lapack

    def blas() -> dict[str, int]:
        """Return the threads of the libraries of numpy and scipy: other tests load packages with more of them."""
        return {one["filepath"]: one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"
                and any(part.startswith(("numpy", "scipy")) for part in Path(one["filepath"]).parts)}

    seen = []

    class Watched(dynid.Model):
        def regressor(self, *motion: Any, **options: Any) -> Any:
            seen.append(blas())
            return super().regressor(*motion, **options)

    model = Watched(dynid.Robot.load("arm3r"))
    with threadpool_limits(2, user_api="blas"):
        before = blas()
        assert 2 in before.values()
        dynid.base_parameters(model)
        assert blas() == before
        with one_blas_thread(), one_blas_thread():
            assert set(blas().values()) == {1}
        assert blas() == before
    assert seen and all(set(one.values()) == {1} for one in seen)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_has_threads_of_its_own() -> None:
    over_samples(lambda start, stop: stop - start, 65536, 2)  # threads of the parent, which a fork does not copy
    context = multiprocessing.get_context("fork")
    child = context.Process(target=over_samples, args=(lambda start, stop: stop - start, 65536, 2))
    child.start()
    child.join(120.0)
    hangs = child.exitcode is None
    child.kill()
    assert not hangs and child.exitcode == 0
