"""Torques in another unit than nominal torques or too large for the robot, and loads that the robot file lacks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array, Bools, Ints
from dynid.estimate import Estimate, Problem
from dynid.lapack import column_space
from dynid.model import complete
from dynid.model.parameters import MASS
from dynid.order_statistics import distinct, median
from dynid.regression.factor import triangular
from dynid.robot import inertia as ten
from dynid.robot.check import LINK_SLENDERNESS, STEEL_DENSITY, robot_reach
from dynid.validate import thresholds
from dynid.validate.gains import nominal_bodies

_NOMINAL_ROWS = 600  # rows of each log that are compared with the nominal model
_NOMINAL_BLOCKS = 8  # blocks of time for cross-validation
_FILE_ERROR_FREEDOM = 4.0  # degrees of freedom of FILE_ERROR: about as many as a motion shows of one link
_VARIANCE_ITERATIONS = 60  # iterations of both variances, after which their ratio changes by less than a percent
_CHECKED_ROWS = 200  # rows of the longest log


@dataclass(frozen=True)
class NominalLoad:
    """A load on the last body.

    Attributes:
        body: name of the body.
        explained: share of the nominal model's residual that the load explains in cross-validation.
        mass, std: mass of the load, kg, and its standard error; None if the motion does not determine the mass.
        share: load torque over total torque, of the joint that the load affects most.
    """

    body: str
    explained: float
    mass: float | None
    std: float | None
    share: float


@dataclass(frozen=True, eq=False)
class _LoadFit:
    """Torque of a load (rows,), its mass (kg) and the standard error of the mass."""

    torque: Array
    mass: float | None
    std: float | None


@dataclass(frozen=True, eq=False)
class Sheet:
    """Torques and regressor columns of all joints, divided by each joint's noise; rows of one joint after the other.

    Attributes:
        tau: (rows,), measured torque.
        nominal: (rows,), torque of the nominal bodies.
        free: (rows, k), columns that do not belong to bodies.
        bodies, values: columns of each body, and its parameters in the file.
        block, joint: (rows,), block of time and joint of each row.
    """

    tau: Array
    nominal: Array
    free: Array
    bodies: dict[str, Array]
    values: dict[str, Array]
    block: Ints
    joint: Ints


def torque_factors(sheet: Sheet | None, dof: int) -> list[float | None]:
    """Return for each joint the factor between its torque and that of the nominal bodies (dof entries), with free
    friction, rotor inertia and offset; None if the nominal model and the motion do not determine it."""
    if sheet is None:
        return [None] * dof
    found: list[float | None] = []
    for j in range(dof):
        own = sheet.joint == j
        columns = np.column_stack([sheet.nominal[own], sheet.free[own]])
        columns = columns[:, np.any(columns, axis=0)]
        tau = sheet.tau[own]
        if not np.any(sheet.nominal[own]) or len(tau) < 3 * columns.shape[1] + 10 or not np.any(tau):
            found.append(None)
            continue
        size = np.linalg.norm(columns, axis=0)
        value = np.linalg.lstsq(columns / size, tau, rcond=1e-9)[0] / size
        rest = tau - columns @ value
        power = float(np.sum((tau - tau.mean()) ** 2))
        alone = sheet.nominal[own] * value[0]
        part = float(np.sum((alone - alone.mean()) ** 2))
        is_known = rest @ rest < thresholds.MAX_NOMINAL_MISFIT * power < part and abs(value[0]) > (
            thresholds.CLEAR_STANDARD_ERRORS * _first_standard_error(columns, rest))
        found.append(float(value[0]) if power > 0 and is_known else None)
    return found


def _first_standard_error(columns: Array, rest: Array) -> float:
    """Return the standard error of the coefficient of the first column (rows, k), for residuals (rows,) that are
    autocorrelated like a process of first order."""
    first, others = columns[:, 0], columns[:, 1:]
    own = first - others @ np.linalg.lstsq(others, first, rcond=1e-9)[0]
    correlation = min(max(float(rest[1:] @ rest[:-1]) / max(float(rest @ rest), 1e-300), 0.0), 0.99)
    variance = float(rest @ rest) / max(len(rest) - columns.shape[1], 1) * (1.0 + correlation) / (1.0 - correlation)
    return float(np.sqrt(variance / max(float(own @ own), 1e-300)))


def wrong_unit(factors: list[float | None]) -> tuple[float, ...] | None:
    """Return the torque factors of the joints if they exceed the errors of any drive or robot file.

    The fewer joints the nominal model determines, the larger the factors have to be.
    """
    known = np.array([value for value in factors if value is not None])
    if not len(known):
        return None
    least = np.log(thresholds.WRONG_UNIT) * np.sqrt(max(1.0, thresholds.FEW_JOINTS_SHARE * len(factors) / len(known)))
    off = np.abs(np.log(np.maximum(np.abs(known), 1e-12)))
    return tuple(map(float, known)) if float(median(off)) > least else None


def load_on_log(problem: Problem, sheet: Sheet | None) -> NominalLoad | None:
    """Return a load on the last body that explains why torques differ from the nominal model; None if none does.

    The nominal bodies are fixed, friction and rotors are free, and the residual is fitted by the inertial parameters of
    the last body. A file that is inaccurate everywhere is no evidence for a load: the last body has to differ from the
    file significantly more than the others do (`chance_of_last`).
    """
    robot = complete(problem.model).robot
    if sheet is None or robot is None or len(sheet.bodies) < 2:
        return None
    last = robot.body_names[-1]
    if last not in sheet.bodies or any(len(values) < len(ten.NAMES) for values in sheet.values.values()):
        return None
    rest, free = sheet.tau - sheet.nominal, sheet.free.shape[1]
    rows = np.column_stack([sheet.free, sheet.bodies[last], rest])
    factors = [triangular(rows[sheet.block == b]) for b in distinct(sheet.block)]  # they have the same residuals
    few, block = np.concatenate(factors), np.repeat(np.arange(len(factors)), rows.shape[1])
    before = _left_out(few[:, :free], few[:, -1], block)
    if before <= 0:
        return None
    explained = 1.0 - _left_out(few[:, :-1], few[:, -1], block) / before
    if explained < thresholds.CHANGE_EXPLAINED:
        return None
    fit = _fitted(rows[:, :-1], rest, free)
    share = max(_share(fit.torque[sheet.joint == j], sheet.tau[sheet.joint == j]) for j in range(problem.model.dof))
    least = thresholds.CLEAR_STANDARD_ERRORS * (fit.std or 0.0)
    if share < thresholds.LOAD_TORQUE or (fit.mass is not None and fit.mass < least):
        return None
    if chance_of_last(sheet) >= thresholds.VALUE_FALSE_ALARM:
        return None
    return NominalLoad(last, explained, fit.mass, fit.std, share)


def chance_of_last(sheet: Sheet) -> float:
    """Return the p-value of the difference of the last body from the robot file, if all bodies differ alike.

    Relative changes of the bodies are random effects with two variances, one of the last body and one of all others.
    The variances and the changes are estimated in turn (expectation maximisation). The ratio of the variances has an F
    distribution. Each body counts as one observation, because one cause changes all its parameters. FILE_ERROR is a
    further observation, since the motion may show few bodies.
    """
    from scipy.special import fdtrc

    parts = [columns @ _relative_changes(sheet.values[name]) for name, columns in sheet.bodies.items()]
    body = np.repeat(np.arange(len(parts)), [part.shape[1] for part in parts])
    is_last, count = body == len(parts) - 1, sheet.free.shape[1]
    scaled = sheet.free / np.maximum(np.linalg.norm(sheet.free, axis=0), 1e-300)
    columns = np.column_stack([scaled, *parts, sheet.tau - sheet.nominal])
    factor = np.asarray(np.linalg.qr(columns, mode="r"))[count:, count:]
    x, y, rows = factor[:, :-1], factor[:, -1], max(len(sheet.tau) - count, 1)
    noise = least = float(y @ y) / rows
    last = others = thresholds.FILE_ERROR ** 2
    degrees_of_freedom = np.zeros(len(body))
    for _ in range(_VARIANCE_ITERATIONS):
        variance = np.where(is_last, last, others)
        solved = np.linalg.solve((x * variance) @ x.T + noise * np.eye(len(y)), factor)
        change, degrees_of_freedom = variance * (x.T @ solved[:, -1]), variance * np.sum(x * solved[:, :-1], axis=0)
        rest = y - x @ change
        noise = max(float(rest @ rest) / max(rows - degrees_of_freedom.sum(), 1.0), 1e-6 * least)
        last = float(np.sum(change[is_last] ** 2)) / max(float(degrees_of_freedom[is_last].sum()), 1e-12)
        others = (float(np.sum(change[~is_last] ** 2)) + _FILE_ERROR_FREEDOM * thresholds.FILE_ERROR ** 2) / (
            float(degrees_of_freedom[~is_last].sum()) + _FILE_ERROR_FREEDOM)
    own = np.append(np.bincount(body[~is_last], degrees_of_freedom[~is_last]), _FILE_ERROR_FREEDOM)
    return float(fdtrc(1.0, own.sum() ** 2 / np.sum(own ** 2), last / others))


def _relative_changes(values: Array) -> Array:
    """Return the derivatives (10, 13) of a body's parameters by relative changes: its mass, and affine maps of its
    density in units of its size."""
    pseudo = ten.pseudo_inertia(values)
    size = np.sqrt(max(float(np.trace(pseudo[:3, :3])), 1e-12) / max(float(pseudo[3, 3]), 1e-12))
    units, found = np.array([size, size, size, 1.0]), [values]
    for i, k in np.ndindex(3, 4):
        turn = np.zeros((4, 4))
        turn[i, k] = 0.5 * units[i] / units[k]
        found.append(ten.from_pseudo_inertia(turn @ pseudo + pseudo @ turn.T))
    return np.column_stack(found)


def _share(part: Array, whole: Array) -> float:
    """Return the ratio of root mean squares of a part of a torque and of the whole torque, both about their means."""
    return float(np.std(part) / np.std(whole)) if len(whole) and np.std(whole) > 0 else 0.0


def compare_with_nominal(problem: Problem) -> Sheet | None:
    """Return rows of the longest log with nominal torques, at most _NOMINAL_ROWS; None without nominal bodies, or if
    the robot file gives no mass above zero."""
    model, (theta, body) = problem.model, nominal_bodies(problem)
    masses = [value for value, one in zip(theta, model.parameters, strict=True) if one.kind is MASS]
    if not problem.data or not body.any() or (masses and not any(masses)):
        return None
    part = max(problem.data, key=len)
    rows = np.linspace(0, len(part) - 1, min(_NOMINAL_ROWS, len(part))).astype(int)
    joint, k = np.nonzero(part.keep[rows].T)  # one joint after the other
    used, owners = rows[k], _bodies(problem, body)
    power = np.array([factor.power / max(factor.rows, 1) for factor in problem.regression.factors])
    noise = np.maximum(0.05 * np.sqrt(power), 1e-12)[joint]  # a twentieth of each joint's torque, the usual model error
    y = model.regressor(part.q[rows], part.dq[rows], part.ddq[rows])[k, joint]
    dq, ddq = part.dq[used, joint], part.ddq[used, joint]
    friction = np.zeros((len(used), model.dof, 4))  # and rotor inertia, for each joint its own
    friction[np.arange(len(used)), joint] = np.column_stack([np.ones_like(dq), dq, np.sign(dq), ddq])
    free = np.column_stack([friction.reshape(len(used), -1), y[:, ~body]]) / noise[:, None]
    return Sheet(part.tau[used, joint] / noise, y @ theta / noise, free[:, np.any(free, axis=0)],
                 {name: y[:, places] / noise[:, None] for name, places in owners.items()},
                 {name: theta[places] for name, places in owners.items()}, k * _NOMINAL_BLOCKS // len(rows), joint)


def _bodies(problem: Problem, body: Bools) -> dict[str, Array]:
    """Return the parameter indices of each body of the robot file."""
    found: dict[str, list[int]] = {}
    for i, p in enumerate(problem.model.parameters):
        if body[i] and p.body is not None:
            found.setdefault(p.body, []).append(i)
    return {name: np.array(places) for name, places in found.items()}


def _left_out(columns: Array, target: Array, block: Ints) -> float:
    """Return the sum of squared residuals of a least-squares fit in cross-validation over blocks."""
    basis = column_space(columns, 1e-5)
    along, total = basis.T @ target, 0.0
    for b in distinct(block):
        own = block == b
        gram = basis[own].T @ basis[own]
        value = np.linalg.solve(np.eye(len(along)) * (1.0 + 1e-4) - gram, along - basis[own].T @ target[own])
        total += float(np.sum((target[own] - basis[own] @ value) ** 2))
    return total


def _fitted(columns: Array, target: Array, first: int) -> _LoadFit:
    """Return the load whose ten columns start at `first`, by least squares with all others."""
    size = np.linalg.norm(columns, axis=0)
    scale = np.where(size > 0, size, 1.0)
    u, s, vt = np.linalg.svd(columns / scale, full_matrices=False)
    good = s > 1e-6 * s[0]
    value = vt[good].T @ ((u[:, good].T @ target) / s[good]) / scale
    torque, at = columns[:, first:] @ value[first:], first + 9
    if size[at] <= 0 or np.sum(vt[~good, at] ** 2) > 1e-4:
        return _LoadFit(torque, None, None)
    rest = target - columns @ value
    noise = np.sqrt(float(rest @ rest) / max(len(target) - good.sum(), 1))
    deviation = float(noise * np.sqrt(np.sum((vt[good, at] / s[good]) ** 2)) / scale[at])
    return _LoadFit(torque, float(value[at]), deviation)


def times_solid_steel(problem: Problem, estimate: Estimate) -> float | None:
    """Return the ratio of the first moment of gravity to that of a solid steel bar as long as the robot's reach and a
    sixth as thick; None without robot, reach or gravity.

    Industrial arms with their load stay below a tenth, short and heavy test benches below one.
    """
    robot = complete(problem.model).robot
    if robot is None or not problem.data or not np.any(robot.gravity):
        return None
    reach = robot_reach(robot)
    if reach <= 0:
        return None
    part = max(problem.data, key=len)
    q = part.q[np.linspace(0, len(part) - 1, min(_CHECKED_ROWS, len(part))).astype(int)]
    still, base = np.zeros_like(q), estimate.base
    bodies = np.array([problem.model.parameters.items[i].body is not None for i in base.independent])
    y = problem.model.regressor(q, still, still)[:, :, base.independent[bodies]]
    turning = np.array([not joint.prismatic for joint in robot.joints])
    torque = (y @ estimate.values[bodies])[:, turning]
    if not torque.size:
        return None
    moment = float(np.max(np.ptp(torque, axis=0))) / 2.0 / float(np.linalg.norm(robot.gravity))
    solid = STEEL_DENSITY * np.pi * (0.5 * reach / LINK_SLENDERNESS) ** 2 * reach
    return moment / (solid * 0.5 * reach)
