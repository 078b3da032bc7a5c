"""Friction chosen on one part of real logs helps on another, and is that of simulated joints."""

from __future__ import annotations

import pytest
from reproduced import reproduced


@pytest.mark.slow
def test_friction_of_real_logs(data) -> None:
    data("README.md")
    reproduced("friction_real")


@pytest.mark.slow
def test_friction_of_virtual_machines() -> None:
    reproduced("friction_choice")
