"""JSON logs: a list of records, one record per line (JSON lines), a table of lists, or a log of BAM."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dynid.errors import RecordingError
from dynid.recording.arrays import Arrays

MAX_JSON_BYTES = 256 << 20  # of one file: its text takes many times as much in memory


def open_json(path: Path) -> Arrays:
    """Return the fields of a JSON log as arrays; a field of a nested table is called outer.inner."""
    content = read_json(path)
    if isinstance(content, dict) and "entries" in content:
        from dynid.recording.bam_logs import open_bam
        return open_bam(path, content)
    if isinstance(content, dict):
        return Arrays(path, {name: _array(value, path, name) for name, value in _flat(content).items()})
    records = content if isinstance(content, list) else []
    if not records or not all(isinstance(record, dict) for record in records):
        raise RecordingError(f"{path}: is a JSON file without records", "write a list of tables such as "
                             '{"time": 0.0, "q": [...], "tau": [...]}, one per sample, or a CSV file', "unknown-format")
    rows = [_flat(record) for record in records]
    for number, row in enumerate(rows, start=1):
        if row.keys() != rows[0].keys():
            name = next(iter(sorted(row.keys() ^ rows[0].keys())))
            raise RecordingError(f"{path} record {number}: '{name}' is not in both this record and the first one",
                                 "write the same fields in every record", "damaged-file")
    found = Arrays(path, {name: _column([row[name] for row in rows], path, name) for name in rows[0]})
    found.row = "record"
    return found


def read_json(path: Path) -> Any:
    """Return the content of a JSON file; a list of the lines' contents if each line is a JSON text."""
    if path.stat().st_size > MAX_JSON_BYTES:
        raise RecordingError(f"{path}: is larger than {MAX_JSON_BYTES >> 20} MB, more than is read of a JSON file",
                             "write the log as CSV or NPZ")
    text = path.read_bytes()
    try:
        try:
            return json.loads(text)
        except json.JSONDecodeError as problem:
            if problem.msg != "Extra data":
                raise
            return [json.loads(line) for line in text.splitlines() if line.strip()]
    except (ValueError, RecursionError) as problem:
        raise RecordingError(f"{path}: is not a valid JSON file: {str(problem)[:200]}",
                             "copy it again from where it was recorded") from None


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in table.items():
        found.update(_flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value})
    return found


def _column(values: list[Any], path: Path, name: str) -> Any:
    """Return one field of all records; words that are the same in every record, such as joint names, once."""
    return _array(values[0] if _is_text(values[0]) and all(value == values[0] for value in values) else values, path,
                  name)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and bool(value) and isinstance(value[0], str))


def _array(values: Any, path: Path, name: str) -> Any:
    """Return numbers or words as an array; null is not a number."""
    try:
        if _is_text(values):
            return np.array(values)
        found = np.array(values)
        return np.array(values, dtype=float) if found.dtype.kind == "O" else found
    except (ValueError, TypeError):
        raise RecordingError(f"{path}: '{name}' has another number of values in some records, or values that are not "
                             "numbers", code="damaged-file") from None
