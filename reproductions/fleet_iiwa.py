"""Fleet of Ardiani, appendix F, with virtual KUKA iiwas: the model of one arm predicts the logs of another."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.fleet.result import FleetResult
from dynid.fleet.run import run_fleet
from dynid.fleet.settings import FleetSettings
from dynid.recording.write import write_npz
from dynid.report.drawing import thinned
from reproductions._printed import Comparison, printed
from reproductions.online_iiwa import Machine, machine, random_points

ROBOTS = ("robot 1", "robot 2", "robot 3", "robot 1, again")  # the last has the friction of the first
MOTIONS, POINTS = 4, 10
SERVED, NOT_SERVED = (1, 2, 3), (0, 4, 5, 6)  # joints 2 to 4, and 1, 5, 6, 7, from 0
# Dry friction, N m, of a drive as it should be, and by which factor each robot's is that: robot 2 is the odd one (F.3).
DRY, VISCOUS = np.array([1.0, 1.1, 0.35, 0.35, 0.3, 0.35, 0.25]), np.array([0.3, 0.4, 0.1, 0.15, 0.05, 0.05, 0.03])
FACTORS = {"robot 1": (1.0, 1.05, 0.95, 1.0, 1.05, 0.95, 1.0), "robot 2": (2.2, 2.0, 2.1, 1.9, 2.2, 2.4, 2.0),
           "robot 3": (1.15, 0.9, 1.1, 0.85, 0.85, 1.1, 0.85)}
FACTORS["robot 1, again"] = FACTORS["robot 1"]


def mean_error(model: int, robot: int) -> list[float]:
    """Return table F.1, percent: the error of one robot's model on the logs of another by joint, mean of three
    motions."""
    table = printed("000", "F.1")
    return [float(np.mean([table.value(f"model {model}, robot {robot}, motion {k}", joint) for k in (1, 2, 3)]))
            for joint in table.columns]


def theta_of(made: Machine, name: str) -> Array:
    """Return the parameters of a robot, with the links of its type and individual friction."""
    theta = made.theta.copy()
    for j, factor in enumerate(FACTORS[name]):
        theta[made.model.parameters.index(f"Fc{j + 1}")] = factor * DRY[j]
        theta[made.model.parameters.index(f"Fv{j + 1}")] = factor * VISCOUS[j]
    return theta


def written(made: Machine, folder: Path, progress: Callable[[str], None]) -> tuple[FleetSettings, dict[str, Any]]:
    """Write the logs of all robots to files, and return the fleet. For the first motion of each robot, return the
    commanded positions, rad, and torques, N m, that are drawn."""
    tables, curves = [], {}
    for k, name in enumerate(ROBOTS):
        progress(f"{name} moves")
        files = []
        for motion in range(MOTIONS):
            log = made.log(random_points(made.model.robot, motion, POINTS), 10 * k + motion, theta=theta_of(made, name))
            files.append(str(folder / f"{k}-{motion}.npz"))
            write_npz(log, Path(files[-1]))
            if motion == 0:
                t, columns = thinned(log.t, np.hstack([log.reference, log.tau]), 1200)
                curves[name] = {"t": t, "commanded": columns[:7], "torques": columns[7:]}
        tables.append({"name": name, "logs": files, "motions": [f"motion {m + 1}" for m in range(MOTIONS)]})
    terms = {"friction": ["viscous", "coulomb", "offset"]}
    fleet = {"robot": "kuka-iiwa14", "model": terms, "robots": tables, "prepare": {"cutoff": 8.0}}
    return FleetSettings.from_values(fleet), curves


def run(progress: Callable[[str], None]) -> dict[str, Any]:
    made = machine()
    with tempfile.TemporaryDirectory() as folder:
        settings, curves = written(made, Path(folder), progress)
        result = run_fleet(settings, progress=progress)
    errors = result.cross.between()
    base = result.out.pooling.base
    bodies = [k for k, c in enumerate(base.independent) if base.parameters.items[c].body is not None]
    differing = [base.names[k] for k in bodies if result.scatter.differs[k] == "robots"]
    own = np.array([errors[k, k] for k in range(len(ROBOTS))])
    parts = [one.part for one in result.out.differences if one.robot == "robot 2"]
    return {
        "errors": errors.tolist(), "joints": list(result.cross.joints), "sentences": list(result.sentences),
        "differ": {name: differs for name, differs in zip(base.names, result.scatter.differs, strict=True)},
        "stand_out": list(result.out.robots), "elapsed_s": result.seconds, "curves": curves,
        "printed": [_left_out()], "checks": {},
        "demonstrations": checks(result, errors, own, differing, len(bodies), parts)}


def _left_out() -> dict[str, Any]:
    compared = Comparison(printed("000", "F.1"))
    compared.leave_out("friction of the three robots is not printed, and that of the virtual ones is chosen here")
    return compared.summary()


def checks(result: FleetResult, errors: Array, own: Array, differing: Sequence[str], bodies: int,
           parts: Sequence[str]) -> dict[str, bool]:
    others = [(i, j) for i in range(3) for j in range(3) if i != j]
    crossed = np.array([errors[i, j] / own[j] for i, j in others if 1 in (i, j)])
    return {
        "joints 2 to 4: every robot's model serves every other (below 10 %)": bool(
            np.all(errors[:, :, SERVED] < 10.0)),
        "joints 1, 5, 6, 7: models of robots 1 and 3 do not serve robot 2, nor its model them (over twice the own "
        "error)": bool(np.all(crossed[:, NOT_SERVED] > 2.0)),
        "the robot with the friction of the first serves it in every joint (within 20 %)": bool(
            np.all(errors[3, 0] < 1.2 * own[0]) and np.all(errors[0, 3] < 1.2 * own[3])),
        "robot 2 alone stands out": result.out.robots == ("robot 2",),
        "its drives are named, none of its links": bool(parts) and all(part.startswith("drive") for part in parts),
        f"inertias are found equal: at most one of {bodies} differs from robot to robot": len(differing) <= 1,
        "commanded positions are the same (F.2, within 1 %), measured torques of joint 1 are not (F.3, over 20 %)": (
            result.commanded is not None and bool(result.commanded.position_difference.max() < 1.0)
            and bool(result.commanded.torque_difference[0] > 20.0)),
        "no robot is said to have changed over its logs": not result.changes and not result.odd_logs,
    }


def table(result: dict[str, Any]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("model of", "on logs of", "", *(f"joint {j}" for j in range(1, 8)))]
    for i, j in ((i, j) for i in (1, 2, 3) for j in (1, 2, 3)):
        rows.append((f"robot {i}", f"robot {j}", "printed", *(f"{x:.1f}" for x in mean_error(i, j))))
        rows.append(("", "", "ours", *(f"{x:.1f}" for x in result["errors"][i - 1][j - 1])))
    rows.append(("robot 1, again", "robot 1", "ours", *(f"{x:.1f}" for x in result["errors"][3][0])))
    return rows
