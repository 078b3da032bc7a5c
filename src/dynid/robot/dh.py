"""Robots from Denavit-Hartenberg tables, standard and modified.

A row is a mapping with the keys below, or a tuple in the same order. An optional fifth entry is the kind of joint:
"revolute" (default), "continuous" or "prismatic". Angles are in rad, lengths in m.

=====================  =======================  ====================================================
table                  keys                     pose of frame j in frame j-1
=====================  =======================  ====================================================
standard DH            alpha  a  d  theta       Rot(z, theta) Trans(z, d) Trans(x, a) Rot(x, alpha)
MDH, Khalil (default)  alpha  d  theta  r       Rot(x, alpha) Trans(x, d) Rot(z, theta) Trans(z, r)
MDH, Craig             alpha  a  theta  d       Rot(x, alpha) Trans(x, a) Rot(z, theta) Trans(z, d)
=====================  =======================  ====================================================

The joint's position adds to theta (revolute) or to the length along z (prismatic): the value in the table is an offset,
which a mapping may omit. Inertias are given in the link frame. This frame is at the distal end of the link in the
standard convention, and at the link's joint in the modified one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict, Unpack, cast, get_args

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import RobotError
from dynid.robot.pose import checked, rotation_x, rotation_z, translation
from dynid.robot.robot import Body, Frame, Joint, JointKind, Limit, Robot

Row = Mapping[str, Any] | Sequence[Any]

STANDARD = ("alpha", "a", "d", "theta")
KHALIL = ("alpha", "d", "theta", "r")
CRAIG = ("alpha", "a", "theta", "d")
KINDS: tuple[str, ...] = get_args(JointKind)
LIMITS: tuple[str, ...] = get_args(Limit)


class TableOptions(TypedDict, total=False):
    """Optional settings of a robot from a Denavit-Hartenberg table."""

    name: str
    joints: Sequence[str]  # names, default joint1, joint2, ...
    links: Sequence[str]  # names, default link1, link2, ...
    inertias: Sequence[ArrayLike | None] | Array | None  # ten inertial parameters per link, in its frame
    limits: Mapping[str, Sequence[float]]  # "lower", "upper", "velocity", "acceleration", "effort": one per joint
    base: ArrayLike | None  # pose (4 x 4) of frame 0 in the base frame
    tool: ArrayLike | None  # pose (4 x 4) of the frame "tool" in the last link's frame
    gravity: Sequence[float] | None  # (3,) in the base frame, m/s^2
    terms: Sequence[Mapping[str, Any]]  # see `Robot.terms`
    values: Mapping[str, float]  # see `Robot.values`
    source: str


def from_dh(rows: Sequence[Row], **options: Unpack[TableOptions]) -> Robot:
    """Return a serial robot from a standard DH table, rows (alpha, a, d, theta, kind); options as in `TableOptions`."""
    return _serial(rows, STANDARD, options)


def from_mdh(rows: Sequence[Row], *, notation: Literal["khalil", "craig"] = "khalil",
             **options: Unpack[TableOptions]) -> Robot:
    """Return a serial robot from a modified DH table, rows (alpha, d, theta, r, kind) (Ardiani, eq. 1.1-1.4).

    notation "craig" reads rows (alpha, a, theta, d, kind) instead: the same numbers with other names. Options are those
    of `TableOptions`.
    """
    if notation not in ("khalil", "craig"):
        raise RobotError(f"notation of a modified DH table is 'khalil' or 'craig', got {notation!r}")
    return _serial(rows, KHALIL if notation == "khalil" else CRAIG, options)


def _serial(rows: Sequence[Row], keys: tuple[str, ...], options: TableOptions) -> Robot:
    name = options.get("name", "robot")
    robot = f"robot '{name}'"
    if isinstance(rows, str | Mapping) or not isinstance(rows, Sequence | np.ndarray):
        raise RobotError(f"{robot}: a DH table is a list of rows, got {type(rows).__name__}")
    unknown = [option for option in options if option not in TableOptions.__annotations__]
    if unknown:
        raise RobotError(f"{robot}: unknown option '{unknown[0]}'; the options are "
                         f"{', '.join(TableOptions.__annotations__)}")
    poses = [_poses(row, keys, f"{robot}, DH row {i}") for i, row in enumerate(rows, 1)]
    n = len(poses)
    joint_names = _names(options.get("joints"), "joint", n, robot)
    link_names = _names(options.get("links"), "link", n, robot)
    inertias = _inertias(options.get("inertias"), link_names, robot)
    bounds = _limits(options.get("limits", {}), joint_names, robot)
    base, tool, gravity = options.get("base"), options.get("tool"), options.get("gravity")
    joints = []
    for i, (kind, before, after) in enumerate(poses):
        if i == 0 and base is not None:
            before = checked(base, f"the base pose of {robot}") @ before
        joints.append(Joint(joint_names[i], kind, i - 1, before, after, **bounds[i]))
    bodies = [Body(link, row) for link, row in zip(link_names, inertias, strict=True)]
    frames = () if tool is None else (Frame("tool", n - 1, checked(tool, f"the tool pose of {robot}")),)
    return Robot(name, tuple(joints), tuple(bodies), frames=frames,
                 gravity=np.array([0.0, 0.0, -9.81]) if gravity is None else _numbers(gravity, f"gravity of {robot}"),
                 terms=tuple(dict(term) for term in options.get("terms", ())),
                 values=dict(options.get("values", {})), source=options.get("source", ""))


def _poses(row: Row, keys: tuple[str, ...], where: str) -> tuple[JointKind, Array, Array]:
    """Return the joint kind of one DH row, and the poses (4, 4) before and after the joint's motion."""
    number, kind = _row(row, keys, where)
    alpha, theta = rotation_x(number["alpha"]), rotation_z(number["theta"])
    if keys == STANDARD:
        return kind, np.eye(4), theta @ translation(number["a"], 0, number["d"]) @ alpha
    along_x, along_z = (number["d"], number["r"]) if keys == KHALIL else (number["a"], number["d"])
    return kind, alpha @ translation(along_x, 0, 0) @ theta @ translation(0, 0, along_z), np.eye(4)


def _row(row: Row, keys: tuple[str, ...], where: str) -> tuple[dict[str, float], JointKind]:
    """Return the four DH parameters by key and the joint kind of one DH row; `where` names the row in messages."""
    order = " ".join(keys)
    if isinstance(row, Mapping):
        given = dict(row)
    elif isinstance(row, str) or not isinstance(row, Sequence | np.ndarray):
        raise RobotError(f"{where} must be a tuple ({order}, kind) or a mapping with those keys, got {row!r}")
    elif len(row) not in (4, 5):
        raise RobotError(f"{where} has {len(row)} entries, it needs four ({order}) and may add the kind of joint")
    else:
        given = dict(zip((*keys, "kind"), row, strict=False))
    kind = given.pop("kind", "revolute")
    if not isinstance(kind, str) or kind not in KINDS:
        raise RobotError(f"{where} has kind {kind!r}, it must be one of {', '.join(KINDS)}")
    for key in given:
        if key not in keys:
            raise RobotError(f"{where} has an unknown key '{key}', this table has {order}{_hint(key, keys)}")
    offset = "theta" if kind != "prismatic" else "r" if keys == KHALIL else "d"
    for key in keys:
        if key not in given and key != offset:
            raise RobotError(f"{where} has no '{key}', it needs {order} (only {offset}, the offset of a {kind} joint, "
                             f"may be left out)")
    return {key: _number(given.get(key, 0.0), f"'{key}' of {where}") for key in keys}, cast(JointKind, kind)


def _hint(key: str, keys: tuple[str, ...]) -> str:
    if key == "a" and keys == KHALIL:
        return "; for Craig's names (alpha a theta d) pass notation='craig'"
    if key == "r" and keys != KHALIL:
        return "; alpha d theta r is a modified table in Khalil's notation"
    return ""


def _number(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise RobotError(f"{what} must be a number, got {value!r}")
    if not math.isfinite(value):
        raise RobotError(f"{what} must be a finite number, got {value}")
    return float(value)


def _numbers(values: Any, what: str) -> Array:
    if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray):
        raise RobotError(f"{what} must be a list of numbers, got {values!r}")
    return np.array([_number(value, f"entry {i} of {what}") for i, value in enumerate(values, 1)])


def _names(names: Sequence[str] | None, what: str, n: int, robot: str) -> list[str]:
    if names is None:
        return [f"{what}{i}" for i in range(1, n + 1)]
    if isinstance(names, str) or len(names) != n:
        raise RobotError(f"{robot} has {n} DH rows but {1 if isinstance(names, str) else len(names)} {what} names")
    return [str(item) for item in names]


def _inertias(inertias: Sequence[ArrayLike | None] | Array | None, links: list[str], robot: str) -> list[Array | None]:
    if inertias is None:
        return [None] * len(links)
    if len(inertias) != len(links):
        raise RobotError(f"{robot} has {len(links)} DH rows but inertias for {len(inertias)} links")
    ten: list[Array | None] = []
    for link, row in zip(links, inertias, strict=True):
        what = f"the inertia of link '{link}' of {robot}"
        numbers = None if row is None else _numbers(row, what)
        if numbers is not None and numbers.shape != (10,):
            raise RobotError(f"{what} needs ten numbers (XX XY XZ YY YZ ZZ MX MY MZ M), got {len(numbers)}")
        ten.append(numbers)
    return ten


def _limits(limits: Mapping[str, Any], joints: list[str], robot: str) -> list[dict[str, float]]:
    bounds: list[dict[str, float]] = [{} for _ in joints]
    for which, row in limits.items():
        if which not in LIMITS:
            raise RobotError(f"{robot} has an unknown limit '{which}', it must be one of {', '.join(LIMITS)}")
        if isinstance(row, str) or not isinstance(row, Sequence | np.ndarray) or len(row) != len(joints):
            raise RobotError(f"limit '{which}' of {robot} needs one number for each of its {len(joints)} joints")
        for joint, value, bound in zip(joints, row, bounds, strict=True):
            if isinstance(value, float | np.floating) and math.isinf(value):
                bound[which] = float(value)  # an infinite value means no limit
            else:
                bound[which] = _number(value, f"limit '{which}' of joint '{joint}' of {robot}")
    return bounds
