"""Robot files of installed packages: ROS packages (package://), the package robot_descriptions, and plugins."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from dynid.errors import RobotError
from dynid.plugins import load_plugin

if TYPE_CHECKING:
    from dynid.robot.robot import Robot

PACKAGE_SCHEME = "package://"
_DESCRIPTION_ENDING = "_description"  # of every module of robot_descriptions


def find_in_package(name: str, folder: str | Path = ".") -> Path:
    """Return the file that package://PACKAGE/PATH refers to.

    It is searched below the folders of AMENT_PREFIX_PATH (share/PACKAGE) and ROS_PACKAGE_PATH (PACKAGE, or a folder
    that is itself the package), then in `folder` and every folder above it.

    Raises:
        RobotError: there is no such file (code "package-not-found"); the message names the searched folders.
    """
    package, _, rest = name.removeprefix(PACKAGE_SCHEME).partition("/")
    if not package or not rest or ".." in Path(rest).parts:
        raise RobotError(f"'{name}' is not of the form package://PACKAGE/PATH", code="package-not-found")
    for place in _places(package, Path(folder)):
        if (place / rest).is_file():
            return place / rest
    raise RobotError(f"'{name}' was found neither below AMENT_PREFIX_PATH and ROS_PACKAGE_PATH nor in {folder} and the "
                     "folders above it", f"source the workspace that has the package '{package}', or give the path of "
                     "the file", code="package-not-found")


def _places(package: str, folder: Path) -> Iterator[Path]:
    for prefix in filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)):
        yield Path(prefix) / "share" / package
    for root in filter(None, os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep)):
        yield Path(root) / package
        if Path(root).name == package:
            yield Path(root)
    above = folder.resolve()
    for parent in (above, *above.parents):
        yield parent / package
        if parent.name == package:
            yield parent


def is_description(name: str) -> bool:
    """Whether a name has the form of a module of the package robot_descriptions, such as panda_description."""
    return name.isidentifier() and name.endswith(_DESCRIPTION_ENDING)


def described_path(name: str) -> Path:
    """Return the URDF or MJCF file of a module of the package robot_descriptions, which downloads it if it is not
    cached.

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
    found = load_plugin("dynid.robots", name)
    if callable(found):
        found = found()
    from dynid.robot.robot import Robot
    if isinstance(found, Robot):
        return found
    if isinstance(found, str | os.PathLike):
        return Path(found)
    raise RobotError(f"the plugin '{name}' of the group dynid.robots is a {type(found).__name__}; expected a Robot or "
                     "the path of a robot file", code="misnamed-plugin")
