"""Minimal interface of a custom model, and its completion by all methods of `Model`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, Bools, Ints
from dynid.dynamics.physics import solve_motion
from dynid.errors import ModelError
from dynid.model.data_context import DataContext, learned_fields
from dynid.model.elements import Element
from dynid.model.model import Model
from dynid.model.parameters import Parameters
from dynid.model.term import MotionSegment, differences
from dynid.robot import Robot, numbered_joints


class LinearModel(Protocol):
    """Protocol of the simplest model that can be identified: `dof`, `parameters` and `regressor`.

    `regressor` takes arrays (samples, dof) and returns (samples, dof, parameters).
    """

    @property
    def dof(self) -> int: ...

    @property
    def parameters(self) -> Parameters: ...

    def regressor(self, q: Array, dq: Array, ddq: Array) -> Array: ...


Values = ArrayLike | Mapping[str, float]


class CompleteModel(LinearModel, Protocol):
    """A model with all methods that estimation, simulation, excitation and validation use, see `Model`.

    Members that a model may lack are None or empty: `robot`, `robot_model`, `elements`, `channels` (0).
    """

    @property
    def robot(self) -> Robot | None: ...

    @property
    def robot_model(self) -> Model | None: ...

    @property
    def joint_names(self) -> tuple[str, ...]: ...

    @property
    def structure(self) -> Bools: ...

    @property
    def shape_names(self) -> tuple[str, ...]: ...

    @property
    def slow_joints(self) -> tuple[int, ...]: ...

    @property
    def channels(self) -> int: ...

    def memory(self, motion: MotionSegment) -> Array: ...

    def fill(self, q: Array, dq: Array, ddq: Array, place: Ints, out: Array, memory: Array | None = None) -> None: ...

    def pull_back(self, q: Array, dq: Array, ddq: Array, place: Ints, weights: Array) -> Array: ...

    def with_smooth_signs(self, width: float) -> CompleteModel: ...

    def elements(self, theta: ArrayLike) -> tuple[Element, ...] | None: ...

    def inverse_dynamics(self, theta: Values, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, *,
                         memory: Array | None = None) -> Array: ...

    def bias(self, theta: Values, q: ArrayLike, dq: ArrayLike) -> Array: ...

    def inertia_matrix(self, theta: Values, q: ArrayLike) -> Array: ...

    def forward_dynamics(self, theta: Values, q: ArrayLike, dq: ArrayLike, tau: ArrayLike) -> Array: ...


def complete(model: LinearModel) -> CompleteModel:
    """Return a model with all methods of `Model`. A `Model` or a completed model is returned unchanged."""
    return model if isinstance(model, Model | Completed) else Completed(model)


def bound(model: LinearModel, context: DataContext) -> LinearModel:
    """Return the model with terms set from data, see `DataContext`; a model without `bind` is unchanged."""
    bind = getattr(model, "bind", None)
    found: LinearModel = model if bind is None else bind(context)
    return found


def depends_on_data(model: LinearModel) -> bool:
    """Return whether terms of a model are set from data, see `DataContext`."""
    own = robot_model(model)
    return own is not None and any(learned_fields(term) for term in own.terms)


def robot_model(model: LinearModel) -> Model | None:
    """Return a model as a `Model` of a robot and terms; None for a custom model and for flexible joints."""
    return complete(model).robot_model


def required_robot_model(model: LinearModel, purpose: str) -> Model:
    """Return a model as a `Model` of a robot and terms.

    Args:
        model: model to examine.
        purpose: name of the function that needs such a model, at the beginning of the error message.

    Raises:
        ModelError: if the model does not consist of a robot and terms.
    """
    found = robot_model(model)
    if found is None:
        raise ModelError(f"{purpose} needs a model made from a robot and terms, not a custom model or a model with "
                         "flexible joints", code="model-without-robot")
    return found


def split_regressor(model: LinearModel, q: Array, dq: Array) -> tuple[Array, Array]:
    """Return the regressor at zero acceleration (samples, dof, parameters), and its change for a unit acceleration of
    each joint (samples, dof, dof, parameters). The model's regressor is called only once."""
    samples, n = q.shape
    units = np.vstack([np.zeros((1, n)), np.eye(n)])
    every = np.asarray(model.regressor(np.repeat(q, n + 1, axis=0), np.repeat(dq, n + 1, axis=0),
                                       np.tile(units, (samples, 1)))).reshape(samples, n + 1, n, -1)
    return every[:, 0], every[:, 1:] - every[:, :1]


def can_compile(model: LinearModel) -> bool:
    """Return whether compiled code can simulate the model, because all its terms have elements."""
    own = robot_model(model)
    if own is not None:
        return own.has_elements
    return complete(model).robot is not None and complete(model).elements(np.zeros(len(model.parameters))) is not None


def least_inertia(matrices: Array) -> tuple[Array, Array]:
    """Return the smallest eigenvalue of inertia matrices (samples, dof, dof) divided by the largest (samples,), and its
    eigenvector (samples, dof)."""
    values, vectors = np.linalg.eigh(matrices)
    largest = np.abs(values).max(axis=1)
    return values[:, 0] / np.where(largest > 0, largest, 1.0), vectors[:, :, 0]


@dataclass(frozen=True, eq=False)
class Completed:
    """A custom model with all methods of `CompleteModel`; methods that the custom model lacks are derived."""

    model: LinearModel

    def _own(self, name: str) -> Any:
        return getattr(self.model, name, None)

    @property
    def dof(self) -> int:
        return self.model.dof

    @property
    def parameters(self) -> Parameters:
        return self.model.parameters

    @property
    def robot(self) -> Robot | None:
        return self._own("robot")

    @property
    def robot_model(self) -> Model | None:
        return self._own("robot_model")

    @property
    def joint_names(self) -> tuple[str, ...]:
        own = self._own("joint_names")
        if own is not None:
            return tuple(own)
        return numbered_joints(self.dof) if self.robot is None else self.robot.joint_names

    @property
    def structure(self) -> Bools:
        own = self._own("structure")
        return np.ones((self.dof, len(self.parameters)), dtype=bool) if own is None else np.asarray(own, dtype=bool)

    @property
    def shape_names(self) -> tuple[str, ...]:
        return tuple(self._own("shape_names") or ())

    @property
    def slow_joints(self) -> tuple[int, ...]:
        return tuple(self._own("slow_joints") or ())

    @property
    def channels(self) -> int:
        return int(self._own("channels") or 0)

    def memory(self, motion: MotionSegment) -> Array:
        return np.asarray(self._own("memory")(motion)) if self.channels else np.zeros((len(motion.t), 0))

    def regressor(self, q: Array, dq: Array, ddq: Array) -> Array:
        return self.model.regressor(q, dq, ddq)

    def fill(self, q: Array, dq: Array, ddq: Array, place: Ints, out: Array, memory: Array | None = None) -> None:
        own = self._own("fill")
        if own is not None:
            own(q, dq, ddq, place, out, *(() if memory is None else (memory,)))
            return
        joints, columns = np.nonzero(place >= 0)
        out[place[joints, columns]] = np.asarray(self.regressor(q, dq, ddq))[:, joints, columns].T

    def pull_back(self, q: Array, dq: Array, ddq: Array, place: Ints, weights: Array) -> Array:
        own = self._own("pull_back")
        if own is not None:
            return np.asarray(own(q, dq, ddq, place, weights))
        joints, columns = np.nonzero(place >= 0)

        def entries(*motion: Array) -> Array:
            return np.asarray(self.regressor(*motion))[:, joints, columns].T

        return differences(entries, q, dq, ddq, weights[place[joints, columns]])

    def with_smooth_signs(self, width: float) -> CompleteModel:
        own = self._own("with_smooth_signs")
        return self if own is None else complete(own(width))

    def elements(self, theta: ArrayLike) -> tuple[Element, ...] | None:
        own = self._own("elements")
        return None if own is None else tuple(own(theta))

    def inverse_dynamics(self, theta: Values, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, *,
                         memory: Array | None = None) -> Array:
        own = self._own("inverse_dynamics")
        if own is not None and memory is not None:
            return np.asarray(own(theta, q, dq, ddq, memory=memory))
        if own is not None:
            return np.asarray(own(theta, q, dq, ddq))
        q, dq, ddq = (np.asarray(x, dtype=float) for x in (q, dq, ddq))
        y = np.asarray(self.regressor(*(np.atleast_2d(x) for x in (q, dq, ddq))))
        return (y @ self.parameters.vector(theta)).reshape(q.shape)

    def bias(self, theta: Values, q: ArrayLike, dq: ArrayLike) -> Array:
        """Return the torques (samples, dof) at zero acceleration."""
        return self.inverse_dynamics(theta, q, dq, np.zeros(np.shape(q)))

    def inertia_matrix(self, theta: Values, q: ArrayLike) -> Array:
        own = self._own("inertia_matrix")
        return np.asarray(own(theta, q)) if own is not None else self._split(theta, q, np.zeros(np.shape(q)))[0]

    def forward_dynamics(self, theta: Values, q: ArrayLike, dq: ArrayLike, tau: ArrayLike) -> Array:
        own = self._own("forward_dynamics")
        if own is not None:
            return np.asarray(own(theta, q, dq, tau))
        inertia, bias = self._split(theta, q, dq)
        return solve_motion(inertia, np.asarray(tau, dtype=float) - bias)

    def _split(self, theta: Values, q: ArrayLike, dq: ArrayLike) -> tuple[Array, Array]:
        """Return inertia matrices (samples, dof, dof) and bias torques (samples, dof), or those of one sample."""
        q, dq = np.asarray(q, dtype=float), np.asarray(dq, dtype=float)
        without, units = split_regressor(self, np.atleast_2d(q), np.atleast_2d(dq))
        values = self.parameters.vector(theta)
        inertia, bias = np.swapaxes(units @ values, 1, 2), without @ values
        return (inertia, bias) if q.ndim > 1 else (inertia[0], bias[0])
