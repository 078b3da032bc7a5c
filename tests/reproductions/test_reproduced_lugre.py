"""LuGre friction of a simulated EMPS: what it predicts, and what of it is recovered."""

from __future__ import annotations

import json
from importlib import import_module

import pytest


@pytest.mark.slow
def test_lugre_of_a_simulated_emps() -> None:
    module = import_module("lugre_emps")
    result = module.run(lambda words: None)
    assert all(result["checks"].values()), [check for check, fine in result["checks"].items() if not fine]
    json.dumps(result, allow_nan=False)
    head, *rows = module.table(result)
    assert rows and all(len(row) == len(head) and all(isinstance(cell, str) for cell in row) for row in rows)
