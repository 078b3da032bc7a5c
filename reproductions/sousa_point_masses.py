"""WAM and random robots (Sousa, table 6.2, fig. 6.2-6.3): point masses and SQP compared with the cone programme.

The thesis' log is not published. A WAM with the parameters and friction of table 4.9 moves along the printed motion A
with the torque errors of table 4.7. As in the thesis, only inertial parameters are fitted, so friction remains in the
residual.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from dynid.consistency import Box, Consistency, Fit, fit
from dynid.consistency import test as is_possible
from dynid.consistency.literature import fit_points, fit_sqp
from dynid.estimate.linear import joint_weights
from dynid.model import Model, Parameter, Parameters, RigidBodies, make_terms
from dynid.regression import BaseParameters, Stacked, TorqueEquations, base_parameters, fold
from dynid.robot import Robot
from dynid.robot import inertia as ten
from reproductions._printed import Comparison, printed
from reproductions._sousa import BOXES, TRAJECTORY_A, WAM
from reproductions.sousa_regression import moved

LINKS = (1, 2, 4, 7, 10, 15, 20, 30, 40)
MOST_SQP, STEPS = 7, (50, 100)  # links; iterations, of which more are to bring nothing to be seen
ROWS = 1000 * 10  # of a random regressor (s. 6.3.2)
# Deviation of the random torques' noise, which is not printed, beside regressors of one and parameters of about one:
# with 1 least squares is possible at two links, against the text. How much more point masses cost hangs on it: 15 times
# what cones do with 3, twice with 10, 1.2 times with 30.
NOISE = 10.0
HALF = 0.5  # m, half the edge of every random link's box


def on_the_wam() -> tuple[dict[str, float], dict[str, Any]]:
    """Return relative errors, percent, of inertial parameters alone, and whether the three sets are consistent."""
    robot = Robot.builtin("barrett-wam")
    whole = Model(robot, make_terms(robot, defaults=True))
    spatial = Consistency(whole.parameters, form="spatial", margin=0.0)
    truth = is_possible(spatial, WAM[:, 2], base_parameters(whole), tolerance=1e-4).theta
    samples = moved(whole, truth, TRAJECTORY_A, [0, 0])
    model = Model(robot, (RigidBodies(),))
    base = base_parameters(model)
    regression = fold(TorqueEquations.from_model(model, samples, base))
    stacked = regression.stack(joint_weights(regression))
    consistency = Consistency(model.parameters, form="spatial", margin=0.0)
    boxes = {body: Box(*box) for body, box in zip(consistency.bodies, BOXES, strict=True)}
    free = np.linalg.solve(stacked.r, stacked.rho)
    found = {"cones": fit(consistency, base, stacked), "point masses": fit_points(consistency, base, stacked,
                                                                                  boxes=boxes)}
    size = float(np.sum(stacked.rho ** 2)) + stacked.rest
    misfits = {"weighted LS": stacked.misfit(free), **{way: one.misfit for way, one in found.items()}}
    facts = {"weighted LS": is_possible(consistency, free, base).possible,
             **{way: one.smallest_eigenvalue >= -1e-12 for way, one in found.items()}}
    return {way: 100.0 * float(np.sqrt(one / size)) for way, one in misfits.items()}, facts


def random_problem(links: int, seed: int) -> tuple[Consistency, BaseParameters, Stacked]:
    """Return a random regressor of ten parameters per link and torques with noise (s. 6.3.2)."""
    rng = np.random.default_rng([seed, links])
    kinds = list(zip(ten.NAMES, ten.UNITS, strict=True))
    parameters = Parameters(tuple(Parameter(f"{name}{k}", unit, k - 1, f"link{k}", body=f"link{k}")
                                  for k in range(1, links + 1) for name, unit in kinds))
    theta = []
    for _ in range(links):
        points = np.column_stack([rng.uniform(-HALF, HALF, (8, 3)), np.ones(8)])
        theta.append(ten.from_pseudo_inertia((points * rng.uniform(0.0, 0.5, (8, 1))).T @ points))
    truth, width = np.concatenate(theta), 10 * links
    matrix = rng.normal(size=(ROWS, width))
    torque = matrix @ truth + NOISE * rng.normal(size=ROWS)
    q, r = np.linalg.qr(matrix)
    rho = q.T @ torque
    base = BaseParameters(parameters, np.arange(width), np.eye(width))
    consistency = Consistency(parameters, margin=0.0, centres={})
    return consistency, base, Stacked(r, rho, float(torque @ torque - rho @ rho), ROWS)


def timed(work: Callable[[], Fit]) -> tuple[Fit, float]:
    """Return the result of a call and its CPU time, s."""
    start = time.process_time()
    found = work()
    return found, time.process_time() - start


def over_links(progress: Callable[[str], None]) -> list[dict[str, Any]]:
    """Growth of the error over that of least squares, percent, and times of each method, by number of links."""
    rows = []
    for links in LINKS:
        progress(f"{links} random links")
        consistency, base, stacked = random_problem(links, 0)
        _ = consistency.blocks
        ways: dict[str, Callable[[], Fit]] = {
            "cones": lambda c=consistency, b=base, s=stacked: fit(c, b, s),
            "point masses": lambda c=consistency, b=base, s=stacked: fit_points(c, b, s)}
        if links <= MOST_SQP:
            ways |= {f"SQP, {most} steps": lambda c=consistency, b=base, s=stacked, m=most: fit_sqp(
                c, b, s, constraint="sylvester", iterations=m) for most in STEPS}
        found = {way: timed(work) for way, work in ways.items()}
        least = float(np.sqrt(stacked.rest))
        free = np.linalg.solve(stacked.r, stacked.rho)
        rows.append({
            "links": links, "least_squares_possible": bool(consistency.slack(free) >= 0.0),
            "growth": {way: 100.0 * (float(np.sqrt(one.misfit)) / least - 1.0) for way, (one, _) in found.items()},
            "possible": {way: bool(one.smallest_eigenvalue >= -1e-9) for way, (one, _) in found.items()},
            "seconds": {way: seconds for way, (_, seconds) in found.items()}})
    return rows


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    progress("the WAM without friction in the model")
    error, possible = on_the_wam()
    rows = over_links(progress)
    more = {way: error[way] - error["weighted LS"] for way in ("cones", "point masses")}
    compared = Comparison(printed("001", "6.2"))
    for way, value in error.items():
        compared.compare(way, "error", value, claimed=False)
    optimal = {f"WAM: weighted LS {error['weighted LS']:.2f} < cones {error['cones']:.2f} < point masses "
               f"{error['point masses']:.2f} %": error["weighted LS"] <= error["cones"] < error["point masses"],
               "no method finds a physically consistent robot of less error than cones": all(
                   growth >= row["growth"]["cones"] * (1 - 1e-6) - 1e-6 for row in rows
                   for way, growth in row["growth"].items() if row["possible"][way])}
    checks = {
        f"WAM: points cost {more['point masses'] / more['cones']:.1f} times what cones do, more than 2 (15 printed)":
            more["point masses"] > 2.0 * more["cones"],
        "WAM: least squares cannot exist, the others can": not possible["weighted LS"] and possible["cones"]
        and possible["point masses"]}
    return {"relative_error": error, "printed": [compared.summary()], "curve": rows,
            "checks": {words: bool(holds) for words, holds in {**checks, **_curve_checks(rows)}.items()},
            "demonstrations": {words: bool(holds) for words, holds in optimal.items()}}


def _curve_checks(rows: list[dict[str, Any]]) -> dict[str, bool]:
    several = [row for row in rows if row["links"] > 1]
    ratio = float(np.median([row["growth"]["point masses"] / row["growth"]["cones"] for row in several]))
    last = {way: seconds for way, seconds in rows[-1]["seconds"].items()}
    sqp = [row for row in several if len(row["growth"]) > 2]
    off = [row["growth"][way] / row["growth"]["cones"] for row in sqp for way in row["growth"] if way[:3] == "SQP"]
    slower = [row["seconds"][way] > row["seconds"]["cones"] for row in sqp for way in row["growth"] if way[:3] == "SQP"]
    return {
        "random robots of several links: least squares can never exist": not any(
            row["least_squares_possible"] for row in several),
        f"point masses always can exist, and their error grows {ratio:.1f} times as much as that of cones, more than "
        "1.2, about 2 as printed": all(row["possible"]["point masses"] for row in rows) and ratio > 1.2,
        f"the growth of SQP is {min(off):.0f} to {max(off):.0f} times that of cones, from robot to robot (printed: now "
        "near, now far)": max(off) > 1.5 * min(off) > 1.5,
        "SQP is slower than cones": all(slower),
        f"{rows[-1]['links']} links by cones in {last['cones']:.2f} s, below 5": last["cones"] < 5.0}


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("", "printed", "ours", "", "")]
    rows += [(f"WAM, {way}, %", printed("001", "6.2").text(way, "error"), f"{error:.2f}", "", "")
             for way, error in result["relative_error"].items()]
    rows.append(("links: growth of the error, %; CPU ms", "cones", "point masses", *(f"SQP, {most}" for most in STEPS)))
    for row in result["curve"]:
        cells = [f"{row['growth'][way]:.3f}; {1e3 * row['seconds'][way]:.1f}" if way in row["growth"] else ""
                 for way in ("cones", "point masses", *(f"SQP, {most} steps" for most in STEPS))]
        rows.append((str(row["links"]), *cells))
    return rows
