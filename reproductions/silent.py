"""Wrong logs and robot files of simulated arms: the grade and stated error of each, its true error, and what is named.

The true error is that of torques without noise on motions that are not in the log, from the parameters of the simulated
arm. Causes that the data cannot show, because other parameters or links explain them as well, are listed with the
reason. All other causes have to be named by a finding, or the log has to be refused.
"""

from __future__ import annotations

import runpy
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import DynidError
from dynid.excitation import FourierSeries
from dynid.model import Model
from dynid.recording import Recording
from dynid.recording.write import write_npz
from dynid.runs import RunSettings
from dynid.runs import run as run_settings
from dynid.runs.settings import SimulationSettings
from dynid.workers import Workers
from reproductions._faulty_machines import machine

OWN_STUDY = True  # no document prints it
SEED = 6401  # settings were not chosen on it
ARM, BUILT_IN = "tutorial's arm", "arm3r"
EXAMPLE = Path(__file__).resolve().parents[1] / "docs" / "example"
IN_ALL = {"names": ("healthy", "20 % of rows have torque 0", "20 % of rows lost", "gravity upside down",
                    "torques in a cycle", "inertias in g mm^2"), "robots": (ARM,)}
HEALTHY = "healthy"
RATE, SECONDS, PERIOD = 100.0, 16.0, 8.0  # of the motions of the true error

Rng = np.random.Generator


@dataclass(frozen=True, eq=False)
class Arm:
    """A simulated arm: its robot file or name, true model and parameters (parameters,), and a log."""

    robot: str
    model: Model
    theta: Array
    log: Recording


@dataclass(frozen=True, eq=False)
class Silent:
    """A wrong input. codes: findings of which one has to name it; why: why the data cannot show it, or empty."""

    name: str
    codes: tuple[str, ...]
    log: Callable[[Recording, Rng], Recording] = lambda log, rng: log
    file: tuple[tuple[str, str], ...] = ()  # texts of the URDF, and what is in their place
    settings: dict[str, Any] = field(default_factory=dict)
    why: str = ""


def _tau(change: Callable[[Array, Rng], Array]) -> Callable[[Recording, Rng], Recording]:
    return lambda log, rng: replace(log, tau=np.ascontiguousarray(change(log.tau, rng)))


def _q(change: Callable[[Array], Array]) -> Callable[[Recording, Rng], Recording]:
    return lambda log, rng: replace(log, q=np.ascontiguousarray(change(log.q)), dq=None)


def _zeros(share: float, joints: Sequence[int] = (0, 1, 2)) -> Callable[[Recording, Rng], Recording]:
    def change(tau: Array, rng: Rng) -> Array:
        out, gone = tau.copy(), np.flatnonzero(rng.uniform(size=len(tau)) < share)
        out[np.ix_(gone, joints)] = 0.0
        return out
    return _tau(change)


def _lost(share: float) -> Callable[[Recording, Rng], Recording]:
    """Return the fault that rows are lost and the others have the first time stamps."""
    def change(log: Recording, rng: Rng) -> Recording:
        kept = np.flatnonzero(rng.uniform(size=len(log)) >= share)
        return replace(log, t=np.arange(len(kept)) / log.rate, q=log.q[kept], tau=log.tau[kept], dq=None)
    return change


def _cut(first: float, last: float) -> Callable[[Recording, Rng], Recording]:
    """Return the fault that a part of the log, as shares of its rows, is missing and the time is closed."""
    def change(log: Recording, rng: Rng) -> Recording:
        kept = np.delete(np.arange(len(log)), np.arange(int(first * len(log)), int(last * len(log))))
        return replace(log, t=log.t[:len(kept)], q=log.q[kept], tau=log.tau[kept], dq=None)
    return change


def _stuck(log: Recording, rng: Rng) -> Recording:
    q, rows = log.q.copy(), slice(int(0.4 * len(log)), int(0.4 * len(log) + log.rate))
    q[rows, 1] = q[rows.start, 1]
    return replace(log, q=q, dq=None)


def _dead_zone(tau: Array, rng: Rng) -> Array:
    return np.where(np.abs(tau) < 0.15 * np.abs(tau).max(axis=0), 0.0, tau)


def _late(tau: Array, rng: Rng) -> Array:
    return np.vstack([np.repeat(tau[:1], 20, axis=0), tau[:-20]])


def _time(factor: float) -> Callable[[Recording, Rng], Recording]:
    return lambda log, rng: replace(log, t=log.t * factor, dq=None)


_COLUMN = 'ixx="0.02" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.02"'
_BY_PARAMETERS = "other parameters of the arm explain the torques as well"
CASES = (
    Silent(HEALTHY, ()),
    Silent("20 % of rows have torque 0", ("torque-lost",), _zeros(0.2)),
    Silent("2 % of rows have torque 0", ("torque-lost",), _zeros(0.02)),
    Silent("torque of one joint 0 in 10 %", ("torque-lost",), _zeros(0.1, (1,))),
    Silent("dead zone of 15 %", ("torque-lost",), _tau(_dead_zone)),
    Silent("20 % of rows lost", ("rows-lost",), _lost(0.2)),
    Silent("5 % of rows lost", ("rows-lost",), _lost(0.05)),
    Silent("a tenth of the log is missing, time closed", ("positions-jump",), _cut(0.3, 0.4)),
    Silent("gravity upside down", ("gravity-direction",), settings={"gravity": (0.0, 0.0, 9.81)}),
    Silent("gravity sideways", ("gravity-direction",), settings={"gravity": (0.0, 9.81, 0.0)}),
    Silent("torques in a cycle", ("torques-swapped",), _tau(lambda tau, rng: tau[:, [1, 2, 0]])),
    Silent("two torques exchanged", ("torques-swapped",), _tau(lambda tau, rng: tau[:, [0, 2, 1]])),
    Silent("torque of joint 2 with the wrong sign", ("torque-sign",), _tau(lambda tau, rng: tau * [1, -1, 1])),
    Silent("all torques with the wrong sign", ("torque-sign",), _tau(lambda tau, rng: -tau)),
    Silent("position of joint 2 with the wrong sign", ("position-sign", "torque-sign", "gravity-direction"),
           _q(lambda q: q * [1, -1, 1])),
    Silent("torques in mN m", ("torque-unit",), _tau(lambda tau, rng: 1e3 * tau)),
    Silent("torques of noise", ("torques-unrelated",), _tau(lambda tau, rng: rng.normal(size=tau.shape))),
    Silent("torques in absolute values", ("torque-unsigned",), _tau(lambda tau, rng: np.abs(tau))),
    Silent("torques cut off at half", ("torque-saturated",), _tau(lambda tau, rng: np.clip(
        tau, -0.5 * np.abs(tau).max(axis=0), 0.5 * np.abs(tau).max(axis=0)))),
    Silent("torques 20 rows late", ("residual-follows-delay",), _tau(_late)),
    Silent("encoder stuck for a second", ("encoder-stuck",), _stuck),
    Silent("clock twice as slow", ("time-scale",), _time(2.0)),
    Silent("log of 1.2 s", ("few-independent-samples", "too-few-samples"), lambda log, rng: log[:int(1.2 * log.rate)]),
    Silent("rows written twice", ("rows-repeated",), lambda log, rng: replace(
        log, t=np.arange(2 * len(log)) / log.rate, q=np.repeat(log.q, 2, axis=0), tau=np.repeat(log.tau, 2, axis=0),
        dq=None)),
    Silent("inertias in g mm^2", ("file-inertia",), file=((_COLUMN, _COLUMN.replace("0.02", "2e7")),)),
    Silent("inertias in kg mm^2", ("file-inertia",), file=((_COLUMN, _COLUMN.replace("0.02", "2e4")),)),
    Silent("centre of mass in mm", ("file-inertia",), file=(('xyz="0 0 0.15"', 'xyz="0 0 150"'),)),
    Silent("link of 4000 kg", ("file-inertia",), file=(('mass value="4.0"', 'mass value="4000"'),)),
    Silent("link with a negative mass", ("file-inertia",), file=(('mass value="4.0"', 'mass value="-4.0"'),)),
    Silent("lengths in mm", ("file-inertia",), file=(('xyz="0 0 0.3"', 'xyz="0 0 300"'),)),
    Silent("torque of joint 1 x 1.2", ("drive-gain",), _tau(lambda tau, rng: tau * [1.2, 1, 1]),
           why="no gravity acts on joint 1, so a larger inertia and friction explain its torque"),
    Silent("all torques x 1.3", ("torque-unit",), _tau(lambda tau, rng: 1.3 * tau),
           why="heavier links explain all torques, and robot files are wrong by as much"),
    Silent("position of joint 1 with the wrong sign", ("position-sign",), _q(lambda q: q * [-1, 1, 1]),
           why="friction and inertia of a vertical axis change their sign with its torque alone, and the arm is its "
               "own mirror image"),
    Silent("zero of joint 3 off by 5 degrees", ("position-offset",), _q(lambda q: q + np.deg2rad([0.0, 0.0, 5.0])),
           why="another centre of mass of link 3 explains gravity, and its effect on joint 2 is small"),
    Silent("clock 10 % slow", ("time-scale",), _time(1.1),
           why="inertias and viscous friction scale with the time; only products of velocities contradict them"),
    Silent("torque sensor of joint 2 with an offset", ("large-offset",),
           _tau(lambda tau, rng: tau + np.array([0.0, 3.0, 0.0])),
           why="the offset is a parameter of the model"))


def example_arm(seed: int) -> Arm:
    """Return the arm of the tutorial with one of its logs."""
    made = runpy.run_path(str(EXAMPLE / "make_logs.py"))
    urdf = EXAMPLE / "arm.urdf"
    model, theta = made["true_arm"](urdf)
    return Arm(str(urdf), model, theta, replace(made["record"](seed, urdf), reference=None, reference_velocity=None))


def built_in_arm(seed: int) -> Arm:
    """Return a simulated arm of a built-in type."""
    made = machine(BUILT_IN, seed)
    return Arm(BUILT_IN, made.model, made.theta, made.record())


def true_error(arm: Arm, predict: Callable[..., Array], seed: int) -> float:
    """Return the relative error, percent, of predicted torques on the worst of three other motions: of all of the
    range, slow, and of half of the range about another posture."""
    rng, robot, errors = np.random.default_rng(seed), arm.model.robot, []
    lower, upper = np.maximum(robot.limit("lower"), -2.0), np.minimum(robot.limit("upper"), 2.0)
    for width, speed, shift in ((0.8, 1.0, 0.0), (0.8, 0.2, 0.0), (0.4, 0.7, 0.4)):
        series = FourierSeries(*rng.normal(size=(2, robot.dof, 4)), np.zeros(robot.dof), PERIOD)
        t = np.arange(int(RATE * SECONDS)) / RATE
        wide = np.abs(series.at(t).q).max(axis=0)
        scale = (0.5 * width * (upper - lower) / wide)[:, None]
        middle = 0.5 * (upper + lower) + 0.5 * shift * (upper - lower)
        motion = FourierSeries(scale * series.a, scale * series.b, middle, PERIOD).at(speed * t)
        state = (motion.q, speed * motion.dq, speed ** 2 * motion.ddq)
        tau = arm.model.inverse_dynamics(arm.theta, *state)
        errors.append(100.0 * float(np.linalg.norm(predict(*state) - tau) / np.linalg.norm(tau)))
    return max(errors)


def tried(arms: dict[str, Arm], task: tuple[str, int, int]) -> dict[str, Any]:
    """Return the outcome of one case on one arm, as plain data."""
    name, place, seed = task
    arm, case = arms[name], CASES[place]
    row: dict[str, Any] = {"robot": name, "case": case.name, "visible": not case.why, "why": case.why,
                           "wanted": list(case.codes)}
    with tempfile.TemporaryDirectory() as folder:
        robot, log = arm.robot, Path(folder) / "log.npz"
        if case.file:
            text = Path(robot).read_text(encoding="utf-8")
            for old, new in case.file:
                assert old in text, old
                text = text.replace(old, new)
            robot = str(Path(folder) / "arm.urdf")
            Path(robot).write_text(text, encoding="utf-8")
        write_npz(case.log(arm.log, np.random.default_rng([seed, place])), log)
        try:
            found = run_settings(RunSettings(robot=robot, logs=(str(log),), simulation=SimulationSettings(run=False),
                                             **case.settings))
        except DynidError as refusal:
            return {**row, "grade": "refused", "stated": None, "true": None, "codes": [refusal.code],
                    "named": True, "text": str(refusal).replace(folder, "")}
    problems = found.verdict.of_kind("problem")
    codes = [one.code for one in problems]
    return {**row, "grade": found.verdict.grade, "stated": found.verdict.summary.error,
            "true": true_error(arm, found.estimate.predict, seed), "codes": list(dict.fromkeys(codes)),
            # The tutorial's robot file has a link that cannot exist, which is a remark.
            "named": any(one.code in case.codes and (one.severity != "info" or not case.file) for one in problems),
            "text": " ".join(one.text for one in problems if one.code in case.codes).replace(folder, "")}


def run(progress: Callable[[str], None], seed: int = SEED, names: Sequence[str] = tuple(one.name for one in CASES),
        robots: Sequence[str] = (ARM, BUILT_IN)) -> dict[str, Any]:
    arms = {name: {ARM: example_arm, BUILT_IN: built_in_arm}[name](seed) for name in robots}
    tasks = [(name, place, seed) for name in robots for place, case in enumerate(CASES)
             if case.name in names and (name == ARM or (not case.file and not case.why))]
    rows: dict[int, dict[str, Any]] = {}
    progress(f"{len(tasks)} wrong inputs")
    for k, row in Workers().each(tried, arms, tasks):
        rows[k] = row
        progress(f"{len(rows)} of {len(tasks)}: {row['case']}")
    every = [rows[k] for k in range(len(tasks))]
    checks = {}
    for row in every:
        if row["case"] == HEALTHY:
            checks[f"{row['robot']}: nothing is blamed in the healthy log"] = row["grade"] == "good" and not (
                set(row["codes"]) & {code for case in CASES for code in case.codes if code != "file-inertia"})
        elif row["visible"]:
            checks[f"{row['robot']}: {row['case']} is named"] = row["named"]
    return {"rows": every, "checks": checks}


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2g} %"


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    return [("robot", "wrong input", "grade", "stated", "true", "named", "findings, or why the data cannot show it"),
            *((row["robot"], row["case"], row["grade"], _number(row["stated"]), _number(row["true"]),
               "yes" if row["named"] else "no" if row["visible"] and row["wanted"] else "",
               (f"invisible: {row['why']}; " if row["why"] else "") + ", ".join(row["codes"]))
              for row in result["rows"])]
