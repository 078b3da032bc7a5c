"""Robots from a name, from a URDF, MJCF or xacro file, or from a TOML file with a DH table.

The TOML file, as the built-in robots next to this module are written::

    name = "two-links"
    source = "where the numbers come from"
    convention = "mdh"             # "dh": keys alpha a d theta; "mdh": keys alpha d theta r
    notation = "khalil"            # mdh only; "craig": keys alpha a theta d
    angles = "degrees"             # unit of every angle and angular limit below; default "radians"
    gravity = [0, 0, -9.81]        # m/s^2 in the base frame, this is the default
    base = {xyz = [0, 0, 0.3], rpy = [0, 0, 0]}   # frame 0 in the base frame; or a 4 x 4 matrix
    tool = {xyz = [0, 0, 0.1]}                    # frame "tool" in the last link's frame
    root = {link = "trunk", inertia = {mass = 6, com = [0, 0, 0], about_com = [..]}}   # the link that carries all
    floating_base = true           # the root link moves freely, see dynid.robot.free_base; default false
    symmetry = {pairs = {left-thigh = "right-thigh"}, std = 0.01}   # {}: by names and positions
    payload = 5.0 # largest mass at the end of the robot, kg, if the manufacturer states it

    [[joint]]                      # one per row of the table, from the base on
    name = "shoulder"              # default joint1, joint2, ...
    link = "upper-arm"             # default link1, link2, ...
    kind = "revolute"              # default; "continuous", "prismatic"
    alpha = "pi/2"                 # a number in the unit above, or text: "pi/2", "-pi", "3*pi/4"
    d = 0.0
    r = 0.4
    lower = -90                    # limits: lower, upper, velocity, acceleration, effort
    upper = 90
    inertia = {mass = 2.7, com = [0, 0.1, 0], about_com = [XX, XY, XZ, YY, YZ, ZZ]}

    [[terms]]                      # terms in addition to the rigid bodies, see dynid.model
    kind = "viscous"

    [values]                       # published values of those terms' parameters
    Fv1 = 0.1

A tree, and closed chains, are written joint by joint, or take the joints of a URDF; see `dynid.robot.tree_file`.

A link's inertia is written in its link frame in one of three ways; the keys state the reference point:

- ``{mass, com, about_com}``: inertia about the centre of mass,
- ``{mass, com, about_frame}``: inertia about the origin of the link frame,
- ``{XX, XY, XZ, YY, YZ, ZZ, MX, MY, MZ, M}``: the ten numbers themselves.

SI units throughout: kg, m, kg m^2, N m.
"""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module, resources
from pathlib import Path
from typing import Any

import numpy as np

from dynid.errors import RobotError, did_you_mean, require_type
from dynid.files import read_small, toml_table
from dynid.plugins import load_plugin, plugin_names
from dynid.robot import fields
from dynid.robot.dh import CRAIG, KHALIL, LIMITS, STANDARD, TableOptions, from_dh, from_mdh
from dynid.robot.pose import exact_angle, rounded_warnings
from dynid.robot.robot import Body, Robot, Symmetry, checked_sizes

_TOP_KEYS = (
    "name", "source", "convention", "notation", "angles", "gravity", "base", "tool", "root", "floating_base",
    "symmetry", "payload", "joint", "terms", "values")
MAX_RADIANS = 2.0 * math.pi  # larger angles of a DH table are in degrees
_JOINT_KEYS = ("name", "link", "kind", "inertia", *LIMITS)
PACKAGE_SCHEME = "package://"
_DESCRIPTION_ENDING = "_description"  # of every module of robot_descriptions


def load(source: str | Path, fixed_base: bool | None = None) -> Robot:
    """Return a robot from a file, an address or a name.

    The source is a .urdf, .xml or .mjcf file (or its text), a .xacro or .toml file, or a package:// address of a file.
    A name is that of a built-in robot, a plugin, or a module of robot_descriptions such as panda_description.
    fixed_base: True fixes the root link, False frees it; by default the file decides.
    """
    require_type(source, (str, Path), "Robot.load", "Robot.load('robot.urdf')")
    robot = _load(source, bool(fixed_base))
    if fixed_base is None:
        return robot
    return robot.with_fixed_base() if fixed_base else robot.with_free_base()


def _load(source: str | Path, fixed_base: bool) -> Robot:
    text = str(source)
    if text.startswith(PACKAGE_SCHEME):
        return _load(find_in_package(text), fixed_base)
    path, is_xml = Path(source), text.lstrip().startswith("<")
    suffix = ".xml" if is_xml else path.suffix.lower()
    if suffix == ".xml":  # the root element shows whether it is an MJCF or a URDF
        from dynid.robot.urdf_text import parse_xml
        suffix = ".mjcf" if parse_xml(text if is_xml else path, "URDF")[0].tag == "mujoco" else ".urdf"
    if suffix in (".urdf", ".mjcf"):
        read = Robot.from_urdf if suffix == ".urdf" else Robot.from_mjcf
        return read(text if is_xml else path, fixed_base=fixed_base)
    if suffix == ".xacro":
        return _read_xacro(path, fixed_base)
    if suffix == ".toml":
        return read_toml(path)
    if os.path.isfile(path):  # False for names that no file can have
        raise RobotError(f"robot file '{path}' has the ending '{suffix}'; expected .urdf, .xml, .mjcf, .xacro or .toml",
                         code="unknown-ending")
    if suffix or len(path.parts) > 1:
        raise RobotError(f"robot file '{path}' does not exist; give a .urdf, .xml, .mjcf, .xacro or .toml file or one "
                         f"of the built-in robots {', '.join(builtin_names())}", code="no-such-file")
    if text in plugin_names("dynid.robots") and text not in builtin_names():
        robot = plugin_robot(text)
        return robot if isinstance(robot, Robot) else _load(robot, fixed_base)
    if text.isidentifier() and text.endswith(_DESCRIPTION_ENDING) and text not in builtin_names():
        return _load(described_path(text), fixed_base)
    return builtin(text)


def _read_xacro(path: Path, fixed_base: bool) -> Robot:
    """Return a robot from a xacro file, expanded by the package xacro if that is installed."""
    try:
        xacro = import_module("xacro")
    except ImportError:
        raise RobotError(f"robot file '{path}' is a xacro file, and the package xacro, which expands it, is "
                         "not installed: run pip install xacro, or expand the file elsewhere (xacro "
                         f"{path.name} > robot.urdf) and give the result", code="missing-package") from None
    try:
        text = str(xacro.process_file(str(path)).toxml())
    except Exception as problem:  # macros may raise any exception
        raise RobotError(f"robot file '{path}' cannot be expanded by xacro: {problem}", code="bad-xacro") from None
    return replace(Robot.from_urdf(text, fixed_base=fixed_base), source=path.name)


def builtin_names() -> tuple[str, ...]:
    """Return the names of the robots that come with dynid, sorted."""
    folder = resources.files("dynid.robot") / "builtin"
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml")))


def builtin(name: str) -> Robot:
    """Return one of the robots that come with dynid; see `builtin_names`."""
    names = builtin_names()
    if name not in names:
        hint = ("it is a folder: give the .urdf, .xml, .mjcf, .xacro or .toml file in it" if os.path.isdir(name)
                else did_you_mean(str(name).lower(), names))
        raise RobotError(f"unknown built-in robot '{name}'; {hint}", code="unknown-robot")
    text = (resources.files("dynid.robot") / "builtin" / f"{name}.toml").read_text(encoding="utf-8")
    return _from_toml(text, f"{name}.toml", name)


def read_toml(path: str | Path) -> Robot:
    """Return a robot from a TOML file in the format at the top of this module."""
    path = Path(path)
    try:
        text = read_small(path).decode("utf-8").replace("\r\n", "\n")
    except FileNotFoundError:
        raise RobotError(f"robot file '{path}' does not exist", code="no-such-file") from None
    except (OSError, UnicodeDecodeError) as problem:
        raise RobotError(f"robot file '{path}' cannot be read: {problem}", code="unreadable-file") from None
    return _from_toml(text, path.name, path.stem, path.parent)


def _from_toml(text: str, file: str, default_name: str, folder: Path | None = None) -> Robot:
    try:
        table = toml_table(text)
    except tomllib.TOMLDecodeError as problem:
        raise RobotError(f"robot file '{file}' is not valid TOML: {problem}", code="not-toml") from None
    convention, notation = table.get("convention"), table.get("notation", "khalil")
    if convention in ("tree", "urdf"):
        from dynid.robot.tree_file import robot_of_tree
        return rooted(robot_of_tree(table, file, default_name, folder), table, file)
    fields.known_keys(table, _TOP_KEYS, f"robot file '{file}'")
    if convention not in ("dh", "mdh"):
        raise RobotError(f"robot file '{file}' must set convention = \"dh\", \"mdh\", \"tree\" or \"urdf\", got "
                         f"{convention!r}", code="wrong-setting")
    if notation not in ("khalil", "craig") or ("notation" in table and convention == "dh"):
        raise RobotError(f"robot file '{file}' has notation {notation!r}; only a modified DH table has a notation, "
                         '"khalil" or "craig"')
    unit = fields.angle_unit(table, file)
    joints = table.get("joint")
    if not isinstance(joints, list) or not joints or not all(isinstance(row, dict) for row in joints):
        raise RobotError(f"robot file '{file}' has no [[joint]] tables; it needs one for each joint", code="no-joint")
    keys = STANDARD if convention == "dh" else KHALIL if notation == "khalil" else CRAIG

    rows, names, links, inertias = [], [], [], []
    rounded: dict[str, list[float]] = {}
    limits: dict[str, list[float]] = {which: [] for which in LIMITS}
    for i, joint in enumerate(joints, 1):
        where = f"[[joint]] {i} of robot file '{file}'"
        if "a" in joint and keys == KHALIL:
            raise RobotError(f"{where} has the key 'a', but in Khalil's notation the distance along x is d and that "
                             "along z is r", 'for Craig\'s names (alpha a theta d) add notation = "craig" at the top '
                             "of the file", "unknown-setting")
        fields.known_keys(joint, (*keys, *_JOINT_KEYS), where)
        row = {key: joint[key] for key in (*keys, "kind") if key in joint}
        printed = {key: fields.parse_angle(row[key], unit, f"'{key}' in {where}")
                   for key in ("alpha", "theta") if key in row}
        wide = next((key for key, angle in printed.items() if unit == 1.0 and abs(angle) > MAX_RADIANS), None)
        if wide is not None:
            raise RobotError(f"'{wide}' in {where} is {row[wide]} rad, more than a turn, so it is probably in degrees",
                             'add angles = "degrees" at the top of the file', "angle-in-degrees")
        row.update({key: exact_angle(angle) for key, angle in printed.items()})
        rows.append(row)
        names.append(fields.parse_text(joint.get("name", f"joint{i}"), f"'name' in {where}"))
        rounded[names[-1]] = [abs(angle - row[key]) for key, angle in printed.items()]
        links.append(fields.parse_text(joint.get("link", f"link{i}"), f"'link' in {where}"))
        with np.errstate(over="ignore", invalid="ignore"):  # numbers that large are refused with the robot
            inertias.append(fields.parse_inertia(joint["inertia"], f"the inertia in {where}")
                            if "inertia" in joint else None)
        for which, value in fields.parse_limits(joint, unit, where).items():
            limits[which].append(value)

    base, tool = (fields.parse_pose(table[key], unit, f"'{key}' in robot file '{file}'") if key in table else None
                  for key in ("base", "tool"))
    options: TableOptions = {
        "name": fields.parse_text(table.get("name", default_name), f"'name' in robot file '{file}'"),
        "joints": names, "links": links, "inertias": inertias, "limits": limits,
        "base": base, "tool": tool,
        "gravity": table.get("gravity"), "terms": fields.parse_terms(table.get("terms", []), file),
        "values": fields.parse_values(table.get("values", {}), file),
        "source": fields.parse_text(table.get("source", file), f"'source' in robot file '{file}'")}
    try:
        robot = from_dh(rows, **options) if convention == "dh" else from_mdh(rows, notation=notation, **options)
        checked_sizes(robot)
    except RobotError as problem:
        raise RobotError(f"robot file '{file}': {problem}", code=problem.code) from None
    payload = None
    if "payload" in table:
        payload = fields.parse_number(table["payload"], f"'payload' in robot file '{file}'")
        if payload <= 0:
            raise RobotError(f"robot file '{file}': payload, the largest mass the robot may carry, must be above "
                             f"zero, got {payload:g} kg", code="bad-payload")
    return rooted(replace(robot, payload=payload, warnings=(*robot.warnings, *rounded_warnings(rounded))), table, file)


def rooted(robot: Robot, table: Mapping[str, Any], file: str) -> Robot:
    """Return the robot with the root link of a robot file, which moves freely if the file sets floating_base."""
    where = f"'root' in robot file '{file}'"
    if "root" in table:
        row = table["root"]
        if not isinstance(row, dict):
            raise RobotError(f"{where} must be a table such as {{link = \"trunk\", inertia = {{..}}}}, got {row!r}")
        fields.known_keys(row, ("link", "inertia"), where)
        body = Body(fields.parse_text(row.get("link", "root"), f"'link' of {where}"),
                    fields.parse_inertia(row["inertia"], f"the inertia of {where}") if "inertia" in row else None)
        robot = replace(robot, root=body)
    if not isinstance(is_free := table.get("floating_base", False), bool):
        raise RobotError(f"'floating_base' in robot file '{file}' must be true or false, got {is_free!r}",
                         code="bad-floating-base")
    robot = replace(robot, symmetry=_symmetry(table["symmetry"], robot, file)) if "symmetry" in table else robot
    return robot.with_free_base() if is_free else robot


def _symmetry(row: Any, robot: Robot, file: str) -> Symmetry:
    """Return the pairs of mirror-image links of a robot file's [symmetry] table."""
    where = f"[symmetry] of robot file '{file}'"
    if not isinstance(row, dict):
        raise RobotError(f"{where} must be a table such as {{pairs = {{left_thigh = \"right_thigh\"}}, std = 0.01}}, "
                         f"got {row!r}", code="bad-symmetry")
    fields.known_keys(row, ("pairs", "std"), where)
    pairs, std = row.get("pairs"), fields.parse_number(row.get("std", Symmetry.std), f"'std' in {where}")
    if pairs is not None and (not isinstance(pairs, dict) or not all(isinstance(name, str) for name in pairs.values())):
        raise RobotError(f"'pairs' in {where} must name links, {{left_thigh = \"right_thigh\"}}, got {pairs!r}",
                         code="bad-symmetry")
    unknown = [name for pair in (pairs or {}).items() for name in pair if name not in robot.body_names]
    if unknown:
        raise RobotError(f"{where} names link '{unknown[0]}'; the links are {', '.join(robot.body_names)}",
                         code="unknown-body")
    if std <= 0.0:
        raise RobotError(f"'std' in {where}, the relative standard deviation of the difference of a pair, must be "
                         f"above zero, got {std:g}", code="bad-symmetry")
    return Symmetry(pairs, std)


def find_in_package(name: str) -> Path:
    """Return the file that package://PACKAGE/PATH refers to.

    The file is searched below the folders of AMENT_PREFIX_PATH (share/PACKAGE) and ROS_PACKAGE_PATH (PACKAGE, or a
    folder that is itself the package), then in the working folder and every folder above.

    Raises:
        RobotError: there is no such file (code "package-not-found"); the message names the searched folders.
    """
    package, _, rest = name.removeprefix(PACKAGE_SCHEME).partition("/")
    if not package or not rest or ".." in Path(rest).parts:
        raise RobotError(f"'{name}' is not of the form package://PACKAGE/PATH", code="package-not-found")
    for place in _places(package):
        if (place / rest).is_file():
            return place / rest
    raise RobotError(f"'{name}' was found neither below AMENT_PREFIX_PATH and ROS_PACKAGE_PATH nor in the working "
                     f"folder and the folders above it", f"source the workspace that has the package '{package}', or "
                     "give the path of the file", code="package-not-found")


def _places(package: str) -> Iterator[Path]:
    for prefix in filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)):
        yield Path(prefix) / "share" / package
    for root in filter(None, os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep)):
        yield Path(root) / package
        if Path(root).name == package:
            yield Path(root)
    for parent in (Path.cwd(), *Path.cwd().parents):
        yield parent / package
        if parent.name == package:
            yield parent


def described_path(name: str) -> Path:
    """Return the URDF or MJCF file of a module of the package robot_descriptions, which downloads missing files.

    Raises:
        RobotError: the package or the module is missing, or the download failed (code "description-not-found").
    """
    try:
        import_module("robot_descriptions")
    except ModuleNotFoundError:
        raise RobotError(f"'{name}' is a name of the package robot_descriptions, which is not installed",
                         "run pip install robot_descriptions, or give a robot file",
                         code="description-not-found") from None
    try:
        module = import_module(f"robot_descriptions.{name}")
    except ModuleNotFoundError:
        raise RobotError(f"the package robot_descriptions has no robot '{name}'",
                         "see python -m robot_descriptions list", code="description-not-found") from None
    except Exception as problem:  # git, the network, the cache folder
        raise RobotError(f"robot_descriptions could not provide '{name}': {type(problem).__name__}: {problem}",
                         code="description-not-found") from problem
    for attribute in ("URDF_PATH", "MJCF_PATH", "XACRO_PATH"):
        path = getattr(module, attribute, None)
        if path is not None:
            return Path(path)
    raise RobotError(f"the module robot_descriptions.{name} names no URDF, MJCF or xacro file",
                     code="description-not-found")


def plugin_robot(name: str) -> Robot | Path:
    """Return the robot, or the path of its file, that a plugin of the group dynid.robots provides."""
    plugin = load_plugin("dynid.robots", name)
    robot = plugin() if callable(plugin) else plugin
    if isinstance(robot, Robot):
        return robot
    if isinstance(robot, str | os.PathLike):
        return Path(robot)
    raise RobotError(f"the plugin '{name}' of the group dynid.robots is a {type(robot).__name__}; expected a Robot or "
                     "the path of a robot file", code="misnamed-plugin")
