"""Options of an export, the export of a result of `dynid actuators`, and actuators drawn from its posterior."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynid.actuators.posterior import DEFAULT_SPREAD, ActuatorPosterior, draw_table
from dynid.arrays import Array
from dynid.errors import DynidError
from dynid.escape import csv_line
from dynid.estimate.simulators.exports import SUFFIXES, Exported, export_joints, with_effort_limits
from dynid.estimate.simulators.friction_fit import with_drives
from dynid.estimate.simulators.python_configs import IsaacFriction
from dynid.files import read_small, toml_table, try_folder, write_whole
from dynid.output_fields import output_fields
from dynid.progress import ProgressCallback
from dynid.runs.actuators import POSTERIOR, ActuatorSettings, actuator_robot

TABLES = ("draws.npz", "draws.csv")


@dataclass(frozen=True, eq=False)
class DrawnActuators:
    """Actuators drawn from the posterior of a result of `dynid actuators`, and the written files.

    Attributes:
        posterior: distribution from which they are drawn.
        values: (draws, unknowns).
        seed, spread: random seed, and relative spread of undetermined parameters.
        paths: tables, then one file per draw for the target.
    """

    posterior: ActuatorPosterior
    values: Array
    seed: int
    spread: float
    paths: tuple[Path, ...]

    @property
    def std_ratio(self) -> tuple[float, float]:
        """Smallest and largest ratio of the draws' standard deviation to the stated one, of determined unknowns."""
        wanted = np.sqrt(np.diag(self.posterior.drawn_covariance(self.spread)))
        used = self.posterior.identified & (wanted > 0.0)
        if not used.any() or len(self.values) < 2:
            return 1.0, 1.0
        ratio = np.std(self.values, axis=0, ddof=1)[used] / wanted[used]
        return float(ratio.min()), float(ratio.max())

    @property
    def sentences(self) -> tuple[str, ...]:
        """Sentences on how the draws were made, and whether their spread agrees with the standard errors."""
        low, high = self.std_ratio
        open_ = int((~self.posterior.identified).sum())
        return (f"{len(self.values)} draws of {len(self.posterior.names)} parameters, all inside their bounds. "
                f"Determined parameters scatter by {low:.2f} to {high:.2f} times their standard errors; bounds "
                "exclude negative values.",
                f"{open_} parameters that the data do not determine vary by {100 * self.spread:g} % about the "
                "estimate.")

    @output_fields(draws=int, seed=int, spread=float, std_ratio=list[float], files=list[str], notes=list[str])
    def to_dict(self) -> dict[str, Any]:
        """Return the drawn actuators as plain data for JSON."""
        return {"draws": len(self.values), "seed": self.seed, "spread": self.spread, "std_ratio": list(self.std_ratio),
                "files": [str(path) for path in self.paths], "notes": [*self.sentences, *self.posterior.notes]}


def is_of_actuators(folder: str | Path) -> bool:
    """Whether a folder holds a result of `dynid actuators`."""
    return (Path(folder) / POSTERIOR).is_file()


def export_actuators(folder: str | Path, output: Path, options: ExportOptions) -> Exported:
    """Write the actuators of a result for a simulator, with the nominal links of their robot."""
    posterior, settings = _actuators(folder)
    return _export(posterior, settings, output, options, posterior.values)


def _actuators(folder: str | Path) -> tuple[ActuatorPosterior, ActuatorSettings]:
    """Return posterior and settings of a result of `dynid actuators`, with paths relative to the working folder."""
    path = Path(folder) / POSTERIOR
    posterior, table = ActuatorPosterior.load(path)
    return posterior, ActuatorSettings.from_values(table, str(path)).moved(Path(folder), Path())


def _export(posterior: ActuatorPosterior, settings: ActuatorSettings, output: Path, options: ExportOptions,
            x: Array) -> Exported:
    """Write actuators with the nominal links of their robot. x: values (unknowns,) of the unknowns."""
    robot = actuator_robot(settings)
    if robot.joint_names != posterior.joints:
        raise DynidError(f"{settings.robot} has joints {', '.join(robot.joint_names)}, and the result has "
                         f"{', '.join(posterior.joints)}", "export with the file that was identified", "other-joints")
    joints, losses = posterior.simulated(x)
    joints = with_drives(with_effort_limits(joints, robot), drive_tables(options.drives))
    inertias, scales = robot.inertias.copy(), posterior.link_scales(x)
    inertias[:robot.dof] *= scales[:, None]
    return export_joints(robot, inertias, joints, losses, output, options.target,
                         source=source_file(options, settings.robot), notes=posterior.notes,
                         has_identified_links=bool(np.any(scales != 1.0)), isaaclab_friction=options.isaaclab_friction)


def draw_actuators(folder: str | Path, output: Path, count: int, seed: int, options: ExportOptions,
                   spread: float | None, progress: ProgressCallback) -> DrawnActuators:
    """Write actuators drawn from the posterior of a result into a folder: two tables, and with a target one file each.
    """
    posterior, settings = _actuators(folder)
    try_folder(output)
    progress(f"drawing {count} sets of actuators")
    share = DEFAULT_SPREAD if spread is None else spread
    values = posterior.draws(count, seed, spread=share)
    table = draw_table(posterior, values)
    paths = [output / name for name in TABLES]
    with write_whole(paths[0], "wb") as file:
        np.savez_compressed(file, **table)
    with write_whole(paths[1]) as file:
        file.write(csv_line(table["names"].tolist()))
        for row in values:
            file.write(csv_line([repr(float(value)) for value in row]))
    if options.target:
        width = len(str(count))
        for k, x in enumerate(values):
            progress(f"writing model {k + 1} of {count}")
            path = output / f"draw_{k + 1:0{width}d}{SUFFIXES[options.target]}"
            paths += _export(posterior, settings, path, options, x).paths
    return DrawnActuators(posterior, values, seed, share, tuple(paths))


@dataclass(frozen=True)
class ExportOptions:
    """Options for exporting a result to a simulator.

    Attributes:
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
    """Return the file to write into: the given one, or the MJCF of the result for an MJCF target."""
    robot = Path(robot_file)
    is_mjcf = options.target in ("mjcf", "mjlab") and robot.suffix in (".xml", ".mjcf") and robot.is_file()
    return options.source or (robot if is_mjcf else None)


def drive_tables(path: Path | None) -> Mapping[str, Any]:
    """Return the drive settings of each joint from a TOML file."""
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
