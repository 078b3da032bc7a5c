"""Extraction of full parameters from an earlier result or a table of base values, and comparison of extracted sets."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynid.errors import DynidError
from dynid.estimate import Estimate
from dynid.extraction import BaseValues, Extraction, ExtractionOptions, extract
from dynid.extraction.procedure import LOSSES, Loss
from dynid.extraction.sine_motion import new_motion
from dynid.files import free_paths, write_json
from dynid.model import Model, make_terms, required_robot_model
from dynid.output_fields import output_fields
from dynid.progress import ProgressCallback, silent
from dynid.regression import Stacked
from dynid.report import write_page
from dynid.report.pages.extraction import EXTRACTION, ExtractionData
from dynid.robot import Robot
from dynid.robot.free_base import refuse_free_base
from dynid.runs.results import PARAMETERS, load, load_regression
from dynid.validate import SetComparison, compare_sets

FILES = {"sets": "extraction.json", "report": "report.html"}  # in the folder of extracted sets
FILE, CONES = "robot's file", "cones"


@dataclass(frozen=True, eq=False)
class ExtractedSets:
    """Sets of full parameters extracted from one vector of base values, compared on a synthetic motion.

    source: result folder or robot; comparison: torques and internal forces of the sets.
    """

    source: str
    robot: Robot
    sets: tuple[Extraction, ...]
    comparison: SetComparison

    @output_fields(source=str, robot=str, sets=list[Extraction], comparison=SetComparison)
    def to_dict(self) -> dict[str, Any]:
        """Return the extracted parameter sets as plain data for JSON."""
        return {"source": self.source, "robot": self.robot.name, "sets": [one.to_dict() for one in self.sets],
                "comparison": self.comparison.to_dict()}


def checked_losses(names: Sequence[str]) -> tuple[Loss, ...]:
    """Return losses by name; raise an error that lists the losses for an unknown name."""
    known = {str(one): one for one in LOSSES}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise DynidError(f"there is no loss '{unknown[0]}'; there are {', '.join(known)}", code="unknown-name")
    return tuple(known[name] for name in names)


def read_base_values(source: str | Path, table: str | Path | None = None, *, folded: bool = False,
                     trust: bool = False) -> BaseValues:
    """Return base values of a result folder, or of a table for a result's model or a robot.

    Args:
        source, table: folder or robot, and file with base values.
        folded: whether to include the compressed regression with the weights of the estimate, for the one-step loss.
        trust: see `load`.
    """
    path = Path(source)
    if os.path.isdir(path) or path.name == PARAMETERS:
        folder = path if path.is_dir() else path.parent
        estimate, _ = load(folder, trust=trust)
        if table is not None:
            return BaseValues.load(table, estimate.model)
        return BaseValues.from_estimate(estimate, _stacked(folder, estimate) if folded else None)
    if table is None:
        raise DynidError(f"{source} is not a result folder; with a robot give a table of base values, --base TABLE",
                         code="no-result")
    robot = Robot.load(source)
    refuse_free_base(robot, "the extraction of full parameters")
    return BaseValues.load(table, Model(robot, make_terms(robot)))


def _stacked(folder: Path, estimate: Estimate) -> Stacked:
    """Return all rows of a result's logs in one triangular factor."""
    regression = load_regression(folder, estimate)
    if regression is None:
        raise DynidError(f"{folder} has no compressed regression that its model can read", "remove --one-step")
    weights = estimate.diagnostics.weights
    return regression.stack(None if weights is None else np.asarray(weights))


def extract_sets(given: BaseValues, source: str, bounds: Sequence[str], losses: Sequence[Loss],
                 options: ExtractionOptions, progress: ProgressCallback = silent) -> ExtractedSets:
    """Return a parameter set for each combination of bounds and losses. The sets are compared on a new motion with the
    parameters of the robot file, or without these with the result of the cone programme."""
    robot = required_robot_model(given.model, "extraction").robot
    sets = []
    for within in bounds:
        for loss in losses:
            progress(f"{within} bounds, {loss} loss")
            sets.append(extract(given, within, options, loss=loss, progress=progress))
    references = {}
    nominal = given.model.parameters.nominal
    if nominal is not None:
        references[FILE] = np.asarray(nominal, dtype=float)
    cones = next((one.cones.theta for one in sets if one.cones is not None and one.cones.theta is not None), None)
    if cones is not None:
        references[CONES] = cones
    progress("comparing")
    return ExtractedSets(source, robot, tuple(sets), compare_sets(sets, new_motion(robot, options.seed), references))


def save_sets(found: ExtractedSets, folder: str | Path, command: str = "", *, force: bool = False) -> dict[str, str]:
    """Write the sets and their report into a folder; return the path of each file by its kind."""
    paths = free_paths(folder, FILES, force)
    write_json(paths["sets"], found.to_dict())
    write_page(EXTRACTION, ExtractionData(f"{found.robot.name}: standard parameters from base values", found.robot,
                                          found.comparison, command), paths["report"])
    return {what: str(path) for what, path in paths.items()}
