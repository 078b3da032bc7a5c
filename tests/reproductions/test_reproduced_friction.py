"""Friction chosen on one part of real logs helps on another, is that of simulated joints, and models A and B."""

from __future__ import annotations

import json
from importlib import import_module

import pytest


def _reproduced(name: str) -> None:
    module = import_module(name)
    result = module.run(lambda words: None)
    assert all(result["checks"].values()), [check for check, fine in result["checks"].items() if not fine]
    json.dumps(result, allow_nan=False)
    head, *rows = module.table(result)
    assert rows and all(len(row) == len(head) and all(isinstance(cell, str) for cell in row) for row in rows)


@pytest.mark.slow
def test_friction_of_real_logs(data) -> None:
    data("README.md")
    _reproduced("friction_real")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["friction_choice", "friction_iiwa"])
def test_friction_of_virtual_machines(name: str) -> None:
    _reproduced(name)
