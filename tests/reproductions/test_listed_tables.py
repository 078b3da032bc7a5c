"""docs/reproductions.md lists every table of the five documents, and names only what runs."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from dynid.cli.reproduce import FOLDER
from dynid.cli.scripts import Scripts

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reproductions.md"
# The documents' own numbering, by their captions.
TABLES = {
    "000": "2.1 2.2 2.3 2.4 2.5 2.6 2.7 2.8 2.9 2.10 3.1 3.2 3.3 4.1 B.1 B.2 C.1 D.1 D.2 D.3 D.4 D.5 D.6 E.1 E.2 E.3 "
           "E.4 E.5 F.1",
    "001": "4.1 4.2 4.3 4.4 4.5 4.6 4.7 4.8 4.9 4.10 4.11 5.1 5.2 6.1 6.2 7.1",
    "002": "1 2 3 4 5 6 7",
    "003": "I",
    "004": "3.1 3.2 3.3 3.4 3.5 5.1 5.2 5.3 5.4 5.5 A.1 A.2 A.3 A.4 A.5 A.6 A.7 A.8 A.9 A.10",
}
SHOWN = {"given", "shape", "input"}
NOT_SHOWN = {"not possible", "missing"}


@dataclass(frozen=True)
class Row:
    """table: its number, or 's. 4.7' for an experiment without one. shown: what stands between backquotes."""

    table: str
    status: str
    words: str
    shown: tuple[str, ...]


def listed() -> dict[str, list[Row]]:
    """Document -> its rows, as the page has them."""
    found: dict[str, list[Row]] = {}
    for part in re.split(r"^### ", PAGE.read_text(), flags=re.MULTILINE)[1:]:
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines()
                if line.startswith("|")]
        found[part[:3]] = [Row(table, status, words, tuple(re.findall(r"`([^`]+)`", shown)))
                           for table, status, words, shown in rows[2:]]
    return found


@pytest.mark.parametrize("document", TABLES)
def test_every_table_stands_there_once_and_in_order(document: str) -> None:
    rows = listed()[document]
    assert [row.table for row in rows if not row.table.startswith("s. ")] == TABLES[document].split()
    assert len({row.table for row in rows}) == len(rows)


@pytest.mark.parametrize("document", TABLES)
def test_every_row_says_how_it_is_shown_or_why_not(document: str) -> None:
    for row in listed()[document]:
        assert row.status in SHOWN | NOT_SHOWN, row
        assert row.words, row
        assert bool(row.shown) == (row.status in SHOWN), row


def test_what_is_named_runs() -> None:
    """Every command is a reproduction, every test one that pytest finds."""
    commands = Scripts("reproduction", FOLDER, "needs").names()
    for rows in listed().values():
        for shown in {name for row in rows for name in row.shown}:
            if shown.startswith("dynid reproduce "):
                assert shown.removeprefix("dynid reproduce ") in commands, shown
            else:
                file, _, name = shown.partition("::")
                functions = {node.name for node in ast.parse((ROOT / file).read_text()).body
                             if isinstance(node, ast.FunctionDef)}
                assert name in functions and name.startswith("test_"), shown


def test_every_reproduction_is_on_the_page() -> None:
    """And no command stands there that is none."""
    named = set(re.findall(r"`dynid reproduce ([a-z][a-z0-9-]*)`", PAGE.read_text()))
    assert named == set(Scripts("reproduction", FOLDER, "needs").names())


def test_the_numbering_is_that_of_the_documents() -> None:
    """Where the documents are at hand: every caption's number is in the list above and the other way round."""
    folder = ROOT.parent / "shared" / "seeds"
    files = {path.name[:3]: path for path in folder.glob("*.txt")}
    if not files:
        pytest.skip("needs the five documents beside the clone")
    caption = re.compile(r"^\s*\**Table\s+([A-F]?\.?\d+(?:\.\d+)?|I+)\b", re.MULTILINE | re.IGNORECASE)
    for document, path in files.items():
        assert set(caption.findall(path.read_text())) == set(TABLES[document].split()), document
