"""Validated fields of a robot file in TOML: numbers, angles, poses and inertias."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import RobotError, did_you_mean
from dynid.quantities import NO_LIMIT
from dynid.robot import inertia as ten
from dynid.robot.dh import LIMITS
from dynid.robot.pose import checked, from_xyz_rpy

# Largest mass, length or inertia in SI units: squares and products of such numbers do not overflow.
MAX_FIELD_VALUE = 1e12
_ANGULAR_LIMITS = ("lower", "upper", "velocity", "acceleration")
_PI_PATTERN = re.compile(r"\s*([+-]?)\s*(?:(\d+(?:\.\d*)?)\s*\*?\s*)?pi\s*(?:/\s*(\d+(?:\.\d*)?))?\s*")


def known_keys(table: Mapping[str, Any], keys: Sequence[str], where: str) -> None:
    for key in table:
        if key not in keys:
            raise RobotError(f"{where} has an unknown key '{key}'; {did_you_mean(key, keys, 'it may have')}",
                             code="unknown-setting")


def parse_text(value: Any, what: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise RobotError(f"{what} must be text, got {value!r}")
    return value


def parse_angle(value: Any, unit: float, what: str) -> float:
    """Return an angle in rad from a number in the file's unit, or from text such as "3*pi/4"."""
    if isinstance(value, str):
        match = _PI_PATTERN.fullmatch(value)
        if match is None:
            raise RobotError(f"{what} must be a number or text such as \"pi/2\", got {value!r}")
        sign, factor, divisor = match.groups()
        if divisor is not None and float(divisor) == 0:
            raise RobotError(f"{what} divides by zero: {value!r}")
        return (-1.0 if sign == "-" else 1.0) * float(factor or 1) * math.pi / float(divisor or 1)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RobotError(f"{what} must be a number or text such as \"pi/2\", got {value!r}", code="not-a-number")
    return float(value) * unit


def parse_vector(value: Any, length: int, what: str) -> Array:
    good = (isinstance(value, list) and len(value) == length
            and all(isinstance(v, int | float) and not isinstance(v, bool) and math.isfinite(v) for v in value))
    if not good:
        raise RobotError(f"{what} must be {length} finite numbers, got {value!r}")
    if any(abs(v) > MAX_FIELD_VALUE for v in value):
        raise RobotError(f"{what} has a number above {MAX_FIELD_VALUE:g}, which is not plausible for a robot: use SI "
                         f"units, got {value!r}")
    return np.array(value, dtype=float)


def parse_number(value: Any, what: str) -> float:
    return float(parse_vector([value], 1, what)[0])


def parse_pose(value: Any, unit: float, what: str) -> Array:
    if not isinstance(value, dict):
        return checked(value, what)
    known_keys(value, ("xyz", "rpy"), what)
    xyz, rpy = parse_vector(value.get("xyz", [0, 0, 0]), 3, f"xyz of {what}"), value.get("rpy", [0, 0, 0])
    if not isinstance(rpy, list) or len(rpy) != 3:
        raise RobotError(f"rpy of {what} must be three angles, got {rpy!r}")
    angles = [parse_angle(angle, unit, f"rpy of {what}") for angle in rpy]
    return from_xyz_rpy(xyz, parse_vector(angles, 3, f"rpy of {what}"))


def parse_inertia(value: Any, what: str) -> Array:
    """Return the ten inertial parameters (10,) of a link, given in one of the three forms of `robot.robot_files`."""
    keys = set(value) if isinstance(value, dict) else set()
    if keys == set(ten.NAMES):
        return parse_vector([value[name] for name in ten.NAMES], 10, what)
    if keys not in ({"mass", "com", "about_com"}, {"mass", "com", "about_frame"}):
        raise RobotError(f"{what} must have the keys mass, com, about_com, or mass, com, about_frame, "
                         f"or the ten numbers {', '.join(ten.NAMES)}; it has {', '.join(value) if keys else value!r}")
    mass = parse_number(value["mass"], f"mass of {what}")
    com = parse_vector(value["com"], 3, f"com of {what}")
    if "about_com" in keys:
        return ten.from_central(mass, com, ten.symmetric(parse_vector(value["about_com"], 6, f"about_com of {what}")))
    return np.concatenate([parse_vector(value["about_frame"], 6, f"about_frame of {what}"), mass * com, [mass]])


def parse_terms(terms: Any, file: str) -> list[dict[str, Any]]:
    if not isinstance(terms, list) or not all(isinstance(t, dict) and isinstance(t.get("kind"), str) for t in terms):
        raise RobotError(f"robot file '{file}': every [[terms]] table needs a kind, such as kind = \"viscous\"")
    return terms


def parse_values(values: Any, file: str) -> dict[str, float]:
    if not isinstance(values, dict):
        raise RobotError(f"robot file '{file}': [values] must be a table of parameter names and numbers")
    return {name: parse_number(value, f"value '{name}' in robot file '{file}'")
            for name, value in values.items()}


def angle_unit(table: Mapping[str, Any], file: str) -> float:
    """Return the angle unit of a robot file in rad: 1 for radians, pi / 180 for degrees."""
    if table.get("angles", "radians") not in ("radians", "degrees"):
        raise RobotError(f"robot file '{file}' must set angles = \"radians\" or \"degrees\", got {table['angles']!r}")
    return math.pi / 180 if table.get("angles") == "degrees" else 1.0


def parse_limits(joint: Mapping[str, Any], unit: float, where: str) -> dict[str, Any]:
    """Return the limits in a joint's table by name, infinite if missing; angles in rad."""
    limits = {}
    for which in LIMITS:
        value = joint.get(which, -math.inf if which == "lower" else math.inf)
        angular = which in _ANGULAR_LIMITS and joint.get("kind", "revolute") != "prismatic"
        limit = parse_angle(value, unit, f"'{which}' in {where}") if angular else value
        none = isinstance(limit, int | float) and abs(limit) > NO_LIMIT
        limits[which] = math.copysign(math.inf, limit) if none else limit
    return limits
