"""Intervals hold as often as they say: a few logs of one machine here, the reproduction itself among the slow tests."""

from __future__ import annotations

import json

import numpy as np
import pytest
from reproduced import reproduced

from dynid.errors import ModelError
from dynid.workers import Workers
from reproductions import coverage
from reproductions._coverage_batches import Batch, Held, cover, machine_of


def test_intervals_hold_in_the_closed_loop() -> None:
    """Over all parameters of twelve logs; from residuals alone, and with one error for all nominal values, 85 to 89 %
    of them did."""
    batch = Batch("arm3r", tuple(range(12)), {"closed loop": ("wls", "ridge", "pc-ridge")})
    for (_, method), one in cover(None, batch).items():
        assert 91.0 < np.mean(one.coverage) < 99.5, method
        assert one.coverage.min() >= 60.0, method
        assert one.failures == 0
        assert one.reasons["noise-in-motion"] > 6


def test_the_result_is_plain_and_the_table_is_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each case has a row of at least one of these methods; the same code makes the rows of the others."""
    monkeypatch.setattr(coverage, "MORE_LOGS", 1)  # two logs leave most rows outside the bars
    methods = ("wls", "ridge", "unnamed", "watch")
    result = coverage.run(lambda words: None, logs=2, only=("scara2", *methods), workers=Workers(1))
    json.dumps(result, allow_nan=False)
    head, *rows = coverage.table(result)
    assert len(rows) == sum(method in methods for case in coverage.CASES.values() for method in case.methods)
    assert {row["case"] for row in result["rows"]} == set(coverage.CASES)
    assert any("--workers 2" in words and holds for words, holds in result["checks"].items())
    assert all(len(row) == len(head) and all(isinstance(cell, str) for cell in row) for row in rows)


def test_a_parameter_that_is_covered_too_rarely_is_judged_on_new_logs() -> None:
    """Twenty logs of which one interval held in fifteen: what new logs say of it decides, and only of it."""
    def held(shares: list[float]) -> Held:
        found = np.array([np.arange(20) < 20 * share for share in shares], dtype=float).T
        return Held(found, np.ones(found.shape), 0, {}, np.ones(found.shape))

    key, names = ("scara2", "", "wls"), machine_of("scara2").base.names
    first = held([0.75] + [0.95] * (len(names) - 1))
    for share, fine in ((0.95, True), (0.75, False)):
        row = coverage._row(key, first, np.array([0]), held([share] + [0.9] * (len(names) - 1)))
        assert row["worst"] == 75.0 and row["again"] == {names[0]: pytest.approx(100.0 * share)}
        checks = coverage._row_checks(row, coverage.MEDIAN, coverage.WORST)
        assert [holds for _, holds in checks] == [True, True, fine, True]


def test_a_row_whose_median_is_too_high_is_judged_on_new_logs() -> None:
    """The check states both medians, and how often a worst parameter as low is due to chance."""
    names = machine_of("scara2").base.names

    def held(share: float) -> Held:
        found = np.repeat((np.arange(20) < 20 * share)[:, None], len(names), axis=1).astype(float)
        return Held(found, np.ones(found.shape), 0, {}, np.ones(found.shape))

    for share, fine in ((0.95, True), (1.0, False)):
        row = coverage._row(("scara2", "", "wls"), held(1.0), np.zeros(0, dtype=int), held(share))
        words, holds = coverage._row_checks(row, coverage.MEDIAN, coverage.WORST)[1]
        assert holds == fine and f"in new logs {100 * share:.0f} % in the median parameter" in words
        assert row["worst_by_chance"] == pytest.approx(1.0)  # none is lower than all


def test_a_run_that_names_nothing_is_counted_by_the_parameters_it_shares_with_the_machine() -> None:
    """Its intervals hold, and are no wider than those of an oracle by more than a half in the median parameter."""
    one = cover(None, Batch("scara2", tuple(range(200, 206)), {"default": ("unnamed",)}))["default", "unnamed"]
    names = machine_of("scara2").base.names
    assert one.held.shape == (6, len(names)) and one.failures == 0
    assert np.isfinite(one.coverage).all() and 85.0 < np.mean(one.coverage) <= 100.0
    assert coverage._median_width(one.width) < coverage.WIDEST


def test_widths_of_parameters_that_no_log_identifies_do_not_count() -> None:
    width = np.array([[1.0, np.nan, 3.0], [1.2, np.nan, np.nan]])
    assert coverage._median_width(width) == pytest.approx(2.05)


def test_parts_are_robots_cases_and_methods() -> None:
    robots, every = coverage._parts(("gantry", "open loop", "closed loop", "pc-wls", "iv"))
    assert robots == ["gantry"] and every == {"": ("pc-wls",), "closed loop": ("pc-wls", "iv")}
    robots, every = coverage._parts(("watch",))
    assert robots == list(coverage.MACHINES) and every == {"live": ("watch",)}
    with pytest.raises(ModelError, match="no robot, case or method 'gantri'"):
        coverage._parts(("gantri",))
    with pytest.raises(ModelError, match="no case with what `--only live,iv` names"):
        coverage._parts(("live", "iv"))


def test_friction_in_the_closed_loop_has_bars_of_its_own() -> None:
    """Friction of which one in four is never covered is refused in the closed loop. The open one has other bars."""
    names = machine_of("scara2").base.names
    found = np.ones((20, len(names)))
    found[:, names.index("Fc1")] = 0.0
    for case, fine in (("", []), ("closed loop", [False])):
        one = Held(found, np.ones(found.shape), 0, {}, np.ones(found.shape))
        row = coverage._row(("scara2", case, "wls"), one, np.zeros(0, dtype=int), one)
        checks = [(words, holds) for words, holds in coverage._row_checks(row, coverage.MEDIAN, coverage.WORST)
                  if "friction" in words]
        assert [holds for _, holds in checks] == fine
        assert all("75.0 +- 0.0 % and in new logs 75.0" in words for words, _ in checks)


def test_every_parameter_of_pc_ridge_has_the_bar_of_the_widths() -> None:
    names = machine_of("scara2").base.names
    width = np.ones((20, len(names)))
    width[:, 0] = 1.6
    one = Held(np.ones(width.shape), np.ones(width.shape), 0, {}, width)
    for method, fine in (("ridge", True), ("pc-ridge", False)):
        row = coverage._row(("scara2", "nominal 30 % off", method), one, np.zeros(0, dtype=int), None)
        assert coverage._row_checks(row, coverage.MEDIAN, coverage.WORST)[0][1] is fine


@pytest.mark.slow
def test_coverage_of_machines_with_sliding_joints() -> None:
    reproduced("coverage", only=("scara", "gantry"))


def test_few_logs_are_held_to_what_they_can_tell() -> None:
    """Ten logs: six of ten in the median parameter is no proof against 90 %, five is; the means of methods decide."""
    def row(median: float, worst: float, mean: float) -> dict[str, object]:
        return {"robot": "a", "loop": "open", "method": "wls", "median": median, "worst": worst, "again": {},
                "parameters": 9, "logs": 10, "case": "", "centre_again": None, "error": 1.0, "worst_by_chance": 0.1,
                "width": 1.0, "widest": 1.0, "friction": 95.0, "friction_error": 1.0,
                "failures": 0, "mean": mean,
                "shares": [mean - 5.0, mean + 5.0] * 5}

    def held(*found: float) -> list[bool]:
        return list(coverage._checks([{**row(*found), "method": name} for name in coverage.METHODS], 10).values())

    assert all(held(100.0, 60.0, 95.0)) and all(held(60.0, 50.0, 91.0))
    assert not all(held(50.0, 60.0, 95.0)) and not all(held(100.0, 30.0, 95.0)) and not all(held(100.0, 60.0, 85.0))
    assert all(held(100.0, 60.0, 87.0)), "ten logs with a standard error of 1.7 % do not tell 87 % from 90"
