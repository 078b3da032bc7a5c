"""Unknowns of an online payload estimate: the load, and the uncertainties of the robot.

Rows of loaded equations are [W, W_F, W_L] (dbeta, phi, theta) = tau - W beta_0: errors dbeta of the robot identified
without load, with its covariance and that of friction changes; load-dependent friction phi; and the load's ten
parameters theta. Each has a prior of mean zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array, Ints
from dynid.errors import ModelError
from dynid.estimate import Estimate
from dynid.payloads.loaded_equations import LoadedModel
from dynid.payloads.uncertainty import FRICTION_DEVIATION, LEAST_FRICTION, LOAD_FRICTION_DEVIATION
from dynid.regression.known import Prior
from dynid.robot import BASE, Robot

# of an arm's reach: how far from its frame a load's matter is thought to be, where nobody says
_LOAD_DISTANCE_OF_REACH = 0.2
_STANDARD_GRAVITY = 9.81  # m/s^2
LEAST_SHARE = 1e-6  # of the largest standard deviation of the robot's parameters: none is known better


@dataclass(frozen=True, eq=False)
class Unknowns:
    """The prior on the columns of the loaded equations.

    Attributes:
        prior: Independent rows, each with standard deviation one, about the values without load.
        known: These values (columns,), zero for columns that are not the robot's.
        robot, friction, load: Their column indices, and their row indices in the prior. own: Share (b, b) of the
        robot's prior variance that comes from the covariance of its estimate; the rest is the change of friction under
        load.
        sizes: Standard deviations of the load's ten parameters (10,).
    """

    prior: Prior
    known: Array
    robot: Ints
    friction: Ints
    load: Ints
    own: Array
    sizes: Array

    @staticmethod
    def of(estimate: Estimate, made: LoadedModel, largest: tuple[float, float]) -> Unknowns:
        """Return the unknowns of a robot that was identified without load.

        largest: standard deviations of mass (kg) and of the distance of a load from its frame (m).
        """
        count = len(made.base)
        more = _friction_deviations(estimate, made)
        whole = estimate.covariance + np.diag(more ** 2)
        size = np.sqrt(np.maximum(np.diag(whole), 1e-300))
        values, vectors = np.linalg.eigh(whole / np.outer(size, size))
        root = np.sqrt(np.maximum(values, LEAST_SHARE ** 2 * values.max(initial=0.0)))
        mass, length = largest
        sizes = mass * np.array([length ** 2] * 6 + [length] * 3 + [1.0])
        rows, known = np.zeros((count, count)), np.zeros(count)
        rows[np.ix_(made.robot, made.robot)] = back = (vectors / root).T / size
        rows[made.friction, made.friction] = 1.0 / LOAD_FRICTION_DEVIATION
        rows[made.load, made.load] = 1.0 / sizes
        known[made.robot] = estimate.values
        return Unknowns(Prior(rows, rows @ known, {}), known, made.robot, made.friction, made.load,
                        back @ estimate.covariance @ back.T, sizes)


def _friction_deviations(estimate: Estimate, made: LoadedModel) -> Array:
    """Return the standard deviations of changes of each base parameter under load (b,): friction and offsets by a
    fifth, and torques by at least a fiftieth of the joint's torque during identification."""
    base, torque = estimate.base, training_torques(estimate)
    alone = np.count_nonzero(base.matrix, axis=1) == 1
    found = np.zeros(len(base))
    for k, place in enumerate(base.independent):
        one = base.parameters.items[place]
        if alone[k] and one.kind.group in ("friction", "offset") and base.ridge[k] == 0:
            least = LEAST_FRICTION * torque[one.owner] if one.unit in ("N m", "N") else 0.0
            found[k] = max(FRICTION_DEVIATION * abs(float(estimate.values[k])), least)
    return found


def training_torques(estimate: Estimate) -> Array:
    """Return the RMS torque of each joint (dof,) in the data of the robot's identification, N m or N."""
    error = np.array(estimate.diagnostics.relative_error_per_joint, dtype=float)
    left = np.array(estimate.diagnostics.residual_deviation_per_joint, dtype=float)
    return np.where(error > 0.0, 100.0 * left / np.where(error > 0.0, error, 1.0), 0.0)


def largest_load(estimate: Estimate, robot: Robot, frame: str,
                 given: tuple[float, float] | None) -> tuple[float, float]:
    """Return scales of mass (kg) and distance of a load from its frame (m): as given; or the robot file's payload, or
    the weight that loads the strongest joint at full reach, and a fifth of that reach."""
    if given is not None:
        if len(given) != 2 or not all(np.isfinite(x) and x > 0.0 for x in given):
            raise ModelError("the largest expected load must be a mass in kg and a distance in m above zero, got "
                             f"{given}", code="bad-largest-load")
        return float(given[0]), float(given[1])
    lever = load_lever(robot, frame)
    torque = float(training_torques(estimate).max(initial=0.0))
    mass = robot.payload or torque * _LOAD_DISTANCE_OF_REACH / (_STANDARD_GRAVITY * lever)
    return max(mass, 1e-3), lever


def load_lever(robot: Robot, frame: str) -> float:
    """Return the assumed distance of a load from its frame, m: a fifth of the arm's reach, or of that of the longest
    limb of a robot with a free base."""
    place = robot.frame(frame)
    reach = float(np.linalg.norm(place.pose[:3, 3])) + _reach(robot, place.body)
    if robot.has_free_base:
        reach = max(reach, *(_reach(robot, body) for body in range(robot.dof)))
    return _LOAD_DISTANCE_OF_REACH * max(reach, 0.1)


def _reach(robot: Robot, body: int) -> float:
    """Return the length of the links between the base and a body, m."""
    reach = 0.0
    while body != BASE and body < robot.dof:
        joint = robot.joints[body]
        reach += float(np.linalg.norm(joint.before[:3, 3]) + np.linalg.norm(joint.after[:3, 3]))
        body = joint.parent
    return reach
