"""Appendix F and the fleet of 200 come out."""

from __future__ import annotations

import pytest
from reproduced import reproduced


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fleet_iiwa", "fleet_odd"])
def test_fleets(name: str) -> None:
    reproduced(name)
