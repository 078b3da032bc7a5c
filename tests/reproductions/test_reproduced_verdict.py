"""The verdict names faults that are put into logs: a few on a small arm, and in the slow suite more on more robots."""

from __future__ import annotations

import json

import pytest
import verdict
from _faults import FAULTS
from _verdicts import Task, in_turn, tried

QUICK = ("healthy, white noise", "signs of two joints", "swapped torques", "drifting friction", "stuck encoder, 1 s",
         "gear ratio 1.25")


def test_some_faults_on_a_small_arm() -> None:
    places = tuple(k for k, fault in enumerate(FAULTS) if fault.name in QUICK)
    found = tried(None, Task("judged on", "planar4", 3, places))
    assert [one.fault for one in found if not one.named or one.wrong] == []
    assert [one.findings for one in found if one.fault.startswith("healthy")] == [()]


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
    assert {FAULTS[k].name for k in met[0] & met[1]} == {fault.name for fault in FAULTS if not fault.codes}
