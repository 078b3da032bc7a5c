"""Friction chosen on one part of real logs helps on another, is that of simulated joints, and models A and B."""

from __future__ import annotations

import pytest
from reproduced import reproduced


@pytest.mark.slow
def test_friction_of_real_logs(data) -> None:
    data("README.md")
    reproduced("friction_real")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["friction_choice", "friction_iiwa"])
def test_friction_of_virtual_machines(name: str) -> None:
    reproduced(name)
