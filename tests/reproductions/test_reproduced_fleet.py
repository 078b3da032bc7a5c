"""Appendix F and the fleet of 200 come out."""

from __future__ import annotations

import json
from importlib import import_module

import pytest


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fleet_iiwa", "fleet_odd"])
def test_fleets(name: str) -> None:
    module = import_module(name)
    result = module.run(lambda words: None)
    assert [check for check, fine in result["checks"].items() if not fine] == []
    json.dumps(result, allow_nan=False)
    head, *rows = module.table(result)
    assert rows and all(len(row) == len(head) for row in rows)
