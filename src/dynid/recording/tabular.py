"""Text tables: CSV, TSV, semicolons or white space, with or without a header; flat files with one number per line."""

from __future__ import annotations

import csv
import io
import re
from codecs import BOM_UTF16_BE, BOM_UTF16_LE, getincrementaldecoder
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import RecordingError
from dynid.files import check_file, open_file
from dynid.recording.source import Fault, FileRows, Source, Values, rechunk
from dynid.recording.unpacking import is_compressed_text, open_compressed_text

_COMMENT_MARKS = ("#", "%")
_LINES_AT_ONCE = 20_000  # lines parsed at once without pyarrow
_MOST_CELLS = 1_000_000  # characters per row
_BYTES_FOR_ENCODING = 4096  # first bytes of a file, with the names of its columns
_ROWS_FOR_TYPES = 20  # rows that determine the type of each column
_LONG_INTEGER = re.compile(r"\d{16,19}")
_TIME_OF_DAY = re.compile(r"\d{1,2}:\d{2}:\d{2}")  # a time of day
_DAY_FIRST = re.compile(r"^(\d{1,2})\.(\d{1,2})\.(\d{4})")  # with slashes, the month may be first
_NUMBER = r"[+-]?\d+{}\d*([eE][+-]?\d+)?"
_UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Text(Source):
    """A text table. Columns without a header are named by their numbers, "1", "2", ..."""

    def __init__(self, path: Path, delimiter: str | None = None, decimal: str | None = None,
                 header: bool | None = None, skip: int = 0) -> None:
        super().__init__(path)
        self._compressed = is_compressed_text(path)
        with self._bytes() as start:  # spreadsheets write "Unicode text" as UTF-16
            self._encoding = _encoding(start.read(_BYTES_FOR_ENCODING))
        with self._open() as file:
            lines = iter(lambda: file.readline(_MOST_CELLS), "")
            head = [line for _, line in zip(range(skip + 200), lines, strict=False)]
        if any(len(line) == _MOST_CELLS for line in head):
            raise RecordingError(f"{path}: has a row of more than {_MOST_CELLS} characters, so it is not a table of a "
                                 "log")
        if any("\0" in line for line in head):
            raise RecordingError(f"{path}: is neither a text file nor another supported kind of log",
                                 "write the log as CSV or NPZ", code="unknown-format")
        content = [(i, line) for i, line in enumerate(head) if i >= skip and _holds_data(line)]
        if not content:
            raise RecordingError(f"{path}: contains no rows", code="no-rows")
        chosen = _delimiter(line for _, line in content) if delimiter is None else delimiter
        self.delimiter = None if chosen == " " else chosen  # None: any white space
        self.decimal = decimal or _decimal(self.delimiter, [line for _, line in content[1:]] or [content[0][1]])
        if self.decimal == "," and decimal is None:
            self.notes.append("numbers are written with a decimal comma")
        content = self._below_preamble(content)
        first, line = content[0]
        cells = self._split(line)
        numeric = [self._is_number(cell) for cell in cells]
        self._titled = (sum(numeric) < len(cells) / 2) if header is None else header
        if self._titled:
            names = [cell.strip() for cell in cells]
            content = content[1:]
        else:
            width = _usual([len(self._split(line)) for _, line in content])  # the first row may be truncated
            names = self._title_in_comment(head, first, width) or [str(i + 1) for i in range(width)]
        while len(names) > 1 and names[-1] == "":  # a trailing delimiter, not a column
            names.pop()
        self.names = self._unique_names(names)
        self.units: Mapping[str, str] = {}  # by column, of a line of units below the header
        if self._titled and len(content) > 1 and not any(map(self._is_number, self._split(content[0][1]))) \
                and any(map(self._is_number, self._split(content[1][1]))) and not self._dates_in(content[0][1]):
            self.notes.append(f"row {content[0][0] + 1} contains no numbers and was treated as a line of units")
            self.units = dict(zip(self.names, self._split(content[0][1]), strict=False))
            content = content[1:]
        if not content:
            raise RecordingError(f"{path}: has a header but no rows; record the log again", code="no-rows")
        self._start = content[0][0]  # lines before the first row
        rows = [line for _, line in content[:_ROWS_FOR_TYPES]]  # the first rows may be damaged
        self._dates = _most([self._dates_in(line) for line in rows])
        # Integers of 16 digits and more (time in ns since 1970) do not fit into a double
        self._integers = _most([{i for i, cell in enumerate(self._split(line)) if _LONG_INTEGER.fullmatch(cell.strip())}
                                for line in rows])
        if not self._compressed and not _ends_with_newline(path):
            self.notes.append("the last line has no line end; if the log is truncated, its last number may be "
                              "incomplete")

    @cached_property
    def fields(self) -> dict[str, tuple[int, ...]]:
        return {name: (0,) for name in self.names}

    def blocks(self, names: Sequence[str], samples: int | None, rows: int | None) -> Iterator[FileRows]:
        places = {name: i for i, name in enumerate(self.names)}
        indices = [places[name] for name in names]
        done, finished = yield from self._quick(indices, names, rows)
        if not finished:
            yield from self._careful(indices, names, done)

    # -- fast reading by pyarrow, while every cell is a number -----------------------------------------------
    def _quick(self, indices: Sequence[int], names: Sequence[str], rows: int | None) \
            -> Generator[FileRows, None, tuple[int, bool]]:
        """Yield the rows before the first batch with text; return their number, and whether the file ended."""
        done = 0
        if (self.delimiter is None and len(self.names) > 1) or self._dates & set(indices) or self._encoding == "utf-16":
            return done, False
        try:
            import pyarrow
            from pyarrow import csv as arrow
        except ImportError:
            return done, False
        wanted = sorted(set(indices))
        everything = list(map(str, range(len(self.names))))
        options: dict[str, Any] = {
            "read_options": arrow.ReadOptions(skip_rows=self._start, column_names=everything, use_threads=rows is None,
                                              block_size=1 << 24 if rows is None else 1 << 20),
            "parse_options": arrow.ParseOptions(delimiter=self.delimiter or "\t", ignore_empty_lines=False),
            "convert_options": arrow.ConvertOptions(
                include_columns=list(map(str, wanted)), decimal_point=self.decimal,
                column_types={str(i): pyarrow.int64() if i in self._integers else pyarrow.float64() for i in wanted}),
        }
        row = self._start + 1  # rows count from 1
        try:
            with (open_compressed_text(self.path) if self._compressed
                  else pyarrow.OSFile(str(check_file(self.path)))) as file:
                for batch in [arrow.read_csv(file, **options)] if rows is None else arrow.open_csv(file, **options):
                    if any(column.null_count for column in batch.columns):
                        return done, False
                    columns = {i: _numbers(batch.column(place), np.int64 if i in self._integers else np.float64)
                               for place, i in enumerate(wanted)}
                    yield FileRows({name: columns[i] for name, i in zip(names, indices, strict=True)},
                                np.arange(row + done, row + done + batch.num_rows))
                    done += batch.num_rows
        except pyarrow.ArrowInvalid:
            return done, False
        return done, True

    # -- reading line by line, which finds the wrong cell ---------------------------------------------------
    def _careful(self, indices: Sequence[int], names: Sequence[str], skip: int) -> Iterator[FileRows]:
        lines: list[str] = []
        numbers: list[int] = []
        comments = 0
        with self._open() as file:
            for number, line in enumerate(file, start=1):
                if number <= self._start:
                    continue
                if not _holds_data(line):
                    comments += bool(line.strip())
                    continue
                if skip:
                    skip -= 1
                    continue
                lines.append(line)
                numbers.append(number)
                if len(lines) == _LINES_AT_ONCE:
                    yield self._parse(lines, numbers, indices, names)
                    lines, numbers = [], []
        if lines:
            yield self._parse(lines, numbers, indices, names)
        if comments:
            self.notes.append(f"{comments} comment lines between the rows were skipped")

    def _parse(self, lines: list[str], numbers: list[int], indices: Sequence[int], names: Sequence[str]) -> FileRows:
        whole = [i for i, line in enumerate(lines) if self._complete(line)]
        plain = [i for i in indices if i not in self._dates | self._integers]
        try:
            if len(whole) < len(lines) or len(plain) < len(indices) or not plain:
                raise ValueError
            text = [line.replace(",", ".") for line in lines] if self.decimal == "," else lines
            table = np.loadtxt(text, delimiter=self.delimiter, usecols=plain, ndmin=2, comments=None, quotechar='"')
            if len(table) != len(lines):
                raise ValueError
            values: dict[str, Values] = dict(zip(names, table.T, strict=True))
            return FileRows(values, np.array(numbers))
        except ValueError:
            return self._parse_cells(lines, numbers, indices, names)

    def _parse_cells(self, lines: list[str], numbers: list[int], indices: Sequence[int],
                     names: Sequence[str]) -> FileRows:
        faults: dict[int, Fault] = {}
        values: dict[str, Values] = {
            name: np.zeros(len(lines), dtype="datetime64[us]" if i in self._dates
                           else np.int64 if i in self._integers else float)
            for name, i in zip(names, indices, strict=True)}
        for row, line in enumerate(lines):
            cells = self._split(line)
            if not self._complete(line):
                have, want = len(cells), len(self.names)
                faults[row] = (None, 0, f"the row has {have} cells instead of {want}" if have > want else
                               f"the row ends in column '{self.names[have - 1]}', it has {have} of {want} cells")
                continue
            for name, i in zip(names, indices, strict=True):
                try:
                    values[name][row] = self._cell(cells[i], i)
                except (ValueError, OverflowError):
                    faults.setdefault(row, (name, 0, f"contains '{cells[i].strip()}', which is not a number"
                                            + (" or a date like 2026-03-31 23:59:58.5" if ":" in cells[i] else "")
                                            if cells[i].strip() else "is empty"))
        return FileRows(values, np.array(numbers), faults)

    def _cell(self, cell: str, column: int) -> Any:
        text = cell.strip()
        if column in self._dates:
            return np.datetime64((_stamp(text) - _UNIX_EPOCH) // _MICROSECOND, "us")
        if column in self._integers:
            return int(text)
        if text.lower() in ("true", "false"):  # contact flags
            return float(text.lower() == "true")
        if "_" in text:  # Python accepts 1_000 as a number, but a log does not mean it
            raise ValueError
        return float(text.replace(",", ".") if self.decimal == "," else text)

    def _complete(self, line: str) -> bool:
        if self.delimiter is None or '"' in line:
            count = len(self._split(line))
        else:
            count = line.count(self.delimiter) + 1
        if count == len(self.names) + 1:
            return self.delimiter is not None and line.rstrip("\r\n").endswith(self.delimiter)
        return count == len(self.names)

    def _split(self, line: str) -> list[str]:
        if self.delimiter is None:
            return line.split()
        if '"' in line:
            return next(csv.reader([line.rstrip("\r\n")], delimiter=self.delimiter))
        return line.rstrip("\r\n").split(self.delimiter)

    def _below_preamble(self, content: list[tuple[int, str]]) -> list[tuple[int, str]]:
        """Return the lines from the header on. Lines above the header have at most half as many cells as the table."""
        cells = [self._split(line) for _, line in content]
        width = _usual([len(row) for row in cells[:_ROWS_FOR_TYPES]])
        first = next(i for i, row in enumerate(cells) if 2 * len(row) > width or all(map(self._is_number, row)))
        if first:
            self.notes.append(f"{first} lines above the header, '{content[0][1].strip()[:40]}', were skipped")
        return content[first:]

    def _is_number(self, cell: str) -> bool:
        try:
            float(cell.replace(",", ".") if self.decimal == "," else cell)
        except ValueError:
            return False
        return True

    def _dates_in(self, line: str) -> set[int]:
        found = set()
        for i, cell in enumerate(self._split(line)):
            if ":" in cell:
                try:
                    _stamp(cell.strip())
                except ValueError:
                    continue
                found.add(i)
        return found

    def _unique_names(self, names: list[str]) -> list[str]:
        """Return unique names: columns without a name get their number, repeated names x become x#1, x#2 and so on."""
        names = [name or str(i + 1) for i, name in enumerate(names)]
        counts = Counter(names)
        twice = sorted(name for name, count in counts.items() if count > 1)
        if twice:
            self.notes.append("several columns have the same name and are distinguished by #1, #2: "
                              + ", ".join(twice[:24]))
        seen: Counter[str] = Counter()
        found = []
        for name in names:
            seen[name] += 1
            found.append(f"{name}#{seen[name]}" if counts[name] > 1 else name)
        return found

    def _title_in_comment(self, head: list[str], first: int, width: int) -> list[str]:
        """Return the column names in a comment just above the numbers, as numpy.savetxt writes it, if there are any."""
        above = head[first - 1].strip() if first else ""
        if not above.startswith(_COMMENT_MARKS):
            return []
        names = [name.strip() for name in self._split(above.lstrip("#% "))]
        if len(names) != width or any(map(self._is_number, names)):
            return []
        self.notes.append(f"column names were taken from the comment in row {first}")
        return names

    def _bytes(self) -> IO[bytes]:
        return open_compressed_text(self.path) if self._compressed else open_file(self.path)

    def _open(self) -> IO[str]:
        return io.TextIOWrapper(self._bytes(), encoding=self._encoding, errors="replace", newline=None)


class Flat(Source):
    """A text file of one number per line, with `width` consecutive lines per sample: one field (samples, width)."""

    lines = 1

    def __init__(self, text: Text, width: int) -> None:
        if len(text.names) != 1:
            raise RecordingError(f"{text.path}: width applies to files with one number per line, but this file has "
                                 f"{len(text.names)} columns")
        super().__init__(text.path)
        self.text, self.width, self.notes = text, width, text.notes

    @cached_property
    def fields(self) -> dict[str, tuple[int, ...]]:
        return {"values": (0, self.width)}

    def value(self, name: str) -> Values:
        return self.text.value(self.text.names[0])

    def blocks(self, names: Sequence[str], samples: int | None, rows: int | None) -> Iterator[FileRows]:
        name = self.text.names[0]
        lines = None if rows is None else rows * self.width
        for block in rechunk(self.text.blocks([name], None, lines), lines):
            count = -(-len(block) // self.width)
            rest = count * self.width - len(block)
            faults: dict[int, Fault] = {}
            for row, (_, _, what) in block.faults.items():
                faults.setdefault(row // self.width, ("values", row % self.width, what))
            if rest:
                have = self.width - rest
                faults[count - 1] = (None, have - 1, f"the last sample has {have} of {self.width} numbers")
            numbers = np.append(block.values[name], np.zeros(rest)).reshape(count, self.width)
            yield FileRows({"values": numbers}, block.rows[::self.width], faults)


_MICROSECOND = datetime(1, 1, 1, microsecond=1) - datetime(1, 1, 1)


def _stamp(text: str) -> datetime:
    iso = _DAY_FIRST.sub(lambda found: f"{found[3]}-{found[2]:0>2}-{found[1]:0>2}", text)
    moment = datetime.fromisoformat(f"1970-01-01T{text}" if _TIME_OF_DAY.match(text) else iso)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _ends_with_newline(path: Path) -> bool:
    with open_file(path) as file:
        file.seek(-1, 2)
        return file.read(1) in b"\r\n"


def _numbers(column: Any, kind: type[np.int64] | type[np.float64]) -> NDArray[Any]:
    """Return the numbers (rows,) of a pyarrow column without missing values.

    The conversion of pyarrow itself would import pandas if installed, which takes longer than reading most logs.
    """
    chunks = [chunk for chunk in getattr(column, "chunks", [column]) if len(chunk)]
    parts = [np.frombuffer(chunk.buffers()[1], kind)[chunk.offset:chunk.offset + len(chunk)] for chunk in chunks]
    return parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, kind), *parts])


def _encoding(start: bytes) -> str:
    """Return the encoding of a text with these first bytes; Windows programs write a degree sign as one byte."""
    if start.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        return "utf-16"
    try:
        getincrementaldecoder("utf-8")().decode(start)  # the last character may be incomplete
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8-sig"


def _holds_data(line: str) -> bool:
    text = line.lstrip()
    return bool(text) and not text.startswith(_COMMENT_MARKS)


def _usual(counts: Sequence[int]) -> int:
    """Return the most frequent number; of equally frequent ones, the one that occurs first."""
    return Counter(counts).most_common(1)[0][0]


def _most(found: Sequence[set[int]]) -> set[int]:
    """Return the elements that are in more than half of the sets."""
    counts = Counter(item for one in found for item in one)
    return {item for item, count in counts.items() if count > len(found) / 2}


def _delimiter(lines: Iterator[str]) -> str:
    """Return the character that most of the first lines contain equally often; white space otherwise."""
    sample = [re.sub(r'"[^"]*"', "", line) for _, line in zip(range(_ROWS_FOR_TYPES), lines, strict=False)]
    for candidate in ("\t", ";", ","):
        counts = [line.strip("\r\n").count(candidate) for line in sample]
        usual = _usual(counts)
        if usual and sum(count == usual for count in counts) > len(counts) / 2:
            return candidate
    return " "


def _decimal(delimiter: str | None, lines: Sequence[str]) -> str:
    """Return the decimal separator: a comma if some cells are numbers with one and none are numbers with a point."""
    cells = [cell.strip(' "\r\n') for line in lines[:_ROWS_FOR_TYPES] for cell in line.split(delimiter)]
    comma, point = (any(re.fullmatch(_NUMBER.format(mark), cell) for cell in cells) for mark in (",", r"\."))
    return "," if comma and not point else "."
