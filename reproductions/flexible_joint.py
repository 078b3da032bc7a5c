"""Flexible joints: stiffness and both inertias from forty logs of a virtual arm with encoders on motors and links."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.estimate import Estimate, Problem, identify
from dynid.model import FlexibleModel, Model, make_terms
from dynid.recording.measured import add_motor_side
from dynid.recording.sample_preparation import prepare
from dynid.robot import Robot
from dynid.simulation import PD, Reference, VirtualRobot

OWN_STUDY = True  # no document prints it
LOGS, SECONDS, RATE = 40, 10.0, 1000.0
# The joints bend by 1 to 4 mrad (RMS) and swing at about 18 Hz; 2^18 counts a turn and 5 urad of noise on either side,
# 1 % of noise on the torques.
TRUTH = {"K": 1000.0, "D": 2.0, "Ko": 0.0, "Jm": 0.2, "Fvm": 0.5, "Fcm": 0.4, "Fv": 0.2}
COUNT, NOISE, TORQUE_NOISE = 2.0 * np.pi / 2 ** 18, 5e-6, 0.01
METHODS = ("iv", "wls")
GROUPS = {"stiffness K": ("K",), "motor inertia Jm": ("Jm",), "damping D": ("D",),
          "friction": ("Fv", "Fvm", "Fcm", "Ko")}
BODIES, SHARP, ALL = "bodies, base parameters", "K, Jm and bodies", "all"


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    robot = Robot.builtin("arm3r")
    model = FlexibleModel(Model(robot, make_terms(robot, friction=["viscous"])))
    theta = np.array([TRUTH.get(p.symbol, p.nominal or 0.0) for p in model.parameters])
    law = PD(np.full(3, 400.0), np.full(3, 30.0))
    clean = VirtualRobot(model, theta, law).run(_reference(0))
    machine = VirtualRobot(model, theta, law, encoder=COUNT, position_noise=NOISE,
                           torque_noise=TORQUE_NOISE * np.sqrt(np.mean(clean.tau ** 2, axis=0)))
    found: dict[str, list[tuple[Array, Array, Array]]] = {name: [] for name in METHODS}
    for seed in range(LOGS):
        progress(f"log {seed + 1} of {LOGS}")
        log = add_motor_side(machine.record(_reference(seed), seed=seed), model.bending)
        problem = Problem.from_model(model, prepare(log), recordings=log)
        for name in METHODS:
            options = {"instruments": "reference"} if name == "iv" else {}
            estimate = identify(problem, method=name, **options)
            found[name].append((estimate.values, estimate.std, _link_inertia(model, estimate, theta)))
    base = problem.base
    scores = {name: _score(base.names, base.matrix @ theta, each) for name, each in found.items()}
    return {"scores": scores, "checks": _checks(scores)}


def _reference(seed: int) -> Reference:
    """Return a reference of five sines per joint, which depend on the seed."""
    rng, t = np.random.default_rng(seed), np.arange(0.0, SECONDS, 1.0 / RATE)
    q, dq, ddq = np.zeros((3, len(t), 3))
    for j in range(3):
        for k in range(1, 6):
            w, size, phase = 2.0 * np.pi * 0.2 * k, 0.5 * rng.normal() / np.sqrt(k), rng.uniform(0.0, 6.28)
            q[:, j] += size * np.sin(w * t + phase)
            dq[:, j] += size * w * np.cos(w * t + phase)
            ddq[:, j] -= size * w * w * np.sin(w * t + phase)
    return Reference(q, dq, ddq, RATE)


def _link_inertia(model: FlexibleModel, estimate: Estimate, theta: Array) -> Array:
    """Return the error (3,) of the inertia of the links about each joint of the stretched arm, percent."""
    links, count = model.links, len(model.links.parameters)
    found, true = (np.diag(links.inertia_matrix(values[:count], np.zeros(3))) for values in (estimate.full, theta))
    return np.asarray(100.0 * (found / true - 1.0))


def _score(names: tuple[str, ...], true: Array, each: list[tuple[Array, Array, Array]]) -> dict[str, Any]:
    """Errors, percent, and coverage of 95 % intervals, by group of parameters and of all."""
    values, std, inertia = (np.array(column) for column in zip(*each, strict=True))
    covered = np.abs(values - true) <= 1.96 * std
    score: dict[str, Any] = {}
    for group, symbols in GROUPS.items():
        own = [k for k, name in enumerate(names) if name.rstrip("0123456789") in symbols]
        sized = [k for k in own if true[k] != 0.0]
        errors = 100.0 * np.abs(values[:, sized] / true[sized] - 1.0)
        score[group] = {"mean": float(errors.mean()), "worst": float(errors.max()),
                        "coverage": float(100.0 * covered[:, own].mean())}
    score["link inertia"] = {"mean": float(np.abs(inertia).mean()), "worst": float(np.abs(inertia).max()),
                             "coverage": None}
    bodies = np.array([name[0] in "XYZM" for name in names])
    sharp = bodies | np.array([name.rstrip("0123456789") in ("K", "Jm") for name in names])
    for group, own in ((BODIES, bodies), (SHARP, sharp), (ALL, np.ones(len(names), dtype=bool))):
        score[group] = {"mean": None, "worst": None, "coverage": float(100.0 * covered[:, own].mean())}
    return score


def _checks(scores: dict[str, dict[str, Any]]) -> dict[str, bool]:
    iv, sharp = scores["iv"], ("stiffness K", "motor inertia Jm", "link inertia")
    worst = {name: iv[name]["worst"] for name in sharp}
    cover = {name: iv[name]["coverage"] for name in (SHARP, ALL)}  # of few parameters 40 logs tell too little
    checks = {f"{name} within 1 % in every log, at worst {value:.2f} %": value <= 1.0 for name, value in worst.items()}
    checks |= {f"95 % intervals of iv hold in 90 to 98 %, {name}: {value:.1f} %": 90.0 <= value <= 98.0
               for name, value in cover.items()}
    return checks


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = [("method", "parameters", "mean error, %", "worst, %", "95 % intervals hold, %")]
    for method, score in result["scores"].items():
        for name, one in score.items():
            rows.append((method, name, *("-" if one[key] is None else f"{one[key]:.2f}" for key in ("mean", "worst")),
                         "-" if one["coverage"] is None else f"{one['coverage']:.1f}"))
    return rows
