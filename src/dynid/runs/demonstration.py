"""Demonstration on a robot with known true parameters: logs, identification by several methods, a report."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import DynidError
from dynid.excitation import Fourier, Limits, Search, Trajectory, excite
from dynid.excitation.random_motions import random_fourier
from dynid.excitation.trajectories.trajectory import times
from dynid.files import try_folder, write_whole
from dynid.model import Model, make_terms
from dynid.output_fields import output_fields
from dynid.progress import ProgressCallback, silent
from dynid.recording import Recording
from dynid.recording.write import write_csv
from dynid.robot import Robot
from dynid.runs.comparison import ComparedMethods, compare, comparison_facts
from dynid.runs.results import save
from dynid.runs.settings import ModelSettings, RunSettings

ROBOT = "franka-panda"
FRICTION = ("viscous", "coulomb", "offset")
METHODS = ("auto", "wls", "ols")
RATE, DURATION = 500.0, 20.0  # Hz, s
ENCODER = 2.0 * np.pi / 2 ** 18  # rad per count
TORQUE_NOISE = 0.005  # standard deviation as a share of each joint's rated torque
VISCOUS, DRY, ASYMMETRY = 0.01, 0.02, 0.002  # friction as a share of the rated torque: at 1 rad/s, dry, offset
RESULT = "result"
LOGS = ("exciting.csv", "other.csv")  # log to identify from, and log to validate on


@dataclass(frozen=True, eq=False)
class Demo:
    """Result of the demonstration.

    Attributes:
        compared: results of the compared methods; only the first method has a full run.
        truth: (base,), parameters that the logs were simulated with.
        written: path of each file of the result, by kind.
        folder: folder with the logs, the run file and the result.
    """

    compared: ComparedMethods
    truth: Array
    written: dict[str, str]
    folder: Path


def demo(folder: str | Path, progress: ProgressCallback = silent, *, seed: int = 0) -> Demo:
    """Design a motion, simulate its logs, identify from one, validate on another motion, and write the result.

    An earlier demonstration in the folder is replaced. Any other folder with files is refused.
    """
    folder = Path(folder)
    try_folder(folder)
    own = {*LOGS, "run.toml", RESULT}
    if folder.is_dir() and (names := {path.name for path in folder.iterdir()}) and (
            names - own - {"report.html"} or "run.toml" not in names):
        raise DynidError(f"{folder} contains files that do not belong to a demonstration; choose another folder: "
                         "dynid demo -o FOLDER", code="folder-in-use")
    settings = simulate_logs(folder, *LOGS, progress, seed=seed)
    with write_whole(folder / "run.toml") as file:
        file.write(settings.as_toml("Identify the demonstration's log again: dynid identify run.toml -o FOLDER"))
    compared = compare(settings.moved(folder, Path()), METHODS, progress)
    progress("writing the report")
    shutil.rmtree(folder / RESULT, ignore_errors=True)
    written = save(compared.run, folder / RESULT, f"dynid identify {folder / 'run.toml'}")
    truth = compared.run.problem.base.reduce(true_parameters(demo_model()))
    return Demo(compared, truth, written, folder)


def demo_model() -> Model:
    """Return the model of the demonstration's simulated robot."""
    robot = Robot.builtin(ROBOT)
    return Model(robot, make_terms(robot, friction=FRICTION))


def simulate_logs(folder: Path, log: str, validation: str, progress: ProgressCallback = silent, *,
                  seed: int = 0) -> RunSettings:
    """Write the logs of an optimised motion and of another one; return settings that identify from the first log.

    Args:
        folder: where the logs are written.
        log: file name of the log to identify from.
        validation: file name of the log to validate on.
        progress: receives progress messages.
        seed: seed of the search, the second motion and the noise.
    """
    model = demo_model()
    robot = model.robot
    progress("designing an exciting motion within the limits")
    exciting = excite(model, Limits.from_robot(robot), family=Fourier(DURATION),
                      search=Search(budget=None, rounds=1, seed=seed)).trajectory
    progress("simulating the logs")
    other = random_fourier(robot, DURATION, 5, np.random.default_rng(seed), points=round(DURATION * RATE) + 1)
    logs = {log: exciting, validation: other}
    for k, (name, trajectory) in enumerate(logs.items()):
        write_csv(_log(model, trajectory, np.random.default_rng([seed, k])), folder / name)
    return RunSettings(robot=ROBOT, logs=(log,), validate_on=(validation,), model=ModelSettings(friction=FRICTION))


@output_fields(comparison_facts, within_three_standard_errors=dict[str, float], parameter_error=dict[str, float])
def demo_facts(found: Demo) -> dict[str, Any]:
    """Return the facts of the comparison, and for each method the distance of its parameters from the truth.

    within_three_standard_errors: share of the parameters whose truth is within three standard errors. parameter_error:
    percent, |values - truth| / |truth|, each parameter in units of its standard error of the first method.
    """
    inside, off = {}, {}
    unit = found.compared.run.estimate.std
    for name, one in zip(found.compared.names, found.compared.estimates, strict=True):
        known = one.identified & np.isfinite(unit) & (unit > 0)
        error = np.abs(one.values - found.truth)
        inside[name] = float(np.mean(error[known] < 3 * one.std[known]))
        off[name] = 100.0 * float(np.linalg.norm(error[known] / unit[known]) /
                                  np.linalg.norm(found.truth[known] / unit[known]))
    return {**comparison_facts(found.compared), "within_three_standard_errors": inside, "parameter_error": off}


def true_parameters(model: Model) -> Array:
    """Return the parameters (parameters,) of the simulated robot: published inertias, and typical friction."""
    effort = model.robot.limit("effort")
    share = {"Fv": VISCOUS, "Fc": DRY, "Fo": ASYMMETRY}
    return np.array([share[item.name[:2]] * effort[item.owner] if item.nominal is None else item.nominal
                     for item in model.parameters])


def _log(model: Model, trajectory: Trajectory, rng: np.random.Generator) -> Recording:
    """Return a log with torques along the motion by inverse dynamics, with noise, and positions in encoder counts."""
    t = times(trajectory, RATE)
    motion = trajectory.at(t)
    effort = model.robot.limit("effort")
    tau = model.inverse_dynamics(true_parameters(model), motion.q, motion.dq, motion.ddq)
    tau += TORQUE_NOISE * effort * rng.normal(size=tau.shape)
    return Recording(t, ENCODER * np.round(motion.q / ENCODER), tau, reference=motion.q,
                     joints=model.robot.joint_names, source="demonstration")
