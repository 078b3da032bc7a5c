"""Printed tables as data, and the comparison of computed numbers with them.

tables/NNN.toml has the tables of document NNN: the study that compares them, page, what they show, columns and rows,
every entry as it is printed. An entry's tolerance is half a unit of its last digit, unless the caller has one from the
experiment's stated noise.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Any

TABLES = Path(__file__).resolve().parent / "tables"
NO_ENTRY = "-"


@dataclass(frozen=True)
class PrintedTable:
    """One table of a document.

    Attributes:
        document: Number of the document, "001".
        number: Number of the table, "4.9".
        study: Name of the reproduction that compares it.
        page: Page of the document; None where the scan has no page numbers.
        about: What the table shows.
        columns: Names of the columns.
        rows: Row name -> entries as printed, in the order of the columns.
        compared: Number of entries that its reproduction is stated to compare.
        within: Number of entries that are stated to be within tolerance.
    """

    document: str
    number: str
    study: str
    page: int | None
    about: str
    columns: tuple[str, ...]
    rows: Mapping[str, tuple[str, ...]]
    compared: int
    within: int

    @property
    def entries(self) -> list[tuple[str, str]]:
        """Row and column of every printed entry."""
        return [(row, column) for row, cells in self.rows.items()
                for column, text in zip(self.columns, cells, strict=True) if text != NO_ENTRY]

    def text(self, row: str, column: str) -> str:
        return self.rows[row][self.columns.index(column)]

    def value(self, row: str, column: str) -> float:
        return float(self.text(row, column))

    def values(self, column: str) -> list[float]:
        """The column as numbers, rows without an entry left out."""
        return [self.value(row, column) for row in self.rows if self.text(row, column) != NO_ENTRY]

    def half_digit(self, row: str, column: str) -> float:
        """Half a unit of the last printed digit."""
        mantissa, _, exponent = self.text(row, column).lower().partition("e")
        return 0.5 * 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))


@cache
def printed(document: str, number: str) -> PrintedTable:
    """Read one table of a document from tables/."""
    with open(TABLES / f"{document}.toml", "rb") as file:
        one = tomllib.load(file)[number]
    columns = tuple(one["columns"].split())
    rows = {name: tuple(cells.split()) for name, cells in one["rows"].items()}
    wrong = [name for name, cells in rows.items() if len(cells) != len(columns)]
    if wrong:
        raise ValueError(f"rows {wrong} of table {number} of document {document} do not have {len(columns)} entries")
    return PrintedTable(document, number, one["study"], one.get("page"), one["about"], columns, rows, one["compared"],
                        one["within"])


def stored_tables() -> list[PrintedTable]:
    """Read all stored tables, in the order of the documents."""
    found = []
    for path in sorted(TABLES.glob("*.toml")):
        with open(path, "rb") as file:
            found += [printed(path.stem, number) for number in tomllib.load(file)]
    return found


class Comparison:
    """Comparison of computed numbers with the entries of one printed table."""

    def __init__(self, table: PrintedTable) -> None:
        self.table = table
        self._compared: dict[tuple[str, str], dict[str, Any]] = {}
        self._left_out: dict[tuple[str, str], str] = {}

    def compare(self, row: str, column: str, ours: float, *, rounding: float = 0.0, noise: float = 0.0,
                claimed: bool = True) -> None:
        """Compare one number. The tolerance is half a unit of the last printed digit plus the effects of rounding and
        noise.

        An entry is not comparable if its noise is as large as the entry, because any number of the right size would
        then agree.

        Args:
            row: row of the entry.
            column: column of the entry.
            ours: the computed number; infinite if there is none, such as the settling time of a parameter that does not
                settle.
            rounding: effect of rounded inputs on the number.
            noise: effect of the noise of the experiment on the number.
            claimed: whether the entry is expected to be reproduced. An entry that is not expected counts as not
                reproduced if it is outside the tolerance, and does not make the command fail.
        """
        allowed = rounding + noise + self.table.half_digit(row, column)
        theirs = self.table.value(row, column)
        if noise and allowed >= abs(theirs):
            self._left_out[row, column] = "the noise of the experiment is as large as the number"
            return
        self._compared[row, column] = {"printed": theirs, "ours": float(ours) if isfinite(ours) else None,
                                       "tolerance": float(allowed),
                                       "within": bool(abs(ours - theirs) <= allowed * (1 + 1e-9)), "claimed": claimed}

    def compare_word(self, row: str, column: str, ours: str, *, claimed: bool = True) -> None:
        """Compare an entry that is a word."""
        theirs = self.table.text(row, column)
        self._compared[row, column] = {"printed": theirs, "ours": ours, "tolerance": 0.0, "within": ours == theirs,
                                       "claimed": claimed}

    def leave_out(self, why: str, entries: Iterable[tuple[str, str]] | None = None) -> None:
        """State why entries cannot be compared; by default all without a comparison or a reason so far."""
        every = self.table.entries if entries is None else entries
        self._left_out |= {entry: why for entry in every if entry not in self._compared and entry not in self._left_out}

    def summary(self) -> dict[str, Any]:
        """Counts and failures as plain values, for `printed` of a reproduction's result."""
        table, every = self.table, self.table.entries
        name = f"{table.document}, table {table.number}"
        missing = [entry for entry in every if entry not in self._compared and entry not in self._left_out]
        unknown = [entry for entry in (*self._compared, *self._left_out) if entry not in every]
        within = sum(one["within"] for one in self._compared.values())
        failures = [f"{name}, {row}, {column}: {one['ours']} for {one['printed']}" + (
            f" +- {one['tolerance']:.2g}" if one["tolerance"] else "")
            for (row, column), one in self._compared.items() if one["claimed"] and not one["within"]]
        if missing or unknown:
            failures.append(f"{name}: {len(missing)} entries neither compared nor left out, {len(unknown)} not printed")
        if len(self._compared) < table.compared:
            failures.append(f"{name}: {len(self._compared)} entries compared, {table.compared} stated")
        if within < table.within:
            failures.append(f"{name}: {within} entries within tolerance, {table.within} stated")
        return {"document": table.document, "table": table.number, "page": table.page, "about": table.about,
                "printed": len(every), "compared": len(self._compared), "within": within,
                "not_comparable": dict(Counter(self._left_out.values())), "failures": failures,
                "entries": [{"row": row, "column": column, **one} for (row, column), one in self._compared.items()]}
