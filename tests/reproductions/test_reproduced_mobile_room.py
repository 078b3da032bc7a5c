"""The reproduction of the mobile robot in a room."""

from __future__ import annotations

import pytest
from reproduced import reproduced


@pytest.mark.slow
def test_mobile_room() -> None:
    reproduced("mobile_room")
