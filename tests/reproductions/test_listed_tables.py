"""docs/reproductions.md lists every table of the five documents, and names only what runs and reads the table.

The counts of entries compared and within tolerance are stated in reproductions/tables/, with the study that compares
them. Every such study is run here, the long ones among the slow tests, and its comparisons are checked against the
stored tables. So the page, the README and `dynid reproduce --all` give the same totals.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from reproduced import check_tables, reproduced

from dynid.cli.reproduce import FOLDER
from dynid.cli.scripts import Scripts
from reproductions._printed import Comparison, PrintedTable, printed, stored_tables

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
# Studies of at most three CPU seconds each; the others are slow tests.
QUICK = {"base-parameters", "code-generation", "sousa-feasibility", "sousa-reduction", "sousa-regression"}
ON_REAL_LOGS = {"tx40-pc-iv": ("tx40", "tx40_mdh_modified.urdf")}  # studies that read a file of the data folder


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
    found: dict[str, list[PrintedTable]] = {}
    for table in stored_tables():
        if table.document == document:
            number = table.number if table.number.startswith("s. ") else table.number.split()[0]
            found.setdefault(number, []).append(table)
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
def test_the_study_of_a_stored_table_is_on_the_page_and_names_it(document: str) -> None:
    """Entries are within tolerance where numbers are claimed (given), and compared only where a study is named."""
    scripts = Scripts("reproduction", FOLDER, "needs").names()
    rows = {row.table: row for row in listed()[document]}
    for number, parts in stored(document).items():
        row = rows[number]
        assert row.status in SHOWN, row
        assert row.status != "given" or counted(parts)[2] > 0, row
        for one in parts:
            assert f"dynid reproduce {one.study}" in row.shown, row
            texts = {node.value for node in ast.walk(ast.parse(scripts[one.study].read_text()))
                     if isinstance(node, ast.Constant) and isinstance(node.value, str)}
            assert {document, one.number} <= texts, (document, one.number)


@pytest.mark.parametrize("study", [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow])
                                   for name in sorted({table.study for table in stored_tables()})])
def test_a_study_compares_its_tables_as_the_page_states(study: str, data: Callable[..., Path]) -> None:
    """`reproduced` checks every entry of its comparisons against the stored tables, in the size of `--all`."""
    if study in ON_REAL_LOGS:
        data(*ON_REAL_LOGS[study])
    name = study.replace("-", "_")
    assert reproduced(name, **getattr(import_module(f"reproductions.{name}"), "IN_ALL", {}))["printed"]


def _compared() -> tuple[PrintedTable, dict[str, Any]]:
    """A stored table, and the summary of a run that compares as many entries as it states, the first one wrongly."""
    table = printed("001", "6.1")
    comparison = Comparison(table)
    for k, (row, column) in enumerate(table.entries[:table.compared]):
        comparison.compare(row, column, table.value(row, column) + (k == 0), claimed=k > 0)
    comparison.leave_out("given")
    return table, comparison.summary()


def _without_entry(one: dict[str, Any]) -> None:
    one["entries"].pop()


def _with_fewer(one: dict[str, Any]) -> None:
    one["entries"].pop()
    one["compared"] -= 1
    one["within"] -= 1
    one["not_comparable"]["given"] += 1


def _with_another_number(one: dict[str, Any]) -> None:
    one["entries"][1]["printed"] = one["entries"][1]["ours"] = 2.5


def _called_within(one: dict[str, Any]) -> None:
    one["entries"][0]["within"] = True
    one["within"] += 1


def _without_reasons(one: dict[str, Any]) -> None:
    one["not_comparable"] = {}


def _in_another_place(one: dict[str, Any]) -> None:
    one["entries"][1]["column"] = "none"


def _of_another_table(one: dict[str, Any]) -> None:
    one["table"] = "6.2"


@pytest.mark.parametrize("change", [_without_entry, _with_fewer, _with_another_number, _called_within, _without_reasons,
                                    _in_another_place, _of_another_table])
def test_a_run_that_does_not_read_its_table_or_compares_less_fails(change: Callable[[dict[str, Any]], None]) -> None:
    table, summary = _compared()
    stated = PrintedTable(**{**vars(table), "within": table.compared - 2})
    check_tables([stated], [summary])
    changed = deepcopy(summary)
    change(changed)
    for summaries in ([changed], [], [summary, summary]):
        with pytest.raises(AssertionError):
            check_tables([stated], summaries)


def test_fewer_entries_than_stated_fail_the_command() -> None:
    table = printed("001", "6.1")
    comparison = Comparison(table)
    for row, column in table.entries[:table.compared - 1]:
        comparison.compare(row, column, table.value(row, column))
    comparison.leave_out("given")
    assert [failure.partition(": ")[2] for failure in comparison.summary()["failures"]] == [
        f"{table.compared - 1} entries compared, {table.compared} stated",
        f"{table.compared - 1} entries within tolerance, {table.within} stated"]


def test_studies_that_no_document_prints_are_marked_in_their_code() -> None:
    """The mark is an assignment of the module, not a line of its docstring."""
    for path in Scripts("reproduction", FOLDER, "needs").names().values():
        text = path.read_text()
        marked = any(isinstance(node, ast.Assign) and ast.unparse(node) == "OWN_STUDY = True"
                     for node in ast.parse(text).body)
        assert marked == ("OWN_STUDY" in text), path.name


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
