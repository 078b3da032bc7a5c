"""Published results on physical consistency come out, and what the real logs must show."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import pytest

FIGURES = Path(__file__).resolve().parents[2] / "reproductions" / "figures"


def holds(name: str) -> None:
    """Run a reproduction: every check holds, its result is plain, its table is text, its figures are drawn."""
    module = import_module(name)
    result = module.run(lambda words: None)
    assert all(result["checks"].values()), [check for check, fine in result["checks"].items() if not fine]
    plain = json.loads(json.dumps(result, allow_nan=False))
    if (FIGURES / f"{name}.py").exists():
        for drawing in import_module(f"figures.{name}").figures(plain):
            assert drawing.document and drawing.panels
            json.dumps([panel.figure().data for panel in drawing.panels], allow_nan=False)
    head, *rows = module.table(result)
    assert rows and all(len(row) == len(head) and all(isinstance(cell, str) for cell in row) for row in rows)


@pytest.mark.parametrize("name", ["sousa_feasibility", "sousa_reduction", "sousa_control", "sousa_point_masses",
                                  "sousa_regression"])
def test_sousa(name: str) -> None:
    holds(name)


@pytest.mark.slow
def test_simionato_extraction() -> None:
    holds("simionato_extraction")


@pytest.mark.slow
def test_real_logs(data) -> None:
    data("README.md")
    holds("consistent_real_logs")


@pytest.mark.slow
def test_online_iiwa() -> None:
    holds("online_iiwa")


@pytest.mark.slow
def test_payload_iiwa() -> None:
    holds("payload_iiwa")


@pytest.mark.slow
def test_payload_live() -> None:
    holds("payload_live")
