"""Faults in logs of robots with a free base in MuJoCo: each is found, or the intervals contain the true values.

Each log of the quadruped and the humanoid of `floating` has one fault. The faults are a foot that slips for 0.2 s, a
contact schedule that is wrong by 20 ms, a foot sensor with a wrong gain or an offset, a wrong frame of a foot or of the
IMU, and a base that drifts. The robots are identified from files, with all defaults of the verdict. The soles of the
humanoid never leave the ground, so its contact schedule cannot be wrong.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import dynid
from dynid.errors import DynidError
from dynid.runs.identification import Run
from reproductions._walking_truth import model_of, truth_of
from reproductions._walking_world import Walker, WorldLog, _compiled, world_log
from reproductions.floating import CUTOFFS, DURATION, ROBOTS, robots

OWN_STUDY = True  # no document prints it
LOGS = 1  # of each machine: about two minutes of a processor
IN_ALL = {"only": ("quadruped", "slip", "schedule", "gain")}  # the smaller study of `--all`
FIRST_SEED = 600  # rules were chosen on others
LEAST_COVERAGE = 90.0  # percent of 95 % intervals that contain the truth, where a fault is not named
CHANCE = 2.0  # standard errors over logs by which the mean may be below
FAULTS = ("healthy", "slip", "schedule", "gain", "offset", "foot frame", "IMU turned", "IMU place", "drift")
FEET = {"quadruped": "RL_toe", "humanoid": "left_sole"}  # the foot with the fault
RULES: dict[str, dict[str, Any]] = {"quadruped": {"foot_radius": 0.022}, "humanoid": {"foot_kind": "sole"}}
SLIP = 3.0, 3.2  # s
SLIPPERY = 0.02  # coefficient of friction
LATE = 0.02  # s by which the contact schedule is wrong
GAIN = 1.1  # of a foot sensor
OFFSET = 0.05  # of a foot sensor, share of the robot's weight
MISPLACED = 0.02  # m, of the frame of a foot
IMU_PLACE = (0.05, -0.04, 0.0)  # m
IMU_TURN = 0.1  # rad
DRIFT = 0.01  # m/s^2 by which the logged position of the base accelerates


@dataclass(frozen=True, eq=False)
class Case:
    """A log with a fault: findings that name it, signals that the log lacks, and the robot's description if wrong."""

    codes: frozenset[str]
    log: WorldLog
    leave_out: tuple[str, ...] = ()
    text: str = ""


def slipping(walker: Walker, seed: int, duration: float) -> WorldLog:
    """A log in which the ground under one foot is slippery for a fifth of a second."""
    model = _compiled(walker.text, walker.damping, walker.armature)
    geoms = np.flatnonzero(model.geom_bodyid == model.site_bodyid[model.site(FEET[walker.name]).id])
    usual = model.geom_friction[geoms, 0].copy()

    def slippery(model: Any, data: Any, time: float) -> None:
        model.geom_friction[geoms, 0] = SLIPPERY if SLIP[0] <= time < SLIP[1] else usual

    model.geom_priority[geoms] = 1
    try:
        return world_log(walker, seed, duration=duration, push=slippery)
    finally:
        model.geom_priority[geoms], model.geom_friction[geoms, 0] = 0, usual


def changed(log: WorldLog, **signals: np.ndarray) -> WorldLog:
    """A log with other signals."""
    return replace(log, signals={**log.signals, **signals})


def moved_site(text: str, name: str, by: Sequence[float]) -> str:
    """An MJCF text with a site at another place."""
    before = re.search(f'site name="{name}" pos="([^"]*)"', text)
    assert before is not None
    place = " ".join(str(x + d) for x, d in zip(map(float, before[1].split()), by, strict=True))
    return text.replace(before[0], f'site name="{name}" pos="{place}"')


def turned_imu(log: WorldLog, axis: int, angle: float) -> WorldLog:
    """The log of an IMU whose axes are turned about one of them."""
    i, j = (axis + 1) % 3, (axis + 2) % 3
    turn = np.eye(3)
    turn[i, i] = turn[j, j] = np.cos(angle)
    turn[j, i], turn[i, j] = np.sin(angle), -np.sin(angle)
    return changed(log, gyro=log.signals["gyro"] @ turn, accelerometer=log.signals["accelerometer"] @ turn)


def cases(walker: Walker, seed: int, duration: float) -> dict[str, Case]:
    """Healthy logs, and one of each fault."""
    log, slip = world_log(walker, seed, duration=duration), slipping(walker, seed, duration)
    foot = [contact.frame for contact in walker.feet].index(FEET[walker.name])
    signals, rate = log.signals, 1.0 / (log.t[1] - log.t[0])
    weight = -float(walker.robot.gravity[2]) * float(np.sum(walker.robot.inertias[:, 9]))
    strong, biased = signals["wrench"].copy(), signals["wrench"].copy()
    strong[:, foot] *= GAIN
    biased[:, foot, 2] += OFFSET * weight
    drifted = signals["position"] + 0.5 * DRIFT * log.t[:, None] ** 2 * np.array([0.8, 0.6, 0.0])
    frame = moved_site(walker.text, FEET[walker.name], (0.0, 0.0, MISPLACED))
    place = moved_site(walker.text, "imu", IMU_PLACE)
    shift = round(LATE * rate) * (1 if seed % 2 else -1)  # late and early by turns
    rows = np.clip(np.arange(len(log.t)) - shift, 0, len(log.t) - 1)
    none = frozenset[str]()
    found = {
        "healthy": Case(none, log), "healthy, no forces": Case(none, log, ("wrench",)),
        "healthy, no torques": Case(none, log, ("torque",)),
        "slip": Case(frozenset({"foot-slips"}), slip),
        "slip, no forces": Case(frozenset({"foot-slips"}), slip, ("wrench",)),
        "schedule, no forces": Case(none, changed(log, contact=signals["contact"][rows]), ("wrench",)),
        "gain": Case(frozenset({"foot-gain"}), changed(log, wrench=strong)),
        "gain, no torques": Case(frozenset({"foot-gain"}), changed(log, wrench=strong), ("torque",)),
        "offset": Case(frozenset({"foot-offset"}), changed(log, wrench=biased)),
        "foot frame": Case(frozenset({"foot-frame"}), log, (), frame),
        "foot frame, no forces": Case(frozenset({"foot-frame"}), log, ("wrench",), frame),
        "IMU turned": Case(frozenset({"imu-mounting"}), turned_imu(log, seed % 3, IMU_TURN), ("wrench",)),
        "IMU place": Case(frozenset({"imu-place"}), log, ("wrench",), place),
        "drift": Case(frozenset({"base-drifts"}), changed(log, position=drifted), ("imu",))}
    if np.all(signals["contact"]):
        del found["schedule, no forces"]
    return found


def identified(walker: Walker, case: Case, folder: Path) -> Run:
    """The run of a case, from files."""
    file = folder / "robot.xml"
    file.write_text(case.text or walker.text)
    return dynid.identify(file, case.log.write(folder / "log.csv", *case.leave_out), log=RULES[walker.name],
                          model={"rotor": True, "friction": ["viscous"]}, method="wls",
                          prepare={"cutoff": CUTOFFS[walker.name]}, simulation={"run": False})


def coverage(walker: Walker, run: Run) -> float:
    """Percent of the 95 % intervals of identified parameters that contain the truth."""
    truth = dict(zip((one.name for one in model_of(walker).parameters), truth_of(walker), strict=True))
    base = run.problem.base.reduce(np.array([truth[one.name] for one in run.model.parameters]))
    low, high = run.estimate.conf_int().T
    std = np.sqrt(np.diag(run.estimate.covariance))
    known = np.isfinite(std) & (std > 0)
    return 100.0 * float(np.mean(((low < base) & (base < high))[known]))


def run(progress: Callable[[str], None], logs: int = LOGS, duration: float = DURATION, seed: int = FIRST_SEED,
        only: Sequence[str] = tuple(ROBOTS)) -> dict[str, Any]:
    """Return the outcome of each fault. only: robots and faults; a kind without a name is run completely. "slip" is run
    with and without forces."""
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    faults = [name for name in only if name not in ROBOTS]
    if unknown := [name for name in faults if name not in FAULTS]:
        raise DynidError(f"there is neither a robot nor a fault '{unknown[0]}'; there are {', '.join(ROBOTS)}; "
                         f"{', '.join(FAULTS)}")
    with tempfile.TemporaryDirectory() as folder:
        for walker in robots([name for name in only if name in ROBOTS] or tuple(ROBOTS)):
            for number in range(logs):
                for name, case in cases(walker, seed + number, duration).items():
                    if faults and name.split(",")[0] not in faults:
                        continue
                    progress(f"{walker.name}, log {number + 1} of {logs}, {name}")
                    one = identified(walker, case, Path(folder))
                    codes = {finding.code for finding in one.verdict.of_kind("problem")}
                    found.setdefault(walker.name, {}).setdefault(name, []).append({
                        "seed": seed + number, "codes": sorted(codes), "is_named": bool(codes & case.codes),
                        "is_wrong": bool(codes - case.codes - _allowed(case)), "coverage": coverage(walker, one),
                        "headline": one.verdict.headline})
    summary = {robot: {name: _summary(rows) for name, rows in by_name.items()} for robot, by_name in found.items()}
    checks = {}
    for robot, by_name in summary.items():
        for name, one in by_name.items():
            words = "no finding" if name.startswith("healthy") else \
                "named, or at least 90 % of the intervals contain the truth (or less by two standard errors over logs)"
            checks[f"{robot}, {name}: {words}"] = one["with_findings"] == 0 if name.startswith("healthy") else bool(
                one["named"] == one["logs"]
                or one["coverage_unnamed"] + CHANCE * one["coverage_error"] >= LEAST_COVERAGE)
    return {"logs": found, "robots": summary, "checks": checks}


def _allowed(case: Case) -> frozenset[str]:
    """Return further findings that are correct for a fault: a misplaced foot also seems to move."""
    return frozenset({"foot-slips"}) if "foot-frame" in case.codes else frozenset()


def _summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Counts of the logs of one fault, and the coverage over those in which it is not named."""
    unnamed = [one["coverage"] for one in rows if not one["is_named"]]
    return {"logs": len(rows), "named": sum(one["is_named"] for one in rows),
            "with_findings": sum(bool(one["codes"]) for one in rows), "wrong": sum(one["is_wrong"] for one in rows),
            "coverage_unnamed": float(np.mean(unnamed)) if unnamed else None,
            "coverage_error": float(np.std(unnamed, ddof=1) / np.sqrt(len(unnamed))) if len(unnamed) > 1 else 0.0}


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = [("robot", "log", "logs", "named", "other findings", "coverage where not named, %")]
    for robot, by_name in result["robots"].items():
        for name, one in by_name.items():
            inside = "" if one["coverage_unnamed"] is None else f"{one['coverage_unnamed']:.1f}"
            rows.append((robot, name, str(one["logs"]), str(one["named"]), str(one["wrong"]), inside))
    return rows
