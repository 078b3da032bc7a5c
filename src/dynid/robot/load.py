"""Robots by name, by URDF or by a small TOML file with a DH table.

The TOML file, as the built-in robots next to this module are written::

    name = "two-links"
    source = "where the numbers come from"
    convention = "mdh"             # "dh": keys alpha a d theta; "mdh": keys alpha d theta r
    notation = "khalil"            # mdh only; "craig": keys alpha a theta d
    angles = "degrees"             # unit of every angle and angular limit below; default "radians"
    gravity = [0, 0, -9.81]        # m/s^2 in the base frame, this is the default
    base = {xyz = [0, 0, 0.3], rpy = [0, 0, 0]}   # frame 0 in the base frame; or a 4 x 4 matrix
    tool = {xyz = [0, 0, 0.1]}                    # frame "tool" in the last link's frame
    payload = 5.0                  # largest mass it may carry at its end, kg, if its maker says so

    [[joint]]                      # one a row of the table, from the base on
    name = "shoulder"              # default joint1, joint2, ...
    link = "upper-arm"             # default link1, link2, ...
    kind = "revolute"              # default; "continuous", "prismatic"
    alpha = "pi/2"                 # a number in the unit above, or text: "pi/2", "-pi", "3*pi/4"
    d = 0.0
    r = 0.4
    lower = -90                    # limits: lower, upper, velocity, acceleration, effort
    upper = 90
    inertia = {mass = 2.7, com = [0, 0.1, 0], about_com = [XX, XY, XZ, YY, YZ, ZZ]}

    [[terms]]                      # what to identify beside the rigid bodies, see dynid.model
    kind = "viscous"

    [values]                       # published values of those terms' parameters
    Fv1 = 0.1

A link's inertia is written in its link frame in one of three ways; the keys say about which point:

- ``{mass, com, about_com}``: inertia about the centre of mass,
- ``{mass, com, about_frame}``: inertia about the origin of the link frame,
- ``{XX, XY, XZ, YY, YZ, ZZ, MX, MY, MZ, M}``: the ten numbers themselves.

SI units throughout: kg, m, kg m^2, N m.
"""

from __future__ import annotations

import difflib
import math
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import RobotError
from dynid.files import read_small, toml_table
from dynid.robot import inertia as ten
from dynid.robot.angles import exact_angle, rounded_warnings
from dynid.robot.dh import CRAIG, KHALIL, LIMITS, STANDARD, Options, from_dh, from_mdh
from dynid.robot.pose import checked, from_xyz_rpy
from dynid.robot.robot import Robot, checked_sizes

_TOP = ("name", "source", "convention", "notation", "angles", "gravity", "base", "tool", "payload", "joint", "terms",
        "values")
_JOINT = ("name", "link", "kind", "inertia", *LIMITS)
_ANGULAR = ("lower", "upper", "velocity", "acceleration")
_PI = re.compile(r"\s*([+-]?)\s*(?:(\d+(?:\.\d*)?)\s*\*?\s*)?pi\s*(?:/\s*(\d+(?:\.\d*)?))?\s*")


def load(source: str | Path) -> Robot:
    """A robot from a built-in name, a .urdf file (or URDF text) or a .toml file."""
    from dynid.robot.urdf import read_urdf  # here, so that a built-in robot needs no XML parser

    text = str(source)
    if text.lstrip().startswith("<"):
        return read_urdf(text)
    path = Path(source)
    suffix = path.suffix.lower()
    if suffix in (".urdf", ".xml"):
        return read_urdf(path)
    if suffix == ".toml":
        return read_toml(path)
    if suffix == ".xacro":
        raise RobotError(f"robot file '{path}' is a xacro file: run xacro on it first (xacro {path.name} > robot.urdf) "
                         "and give the result")
    if os.path.isfile(path):  # False for names that no file can have
        raise RobotError(f"robot file '{path}' has the ending '{suffix}', expected .urdf or .toml")
    if suffix or len(path.parts) > 1:
        raise RobotError(f"robot file '{path}' does not exist; give a .urdf or .toml file or one of "
                         f"the built-in robots {', '.join(builtin_names())}")
    return builtin(text)


def builtin_names() -> tuple[str, ...]:
    """Names of the robots that come with dynid, sorted."""
    folder = resources.files("dynid.robot") / "builtin"
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir()
                        if entry.name.endswith(".toml")))


def builtin(name: str) -> Robot:
    """One of the robots that come with dynid; see `builtin_names`."""
    names = builtin_names()
    if name not in names:
        close = difflib.get_close_matches(str(name).lower(), names, n=3, cutoff=0.4)
        raise RobotError(f"there is no built-in robot '{name}'; "
                         + (f"did you mean {' or '.join(close)}, or" if close else "there are")
                         + f" {'one of ' if close else ''}{', '.join(n for n in names if n not in close)}")
    text = (resources.files("dynid.robot") / "builtin" / f"{name}.toml").read_text(encoding="utf-8")
    return _from_toml(text, f"{name}.toml", name)


def read_toml(path: str | Path) -> Robot:
    """A robot from a TOML file in the format at the top of this module."""
    path = Path(path)
    try:
        text = read_small(path).decode("utf-8").replace("\r\n", "\n")
    except FileNotFoundError:
        raise RobotError(f"robot file '{path}' does not exist") from None
    except (OSError, UnicodeDecodeError) as problem:
        raise RobotError(f"robot file '{path}' cannot be read: {problem}") from None
    return _from_toml(text, path.name, path.stem)


def _from_toml(text: str, file: str, default_name: str) -> Robot:
    try:
        table = toml_table(text)
    except tomllib.TOMLDecodeError as problem:
        raise RobotError(f"robot file '{file}' is not valid TOML: {problem}") from None
    _known(table, _TOP, f"robot file '{file}'")
    convention, notation = table.get("convention"), table.get("notation", "khalil")
    if convention not in ("dh", "mdh"):
        raise RobotError(f"robot file '{file}' must say convention = \"dh\" or \"mdh\", got {convention!r}")
    if notation not in ("khalil", "craig") or ("notation" in table and convention == "dh"):
        raise RobotError(f"robot file '{file}' has notation {notation!r}; only a modified table has one, "
                         f"\"khalil\" or \"craig\"")
    if table.get("angles", "radians") not in ("radians", "degrees"):
        raise RobotError(f"robot file '{file}' must say angles = \"radians\" or \"degrees\", got {table['angles']!r}")
    unit = math.pi / 180 if table.get("angles") == "degrees" else 1.0
    joints = table.get("joint")
    if not isinstance(joints, list) or not joints or not all(isinstance(row, dict) for row in joints):
        raise RobotError(f"robot file '{file}' has no [[joint]] tables, it needs one for each joint")
    keys = STANDARD if convention == "dh" else KHALIL if notation == "khalil" else CRAIG

    rows, names, links, inertias = [], [], [], []
    rounded: dict[str, list[float]] = {}
    limits: dict[str, list[float]] = {which: [] for which in LIMITS}
    for i, joint in enumerate(joints, 1):
        where = f"[[joint]] {i} of robot file '{file}'"
        _known(joint, (*keys, *_JOINT), where)
        revolute = joint.get("kind", "revolute") != "prismatic"
        row = {key: joint[key] for key in (*keys, "kind") if key in joint}
        printed = {key: _angle(row[key], unit, f"'{key}' in {where}") for key in ("alpha", "theta") if key in row}
        row.update({key: exact_angle(angle) for key, angle in printed.items()})
        rows.append(row)
        names.append(_text(joint.get("name", f"joint{i}"), f"'name' in {where}"))
        rounded[names[-1]] = [abs(angle - row[key]) for key, angle in printed.items()]
        links.append(_text(joint.get("link", f"link{i}"), f"'link' in {where}"))
        with np.errstate(over="ignore", invalid="ignore"):  # numbers that large are refused with the robot
            inertias.append(_inertia(joint["inertia"], f"the inertia in {where}") if "inertia" in joint else None)
        for which in LIMITS:
            value = joint.get(which, -math.inf if which == "lower" else math.inf)
            angular = revolute and which in _ANGULAR
            limits[which].append(_angle(value, unit, f"'{which}' in {where}") if angular else value)

    options: Options = {
        "name": _text(table.get("name", default_name), f"'name' in robot file '{file}'"),
        "joints": names, "links": links, "inertias": inertias, "limits": limits,
        "base": _pose(table["base"], unit, f"'base' in robot file '{file}'") if "base" in table else None,
        "tool": _pose(table["tool"], unit, f"'tool' in robot file '{file}'") if "tool" in table else None,
        "gravity": table.get("gravity"),
        "terms": _terms(table.get("terms", []), file),
        "values": _values(table.get("values", {}), file),
        "source": _text(table.get("source", file), f"'source' in robot file '{file}'"),
    }
    try:
        robot = from_dh(rows, **options) if convention == "dh" else from_mdh(rows, notation=notation, **options)
        checked_sizes(robot)
    except RobotError as problem:
        raise RobotError(f"robot file '{file}': {problem}") from None
    carries = None
    if "payload" in table:
        carries = float(_vector([table["payload"]], 1, f"'payload' in robot file '{file}'")[0])
        if carries <= 0:
            raise RobotError(f"robot file '{file}': payload, the largest mass it may carry, must be above zero, got "
                             f"{carries:g} kg")
    return replace(robot, payload=carries, warnings=(*robot.warnings, *rounded_warnings(rounded)))


def _known(table: Mapping[str, Any], keys: Sequence[str], where: str) -> None:
    for key in table:
        if key not in keys:
            close = difflib.get_close_matches(key, keys, n=1)
            raise RobotError(f"{where} has an unknown key '{key}'" + (f", did you mean '{close[0]}'" if close else "")
                             + f"; it may have {', '.join(keys)}")


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise RobotError(f"{what} must be text, got {value!r}")
    return value


def _angle(value: Any, unit: float, what: str) -> float:
    """A number in the file's unit, or text with pi, as rad."""
    if isinstance(value, str):
        match = _PI.fullmatch(value)
        if match is None:
            raise RobotError(f"{what} must be a number or text such as \"pi/2\", got {value!r}")
        sign, factor, divisor = match.groups()
        if divisor is not None and float(divisor) == 0:
            raise RobotError(f"{what} divides by zero: {value!r}")
        return (-1.0 if sign == "-" else 1.0) * float(factor or 1) * math.pi / float(divisor or 1)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RobotError(f"{what} must be a number or text such as \"pi/2\", got {value!r}")
    return float(value) * unit


def _vector(value: Any, length: int, what: str) -> Array:
    good = (isinstance(value, list) and len(value) == length
            and all(isinstance(v, int | float) and not isinstance(v, bool) and math.isfinite(v) for v in value))
    if not good:
        raise RobotError(f"{what} must be {length} finite numbers, got {value!r}")
    return np.array(value, dtype=float)


def _pose(value: Any, unit: float, what: str) -> Array:
    if not isinstance(value, dict):
        return checked(value, what)
    _known(value, ("xyz", "rpy"), what)
    xyz = _vector(value.get("xyz", [0, 0, 0]), 3, f"xyz of {what}")
    return from_xyz_rpy(xyz, _vector(value.get("rpy", [0, 0, 0]), 3, f"rpy of {what}") * unit)


def _inertia(value: Any, what: str) -> Array:
    """Ten numbers from one of the three ways to write them."""
    keys = set(value) if isinstance(value, dict) else set()
    if keys == set(ten.NAMES):
        return _vector([value[name] for name in ten.NAMES], 10, what)
    if keys not in ({"mass", "com", "about_com"}, {"mass", "com", "about_frame"}):
        raise RobotError(f"{what} must have the keys mass, com, about_com, or mass, com, about_frame, "
                         f"or the ten numbers {', '.join(ten.NAMES)}; it has {', '.join(value) if keys else value!r}")
    mass = _vector([value["mass"]], 1, f"mass of {what}")[0]
    com = _vector(value["com"], 3, f"com of {what}")
    if "about_com" in keys:
        return ten.from_central(mass, com, ten.symmetric(_vector(value["about_com"], 6, f"about_com of {what}")))
    return np.concatenate([_vector(value["about_frame"], 6, f"about_frame of {what}"), mass * com, [mass]])


def _terms(terms: Any, file: str) -> list[dict[str, Any]]:
    if not isinstance(terms, list) or not all(isinstance(t, dict) and isinstance(t.get("kind"), str) for t in terms):
        raise RobotError(f"robot file '{file}': every [[terms]] table needs a kind, such as kind = \"viscous\"")
    return terms


def _values(values: Any, file: str) -> dict[str, float]:
    if not isinstance(values, dict):
        raise RobotError(f"robot file '{file}': [values] must be a table of parameter names and numbers")
    return {name: float(_vector([value], 1, f"value '{name}' in robot file '{file}'")[0])
            for name, value in values.items()}
