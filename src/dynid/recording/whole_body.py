"""Signals of a robot with a free base in a log, and the guess of their columns: base, IMU, foot forces, contacts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from dynid.errors import RecordingError

WHOLE_BODY_SIGNALS = ("base_position", "base_orientation", "base_velocity", "base_angular_velocity",
                      "imu_angular_rate", "imu_specific_force", "foot_force", "contact")
WITHOUT_JOINTS = ("time", "wrench", *WHOLE_BODY_SIGNALS)  # signals whose columns do not belong to joints
WIDTHS = {"base_position": 3, "base_orientation": 4, "base_velocity": 3, "base_angular_velocity": 3,
          "imu_angular_rate": 3, "imu_specific_force": 3}
ALWAYS, NEVER = "always", "never"  # values of contact: all feet stand, or none touches, throughout the log

_BASE_WORDS = set("base trunk torso pelvis body root floating fb".split())
_POSITION = set("pos position positions translation xyz p".split())
_VELOCITY = set("vel velocity velocities v speed twist".split())
_ANGULAR_WORDS = set("ang angular omega rot rotational w gyro".split())
_QUATERNION = set("quat quaternion orientation ori q rotation".split())
_GYRO_WORDS = set("gyro gyroscope gyr g rate".split())
_ACCELERATION = set("acc accel acceleration accelerometer a specific".split())
_CONTACT_WORDS = set("contact contacts touch stance touching".split())
_FORCE_WORDS = set("force forces grf wrench ft fts".split())
_MOMENT_WORDS = set("torque moment torques moments m t tau n".split())
_FOOT_WORDS = set("foot feet toe toes sole ankle ground hand end effector leg".split())
_OTHER_WORDS = set("target targets ref reference cmd command commanded des desired setpoint goal joint motor error std "
                   "cov covariance threshold limit".split())
_AXIS_INDICES = {"x": 0, "y": 1, "z": 2, "w": 3}
_JOINED = re.compile(r"(q|a|g|w|v|p|f|m|t|acc|gyro|quat|pos|vel|omega|force|torque)([xyzw])")
_LEG_BY_LETTERS = {"fl": ("front", "left"), "lf": ("front", "left"), "fr": ("front", "right"), "rf": ("front", "right"),
                   "rl": ("rear", "left"), "hl": ("rear", "left"), "lh": ("rear", "left"), "bl": ("rear", "left"),
                   "rr": ("rear", "right"), "hr": ("rear", "right"), "rh": ("rear", "right"), "br": ("rear", "right")}
_END_BY_WORD = {"front": "front", "fore": "front", "rear": "rear", "hind": "rear", "back": "rear"}
UNITREE_ORDER = (("front", "right"), ("front", "left"), ("rear", "right"), ("rear", "left"))
_SIDE_BY_WORD = {"left": "left", "l": "left", "right": "right", "r": "right"}


@dataclass(frozen=True)
class ColumnMeaning:
    """Interpretation of a column name.

    Attributes:
        signal: name of the signal.
        stem: words of the name without axis and number.
        leg: front or rear, left or right; empty if not stated.
        number: number in the name.
        component: index of the component of a vector, from 0; 3 to 5 are the moments of a wrench.
    """

    signal: str
    stem: tuple[str, ...]
    leg: tuple[str, ...] = ()
    number: int | None = None
    component: int | None = None


def name_words(name: str) -> list[str]:
    """Return words and numbers of a name in lower case."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+", name)]


def leg_in_name(name: str) -> tuple[str, ...]:
    """Return the leg of a name: (front or rear, left or right), or one of them; empty if it has none."""
    words = name_words(name)
    found = next((_LEG_BY_LETTERS[word] for word in words if word in _LEG_BY_LETTERS), None)
    if found is not None:
        return found
    end = [_END_BY_WORD[word] for word in words if word in _END_BY_WORD][:1]
    side = [_SIDE_BY_WORD[word] for word in words if word in _SIDE_BY_WORD][:1]
    return (*end, *side)


def column_meaning(name: str) -> ColumnMeaning | None:
    """Return the meaning of a column by its name; None if it is not a signal of a free base."""
    words = [word for word in name_words(name) if word not in ("m", "s", "rad", "nm") or word == name_words(name)[-1]]
    component = None
    if len(words) > 1 and words[-1] in _AXIS_INDICES:
        component = _AXIS_INDICES[words.pop()]
    elif words and (joined := _JOINED.fullmatch(words[-1])):
        words[-1], component = joined[1], _AXIS_INDICES[joined[2]]
    numbers = [int(word) for word in words if word.isdigit()]
    plain = tuple(word for word in words if not word.isdigit())
    known, number = set(plain), numbers[-1] if numbers else None
    if not known or known & _OTHER_WORDS:
        return None
    leg = leg_in_name(name)
    if known & _CONTACT_WORDS and not known & _FORCE_WORDS:
        return ColumnMeaning("contact", plain, leg, number)
    if known & _FORCE_WORDS or (leg and plain[-1] in ("f", "m", "t") and component is not None):
        if not (leg or known & _FOOT_WORDS or number is not None or "grf" in known):
            return None
        moment = plain[-1] in _MOMENT_WORDS
        stem = tuple(word for word in plain if word not in _MOMENT_WORDS | {"f", "force", "forces"})
        return ColumnMeaning("foot_force", stem, leg, number, None if component is None else component + 3 * moment)
    signal = _vector_signal(known, plain)
    if signal is None or (leg and not known & (_BASE_WORDS | {"imu"})):
        return None
    if component is None and numbers and WIDTHS.get(signal):
        component, number = numbers[-1], None
    return ColumnMeaning(signal, plain, (), None, component)


def _vector_signal(known: set[str], words: tuple[str, ...]) -> str | None:
    """Return the signal of a base or an IMU that the words of a column name describe, or None."""
    bare = len(words) == 1
    if known & _QUATERNION and (bare or known & (_BASE_WORDS | {"imu", "quat", "quaternion", "orientation"})) \
            and not known & (_VELOCITY | _GYRO_WORDS):
        return "base_orientation"
    if known & _ACCELERATION and not known & {"ang", "angular"} and (bare or known & ({"imu", "linear", "lin",
                                                                                       "accelerometer"} | _BASE_WORDS)):
        return "imu_specific_force"
    if known & (_GYRO_WORDS - {"g", "rate"}) or (bare and words[0] in ("g", "w")) or (
            "imu" in known and known & (_ANGULAR_WORDS | {"rate"})):
        return "imu_angular_rate"
    if not known & _BASE_WORDS and not (bare and words[0] in ("v", "p")):
        return None
    if known & _ANGULAR_WORDS:
        return "base_angular_velocity"
    if known & _VELOCITY:
        return "base_velocity"
    return "base_position" if known & _POSITION or not known - _BASE_WORDS else None


def of_topics(fields: Mapping[str, str]) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """Choose the signals of a free base among the topics of a bag by their message types.

    The orientation comes from the topic that has the position, if there is one. Of several topics with the same signal
    none is used, and a note states how to choose.

    Args:
        fields: signal of each field, whose name is <topic>:<part>.

    Returns:
        The columns of each signal, and notes on the choice.
    """
    found: dict[str, tuple[str, ...]] = {}
    notes: list[str] = []
    posed = {name.rpartition(":")[0] for name, signal in fields.items() if signal == "base_position"}
    for signal in dict.fromkeys(fields.values()):
        names = [name for name, held in fields.items() if held == signal]
        if signal == "base_orientation" and posed:
            names = [name for name in names if name.rpartition(":")[0] in posed]
        if len(names) == 1:
            found[signal] = (names[0],)
            notes.append(f"read from the messages: {signal} = {names[0]}")
        else:
            notes.append(f"several topics have the {signal} ({', '.join(names[:4])}), so none was used; choose with "
                         f"--set log.{signal}={names[0]}")
    return found, notes


def find_columns(fields: Mapping[str, tuple[int, ...]], joints: Sequence[str] = (),
                 typed: Mapping[str, str] = MappingProxyType({})) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """Find the columns of base, IMU, feet and contacts by their names.

    Args:
        fields: names and shapes of the fields, as in `Source.fields`.
        joints: names of the robot's joints, whose columns are ignored.
        typed: signals found by message type.

    Returns:
        The columns of each signal in order, and notes on the guess.
    """
    groups: dict[str, dict[tuple[str, ...], dict[tuple[tuple[str, ...], int | None, int | None], str]]] = {}
    for name, shape in fields.items():
        several = len(shape) == 2 and min(shape) != 1
        if shape == () or name in typed or any(re.search(rf"(?<![A-Za-z0-9]){re.escape(one)}(?![A-Za-z0-9])", name)
                                               for one in joints):
            continue
        meaning = column_meaning(name)
        if meaning is None or (several and meaning.signal in WIDTHS and WIDTHS[meaning.signal] not in shape):
            continue
        stem = tuple(word for word in meaning.stem
                     if word not in _LEG_BY_LETTERS and word not in _SIDE_BY_WORD and word not in _END_BY_WORD)
        stem = (*stem, "array") if several else stem
        groups.setdefault(meaning.signal, {}).setdefault(stem, {})[meaning.leg, meaning.number,
                                                                   None if several else meaning.component] = name
    found, notes = of_topics(typed)
    for signal in (one for one in WHOLE_BODY_SIGNALS if one not in typed.values()):
        whole = [columns for stem, group in groups.get(signal, {}).items()
                 if (columns := _complete(signal, stem, group)) is not None]
        if not whole and signal == "foot_force":
            notes += [lacks for group in groups.get(signal, {}).values() if (lacks := _lacking_force(group))]
        if len(whole) > 1 and signal.startswith("base"):
            whole = [one for one in whole if set(name_words(one[0])) & _BASE_WORDS] or whole
        if len(whole) == 1:
            found[signal] = whole[0]
            notes.append(f"guessed from their names: {signal} = {', '.join(whole[0][:8])}"
                         + (", ..." if len(whole[0]) > 8 else ""))
        elif whole:
            names = " or ".join(one[0] for one in whole[:4])
            notes.append(f"several groups of columns could be the {signal} ({names}, ...), so none was used; choose "
                         f"with --set 'log.{signal}=[...]'")
    return found, notes


def check_motor_order(fields: Iterable[str], joints: Sequence[str], source: str) -> None:
    """Raise an error for columns with motor numbers, as of Unitree, on a quadruped whose legs have another order."""
    numbered = [name for name in fields
                if "motor" in name_words(name) and name_words(name)[-1] in ("q", "pos", "position")
                and any(word.isdigit() for word in name_words(name)) and not leg_in_name(name)]
    legs = list(dict.fromkeys(leg_in_name(name) for name in joints))
    if len(numbered) != len(joints) or set(legs) != set(UNITREE_ORDER) or tuple(legs) == UNITREE_ORDER:
        return
    ordered = sorted(joints, key=lambda name: UNITREE_ORDER.index(leg_in_name(name)))
    names = ", ".join(f'"{name}"' for name in ordered)
    raise RecordingError(f"{source}: columns such as {numbered[0]} are numbered by motor. Unitree numbers the legs "
                         "front right, front left, rear right, rear left, but the robot file has another order of legs",
                         f"if the columns have Unitree's order, add --set 'log.joints=[{names}]'; otherwise name the "
                         "joints in the order of the columns", code="motor-order")


_Group = Mapping[tuple[tuple[str, ...], int | None, int | None], str]  # columns by leg, number and component
_FORCE_COMPONENTS = ((0,), (2,), (0, 1, 2), (0, 1, 2, 3, 4, 5))  # possible components of a foot's columns


def _of_feet(group: _Group) -> dict[tuple[tuple[str, ...], int | None], dict[int, str]]:
    """Return the force or contact columns of each foot, by component."""
    feet: dict[tuple[tuple[str, ...], int | None], dict[int, str]] = {}
    for (leg, number, component), name in group.items():
        feet.setdefault((leg, number), {})[component or 0] = name
    return feet


def _lacking_force(group: _Group) -> str:
    """Return a note on feet that lack force columns of the other feet; empty for columns that are not forces."""
    feet = _of_feet(group)
    every = tuple(sorted(set().union(*feet.values())))
    lacking = [(names, [k for k in every if k not in names]) for names in feet.values() if len(names) < len(every)]
    if every not in _FORCE_COMPONENTS or not lacking or len(lacking) == len(feet):
        return ""
    axes = ("force x", "force y", "force z", "moment x", "moment y", "moment z")
    found = "; ".join(f"next to {min(names.values())} there is no {', '.join(axes[k] for k in missing)}"
                      for names, missing in lacking)
    return (f"forces on the feet are not used, because columns are missing: {found}; map all of them with --set "
            "'log.foot_force=[...]'")


def _complete(signal: str, stem: tuple[str, ...], group: _Group) -> tuple[str, ...] | None:
    """Return the columns of one signal in order; None if some are missing."""
    if stem[-1:] == ("array",):
        return tuple(group.values()) if len(group) == 1 or signal in ("foot_force", "contact") else None
    if signal not in WIDTHS:
        feet = _of_feet(group)
        shapes = {tuple(sorted(one)) for one in feet.values()}
        if len(shapes) != 1 or shapes.pop() not in _FORCE_COMPONENTS:
            return None
        return tuple(one[k] for one in feet.values() for k in sorted(one))
    by_component = {component: name for (_, _, component), name in group.items()}
    width = WIDTHS[signal]
    first = 0 if 0 in by_component else 1
    if signal == "base_orientation" and {0, 1, 2, 3} == set(by_component) and any(
            name.lower().endswith("w") for name in by_component.values()):
        return tuple(by_component[k] for k in range(4))  # x, y, z, w by their letters
    wanted = range(first, first + width)
    return tuple(by_component[k] for k in wanted) if set(by_component) == set(wanted) else None
