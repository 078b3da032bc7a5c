"""Model: a robot and the terms that add to its torques, tau = Y(q, dq, ddq) theta."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid import dynamics, html_tables
from dynid.arrays import Array, Bools, Ints
from dynid.dynamics.physics import solve_motion
from dynid.dynamics.root_frame import in_root_axes
from dynid.errors import ModelError, require_type
from dynid.model.data_context import DataContext, bind, depends_on_estimate, learned_fields
from dynid.model.elements import Bodies, Element
from dynid.model.following import with_followers
from dynid.model.parameters import Parameter, Parameters
from dynid.model.term import (
    MotionSegment,
    Term,
    accelerates,
    fill_entries,
    probing_motion,
    pull_back,
    with_smooth_signs,
)
from dynid.model.term_capabilities import Capabilities, SingleSample, capabilities, term_name
from dynid.model.terms import RigidBodies
from dynid.robot import Robot
from dynid.threads import over_samples

_MAX_LOAD_CORRECTIONS = 60  # iterations of accelerations with load-dependent friction; each halves the error


@dataclass(frozen=True, eq=False)
class Model:
    """Dynamic model of a robot: a sum of terms, by default its rigid bodies alone.

    Parameters are ordered by body: first its inertial parameters, then all other parameters of its joint.

    >>> robot = dynid.Robot.load("arm3r")
    >>> dynid.Model(robot, dynid.make_terms(robot, friction=("viscous",))).parameters.names[9:13]
    ('M1', 'Fv1', 'XX2', 'XY2')
    """

    robot: Robot
    terms: tuple[Term, ...] = (RigidBodies(),)

    def __post_init__(self) -> None:
        require_type(self.robot, Robot, "Model", "Model(dynid.Robot.load('robot.urdf'))")
        if not self.terms:
            raise ModelError(f"a model of robot '{self.robot.name}' needs at least one term",
                             code="no-terms")
        object.__setattr__(self, "terms", with_followers(self.robot, tuple(self.terms)))
        _ = self.parameters, self._offers  # a term that does not fit the robot raises an error here

    @property
    def dof(self) -> int:
        return self.robot.dof

    @property
    def robot_model(self) -> Model:
        """The model itself; None for custom models and models with flexible joints."""
        return self

    @property
    def joint_names(self) -> tuple[str, ...]:
        return self.robot.joint_names

    @cached_property
    def _owned(self) -> tuple[tuple[Parameter, ...], tuple[tuple[Term, Ints], ...]]:
        """All parameters of the model in order, and each term with the indices of its own parameters."""
        links = set(self.robot.body_names)
        owned = [(parameter, t, k) for t, term in enumerate(self.terms)
                 for k, parameter in enumerate(term.parameters(self.robot))]
        # By joint, then in the order of the terms; a payload follows all links.
        owned.sort(key=lambda item: (item[0].body is not None and item[0].body not in links, item[0].owner))
        places: list[list[int]] = [[-1] * sum(t == own for _, own, _ in owned) for t in range(len(self.terms))]
        for column, (_, t, k) in enumerate(owned):
            places[t][k] = column
        return (tuple(parameter for parameter, _, _ in owned),
                tuple((term, np.array(own, dtype=np.int64)) for term, own in zip(self.terms, places, strict=True)))

    def __repr__(self) -> str:
        return f"<Model of {self.robot.name}: {self.dof} joints, {len(self.parameters)} parameters>"

    def _repr_html_(self) -> str:
        rows = [(term_name(term), str(len(places))) for term, places in self.parts]
        return html_tables.card(repr(self)[1:-1], html_tables.table(("term", "parameters"), rows))

    @property
    def parts(self) -> tuple[tuple[Term, Ints], ...]:
        """Every term with the indices of its parameters among the parameters of the model."""
        return self._owned[1]

    @cached_property
    def _offers(self) -> tuple[Capabilities, ...]:
        """Optional methods of each term."""
        return tuple(map(capabilities, self.terms))

    @cached_property
    def parameters(self) -> Parameters:
        return Parameters(self._owned[0])

    @cached_property
    def structure(self) -> Bools:
        """Mask (dof, parameters) whose entry [j, c] is True if parameter c can affect the torque of joint j."""
        q, dq, ddq = probing_motion(self.robot, 2)
        found = np.zeros((self.dof, len(self.parameters)), dtype=bool)
        for (term, columns), own in zip(self.parts, self._offers, strict=True):
            entries = term.entries(self.robot, q, dq, ddq)
            if own.history is not None:
                memory = np.ones((2, own.history.channels(self.robot)))
                entries = own.history.remembered(self.robot, q, dq, ddq, memory)
            for joint, parameter, _ in entries:
                found[joint, columns[parameter]] = True
        return found

    @cached_property
    def _accelerating(self) -> tuple[bool, ...]:
        """Whether the contribution of each term to the inertia matrix is computed from the term's regressor entries.

        For a term with a kernel, the kernel computes this contribution. Load-dependent friction depends on
        accelerations through the torques of the bodies, but it is not an inertia.
        """
        return tuple(own.kernels is None and own.load is None and accelerates(term, self.robot)
                     for term, own in zip(self.terms, self._offers, strict=True))

    @property
    def slow_joints(self) -> tuple[int, ...]:
        """Joints, counted from 0, for which a term models friction at low speed."""
        return tuple(sorted({j for own in self._offers if own.slow_joints is not None
                             for j in own.slow_joints(self.robot)}))

    def fill(self, q: Array, dq: Array, ddq: Array, place: Ints, out: Array, memory: Array | None = None) -> None:
        """Write selected entries of the regressor, each contiguous over the samples, in one thread.

        `place` (dof, parameters) is the row of out (rows, samples) of each entry, -1 for none. `memory` (samples,
        channels) are the states of terms with memory, see `memory`.
        """
        for (term, columns), channels in zip(self.parts, self._channels, strict=True):
            if (own := np.ascontiguousarray(place[:, columns])).max(initial=-1) >= 0:
                fill_entries(term, self.robot, q, dq, ddq, own, out, None if memory is None else memory[:, channels])

    @cached_property
    def _channels(self) -> tuple[slice, ...]:
        """Slices of each term's memory within the memory of all terms."""
        counts = [0 if own.history is None else own.history.channels(self.robot) for own in self._offers]
        ends = np.cumsum(counts)
        return tuple(slice(int(end) - count, int(end)) for end, count in zip(ends, counts, strict=True))

    @property
    def channels(self) -> int:
        """Number of memory states of all terms with memory, such as LuGre friction."""
        return self._channels[-1].stop

    def memory(self, motion: MotionSegment) -> Array:
        """Return the states of the terms with memory along a motion without a gap (samples, channels)."""
        found = [own.history.memory(self, motion) for own in self._offers if own.history is not None]
        return np.hstack([np.zeros((len(motion.t), 0)), *found])

    def pull_back(self, q: Array, dq: Array, ddq: Array, place: Ints, weights: Array) -> Array:
        """Return the adjoint of `fill`: derivatives (3, samples, dof) by q, dq, ddq of sum(weights * entries)."""
        out = np.zeros((3, *q.shape))
        for term, columns in self.parts:
            own = np.ascontiguousarray(place[:, columns])
            if (own >= 0).any():
                pull_back(term, self.robot, q, dq, ddq, own, weights, out)
        return out

    def with_smooth_signs(self, width: float) -> Model:
        """Return a copy in which every discontinuous sign of a velocity is smooth over `width` rad/s."""
        return replace(self, terms=tuple(with_smooth_signs(term, width) for term in self.terms))

    @property
    def has_elements(self) -> bool:
        """Whether compiled code can simulate all terms, because each of them has a method `elements`."""
        return all(own.elements is not None for own in self._offers)

    def elements(self, theta: ArrayLike) -> tuple[Element, ...] | None:
        """Return the elements of a compiled simulation with parameters theta; None if a term has none."""
        values, found = self.parameters.vector(theta), list[Element]()
        for (_, columns), own in zip(self.parts, self._offers, strict=True):
            if own.elements is None:
                return None
            found += own.elements(self.robot, values[columns])
        return tuple(found)

    def body_numbers(self, theta: ArrayLike) -> Array:
        """Return the ten inertial parameters of every body with its payload (bodies, 10), dependent bodies last."""
        values, numbers = self.parameters.vector(theta), np.zeros((self.robot.tree.dof, 10))
        for (_, columns), own in zip(self.parts, self._offers, strict=True):
            if own.elements is not None and any(self.parameters.items[c].body is not None for c in columns):
                for element in own.elements(self.robot, values[columns]):
                    if isinstance(element, Bodies):
                        numbers[:len(element.numbers)] += element.numbers
        return numbers

    def regressor(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, *, threads: int | None = None,
                  memory: Array | None = None) -> Array:
        """Return the regressor Y with tau = Y theta: (samples, dof, parameters), or (dof, parameters) for one sample.
        memory (samples, channels): see `fill`."""
        q, dq, ddq = in_root_axes(self.robot, q, dq, ddq)
        if q.ndim == 1:
            one = self._regressor_of_one(q, dq, ddq)
            return self.regressor(q[None], dq[None], ddq[None])[0] if one is None else one
        joints, columns = np.nonzero(self.structure)
        place = np.full(self.structure.shape, -1, dtype=np.int64)
        place[joints, columns] = np.arange(len(joints))
        dynamics.check_motion(self.robot, q=q, dq=dq, ddq=ddq)
        out = np.zeros((len(q), *self.structure.shape))

        def piece(start: int, stop: int) -> None:
            for lo in range(start, stop, 256):  # samples that fit in the cache between the two writes
                rows = slice(lo, min(lo + 256, stop))
                entries = np.empty((len(joints), rows.stop - rows.start))
                self.fill(q[rows], dq[rows], ddq[rows], place, entries, None if memory is None else memory[rows])
                out[rows, joints, columns] = entries.T

        over_samples(piece, len(q), threads)
        return out

    @cached_property
    def _instants(self) -> tuple[tuple[SingleSample, Ints], ...] | None:
        """Every term with the indices of its entries in the flat regressor of one sample; None if a term cannot compute
        the entries of one sample."""
        found = []
        for (_, columns), own in zip(self.parts, self._offers, strict=True):
            if own.single_sample is None:
                return None
            joints, parameters = own.single_sample.instant_entries(self.robot)
            found.append((own.single_sample, joints * len(self.parameters) + columns[parameters]))
        return tuple(found)

    def _regressor_of_one(self, q: Array, dq: Array, ddq: Array) -> Array | None:
        """Return the regressor (dof, parameters) of a single sample, for controllers; None if a term does not support
        it, or for invalid inputs."""
        n, instants = len(self.robot.joints), self._instants
        if instants is None or not q.shape == dq.shape == ddq.shape == (n,) \
                or not math.isfinite(sum(q.tolist()) + sum(dq.tolist()) + sum(ddq.tolist())):
            return None
        out = np.zeros(n * len(self.parameters.items))
        for term, places in instants:
            out[places] = term.instant(self.robot, q, dq, ddq)
        return out.reshape(n, -1)

    # -- physics with a parameter vector ---------------------------------------------------------
    def inverse_dynamics(self, theta: ArrayLike | Mapping[str, float], q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, *,
                         memory: Array | None = None) -> Array:
        """Return torques (samples, dof) of the whole model for parameters theta. memory (samples, channels): see
        `fill`."""
        theta = self.parameters.vector(theta)
        q, dq, ddq = in_root_axes(self.robot, q, dq, ddq)
        if q.ndim == 1:
            return self.inverse_dynamics(theta, q[None], dq[None], ddq[None])[0]
        return self.with_bodies_if_unset(theta)._torques(theta, q, dq, ddq, memory)

    def _torques(self, theta: Array, q: Array, dq: Array, ddq: Array, memory: Array | None) -> Array:
        tau = np.zeros(q.shape)
        for (term, columns), own, channels in zip(self.parts, self._offers, self._channels, strict=True):
            values = theta[columns]
            if own.kernels is not None:
                tau += own.kernels.torques(self.robot, values, q, dq, ddq)
                continue
            entries = (term.entries(self.robot, q, dq, ddq) if memory is None or own.history is None
                       else own.history.remembered(self.robot, q, dq, ddq, memory[:, channels]))
            for joint, parameter, column in entries:
                tau[:, joint] += values[parameter] * column
        return tau

    def inertia_matrix(self, theta: ArrayLike | Mapping[str, float], q: ArrayLike) -> Array:
        """Return the joint-space inertia matrix (samples, dof, dof), including rotors and payload."""
        theta = self.parameters.vector(theta)
        (q,) = in_root_axes(self.robot, q)
        if q.ndim == 1:
            return self.inertia_matrix(theta, q[None])[0]
        matrix = np.zeros((*q.shape, self.dof))
        still = np.zeros_like(q)
        for (term, columns), own, accelerating in zip(self.parts, self._offers, self._accelerating, strict=True):
            if own.kernels is not None:
                matrix += own.kernels.inertia(self.robot, theta[columns], q)
            elif accelerating:
                # Column k of M is the torque of a unit acceleration of joint k.
                for joint, parameter, column in term.entries(self.robot, q, still, still):
                    matrix[:, joint] -= theta[columns[parameter]] * column[:, None]
                for k in range(self.dof):
                    unit = still.copy()
                    unit[:, k] = 1.0
                    for joint, parameter, column in term.entries(self.robot, q, still, unit):
                        matrix[:, joint, k] += theta[columns[parameter]] * column
        return matrix

    def bias(self, theta: ArrayLike | Mapping[str, float], q: ArrayLike, dq: ArrayLike) -> Array:
        """Return the bias torques (samples, dof): torques of all terms at zero acceleration."""
        return self.inverse_dynamics(theta, q, dq, np.zeros(np.shape(dq)))

    def forward_dynamics(self, theta: ArrayLike | Mapping[str, float], q: ArrayLike, dq: ArrayLike,
                         tau: ArrayLike) -> Array:
        """Return accelerations (samples, dof) under torques tau (samples, dof); proper accelerations of a free base."""
        theta = self.parameters.vector(theta)
        (q, dq), tau = in_root_axes(self.robot, q, dq), np.ascontiguousarray(tau, dtype=float)
        if q.ndim == 1:
            return self.forward_dynamics(theta, q[None], dq[None], tau[None])[0]
        inertia = self.inertia_matrix(theta, q)
        found = solve_motion(inertia, tau - self.bias(theta, q, dq))
        if not self._body_fields:
            return found
        # Load-dependent friction is less than half of the bodies' torques, so the iteration converges.
        for _ in range(_MAX_LOAD_CORRECTIONS):
            correction = solve_motion(inertia, tau - self.inverse_dynamics(theta, q, dq, found))
            found = found + correction
            if np.abs(correction).max(initial=0.0) <= 1e-12 * np.abs(found).max(initial=1.0):
                break
        return found

    # -- terms that are set from data -------------------------------------------------
    @cached_property
    def loaded(self) -> Bools:
        """Mask (parameters,) of parameters whose terms depend on the last estimate."""
        found = np.zeros(len(self.parameters), dtype=bool)
        for term, columns in self.parts:
            found[columns] = depends_on_estimate(term)
        return found

    @cached_property
    def _body_fields(self) -> tuple[tuple[Term, str], ...]:
        """Terms whose columns depend on the inertias of the bodies, each with the name of its field for these
        inertias."""
        return tuple((term, name) for term in self.terms for name, entry in learned_fields(term).items()
                     if entry == "bodies")

    def bind(self, context: DataContext) -> Model:
        """Return the model with its terms set from logs and estimates, see `DataContext`."""
        terms = tuple(bind(term, context) for term in self.terms)
        return self if all(map(operator.is_, terms, self.terms)) else replace(self, terms=terms)

    def with_estimate(self, theta: ArrayLike) -> Model:
        """Return a copy of the model with estimate-dependent terms evaluated at parameters theta."""
        if not self.loaded.any():
            return self
        return self.bind(DataContext(bodies=self.body_numbers(theta), estimate=self.parameters.vector(theta)))

    def with_bodies_if_unset(self, theta: ArrayLike) -> Model:
        """Return a copy whose load-dependent terms take the inertias that are not set yet from parameters theta.

        Base parameters do not separate link inertias from rotor inertias, so inertias that were set take precedence.
        """
        is_set = all(getattr(term, name) is not None for term, name in self._body_fields)
        return self if is_set else self.bind(DataContext(bodies=self.body_numbers(theta)))

    @property
    def learned(self) -> dict[str, list[float]]:
        """Fields of terms that were set from data, as flat lists by "number of the term.name of the field"."""
        return {f"{k}.{name}": np.asarray(getattr(term, name), dtype=float).ravel().tolist()
                for k, term in enumerate(self.terms) for name in learned_fields(term)
                if getattr(term, name) is not None}

    def with_learned(self, learned: Mapping[str, Sequence[float]]) -> Model:
        """Return the model with fields of its terms set to values that the property `learned` returned earlier."""
        terms: list[Any] = list(self.terms)
        for place, values in learned.items():
            k, name = place.split(".")
            terms[int(k)] = replace(terms[int(k)], **{name: np.array(values)})
        return replace(self, terms=tuple(terms))

    # -- shape parameters, in which terms are nonlinear ------------------------------------
    @property
    def shape_names(self) -> tuple[str, ...]:
        """Names of the free shape parameters of all terms (see `Stribeck`)."""
        return tuple(name for own in self._offers if own.shape is not None
                     for name in own.shape.shape_names(self.robot))

    @property
    def shape(self) -> Array:
        """Current values of the free shape parameters of all terms."""
        parts = [own.shape.shape(self.robot) for own in self._offers if own.shape is not None]
        return np.concatenate(parts) if parts else np.empty(0)

    def with_shape(self, values: ArrayLike) -> Model:
        """Return the model with other values (shape parameters,) of the free shape parameters."""
        values = np.asarray(values, dtype=float)
        if values.shape != self.shape.shape:
            raise ModelError(f"the model has {len(self.shape)} free shape parameters, got values of shape "
                             f"{values.shape}")
        terms, at = list(self.terms), 0
        for k, own in enumerate(self._offers):
            if own.shape is not None:
                count = len(own.shape.shape(self.robot))
                terms[k] = own.shape.with_shape(self.robot, values[at:at + count])
                at += count
        return replace(self, terms=tuple(terms))
