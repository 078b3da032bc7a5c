"""Staubli TX40 (Ardiani, tables D.1-D.6): consistent instrumental variables and DIDIM, also at a wrong bandwidth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import NotPossibleError
from dynid.estimate import Problem, identify
from dynid.excitation import quintics
from dynid.model import Model, make_terms
from dynid.recording.sample_preparation import prepare
from dynid.regression import base_parameters
from dynid.report.drawing import thinned
from dynid.robot import Robot
from dynid.simulation import Poles, Reference, VirtualRobot
from reproductions._data import data, log
from reproductions._printed import Comparison, printed

SLOW = (0.0501, 0.0501, 0.0750, 0.0716, 0.0559, 0.1222)  # rad/s, below which the data's own recipe drops a joint's rows
METHODS = ("pc-wls", "pc-iv", "iv", "pc-didim")
COUNT = np.deg2rad(2e-2)  # rad a count, a hundred times coarser than the machine's
BANDWIDTH = 2.0 * np.pi * 10.0  # rad/s, of the position loops
# Logs of the virtual machine at half its bandwidth; methods that fit torques do not forgive that, and take long.
LOGS, FEW, FEWEST = 16, 4, 2
IN_ALL = {"mistuned": 4}
TABLES = {"actual data": "D.1", "coarse data": "D.3", "half bandwidth": "D.5"}


def run(progress: Callable[[str], None], mistuned: int = LOGS) -> dict[str, Any]:
    robot = Robot.from_urdf(data("tx40", "tx40_mdh_modified.urdf"))
    wrist = {"kind": "coupled-wrist", "joints": [5, 6]}
    model = Model(robot, make_terms(robot, rotor=True, friction=("viscous", "coulomb", "offset"), extra=[wrist]))
    base = base_parameters(model)
    progress("reading the log")
    recording = log("tx40", robot)
    errors: dict[str, dict[str, float]] = {"actual data": {}, "coarse data": {}, "half bandwidth": {}}
    steps: dict[str, dict[str, int | None]] = {name: {} for name in errors}
    joints: dict[str, dict[str, Any]] = {"actual data": {}, "coarse data": {}}

    good = Problem.from_model(model, prepare(recording, cutoff=100, decimate=10, stages=2, slow=SLOW), base=base)
    for name in METHODS:
        progress(f"real log: {name}")
        one = identify(good, method=name)
        errors["actual data"][name] = one.diagnostics["relative_error"]
        steps["actual data"][name] = one.diagnostics.get("iterations")
        joints["actual data"][name] = one.diagnostics["relative_error_per_joint"]

    judge = Problem.from_model(model, prepare(recording, cutoff=40, torque_cutoff=40, slow=SLOW), base=base)
    smooth = prepare(recording, cutoff=40, slow=0.0)
    # The loop's inverse (Janot et al., eq. 42), so that a loop of this bandwidth follows the filtered positions.
    reference = smooth.q + 2.0 / BANDWIDTH * smooth.dq + smooth.ddq / BANDWIDTH ** 2
    coarse = replace(recording, q=np.round(recording.q / COUNT) * COUNT, reference=reference, reference_velocity=None)
    unfiltered = prepare(coarse, method="none", torque_cutoff="none", slow=0.0)
    rough = Problem.from_model(model, unfiltered, base=base, recordings=coarse, controller=Poles(np.full(6, BANDWIDTH)))
    filtered = judge.regression.relative_error(identify(judge, method="wls").values)
    for name in ("ols", *METHODS):
        progress(f"coarse positions, no filter: {name}")
        one = identify(rough, method=name)
        errors["coarse data"][name] = judge.regression.relative_error(one.values)
        steps["coarse data"][name] = one.diagnostics.get("iterations")

    crossed, curves = _crossed(progress)
    misses, steps["half bandwidth"], reasons = _mistuned(progress, mistuned)
    settled = {name: int(np.isfinite(found).sum()) for name, found in misses.items()}
    tried = {name: len(found) for name, found in misses.items()}
    errors["half bandwidth"] = {name: float(np.median(found[np.isfinite(found)])) for name, found in misses.items()
                                if settled[name]}
    spread = max(errors["actual data"].values()) - min(errors["actual data"].values())
    checks = {f"real log: the four methods agree within one percentage point, {spread:.2f}": spread <= 1.0,
              f"coarse: least squares fails, {errors['coarse data']['ols']:.1f} %": errors["coarse data"]["ols"] > 20.0}
    for name in ("iv", "pc-iv", "pc-didim"):
        gap = errors["coarse data"][name] - filtered
        words = f"coarse: {name} without any filter within two points of the filtered least squares, {gap:+.2f}"
        checks[words] = gap <= 2.0
    both = np.isfinite(misses["pc-iv"]) & np.isfinite(misses["iv"])
    ours, free = (float(np.median(misses[name][both])) if both.any() else np.inf for name in ("pc-iv", "iv"))
    checks |= {
        f"half bandwidth: pc-iv settles in {settled['pc-iv']} of {mistuned} logs, at least three quarters":
            4 * settled["pc-iv"] >= 3 * mistuned,
        f"half bandwidth: pc-iv is better than iv in the {both.sum()} logs where both settle, {ours:.2f} and "
        f"{free:.2f} %": both.any() and ours < free,
    }
    fine, rough_errors = (np.array([list(crossed[name][method]) for method in METHODS])
                          for name in ("actual data", "coarse data"))
    apart = float((fine.max(axis=0) - fine.min(axis=0)).max())
    checks |= {
        f"table D.2, virtual: on three other motions the four methods agree within one point, {apart:.2f}":
            apart <= 1.0,
        f"table D.4, virtual: on coarse unfiltered positions least squares fails, {rough_errors[0].min():.1f} % at "
        f"least, and instruments and PC-DIDIM do not, {rough_errors[1:].max():.1f} at most":
            rough_errors[0].min() > 2.0 * rough_errors[1:].max(),
        f"half bandwidth: DIDIM settles in {settled['didim']} of {tried['didim']} logs, or is off by more than ten "
        "times pc-iv": settled["didim"] < tried["didim"] or errors["half bandwidth"]["didim"] > 10.0 * ours,
    }
    return {"crossed": crossed, "curves": curves, "errors": errors, "steps": steps,
            "joints": joints, "printed": _compared(steps, joints["actual data"]),
            "filtered_least_squares": filtered,
            "mistuned_logs": tried, "mistuned_settled": settled, "reasons": reasons,
            "checks": {words: bool(holds) for words, holds in checks.items()}}


def _compared(steps: dict[str, dict[str, int | None]], joints: dict[str, Any]) -> list[dict[str, Any]]:
    """Compare table D.1 with another log of the same type of robot, and the iterations of s. D.3."""
    actual = Comparison(printed("000", "D.1"))
    for method, values in joints.items():
        for row, value in zip(actual.table.rows, values, strict=True):
            actual.compare(row, method, value, claimed=False)
    iterations = Comparison(printed("000", "s. D.3"))
    for row, column in iterations.table.entries:
        iterations.compare(row, column, float(steps[row][column] or 0), claimed=False)
    others = [Comparison(printed("000", number)) for number in ("D.3", "D.5", "D.6", "D.2", "D.4")]
    others[0].leave_out("errors of unfiltered equations of that log; ours are judged on filtered ones")
    for one in others[1:]:
        one.leave_out("errors of the real robot, which a virtual one without unmodelled dynamics does not have")
    return [one.summary() for one in (actual, iterations, *others)]


def _published(case: str) -> dict[str, float]:
    """Mean error of the six joints by method, percent."""
    table = printed("000", TABLES[case])
    return {method: float(np.mean(table.values(method))) for method in table.columns}


def _mistuned(progress: Callable[[str], None], count: int
              ) -> tuple[dict[str, Array], dict[str, int | None], dict[str, list[str]]]:
    """Simulate the virtual TX40 with its first three loops at half their bandwidth. Return the torque errors (logs,) of
    each method on another motion, percent of those with the true parameters, NaN if the method did not converge; the
    largest number of iterations of each method; and the messages of logs without an estimate."""
    robot = Robot.builtin("staubli-tx40")
    model = Model(robot, make_terms(robot, defaults=True))
    theta = np.array([p.nominal for p in model.parameters], dtype=float)
    law = Poles(np.full(6, BANDWIDTH))
    slow = Poles(np.array([0.5, 0.5, 0.5, 1.0, 1.0, 1.0]) * BANDWIDTH)
    machine = VirtualRobot(model, theta, law, encoder=np.deg2rad(2e-4), torque_noise=[2.0, 2.0, 1.0, 0.4, 0.4, 0.2])
    progress("the virtual TX40 moves")
    other, path = machine.run(_path(1)), _path(0)
    torques = model.inverse_dynamics(theta, other.q, other.dq, other.ddq)
    names = ("pc-iv", "iv", "pc-didim", "didim")
    logs = {"pc-didim": FEW, "didim": FEWEST}
    misses = {name: np.full(min(logs.get(name, count), count), np.nan) for name in names}
    steps: dict[str, int | None] = {}
    reasons: dict[str, list[str]] = {name: [] for name in names}
    for k in range(count):
        progress(f"virtual TX40 at half bandwidth, log {k + 1} of {count}")
        recording = machine.record(path, seed=k + 1)
        samples = prepare(recording, cutoff=60, decimate=10, slow=0.05)
        # The robot's file holds the truth here, which no method may see.
        problem = replace(Problem.from_model(model, samples, recordings=recording, controller=law), nominal=None)
        for name in (one for one in names if k < len(misses[one])):
            try:
                one = identify(problem, method=name, controller=slow)
            except NotPossibleError as error:
                reasons[name].append(str(error))
                continue
            miss = np.linalg.norm(one.predict(other.q, other.dq, other.ddq) - torques) / np.linalg.norm(torques)
            misses[name][k] = 100.0 * float(miss)
            steps[name] = max(steps.get(name) or 0, one.diagnostics["iterations"])
    return misses, steps, reasons


def _crossed(progress: Callable[[str], None]) -> tuple[dict[str, dict[str, list[float]]], dict[str, Any]]:
    """Torque errors (percent) of each method on three quintics through random points, identified from one log of the
    virtual TX40: prepared as usual, and from coarse positions without a filter (tables D.2 and D.4); and torques of the
    second joint on the first of them (figures D.2 and D.3)."""
    robot = Robot.builtin("staubli-tx40")
    model = Model(robot, make_terms(robot, defaults=True))
    theta = np.array([p.nominal for p in model.parameters], dtype=float)
    law = Poles(np.full(6, BANDWIDTH))
    machine = VirtualRobot(model, theta, law, encoder=np.deg2rad(2e-4), torque_noise=[2.0, 2.0, 1.0, 0.4, 0.4, 0.2])
    recording = machine.record(_path(0), seed=1)
    rng = np.random.default_rng(7)
    tests = []
    for k in range(3):
        path = quintics(rng.uniform(-0.8, 0.8, (9, 6)), np.arange(9.0))
        other = machine.record(Reference.from_arrays(path.at(np.arange(0.0, 8.0, 0.001)).q, rate=1000.0), seed=20 + k)
        tests.append(prepare(other, cutoff=60, decimate=10, slow=0.05))
    regressions, first = [Problem.from_model(model, one).regression for one in tests], tests[0]
    coarse = replace(recording, q=np.round(recording.q / COUNT) * COUNT, dq=None)
    cases = {"actual data": (prepare(recording, cutoff=60, decimate=10, slow=0.05), recording),
             "coarse data": (prepare(coarse, method="none", torque_cutoff="none", slow=0.05), coarse)}
    found: dict[str, dict[str, list[float]]] = {}
    curves: dict[str, Any] = {}
    for case, (samples, behind) in cases.items():
        problem = replace(Problem.from_model(model, samples, recordings=behind, controller=law), nominal=None)
        found[case], torques = {}, {"measured": first.tau[:, 1]}
        for name in METHODS:
            progress(f"virtual TX40, {case}: {name}")
            one = identify(problem, method=name)
            found[case][name] = [test.relative_error(one.values) for test in regressions]
            torques[name] = one.predict(first.q, first.dq, first.ddq)[:, 1]
        t, columns = thinned(first.t, np.column_stack(list(torques.values())))
        curves[case] = {"t": t, **dict(zip(torques, columns, strict=True))}
    return found, curves


def _path(seed: int) -> Reference:
    """Sums of five sines a joint at 1 kHz over 8 s, starting at rest."""
    rng = np.random.default_rng(seed)
    t = np.arange(8000) / 1000.0
    q = np.zeros((len(t), 6))
    for j in range(6):
        for k in range(1, 6):
            w = 2.0 * np.pi * 0.25 * k
            q[:, j] += rng.uniform(-0.5, 0.5) * (1.0 - np.cos(w * t)) / np.sqrt(k)
    return Reference.from_arrays(q, rate=1000.0)


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = [("case", "method", "theirs, %", "ours, %", "settled")]
    logs, settled = result["mistuned_logs"], result["mistuned_settled"]
    for case, ours in result["errors"].items():
        theirs = _published(case)
        for name in (*METHODS, "ols"):
            if name in ours:
                words = f"{settled[name]} of {logs[name]}" if case == "half bandwidth" else ""
                rows.append((case, name, f"{theirs[name]:.2f}" if name in theirs else "-", f"{ours[name]:.2f}", words))
    for case, ours in result["crossed"].items():
        theirs = printed("000", {"actual data": "D.2", "coarse data": "D.4"}[case])
        for name, values in ours.items():
            rows.append((f"{case}, other motions (virtual)", name, " ".join(f"{x:.1f}" for x in theirs.values(name)),
                         " ".join(f"{x:.1f}" for x in values), ""))
    return [*rows, ("coarse data, filtered", "ols", "-", f"{result['filtered_least_squares']:.2f}", "")]
