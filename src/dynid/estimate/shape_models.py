"""Models for separable least squares: terms with shape parameters, their derivatives, and combined columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, Bools, Ints
from dynid.model import LinearModel, Model, Parameter, Parameters, complete, robot_model
from dynid.model.term import MotionSegment
from dynid.model.term_capabilities import capabilities
from dynid.regression import BaseParameters

_DIFFERENCE_STEP = 1e-4  # of log s, for derivatives


class ShapedModel(LinearModel, Protocol):
    """Protocol of a model with positive shape parameters: a `Model` with a term like `Stribeck`, or a custom model."""

    @property
    def shape_names(self) -> tuple[str, ...]: ...

    @property
    def shape(self) -> Array: ...

    def with_shape(self, values: ArrayLike) -> ShapedModel: ...


@dataclass(frozen=True, eq=False)
class ShapeDependence:
    """Dependence of a model on its shape parameters.

    Attributes:
        part: the terms with shape parameters, as a model.
        columns: (part parameters,), index of each parameter of the part in the whole model.
        touches: (shapes, dof), mask of the joints whose torque each shape parameter affects.
        varies: (shapes, part parameters), mask of the regressor columns that each shape parameter affects.
    """

    model: ShapedModel
    part: ShapedModel
    columns: Ints
    touches: Bools
    varies: Bools

    @staticmethod
    def from_model(model: Any) -> ShapeDependence:
        own = robot_model(model)
        part = model if own is None else Model(
            own.robot, tuple(term for term in own.terms if capabilities(term).shape is not None))
        rng = np.random.default_rng(0)
        motion = MotionSegment(np.arange(64.0), *rng.normal(size=(3, 64, model.dof)))
        if complete(part).channels:  # steps of several sizes, because terms with memory depend on the path
            steps = 10.0 ** rng.uniform(-6.0, 0.0, (64, model.dof)) * rng.choice([-1.0, 1.0], (64, model.dof))
            motion = motion._replace(q=np.cumsum(steps, axis=0))
        y, shape = regressor_along(part, motion), part.shape
        changed = np.array([np.any(regressor_along(part.with_shape(shape * more), motion) != y, axis=0)
                            for more in 1.0 + 0.2 * np.eye(len(shape))])
        columns = np.array([model.parameters.index(name) for name in part.parameters.names], dtype=np.int64)
        return ShapeDependence(model, part, columns, np.any(changed, axis=(2,)), np.any(changed, axis=(1,)))

    @property
    def varying(self) -> Ints:
        """Indices, in the whole model, of the regressor columns that depend on shape parameters."""
        return self.columns[self.varies.any(axis=0)]

    def of_joint(self, joint: int) -> Ints:
        """Return the indices of the shape parameters that affect the torque of a joint."""
        return np.flatnonzero(self.touches[:, joint])

    @property
    def shared(self) -> Ints:
        """Indices of the shape parameters that affect the torques of several joints."""
        return np.flatnonzero(self.touches.sum(axis=1) > 1)


@dataclass(frozen=True, eq=False)
class Assembled:
    """A linear model whose regressor columns are taken from other models.

    sources: triples of a source model, the indices of its used columns, and their indices in this model.
    """

    dof: int
    parameters: Parameters
    sources: tuple[tuple[LinearModel, Ints, Ints], ...]

    @property
    def structure(self) -> Bools:
        found = np.zeros((self.dof, len(self.parameters)), dtype=bool)
        for model, own, here in self.sources:
            found[:, here] = complete(model).structure[:, own]
        return found

    @property
    def channels(self) -> int:
        """Number of memory channels of all sources, see `Model.channels`."""
        return sum(complete(model).channels for model, _, _ in self.sources)

    def memory(self, motion: MotionSegment) -> Array:
        """Return the memory of all sources along a motion, see `Model.memory`."""
        return np.hstack([np.zeros((len(motion.t), 0)), *(complete(model).memory(motion)
                                                          for model, _, _ in self.sources)])

    def fill(self, q: Array, dq: Array, ddq: Array, place: Ints, out: Array, memory: Array | None = None) -> None:
        """Fill the regressor columns of all sources, see `Model.fill`."""
        at = 0
        for model, own, here in self.sources:
            theirs, count = np.full((self.dof, len(model.parameters)), -1, dtype=np.int64), complete(model).channels
            theirs[:, own] = place[:, here]
            complete(model).fill(q, dq, ddq, theirs, out, *(() if memory is None else (memory[:, at:at + count],)))
            at += count

    def regressor(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Return the regressor of the assembled model (samples, dof, parameters)."""
        out = np.zeros((self.dof * len(self.parameters), len(q)))
        self.fill(q, dq, ddq, np.arange(len(out)).reshape(self.dof, -1), out)
        return np.moveaxis(out.reshape(self.dof, -1, len(q)), 2, 0)

    @property
    def base(self) -> BaseParameters:
        """Base parameters of the assembled model, which equal its parameters."""
        count = len(self.parameters)
        return BaseParameters(self.parameters, np.arange(count), np.eye(count))


@dataclass(frozen=True, eq=False)
class Slopes:
    """The derivatives d(Y(s) theta) / d log s as a linear model, whose parameters are small steps of log s."""

    dependence: ShapeDependence
    log_shape: Array
    theta: Array  # of dependence.part

    @property
    def dof(self) -> int:
        return self.dependence.model.dof

    @property
    def parameters(self) -> Parameters:
        return Parameters(tuple(Parameter(name, "1", int(np.argmax(touched)), "shape") for name, touched
                                in zip(self.dependence.model.shape_names, self.dependence.touches, strict=True)))

    @property
    def structure(self) -> Bools:
        return self.dependence.touches.T

    @property
    def channels(self) -> int:
        """Channels of memory: one for each shape parameter and joint, if the terms have memory."""
        return self.dependence.touches.size if complete(self.dependence.part).channels else 0

    def memory(self, motion: MotionSegment) -> Array:
        """Return the derivatives along an ordered motion (samples, shapes x dof)."""
        found = np.zeros((len(motion.t), *self.dependence.touches.shape))
        for i, move in enumerate(np.eye(len(self.log_shape)) * _DIFFERENCE_STEP):
            high, low = (regressor_along(self.dependence.part.with_shape(np.exp(self.log_shape + sign * move)), motion)
                         @ self.theta for sign in (1.0, -1.0))
            found[:, i] = (high - low) / (2.0 * _DIFFERENCE_STEP)
        return found.reshape(len(motion.t), -1)

    def fill(self, q: Array, dq: Array, ddq: Array, place: Ints, out: Array, memory: Array | None = None) -> None:
        """Write derivatives to selected columns, see `Model.fill`. Shapes of different joints are varied together."""
        if memory is not None and memory.shape[1]:
            for i, j in np.argwhere(self.dependence.touches):
                if place[j, i] >= 0:
                    out[place[j, i]] = memory[:, i * self.dof + j]
            return
        left = list(range(len(self.log_shape)))
        while left:
            together: list[int] = []
            for i in left:
                if not np.any(self.dependence.touches[[*together, i]].sum(axis=0) > 1):
                    together.append(i)
            left = [i for i in left if i not in together]
            move = np.zeros(len(self.log_shape))
            move[together] = _DIFFERENCE_STEP
            up, down = (self._torques(self.log_shape + sign * move, q, dq, ddq) for sign in (1.0, -1.0))
            for i in together:
                for j in np.flatnonzero((place[:, i] >= 0) & self.dependence.touches[i]):
                    out[place[j, i]] = (up[:, j] - down[:, j]) / (2.0 * _DIFFERENCE_STEP)

    def _torques(self, log_shape: Array, q: Array, dq: Array, ddq: Array) -> Array:
        part = self.dependence.part.with_shape(np.exp(log_shape))
        return complete(part).inverse_dynamics(self.theta, q, dq, ddq)

    def regressor(self, q: Array, dq: Array, ddq: Array) -> Array:
        """Return the derivatives as a regressor (samples, dof, shapes)."""
        everything = np.arange(len(self.log_shape))
        return Assembled(self.dof, self.parameters, ((self, everything, everything),)).regressor(q, dq, ddq)


def regressor_along(model: LinearModel, motion: MotionSegment) -> Array:
    """Return the regressor (samples, dof, parameters) of an ordered motion, including terms with memory."""
    own = robot_model(model)
    if own is not None and own.channels:
        return own.regressor(motion.q, motion.dq, motion.ddq, threads=1, memory=own.memory(motion))
    return np.asarray(model.regressor(motion.q, motion.dq, motion.ddq))
