"""Published results on physical consistency come out, and what the real logs must show."""

from __future__ import annotations

import pytest
from reproduced import reproduced


@pytest.mark.parametrize("name", ["sousa_feasibility", "sousa_reduction", "sousa_control", "sousa_point_masses",
                                  "sousa_regression"])
def test_sousa(name: str) -> None:
    reproduced(name)


@pytest.mark.slow
def test_simionato_extraction() -> None:
    reproduced("simionato_extraction")


@pytest.mark.slow
def test_real_logs(data) -> None:
    data("README.md")
    reproduced("consistent_real_logs")


@pytest.mark.slow
def test_online_iiwa() -> None:
    reproduced("online_iiwa")


@pytest.mark.slow
def test_payload_iiwa() -> None:
    reproduced("payload_iiwa")


@pytest.mark.slow
def test_payload_live() -> None:
    reproduced("payload_live")
