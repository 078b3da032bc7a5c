"""Intervals hold as often as they say: a few logs of one machine here, the reproduction itself among the slow tests."""

from __future__ import annotations

import json

import coverage_
import numpy as np
import pytest
from _machines import Machine


def test_intervals_hold_in_the_closed_loop() -> None:
    """Over all parameters of twelve logs; from residuals alone, and with one error for all nominal values, 85 to 89 %
    of them did."""
    found = coverage_.cover(Machine.of("arm3r"), closed=True, logs=range(12), methods=("wls", "ridge", "pc-ridge"))
    for method, one in found.items():
        assert 91.0 < np.mean(one["coverage"]) < 99.5, method
        assert one["coverage"].min() >= 60.0, method
        assert one["failures"] == 0
        assert one["said"] > 0.5


def test_the_result_is_plain_and_the_table_is_text() -> None:
    result = coverage_.run(lambda words: None, logs=2, machines=("scara2",))
    json.dumps(result, allow_nan=False)
    head, *rows = coverage_.table(result)
    assert len(rows) == 2 * len(coverage_.METHODS)
    assert all(len(row) == len(head) and all(isinstance(cell, str) for cell in row) for row in rows)


def test_fewest_is_the_binomial_bound() -> None:
    from scipy.stats import binom

    few = coverage_.fewest(40, 20)
    assert binom.cdf(few - 1, 40, 0.8) < 0.01 / 20 <= binom.cdf(few, 40, 0.8)


@pytest.mark.slow
def test_coverage_of_machines_with_sliding_joints() -> None:
    result = coverage_.run(lambda words: None, machines=("scara", "gantry"))
    assert all(result["checks"].values()), [check for check, fine in result["checks"].items() if not fine]
