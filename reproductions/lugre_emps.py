"""LuGre friction on a simulated EMPS: prediction errors of several friction models, and identified LuGre parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dynid.estimate import Estimate, Problem, identify
from dynid.model import Dahl, LuGreFriction, Model, Term, make_terms
from dynid.recording import Samples
from dynid.recording.sample_preparation import prepare
from dynid.robot import Robot
from dynid.simulation import PD, LuGre, Reference, VirtualRobot
from dynid.validate import reconstruct

# Bristles of half a millimetre, encoder counts of a micrometre: at each reversal the force turns over some rows.
OWN_STUDY = True  # no document prints it
MASS, VISCOUS = 95.0, 200.0  # kg, N s/m
TRUTH = {"Fc": 20.0, "Fs": 26.0, "vs": 0.01, "sigma0": 4e4, "sigma1": 100.0}
CUTOFF = 60.0  # Hz
NOISE, COUNT = 0.1, 1e-6  # N, of the force, and m, of the encoder
SINES = {"fitted": ((0.5, 0.05), (1.3, 0.016), (2.1, 0.006)), "tried": ((0.4, 0.05), (1.1, 0.02), (1.7, 0.008))}


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    robot = Robot.builtin("emps")
    progress("simulating two motions")
    fitted, tried = (_log(robot, SINES[name], seed) for seed, name in enumerate(SINES))
    errors, estimates = {}, {}
    for name, (terms, method) in _models(robot).items():
        progress(f"fitting {name}")
        estimates[name] = identify(Problem.from_model(Model(robot, terms), fitted), method=method)
        errors[name] = reconstruct(estimates[name], tried).relative_error
    found = _recovered(estimates["LuGre"])
    damping = found["sigma1"]
    off = abs(damping["found"] - damping["true"]) / damping["std"]
    return {"relative_error": errors, "recovered": found, "checks": {
        f"viscous and Coulomb friction leave {errors['viscous, Coulomb']:.2f} %, at least 5":
            errors["viscous, Coulomb"] >= 5.0,
        f"LuGre leaves {errors['LuGre']:.2f} %, below 1": errors["LuGre"] < 1.0,
        "force, reach and fall are within 3 %": all(
            abs(found[name]["found"] / found[name]["true"] - 1.0) < 0.03 for name in ("Fc", "Fs", "sigma0")),
        f"the micro-damping is stated with its deviation, {damping['found']:.0f} +- {damping['std']:.0f} N s/m, and "
        f"off by {off:.1f} of them, at most 3": off <= 3.0}}


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = [("friction", "error on another motion, %")]
    rows += [(name, f"{error:.2f}") for name, error in result["relative_error"].items()]
    rows += [("", ""), ("of LuGre", "true", "found", "deviation")]
    rows += [(name, f"{one['true']:g}", f"{one['found']:.4g}", f"{one['std']:.2g}")
             for name, one in result["recovered"].items()]
    width = max(map(len, rows))
    return [(*row, *[""] * (width - len(row))) for row in rows]


def _models(robot: Robot) -> dict[str, tuple[tuple[Term, ...], str]]:
    """Return terms and method of each friction model."""
    plain = make_terms(robot, friction=["viscous"])
    return {"viscous, Coulomb": (make_terms(robot, friction=["viscous", "coulomb"]), "wls"),
            "Dahl": ((*plain, Dahl(reach=2e-3, free=("reach",))), "sls"),
            "LuGre": ((*plain, LuGreFriction(reach=1e-3, ratio=1.1, vs=TRUTH["vs"], free=("reach", "ratio"))), "sls")}


def _log(robot: Robot, sines: tuple[tuple[float, float], ...], seed: int) -> Samples:
    """Return samples of the machine along sines (Hz, m), with noise on the force."""
    model = Model(robot, make_terms(robot, friction=["viscous"]))
    theta = [{"Fv": VISCOUS, "M": MASS}.get(p.symbol, p.nominal or 0.0) for p in model.parameters]
    t = np.arange(8000) / 1000.0
    q, dq, ddq = np.zeros((3, len(t), 1))
    for rate, size in sines:
        w = 2.0 * np.pi * rate
        q[:, 0] += size * np.sin(w * t)
        dq[:, 0] += size * w * np.cos(w * t)
        ddq[:, 0] -= size * w * w * np.sin(w * t)
    machine = VirtualRobot(model, theta, PD(np.array([2e5]), np.array([4e3])), encoder=COUNT, torque_noise=NOISE,
                           lugre=LuGre(**TRUTH), step=1.25e-4)
    return prepare(machine.record(Reference(q, dq, ddq, 1000.0), seed=seed), cutoff=CUTOFF, torque_cutoff="same",
                   decimate=1, slow=0.0)


def _recovered(estimate: Estimate) -> dict[str, dict[str, float]]:
    """Return true and identified LuGre parameters, with first-order standard errors."""
    names, shape = list(estimate.names), estimate.diagnostics["shape"]
    (force, d_force), (micro, d_micro) = ((float(estimate.values[k]), float(estimate.std[k]))
                                          for k in (names.index("Fz1"), names.index("Fz1_1")))
    (reach, d_reach), (ratio, d_ratio) = ((shape[name]["value"], shape[name]["std"]) for name in ("reach1", "ratio1"))

    def quotient(a: float, da: float, b: float, db: float) -> tuple[float, float]:
        return a / b, float(np.hypot(da / b, a * db / b ** 2))

    found = {"Fc": (force, d_force), "Fs": (force * ratio, float(np.hypot(d_force * ratio, force * d_ratio))),
             "sigma0": quotient(force, d_force, reach, d_reach), "sigma1": quotient(micro, d_micro, reach, d_reach)}
    return {name: {"true": TRUTH[name], "found": value, "std": std} for name, (value, std) in found.items()}
