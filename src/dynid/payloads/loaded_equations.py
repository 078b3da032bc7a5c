"""Equations of logs with a load, on the base parameters of the unloaded robot and the load's own.

tau = W beta + W_L theta + friction that the load changes + noise (Ardiani, eq. 4.1). The columns of the load depend
on those of the robot; knowledge of the unloaded robot separates them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dynid.arrays import Array, Ints
from dynid.errors import ModelError
from dynid.estimate import Estimate
from dynid.estimate.linear import joint_weights
from dynid.model import LoadFriction, Model, Payload, required_robot_model
from dynid.recording import Samples
from dynid.regression import BaseParameters, Regression, TorqueEquations, fold
from dynid.regression.projected import torque_equations
from dynid.robot import inertia as ten

LABEL = "L"  # of the load's ten numbers: XXL .. ML
_LOADED_BLOCKS = 40  # stretches of time kept apart, to see a load that changes


@dataclass(frozen=True, eq=False)
class LoadedEquations:
    """Equations of logs with a load, and their compressed regression.

    The columns are the base parameters of the unloaded robot, then load-dependent friction, then the inertial
    parameters of the load.
    """

    equations: TorqueEquations
    regression: Regression
    weights: Array
    robot: Ints
    friction: Ints
    load: Ints

    @property
    def model(self) -> Model:
        return required_robot_model(self.equations.model, "a payload")

    @cached_property
    def rows(self) -> tuple[Array, Array, Ints]:
        """Return weighted rows (n, columns), their right-hand sides (n,) and the joint of each (n,)."""
        base, regression = self.regression.base, self.regression
        matrix = np.zeros((sum(len(f.r) for f in regression.factors), len(base)))
        right, joint, at = np.zeros(len(matrix)), np.zeros(len(matrix), dtype=np.int64), 0
        for j, (weight, factor) in enumerate(zip(self.weights, regression.factors, strict=True)):
            here = slice(at, at + len(factor.r))
            matrix[here, factor.columns] = weight * factor.r[:, :-1]
            right[here], joint[here], at = weight * factor.r[:, -1], j, here.stop
        return matrix, right, joint


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A robot's model with a load on a frame: base parameters of the unloaded robot, load friction, and the load's
    ten parameters. robot (b,), friction (l,), load (10,): their columns."""

    model: Model
    base: BaseParameters
    robot: Ints
    friction: Ints
    load: Ints

    @staticmethod
    def of(estimate: Estimate, payload: Payload, *, friction: bool = True, numbers: Array | None = None) -> LoadedModel:
        """Return the model of a robot that was identified without the load; friction, numbers: see `loaded`."""
        unloaded = required_robot_model(estimate.model, "an estimate of a payload")
        if any(isinstance(term, Payload) and term.label == payload.label for term in unloaded.terms):
            raise ModelError(f"the model has a payload '{payload.label}' already; use another label for the new one")
        own = any(isinstance(term, LoadFriction) for term in unloaded.terms)
        is_driven = not unloaded.robot.has_free_base  # no gear transmits the wrench on a free base
        more: tuple[LoadFriction, ...] = (LoadFriction(),) if friction and not own and is_driven else ()
        model = Model(unloaded.robot, (*unloaded.terms, *more, payload))
        mine = [p.name for p in payload.parameters(model.robot)]
        extra = [p.name for term in more for p in term.parameters(model.robot)]
        ends = np.cumsum([len(estimate.base), len(extra), 10])
        return LoadedModel(model, _base(estimate, model, extra, mine), np.arange(ends[0]), np.arange(ends[0], ends[1]),
                           np.arange(ends[1], ends[2])).carrying(estimate, numbers)

    def carrying(self, estimate: Estimate, numbers: Array | None) -> LoadedModel:
        """Return the same model with a load of ten parameters (10,) in the load friction, None for none."""
        values = dict(zip(estimate.model.parameters.names, estimate.full, strict=True))
        mine = [self.model.parameters.names[c] for c in self.base.independent[self.load]]
        values |= dict(zip(mine, np.zeros(10) if numbers is None else numbers, strict=True))
        return replace(self, model=self.model.with_estimate(
            [values.get(name, 0.0) for name in self.model.parameters.names]))


def loaded(estimate: Estimate, logs: Sequence[Samples], payload: Payload, *, friction: bool = True,
           numbers: Array | None = None, threads: int | None = None) -> LoadedEquations:
    """Return the compressed equations of logs with a load on a frame.

    friction: with a column of load friction per joint, if the robot's model has none. numbers (10,): current estimate
    of the load, for the transmitted torque.
    """
    made = LoadedModel.of(estimate, payload, friction=friction, numbers=numbers)
    equations = torque_equations(made.model, logs, made.base)
    regression = fold(equations, blocks=_LOADED_BLOCKS, threads=threads)
    return LoadedEquations(equations, regression, joint_weights(regression), made.robot, made.friction, made.load)


def _base(estimate: Estimate, model: Model, extra: Sequence[str], mine: Sequence[str]) -> BaseParameters:
    """Return the unloaded robot's base parameters, and additional single parameters, as columns of the loaded model."""
    old, parameters = estimate.base, model.parameters
    place = np.array([parameters.index(name) for name in old.parameters.names])
    single = np.array([parameters.index(name) for name in (*extra, *mine)], dtype=np.int64)
    matrix = np.zeros((len(old) + len(single), len(parameters)))
    matrix[:len(old), place] = old.matrix
    matrix[len(old) + np.arange(len(single)), single] = 1.0
    return BaseParameters(parameters, np.concatenate([place[old.independent], single]), matrix, old.known)


def change_by_load(estimate: Estimate, payload: Payload) -> Array:
    """Return K (b, 10), the change of the robot's base parameters by a load's ten parameters (Ardiani, eq.
    4.13-4.16)."""
    model = required_robot_model(estimate.model, "an estimate of a payload")
    frame = model.robot.frame(payload.frame)
    pose = frame.pose @ np.asarray(payload.pose, dtype=float)
    places = estimate.base.parameters.bodies[model.robot.bodies[frame.body].name]
    return estimate.base.matrix[:, places] @ ten.change_frame(pose)


def with_torques(logs: Sequence[Samples], torques: Sequence[Array]) -> tuple[Samples, ...]:
    """Return the same logs with other torques (samples, dof)."""
    return tuple(replace(log, tau=tau, raw_tau=None) for log, tau in zip(logs, torques, strict=True))
