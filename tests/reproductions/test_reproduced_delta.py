"""The simulated delta robot of table I."""

from __future__ import annotations

from reproductions import delta


def test_how_fully_bodies_are_described_makes_the_count() -> None:
    model, _ = delta._machine()
    assert list(delta._counts(model).values()) == [13, 16, 19, 40]
