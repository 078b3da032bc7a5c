"""Structural identifiability: directions in parameter space along which the simulated model does not change. The
compiled simulation reads a table of numbers that is computed from the parameters. Parameters that give the same numbers
cannot be distinguished by any data. This is tested on the numbers, because finite differences of simulations with dry
friction are inexact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dynid.actuators import columns as c
from dynid.actuators.problem import ChainProblem, joint_numbers
from dynid.arrays import Array

STRUCTURE_STEP = 1e-4  # of a parameter's size: step of the differences of the numbers, which are smooth
STRUCTURE_TOLERANCE = 1e-6  # of the largest singular value: below it the numbers do not change
_LOAD_COLUMNS = [c.LOAD_MOTOR, c.LOAD_EXTERNAL, c.STRIBECK_LOAD_MOTOR, c.STRIBECK_LOAD_EXTERNAL, c.QUADRATIC_MOTOR,
                 c.QUADRATIC_EXTERNAL]


def unchanged_directions(problem: ChainProblem, x: Array, scale: Array,
                         settings: Sequence[Mapping[str, float]] = ({},)) -> Array:
    """Return directions (unknowns, m) of the scaled unknowns along which no number of the simulation changes.

    Args:
        problem: the unknowns; its logs are not used.
        x: values of the unknowns (unknowns,).
        scale: sizes of the unknowns (unknowns,).
        settings: gains of the logs.
    """
    rows = []
    for k in range(len(x)):
        low, high = x.copy(), x.copy()
        low[k], high[k] = x[k] - STRUCTURE_STEP * scale[k], x[k] + STRUCTURE_STEP * scale[k]
        rows.append(np.concatenate([_numbers(problem, high, own) - _numbers(problem, low, own) for own in settings]))
    slopes = np.array(rows).T / (2.0 * STRUCTURE_STEP)
    size = np.max(np.abs(slopes), axis=1, keepdims=True)
    _, singular, directions = np.linalg.svd(slopes / np.where(size > 0, size, 1.0), full_matrices=True)
    rank = int(np.sum(singular > STRUCTURE_TOLERANCE * singular[0])) if len(singular) and singular[0] > 0 else 0
    return directions[rank:].T


def _numbers(problem: ChainProblem, x: Array, gains: Mapping[str, float]) -> Array:
    """Return the simulation inputs of all joints; inputs that act only as a sum are added."""
    table = np.zeros((problem.dof, c.JOINT_COLUMNS))
    for j, values in enumerate(problem.values(x)):
        table[j] = joint_numbers(problem.law, {**values, **gains})
        is_unlimited = table[j, c.U_LIMIT] == np.inf
        table[j, ~np.isfinite(table[j])] = 0.0
        if is_unlimited:  # gains act as products with that of the torque
            table[j, [c.KP, c.KI, c.KD, c.FEED]] *= table[j, c.TORQUE_GAIN]
            table[j, c.TORQUE_GAIN] = 1.0
        if not np.any(table[j, _LOAD_COLUMNS]):  # then back-EMF and damping by the law are dampings like any other
            table[j, c.VISCOUS] += table[j, c.BACK_EMF]
            table[j, c.BACK_EMF] = 0.0
            if table[j, c.FOLLOW] == 0.0 and is_unlimited:
                table[j, c.VISCOUS] += table[j, c.KD]
                table[j, c.KD] = 0.0
    links = [values.get("link_scale", 1.0) for values in problem.values(x)]
    return np.concatenate([table.ravel(), links])


def projected(information: Array, directions: Array) -> Array:
    """Return the information (k, k) with orthonormal directions (k, m) removed."""
    keep = np.eye(len(information)) - directions @ directions.T
    return keep @ information @ keep
