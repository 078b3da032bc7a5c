"""WAM (Sousa, tables 4.6, 4.7, 4.10, 4.11): weighted and constrained least squares on motion A, tested on motion B.

The thesis' logs are not published. A WAM with the parameters of table 4.9 moves along the printed motions A and B. Its
torque errors have the size of the residuals of the thesis' weighted regression (table 4.7) and a correlation time of a
third of a second, which is typical of unmodelled effects. Motions C and D are not printed. The study checks conclusions
and not digits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.consistency import Consistency, nearest
from dynid.consistency import test as is_possible
from dynid.estimate import Estimate, Problem, identify
from dynid.excitation import FourierSeries
from dynid.model import Model, make_terms
from dynid.recording import Samples
from dynid.regression import base_parameters
from dynid.robot import Robot
from reproductions._machines import coloured
from reproductions._printed import Comparison, printed
from reproductions._sousa import TRAJECTORY_A, TRAJECTORY_B, WAM

PERIOD, PERIODS, RATE, MEMORY = 12.5, 3, 100.0, 0.33  # s, periods of a log, Hz, s
LOGS = 8
WRIST = (4, 5, 6)  # joints 5 to 7, from 0
SPREADS = 2.0  # standard errors within which a printed estimate and ours agree
METHODS = ("ols", "wls", "pc-wls")


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    robot = Robot.builtin("barrett-wam")
    model = Model(robot, make_terms(robot, defaults=True))
    base = base_parameters(model)
    consistency = Consistency(model.parameters, form="spatial", margin=0.0)
    progress("a WAM that can exist, near the printed constrained solution")
    truth = is_possible(consistency, WAM[:, 2], base, tolerance=1e-4).theta
    errors = {motion: {name: [] for name in METHODS} for motion in "AB"}
    whole: dict[str, list[float]] = {name: [] for name in (*METHODS, "nearest")}
    possible: list[bool] = []
    values: dict[str, list[Array]] = {"ols": [], "wls": []}
    for seed in range(LOGS):
        progress(f"log {seed + 1} of {LOGS}")
        logs = {motion: moved(model, truth, series, [seed, k]) for k, (motion, series) in enumerate(
            (("A", TRAJECTORY_A), ("B", TRAJECTORY_B)))}
        problem = Problem.from_model(model, logs["A"], base=base)
        found = {name: identify(problem, method=name) for name in METHODS}
        for motion, log in logs.items():
            for name, one in found.items():
                errors[motion][name].append(by_joint(one, log))
        weights = 1.0 / np.sqrt(np.mean((found["wls"].predict(*motion_of(logs["A"])) - logs["A"].tau) ** 2, axis=0))
        near = nearest(consistency, found["wls"].values, base)
        predicted = {**{name: one.predict(*motion_of(logs["A"])) for name, one in found.items()},
                     "nearest": model.inverse_dynamics(near.theta, *motion_of(logs["A"]))}
        for name, tau in predicted.items():
            whole[name].append(float(100.0 * np.linalg.norm(weights * (tau - logs["A"].tau))
                                     / np.linalg.norm(weights * logs["A"].tau)))
        possible.append(is_possible(consistency, found["wls"].values, base).possible)
        for name, rows in values.items():
            rows.append(found[name].values)
    mean = {motion: {name: np.mean(rows, axis=0) for name, rows in one.items()} for motion, one in errors.items()}
    return {"logs": LOGS, "errors": {motion: {name: rows.tolist() for name, rows in one.items()}
                                     for motion, one in mean.items()},
            "weighted_error_on_A": {name: float(np.mean(rows)) for name, rows in whole.items()},
            "printed": [_estimates(values), _errors_on_a(errors["A"]["ols"]), *map(_left_out, ("4.10", "4.11"))],
            "checks": {words: bool(holds) for words, holds in _checks(mean, errors, possible).items()},
            "demonstrations": _by_optimality(whole)}


def _estimates(values: dict[str, list[Array]]) -> dict[str, Any]:
    """Columns OLS and WLS of table 4.6: each agrees with the mean of our logs within two standard errors of both, that
    of the print and the spread of our logs."""
    table = printed("001", "4.6")
    compared = Comparison(table)
    for column in ("OLS", "WLS"):
        rows = np.array(values[column.lower()])
        for row, mean, spread in zip(table.rows, rows.mean(axis=0), rows.std(axis=0, ddof=1), strict=True):
            stated = table.value(row, f"{column}%") / 100.0 * abs(table.value(row, column))
            compared.compare(row, column, mean, noise=SPREADS * float(np.hypot(stated, spread)), claimed=False)
    compared.leave_out("the number of samples is not printed")
    return compared.summary()


def _errors_on_a(errors: list[Array]) -> dict[str, Any]:
    """Compare column OLS of table 4.7; column WLS is the noise of the simulation."""
    table = printed("001", "4.7")
    compared = Comparison(table)
    for row, mean, spread in zip(table.rows, np.mean(errors, axis=0), np.std(errors, axis=0, ddof=1), strict=True):
        compared.compare(row, "OLS", mean, noise=SPREADS * float(spread), claimed=False)
    compared.leave_out("the noise of the simulated torques is set to it")
    return compared.summary()


def _left_out(number: str) -> dict[str, Any]:
    """Tables 4.10 and 4.11, whose errors are those of the real arm."""
    compared = Comparison(printed("001", number))
    compared.leave_out("the noise of the simulated torques is set to that of table 4.7")
    return compared.summary()


def _by_optimality(whole: dict[str, list[float]]) -> dict[str, bool]:
    """The order of table 4.10 on motion A, which holds for any log."""
    order = [float(np.mean(whole[name])) for name in ("wls", "pc-wls", "nearest")]
    return {"table 4.10: on motion A weighted LS errs least, then the constrained, then the nearest: "
            f"{', '.join(f'{x:.2f}' for x in order)} %": order[0] <= order[1] <= order[2]}


def moved(model: Model, truth: Array, series: Array, seed: list[int]) -> Samples:
    """Return a log along a Fourier series of tables 4.4 or 4.5, with residuals of an unmodelled effect in its torques.
    """
    rng = np.random.default_rng(seed)
    motion = FourierSeries(series[:, :6], series[:, 6:12], series[:, 12], PERIOD).at(
        np.arange(round(PERIODS * PERIOD * RATE)) / RATE)
    tau = model.inverse_dynamics(truth, motion.q, motion.dq, motion.ddq)
    size = np.sqrt(np.mean(tau ** 2, axis=0)) * np.array(printed("001", "4.7").values("WLS")) / 100.0
    return Samples.from_arrays(motion.q, motion.dq, motion.ddq, tau + size * coloured(rng, tau.shape, MEMORY * RATE),
                               rate=RATE)


def motion_of(log: Samples) -> tuple[Array, Array, Array]:
    return log.q, log.dq, log.ddq


def by_joint(estimate: Estimate, log: Samples) -> Array:
    """Relative errors of the torques (dof,), percent."""
    off = estimate.predict(*motion_of(log)) - log.tau
    return np.asarray(100.0 * np.linalg.norm(off, axis=0) / np.linalg.norm(log.tau, axis=0))


def _checks(mean: dict[str, dict[str, Array]], errors: dict[str, dict[str, list[Array]]],
            possible: list[bool]) -> dict[str, bool]:
    on_a, on_b = mean["A"], mean["B"]
    better = int(np.sum([np.mean(free) > np.mean(held) for free, held in zip(errors["B"]["wls"], errors["B"]["pc-wls"],
                                                                             strict=True)]))
    return {
        "table 4.7: weights lower the errors of joints 5 to 7 on motion A, from "
        f"{_said(on_a['ols'], WRIST)} to {_said(on_a['wls'], WRIST)} %":
            all(on_a["wls"][j] < on_a["ols"][j] for j in WRIST),
        "table 4.7: and change those of joints 1 to 4 by less than a tenth":
            np.all(np.abs(on_a["wls"][:4] / on_a["ols"][:4] - 1.0) < 0.1),
        f"s. 4.5.1: weighted LS cannot exist in {possible.count(False)} of {LOGS} logs": not any(possible),
        f"table 4.10: on motion B the constrained errs less than weighted LS in {better} of {LOGS} logs, at least "
        "three quarters": 4 * better >= 3 * LOGS,
        "table 4.11: on motion B the constrained errs no more in any joint to the digits printed, in the mean of all "
        f"logs: by {', '.join(f'{x:.2f}' for x in on_b['wls'] - on_b['pc-wls'])} points less":
            np.all(on_b["pc-wls"] <= on_b["wls"] + 0.05)}


def _said(values: Array, joints: tuple[int, ...]) -> str:
    return ", ".join(f"{values[j]:.1f}" for j in joints)


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("error of torques, %", "", *(f"joint {j}" for j in range(1, 8)))]
    on_a, on_b = printed("001", "4.7"), printed("001", "4.11")
    for motion, name, theirs in (("A", "ols", on_a.values("OLS")), ("A", "wls", on_a.values("WLS")),
                                 ("B", "wls", on_b.values("B-WLS")), ("B", "pc-wls", on_b.values("B-limits"))):
        rows.append((f"motion {motion}, {name}", "printed", *(f"{x:.1f}" for x in theirs)))
        rows.append(("", "ours", *(f"{x:.1f}" for x in result["errors"][motion][name])))
    rows.append(("motion A, weighted", "printed", "wls 4.57", "pc-wls 4.62", "nearest 4.73", *4 * ("",)))
    own = result["weighted_error_on_A"]
    rows.append(("", "ours", *(f"{name} {own[name]:.2f}" for name in ("wls", "pc-wls", "nearest")), *4 * ("",)))
    return rows
