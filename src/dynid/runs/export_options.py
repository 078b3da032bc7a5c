"""Options for exporting a result to a simulator: target, drives, and the robot file to write into."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dynid.errors import DynidError
from dynid.estimate.simulators.python_configs import IsaacFriction
from dynid.files import read_small, toml_table

TABLES = ("draws.npz", "draws.csv")


@dataclass(frozen=True)
class ExportOptions:
    """Options for exporting a result to a simulator. Attributes:
        target: one of `dynid.estimate.simulators.exports.TARGETS`, or empty for tables of draws alone.
        drives: TOML file with a table per joint, or None.
        source: URDF or MJCF to write into, or None for the one of the result.
        with_payload: add the payload to the link that carries it.
        isaaclab_friction: "torque" or "coefficient".
    """

    target: str = ""
    drives: Path | None = None
    source: Path | None = None
    with_payload: bool = False
    isaaclab_friction: IsaacFriction = "torque"


def source_file(options: ExportOptions, robot_file: str) -> Path | None:
    """Return the file to write into: the one that is named, or the MJCF of the result for a target that is MJCF."""
    robot = Path(robot_file)
    is_mjcf = options.target in ("mjcf", "mjlab") and robot.suffix in (".xml", ".mjcf") and robot.is_file()
    return options.source or (robot if is_mjcf else None)


def drive_tables(path: Path | None) -> Mapping[str, Any]:
    """Return drives by joint from a TOML file."""
    if path is None:
        return {}
    try:
        table = toml_table(read_small(path).decode("utf-8"))
    except OSError as problem:
        raise DynidError(f"{path} cannot be read: {problem.strerror or problem}", code="unreadable-drives") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise DynidError(f"{path} is not TOML: {problem}", code="unreadable-drives") from None
    for joint, values in table.items():
        if not isinstance(values, dict):
            raise DynidError(f"{path}: '{joint}' is not a table of values, such as [{joint}] with stiffness = 100.0",
                             code="unreadable-drives")
    return table
