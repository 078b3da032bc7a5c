"""Open files of a log, and the assignment of their columns to signals."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Sequence
from collections.abc import Mapping as Dictionary
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from dynid.arrays import Array
from dynid.errors import RecordingError
from dynid.recording import whole_body
from dynid.recording.arrays import Arrays
from dynid.recording.column_guess import fewer, filled, guessed, with_torque
from dynid.recording.columns import Column, Match, by_prefix, check_counts, listed, match, match_parts, source_columns
from dynid.recording.convert import Conversion, conversion
from dynid.recording.mapping import FROM_LOG, KNOWN_LOAD, OF_ROBOT, SIGNALS, Mapping, SignalPlace
from dynid.recording.presets import no_torque, recognised
from dynid.recording.rosbag import Bag
from dynid.recording.source import Fault, Source, check_fields, open_source, reading, signal_file
from dynid.robot import Robot

_LONGEST_NAME = 1000  # characters
_OPTIONAL = ("velocity", "reference", "reference_velocity", "temperature", "motor_position", "sensed_torque",
             "target_torque", "external_torque", "motor_current", "supply_voltage", "duty")
# Start of a note on columns of further joints.
NOT_REQUESTED = "the log also has columns of other joints, which are not used"


@dataclass(frozen=True, eq=False)
class LogLayout:
    """Sources and columns of one log.

    Attributes:
        sources, mapping, notes: open files of the log, the reading rules, and notes.
        samples: number of rows of each source, if known before reading.
        columns: signal -> columns; "torque" also for currents; without time if a rate is given.
        conversion, time_unit: conversion to joint-side SI units, and unit of the time.
        unit_said: whether the unit of positions was given by the mapping or column names.
        unmeasured: unused torque columns.
        lacking: by signal, columns of joints without data.
        clocks: time columns of the sources that are interpolated at the times of the log, by source.
    """

    sources: tuple[Source, ...]
    samples: tuple[int | None, ...]
    columns: Dictionary[str, tuple[Column, ...]]
    conversion: Conversion
    time_unit: str | None
    mapping: Mapping
    unit_said: bool
    notes: tuple[str, ...]
    unmeasured: tuple[int, ...] = ()
    lacking: Dictionary[str, tuple[int, ...]] = field(default_factory=dict)
    clocks: Dictionary[int, str] = field(default_factory=dict)

    @property
    def labels(self) -> dict[str, tuple[str, ...]]:
        """Names of the columns of signals of a free base, by signal."""
        return {signal: tuple(column.field for column in columns) for signal, columns in self.columns.items()
                if signal in whole_body.WHOLE_BODY_SIGNALS}

    def setting(self, source: int, fault: Fault) -> str | None:
        """Return the setting that names the column of a faulty cell, such as log.torque; None for a whole row."""
        column = Column(source, fault[0] or "", fault[1])
        return next((f"log.{signal}" for signal, columns in self.columns.items() if column in columns), None)

    def close(self) -> None:
        for source in self.sources:
            source.close()


@dataclass
class _Files:
    """Open files of a log, by path and number of lines per sample."""

    path: Path
    mapping: Mapping
    opened: dict[tuple[Path, int | None], Source] = field(default_factory=dict)

    def get(self, place: SignalPlace) -> int:
        key = (signal_file(self.path, place), place.width)
        if place.file is not None and not os.path.exists(key[0]):
            raise RecordingError(f"{self.path}: the mapping reads a signal of this log from the file '{key[0].name}', "
                                 f"which is not in {os.path.realpath(key[0].parent)}; if this log has another format, "
                                 "describe it in a TOML file with a [log] table and add --mapping FILE.toml",
                                 code="no-such-file")
        if key not in self.opened:
            self.opened[key] = open_source(key[0], self.mapping, place.width)
            long = next((name for name in self.opened[key].fields if len(name) > _LONGEST_NAME), None)
            if long is not None:
                raise RecordingError(f"{key[0]}: has a column called '{long[:40]}...', {len(long)} characters long; "
                                     "the file is damaged or not a log")
        return list(self.opened).index(key)

    def index_of(self, place: SignalPlace) -> int | None:
        """Return the index of the file of a signal among the open files; None if it is not open."""
        key = (signal_file(self.path, place), place.width)
        return list(self.opened).index(key) if key in self.opened else None

    @property
    def sources(self) -> tuple[Source, ...]:
        return tuple(self.opened.values())


def columns_in_order(path: Path, mapping: Mapping, robot: Robot | None, signal: str, order: Sequence[int]
                     ) -> str | None:
    """Return the value of the setting `log.SIGNAL`, in TOML, that gives each joint of a log the column of another one.

    order: for each joint of the robot (from 0), the joint whose column of the signal it gets. None if the columns are
    not those of one file or of one array.
    """
    with closing(lay_out(path, mapping, robot)) as layout:
        columns, place = layout.columns.get(signal, ()), list(layout.conversion.order)
    files, arrays = {column.source for column in columns}, {column.field for column in columns}
    given = getattr(mapping, signal, None)
    if len(files) != 1 or sorted(place) != list(range(len(columns))) or len(order) != len(columns) or (
            isinstance(given, SignalPlace) and (given.file or given.topic or given.width)):
        return None
    moved = list(columns)
    for joint, other in enumerate(order):
        moved[place[joint]] = columns[place[other]]
    if len(arrays) == len(columns):
        return f"[{', '.join(json.dumps(column.field) for column in moved)}]"
    numbers = f"[{', '.join(str(column.part + 1) for column in moved)}]"
    return f"{{array = {json.dumps(arrays.pop())}, columns = {numbers}}}" if len(arrays) == 1 else None


def lay_out(path: Path, mapping: Mapping, robot: Robot | None) -> LogLayout:
    """Open the files of a log and assign their columns to signals; close all files if that fails."""
    files = _Files(path, mapping)
    try:
        return _lay_out(files, mapping, robot)
    except BaseException:
        for source in files.sources:
            source.close()
        raise


def _lay_out(files: _Files, mapping: Mapping, robot: Robot | None) -> LogLayout:
    path = files.path
    notes: list[str] = []
    mapping = _with_preset(files, mapping, notes)
    free: dict[str, tuple[int, Match]] = {}
    if robot is not None and robot.has_free_base:
        robot = robot.with_fixed_base()
        free = _of_free_base(files, mapping, robot.joint_names, notes)
    joints: Sequence[str] | None = mapping.joints or (robot.joint_names if robot is not None else None)
    # A log of a robot with locked or mimic joints may contain their columns or not.
    some = robot is not None and bool(robot.source_joints) and mapping.joints is None
    count = len(joints) if joints is not None and not some else None
    unknown = [name for name in mapping.unmeasured
               if joints is not None and name not in (*joints, *(robot.source_joints if robot else ()))]
    if unknown:
        raise RecordingError(f"{path}: the setting unmeasured lists joint '{unknown[0]}'; the joints are "
                             f"{listed(list(joints or ()))}", where="log.unmeasured")
    places = {signal: value if isinstance(value, SignalPlace) else SignalPlace(columns=value)
              for signal in ("time", *SIGNALS) if (value := getattr(mapping, signal)) is not None
              and not (signal == "contact" and value in (whole_body.ALWAYS, whole_body.NEVER))}
    wanted = _wanted(mapping, set(places))
    if wanted:
        files.get(SignalPlace())  # the file of the log comes first
    mapped = _mapped(files, places, mapping, robot, joints, count)
    clocks = {index: match(files.sources[index], place.time, "time", None, 1).fields[0]
              for signal, place in places.items() if place.time is not None and signal in mapped
              for index in [mapped[signal][0]]}
    taken = frozenset(name for _, found in free.values() for name in found.fields)
    try:
        matches, units = _not_mapped(files, mapping, wanted, mapped, joints, count, notes, robot, taken)
    except RecordingError as problem:
        if not free or problem.where != "log.torque":  # foot forces replace torques
            raise
        mapping = mapping.having(torque_free=True)
        wanted = _wanted(mapping, set(places))
        matches, units = _not_mapped(files, mapping, wanted, mapped, joints, count, notes, robot, taken)
        notes.append("no joint torques were found, so only equations of the base can be used")
    matches = {**free, **matches, **mapped}
    if clocks and ("time" not in matches or matches["time"][0] in clocks):
        raise RecordingError(f"{path}: a file with its own time is interpolated at the time of the log, so the log "
                             "needs a time column of the same clock; name it with --set log.time=NAME",
                             where="log.time")
    _check_torque(files.sources, matches)
    if "current" in matches:
        matches["torque"] = matches.pop("current")
    for index, source in enumerate(files.sources):
        check_fields(source, [name for at, found in matches.values() if at == index for name in found.fields])
    samples = _samples(files.sources, matches, path)
    spread = {signal: source_columns(files.sources[index], index, found, samples[index], notes)
              for signal, (index, found) in matches.items()}
    names = _column_joints(files.sources, mapping, matches, robot, path, notes)
    notes += dict.fromkeys(found.note for _, found in matches.values() if found.note)
    lacking: dict[str, tuple[int, ...]] = {}
    if robot is not None and robot.measured:
        names = tuple(mapping.joints or robot.joint_names)
        lacking = filled(spread, matches, names, robot)
    if mapping.torque_free:
        spread["torque"] = spread["position"]  # placeholder for missing columns, not used
    absent = _unmeasured(path, mapping, spread, names, robot)
    known = [column for i, column in enumerate(spread["torque"])
             if i not in absent or len(spread["torque"]) < len(spread["position"])]
    if absent and len(known) == len(spread["position"]) - len(absent):  # a placeholder for those without numbers
        rest = iter(known)
        spread["torque"] = tuple(column if i in absent else next(rest) for i, column in enumerate(spread["position"]))
    check_counts(path, spread)
    extra = [joint for joint in matches["position"][1].extra
             if mapping.torque_free or joint in matches["torque"][1].extra]
    if extra:
        notes.append(f"{NOT_REQUESTED}: {listed(extra)}")
    constants = {name: found for name in ("drive_gain", "ratio")
                 if (found := _constant(files, mapping, name)) is not None}
    turned = conversion(mapping, len(spread["position"]), names, robot, constants, units, str(path), notes)
    if "position" in units and "velocity" in matches and "velocity" not in units and mapping.velocity_unit is None:
        notes.append(f"velocity is read in {units['position']}/s, because the positions are in {units['position']}")
    if mapping.rate is not None:
        notes.append(f"time is computed from the given rate of {mapping.rate:g} Hz")
    return LogLayout(files.sources, samples, spread, turned, mapping.time_unit or units.get("time"), mapping,
                     mapping.unit is not None or "position" in units, tuple(notes), absent, lacking, clocks)


def _unmeasured(path: Path, mapping: Mapping, columns: Dictionary[str, tuple[Column, ...]],
                names: Sequence[str] | None, robot: Robot | None) -> tuple[int, ...]:
    """Return the joints of the log without torque, counted from 0 in the order of its position columns."""
    if mapping.torque_free:
        return tuple(range(len(columns["position"])))
    if names is None and robot is not None:
        names = robot.joint_names if len(columns["position"]) == robot.dof else robot.source_joints
    known = list(names or ())
    wrong = [name for name in mapping.unmeasured if name not in known]
    if wrong:
        raise RecordingError(f"{path}: the setting unmeasured lists joint '{wrong[0]}'; the joints of the log are "
                             f"{listed(known)}")
    if known and len(mapping.unmeasured) == len(known):
        raise RecordingError(f"{path}: no joint torque is measured, so nothing can be identified from this log",
                             code="torque-not-measured")
    return tuple(known.index(name) for name in mapping.unmeasured)


def _placed(source: Source, place: SignalPlace, signal: str, joints: Sequence[str] | None, count: int | None) -> Match:
    """Return the columns of an open file to which a `SignalPlace` of the mapping refers."""
    if place.topic is not None:
        if not isinstance(source, Bag):
            raise RecordingError(f"{source.path}: {signal} names topic '{place.topic}', but this file is not a bag; "
                                 "remove topic")
        return match(source, source.named(place.topic, place.columns, signal), signal, joints, count)
    if place.array is not None:
        return match_parts(source, place.array, place.columns, signal, joints, count)
    return match(source, place.columns if place.width is None else "values", signal, joints, count)


def _check_torque(sources: Sequence[Source], matches: Dictionary[str, tuple[int, Match]]) -> None:
    """Refuse columns whose names show that they are not actuator torques."""
    if "torque" not in matches:
        return
    index, found = matches["torque"]
    source = sources[index]
    for name in (*found.fields, *((source.topic,) if isinstance(source, Bag) else ())):
        why = no_torque(name)
        if why is not None:
            raise RecordingError(f"{source.path}: '{name}' cannot be the torque: signals of this name {why}",
                                 "map the measured torques with --set 'log.torque=[...]', or "
                                 "torque = [...] under [log]", where="log.torque", code="not-a-torque")


def _with_preset(files: _Files, mapping: Mapping, notes: list[str]) -> Mapping:
    """Return the mapping with the preset that matches the file's columns, if the mapping names no signals."""
    if mapping.names_signals or mapping.preset is not None:
        return mapping
    index = files.get(SignalPlace())
    main = files.sources[index]
    problem: RecordingError | None = None
    for preset in recognised(main.fields):
        if preset.refusal:
            raise RecordingError(f"{main.path}: {preset.refusal}")
        try:
            found = mapping.having(preset=preset.name)
        except RecordingError as refused:
            problem = problem or refused
            continue
        notes.append(f"read with the preset '{preset.name}' ({preset.recorder}), which has these columns")
        return found
    if problem is not None:
        raise RecordingError(f"{main.path}: was recorded by {recognised(main.fields)[0].recorder}; "
                             f"{str(problem).removeprefix('mapping: ')}")
    return mapping


def _wanted(mapping: Mapping, mapped: set[str]) -> list[str]:
    """Return the required signals that the mapping omits."""
    wanted = ["position"] if "position" not in mapped else []
    wanted += ["torque"] if not mapping.torque_free and not {"torque", "current"} & mapped else []
    return wanted + (["time"] if mapping.rate is None and "time" not in mapped else [])


def _mapped(files: _Files, places: Dictionary[str, SignalPlace], mapping: Mapping, robot: Robot | None,
            joints: Sequence[str] | None, count: int | None) -> dict[str, tuple[int, Match]]:
    """Return the file and the columns of each signal that the mapping names."""
    matches: dict[str, tuple[int, Match]] = {}
    for signal, place in places.items():
        index = files.get(place)
        whose = joints if signal not in whole_body.WITHOUT_JOINTS else None
        source = files.sources[index]
        try:
            matches[signal] = (index, _placed(source, place, signal, whose, count))
        except RecordingError as problem:
            if mapping.may_lack(signal):
                continue
            few = fewer(joints, mapping, robot, signal)
            if few is None:
                problem.where = f"log.{signal}"
                raise
            matches[signal] = (index, _placed(source, place, signal, few, len(few)))
    return matches


def _not_mapped(files: _Files, mapping: Mapping, wanted: list[str], mapped: Dictionary[str, tuple[int, Match]],
                joints: Sequence[str] | None, count: int | None, notes: list[str], robot: Robot | None,
                taken: Collection[str] = ()) -> tuple[dict[str, tuple[int, Match]], dict[str, str]]:
    """Return signals that the mapping omits, from the format or guessed from names, and units from names.

    A preset names all signals of its recorder. Beside another mapping, optional signals are searched in the file of
    the log, and one whose columns do not fit is noted and not used.

    Args:
        files, mapping, joints, count, robot: the files of the log, and what is known of its columns.
        wanted, mapped: required signals that the mapping omits, and the columns of those that it names, which no
            optional signal can have.
        notes: list to which notes are added.
        taken: columns that are already assigned.
    """
    index = files.index_of(SignalPlace())
    optional = [] if mapping.preset is not None or index is None else \
        [signal for signal in _OPTIONAL if signal not in mapped]
    if index is None or not (wanted or optional):
        return {}, {}
    main = files.sources[index]
    whose = joints if joints is not None or main.defaults else _written_names(main)
    found = dict[str, Match]()
    if main.defaults:
        missing = [signal for signal in wanted if signal not in main.defaults]
        if missing:
            raise RecordingError(f"{main.path}: the messages contain no {missing[0]}, only {listed(list(main.fields))}",
                                 f"record the {missing[0]}; dynid actuators needs no torques",
                                 where=f"log.{missing[0]}")
        optional += ["wrench"] if optional and "wrench" not in mapped else []
        for signal in (*wanted, *(one for one in optional if one in main.defaults)):
            try:
                found[signal] = match(main, main.defaults[signal], signal,
                                      None if signal in whole_body.WITHOUT_JOINTS else joints, count)
            except RecordingError:
                if signal in wanted or not mapping.names_signals:
                    raise  # otherwise the joints of the messages have other names than the robot's: a guess by number
        if found:
            notes.append(f"read from the messages: {', '.join(f'{name} = {main.defaults[name]}' for name in found)}")
        wanted, optional = [], [name for name in optional if name in main.defaults and name not in found]
    units = dict[str, str]()
    if not mapping.names_signals:
        own, units = guessed(main, mapping, (wanted, optional), whose, count, notes, robot, taken)
        return {signal: (index, fields) for signal, fields in {**found, **own}.items()}, units
    if wanted:
        own, units = guessed(main, mapping, (wanted, []), whose, count, notes, robot, taken)
        found |= own
    taken = {*taken, *(name for at, fields in mapped.values() if at == index for name in fields.fields)}
    for signal in optional:
        try:
            own, own_units = guessed(main, mapping, ([], [signal]), whose, count, notes, robot, taken)
        except RecordingError as problem:
            notes.append(f"no {signal} is used: {problem.reason}")
            continue
        found, units = {**found, **own}, {**own_units, **units}
    return {signal: (index, fields) for signal, fields in found.items()}, units


def _of_free_base(files: _Files, mapping: Mapping, joints: Sequence[str], notes: list[str]
                  ) -> dict[str, tuple[int, Match]]:
    """Return the signals of a free base that the mapping omits, guessed from the names of the columns."""
    index = files.get(SignalPlace())
    source = files.sources[index]
    if mapping.position is None and mapping.joints is None:
        whole_body.check_motor_order(source.fields, joints, str(files.path))
    typed = source.base_fields if isinstance(source, Bag) else {}
    found, remarks = whole_body.find_columns(source.fields, joints, typed)
    own = {signal: columns for signal, columns in found.items() if getattr(mapping, signal) is None}
    notes += [note for note in remarks if any(f" {signal} " in note for signal in whole_body.WHOLE_BODY_SIGNALS
                                                  if getattr(mapping, signal) is None)]
    return {signal: (index, Match(columns)) for signal, columns in own.items()}


def _written_names(source: Source) -> tuple[str, ...] | None:
    """Return the joint names stored in the file, as written by `write_npz`, or None."""
    for key in ("joints", "joint_names", "names"):
        with reading(source.path):
            if key in source.texts:
                return source.texts[key]
    return None


def _samples(sources: Sequence[Source], matches: Dictionary[str, tuple[int, Match]], path: Path) \
        -> tuple[int | None, ...]:
    """Return the number of samples of each file: the length of its time, or the longer side of its first array."""
    counts: list[int | None] = []
    for index, source in enumerate(sources):
        first = [found.fields[0] for signal in ("time", *SIGNALS) if signal in matches
                 for place, found in [matches[signal]] if place == index and found.fields]
        counts.append(source.length(first[0]) if isinstance(source, Arrays) and first else None)
        if counts[-1] == 0:
            raise RecordingError(f"{path}: contains no samples")
    return tuple(counts)


def _column_joints(sources: Sequence[Source], mapping: Mapping, matches: Dictionary[str, tuple[int, Match]],
                   robot: Robot | None, path: Path, notes: list[str]) -> Sequence[str] | None:
    """Return the joint of each column: from the mapping, the names, or the file; None if unknown."""
    if mapping.joints is not None or (robot is not None and robot.measured):
        return mapping.joints
    named = {signal: found.joints for signal, (_, found) in matches.items() if found.joints is not None}
    for signal, names in named.items():
        whose = named.get("position", names)
        if names != whose and not (signal == "torque" and list(names) == with_torque(whose, mapping)):
            raise RecordingError(f"{path}: position has columns of the joints {listed(named['position'])}, but "
                                 f"{signal} has columns of {listed(names)}; name the columns of both with --set "
                                 f"'log.position=[...]' --set 'log.{signal}=[...]'")
    if "position" in named:
        return named["position"]
    index, found = matches["position"]
    written = _written_names(sources[index])
    if written is None or len(found.fields) > 1:
        return None
    if robot is not None and not set(robot.joint_names) <= set(written):
        as_logged, note = by_prefix(written, robot.joint_names, f"{path}: position")
        if note:
            notes.append(note)
            own = {log_name: joint for joint, log_name in as_logged.items()}
            return tuple(own.get(log_name, log_name) for log_name in written)
        notes.append(f"the joint names of the file, {listed(written)}, differ from those of the robot, "
                     f"{listed(robot.joint_names)}; columns are assigned in order")
        return None
    return written


def _constant(files: _Files, mapping: Mapping, name: str) -> Array | None:
    """Return the numbers of a setting that names a key in one of the log's files, or None."""
    key = getattr(mapping, name)
    if not isinstance(key, str) or key in (FROM_LOG, KNOWN_LOAD) or (name == "ratio" and key == OF_ROBOT):
        return None
    source = next((source for source in files.sources if key in source.fields), None)
    if source is None:
        raise RecordingError(f"{files.sources[0].path}: has no value '{key}' for {name}. Its "
                             f"values are {listed(list(files.sources[0].fields))}", where=f"log.{name}")
    with reading(source.path):
        numbers = np.asarray(source.value(key), dtype=float)
    if not np.all(np.isfinite(numbers)):
        raise RecordingError(f"{source.path}: '{key}', given for {name}, is not a finite number for joint "
                             f"{int(np.argmin(np.isfinite(numbers))) + 1}", where=f"log.{name}")
    return numbers
