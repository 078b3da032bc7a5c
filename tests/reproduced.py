"""Checks that every reproduction must pass."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from reproductions._printed import PrintedTable, stored_tables

FIGURES = Path(__file__).resolve().parents[1] / "reproductions" / "figures"


def reproduced(name: str, **size: Any) -> dict[str, Any]:
    """Return the result of a reproduction. Every check holds, stored tables are compared as stated, the result is
    plain, its table is text, and its figures are drawn."""
    module = import_module(f"reproductions.{name}")
    result: dict[str, Any] = module.run(lambda words: None, **size)
    words = {**result.get("checks", {}), **result.get("demonstrations", {})}
    assert all(words.values()), [check for check, fine in words.items() if not fine]
    failures = [failure for one in result.get("printed", ()) for failure in one["failures"]]
    assert not failures, failures
    study = name.replace("_", "-")
    check_tables([table for table in stored_tables() if table.study == study], result.get("printed", ()))
    plain = json.loads(json.dumps(result, allow_nan=False))
    if (FIGURES / f"{name}.py").exists():
        for drawing in import_module(f"reproductions.figures.{name}").figures(plain):
            assert drawing.document and drawing.panels
            json.dumps([panel.figure().data for panel in drawing.panels], allow_nan=False)
    head, *rows = module.table(result)
    assert rows and all(len(row) == len(head) and all(isinstance(cell, str) for cell in row) for row in rows)
    return result


def check_tables(stored: Sequence[PrintedTable], compared: Sequence[dict[str, Any]]) -> None:
    """Compare the summaries of a run with the stored tables of its study.

    Every stored table has one summary and no other has any. Each entry of a summary has the printed value of its row
    and column, and its verdict follows from the two numbers and the tolerance. As many entries are compared as the
    table states, at least as many are within tolerance, and all others have a reason.
    """
    found = {(one["document"], one["table"]): one for one in compared}
    assert len(found) == len(compared), "a table is compared twice"
    assert set(found) == {(table.document, table.number) for table in stored}
    for table in stored:
        one, name = found[table.document, table.number], f"{table.document}, table {table.number}"
        places = [(entry["row"], entry["column"]) for entry in one["entries"]]
        assert len(set(places)) == len(places) and set(places) <= set(table.entries), name
        for entry in one["entries"]:
            assert entry["within"] == _is_within(table, entry), (name, entry)
        assert one["compared"] == len(places) == table.compared, name
        assert one["within"] == sum(entry["within"] for entry in one["entries"]) >= table.within, name
        left_out = sum(one["not_comparable"].values())
        assert len(places) + left_out == one["printed"] == len(table.entries), name


def _is_within(table: PrintedTable, entry: dict[str, Any]) -> bool:
    """Whether the number of an entry is within its tolerance of what is printed in its place."""
    row, column, ours = entry["row"], entry["column"], entry["ours"]
    text = table.text(row, column)
    if isinstance(entry["printed"], str):
        assert entry["printed"] == text, entry
        return bool(ours == text)
    assert entry["printed"] == float(text) and entry["tolerance"] >= table.half_digit(row, column), entry
    return ours is not None and abs(ours - float(text)) <= entry["tolerance"] * (1 + 1e-9)
