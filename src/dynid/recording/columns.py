"""Matching of the columns of a mapping to the fields of a file, joint by joint, and the checks of the result."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from collections.abc import Mapping as Dictionary
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

import numpy as np

from dynid.errors import RecordingError
from dynid.recording.arrays import Arrays
from dynid.recording.mapping import Names
from dynid.recording.source import Source
from dynid.recording.whole_body import WIDTHS, WITHOUT_JOINTS

_PLACEHOLDER_PATTERN = re.compile(r"\{(joint|i)(?::(0\d+))?\}")


@dataclass(frozen=True)
class Match:
    """Fields of a source for one signal, in order.

    Attributes:
        fields: names of the fields.
        joints: joints of the fields, if known.
        extra: joints with such a field that are not used.
        note: sentence on how the names were matched, or None.
        parts: column of each field, from 0; None for all.
    """

    fields: tuple[str, ...]
    joints: tuple[str, ...] | None = None
    extra: tuple[str, ...] = ()
    note: str | None = None
    parts: tuple[int, ...] | None = None


def listed(names: Sequence[str], most: int = 24) -> str:
    """Return names as 'a, b, c', shortened after `most` names."""
    text = ", ".join(names[:most])
    return text + f" and {len(names) - most} more" if len(names) > most else text or "nothing"


def listed_columns(names: Sequence[str]) -> str:
    """Return column names as `listed` does, with a run of names that differ in a number as 'q1 ... q7'."""
    runs = [list(run) for _, run in groupby(names, lambda name: re.sub(r"\d+", "#", name))]
    return listed([one for run in runs for one in ([f"{run[0]} ... {run[-1]}"] if len(run) > 3 else run)])


def match(source: Source, names: Names | None, signal: str, joints: Sequence[str] | None, count: int | None) -> Match:
    """Return the fields of a file that the `names` given for a signal refer to.

    joints: names of the wanted joints, if known. count: number of joints, if known.
    """
    known = [name for name, shape in source.fields.items() if shape != ()]
    return _matched(source, known, names, signal, joints, count)


def match_parts(source: Source, array: str, names: Names | None, signal: str, joints: Sequence[str] | None,
                count: int | None) -> Match:
    """Return the columns of one array that are given by number (from 1) or by their names in the file."""
    shape = source.fields.get(array, ())
    if len(shape) != 2:
        have = [name for name, size in source.fields.items() if len(size) == 2]
        raise RecordingError(f"{source.path}: has no array '{array}' with several columns for {signal}. Arrays: "
                             f"{listed(have)}", code="no-array")
    known = list(source.texts.get(array, ())) or [str(i + 1) for i in range(shape[1])]
    found = _matched(source, known, names, signal, joints, count)
    return replace(found, fields=(array,) * len(found.fields), parts=tuple(known.index(name) for name in found.fields))


def _matched(source: Source, known: list[str], names: Names | None, signal: str, joints: Sequence[str] | None,
             count: int | None) -> Match:
    """Return the known fields that correspond to the given `names`."""
    if names is None:
        return Match(tuple(known))
    if isinstance(names, list):
        return Match(tuple(_one(source, known, name, signal) for name in names))
    if isinstance(names, str) and names not in known:
        place = _PLACEHOLDER_PATTERN.search(names)
        if place:
            return _pattern(source, known, names, signal, joints, count)
        span = re.fullmatch(r"(\d+)\s*-\s*(\d+)", names)
        if span:
            first, last = int(span[1]), int(span[2])
            return Match(tuple(_one(source, known, i, signal) for i in range(first, last + 1)))
    return Match((_one(source, known, names, signal),))


def _one(source: Source, known: list[str], name: str | int, signal: str) -> str:
    if isinstance(name, str):
        if name in known:
            return name
        if name in source.fields:
            raise RecordingError(f"{source.path}: '{name}', given for {signal}, is a single number, not a column")
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean '{close[0]}'?" if close else ""
        raise RecordingError(f"{source.path}: has no column '{name}' for "
                             f"{signal}{hint or '. Columns: ' + listed_columns(known)}")
    if not 1 <= name <= len(known):
        raise RecordingError(f"{source.path}: has no column {name} for {signal}; columns are numbered from 1 to "
                             f"{len(known)}", code="no-column")
    return known[name - 1]


def _pattern(source: Source, known: list[str], pattern: str, signal: str, joints: Sequence[str] | None,
             count: int | None) -> Match:
    kinds = {item[1] for item in _PLACEHOLDER_PATTERN.finditer(pattern)}
    if len(kinds) > 1:
        raise RecordingError(f"{source.path}: the pattern '{pattern}' for {signal} has both {{joint}} and {{i}}; use "
                             "only one of them")
    kind = kinds.pop()
    pieces = [re.escape(piece) for piece in _PLACEHOLDER_PATTERN.sub("\0", pattern).split("\0")]
    group = r"(?P<it>.+)" if kind == "joint" else r"(?P<it>\d+)"
    expression = re.compile(pieces[0] + group + "(?P=it)".join(pieces[1:]))
    found = {hit["it"]: name for name in known if (hit := expression.fullmatch(name))}
    if not found:
        raise RecordingError(f"{source.path}: no column matches '{pattern}' for {signal}. Columns: "
                             f"{listed_columns(known)}")
    if kind == "joint":
        return by_name(source, found, signal, joints)
    return by_number(source, {int(number): name for number, name in found.items()}, signal, joints, count)


def by_name(source: Source, found: Mapping[str, str], signal: str, joints: Sequence[str] | None) -> Match:
    """Return the fields of the wanted joints, or of all if none are named. found: joint -> field."""
    if joints is None:
        return Match(tuple(found.values()), tuple(found))
    named, note = by_prefix(list(found), joints, f"{source.path}: {signal}")
    missing = [joint for joint in joints if named.get(joint, joint) not in found]
    if missing:
        raise RecordingError(f"{source.path}: no {signal} column found for {missing[0]}. Columns: "
                             f"{listed_columns([name for name, shape in source.fields.items() if shape != ()])}. "
                             f"Map them with {column_option(signal, list(found.values()), len(joints))}"
                             f"{_without_column(signal, missing[0])}",
                             code="no-column", where=f"log.{signal}")
    own = [named.get(joint, joint) for joint in joints]
    return Match(tuple(found[joint] for joint in own), tuple(joints),
                 tuple(joint for joint in found if joint not in own), note)


def by_prefix(logged: Sequence[str], joints: Sequence[str], source: str) -> tuple[dict[str, str], str | None]:
    """Return the logged names of the wanted joints, matched by a common prefix or ending, and a note on the match.

    Drivers put a robot's name before its joints (robot1/joint_1), and so do robot files (panda_joint1). Nothing is
    returned if a name matches exactly, or if no prefix matches all joints.
    """
    if not joints or any(joint in logged for joint in joints):
        return {}, None
    first, known = joints[0], set(logged)
    longer = [name.removesuffix(first) for name in logged if name.endswith(first)]
    prefixes = [prefix for prefix in dict.fromkeys(longer) if all(prefix + joint in known for joint in joints)]
    if len(prefixes) > 1:
        raise RecordingError(f"{source} exists for several robots: {' and '.join(map(repr, prefixes))} precede joint "
                             f"'{first}'; choose one with --set 'log.position=...{{joint}}' and likewise for the "
                             "other signals", code="several-robots")
    if prefixes:
        return ({joint: prefixes[0] + joint for joint in joints},
                f"the joint names of the log are those of the robot with the prefix '{prefixes[0]}'")
    shorter = [first.removesuffix(name) for name in logged if name and first.endswith(name)]
    prefixes = [prefix for prefix in dict.fromkeys(shorter) if prefix and all(
        joint.startswith(prefix) and joint.removeprefix(prefix) in known for joint in joints)]
    if len(prefixes) == 1:
        return ({joint: joint.removeprefix(prefixes[0]) for joint in joints},
                f"the joint names of the log are those of the robot without the prefix '{prefixes[0]}'")
    plain = {name.lower(): name for name in logged}
    suffixes = [first[len(name):] for name in plain if name and first.lower().startswith(name)]
    suffixes = [suffix for suffix in dict.fromkeys(suffixes) if suffix and all(
        joint.endswith(suffix) and joint.removesuffix(suffix).lower() in plain for joint in joints)]
    if len(suffixes) == 1:  # robot files have FL_hip_joint, recorders FL_hip
        return ({joint: plain[joint.removesuffix(suffixes[0]).lower()] for joint in joints},
                f"the joint names of the log are those of the robot without the ending '{suffixes[0]}'")
    return {}, None


def column_option(signal: str, likely: Sequence[str], count: int | None) -> str:
    """Return a command-line option that names the columns of a signal, one per joint, for the user to complete."""
    shown = [f'"{name}"' for name in likely[:count]]
    shown += ["..."] if count is None or len(shown) < count else []
    return f"--set 'log.{signal}=[{', '.join(shown)}]', one column for each joint in the robot's order"


def _without_column(signal: str, joint: str) -> str:
    """Return the end of an error message: the option for a joint without a column of a signal."""
    if signal == "position":
        return f"; or, if the joint stood still, add --lock {joint}=POSITION"
    return (f"; or, if its {signal} was not measured, add --set 'log.unmeasured=[\"{joint}\"]'"
            if signal in ("torque", "current") else "")


def by_number(source: Source, found: Mapping[int, str], signal: str, joints: Sequence[str] | None,
              count: int | None, places: Sequence[int] = ()) -> Match:
    """Return fields numbered from 0 or 1, one per joint. found: number -> field. places: indices (from 0) of the joints
    that have such a field, if these are not the first joints."""
    if places and {place + 1 for place in places} == set(found):
        return Match(tuple(found[number] for number in sorted(found)))
    if count is None and joints is not None and len(found) == len(joints):  # locked or mimic joints are not logged
        return Match(tuple(found[number] for number in sorted(found)))
    first = 0 if 0 in found else 1
    wanted = count if count is not None else max(found) - first + 1
    missing = next((number for number in range(first, first + wanted) if number not in found), None)
    if missing is not None:
        joint = joints[missing - first] if joints and count is not None else ""
        whose, lock = (f", for joint '{joint}',", _without_column(signal, joint)) if joint else (",", "")
        raise RecordingError(f"{source.path}: has no {signal} number {missing}{whose} only "
                             f"{listed(list(found.values()))}. Map them with "
                             f"{column_option(signal, list(found.values()), wanted)}{lock}", where=f"log.{signal}",
                             code="no-column")
    return Match(tuple(found[number] for number in range(first, first + wanted)), None,
                 tuple(f"number {number}" for number in sorted(found) if number >= first + wanted))


@dataclass(frozen=True)
class Column:
    """One column of numbers: its source (index into `LogLayout.sources`), its field, and its index within the field."""

    source: int
    field: str
    part: int


def source_columns(source: Source, index: int, found: Match, samples: int | None, notes: list[str]
                   ) -> tuple[Column, ...]:
    """Return one `Column` for each column of the matched fields, which may be arrays with several."""
    if found.parts is not None:
        return tuple(Column(index, name, part) for name, part in zip(found.fields, found.parts, strict=True))
    columns: list[Column] = []
    for name in found.fields:
        shape = source.fields[name]
        if isinstance(source, Arrays) and samples:
            size = int(np.prod(shape))
            if size % samples:
                raise RecordingError(f"{source.path}: '{name}' is {' x '.join(map(str, shape))}, "
                                     f"which does not fit the {samples} samples of the log", code="lengths-differ")
            width = size // samples
            if source.transposed(name, samples):
                notes.append(f"'{name}' is {shape[0]} x {shape[1]}, with joints along the rows, and was transposed")
        else:
            width = shape[1] if len(shape) == 2 else 1
        columns += [Column(index, name, part) for part in range(width)]
    return tuple(columns)


def check_counts(path: Path, columns: Dictionary[str, tuple[Column, ...]]) -> None:
    """Refuse signals whose number of columns does not match the joints, or the number that the signal needs."""
    count = len(columns["position"])
    if not count:
        raise RecordingError(f"{path}: no position columns are given; name them with --set 'log.position=[...]'",
                             where="log.position")
    for signal, found in columns.items():
        if signal == "time" and len(found) not in (1, 2):
            raise RecordingError(f"{path}: time must be one column, or seconds and nanoseconds, got {len(found)}",
                                 where="log.time")
        if signal == "wrench" and len(found) != 6:
            raise RecordingError(f"{path}: wrench needs 6 columns, forces and then moments, got {len(found)}",
                                 where="log.wrench")
        if signal in WIDTHS and len(found) != WIDTHS[signal]:
            raise RecordingError(f"{path}: {signal} needs {WIDTHS[signal]} columns, got {len(found)}",
                                 where=f"log.{signal}")
        if signal in ("temperature", "supply_voltage") and len(found) == 1:
            continue
        if signal not in WITHOUT_JOINTS and len(found) != count:
            raise RecordingError(f"{path}: there are {count} columns of position but {len(found)} of {signal}",
                                 f"name them with --set 'log.{signal}=[...]', or in another file with --set "
                                 f"'log.{signal}={{file = \"...\", columns = [...]}}'", where=f"log.{signal}",
                                 code="column-count")
