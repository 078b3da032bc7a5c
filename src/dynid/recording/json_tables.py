"""JSON logs: records in a list or one per line, a table of columns (lists, or values by row), or a log of BAM."""

from __future__ import annotations

import errno
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynid.errors import RecordingError
from dynid.files import read_file, write_whole
from dynid.recording.arrays import Arrays
from dynid.recording.recording import Recording

MAX_JSON_BYTES = 256 << 20  # of one file: its text takes many times as much in memory
MAX_ENTRIES = 5_000_000  # samples of one log: seven hours at 200 Hz
_BENCH_FIELDS = ("mass", "length", "arm_mass", "kp", "vin", "damping", "max_amps")
_BENCH_NUMBERS = (*_BENCH_FIELDS, "dt")
_ENTRY_NUMBERS = ("timestamp", "position", "speed", "load", "input_volts", "temp", "current", "goal_position",
                  "torque_enable")
_NEEDED_NUMBERS = ("timestamp", "position", "goal_position")


def open_json(path: Path) -> Arrays:
    """Return the fields of a JSON log as arrays; a field of a nested table is called outer.inner."""
    content = read_json(path)
    if isinstance(content, dict) and "entries" in content:
        return _open_bam(path, content)
    if isinstance(content, dict):
        columns = {name: _by_index(value) for name, value in content.items()}
        return Arrays(path, {name: _array(value, path, name) for name, value in _flat(columns).items()})
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
    found = Arrays(path, {name: _field([row[name] for row in rows], path, name) for name in rows[0]})
    found.row = "record"
    return found


def read_json(path: Path) -> Any:
    """Return the content of a JSON file; a list of the lines' contents if each line is a JSON text."""
    try:
        text = read_file(path, MAX_JSON_BYTES)
    except OSError as problem:
        raise RecordingError(f"{path}: cannot be read as JSON, {problem.strerror}", "write the log as CSV or NPZ"
                             if problem.errno == errno.EFBIG else "") from None
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


def _by_index(column: Any) -> Any:
    """Convert a column that maps row numbers to values, as pandas writes it, to a list; return others unchanged."""
    return [*column.values()] if isinstance(column, dict) and column and all(map(str.isdigit, column)) else column


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in table.items():
        found.update(_flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value})
    return found


def _field(values: list[Any], path: Path, name: str) -> Any:
    """Return one field of all records as an array; only once if it is the same text in all records."""
    return _array(values[0] if _is_text(values[0]) and all(value == values[0] for value in values) else values, path,
                  name)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list) and bool(value) and isinstance(value[0], str))


def _array(values: Any, path: Path, name: str) -> Any:
    """Return numbers or words as an array; null is not a number."""
    try:
        found = np.array(values)
        return np.array(values, dtype=float) if found.dtype.kind == "O" and not _is_text(values) else found
    except (ValueError, TypeError):
        raise RecordingError(f"{path}: '{name}' has another number of values in some records, or values that are not "
                             "numbers", code="damaged-file") from None


@dataclass(frozen=True)
class PendulumBench:
    """The test bench that a log of BAM was recorded on: one actuator that carries a pendulum.

    Position zero is the pendulum hanging down.

    Attributes:
        mass: mass at the end of the pendulum, kg.
        length: distance from the axis to that mass, m.
        arm_mass: mass of the arm, which is a uniform rod of the same length, kg.
        kp: proportional gain of the servo, in the unit of its firmware, or None.
        vin: supply voltage, V, or None.
        damping: damping of a recorder that sends currents, A s/rad over the square root of kp, or None.
        max_amps: largest current of such a recorder, A, or None.
        motor: name of the actuator.
        trajectory: name of the commanded motion.
    """

    mass: float
    length: float
    arm_mass: float = 0.0
    kp: float | None = None
    vin: float | None = None
    motor: str = ""
    trajectory: str = ""
    damping: float | None = None
    max_amps: float | None = None

    def __post_init__(self) -> None:
        for name in _BENCH_FIELDS:
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= 0.0):
                raise RecordingError(f"the {name} of a pendulum must be a number of at least zero, got {value}")


def _open_bam(path: Path, content: Any) -> Arrays:
    """Return a log of BAM as columns timestamp (s), position and goal_position (rad) and others.

    Properties of the test bench are single values: mass, length, arm_mass, kp, vin. content: content of the JSON file.
    """
    table = _checked(path, content)
    entries = table["entries"]
    columns = {name: _column(entries, name, path) for name in _ENTRY_NUMBERS if name in entries[0]}
    bench = {name: np.array(float(value)) for name in _BENCH_NUMBERS
             if isinstance(value := table.get(name), int | float) and math.isfinite(value)}
    found = Arrays(path, {**columns, **bench})
    found.row = "entry"
    return found


def bam_bench(path: str | Path) -> PendulumBench:
    """Return the test bench that a log of BAM states: pendulum, gain and supply voltage."""
    path = Path(path)
    table = _checked(path, read_json(path))
    for name in ("mass", "length"):
        if not isinstance(table.get(name), int | float):
            raise RecordingError(f"{path}: states no {name} of the pendulum", f'add "{name}" in SI units to the file')
    numbers = {name: float(table[name]) for name in _BENCH_FIELDS if isinstance(table.get(name), int | float)}
    return PendulumBench(**numbers, motor=str(table.get("motor", "")), trajectory=str(table.get("trajectory", "")))


def has_switch(path: str | Path) -> bool:
    """Return whether each entry of a log of BAM states if the torque is switched on."""
    return all("torque_enable" in entry for entry in _checked(Path(path), read_json(Path(path)))["entries"])


def write_bam(recording: Recording, bench: PendulumBench, path: str | Path, joint: int | str = 0) -> Path:
    """Write one joint of a recording as a log that BAM reads.

    Args:
        recording: needs the commanded positions in `reference`, rad.
        bench: the pendulum and the gain of the servo.
        path: the JSON file to write.
        joint: name of the joint, or its number from 0.

    Returns:
        The path. Samples are at the recording's own times; `python -m bam.process` puts them onto a uniform grid.
    """
    column = recording.joints.index(joint) if isinstance(joint, str) and joint in recording.joints else joint
    if not isinstance(column, int) or not 0 <= column < recording.dof:
        raise RecordingError(f"{recording.source}: has no joint {joint}; the joints are "
                             f"{', '.join(recording.joints) or f'0 to {recording.dof - 1}'}")
    if recording.reference is None:
        raise RecordingError(f"{recording.source}: has no commanded positions, which a log of BAM needs",
                             "map them with --set 'log.reference=[...]'")
    speed = recording.dq if recording.dq is not None else np.gradient(recording.q, recording.t, axis=0)
    volts = recording.voltage[:, column] if recording.voltage is not None else np.full(len(recording), bench.vin or 0.0)
    temperature = np.zeros(len(recording)) if recording.temperature is None else recording.temperature[:, column]
    load = np.zeros(len(recording)) if recording.duty is None else recording.duty[:, column]
    rows = np.column_stack([recording.t, recording.q[:, column], speed[:, column], load, volts, temperature,
                            recording.reference[:, column]]).tolist()
    names = ("timestamp", "position", "speed", "load", "input_volts", "temp", "goal_position")
    facts = {**{name: getattr(bench, name) for name in _BENCH_FIELDS}, "motor": bench.motor,
             "trajectory": bench.trajectory}
    table = {**{name: value for name, value in facts.items() if value is not None},
             "entries": [{**dict(zip(names, row, strict=True)), "torque_enable": True} for row in rows]}
    with write_whole(Path(path)) as file:
        file.write(json.dumps(table, allow_nan=False) + "\n")
    return Path(path)


def _checked(path: Path, table: Any) -> dict[str, Any]:
    """Return the content of a log of BAM; raise an error if it has no list with at least one entry."""
    entries = table.get("entries") if isinstance(table, dict) else None
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise RecordingError(f"{path}: is a JSON file without a list of 'entries', so it is not a log of BAM",
                             "write other logs as CSV or NPZ")
    if len(entries) > MAX_ENTRIES:
        raise RecordingError(f"{path}: has {len(entries)} entries, above the limit of {MAX_ENTRIES}",
                             "split it into several files")
    missing = [name for name in _NEEDED_NUMBERS if name not in entries[0]]
    if missing:
        raise RecordingError(f"{path} entry 1: has no '{missing[0]}', which a log of BAM has in each entry")
    return dict(table)


def _column(entries: list[Mapping[str, Any]], name: str, path: Path) -> Any:
    """Return one number of each entry (samples,); nan if it is missing or not a number."""
    values = [entry.get(name) for entry in entries]
    wrong = next((i for i, value in enumerate(values, 1) if isinstance(value, str | list | dict)), None)
    if wrong is not None:
        raise RecordingError(f"{path} entry {wrong}: '{name}' is not a number")
    return np.array([math.nan if value is None else float(value) for value in values])
