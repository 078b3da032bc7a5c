"""Method auto holds its bar on the real logs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from reproductions import auto


@pytest.mark.slow
def test_what_auto_chose_predicts_other_data_as_well_as_the_better_of_two(data: Callable[..., Path]) -> None:
    data("kuka_lwr4")
    result = auto.run(lambda words: None)
    assert [name for name, holds in result["checks"].items() if not holds] == []
    assert len(auto.table(result)) == 1 + len(result["splits"]) == 16
