"""LuGre friction of a simulated EMPS: what it predicts, and what of it is recovered."""

from __future__ import annotations

import pytest
from reproduced import reproduced


@pytest.mark.slow
def test_lugre_of_a_simulated_emps() -> None:
    reproduced("lugre_emps")
