"""Find an interior point of the consistent set, or the contradicting conditions if there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from dynid.arrays import Array
from dynid.consistency.blocks import ConeConstraint
from dynid.consistency.consistency import LENGTH, Consistency
from dynid.consistency.program import solve_program
from dynid.errors import NotPossibleError
from dynid.model import Parameters
from dynid.robot import inertia as ten

# Cache of interior points, by the parameters and conditions of the set.
_FOUND_POINTS: WeakKeyDictionary[Parameters, dict[Any, Array]] = WeakKeyDictionary()
_NO_ROOM = 1e-7  # in the solver's units: a kilogram, a decimetre
_CONTRADICTION_SHARE = 1e-4  # of the largest multiplier: above it, a condition is part of a contradiction


def scales(consistency: Consistency, matrix: Array | None = None) -> Array:
    """Return the unit (parameters,) of each parameter in the cone solver: for bodies, 1 kg and 0.1 m. matrix (k,
    parameters): matrix of the fit; friction and other parameters are scaled by their effect on torques."""
    scale = np.ones(len(consistency.parameters))
    if matrix is not None:
        norms = np.linalg.norm(matrix, axis=0)
        scale = np.where(norms > 0, norms.max() / np.where(norms > 0, norms, 1.0), 1.0) * 1e-2
        scale = np.clip(scale, 1e-4, 1e2)
    for columns in consistency.bodies.values():
        scale[columns] = [LENGTH ** 2] * 6 + [LENGTH] * 3 + [1.0]
    return scale


def interior_point(consistency: Consistency) -> Array:
    """Return standard parameters (parameters,) well inside the consistent set; equal sets share a cached result. Raise
    an error that names the contradicting conditions if the set is empty."""
    if consistency.centres:  # limits on centres are not hashable
        return _interior_point(consistency)
    found = _FOUND_POINTS.setdefault(consistency.parameters, {})
    key = (consistency.form, consistency.margin, consistency.masses, consistency.positive, consistency.heaviest,
           tuple(consistency.known.items()), tuple(consistency.largest.items()), tuple(consistency.intervals.items()),
           tuple((name, rows.tobytes()) for name, rows in consistency.dissipating.items()))
    if key not in found:
        found[key] = _interior_point(consistency)
    return found[key].copy()


def _interior_point(consistency: Consistency) -> Array:
    width = len(consistency.parameters)
    blocks = [_widened(block, width) for block in consistency.blocks]
    # F theta + g - t unit in K with t as near to one as possible: t > 0 means an interior, t < 0 a contradiction.
    target = np.zeros((1, width + 1))
    target[0, width] = 1.0
    solution = solve_program(blocks, target, np.ones(1), np.append(scales(consistency), 1.0))
    names = "; ".join(strongest_conditions(consistency, solution.duals, _CONTRADICTION_SHARE))
    if solution.impossible or (solution.solved and solution.theta[width] < -_NO_ROOM):
        raise NotPossibleError(f"no robot satisfies all of the following conditions, so loosen one of them: {names}",
                               code="conditions-contradict")
    if not solution.solved:
        raise NotPossibleError("the conditions could not be checked against each other (solver status: "
                               f"{solution.status}); check for limits in units other than kilograms and metres")
    if solution.theta[width] < _NO_ROOM:
        raise NotPossibleError("only single parameter values satisfy all of the following conditions; loosen one of "
                               f"them: {names}",
                               code="conditions-without-interior")
    return solution.theta[:width]


def strongest_conditions(consistency: Consistency, duals: Sequence[Array], share: float) -> tuple[str, ...]:
    """Return the names of the conditions whose multipliers exceed a share of the largest multiplier, the largest
    first. In a proof of infeasibility, these conditions contradict each other."""
    sizes = [(float(np.linalg.norm(z / block.balance)), block.name)
             for z, block in zip(duals, consistency.blocks, strict=True)]
    largest = max((size for size, _ in sizes), default=0.0)
    return tuple(name for size, name in sorted(sizes, reverse=True) if size > share * largest)


def _widened(block: ConeConstraint, width: int) -> ConeConstraint:
    """Return a cone constraint with an additional variable, the distance from the boundary of the cone."""
    rows = np.column_stack([block.rows, -block.unit / block.balance])
    return replace(block, columns=np.append(block.columns, width), rows=rows)


def moved_inside(consistency: Consistency, theta: Array) -> tuple[Array, float]:
    """Return parameters strictly inside the set near theta (parameters,), and the largest change of a parameter.

    Solutions of solvers may be outside the set by their tolerance. A small mass and inertia is added to each body
    outside the set, and negative friction is set to zero. If other limits forbid this, theta is moved toward an
    interior point.
    """
    outside = [block for block in consistency.blocks if block.cone != "zero"
               and block.slack(theta) < _rounding(block, theta)]
    if not outside:
        return theta, 0.0
    lifted = theta.copy()
    round_body = ten.from_pseudo_inertia(np.eye(4)) if consistency.form == "pseudo" else np.array(
        [1.0, 0, 0, 1, 0, 1, 0, 0, 0, 1])  # its matrix is the identity
    for block in outside:
        if block.cone == "psd":
            lift = max(-block.slack(theta), 0.0) * (1 + 1e-6) + 2.0 * _rounding(block, theta)
            lifted[block.columns] += lift * round_body
        elif block.kind == "positive":
            lifted[block.columns] = 0.0
    least = [0.0 if block.cone != "zero" else block.slack(theta) - 1e-9 for block in consistency.blocks]
    if all(block.slack(lifted) >= low for block, low in zip(consistency.blocks, least, strict=True)):
        return lifted, float(np.abs(lifted - theta).max())
    middle = interior_point(consistency)
    share = 1e-12
    while share < 1e-2:
        moved = theta + share * (middle - theta)
        if all(block.slack(moved) >= 0.0 for block in outside):
            return moved, float(np.abs(moved - theta).max())
        share *= 2.0
    raise NotPossibleError("the cone solver returned parameters that violate a condition by more than a rounding "
                           f"error: {outside[0].name}")


def _rounding(block: ConeConstraint, theta: Array) -> float:
    """Return the rounding error of the eigenvalues of a matrix constraint at theta; zero for other constraints."""
    return 8.0 * np.finfo(float).eps * float(np.abs(block.value(theta)).max()) if block.cone == "psd" else 0.0
