"""Kernels at 20 settings on a real log."""

from __future__ import annotations

import pytest
from reproduced import reproduced


@pytest.mark.slow
def test_kernels_on_real_logs(data) -> None:
    data("README.md")
    result = reproduced("kernel_emps")
    assert len(result["emps"]["kernel"]) == 20 and len(result["emps"]["savitzky_golay"]) == 18
    assert len(result["tx40"]["kernel"]) == 8
