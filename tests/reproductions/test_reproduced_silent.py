"""Wrong inputs of simulated arms are named: a few of them, and in the slow suite all."""

from __future__ import annotations

import pytest
from reproduced import reproduced

from reproductions.silent import CASES, IN_ALL


def test_some_wrong_inputs_are_named() -> None:
    rows = {row["case"]: row for row in reproduced("silent", **IN_ALL)["rows"]}
    assert rows["20 % of rows lost"]["true"] < 2.0 * rows["healthy"]["true"]
    assert rows["20 % of rows have torque 0"]["true"] < 2.0 * rows["healthy"]["true"]


@pytest.mark.slow
def test_all_wrong_inputs_are_named() -> None:
    assert len(reproduced("silent", seed=6502)["rows"]) > len(CASES)
