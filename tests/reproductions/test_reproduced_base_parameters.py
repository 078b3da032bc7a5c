"""Base parameters and condition numbers beside printed ones."""

from __future__ import annotations

from reproduced import reproduced


def test_base_parameters() -> None:
    result = reproduced("base_parameters")
    counts = {(one["document"], one["table"]): (one["compared"], one["within"]) for one in result["printed"]}
    assert counts["000", "2.6"] == (43, 43) and counts["004", "A.3"] == (43, 42)
