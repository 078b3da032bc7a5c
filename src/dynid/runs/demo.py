"""The whole job on a built-in robot whose truth is known: logs, identification by several methods, a report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import DynidError
from dynid.excitation import Fourier, FourierSeries, Limits, Search, Trajectory, excite
from dynid.excitation.trajectories import times
from dynid.files import try_folder, write_whole
from dynid.model import Model, make_terms
from dynid.progress import Tell
from dynid.recording import Recording
from dynid.recording.write import write_csv
from dynid.report import write_report
from dynid.robot import Robot
from dynid.runs.comparison import ComparedMethods, compare, comparison_facts, comparison_report
from dynid.runs.settings import ModelSettings, RunSettings

ROBOT = "kuka-lwr4"
FRICTION = ("viscous", "coulomb", "offset")
METHODS = ("auto", "ols", "irls", "ml")
RATE, DURATION = 500.0, 20.0  # Hz, s
ENCODER = 2.0 * np.pi / 2 ** 18  # rad a count
TORQUE_NOISE = 0.05  # N m


@dataclass(frozen=True, eq=False)
class Demo:
    """What the demonstration found, and where its report is. truth (base,): what the logs were made with."""

    compared: ComparedMethods
    truth: Array
    report: Path


def demo(folder: str | Path, tell: Tell = lambda sentence: None, *, seed: int = 0, force: bool = False) -> Demo:
    """Design a motion, log it, identify from the log, validate on another motion, write the report."""
    folder = Path(folder)
    try_folder(folder)
    if (folder / "report.html").exists() and not force:
        raise DynidError(f"{folder} already holds a demonstration; choose another folder or say --force")
    robot = Robot.builtin(ROBOT)
    model = Model(robot, make_terms(robot, friction=FRICTION))
    tell("designing an exciting motion inside the limits")
    exciting = excite(model, Limits.of(robot), family=Fourier(DURATION),
                      search=Search(budget=None, rounds=1, seed=seed)).trajectory
    tell("making the logs")
    logs = {"exciting.csv": exciting, "other.csv": _other_motion(robot, np.random.default_rng(seed))}
    for k, (name, trajectory) in enumerate(logs.items()):
        write_csv(_log(model, trajectory, np.random.default_rng([seed, k])), folder / name)
    settings = RunSettings(robot=ROBOT, logs=("exciting.csv",), validate_on=("other.csv",),
                           model=ModelSettings(friction=FRICTION))
    with write_whole(folder / "run.toml") as file:
        file.write(settings.as_toml("Identify the demonstration's log again: dynid identify run.toml -o FOLDER"))
    compared = compare(settings.moved(folder, Path()), METHODS, tell)
    tell("writing the report")
    report = folder / "report.html"
    write_report(comparison_report(compared, f"dynid identify {folder / 'run.toml'}"), report)
    return Demo(compared, compared.run.problem.base.reduce(_truth(model)), report)


def demo_facts(found: Demo) -> dict[str, Any]:
    """The comparison's facts and within_three_deviations: for each method the share of the parameters it identified
    whose truth lies within three of its stated deviations."""
    inside = {name: float(np.mean(np.abs(one.values - found.truth)[one.identified] < 3 * one.std[one.identified]))
              for name, one in zip(found.compared.names, found.compared.estimates, strict=True)}
    return {**comparison_facts(found.compared), "within_three_deviations": inside}


def _truth(model: Model) -> Array:
    """The parameters the logs are made with."""
    nominal = model.parameters.nominal
    assert nominal is not None  # the built-in robot gives all of them
    return nominal


def _other_motion(robot: Robot, rng: np.random.Generator) -> FourierSeries:
    """A random Fourier motion at most at four fifths of every limit."""
    a, b = rng.normal(size=(2, robot.dof, 5))
    lower, upper = robot.limit("lower"), robot.limit("upper")
    series = FourierSeries(a, b, np.zeros(robot.dof), DURATION)
    motion = series.at(times(series, RATE))
    room = np.stack([0.5 * (upper - lower), robot.limit("velocity"), robot.limit("acceleration")])
    peaks = np.stack([np.ptp(motion.q, axis=0) / 2, np.abs(motion.dq).max(axis=0), np.abs(motion.ddq).max(axis=0)])
    scale = 0.8 * np.min(room / peaks, axis=0)[:, None]
    middle = 0.5 * (motion.q.max(axis=0) + motion.q.min(axis=0)) * scale[:, 0]
    return FourierSeries(a * scale, b * scale, 0.5 * (upper + lower) - middle, DURATION)


def _log(model: Model, trajectory: Trajectory, rng: np.random.Generator) -> Recording:
    """Torques along the motion by inverse dynamics, with noise; positions in encoder counts."""
    t = times(trajectory, RATE)
    motion = trajectory.at(t)
    tau = model.inverse_dynamics(_truth(model), motion.q, motion.dq, motion.ddq)
    return Recording(t, ENCODER * np.round(motion.q / ENCODER), tau + TORQUE_NOISE * rng.normal(size=tau.shape),
                     reference=motion.q, joints=model.robot.joint_names, source="demonstration")
