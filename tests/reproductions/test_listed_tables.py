"""docs/reproductions.md lists every table of the five documents, and names only what runs and reads the table.

The counts of entries compared and within tolerance are stated in reproductions/tables/. A reproduction that compares
fewer fails, so that the page, the README and `dynid reproduce --all` give the same totals.
"""

from __future__ import annotations

import ast
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest
from _printed import TABLES as DATA
from _printed import PrintedTable, printed

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
    """table: its number, or 's. 4.7' for an experiment without one. counts: entries printed, compared and within
    tolerance, empty where no entry is stored. shown: what is between backquotes."""

    table: str
    status: str
    counts: tuple[int, ...]
    words: str
    shown: tuple[str, ...]


def listed() -> dict[str, list[Row]]:
    """Document -> its rows, as the page has them."""
    found: dict[str, list[Row]] = {}
    for part in re.split(r"^### ", PAGE.read_text(), flags=re.MULTILINE)[1:]:
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines()
                if line.startswith("|")]
        found[part[:3]] = [Row(table, status, tuple(map(int, re.findall(r"\d+", counts))), words,
                               tuple(re.findall(r"`([^`]+)`", shown)))
                           for table, status, counts, words, shown in rows[2:]]
    return found


def stored(document: str) -> dict[str, list[PrintedTable]]:
    """Number of a table -> its stored parts: '4.6' has '4.6' and '4.6 drawings'."""
    with open(DATA / f"{document}.toml", "rb") as file:
        names = list(tomllib.load(file))
    found: dict[str, list[PrintedTable]] = {}
    for name in names:
        number = name if name.startswith("s. ") else name.split()[0]
        found.setdefault(number, []).append(printed(document, name))
    return found


def counted(parts: list[PrintedTable]) -> tuple[int, int, int]:
    """Entries printed, compared and within tolerance."""
    return (sum(len(one.entries) for one in parts), sum(one.compared for one in parts),
            sum(one.within for one in parts))


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


@pytest.mark.parametrize("document", TABLES)
def test_stored_tables_are_counted_on_the_page(document: str) -> None:
    """A stored table is a row of the page, with its counts; no other row has any."""
    rows = {row.table: row for row in listed()[document]}
    parts = stored(document)
    assert set(parts) <= set(rows)
    for number, row in rows.items():
        assert row.counts == (counted(parts[number]) if number in parts else ()), row


@pytest.mark.parametrize("document", TABLES)
def test_the_script_of_a_claimed_table_reads_it(document: str) -> None:
    """And compares at least one of its entries where numbers are claimed (given)."""
    scripts = Scripts("reproduction", FOLDER, "needs").names()
    rows = {row.table: row for row in listed()[document]}
    for number, parts in stored(document).items():
        row = rows[number]
        if row.status == "given":
            assert counted(parts)[2] > 0, row
        if row.status not in SHOWN:
            assert not counted(parts)[1], row
            continue
        named = [scripts[shown.removeprefix("dynid reproduce ")] for shown in row.shown
                 if shown.startswith("dynid reproduce ")]
        texts = {node.value for path in named for node in ast.walk(ast.parse(path.read_text()))
                 if isinstance(node, ast.Constant) and isinstance(node.value, str)}
        for one in parts:
            assert {document, one.number} <= texts, (document, one.number)


def test_the_readme_states_the_total() -> None:
    total = [sum(column) for column in zip(*(counted(parts) for document in TABLES
                                             for parts in stored(document).values()), strict=True)]
    words = f"{total[2]} of {total[1]} printed numbers"
    assert words in (ROOT / "README.md").read_text(), words
    assert words in PAGE.read_text(), words


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
