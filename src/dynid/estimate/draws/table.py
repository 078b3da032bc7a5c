"""Drawn models as one table: all parameters, and the arrays by which simulators randomise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from dynid.errors import DynidError
from dynid.escape import csv_line
from dynid.estimate.draws.posterior import Draws
from dynid.estimate.simulators.friction_fit import PASSIVE, JointMotion, passive_table
from dynid.files import write_whole
from dynid.model import robot_model
from dynid.robot import inertia as ten
from dynid.robot.pose import quaternion

TABLE_SUFFIXES = (".npz", ".csv")


def draw_arrays(draws: Draws, motion: JointMotion | None = None) -> dict[str, Any]:
    """Return the arrays of a table of draws, by name.

    All parameters: `theta` (draws, parameters) in the order of `names`, `base` (draws, base) in that of `base_names`.

    Of each link in `bodies`: `mass` (draws, bodies), kg; `com` (draws, bodies, 3), m, in the link frame; `inertia`
    (draws, bodies, 6), kg m^2, XX YY ZZ XY XZ YZ about the centre of mass in the axes of the link frame; the same as
    `diaginertia` (draws, bodies, 3) with `iquat` (draws, bodies, 4), w x y z.

    Of each joint in `joints`: `armature`, `damping` and `frictionloss` (draws, joints).

    Of each draw: `consistent_as_drawn` and `kept_base` (draws,) state how it was made consistent, `base_distance`
    (draws,) by how many standard errors its base values were moved.

    Args:
        draws: of an estimate.
        motion: over which friction is approximated that simulators cannot represent; random states without it.
    """
    estimate = draws.estimate
    parameters = estimate.base.parameters
    places = np.array(list(parameters.bodies.values()), dtype=np.int64).reshape(-1, 10)
    mass, com, full = ten.to_mujoco(draws.theta[:, places])
    values, axes = np.linalg.eigh(ten.symmetric(full[..., [0, 3, 4, 1, 5, 2]]))
    axes = axes * np.where(np.linalg.det(axes) < 0, -1.0, 1.0)[..., None, None]
    turns = np.array([quaternion(one) for one in axes.reshape(-1, 3, 3)]).reshape(*mass.shape, 4)
    found: dict[str, Any] = {
        "names": np.array(parameters.names), "units": np.array(parameters.units), "theta": draws.theta,
        "base_names": np.array(estimate.names), "base": draws.values, "consistent_as_drawn": draws.as_drawn,
        "kept_base": draws.kept_base, "base_distance": draws.distance, "seed": np.array(draws.seed),
        "bodies": np.array(list(parameters.bodies), dtype=str), "mass": mass, "com": com, "inertia": full,
        "diaginertia": values, "iquat": turns}
    model = robot_model(estimate.model)
    if model is not None:
        passive = passive_table(model, draws.theta, motion or JointMotion.random(model.robot))
        found |= {"joints": np.array(model.joint_names), **{name: passive[name] for name in PASSIVE}}
    return found


def save_draws(draws: Draws, path: str | Path, motion: JointMotion | None = None) -> None:
    """Write draws as a table: .npz with all arrays of `draw_arrays`, or .csv with one row per draw and one column per
    parameter.

    Raises:
        DynidError: if the file has another suffix.
    """
    path = Path(path)
    if path.suffix not in TABLE_SUFFIXES:
        raise DynidError(f"draws are written as .npz or .csv, not as '{path.name}'", "name a file with such a suffix",
                         code="unknown-table")
    if path.suffix == ".npz":
        with write_whole(path, "wb") as file:
            np.savez_compressed(file, **draw_arrays(draws, motion))
        return
    names = draws.estimate.base.parameters.names
    with write_whole(path) as file:
        file.write(csv_line(names))
        for row in draws.theta:
            file.write(csv_line([repr(float(value)) for value in row]))
