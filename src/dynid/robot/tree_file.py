"""Trees and closed chains in a TOML file: all joints in the file, or the joints of a URDF with additional closures.

Joint by joint::

    name = "four-bar"
    convention = "tree"
    gravity = [0, -9.81, 0]

    [[joint]]                      # parents before children
    name = "crank"
    link = "crank-arm"             # the body it moves, default link1, link2, ...
    parent = "base"                # its parent link, default the base
    kind = "revolute"              # default; "continuous", "prismatic"
    xyz = [0, 0, 0]                # pose of the link's frame in its parent at zero: moved by xyz, then turned by rpy
    rpy = [0, 0, 0]
    axis = [0, 0, 1]               # in the link's frame, default z
    inertia = {mass = 1.0, com = [0.1, 0, 0], about_com = [0, 0, 0, 0.01, 0, 0.01]}

    [[joint]]
    name = "coupler-pin"
    link = "coupler"
    parent = "crank-arm"
    xyz = [0.2, 0, 0]
    follows = true                 # it is a dependent joint: the loops determine it
    at = -0.5                      # approximate position with closed loops, default 0; selects the assembly branch
    virtual = true                 # its link has no mass; it only connects two joints
    measured = true                # it has an encoder; by default each independent joint has one
    driven = true                  # it has a motor; by default each independent joint has one
    fixed_inertia = true           # the inertia of its link is known: it is fixed, not identified

    [[closure]]
    name = "pin"
    kind = "axis"                  # "point", "axis" (about z of both frames), "rigid", "rod"
    first = {link = "coupler", xyz = [0.5, 0, 0], rpy = [0, 0, 0]}
    second = {link = "rocker", xyz = [0.4, 0, 0]}
    length = 0.8                   # of a rod

    [[mimic]]                      # linear in one other joint: q = multiplier q_other + offset
    joint = "finger"
    follows = "thumb"
    multiplier = -1.0
    offset = 0.0

If any joint sets ``measured``, logs contain the positions of the joints that set it to true. The same applies to
``driven`` and torques; see `dynid.robot.followers`.

With ``convention = "urdf"`` and ``urdf = "robot.urdf"``, relative to the folder of this file, the joints are the
URDF's, its mimic joints too, and a ``[[joint]]`` has only name, follows, at, measured, driven and fixed_inertia.
Closures name links of
the URDF. ``[[terms]]``, ``[values]`` and ``[[frame]]`` are as in other files; joint numbers in the names of values do
not count dependent joints.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PureWindowsPath
from typing import Any, cast

import numpy as np

from dynid.arrays import Array
from dynid.errors import RobotError
from dynid.robot import fields
from dynid.robot.dh import KINDS, LIMITS
from dynid.robot.followers import Mimic, followed, with_roles
from dynid.robot.loops import Closure, ClosureKind, closed
from dynid.robot.pose import inverse, turn_z_to
from dynid.robot.robot import BASE, Body, Frame, Joint, JointKind, Robot, checked_sizes

_TOP_KEYS = ("name", "source", "convention", "angles", "gravity", "urdf", "joint", "closure", "mimic", "frame", "terms",
        "values", "root", "floating_base", "symmetry")
_JOINT_KEYS = ("name", "link", "parent", "kind", "xyz", "rpy", "axis", "inertia", "follows", "at", "virtual",
          "fixed_inertia", "measured", "driven", *LIMITS)
_FOLLOWING = ("name", "follows", "at", "measured", "driven", "fixed_inertia")


def robot_of_tree(table: Mapping[str, Any], file: str, default_name: str, folder: Path | None) -> Robot:
    """Return the robot that a TOML table describes. folder: location of a URDF that the table names."""
    fields.known_keys(table, _TOP_KEYS, f"robot file '{file}'")
    unit = fields.angle_unit(table, file)
    try:
        tree, mimics = (_urdf_tree(table, file, folder) if table["convention"] == "urdf"
                        else (_tree(table, file, default_name, unit), {}))
        checked_sizes(tree)
        joints = {str(row.get("name", f"joint{i}")): row for i, row in enumerate(_rows(table, "joint", file), 1)}
        mimics |= dict(_mimic(row, file, unit) for row in _rows(table, "mimic", file))
        for name, mimic in mimics.items():
            tree.joint_index(name), tree.joint_index(mimic.joint)
        posture = {name: fields.parse_angle(row["at"], unit, f"'at' of joint '{name}' in robot file '{file}'")
                   for name, row in joints.items() if "at" in row}
        following = [name for name, row in joints.items() if row.get("follows", False)]
        closures = [_closure(row, k, tree, file, unit) for k, row in enumerate(_rows(table, "closure", file), 1)]
        robot = closed(tree, closures, following, posture, mimics) if closures or following else followed(tree, mimics)
        robot = replace(robot, values={**robot.values, **fields.parse_values(table.get("values", {}), file)})
        return with_roles(robot, *(_chosen(joints, role, file) for role in ("measured", "driven")))
    except RobotError as problem:
        if f"robot file '{file}'" in str(problem):
            raise
        raise RobotError(f"robot file '{file}': {problem}", code=problem.code) from None


def _chosen(joints: Mapping[str, Mapping[str, Any]], role: str, file: str) -> list[str]:
    """Return the names of the joints whose table sets `role`, "measured" or "driven", to true."""
    wrong = [name for name, row in joints.items() if not isinstance(row.get(role, False), bool)]
    if wrong:
        raise RobotError(f"'{role}' of joint '{wrong[0]}' in robot file '{file}' must be true or false")
    names = [name for name, row in joints.items() if row.get(role, False)]
    if not names and any(role in row for row in joints.values()):
        raise RobotError(f"robot file '{file}' sets {role} = false for some joints, but {role} = true for none; set "
                         f"{role} = true for the other joints")
    return names


def _rows(table: Mapping[str, Any], key: str, file: str) -> Sequence[Mapping[str, Any]]:
    rows = table.get(key, [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise RobotError(f"robot file '{file}': {key} must be tables, [[{key}]]")
    return rows


def _tree(table: Mapping[str, Any], file: str, default_name: str, unit: float) -> Robot:
    """Return the kinematic tree of a robot file with convention "tree", in which every joint is independent."""
    rows = _rows(table, "joint", file)
    if not rows:
        raise RobotError(f"robot file '{file}' has no [[joint]] tables, it needs one for each joint")
    joints: list[Joint] = []
    bodies: list[Body] = []
    for i, row in enumerate(rows, 1):
        where = f"[[joint]] {i} of robot file '{file}'"
        fields.known_keys(row, _JOINT_KEYS, where)
        joints.append(_joint(row, i, [body.name for body in bodies], where, unit))
        bodies.append(_body(row, i, where))
    gravity = fields.parse_vector(table.get("gravity", [0.0, 0.0, -9.81]), 3, f"gravity of robot file '{file}'")
    named = fields.parse_text(table.get("name", default_name), f"'name' in robot file '{file}'")
    terms = tuple(fields.parse_terms(table.get("terms", []), file))
    tree = Robot(named, tuple(joints), tuple(bodies), gravity, terms=terms,
                 source=fields.parse_text(table.get("source", file), f"'source' in robot file '{file}'"))
    frames = tuple(Frame(fields.parse_text(row.get("name"), f"'name' of a [[frame]] in robot file '{file}'"),
                         *_place(row, tree, f"[[frame]] {k} of robot file '{file}'", unit, ("name",)))
                   for k, row in enumerate(_rows(table, "frame", file), 1))
    return replace(tree, frames=frames)


def _joint(row: Mapping[str, Any], i: int, links: Sequence[str], where: str, unit: float) -> Joint:
    kind, parent = row.get("kind", "revolute"), row.get("parent", "base")
    if kind not in KINDS:
        raise RobotError(f"{where} has kind {kind!r}; it must be one of {', '.join(KINDS)}")
    if parent != "base" and parent not in links:
        raise RobotError(f"{where} has the parent link {parent!r}, which must be one of the links before it: "
                         f"{', '.join(('base', *links))}")
    axis = fields.parse_vector(row.get("axis", [0.0, 0.0, 1.0]), 3, f"'axis' in {where}")
    if not np.linalg.norm(axis) > 0.0:
        raise RobotError(f"{where} has a zero axis", code="zero-axis")
    turn = turn_z_to(axis / np.linalg.norm(axis))
    pose = fields.parse_pose({key: row[key] for key in ("xyz", "rpy") if key in row}, unit, where)
    return Joint(fields.parse_text(row.get("name", f"joint{i}"), f"'name' in {where}"), cast(JointKind, kind),
                 BASE if parent == "base" else list(links).index(parent), pose @ turn, inverse(turn),
                 **fields.parse_limits(row, unit, where))


def _body(row: Mapping[str, Any], i: int, where: str) -> Body:
    name = fields.parse_text(row.get("link", f"link{i}"), f"'link' in {where}")
    virtual = bool(row.get("virtual", False))
    if virtual and "inertia" in row:
        raise RobotError(f"{where} has a virtual link with an inertia, but a virtual link has no mass; remove "
                         "'virtual' or 'inertia'")
    inertia = np.zeros(10) if virtual else fields.parse_inertia(row["inertia"], f"the inertia in {where}") \
        if "inertia" in row else None
    return Body(name, inertia, virtual=virtual, fixed_inertia=_fixed_inertia(row, inertia, where))


def _fixed_inertia(row: Mapping[str, Any], inertia: Array | None, where: str) -> bool:
    """Return whether the file states that the inertia of a link is known and not identified."""
    fixed = bool(row.get("fixed_inertia", False))
    if fixed and inertia is None:
        raise RobotError(f"{where} fixes the inertia of its link but gives none; give the inertia",
                         code="missing-inertia")
    return fixed


def check_beside(table: Mapping[str, Any], path: Path) -> None:
    """Refuse the table of a robot file that names a URDF outside the folder of the robot file."""
    name = str(table.get("urdf", ""))
    inside = (path.parent / name).resolve().is_relative_to(path.parent.resolve()) if "\0" not in name else False
    if not inside or Path(name).is_absolute() or PureWindowsPath(name).drive or ".." in PureWindowsPath(name).parts:
        raise RobotError(f"robot file '{path.name}' names the URDF '{name[:200]}', which is not in the same folder",
                         "copy the URDF beside the robot file and name it without folders", code="file-outside")


def _urdf_tree(table: Mapping[str, Any], file: str, folder: Path | None) -> tuple[Robot, dict[str, Mimic]]:
    """Return the tree of the URDF that a robot file names, with the terms of the robot file, and its mimic joints."""
    from dynid.robot.urdf import read_urdf

    name = fields.parse_text(table.get("urdf"), f"'urdf' in robot file '{file}'")
    if folder is None:
        raise RobotError(f"robot file '{file}' names the URDF '{name}', which must be in the same folder")
    rows = {str(row.get("name", "")): row for row in _rows(table, "joint", file)}
    for joint, row in rows.items():
        fields.known_keys(row, _FOLLOWING, f"[[joint]] {joint} of robot file '{file}'")
    robot = read_urdf(folder / name, gravity=table.get("gravity"))
    tree = robot.tree
    for joint in rows:
        tree.joint_index(joint)
    bodies = tuple(replace(body, fixed_inertia=_fixed_inertia(rows.get(joint, {}), body.inertia, f"joint '{joint}'"))
                   for joint, body in zip(tree.joint_names, tree.bodies, strict=True))
    tree = replace(tree, bodies=bodies, terms=(*tree.terms, *fields.parse_terms(table.get("terms", []), file)))
    return tree, {} if robot.followers is None else dict(robot.followers.mimics)


def _place(row: Mapping[str, Any], tree: Robot, where: str, unit: float, also: Sequence[str] = ()) -> tuple[int, Array]:
    """Return the body and the pose (4, 4) on it of an attachment frame given by a table {link, xyz, rpy}."""
    if not isinstance(row, dict):
        raise RobotError(f'{where} must be a point such as {{link = "rod", xyz = [0, 0, 0.8]}}, got {row!r}')
    fields.known_keys(row, ("link", "xyz", "rpy", *also), where)
    frame = tree.frame(fields.parse_text(row.get("link", tree.base), f"'link' in {where}"))
    pose = fields.parse_pose({key: row[key] for key in ("xyz", "rpy") if key in row}, unit, where)
    return frame.body, frame.pose @ pose


def _closure(row: Mapping[str, Any], k: int, tree: Robot, file: str, unit: float) -> Closure:
    name = fields.parse_text(row.get("name", f"loop{k}"), f"'name' in [[closure]] {k} of robot file '{file}'")
    where = f"closure '{name}' of robot file '{file}'"
    fields.known_keys(row, ("name", "kind", "first", "second", "length"), where)
    ends = [Frame(f"{side} place", *_place(row.get(side, {}), tree, f"'{side}' of {where}", unit))
            for side in ("first", "second")]
    length = fields.parse_number(row.get("length", 0.0), f"length of {where}")
    return Closure(name, cast(ClosureKind, row.get("kind")), ends[0], ends[1], length)


def _mimic(row: Mapping[str, Any], file: str, unit: float) -> tuple[str, Mimic]:
    """Return the name of a mimic joint, and the joint that it depends on."""
    name = fields.parse_text(row.get("joint"), f"'joint' in [[mimic]] of robot file '{file}'")
    where = f"[[mimic]] of joint '{name}' in robot file '{file}'"
    fields.known_keys(row, ("joint", "follows", "multiplier", "offset"), where)
    return name, Mimic(fields.parse_text(row.get("follows"), f"'follows' in {where}"),
                       fields.parse_number(row.get("multiplier", 1.0), f"multiplier in {where}"),
                       fields.parse_angle(row.get("offset", 0.0), unit, f"'offset' in {where}"))
