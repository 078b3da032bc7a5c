"""Changed robots of a fleet of 200 are found."""

from __future__ import annotations

import pytest
from reproduced import reproduced


@pytest.mark.slow
def test_fleet_of_200() -> None:
    reproduced("fleet_odd")
