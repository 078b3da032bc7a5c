"""Choices of a fleet, made once on a few of its logs and kept in its store.

All robots of a fleet have one model and one preparation. Later calls with the same settings and store reuse the
choices, so that compressed logs stay comparable.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dynid.datasets import Dataset, LogSource
from dynid.datasets.log_fold import signature
from dynid.datasets.log_folds import HeldLog
from dynid.errors import DynidError
from dynid.estimate.fitted import first_estimate, top_speeds
from dynid.files import write_whole
from dynid.fleet.settings import FleetSettings
from dynid.model import DataContext, LinearModel, bound, robot_model
from dynid.progress import Tell
from dynid.recording.preparation import Preparation
from dynid.regression import base_parameters
from dynid.robot import Robot
from dynid.runs.choices import choose
from dynid.runs.models import make_model, make_robot
from dynid.runs.settings import ModelSettings, RunSettings

_FILE_FORMAT = 1  # of the file of choices; one of another form is made again


@dataclass(frozen=True, eq=False)
class FleetChoices:
    """Model and preparation of a fleet.

    Attributes:
        settings: of a run on the fleet's logs, with friction and cut-off chosen.
        robot: the type of all robots.
        model: of all robots, its terms scaled to the data that the choices were made on.
        preparation: from recordings to samples, for all logs.
        notes: sentences on what was chosen.
        held: logs that were read for the choices, by index.
    """

    settings: RunSettings
    robot: Robot
    model: LinearModel
    preparation: Preparation
    notes: tuple[str, ...] = ()
    held: Mapping[int, HeldLog] = field(default_factory=dict)


def choices_of_fleet(settings: FleetSettings, logs: Sequence[LogSource], store: Path, tell: Tell) -> FleetChoices:
    """Return the choices kept in a store, or make them and keep them."""
    asked = settings.run_settings(tuple(log.source for log in logs), settings.prepare)
    robot = make_robot(asked)
    path = store / f"choices-{_key(settings, robot)}.json"
    kept = _kept(path)
    if kept is not None:
        run = asked.model_copy(update={"model": ModelSettings.model_validate(kept["model"]),
                                       "prepare": kept["preparation"]})
        return FleetChoices(run, robot, _bound(make_model(run, robot), kept["speeds"], kept["estimate"]),
                            Preparation.of(kept["preparation"]), tuple(kept["notes"]))
    chosen = choose(asked, robot, Dataset.open(logs, robot, tell=tell), tell)
    preparation, samples = chosen.dataset.preparation, chosen.dataset.samples
    assert preparation is not None
    notes = list(chosen.notes) if chosen.cutoff is None else [chosen.cutoff.step, *chosen.notes]
    run = chosen.settings.model_copy(update={"prepare": preparation.as_table()})
    speeds = top_speeds(samples).tolist()
    model = _bound(make_model(run, chosen.robot), speeds, None)
    estimate = first_estimate(model, samples, base_parameters(model))
    table = {"model": run.model.model_dump(mode="json"), "preparation": preparation.as_table(), "notes": notes,
             "speeds": speeds, "estimate": None if estimate is None else estimate.tolist()}
    with write_whole(path) as file:
        json.dump(table, file, indent=1)
    return FleetChoices(run, robot, _bound(model, speeds, table["estimate"]), preparation, tuple(notes),
                        chosen.dataset.held)


def _bound(model: LinearModel, speeds: Sequence[float], estimate: Sequence[float] | None) -> LinearModel:
    """Return the model with the data-dependent settings of its terms: top speeds (dof,), and an estimate
    (parameters,).
    """
    model = bound(model, DataContext(speeds=np.array(speeds)))
    own = robot_model(model)
    return model if estimate is None or own is None else own.with_estimate(np.array(estimate))


def _key(settings: FleetSettings, robot: Robot) -> str:
    table = settings.model_dump(mode="json", include={"model", "log", "prepare", "gravity", "only", "lock"})
    return signature(_FILE_FORMAT, table, robot.name, robot.joint_names, settings.robot)


def _kept(path: Path) -> dict[str, Any] | None:
    """Return the choices stored in a file; None if the file does not exist."""
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
        return {name: table[name] for name in ("model", "preparation", "notes", "speeds", "estimate")}
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        raise DynidError(f"{path} cannot be read as the settings of a fleet; remove it, and they are chosen again"
                         ) from None
