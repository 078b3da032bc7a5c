"""What every reproduction must show when it runs."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

FIGURES = Path(__file__).resolve().parents[1] / "reproductions" / "figures"


def reproduced(name: str, **size: Any) -> dict[str, Any]:
    """The result of a reproduction: every check holds, it is plain, its table is text, its figures are drawn."""
    module = import_module(name)
    result: dict[str, Any] = module.run(lambda words: None, **size)
    words = {**result.get("checks", {}), **result.get("demonstrations", {})}
    assert all(words.values()), [check for check, fine in words.items() if not fine]
    failures = [failure for one in result.get("printed", ()) for failure in one["failures"]]
    assert not failures, failures
    plain = json.loads(json.dumps(result, allow_nan=False))
    if (FIGURES / f"{name}.py").exists():
        for drawing in import_module(f"figures.{name}").figures(plain):
            assert drawing.document and drawing.panels
            json.dumps([panel.figure().data for panel in drawing.panels], allow_nan=False)
    head, *rows = module.table(result)
    assert rows and all(len(row) == len(head) and all(isinstance(cell, str) for cell in row) for row in rows)
    return result
