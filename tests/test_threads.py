"""Work on several threads, also where it hands on work of its own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from dynid.threads import over_samples, side_by_side


def test_work_that_hands_on_work_does_not_wait_for_itself() -> None:
    def inner(k: int) -> int:
        return sum(len(range(*part)) for part in over_samples(lambda start, stop: (start, stop), 4096, 2)) + k

    with ThreadPoolExecutor(1) as outside:  # so that a fault ends the test rather than holding it up
        found = outside.submit(side_by_side, inner, range(8), 2)
        assert found.result(timeout=20.0) == [4096 + k for k in range(8)]
