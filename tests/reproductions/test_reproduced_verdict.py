"""The verdict names faults that are put into logs: each on a small arm, and in the slow suite all on more robots."""

from __future__ import annotations

import json

import pytest
import verdict
from _faults import FAULTS
from _verdicts import NAMED, Task, in_turn, tried


@pytest.mark.parametrize("place", range(len(FAULTS)), ids=[fault.name for fault in FAULTS])
def test_each_fault_is_named_on_a_small_arm(place: int) -> None:
    """And no other beside it, and nothing of a healthy log."""
    found = tried(None, Task("chosen on", "planar4", 3, (place,), NAMED))
    assert [one for one in found if not one.named or one.wrong] == []
    assert all(one.findings == () for one in found if one.healthy)


@pytest.mark.slow
def test_all_faults_on_robots_that_no_setting_was_chosen_on() -> None:
    outcomes = [one for robot in ("planar5", "ur10")
                for one in tried(None, Task("judged on", robot, 20, tuple(range(len(FAULTS)))))]
    result = verdict.summary(outcomes)
    assert all(result["checks"].values()), result["checks"]
    json.dumps(result, allow_nan=False)
    head, *rows = verdict.table(result)
    assert len(rows) == len(FAULTS) + len(result["totals"]) + 2 and all(len(row) == len(head) for row in rows)


def test_machines_meet_all_faults_in_turn() -> None:
    met = [set(in_turn(place, 2)) for place in range(2)]
    assert met[0] | met[1] == set(range(len(FAULTS)))
    assert not met[0] & met[1]


def test_a_smaller_study_is_held_to_what_so_few_logs_can_tell() -> None:
    """One false alarm of 16 healthy logs and three wrong causes of 30 do not refute the bars; five and six do."""
    def held(named: float, wrong: int, false: int, whole: bool) -> bool:
        total = {"faulty": 30, "healthy": 16, "named": named, "wrong": 100.0 * wrong / 30, "false": 100.0 * false / 16}
        return all(verdict._checks({"judged on": total}, whole).values())

    assert held(90.0, 0, 0, True) and not held(90.0, 0, 1, True) and not held(90.0, 3, 0, True)
    assert held(90.0, 3, 1, False) and not held(90.0, 6, 0, False) and not held(90.0, 0, 5, False)
    assert not held(50.0, 0, 0, False)
