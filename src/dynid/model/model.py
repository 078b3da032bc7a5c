"""Model: a robot and the terms that add to its torques, tau = Y(q, dq, ddq) theta."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from dynid import dynamics
from dynid.arrays import Array, Bools, Ints
from dynid.errors import ModelError
from dynid.model.friction import (
    AsymmetricCoulomb,
    AsymmetricViscous,
    Coulomb,
    CoupledWrist,
    MotorSide,
    Offset,
    Sign,
    Stribeck,
    Viscous,
)
from dynid.model.motion import solve_motion
from dynid.model.parameters import Parameter, Parameters
from dynid.model.terms import Payload, RigidBodies, RotorInertia, Shaped, Spring, Term, fill_entries
from dynid.robot import Robot
from dynid.threads import over_samples


class LinearModel(Protocol):
    """What identification needs: a user's own model is any object with these three.

    regressor takes (samples, dof) arrays and gives (samples, dof, parameters).
    """

    @property
    def dof(self) -> int: ...

    @property
    def parameters(self) -> Parameters: ...

    def regressor(self, q: Array, dq: Array, ddq: Array) -> Array: ...


@dataclass(frozen=True, eq=False)
class Model:
    """A robot and terms; without any, its rigid bodies alone.

    The parameters of all terms stand in one list: body by body, each followed by what else belongs to its joint.
    """

    robot: Robot
    terms: tuple[Term, ...] = (RigidBodies(),)

    def __post_init__(self) -> None:
        if not self.terms:
            raise ModelError(f"a model of robot '{self.robot.name}' needs at least one term")
        object.__setattr__(self, "terms", tuple(self.terms))
        _ = self.parameters  # a term that does not fit the robot is refused here, not at first use

    @property
    def dof(self) -> int:
        return self.robot.dof

    @cached_property
    def _columns(self) -> tuple[tuple[Parameter, ...], list[Ints]]:
        """All parameters in order, and for each term the places of its own among them."""
        owned = [(parameter, t, k) for t, term in enumerate(self.terms)
                 for k, parameter in enumerate(term.parameters(self.robot))]
        # By joint, then in the order of the terms; a payload stands behind everything it hangs on.
        owned.sort(key=lambda item: (isinstance(self.terms[item[1]], Payload), item[0].owner))
        places = [np.empty(len(term.parameters(self.robot)), dtype=np.int64) for term in self.terms]
        for column, (_, t, k) in enumerate(owned):
            places[t][k] = column
        return tuple(parameter for parameter, _, _ in owned), places

    @cached_property
    def parameters(self) -> Parameters:
        return Parameters(self._columns[0])

    @cached_property
    def structure(self) -> Bools:
        """structure[j, c]: parameter c can show in the torque of joint j (dof, parameters)."""
        probe = np.random.default_rng(0).normal(size=(3, 2, self.dof))
        found = np.zeros((self.dof, len(self.parameters)), dtype=bool)
        for term, columns in zip(self.terms, self._columns[1], strict=True):
            for joint, parameter, _ in term.entries(self.robot, *probe):
                found[joint, columns[parameter]] = True
        return found

    def fill(self, q: Array, dq: Array, ddq: Array, place: Ints, out: Array) -> None:
        """Chosen entries of the regressor, each contiguous over the samples; for one thread of a fold.

        place (dof, parameters): the row of out (rows, samples) each goes to, -1 for nowhere.
        """
        for term, columns in zip(self.terms, self._columns[1], strict=True):
            fill_entries(term, self.robot, q, dq, ddq, np.ascontiguousarray(place[:, columns]), out)

    def regressor(self, q: ArrayLike, dq: ArrayLike, ddq: ArrayLike, *, threads: int | None = None) -> Array:
        """Y with tau = Y theta: (samples, dof, parameters), or (dof, parameters) for one sample."""
        q, dq, ddq = (np.ascontiguousarray(x, dtype=float) for x in (q, dq, ddq))
        if q.ndim == 1:
            return self.regressor(q[None], dq[None], ddq[None])[0]
        joints, columns = np.nonzero(self.structure)
        place = np.full(self.structure.shape, -1, dtype=np.int64)
        place[joints, columns] = np.arange(len(joints))
        dynamics.check_motion(self.robot, q=q, dq=dq, ddq=ddq)
        out = np.zeros((len(q), *self.structure.shape))

        def piece(start: int, stop: int) -> None:
            for lo in range(start, stop, 256):  # small enough to stay in cache between the two writes
                rows = slice(lo, min(lo + 256, stop))
                entries = np.empty((len(joints), rows.stop - rows.start))
                self.fill(q[rows], dq[rows], ddq[rows], place, entries)
                out[rows, joints, columns] = entries.T

        over_samples(piece, len(q), threads)
        return out

    # -- physics with a parameter vector ---------------------------------------------------------
    def inverse_dynamics(self, theta: ArrayLike | Mapping[str, float], q: ArrayLike, dq: ArrayLike,
                         ddq: ArrayLike) -> Array:
        """Torques (samples, dof) of the whole model for parameters theta."""
        theta = self.parameters.vector(theta)
        q, dq, ddq = (np.ascontiguousarray(x, dtype=float) for x in (q, dq, ddq))
        if q.ndim == 1:
            return self.inverse_dynamics(theta, q[None], dq[None], ddq[None])[0]
        tau = np.zeros(q.shape)
        for term, columns in zip(self.terms, self._columns[1], strict=True):
            values = theta[columns]
            if isinstance(term, RigidBodies):
                tau += dynamics.inverse_dynamics(self.robot, values, q, dq, ddq)
                continue
            for joint, parameter, column in term.entries(self.robot, q, dq, ddq):
                tau[:, joint] += values[parameter] * column
        return tau

    def inertia_matrix(self, theta: ArrayLike | Mapping[str, float], q: ArrayLike) -> Array:
        """Joint-space inertia matrix (samples, dof, dof), rotors and payload included."""
        theta = self.parameters.vector(theta)
        q = np.ascontiguousarray(q, dtype=float)
        if q.ndim == 1:
            return self.inertia_matrix(theta, q[None])[0]
        matrix = np.zeros((*q.shape, self.dof))
        still = np.zeros_like(q)
        for term, columns in zip(self.terms, self._columns[1], strict=True):
            if isinstance(term, RigidBodies):
                matrix += dynamics.inertia_matrix(self.robot, theta[columns], q)
            elif getattr(term, "accelerates", True):
                # Column k of M is what unit acceleration of joint k adds to the torques.
                for joint, parameter, column in term.entries(self.robot, q, still, still):
                    matrix[:, joint] -= theta[columns[parameter]] * column[:, None]
                for k in range(self.dof):
                    unit = still.copy()
                    unit[:, k] = 1.0
                    for joint, parameter, column in term.entries(self.robot, q, still, unit):
                        matrix[:, joint, k] += theta[columns[parameter]] * column
        return matrix

    def forward_dynamics(self, theta: ArrayLike | Mapping[str, float], q: ArrayLike, dq: ArrayLike,
                         tau: ArrayLike) -> Array:
        """Accelerations (samples, dof) under the torques tau."""
        theta = self.parameters.vector(theta)
        q, dq, tau = (np.ascontiguousarray(x, dtype=float) for x in (q, dq, tau))
        if q.ndim == 1:
            return self.forward_dynamics(theta, q[None], dq[None], tau[None])[0]
        bias = self.inverse_dynamics(theta, q, dq, np.zeros_like(q))
        return solve_motion(self.inertia_matrix(theta, q), tau - bias)

    # -- shape of terms that are nonlinear in some parameters ------------------------------------
    @property
    def shape_names(self) -> tuple[str, ...]:
        """Names of the free shape parameters of all terms (see `Stribeck`)."""
        return tuple(name for term in self.terms if isinstance(term, Shaped) for name in term.shape_names(self.robot))

    @property
    def shape(self) -> Array:
        """Their present values."""
        parts = [term.shape(self.robot) for term in self.terms if isinstance(term, Shaped)]
        return np.concatenate(parts) if parts else np.empty(0)

    def with_shape(self, values: ArrayLike) -> Model:
        """The same model with other shape parameters."""
        values = np.asarray(values, dtype=float)
        if values.shape != self.shape.shape:
            raise ModelError(f"the model has {len(self.shape)} free shape parameters, got {values.shape}")
        terms, at = list(self.terms), 0
        for k, term in enumerate(terms):
            if isinstance(term, Shaped):
                count = len(term.shape(self.robot))
                terms[k] = term.with_shape(self.robot, values[at:at + count])
                at += count
        return replace(self, terms=tuple(terms))


FRICTION = {term.kind: term for term in (Viscous, Coulomb, Offset, AsymmetricCoulomb, AsymmetricViscous, Stribeck)}
KINDS: dict[str, Any] = {"rigid": RigidBodies, "rotor": RotorInertia, "payload": Payload, "spring": Spring,
                         "motor-side": MotorSide, "coupled-wrist": CoupledWrist, **FRICTION}


def term_from_table(table: Mapping[str, Any]) -> Term:
    """A term from a table of a robot or run file: its `kind` and options, such as {kind = "coulomb", sign = "tanh"}."""
    options = dict(table)
    kind = options.pop("kind", None)
    if kind not in KINDS:
        raise ModelError(f"there is no term of kind '{kind}'; there are {', '.join(KINDS)}")
    if "sign" in options:
        options["sign"] = Sign(**options["sign"]) if isinstance(options["sign"], Mapping) else Sign(options["sign"])
    for name in ("joints", "free", "parts"):
        if name in options:
            options[name] = tuple(options[name])
    try:
        return KINDS[kind](**options)
    except TypeError:
        known = ", ".join(f.name for f in fields(KINDS[kind]))
        raise ModelError(f"term '{kind}' was given {', '.join(options) or 'nothing'}; it takes {known}") from None


def make_terms(robot: Robot, friction: Iterable[str] = (), rotor: bool = False, defaults: bool = False,
               extra: Sequence[Mapping[str, Any] | Term] = ()) -> tuple[Term, ...]:
    """Terms for the usual cases: rigid bodies, then rotors, then friction by kind, then `extra` ones.

    defaults: the terms the robot's own file lists; a kind named here as well is not taken twice.
    """
    wanted: list[Term] = [RigidBodies()]
    if rotor:
        wanted.append(RotorInertia())
    for kind in friction:
        if kind not in FRICTION:
            raise ModelError(f"there is no friction called '{kind}'; there are {', '.join(FRICTION)}")
        wanted.append(FRICTION[kind]())
    if defaults:
        present = {getattr(term, "kind", "") for term in wanted}
        wanted += [term_from_table(table) for table in robot.terms if table.get("kind") not in present]
    wanted += [term_from_table(item) if isinstance(item, Mapping) else item for item in extra]
    return tuple(wanted)
