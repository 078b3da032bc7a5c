"""What half and twice of a threshold changes: on a few logs here, on all in the reproduction."""

from __future__ import annotations

import json

import reproductions.verdict_thresholds as study
from dynid.validate import thresholds
from dynid.validate.verdict_checks import causes
from reproductions._faults import FAULTS


def test_thresholds_are_set_where_they_are_used_and_set_back() -> None:
    before = thresholds.UNIT_SPREAD
    with study.threshold("UNIT_SPREAD", 3.0 * before):
        assert causes.UNIT_SPREAD == thresholds.UNIT_SPREAD == 3.0 * before
    assert causes.UNIT_SPREAD == thresholds.UNIT_SPREAD == before


def test_shares_stay_shares() -> None:
    assert study.varied_value("PATTERN_BLOCKS", 2.0) == 1.0
    assert study.varied_value("CHANGE_EXPLAINED", 2.0) == 1.0
    assert study.varied_value("WRONG_UNIT", 2.0) == 10.0


def test_thresholds_that_no_log_decides_are_not_tried() -> None:
    """The verdict on a log with a wrong sign, with each threshold that the trace does not name at half and twice its
    value, is the same."""
    places = [k for k, fault in enumerate(FAULTS) if fault.name == "sign of one joint"]
    [case] = study.cases(("arm3r",), 3, places)
    names = study.names_of_thresholds()[::8]
    found, decided = study.deciding(case, names)
    assert found == case.outcome and found.found == ("torque-sign",)
    idle = [(name, factor) for name in names for factor in study.FACTORS if (name, factor) not in decided]
    assert len(idle) > len(names)
    for name, factor in idle[::2]:
        with study.threshold(name, study.varied_value(name, factor)):
            assert case.outcome == found


def test_a_threshold_that_is_far_off_changes_a_verdict() -> None:
    """A unit that is wrong by a thousand is named at half and twice the threshold, and not at ten thousand."""
    places = [k for k, fault in enumerate(FAULTS) if fault.name in ("healthy, white noise", "torques in mN m")]
    result = study.run(lambda words: None, robots=("arm3r",), names=("WRONG_UNIT", "LARGE_OFFSET"), seed=3,
                       faults=places, machines=())
    json.dumps(result, allow_nan=False)
    assert result["before"]["named"] == 100.0 and result["before"]["false"] == 0.0
    assert result["without_effect"] == ["LARGE_OFFSET", "WRONG_UNIT"]  # a unit is off by 1000, a healthy log by nothing
    head, *rows = study.table(result)
    assert len(rows) == 5 and all(len(row) == len(head) for row in rows)
    with study.threshold("WRONG_UNIT", 1e4):
        assert not study.totals([one.outcome for one in study.cases(("arm3r",), 3, places)])["named"]
