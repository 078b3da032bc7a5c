"""Guess of the signals of a log from the names of its columns, also of signals that are logged for some joints only."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from collections.abc import Mapping as Dictionary
from dataclasses import dataclass, replace

from dynid.errors import RecordingError
from dynid.recording.columns import Column, Match, by_name, by_number, column_option, listed, listed_columns
from dynid.recording.convert import PERCENT, PERMILLE, TORQUE_UNITS
from dynid.recording.mapping import Mapping
from dynid.recording.measured import TORQUES
from dynid.recording.presets import no_torque
from dynid.recording.recording import COLUMN_STEMS
from dynid.recording.source import Source
from dynid.recording.tabular import Text
from dynid.recording.whole_body import WITHOUT_JOINTS, name_words
from dynid.robot import Robot

_SIGNAL_WORDS = {
    "time": "t time times stamp stamps timestamp timestamps clock",
    "position": "q qm pos position positions angle angles theta",
    "velocity": "dq qd qdot qp dqm vel velocity velocities speed speeds omega",
    "torque": "tau taum torque torques effort efforts eff trq moment moments",
    "current": "current currents curr cur amps",
    "acceleration": "ddq qdd qddot acc accel acceleration accelerations", "wrench": "wrench",
    "temperature": "temperatures"}
_KIND_BY_WORD = {word: kind for kind, words in _SIGNAL_WORDS.items() for word in words.split()}
_REFERENCE = set("target targets ref reference cmd command commanded des desired setpoint goal d".split())
_PLAIN_WORDS = set("joint joints actual measured meas msr j axis state states data log s sec rad nm".split())
_JOINT_WORDS = {"joint", "joints"}  # they do not distinguish two signals
_UNIT_WORDS = {"deg": "deg", "degree": "deg", "degrees": "deg", "°": "deg", "mm": "mm", "ms": "ms", "us": "us",
               "ns": "ns", "rpm": "rpm", "nmm": "N mm", **dict.fromkeys(("%", "percent", "pct"), PERCENT),
               **dict.fromkeys(("‰", "permille", "promille"), PERMILLE)}
_TORQUE_UNIT = re.compile(r"(?<![A-Za-z])([mk]?)N[ .*·]?(mm|cm|m)(?![A-Za-z])")  # Nm, mNm, kNm, N mm, ...
# Units that a column of each signal can have; others are parts of a name.
_UNITS = {"time": {"ms", "us", "ns"}, "position": {"deg", "mm"}, "velocity": {"deg", "mm", "rpm"},
          "torque": TORQUE_UNITS}
_COPY = re.compile(r"#\d+$")  # end of a name that several columns have
_SYMBOLS = str.maketrans({"θ": "theta", "ω": "omega", "τ": "tau", "°": " deg", "%": " percent", "‰": " permille"})
_DERIVED = {"deviation", "ratio", "error", "limit", "limits"}  # quantities computed from a signal, which are no signals
_CARTESIAN = {"x", "y", "z", "rx", "ry", "rz"}
# Array names in files of `write_npz`.
_WRITTEN = {"motor_positions": "motor_position", "sensed_torques": "sensed_torque",
            "target_torques": "target_torque", "external_torques": "external_torque",
            "motor_currents": "motor_current", "supply_voltages": "supply_voltage", "duties": "duty"}
_FIRST_TIMES = ("t", "time", "times", "__time", "timestamp", "stamp")


@dataclass(frozen=True)
class _Reading:
    """Interpretation of one column: its signal, its joint (name, number or None), the rest of its name."""

    signal: str
    joint: str | int | None
    rest: tuple[str, ...]
    unit: str | None


def guess(source: Source, wanted: Sequence[str], optional: Sequence[str], joints: Sequence[str] | None,
          count: int | None, notes: list[str], others: Sequence[str] = (), taken: Collection[str] = (),
          has_gain: bool = False, places: Sequence[int] = ()) -> tuple[dict[str, Match], dict[str, str]]:
    """Find the wanted signals by name, and the optional ones if they are unambiguous; add the choice to `notes`.

    Args:
        source: the open file.
        wanted, optional: names of signals.
        joints, count: names of the robot's joints if known, and their number.
        notes: list to which notes are added.
        others: joints that the log may contain and that are not used.
        taken: columns that are already assigned.
        has_gain: whether drive gains are given, so that currents serve as torques.
        places: indices (from 0) of the joints that have the wanted signals, if not all have them.

    Returns:
        The columns of each signal, and the units of position, velocity, torque and time that the column names state.
    """
    known = [name for name, shape in source.fields.items() if shape != () and name not in taken]
    every = (*(joints or ()), *others)
    found = _canonical(known, set(every)) or _grouped(source, known, every)
    if has_gain and "torque" not in found and "current" in found:
        wanted = ["current" if signal == "torque" else signal for signal in wanted]
    signals: dict[str, Match] = {}
    units: dict[str, str] = {}
    for signal in (*wanted, *optional):
        if signal == "time":
            continue
        groups = found.get(signal, {})
        plain = [rest for rest in groups if not set(rest) - _KIND_BY_WORD.keys() - _PLAIN_WORDS - _REFERENCE]
        choices = plain if len(plain) == 1 else list(groups)
        if len(choices) == 1:
            group = groups[choices[0]]
            signals[signal] = _ordered(source, group, signal, joints, count, places)
            named_units = {reading.unit for reading, _ in group
                           if reading.unit and reading.unit in _UNITS.get(signal, ())}
            if named_units:
                units[signal] = named_units.pop()
            others = [name for rest, group in groups.items() if rest != choices[0] for _, name in group]
            notes.append(f"guessed from their names: {signal} = {listed(list(signals[signal].fields))}"
                         + (f" ({units[signal]})" if signal in units else "")
                         + (f"; {listed(others)} not used" if others else ""))
        elif signal in wanted and groups:
            names = " or ".join(listed([name for _, name in groups[rest]], 7) for rest in choices)
            first = [name for _, name in groups[choices[0]]]
            raise RecordingError(f"{source.path}: which columns are the {signal}, {names}? Choose with "
                                 f"{column_option(signal, first, count)}", where=f"log.{signal}")
        elif signal in wanted:
            if signal == "torque" and "current" in found:
                currents = [name for group in found["current"].values() for _, name in group]
                raise RecordingError(f"{source.path}: has currents ({listed(currents)}) but no torques. Give the "
                                     "joint torque per unit of the column (N m per mA for a column in mA) of each "
                                     "joint in the robot's order with --set 'log.drive_gain=[...]'",
                                     where="log.drive_gain")
            if signal == "torque" and "reference" in found:
                raise RecordingError(f"{source.path}: has measured and commanded positions but no torques. Identify "
                                     "the drives from them with dynid actuators ROBOT LOG, or name the columns of the "
                                     f"torque with {column_option(signal, _unread(known, found, count), count)}",
                                     code="no-torque", where="log.torque")
            likely = _unread(known, found, count)
            commanded = signal == "torque" and any(_REFERENCE & set(name_words(name)) for name in likely)
            unread = f" ({source.unread})" if source.unread else ""
            raise RecordingError(f"{source.path}: cannot tell which columns are the {signal}. Columns: "
                                 f"{listed_columns(known)}{unread}. Map them with "
                                 f"{column_option(signal, likely, count)}"
                                 f"{' (these are commanded, not measured)' if commanded else ''}"
                                 f"{_by_column_number(known, count)}; or, where another "
                                 f"file has them, with --set 'log.{signal}={{file = \"...\", columns = [...]}}' (and "
                                 "time = \"...\", its time column, if it was recorded at another rate)",
                                 code="no-column", where=f"log.{signal}")
        elif groups:
            notes.append(f"several groups of columns could be the {signal}, so none was taken")
    if "time" in wanted:
        signals["time"], unit = _time(source, known, found, notes)
        if unit:
            units["time"] = unit
    return signals, units


_Groups = dict[str, dict[tuple[str, ...], list[tuple[_Reading, str]]]]


def _canonical(known: Sequence[str], joints_of_robot: set[str]) -> _Groups:
    """Return the columns with the names that `write_csv` writes: time, position_<joint>, torque_<joint> and so on.

    Joints may have any name. Encoders may be on other joints of the robot than motors.
    """
    groups: _Groups = {}
    for name in known:
        for signal, stem in COLUMN_STEMS.items():
            if name.startswith(f"{stem}_"):
                reading = _Reading(signal, name.removeprefix(f"{stem}_"), (), None)
                groups.setdefault(signal, {}).setdefault((), []).append((reading, name))
                break
    joints = {signal: [reading.joint for reading, _ in group[()]] for signal, group in groups.items()}
    if joints.get("temperature", joints.get("position")) != joints.get("position"):  # temperatures of other parts
        del groups["temperature"], joints["temperature"]
    if "time" not in known or "position" not in joints or not {"torque", "reference"} & joints.keys() \
            or any(names != joints["position"] and not {*names, *joints["position"]} <= joints_of_robot
                   for names in joints.values()) or all(str(joint).isdigit() for joint in joints["position"]):
        return {}
    groups["time"] = {("time",): [(_Reading("time", None, ("time",), None), "time")]}
    return groups


def _grouped(source: Source, known: Sequence[str], joints: Sequence[str]) -> _Groups:
    groups: _Groups = {}
    joints = sorted(joints, key=len, reverse=True)
    for name in known:
        shape = source.fields[name]
        several = len(shape) == 2 and min(shape) != 1  # an array of all joints, not the column of one
        reading = _Reading(_WRITTEN[name], None, (), None) if name in _WRITTEN else \
            _classify(name) if several else _read_name(name, joints)
        if reading and isinstance(source, Text):  # "deg/s" is the unit of a velocity where positions are in "deg"
            written = source.units.get(name, "").strip("[]() ")
            reading = replace(reading, unit=reading.unit or _torque_unit(written)
                              or _UNIT_WORDS.get(re.split(r"[/*^ ]", written.lower())[0]))
        if reading:
            groups.setdefault(reading.signal, {}).setdefault(reading.rest, []).append((reading, name))
    return groups


def _by_column_number(known: Sequence[str], count: int | None) -> str:
    """Return the part of an error message with options that name columns by number; empty if columns have names."""
    if count is None or len(known) < 1 + 2 * count or not all(name.isdigit() for name in known):
        return ""
    return (f"; columns without names are given by their numbers, for example --set log.time=1 --set "
            f"log.position=2-{count + 1} --set log.torque={count + 2}-{2 * count + 1}")


def _unread(known: Sequence[str], found: _Groups, count: int | None) -> list[str]:
    """Return the columns to propose for a signal without a known name: a family of names that differ in a number, with
    one column per joint and no other meaning."""
    read = {name for signal, groups in found.items() if signal != "time" for group in groups.values()
            for _, name in group}
    families: dict[str, list[str]] = {}
    for name in known:
        if name not in read and no_torque(name) is None:
            families.setdefault(re.sub(r"\d+", "#", name), []).append(name)
    return next((names for names in families.values() if len(names) == (count or len(names)) > 1), [])


def _read_name(name: str, joints: Sequence[str]) -> _Reading | None:
    """Return the meaning of a column name. joints: names of the robot's joints, the longest first."""
    name = _COPY.sub("", name)
    for joint in joints:
        hit = joint in name and re.search(rf"(?<![A-Za-z0-9]){re.escape(joint)}(?![A-Za-z0-9])", name)
        if hit:
            reading = _classify(name[:hit.start()] + " " + name[hit.end():])
            if reading:
                return replace(reading, joint=joint)
    reading = _classify(name)
    if reading is None or reading.signal == "time":
        return reading
    numbers = re.findall(r"\d+", name)
    if numbers:
        return replace(reading, joint=int(numbers[-1]), rest=tuple(one for one in reading.rest if not one.isdigit()))
    strange = [word for word in reading.rest if word not in _KIND_BY_WORD.keys() | _PLAIN_WORDS | _REFERENCE]
    if not strange:
        return reading
    if set(strange) & _CARTESIAN:
        return None
    return replace(reading, joint="_".join(strange), rest=tuple(word for word in reading.rest if word not in strange))


def _torque_unit(text: str) -> str | None:
    """Return the unit of torque in a text, such as "N mm", or None."""
    found = _TORQUE_UNIT.search(text)
    return f"{found[1]}N {found[2]}" if found else None


def _classify(name: str) -> _Reading | None:
    words = name_words(_TORQUE_UNIT.sub(" nm ", name).translate(_SYMBOLS))
    kinds = {_KIND_BY_WORD[word] for word in words if word in _KIND_BY_WORD}
    if {"current", "as"} <= set(words) and kinds == {"current", "torque"}:  # converted to a torque by the recorder
        kinds, words = {"torque"}, [word for word in words if word not in ("current", "as")]
    if len(kinds) != 1 or set(words) & _DERIVED or no_torque(name):
        return None
    kind = kinds.pop()
    if set(words) & _REFERENCE:
        kind = {"position": "reference", "velocity": "reference_velocity"}.get(kind, "")
    if kind in ("", "acceleration"):
        return None
    unit = _torque_unit(name) or next((_UNIT_WORDS[word] for word in words if word in _UNIT_WORDS), None)
    return _Reading(kind, None, tuple(word for word in words if word not in _UNIT_WORDS.keys() | _JOINT_WORDS), unit)


def _ordered(source: Source, group: Sequence[tuple[_Reading, str]], signal: str, joints: Sequence[str] | None,
             count: int | None, places: Sequence[int]) -> Match:
    owners = [reading.joint for reading, _ in group]
    if len(set(owners)) < len(owners):
        counts = Counter(owners)
        several = [name for reading, name in group if counts[reading.joint] > 1]
        first = {reading.joint: name for reading, name in reversed(group)}
        names = list(first.values())[::-1]  # in the order of the columns again
        raise RecordingError(f"{source.path}: {listed(several)} could all be the {signal} of one joint. Choose with "
                             f"{column_option(signal, names, count)}", where=f"log.{signal}")
    if owners == [None] or (len(group) == 1 and count == 1):
        return Match((group[0][1],))
    numbered = {reading.joint: name for reading, name in group if isinstance(reading.joint, int)}
    if len(numbered) == len(group):
        return by_number(source, numbered, signal, joints, count, places)
    return by_name(source, {str(reading.joint): name for reading, name in group}, signal, joints)


def _time(source: Source, known: Sequence[str], all_found: _Groups, notes: list[str]) -> tuple[Match, str | None]:
    """Return the time column and its unit; a pair of seconds and nanoseconds is one time column."""
    others = frozenset(known)
    for name in known:
        partner = {"secs": "nsecs", "sec": "nanosec"}.get(re.split(r"[^A-Za-z]", name)[-1].lower())
        other = re.sub(r"[A-Za-z]+$", partner, name) if partner else None
        if other in others and other is not None:
            notes.append(f"guessed from their names: time = {name} (s) and {other} (ns)")
            return Match((name, other)), None
    found = {name: reading for group in all_found.get("time", {}).values() for reading, name in group}
    if not found:
        read = {name for groups in all_found.values() for group in groups.values() for _, name in group}
        likely = next((name for name in known if name not in read), "NAME")
        raise RecordingError(f"{source.path}: cannot tell which column is the time. Columns: {listed_columns(known)}. "
                             f"Name it with --set 'log.time={likely}', or give the rate in Hz with --set log.rate=N",
                             code="no-column", where="log.time")
    preferred = [name for plain in _FIRST_TIMES for name in found if name.lower() == plain]
    if len(found) > 1 and not preferred:
        raise RecordingError(f"{source.path}: which column is the time, {' or '.join(found)}? "
                             f"Choose with --set log.time={next(iter(found))}", where="log.time")
    name = preferred[0] if preferred else next(iter(found))
    unused = [other for other in found if other != name]
    unit = found[name].unit
    notes.append(f"guessed from its name: time = {name}" + (f" ({unit})" if unit else "")
                 + (f"; {listed(unused)} not used" if unused else ""))
    return Match((name,)), unit


def with_torque(joints: Sequence[str] | None, mapping: Mapping) -> list[str] | None:
    """Return the names of the joints with a known torque; None if names are not known."""
    return None if joints is None else [name for name in joints if name not in mapping.unmeasured]


def fewer(joints: Sequence[str] | None, mapping: Mapping, robot: Robot | None, signal: str) -> list[str] | None:
    """Return the names of the joints for which a signal is logged; None if it is logged for all."""
    whose = joints
    if robot is not None and robot.measured and joints is not None and signal not in WITHOUT_JOINTS:
        whose = robot.driven if signal in (*TORQUES, "current") else robot.measured
    if signal in ("torque", "current") and mapping.unmeasured:
        whose = with_torque(whose, mapping)
    return None if whose is None or whose is joints else list(whose)


def filled(columns: dict[str, tuple[Column, ...]], matches: Dictionary[str, tuple[int, Match]],
            names: Sequence[str], robot: Robot) -> dict[str, tuple[int, ...]]:
    """Add placeholder columns to signals that some joints lack; return the indices of these joints by signal.

    Commanded motion may be that of the measured or the driven joints; without names it is that of the driven joints.
    """
    lacking: dict[str, tuple[int, ...]] = {}
    for signal, found in columns.items():
        if signal in WITHOUT_JOINTS or len(found) == len(names):
            continue
        named = matches[signal][1].joints
        choices = [robot.driven] if signal in TORQUES else [robot.measured, robot.driven]
        if signal in ("reference", "reference_velocity"):
            choices.reverse()
        whose = next(([*one] for one in ([named] if named else choices)
                      if one is not None and len(one) == len(found)), None)
        if whose is None:
            continue
        ordered = dict(zip(whose, found, strict=True))
        columns[signal] = tuple(ordered.get(name, found[0]) for name in names)
        lacking[signal] = tuple(i for i, name in enumerate(names) if name not in ordered)
    return lacking


def guessed(main: Source, mapping: Mapping, signals: tuple[list[str], list[str]], joints: Sequence[str] | None,
            count: int | None, notes: list[str], robot: Robot | None, taken: Collection[str] = ()
            ) -> tuple[dict[str, Match], dict[str, str]]:
    """Return the columns of wanted and optional signals, and their units, see `guess`.

    If a signal is not logged for all joints of the robot, its columns are searched for the joints that have it.
    """
    wanted, optional = signals
    has_gain = mapping.drive_gain is not None
    others, count_before = robot.source_joints if robot is not None else (), len(notes)
    try:
        return guess(main, wanted, optional, joints, count, notes, others, taken, has_gain)
    except RecordingError:
        partial = [signal for signal in (*wanted, *optional) if fewer(joints, mapping, robot, signal) is not None]
        if not set(partial) & set(wanted):
            raise
        del notes[count_before:]
    found, units = guess(main, [signal for signal in wanted if signal not in partial],
                         [signal for signal in optional if signal not in partial], joints, count, notes, others, taken)
    for signal in partial:
        few = fewer(joints, mapping, robot, signal)
        assert few is not None
        own = [] if robot is None else list(robot.driven)
        places = [i for i, name in enumerate(joints or ()) if name in few]
        for choice in [few, own] if signal in ("reference", "reference_velocity") else [few]:
            try:
                one, own_units = guess(
                    main, [signal] if signal in wanted else [], [signal] if signal in optional else [], choice,
                    None if robot is not None and robot.measured else len(choice), notes, others, taken, has_gain,
                    places)
            except RecordingError:
                if signal in wanted:
                    raise
                continue
            found, units = {**found, **one}, {**own_units, **units}
            break
    return found, units
