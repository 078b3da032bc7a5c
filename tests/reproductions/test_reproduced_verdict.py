"""The verdict names faults that are put into logs: a few on a small arm, and in the slow suite more on more robots."""

from __future__ import annotations

import json

import pytest
import verdict
from _faults import FAULTS

QUICK = ("healthy, white noise", "signs of two joints", "swapped torques", "drifting friction", "stuck encoder, 1 s",
         "gear ratio 1.25")


def test_some_faults_on_a_small_arm() -> None:
    found = verdict.tried("judged on", "planar4", 3, [fault for fault in FAULTS if fault.name in QUICK])
    assert [one.fault for one in found if not one.named or one.wrong] == []
    assert [one.findings for one in found if one.fault.startswith("healthy")] == [()]


@pytest.mark.slow
def test_all_faults_on_robots_that_no_setting_was_chosen_on() -> None:
    outcomes = [one for robot in ("planar5", "ur10") for one in verdict.tried("judged on", robot, 20, FAULTS)]
    result = verdict.summary(outcomes)
    assert all(result["checks"].values()), result["checks"]
    json.dumps(result, allow_nan=False)
    head, *rows = verdict.table(result)
    assert len(rows) == len(FAULTS) + len(result["totals"]) and all(len(row) == len(head) for row in rows)
