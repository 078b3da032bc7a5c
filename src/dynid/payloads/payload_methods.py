"""Equations of loaded logs, and linear methods for a load's ten parameters (Ardiani, eq. 4.1-4.5).

With y the torques and W, W_L the weighted columns of the loaded logs for robot and load, beta' = beta + phi the robot
(friction may differ by phi, which has a prior), beta_0 the unloaded estimate and H_0 its information:

- residual (4.2): beta = beta_0 fixed, theta from y - W beta_0. same-motion (4.4) is the same on torques from which
  the residuals of an unloaded log along the same motion were subtracted.
- together (4.5): minimise |H_0^1/2 (beta - beta_0)|^2 + |y - W beta' - W_L theta|^2 over all of them.
- difference (4.3): beta_wl from the loaded logs alone; theta from beta_wl - beta_0 = K theta + phi, weighted by both
  covariances; the same estimate as together.

tau = W beta + W_L theta + friction that the load changes + noise (Ardiani, eq. 4.1). The columns of the load depend
on those of the robot; knowledge of the unloaded robot separates both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from dynid.arrays import Array, Bools, Ints
from dynid.errors import ModelError
from dynid.estimate import Estimate
from dynid.estimate.linear import joint_weights
from dynid.model import LoadFriction, Model, Payload, required_robot_model
from dynid.recording import Samples
from dynid.regression import BaseParameters, Regression, TorqueEquations, fold
from dynid.regression.derived import torque_equations
from dynid.robot import inertia as ten

PayloadMethod = Literal["residual", "difference", "same-motion", "together"]
PAYLOAD_METHODS: tuple[PayloadMethod, ...] = ("residual", "difference", "same-motion", "together")
_RANK_TOLERANCE = 1e-10  # ratio of singular values of scaled equations, below which a direction is undetermined
MIN_COLUMN_SHARE = 1e-13  # share of the largest column, below which a column is zero
_UNKNOWN_SHARE = 1e-6  # share of a parameter in undetermined directions, above which it is not identified
LABEL = "L"  # suffix of the load's ten parameters: XXL .. ML
_LOADED_BLOCKS = 40  # blocks of time, to detect a load that changes


@dataclass(frozen=True, eq=False)
class Unloaded:
    """The robot identified without load.

    Attributes:
        values, covariance: base parameters beta_0 (b,), and their covariance (b, b).
        rows: weighted equations (k, b) of the unloaded data; rows' rows is the information matrix H_0 of beta_0.
        by_gain: derivatives (b, dof) of beta_0 by the relative drive gain of each joint; None if the unloaded data are
            not available.
    """

    values: Array
    covariance: Array
    rows: Array
    by_gain: Array | None = None


@dataclass(frozen=True, eq=False)
class Nuisance:
    """Nuisance parameters, the changes of friction under load, with priors of mean zero: their columns (n,) in the
    loaded equations, and their prior standard deviations (n,)."""

    places: Ints
    std: Array

    @staticmethod
    def none() -> Nuisance:
        """Return an object without nuisance parameters: friction does not change under load."""
        return Nuisance(np.zeros(0, dtype=np.int64), np.zeros(0))


@dataclass(frozen=True, eq=False)
class LinearPayloadFit:
    """Linear least-squares solution for the unknowns x = [beta, nuisance, theta] (u,).

    Attributes:
        x: solution (u,): base parameters of the robot, nuisance parameters, and the load's ten parameters theta.
        columns: matrix (columns, u); columns @ x are the parameters of the loaded equations.
        inverse: inverse (u, u) of the matrix of the normal equations.
        by_robot: derivatives (u, b) of x by beta_0.
        by_gain: derivatives (u, dof) of x by the relative drive gain of each joint in all logs.
        load: indices (10,) of theta in x.
        prior: covariance diagonal (u,) that the priors of the nuisance parameters add to the normal equations.
        identified: mask (10,) of the load's parameters that the data determine.
    """

    x: Array
    columns: Array
    inverse: Array
    by_robot: Array
    by_gain: Array
    load: Ints
    prior: Array
    identified: Bools

    @property
    def theta(self) -> Array:
        """The load's ten inertial parameters (10,), SI units."""
        return self.x[self.load]


def payload_fit(loaded: LoadedEquations, unloaded: Unloaded, nuisance: Nuisance, *, fixed: bool) -> LinearPayloadFit:
    """Return the load with the robot fixed at its unloaded values (Ardiani, eq. 4.2), or jointly with the robot, with
    the unloaded data as prior information (eq. 4.5)."""
    matrix, right, joint = loaded.rows
    b, n = len(loaded.robot), len(nuisance.places)
    columns = np.zeros((matrix.shape[1], b + n + 10))
    columns[loaded.robot, np.arange(b)] = 1.0
    columns[nuisance.places, b + np.arange(n)] = 1.0
    columns[loaded.load, b + n + np.arange(10)] = 1.0
    free = np.arange(b if fixed else 0, b + n + 10)
    rows = matrix @ columns
    target = right - rows[:, :b] @ unloaded.values if fixed else right
    known = np.zeros((0, b)) if fixed else unloaded.rows
    prior = np.zeros((n, b + n + 10))
    prior[np.arange(n), b + np.arange(n)] = 1.0 / nuisance.std
    tall = np.vstack([rows, np.hstack([known, np.zeros((len(known), n + 10))]), prior])[:, free]
    back, seen = pseudo_inverse(tall)
    inverse, x = np.zeros((b + n + 10,) * 2), np.zeros(b + n + 10)
    inverse[np.ix_(free, free)] = back @ back.T
    x[free] = back @ np.concatenate([target, known @ unloaded.values, np.zeros(n)])
    if fixed:
        by_robot = -inverse @ (rows.T @ rows[:, :b])
        x[:b], by_robot[:b] = unloaded.values, np.eye(b)
    else:
        by_robot = inverse[:, :b] @ (known.T @ known)
    # The gain of a joint multiplies its torques, in the loaded and in the unloaded logs. Without unloaded
    # data, gain errors are assumed to affect only the residual torque.
    torque = right if unloaded.by_gain is not None else right - rows[:, :b] @ unloaded.values
    pushed = np.stack([rows.T @ np.where(joint == j, torque, 0.0) for j in range(len(loaded.weights))], axis=1)
    by_gain = inverse @ pushed + (0.0 if unloaded.by_gain is None else by_robot @ unloaded.by_gain)
    share = np.zeros(b + n + 10)
    share[b:b + n] = nuisance.std ** -2.0
    return LinearPayloadFit(x, columns, inverse, by_robot, by_gain, b + n + np.arange(10), share, seen[-10:])


def difference(loaded: LoadedEquations, unloaded: Unloaded, nuisance: Nuisance, change: Array) -> Array:
    """Return the load's ten parameters (10,) from the difference between the loaded and the unloaded robot's base
    parameters, weighted by both covariances (Ardiani, eq. 4.3).

    change: matrix (b, 10) from a load to the change of base parameters, see `change_by_load`.
    """
    matrix, right, _ = loaded.rows
    b = len(loaded.robot)
    own = np.array([place >= b for place in nuisance.places], dtype=bool)  # columns that the robot alone does not have
    extra, deviation = nuisance.places[own], nuisance.std[own]
    # Base parameters beta_wl from the loaded logs alone, with the other unknowns eliminated.
    alone = np.vstack([np.hstack([matrix[:, extra], matrix[:, loaded.robot]]),
                       np.hstack([np.diag(1.0 / deviation), np.zeros((len(extra), b))])])
    target = np.concatenate([right, np.zeros(len(extra))])
    q, r = np.linalg.qr(alone)
    half, rho = r[len(extra):, len(extra):], (q.T @ target)[len(extra):]
    # Covariance of the difference: V = H_0^-1 + Phi + H_b^-1, with H_b = half' half. half V half' is well scaled.
    spread = np.zeros((b, b))
    places = nuisance.places[~own]
    spread[places, places] = nuisance.std[~own] ** 2
    back, _ = pseudo_inverse(unloaded.rows)
    known = half @ (back @ back.T + spread) @ half.T + np.eye(b)
    root = np.linalg.cholesky(known)
    left = np.linalg.solve(root, half @ change)
    return np.asarray(np.linalg.lstsq(left, np.linalg.solve(root, rho - half @ unloaded.values), rcond=None)[0])


def pseudo_inverse(matrix: Array) -> tuple[Array, Bools]:
    """Return the pseudo-inverse (n, rows) of a matrix (rows, n), and a mask (n,) of the unknowns that the matrix
    determines. Columns are scaled to unit length, except columns at rounding level, which count as zero."""
    size = np.linalg.norm(matrix, axis=0)
    there = size > MIN_COLUMN_SHARE * size.max(initial=0.0)
    matrix, size = np.where(there, matrix, 0.0), np.where(there, size, 1.0)
    left, singular, right = np.linalg.svd(matrix / size, full_matrices=False)
    kept = singular > _RANK_TOLERANCE * singular.max(initial=0.0)
    hidden = np.sqrt(np.maximum(1.0 - np.sum(right[kept] ** 2, axis=0), 0.0))
    return (right[kept] / singular[kept, None]).T @ left[:, kept].T / size[:, None], np.asarray(
        hidden < _UNKNOWN_SHARE, dtype=np.bool_)


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A robot's model with a load on a frame.

    Attributes:
        model, base: the model, and its base parameters.
        robot, friction, load: columns (b,) of the unloaded robot's base parameters, (l,) of load friction, and (10,) of
            the load.
    """

    model: Model
    base: BaseParameters
    robot: Ints
    friction: Ints
    load: Ints

    @staticmethod
    def from_estimate(estimate: Estimate, payload: Payload, *, friction: bool = True,
                      numbers: Array | None = None) -> LoadedModel:
        """Return the model of a robot that was identified without the load; for the arguments, see `loaded`."""
        unloaded = required_robot_model(estimate.model, "an estimate of a payload")
        if any(isinstance(term, Payload) and term.label == payload.label for term in unloaded.terms):
            raise ModelError(f"the model already has a payload '{payload.label}'", "use another label")
        own = any(isinstance(term, LoadFriction) for term in unloaded.terms)
        is_driven = not unloaded.robot.has_free_base  # no gear transmits the wrench on a free base
        more: tuple[LoadFriction, ...] = (LoadFriction(),) if friction and not own and is_driven else ()
        model = Model(unloaded.robot, (*unloaded.terms, *more, payload))
        mine = [p.name for p in payload.parameters(model.robot)]
        extra = [p.name for term in more for p in term.parameters(model.robot)]
        ends = np.cumsum([len(estimate.base), len(extra), 10])
        return LoadedModel(model, extended_base(estimate.base, model, (*extra, *mine)), np.arange(ends[0]),
                           np.arange(ends[0], ends[1]), np.arange(ends[1], ends[2])).carrying(estimate, numbers)

    def carrying(self, estimate: Estimate, numbers: Array | None) -> LoadedModel:
        """Return the model with load friction for a given load (10,), or for no load if None."""
        values = dict(zip(estimate.model.parameters.names, estimate.full, strict=True))
        mine = [self.model.parameters.names[c] for c in self.base.independent[self.load]]
        values |= dict(zip(mine, np.zeros(10) if numbers is None else numbers, strict=True))
        return replace(self, model=self.model.with_estimate(
            [values.get(name, 0.0) for name in self.model.parameters.names]))


@dataclass(frozen=True, eq=False)
class LoadedEquations(LoadedModel):
    """Equations of logs with a load on a frame of a robot.

    Attributes:
        equations, regression: equations of the logs, and their triangular factors.
        weights: weights (dof,) of the joints' rows: 1 / standard deviation of the noise.
    """

    equations: TorqueEquations
    regression: Regression
    weights: Array

    @cached_property
    def rows(self) -> tuple[Array, Array, Ints]:
        """Return the weighted rows (n, columns), their right-hand sides (n,), and the joint of each row (n,)."""
        base, regression = self.regression.base, self.regression
        matrix = np.zeros((sum(len(f.r) for f in regression.factors), len(base)))
        right, joint, at = np.zeros(len(matrix)), np.zeros(len(matrix), dtype=np.int64), 0
        for j, (weight, factor) in enumerate(zip(self.weights, regression.factors, strict=True)):
            here = slice(at, at + len(factor.r))
            matrix[here, factor.columns] = weight * factor.r[:, :-1]
            right[here], joint[here], at = weight * factor.r[:, -1], j, here.stop
        return matrix, right, joint


def loaded(estimate: Estimate, logs: Sequence[Samples], payload: Payload, *, friction: bool = True,
           numbers: Array | None = None, threads: int | None = None) -> LoadedEquations:
    """Return the compressed equations of logs with a load on a frame.

    Args:
        estimate: the robot, identified without the load.
        logs: samples with the load.
        payload: term of the load, with its frame.
        friction: whether to add load-dependent friction of each joint, if the robot's model has none.
        numbers: current estimate of the load's inertial parameters (10,), for the transmitted torque; None for no load.
        threads: number of threads.
    """
    made = LoadedModel.from_estimate(estimate, payload, friction=friction, numbers=numbers)
    equations = torque_equations(made.model, logs, made.base)
    regression = fold(equations, blocks=_LOADED_BLOCKS, threads=threads)
    return LoadedEquations(**vars(made), equations=equations, regression=regression, weights=joint_weights(regression))


def extended_base(old: BaseParameters, model: Model, more: Sequence[str]) -> BaseParameters:
    """Return base parameters of a model with more terms: those of the smaller model, and single named parameters."""
    parameters = model.parameters
    place = np.array([parameters.index(name) for name in old.parameters.names])
    single = np.array([parameters.index(name) for name in more], dtype=np.int64)
    matrix = np.zeros((len(old) + len(single), len(parameters)))
    matrix[:len(old), place] = old.matrix
    matrix[len(old) + np.arange(len(single)), single] = 1.0
    return BaseParameters(parameters, np.concatenate([place[old.independent], single]), matrix, old.known)


def change_by_load(estimate: Estimate, payload: Payload) -> Array:
    """Return the matrix (base, 10) from a load to the change of base parameters (Ardiani, eq. 4.13-4.16)."""
    model = required_robot_model(estimate.model, "an estimate of a payload")
    frame = model.robot.frame(payload.frame)
    pose = frame.pose @ np.asarray(payload.pose, dtype=float)
    places = estimate.base.parameters.bodies[model.robot.bodies[frame.body].name]
    return estimate.base.matrix[:, places] @ ten.change_frame(pose)
