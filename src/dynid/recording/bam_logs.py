"""Logs of BAM (Rhoban/bam): a JSON file with properties of a pendulum test bench and one entry for each sample."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynid.errors import RecordingError
from dynid.files import write_whole
from dynid.recording.arrays import Arrays
from dynid.recording.json_tables import read_json
from dynid.recording.recording import Recording

MAX_ENTRIES = 5_000_000  # samples of one log: seven hours at 200 Hz
_BENCH_FIELDS = ("mass", "length", "arm_mass", "kp", "vin", "damping", "max_amps")
_BENCH_NUMBERS = (*_BENCH_FIELDS, "dt")
_ENTRY_NUMBERS = ("timestamp", "position", "speed", "load", "input_volts", "temp", "current", "goal_position",
                  "torque_enable")
_NEEDED_NUMBERS = ("timestamp", "position", "goal_position")


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


def open_bam(path: Path, content: Any = None) -> Arrays:
    """Return a log of BAM as columns timestamp (s), position and goal_position (rad) and others.

    The facts of the bench are single values: mass, length, arm_mass, kp, vin. content: of the file, if it was read.
    """
    table = _table(path, content)
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
    table = _table(path)
    for name in ("mass", "length"):
        if not isinstance(table.get(name), int | float):
            raise RecordingError(f"{path}: states no {name} of the pendulum", f'add "{name}" in SI units to the file')
    numbers = {name: float(table[name]) for name in _BENCH_FIELDS if isinstance(table.get(name), int | float)}
    return PendulumBench(**numbers, motor=str(table.get("motor", "")), trajectory=str(table.get("trajectory", "")))


def has_switch(path: str | Path) -> bool:
    """Return whether each entry of a log of BAM states if the torque is switched on."""
    return all("torque_enable" in entry for entry in _table(Path(path))["entries"])


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


def _table(path: Path, content: Any = None) -> dict[str, Any]:
    """Return the table of a JSON file; raise an error if it has no list with at least one entry."""
    table = read_json(path) if content is None else content
    entries = table.get("entries") if isinstance(table, dict) else None
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise RecordingError(f"{path}: is a JSON file without a list of 'entries', so it is not a log of BAM",
                             "write other logs as CSV or NPZ")
    if len(entries) > MAX_ENTRIES:
        raise RecordingError(f"{path}: has {len(entries)} entries, more than a log has", "split it")
    missing = [name for name in _NEEDED_NUMBERS if name not in entries[0]]
    if missing:
        raise RecordingError(f"{path} entry 1: has no '{missing[0]}', which a log of BAM has in each entry")
    return dict(table)


def _column(entries: list[Mapping[str, Any]], name: str, path: Path) -> Any:
    """Return one number of each entry (samples,); nan if it is missing or not a number."""
    values = [entry.get(name) for entry in entries]
    if any(isinstance(value, str | list | dict) for value in values):
        number = next(i for i, value in enumerate(values) if isinstance(value, str | list | dict))
        raise RecordingError(f"{path} entry {number + 1}: '{name}' is not a number")
    return np.array([math.nan if value is None else float(value) for value in values])
