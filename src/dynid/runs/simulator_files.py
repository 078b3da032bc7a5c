"""Export of an earlier result for a simulator, and models drawn from its posterior."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.actuators.laws import LAWS
from dynid.actuators.parameters import MECHANICAL_PARAMETERS
from dynid.actuators.posterior import DEFAULT_SPREAD, ActuatorPosterior, UndeterminedValue, draw_table
from dynid.arrays import Array
from dynid.errors import DynidError, NotPossibleError
from dynid.escape import csv_line
from dynid.estimate import Estimate, Problem
from dynid.estimate.draws.posterior import Draws, TorqueSpread, save_draws
from dynid.estimate.export import compare_file
from dynid.estimate.nearest_robot import consistent_robot
from dynid.estimate.simulators.exports import SUFFIXES, Exported, export, export_joints, with_effort_limits
from dynid.estimate.simulators.friction_fit import (
    PASSIVE,
    SimulatedJoint,
    motion_for,
    with_drives,
)
from dynid.estimate.simulators.python_configs import IsaacFriction
from dynid.files import toml_file, try_folder, write_whole
from dynid.model import robot_model
from dynid.output_fields import output_fields, record
from dynid.progress import ProgressCallback, silent
from dynid.recording import Samples
from dynid.recording.preparation import Preparation
from dynid.regression import Regression
from dynid.robot import Robot
from dynid.runs.actuators import POSTERIOR, ActuatorSettings, actuator_robot
from dynid.runs.loading import Resting, prepared
from dynid.runs.models import make_robot
from dynid.runs.results import load, load_regression
from dynid.runs.settings import RunSettings

_TORQUE_SPREAD = record("TorqueSpread", matches=bool, ratio=dict[str, float])
TABLES = ("draws.npz", "draws.csv")
_MAX_LISTED = 3  # largest number of undetermined parameters that an error names
_GAINS = {"stiffness", "kd", "ki"}  # values without which a drive is not written
# Symbols of parameters in `Robot.values`; a robot file has no offset, so that it is zero.
_FILE_SYMBOLS = {"armature": "Ia", "viscous": "Fv", "coulomb": "Fc", "offset": "Fo"}
_DRIVE = (*sorted(_GAINS), "force_limit", "delay", "bias")


@dataclass(frozen=True, eq=False)
class DrawnFiles:
    """Draws of a result and the written files.

    Attributes:
        draws: the models.
        spread: spread of the draws' torques relative to that of the posterior, or None if the result has no regression
            from which it is computed.
        paths: tables, then one file per draw for the target.
    """

    draws: Draws
    spread: TorqueSpread | None
    paths: tuple[Path, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """Sentences on how the draws were made, and whether the spread of their torques is that of the posterior."""
        return (*self.draws.sentences, "The spread of torques was not checked: the result has no regression of these "
                "parameters." if self.spread is None else self.spread.sentence)

    @output_fields(draws=int, seed=int, spread=float, consistent_as_drawn=int, kept_base=int, moment_rounds=int,
                   torque_spread=_TORQUE_SPREAD | None, files=list[str], notes=list[str])
    def to_dict(self) -> dict[str, Any]:
        """Return the draws as plain data for JSON."""
        found = self.draws
        spread = None if self.spread is None else {
            "matches": self.spread.matches,
            "ratio": dict(zip(self.spread.joints, map(float, self.spread.ratio), strict=True))}
        return {"draws": len(found), "seed": found.seed, "spread": found.spread,
                "consistent_as_drawn": int(found.as_drawn.sum()), "kept_base": int(found.kept_base.sum()),
                "moment_rounds": found.rounds, "torque_spread": spread, "files": [str(path) for path in self.paths],
                "notes": list(found.sentences)}


def output_paths(output: Path, draws: int) -> tuple[Path, ...]:
    """Return the files that are checked before an export; output: file to write, or with draws a folder."""
    return tuple(output / name for name in TABLES) if draws else (output,)


def export_result(folder: str | Path, output: Path, options: ExportOptions, *, trust: bool = False,
                  progress: ProgressCallback = silent) -> Exported:
    """Write the result of a folder for a simulator.

    Friction that the target cannot represent is approximated along the logs of the result, if the logs can be read. For
    a result with base parameters only, the nearest physically consistent robot is written.
    """
    progress("reading the result")
    if is_of_actuators(folder):
        return export_actuators(folder, output, options)
    identified, settings = load(folder, trust=trust)
    drives = drive_tables(options.drives)
    samples, notes = _samples(identified, settings, progress)
    estimate = identified
    if identified.theta is None and robot_model(identified.model) is not None:
        progress("searching the nearest physically consistent robot")
        estimate = _nearest(identified, load_regression(folder, identified), samples)
    progress("writing")
    found = export(estimate, output, options.target, samples=samples, drives=drives,
                   source=source_file(options, settings.robot), with_payload=options.with_payload,
                   isaaclab_friction=options.isaaclab_friction, keeps_actuators=options.keeps_actuators)
    if samples and options.target in ("urdf", "mjcf"):
        progress("comparing the file with the logs")
        found = replace(found, written_file=compare_file(output, estimate, samples, identified.residuals(samples),
                                                         is_nearest=identified.theta is None))
    return replace(found, notes=(*found.notes, *notes))


def _nearest(estimate: Estimate, regression: Regression | None, samples: Sequence[Samples]) -> Estimate:
    """Return an estimate of base parameters with the parameters of the nearest physically consistent robot."""
    if regression is None:
        raise DynidError(f"method '{estimate.method}' gives base parameters only, and the result has no regression, "
                         "from which the nearest physically consistent robot is computed",
                         "identify again with --method pc-wls", "base-parameters-only")
    problem = Problem(estimate.model, regression, tuple(samples), estimate.model.parameters.nominal, is_excerpt=True)
    return replace(estimate, theta=consistent_robot(problem, estimate).theta)


def draw_result(folder: str | Path, output: Path, count: int, seed: int, options: ExportOptions, *,
                spread: float | None = None, trust: bool = False, progress: ProgressCallback = silent
                ) -> DrawnFiles | DrawnActuators:
    """Write models drawn from the posterior of a result into a folder: two tables, and with a target one file each."""
    progress("reading the result")
    if is_of_actuators(folder):
        return draw_actuators(folder, output, count, seed, options, spread, progress)
    estimate, settings = load(folder, trust=trust)
    try_folder(output)
    progress(f"drawing {count} models")
    regression = load_regression(folder, estimate)
    if regression is not None and regression.base.expressions != estimate.base.expressions:
        regression = None
    draws = estimate.draws(count, seed, spread=spread, regression=regression)
    samples, _ = _samples(estimate, settings, progress)
    motion = motion_for(estimate, samples) if robot_model(estimate.model) is not None else None
    paths = [output / name for name in TABLES]
    for path in paths:
        save_draws(draws, path, motion)
    if options.target:
        drives, source = drive_tables(options.drives), source_file(options, settings.robot)
        for one, path in zip(draws, _draw_paths(output, count, options.target, progress), strict=True):
            paths += export(one, path, options.target, samples=samples, drives=drives, source=source,
                            with_payload=options.with_payload, isaaclab_friction=options.isaaclab_friction,
                            keeps_actuators=options.keeps_actuators).paths
    return DrawnFiles(draws, None if regression is None else draws.torque_spread(regression), tuple(paths))


def _draw_paths(folder: Path, count: int, target: str, progress: ProgressCallback) -> Iterator[Path]:
    """Yield the file of each of `count` drawn models for a simulator, and report the progress."""
    for number in range(1, count + 1):
        progress(f"writing model {number} of {count}")
        yield folder / f"draw_{number:0{len(str(count))}d}{SUFFIXES[target]}"


def _samples(estimate: Estimate, settings: RunSettings, progress: ProgressCallback
             ) -> tuple[Sequence[Samples], tuple[str, ...]]:
    """Return the logs of the result, and a note if they cannot be read."""
    if robot_model(estimate.model) is None:
        return (), ()
    try:
        robot, resting = make_robot(settings), list[Resting]()
        chosen = Preparation.from_settings(settings.prepare)
        return [one for _, one in prepared(settings.logs, settings, robot, chosen, progress, resting)], ()
    except (DynidError, OSError) as problem:
        return (), ("the torque error of the file is not known, and friction that is approximated is approximated at "
                    f"random states within the joint limits, because the logs of the result cannot be read ({problem})",
                    )


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
        """Smallest and largest ratio of the draws' standard deviation to the standard error, of determined unknowns."""
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
    return _export(posterior, settings, output, options, posterior.values, _unwritten(posterior, folder, options))


def _actuators(folder: str | Path) -> tuple[ActuatorPosterior, ActuatorSettings]:
    """Return posterior and settings of a result of `dynid actuators`, with paths relative to the working folder."""
    path = Path(folder) / POSTERIOR
    posterior, table = ActuatorPosterior.load(path)
    return posterior, ActuatorSettings.from_values(table, str(path)).moved(Path(folder), Path())


def _unwritten(posterior: ActuatorPosterior, folder: str | Path, options: ExportOptions
               ) -> tuple[UndeterminedValue, ...]:
    """Return the values that are not determined and not given with --drives, which are not written.

    Raises:
        NotPossibleError: if there is such a value, or if the actuators are not usable, and the options do not allow it.
    """
    drives = drive_tables(options.drives)
    found = tuple(one for one in posterior.undetermined() if one.name not in drives.get(one.joint, {}))
    if posterior.unusable and not options.force:
        raise NotPossibleError(f"the actuators of {folder} are not exported: {posterior.unusable}", "identify again, "
                               "for example with a known gain (dynid actuators ... --gain kp=VALUE), or add --force "
                               "to export them nevertheless", "not-usable")
    if options.undetermined == "estimate":
        return ()
    if found and not (options.force or options.undetermined):
        names = undetermined_names(found)
        raise NotPossibleError(f"{listed(names[:_MAX_LISTED], len(names))} {'is' if len(names) == 1 else 'are'} not "
                               "determined by the logs and would be written", "add --undetermined file (or --force) "
                               "to keep the values of the robot file for them, or --undetermined estimate to write "
                               "the estimates", "not-determined")
    return found


def undetermined_names(found: Sequence[UndeterminedValue]) -> list[str]:
    """Return the parameters that are not determined, with their joints and estimates, as texts."""
    units = {item.name: item.unit for item in (*MECHANICAL_PARAMETERS.values(), *(item for law in LAWS.values()
                                                                                   for item in law.parameters))}
    return list(dict.fromkeys(f"{name} of {one.joint} = {value:.4g} {units.get(name, '')}".rstrip()
                              for one in found for name, value in one.parameters))


def listed(texts: Sequence[str], count: int) -> str:
    """Return texts as a list, with the number of those that are left out of `count`."""
    return ", ".join(texts) + (f" and {count - len(texts)} more" if count > len(texts) else "")


def _without(joints: tuple[SimulatedJoint, ...], unwritten: Sequence[UndeterminedValue]) -> tuple[SimulatedJoint, ...]:
    """Return the joints without some values. A joint without a gain has no drive, and keeps that of the file."""
    none, kept = SimulatedJoint(""), []
    for joint in joints:
        names = {one.name for one in unwritten if one.joint == joint.name}
        names |= set(_DRIVE) if names & _GAINS else set()
        values: dict[str, Any] = {name: None if name in PASSIVE else getattr(none, name) for name in names}
        kept.append(replace(joint, **values))
    return tuple(kept)


def _export(posterior: ActuatorPosterior, settings: ActuatorSettings, output: Path, options: ExportOptions,
            x: Array, unwritten: Sequence[UndeterminedValue]) -> Exported:
    """Write actuators with the nominal links of their robot. x: values (unknowns,) of the unknowns."""
    robot = actuator_robot(settings)
    if robot.joint_names != posterior.joints:
        raise DynidError(f"{settings.robot} has joints {', '.join(robot.joint_names)}, and the result has "
                         f"{', '.join(posterior.joints)}", "export with the file that was identified", "other-joints")
    x = posterior.conditional(x, _file_values(robot, unwritten))
    joints, losses = posterior.simulated(x, holds_bias=options.target == "mjcf" and not options.keeps_actuators)
    joints = with_drives(with_effort_limits(_without(joints, unwritten), robot), drive_tables(options.drives))
    inertias, scales = robot.inertias.copy(), posterior.link_scales(x)
    inertias[:robot.dof] *= scales[:, None]
    notes = list(posterior.notes)
    if posterior.unusable:
        notes.insert(0, f"These actuators are not usable: {posterior.unusable}")
    if unwritten:
        owners: dict[str, dict[str, None]] = {}
        for one in unwritten:
            for name, _ in one.parameters:
                owners.setdefault(name, {})[one.joint] = None
        parameters = "; ".join(f"{name} of {', '.join(own)}" for name, own in owners.items())
        notes.append(f"not determined by the logs: {parameters}. These joints keep the values of the robot file, or "
                     "zero and no drive if it has none; the other values are those that fit best with these")
    return export_joints(robot, inertias, joints, losses, output, options.target,
                         source=source_file(options, settings.robot), notes=notes,
                         has_identified_links=bool(np.any(scales != 1.0)), isaaclab_friction=options.isaaclab_friction,
                         keeps_actuators=options.keeps_actuators)


def _file_values(robot: Robot, unwritten: Sequence[UndeterminedValue]) -> dict[tuple[str, str], float]:
    """Return the values of the robot file, or zero, of the parameters that are not written, by joint and parameter.
    Gains and parameters of richer friction models, which a robot file does not have, are left out."""
    numbers = {name: j for j, name in enumerate(robot.joint_names, 1)}
    return {(one.joint, name): float(robot.values.get(f"{_FILE_SYMBOLS[name]}{numbers[one.joint]}", 0.0))
            for one in unwritten if len(one.parameters) == 1 for name, _ in one.parameters if name in _FILE_SYMBOLS}


def draw_actuators(folder: str | Path, output: Path, count: int, seed: int, options: ExportOptions,
                   spread: float | None, progress: ProgressCallback) -> DrawnActuators:
    """Write actuators drawn from the posterior of a result into a folder: two tables, and with a target one file each.
    """
    posterior, settings = _actuators(folder)
    unwritten = _unwritten(posterior, folder, options)
    try_folder(output)
    progress(f"drawing {count} sets of actuators")
    share = DEFAULT_SPREAD if spread is None else spread
    values = posterior.draws(count, seed, spread=share)
    table = draw_table(posterior, values, lambda joints: _without(joints, unwritten))
    paths = [output / name for name in TABLES]
    with write_whole(paths[0], "wb") as file:
        np.savez_compressed(file, **table)
    with write_whole(paths[1]) as file:
        file.write(csv_line(table["names"].tolist()))
        for row in values:
            file.write(csv_line([repr(float(value)) for value in row]))
    if options.target:
        for x, path in zip(values, _draw_paths(output, count, options.target, progress), strict=True):
            paths += _export(posterior, settings, path, options, x, unwritten).paths
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
        keeps_actuators: whether an MJCF keeps its own actuators instead of the identified drives.
        force: export actuators that are not usable, and keep the file's values of those that are not determined.
        undetermined: "file" to keep the file's values of actuators that are not determined, "estimate" to write the
            estimates, or empty for an error.
    """

    target: str = ""
    drives: Path | None = None
    source: Path | None = None
    with_payload: bool = False
    isaaclab_friction: IsaacFriction = "torque"
    keeps_actuators: bool = False
    force: bool = False
    undetermined: str = ""


def source_file(options: ExportOptions, robot_file: str) -> Path | None:
    """Return the file to write into: the given one, or the MJCF of the result for an MJCF target."""
    robot = Path(robot_file)
    is_mjcf = options.target in ("mjcf", "mjlab") and robot.suffix in (".xml", ".mjcf") and robot.is_file()
    return options.source or (robot if is_mjcf else None)


def drive_tables(path: Path | None) -> Mapping[str, Any]:
    """Return the drive settings of each joint from a TOML file."""
    if path is None:
        return {}
    table = toml_file(path, "drives", unreadable="unreadable-drives", invalid="unreadable-drives")
    for joint, values in table.items():
        if not isinstance(values, dict):
            raise DynidError(f"{path}: '{joint}' is not a table of values, such as [{joint}] with stiffness = 100.0",
                             code="unreadable-drives")
    return table
