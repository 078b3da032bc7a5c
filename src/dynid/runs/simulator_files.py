"""Export of an earlier result for a simulator, and models drawn from its posterior."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dynid.errors import DynidError, ModelError, RecordingError
from dynid.estimate import Estimate
from dynid.estimate.draws.posterior import Draws, TorqueSpread, check_same_base, save_draws
from dynid.estimate.simulators.exports import SUFFIXES, TARGETS, Exported, export
from dynid.estimate.simulators.friction_fit import PASSIVE, approximated_terms, motion_for
from dynid.files import try_folder
from dynid.model import robot_model
from dynid.output_fields import output_fields, record
from dynid.progress import ProgressCallback, silent
from dynid.recording import Samples
from dynid.recording.preparation import Preparation
from dynid.regression import Regression
from dynid.runs.actuator_files import (
    TABLES,
    DrawnActuators,
    ExportOptions,
    draw_actuators,
    drive_tables,
    export_actuators,
    is_of_actuators,
    source_file,
)
from dynid.runs.loading import Resting, prepared
from dynid.runs.models import make_robot
from dynid.runs.results import REGRESSION, load
from dynid.runs.settings import RunSettings

_TORQUE_SPREAD = record("TorqueSpread", matches=bool, ratio=dict[str, float])


@dataclass(frozen=True, eq=False)
class DrawnFiles:
    """Draws of a result and the written files.

    Attributes:
        draws: the models.
        spread: spread of torques relative to the stated one, or None if the result has no regression to compute it.
        paths: tables, then one file per draw for the target.
    """

    draws: Draws
    spread: TorqueSpread | None
    paths: tuple[Path, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """Sentences on how the draws were made, and whether the spread of their torques agrees with the stated one."""
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


def output_paths(output: Path, target: str, draws: int) -> tuple[Path, ...]:
    """Return the files that an export writes first, to check them early; output: a file, or with draws a folder."""
    if draws:
        return tuple(output / name for name in TABLES)
    return (output,)


def export_result(folder: str | Path, output: Path, options: ExportOptions, *, trust: bool = False,
                  progress: ProgressCallback = silent) -> Exported:
    """Write the result of a folder for a simulator.

    Friction that the target cannot represent is approximated along the logs of the result where these can be read.
    """
    progress("reading the result")
    if is_of_actuators(folder):
        return export_actuators(folder, output, options)
    estimate, settings = load(folder, trust=trust)
    drives = drive_tables(options.drives)
    samples, notes = _samples(estimate, settings, options, progress)
    progress("writing")
    found = export(estimate, output, options.target, samples=samples, drives=drives,
                   source=source_file(options, settings.robot), with_payload=options.with_payload,
                   isaaclab_friction=options.isaaclab_friction)
    return replace(found, notes=(*found.notes, *notes))


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
    regression = _regression(Path(folder), estimate)
    draws = estimate.draws(count, seed, spread=spread, regression=regression)
    samples, _ = _samples(estimate, settings, options, progress)
    motion = motion_for(estimate, samples) if robot_model(estimate.model) is not None else None
    paths = [output / name for name in TABLES]
    for path in paths:
        save_draws(draws, path, motion)
    if options.target:
        drives, source, width = drive_tables(options.drives), source_file(options, settings.robot), len(str(count))
        for k, one in enumerate(draws):
            progress(f"writing model {k + 1} of {count}")
            path = output / f"draw_{k + 1:0{width}d}{SUFFIXES[options.target]}"
            paths += export(one, path, options.target, samples=samples, drives=drives, source=source,
                            with_payload=options.with_payload, isaaclab_friction=options.isaaclab_friction).paths
    return DrawnFiles(draws, None if regression is None else draws.torque_spread(regression), tuple(paths))


def _regression(folder: Path, estimate: Estimate) -> Regression | None:
    """Return the compressed regression of the result; None if it has other parameters than the estimate."""
    try:
        regression = Regression.load(folder / REGRESSION, estimate.model)
        check_same_base(estimate, regression)
    except (ModelError, RecordingError):
        return None
    return regression


def _samples(estimate: Estimate, settings: RunSettings, options: ExportOptions, progress: ProgressCallback
             ) -> tuple[Sequence[Samples], tuple[str, ...]]:
    """Return the logs of the result, read only if friction has to be approximated, and a note if that fails."""
    model, theta = robot_model(estimate.model), estimate.theta
    holds = TARGETS[options.target][1] if options.target in TARGETS else PASSIVE
    if model is None or theta is None or not approximated_terms(model, theta, holds):
        return (), ()
    try:
        robot, resting = make_robot(settings), list[Resting]()
        chosen = Preparation.from_settings(settings.prepare)
        return [one for _, one in prepared(settings.logs, settings, robot, chosen, progress, resting)], ()
    except (DynidError, OSError) as problem:
        return (), (f"friction is approximated at random states within the joint limits, because the logs of the "
                    f"result cannot be read ({problem})",)
