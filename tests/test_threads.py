"""Work on several threads, also where it hands on work of its own."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from dynid.threads import over_samples, side_by_side


def test_work_that_hands_on_work_does_not_wait_for_itself() -> None:
    def inner(k: int) -> int:
        return sum(len(range(*part)) for part in over_samples(lambda start, stop: (start, stop), 4096, 2)) + k

    with ThreadPoolExecutor(1) as outside:  # so that a fault ends the test rather than holding it up
        found = outside.submit(side_by_side, inner, range(8), 2)
        assert found.result(timeout=20.0) == [4096 + k for k in range(8)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_has_threads_of_its_own() -> None:
    over_samples(lambda start, stop: stop - start, 4096, 2)  # the parent's threads exist, and a fork does not copy them
    context = multiprocessing.get_context("fork")
    child = context.Process(target=over_samples, args=(lambda start, stop: stop - start, 4096, 2))
    child.start()
    child.join(20.0)
    hangs = child.exitcode is None
    child.kill()
    assert not hangs and child.exitcode == 0
