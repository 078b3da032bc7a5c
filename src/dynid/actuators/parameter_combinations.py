"""Identifiability of actuator parameters by model structure and data, and experiments that separate the parameters.

The compiled simulation reads a table that is computed from the parameters. Parameters that give the same table cannot
be distinguished by any data. Structural identifiability is therefore tested on the table, because finite differences of
simulations with dry friction are inexact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dynid.actuators import columns as c
from dynid.actuators.parameters import MAX_RELATIVE_STD, MAX_TYPICAL_STD
from dynid.actuators.problem import ChainProblem, joint_numbers
from dynid.actuators.refinement import Refinement
from dynid.arrays import Array, Bools
from dynid.findings import Note

_NULL_SHARE = 1e-5  # singular value relative to the largest, below which no amount of such data determines a direction
_NAMED_SHARE = 0.25  # smallest component of a unit direction whose parameter is named
_DRIVE_PARAMETERS = {"kp", "kd", "ki", "kv", "kt", "resistance", "torque_scale"}
_MECHANICAL_PARAMETERS = {"armature", "viscous", "coulomb", "link_scale"}


@dataclass(frozen=True, eq=False)
class Identifiability:
    """Identifiability of one joint chain: mask of the unknowns that the data determine (unknowns,), and notes on
    combinations of parameters that the data do not determine."""

    identified: Bools
    notes: tuple[Note, ...]


def identifiability(problem: ChainProblem, fit: Refinement) -> Identifiability:
    """Return which unknowns the data of a chain determine, from the scaled Jacobian and the standard errors of the
    solution."""
    silent = np.linalg.norm(fit.jacobian.reshape(-1, len(fit.x)), axis=0) * fit.scale < 1e-9
    typical = np.array([one.item.typical for one in problem.unknowns])
    known = fit.std <= np.maximum(MAX_TYPICAL_STD * typical, MAX_RELATIVE_STD * np.abs(fit.x))
    identified = ~fit.at_bound & known & (fit.std > 0) & ~silent
    null = fit.singular <= _NULL_SHARE * max(float(fit.singular.max(initial=0.0)), 1e-300)
    notes = []
    vectors = [fit.directions[:, k] for k in np.flatnonzero(null)]
    for vector in vectors:
        identified &= np.abs(vector) < _NAMED_SHARE / 2
    scaled = fit.covariance / np.outer(fit.scale, fit.scale)
    values, axes = np.linalg.eigh(scaled)
    vectors += [axes[:, k] for k in np.flatnonzero(values > MAX_TYPICAL_STD ** 2)]
    named: set[frozenset[str]] = set()
    for vector in vectors:
        chosen = [k for k in np.argsort(-np.abs(vector)) if abs(vector[k]) > _NAMED_SHARE]
        names = frozenset(problem.label(int(k)) for k in chosen)
        if not chosen or names in named:
            continue
        named.add(names)
        growth = vector[chosen] * fit.scale[chosen] * np.sign(fit.x[chosen])
        notes.append(_combination(problem, [int(k) for k in chosen], bool(null.any()) and vector is vectors[0],
                                  is_opposite=bool(growth.min() < 0.0 < growth.max())))
    alone = [k for k in np.flatnonzero(~identified & ~fit.at_bound)
             if not any(problem.label(int(k)) in names for names in named)]
    if alone:
        notes.append(_combination(problem, [int(k) for k in alone], False, together=False))
    bound = np.flatnonzero(fit.at_bound)
    if len(bound):
        labels = ", ".join(problem.label(int(k)) for k in bound)
        notes.append(Note("at-bound", f"These estimates are at a bound and have no confidence interval: {labels}. The "
                          "data are consistent with the value at the bound.",
                          {problem.label(int(k)): float(fit.x[k]) for k in bound}))
    return Identifiability(identified, tuple(notes))


def _combination(problem: ChainProblem, chosen: list[int], exact: bool, together: bool = True,
                 is_opposite: bool = False) -> Note:
    """Return a note on unknowns that the data do not determine.

    Args:
        problem, chosen: the estimation problem, and the indices of the unknowns.
        exact: whether a common change of the unknowns has no effect at all on the motion.
        together: whether the unknowns belong to one combination.
        is_opposite: whether one unknown has to decrease as another increases.
    """
    labels = [problem.label(k) for k in chosen]
    names = {problem.unknowns[k].name for k in chosen}
    text = f"{', '.join(labels[:-1])} and {labels[-1]}" if len(labels) > 1 else labels[0]
    if len(labels) == 1 or not together:
        head = f"Not determined by these data: {text}."
    elif names & _DRIVE_PARAMETERS and names & _MECHANICAL_PARAMETERS and exact:
        head = (f"{text} replace each other: more of one and less of the other give the same motion." if is_opposite
                else f"{text} scale together: only their ratios are determined.")
    else:
        head = f"{text} cannot be distinguished with these data."
    return Note("not-distinguished", f"{head} {experiment(names, is_opposite)}")


def experiment(names: set[str], is_opposite: bool = False) -> str:
    """Return a sentence on the experiment that separates the given parameters. is_opposite: whether one parameter has
    to decrease as another increases, so that the motion does not change."""
    if names & _DRIVE_PARAMETERS and names & _MECHANICAL_PARAMETERS:
        given = next((f"known {name} (--gain {name}=VALUE)" for name in ("kp", "kd") if name in names), "")
        if is_opposite and given:
            return f"A {given} or a second gain setting separates these parameters (`dynid excite --actuator`)."
        given = given and f", a {given}"
        return f"A known mass{given} or a second gain setting separates these parameters (`dynid excite --actuator`)."
    if "delay" in names:
        return "Faster motion separates these parameters: a chirp up to the bandwidth of the joint, or steps."
    if names & {"offset", "bias"}:
        return "Motion over a wider range of gravity separates these parameters, for example half a turn of the joint."
    if any(name.startswith(("load", "quadratic", "stribeck_load")) for name in names):
        return "Logs with at least two known masses that are lifted and lowered separate these parameters."
    if any(name.startswith("stribeck") for name in names):
        return "Slow motion through standstill separates these parameters, at speeds below 0.2 rad/s."
    if "backlash" in names:
        return "Slow reversals against gravity determine the backlash."
    return "Motion at several speeds and accelerations separates these parameters (`dynid excite --actuator`)."


STRUCTURE_STEP = 1e-4  # step of the finite differences of the simulation inputs, relative to a parameter's scale
STRUCTURE_TOLERANCE = 1e-6  # singular value relative to the largest, below which the simulation inputs do not change
_LOAD_COLUMNS = [c.LOAD_MOTOR, c.LOAD_EXTERNAL, c.STRIBECK_LOAD_MOTOR, c.STRIBECK_LOAD_EXTERNAL, c.QUADRATIC_MOTOR,
                 c.QUADRATIC_EXTERNAL]


def unchanged_directions(problem: ChainProblem, x: Array, scale: Array,
                         settings: Sequence[Mapping[str, float]] = ({},)) -> Array:
    """Return directions (unknowns, m) of the scaled unknowns along which no input of the simulation changes.

    Args:
        problem: estimation problem; its logs are not used.
        x: values of the unknowns (unknowns,).
        scale: scales of the unknowns (unknowns,).
        settings: gains of each log.
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
    """Return the inputs of the simulation of all joints as one vector; inputs that act only as a sum or a product are
    combined."""
    table = np.zeros((problem.dof, c.JOINT_COLUMNS))
    for j, values in enumerate(problem.values(x)):
        table[j] = joint_numbers(problem.law, {**values, **gains})
        is_unlimited = table[j, c.U_LIMIT] == np.inf
        table[j, ~np.isfinite(table[j])] = 0.0
        if is_unlimited:  # only products of the gains and the torque gain have an effect
            table[j, [c.KP, c.KI, c.KD, c.FEED]] *= table[j, c.TORQUE_GAIN]
            table[j, c.TORQUE_GAIN] = 1.0
        if not np.any(table[j, _LOAD_COLUMNS]):  # then back-EMF and velocity feedback act like viscous friction
            table[j, c.VISCOUS] += table[j, c.BACK_EMF]
            table[j, c.BACK_EMF] = 0.0
            if table[j, c.FOLLOW] == 0.0 and is_unlimited:
                table[j, c.VISCOUS] += table[j, c.KD]
                table[j, c.KD] = 0.0
    links = [values.get("link_scale", 1.0) for values in problem.values(x)]
    return np.concatenate([table.ravel(), links])


def projected(information: Array, directions: Array) -> Array:
    """Return the Fisher information (k, k) with orthonormal directions (k, m) projected out."""
    keep = np.eye(len(information)) - directions @ directions.T
    return keep @ information @ keep
