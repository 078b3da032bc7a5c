"""WAM (Sousa, fig. 6.4): parameters removed one by one until least squares is consistent, and constrained regression.

The thesis' log is not published. Instead, a WAM with the parameters of table 4.9 moves along Fourier series, with
torque noise that gives about the relative error of the thesis. The study therefore checks the conclusion and not the
digits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dynid.consistency import Consistency, fit
from dynid.consistency import test as is_possible
from dynid.consistency.literature.points import reduction
from dynid.estimate import Problem, essential
from dynid.excitation import FourierSeries
from dynid.model import Model, make_terms
from dynid.recording import Samples
from dynid.regression import TorqueEquations, base_parameters, fold
from dynid.robot import Robot
from reproductions._printed import Comparison, printed
from reproductions._sousa import WAM

PERIOD, RATE, SECONDS = 10.0, 100.0, 30.0
ESSENTIAL_PERCENT = 10.0  # relative standard error above which a parameter is not essential
NOISE = 0.045  # of each joint's torque: the thesis' regression leaves 4.57 %


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    progress("a WAM that can exist, near the printed constrained solution")
    robot = Robot.builtin("barrett-wam")
    model = Model(robot, make_terms(robot, defaults=True))
    base = base_parameters(model)
    consistency = Consistency(model.parameters, form="spatial", margin=0.0)
    truth = is_possible(consistency, WAM[:, 2], base, tolerance=1e-4).theta
    progress("moving it")
    regression = fold(TorqueEquations.from_model(model, wam_log(model, truth), base))
    stacked = regression.stack()
    free = np.linalg.solve(stacked.r, stacked.rho)
    best = fit(consistency, base, stacked)
    progress("leaving out parameters until least squares is possible")
    steps = reduction(consistency, base, stacked)
    last = steps[-1]
    error = {"least squares": regression.relative_error(free), "constrained": regression.relative_error(best.beta),
             "reduced": regression.relative_error(last.beta)}
    first = is_possible(consistency, free, base)
    progress("essential parameters drawn to the maker's drawings in the null space")
    drawn = _essential_drawn(model, truth, consistency)
    return {
        "relative_error": error, "left_out": last.removed, "base_parameters": len(base),
        "published": {name: printed("001", "s. 6.4").value(name, "value") for name in printed("001", "s. 6.4").rows},
        "printed": [_compared(last.removed, error)],
        "reasons": list(first.reasons), "essential_drawn": drawn,
        "steps": [{"left_out": step.removed, "distance": step.distance,
                   "relative_error": regression.relative_error(step.beta)} for step in steps],
        "checks": {sentence: bool(holds) for sentence, holds in {
            "least squares with all parameters is not possible, proved by a certificate":
                not first.possible and first.certificate is not None and first.certificate.verify(),
            f"it becomes possible only after leaving out many parameters: {last.removed} of {len(base)}":
                0.1 * len(base) <= last.removed < len(base) and last.distance <= 1e-6,
        }.items()},
        "demonstrations": {  # of drawings that are off by a tenth; the document reports it of other robots
            f"essential parameters drawn to drawings in the null space (Gautier et al. 2013): with all {len(base)} "
            f"parameters {drawn['all']['wrong_links']} links are impossible, with the {drawn['essential']['kept']} "
            f"essential ones {drawn['essential']['wrong_links']}":
                drawn["essential"]["wrong_links"] <= drawn["all"]["wrong_links"],
            # both hold for any log, by optimality
            "the error is least for least squares, then constrained, then reduced: "
            f"{', '.join(f'{x:.3f}' for x in error.values())} %": bool(
                error["least squares"] <= error["constrained"] < error["reduced"])}}


def _essential_drawn(model: Model, truth: np.ndarray, consistency: Consistency) -> dict[str, Any]:
    """Return the inconsistent links if all parameters, or only the essential ones, are regularised toward the
    manufacturer's drawings. The drawings are consistent, and their masses are wrong by a tenth."""
    problem = Problem.from_model(model, wam_log(model, truth))
    drawings, rng = truth.copy(), np.random.default_rng(1)
    for columns in model.parameters.bodies.values():
        drawings[columns] *= rng.uniform(0.9, 1.1)  # a body of another density
    found = {}
    for name, threshold in (("all", 1e12), ("essential", ESSENTIAL_PERCENT)):
        one = essential(problem, threshold=threshold)
        theta = one.toward(drawings)
        wrong = {violation.link for violation in consistency.violations(theta) if violation.link}
        found[name] = {"kept": len(one.kept), "wrong_links": len(wrong), "relative_error": one.error_after}
    return found


def _compared(left_out: int, error: dict[str, float]) -> dict[str, Any]:
    """Numbers of s. 6.4. The noise of the torques is set to 4.5 %, so that the error of least squares is given; how far
    the two others are above it is not."""
    table = printed("001", "s. 6.4")
    compared = Comparison(table)
    compared.compare("left out", "value", left_out, claimed=False)
    for name in ("constrained", "reduced"):
        above = error[name] - error["least squares"]
        compared.compare(name, "value", table.value("least squares", "value") + above, claimed=False)
    compared.leave_out("the noise of the simulated torques is set to it")
    return compared.summary()


def wam_log(model: Model, theta: np.ndarray) -> Samples:
    """A noisy log along three Fourier series."""
    rng = np.random.default_rng(4)
    t = np.arange(round(SECONDS / 3 * RATE)) / RATE
    parts = []
    for _ in range(3):
        sines, cosines = rng.uniform(-0.45, 0.45, (2, model.dof, 5))
        parts.append(FourierSeries(sines, cosines, rng.uniform(-0.5, 0.5, model.dof), PERIOD, 1.5).at(t))
    q, dq, ddq = (np.concatenate([getattr(part, name) for part in parts]) for name in ("q", "dq", "ddq"))
    tau = model.inverse_dynamics(theta, q, dq, ddq)
    size = np.sqrt(np.mean(tau ** 2, axis=0))
    return Samples.from_arrays(q, dq, ddq, tau + NOISE * size * rng.normal(size=tau.shape), rate=RATE)


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows = [("", "published", "ours")]
    published = printed("001", "s. 6.4")
    rows += [(f"relative error, {name}, %", published.text(name, "value"), f"{error:.2f}")
             for name, error in result["relative_error"].items()]
    return [*rows, ("parameters left out", published.text("left out", "value"),
                    f"{result['left_out']} of {result['base_parameters']}")]
