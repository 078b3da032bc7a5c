"""SCARA (Janot et al., tables 1-7): least squares and instrumental variables, with and without a filter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from dynid.errors import NotPossibleError
from dynid.estimate import Estimate, Problem, identify
from dynid.model import Coulomb, Model, RigidBodies, Viscous
from dynid.recording import Recording, Samples
from dynid.recording.sample_preparation import prepare
from dynid.regression import base_parameters
from dynid.robot import Robot
from dynid.signals import at_times
from dynid.simulation import Poles, Reference, VirtualRobot
from reproductions._printed import Comparison, printed

RATE, LENGTH = 200.0, 0.5  # Hz; m, of the first link
NAMES = ("ZZ1R", "Fv1", "Fc1", "ZZ2", "LMX2", "LMY2", "Fv2", "Fc2")
CASES = {"LS, filtered": "1", "IV, filtered": "3", "LS, unfiltered": "5", "IV, unfiltered": "6",
         "IV, half bandwidth": "7"}  # and their tables
SMALL_ERROR = 0.03  # relative torque error that both methods stay below (s. 4.2)
SLOWER = (0.3, 0.25, 0.2, 0.15)


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    robot = Robot.builtin("scara2")
    model = Model(robot, (RigidBodies(), Viscous(), Coulomb()))
    theta = np.array([p.nominal for p in model.parameters], dtype=float)
    base = base_parameters(model)
    scale = np.array([LENGTH if name.startswith("M") else 1.0 for name in base.names])
    truth = scale * base.reduce(theta)
    law = Poles([1.0, 10.0], 1.0)  # the document's natural frequencies and damping
    t = np.arange(int(60 * RATE)) / RATE
    path = np.column_stack([3 * np.sin(0.6 * t) + 4 * np.sin(1.5 * t + 0.4) - 4 * np.sin(0.4),
                            1.5 * np.sin(1.1 * t) + 0.8 * np.sin(2.7 * t)])
    progress("the virtual SCARA moves for a minute")
    machine = VirtualRobot(model, theta, law, encoder=2.0 * np.pi / 40000, torque_noise=[0.5, 0.05])
    log = machine.record(Reference.from_arrays(path, rate=RATE), seed=1)
    prepared = {"filtered": prepare(log, cutoff=20, decimate=20, slow=0.0),
                "unfiltered": prepare(log, method="none", torque_cutoff="none", slow=0.0)}
    found: dict[str, Estimate] = {}
    for how, samples in prepared.items():
        problem = Problem.from_model(model, samples, base=base, recordings=log, controller=law)
        progress(f"least squares and instrumental variables, {how}")
        found[f"LS, {how}"], found[f"IV, {how}"] = identify(problem, method="ols"), identify(problem, method="iv")
    problem = Problem.from_model(model, prepared["filtered"], base=base, recordings=log, controller=law)
    progress("wrong bandwidths")
    found["IV, half bandwidth"] = identify(problem, method="iv", controller=law.slower(0.5))
    slower: dict[str, str] = {}
    for factor in SLOWER:
        try:
            # The document's own start; left alone, iv goes on to a loop that it assumes, and says so.
            one = identify(problem, method="iv", start="regular", controller=law.slower(factor))
            slower[f"{factor:g}"] = f"settled after {one.diagnostics['iterations']} iterations"
        except NotPossibleError as error:
            slower[f"{factor:g}"] = str(error)
    progress("other starts, and references as regressors")
    more = other_starts(problem, log, found["IV, filtered"], truth[0])
    values = {name: (scale * one.values).tolist() for name, one in found.items()}
    deviations = {name: (scale * one.std).tolist() for name, one in found.items()}
    steps = {name: one.diagnostics.get("iterations") for name, one in found.items()}
    history = [(scale * step.values).tolist() for step in found["IV, filtered"].iterations]
    gap = np.abs(np.subtract(values["LS, filtered"], values["IV, filtered"]))
    both = np.hypot(deviations["LS, filtered"], deviations["IV, filtered"])
    off = {name: abs(column[0] / truth[0] - 1.0) for name, column in values.items()}  # of the first inertia
    error = {name: one.diagnostics["relative_error"] / 100.0 for name, one in found.items()}
    checks = {
        "well filtered, LS and IV agree within two standard errors": bool(np.all(gap <= 2.0 * both)),
        f"well filtered, both have a torque error below 3 %: {100 * error['LS, filtered']:.2f} and "
        f"{100 * error['IV, filtered']:.2f} %": max(error["LS, filtered"], error["IV, filtered"]) < SMALL_ERROR,
        "unfiltered, LS is off by more than half in the first inertia": off["LS, unfiltered"] > 0.5,
        "unfiltered, IV stays within 2 % of it": off["IV, unfiltered"] < 0.02,
        "half the bandwidth gives the first inertia within 2 %": off["IV, half bandwidth"] < 0.02,
        **more,
        **{f"at {factor} of the bandwidth, not settling is said: {words}": "settled after" not in words
           for factor, words in slower.items() if float(factor) < 0.3},
    }
    return {"names": list(NAMES), "truth": truth.tolist(), "values": values, "deviations": deviations, "steps": steps,
            "history": history, "path": {how: _path(found[f"IV, {how}"]) for how in prepared}, "slower": slower,
            "relative_error": error,
            "published": {name: [printed("002", number).value(row, "value") for row in NAMES]
                          for name, number in CASES.items()},
            "printed": _compared(values, deviations, steps, error, history),
            "checks": {words: bool(holds) for words, holds in checks.items()}}


def _path(found: Estimate) -> dict[str, Any]:
    """Figures 8, 9, 11 to 13: per step, errors of the simulated motion (position, velocity, acceleration; by joint)
    relative to the measured motion and to the references, and torque errors by joint, percent."""
    motions = [step.motion for step in found.iterations if step.motion is not None]
    return {"measured": [one.errors.tolist() for one in motions],
            "reference": [one.from_reference.tolist() for one in motions if one.from_reference is not None],
            "torque": [step.relative_error_per_joint.tolist() for step in found.iterations]}


def _compared(values: dict[str, list[float]], deviations: dict[str, list[float]], steps: dict[str, Any],
              error: dict[str, float], history: list[list[float]]) -> list[dict[str, Any]]:
    """Compare tables 1 to 7. The virtual robot has the values of table 1 and an assumed torque noise, so unbiased
    estimates are reproduced by construction. The number of steps, the convergence and the bias of unfiltered LS are
    not."""
    found = {number: Comparison(printed("002", number)) for number in ("1", "2", "3", "4", "5", "6", "7")}
    for name, number in CASES.items():
        table = found[number].table
        if "steps" in table.rows:
            found[number].compare("steps", "value", steps[name], claimed=name == "IV, filtered")
        if "error" in table.rows and number != "6":
            found[number].compare("error", "value", error[name], claimed=False)
    found["2"].compare("error", "value", error["IV, filtered"], claimed=False)
    for name, value, deviation in zip(NAMES, values["LS, unfiltered"], deviations["LS, unfiltered"], strict=True):
        stated = 0.5 * found["5"].table.value(name, "two-sigma")
        found["5"].compare(name, "value", value, noise=2.0 * float(np.hypot(stated, deviation)), claimed=False)
    for name, value, deviation in zip(NAMES, history[0], deviations["IV, filtered"], strict=True):
        stated = 0.5 * printed("002", "3").value(name, "two-sigma")
        found["4"].compare(name, "first", value, noise=2.0 * float(np.hypot(stated, deviation)), claimed=False)
    found["6"].leave_out("computed there with the regressor of the simulated motion", [("error", "value")])
    for number, one in found.items():
        if "start" in one.table.columns:
            one.leave_out("start values, given", [entry for entry in one.table.entries if entry[1] == "start"])
        one.leave_out("the robot is simulated with the printed values, and the noise of the log is not printed"
                      if number != "5" else "the noise of the log is not printed")
    return [one.summary() for one in found.values()]


def other_starts(problem: Problem, log: Recording, iv: Estimate, inertia: float) -> dict[str, bool]:
    """Return whether other start values give the same result, and why references alone do not (tables 1-2, eq. 51, fig.
    8, s. 4.3). inertia: true inertia of the first joint."""
    squares, links = (identify(problem, method="iv", start=start) for start in ("wls", "regular-links"))
    asked = Problem.from_model(problem.model, along_reference(log, problem.data[0]), base=problem.base)
    off = abs(float(identify(asked, method="ols").values[0]) / inertia - 1.0)
    motion = iv.iterations[-1].motion
    assert motion is not None and motion.from_reference is not None
    closer = float(np.min(motion.from_reference / motion.errors))
    return {
        f"{len(squares.iterations)} steps from least squares, at most 2": len(squares.iterations) <= 2,
        "from least squares the same is found, within a tenth of a deviation": same(squares, iv),
        f"{len(links.iterations)} steps from ZZ = 1, at most 3": len(links.iterations) <= 3,
        "from ZZ = 1 the same is found, within a tenth of a deviation": same(links, iv),
        f"the simulated motion is {closer:.2g} times closer to the measured one than to the reference in position, "
        "velocity and acceleration, at least 3": closer >= 3.0,
        f"references as regressors miss the first inertia by {100.0 * off:.0f} %, more than a third": off > 1.0 / 3.0,
    }


def along_reference(log: Recording, samples: Samples) -> Samples:
    """The samples with the commanded motion in place of the measured one."""
    path = Reference.from_recording(log)
    q, dq, ddq = (at_times(samples.t, path.t, x) for x in (path.q, path.dq, path.ddq))
    return replace(samples, q=q, dq=dq, ddq=ddq)


def same(one: Estimate, other: Estimate) -> bool:
    """Return whether two estimates agree within a tenth of the standard errors of the second."""
    return bool(np.all(np.abs(one.values - other.values) <= 0.1 * other.std))


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = [("case", "parameter", "truth", "theirs", "ours", "deviation")]
    steps = {name: printed("002", number).text("steps", "value") for name, number in CASES.items()
             if "steps" in printed("002", number).rows}
    for case, published in result["published"].items():
        rows += [(case, name, f"{truth:.3g}", f"{theirs:.3g}", f"{ours:.4g}", f"{deviation:.2g}")
                 for name, truth, theirs, ours, deviation in zip(
                     result["names"], result["truth"], published, result["values"][case], result["deviations"][case],
                     strict=True)]
        if case in steps:
            rows.append((case, "steps", "", steps[case], str(result["steps"][case]), ""))
    return rows
