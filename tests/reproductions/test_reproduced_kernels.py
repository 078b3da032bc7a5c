"""Kernels at 20 settings on a real log."""

from __future__ import annotations

import json
from importlib import import_module

import pytest


@pytest.mark.slow
def test_kernels_on_real_logs(data) -> None:
    data("README.md")
    module = import_module("kernel_emps")
    result = module.run(lambda words: None)
    assert all(result["checks"].values()), [check for check, fine in result["checks"].items() if not fine]
    assert len(result["emps"]["kernel"]) == 20 and len(result["emps"]["savitzky_golay"]) == 18
    assert len(result["tx40"]["kernel"]) == 8
    json.dumps(result, allow_nan=False)
    head, *rows = module.table(result)
    assert rows and all(len(row) == len(head) and all(isinstance(cell, str) for cell in row) for row in rows)
