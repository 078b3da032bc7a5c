"""Published results on physical consistency come out, and what the real logs must show."""

from __future__ import annotations

import pytest
from reproduced import reproduced


@pytest.mark.slow
def test_real_logs(data) -> None:
    data("README.md")
    reproduced("consistent_real_logs")


@pytest.mark.slow
def test_payload_iiwa() -> None:
    reproduced("payload_iiwa")


@pytest.mark.slow
def test_payload_live() -> None:
    reproduced("payload_live")
