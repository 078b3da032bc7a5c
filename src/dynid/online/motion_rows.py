"""Checked samples of a stream, and the entries of a regression along many samples or for a single one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, Bools, Ints
from dynid.errors import ModelError
from dynid.model import LinearModel, Model, complete, robot_model
from dynid.model.momentum import MomentumForm
from dynid.model.term import MotionSegment
from dynid.model.term_capabilities import Capabilities, SingleSample, capabilities
from dynid.regression.equations import Layout, known_sums, known_torque
from dynid.robot import Robot

_FLOAT = np.dtype(float)
_CARRIED = ("q", "dq", "states")  # names of the parts of `StreamMemory.last` in a file


def checked_motion(joints: Sequence[str], *signals: ArrayLike, of: str = "") -> list[Array]:
    """Return positions, velocities, accelerations and torques of the joints as contiguous (samples, dof) arrays.

    Raises an error for a wrong shape or non-finite numbers. of: beginning of the error message.
    """
    dof, found = len(joints), list[Array]()
    for name, signal in zip(("q", "dq", "ddq", "tau"), signals, strict=True):
        try:
            array = np.ascontiguousarray(signal, dtype=float)
        except (TypeError, ValueError):
            raise ModelError(f"{of}{name} must be an array of numbers") from None
        array = array.reshape(1, -1) if array.ndim <= 1 else array
        if array.ndim != 2 or array.shape[1] != dof:
            raise ModelError(f"{of}{name} must be ({dof},) or (samples, {dof}) for this model with {dof} joints, "
                             f"got shape {np.shape(signal)}")
        if found and len(array) != len(found[0]):
            raise ModelError(f"{of}{name} has {len(array)} samples but q has {len(found[0])}", code="lengths-differ")
        if not math.isfinite(array.sum()) and not np.isfinite(array).all():
            row, joint = np.argwhere(~np.isfinite(array))[0]
            raise ModelError(f"{of}{name} of joint '{joints[joint]}' is not finite in sample {row} of this block")
        found.append(array)
    return found


def fed_samples(t: ArrayLike, q: ArrayLike, tau: ArrayLike, dof: int, reference: ArrayLike | None = None
                ) -> tuple[Array, Array, Array]:
    """Return raw samples, one or a block, as arrays.

    Args:
        t: Time stamps (m,), s.
        q: Positions (m, dof).
        tau: Torques (m, dof).
        dof: Number of joints.
        reference: Commanded positions (m, dof), or None.

    Returns:
        Stamps (m,), positions (m, dof) and torques (m, dof). Commanded positions are further columns of the
        positions, (m, 2 dof): both go through the same filter.

    Raises:
        ModelError: If a shape does not fit.
    """
    stamps = np.atleast_1d(np.asarray(t, dtype=float))
    given = (q, tau) if reference is None else (q, tau, reference)
    arrays = [np.asarray(x, dtype=float).reshape(1, -1) if np.ndim(x) <= 1 else np.asarray(x, dtype=float)
              for x in given]
    shape = (len(stamps), dof)
    if stamps.ndim != 1 or any(x.shape != shape for x in arrays):
        raise ModelError(f"{len(stamps)} time stamps need positions and torques"
                         f"{'' if reference is None else ' and commanded positions'} of shape {shape}, got "
                         f"{' and '.join(str(np.shape(x)) for x in given)}", code="bad-shape")
    return stamps, arrays[0] if reference is None else np.hstack([arrays[0], arrays[2]]), arrays[1]


class StreamMemory:
    """States of the terms with memory along a stream, from block to block.

    A term needs a method `step` for this; the other terms with memory need times, so their states are nan.
    """

    def __init__(self, model: LinearModel) -> None:
        own, self._parts, self._channels = robot_model(model), list[tuple[Capabilities, slice]](), 0
        for term in () if own is None else own.terms:
            offers = capabilities(term)
            count = 0 if own is None or offers.history is None else offers.history.channels(own.robot)
            if offers.step is not None:
                self._parts.append((offers, slice(self._channels, self._channels + count)))
            self._channels += count
        self._model = own
        self.last: tuple[Array, Array, Array] | None = None  # q and dq (1, dof), states (1, channels) of a sample

    def along(self, q: Array, dq: Array) -> Array | None:
        """Return the states (m, channels) at the next samples q, dq (m, dof) of the stream; None without such terms."""
        if not self._parts or self._model is None:
            return None
        found = np.full((len(q), self._channels), np.nan)
        for k in range(len(q)):
            now = q[k:k + 1], dq[k:k + 1]
            for offers, own in self._parts:
                found[k, own] = self._state(offers, own, *now)
            self.last = (*now, found[k:k + 1])
        if self.last is not None:
            self.last = (self.last[0].copy(), self.last[1].copy(), self.last[2].copy())  # not the whole block
        return found

    def _state(self, offers: Capabilities, own: slice, q: Array, dq: Array) -> Array:
        """Return the state (channels of the term,) at a sample q, dq (1, dof)."""
        assert offers.history is not None and offers.step is not None and self._model is not None
        if self.last is None:
            start = MotionSegment(np.zeros(1), q, dq, np.zeros_like(q))
            return np.asarray(offers.history.memory(self._model, start))[0]
        before = (self.last[0], self.last[1], self.last[2][:, own])
        return np.array([float(x[0]) for x in offers.step(self._model.robot, before, q, dq)])


def measured_joints(joints: Sequence[str], unmeasured: Sequence[str]) -> Bools:
    """Return a mask (1, dof) of the joints whose torque is measured; raise an error for unknown names, or if none is
    measured."""
    unknown = [name for name in unmeasured if name not in joints]
    if unknown:
        raise ModelError(f"the torque of '{unknown[0]}' is listed as not measured, but the robot has no such joint; "
                         f"its joints are {', '.join(joints)}", code="unknown-joint")
    measured = np.array([[name not in unmeasured for name in joints]])
    if not measured.any():
        raise ModelError("the torque of no joint is measured, so a stream identifies nothing; list fewer joints under "
                         "`unmeasured`", code="torque-not-measured")
    return measured


def without_unmeasured(tau: ArrayLike, measured: Bools) -> Array:
    """Return torques (dof,) or (samples, dof) with zeros for joints without measured torque; measured: (1, dof)."""
    found = np.asarray(tau, dtype=float)
    return np.where(measured[0], found, 0.0) if found.shape[-1:] == measured.shape[1:] else found


class RowEntries:
    """Entries of a regression along a motion, before they are filtered (`CausalRows`).

    Args:
        layout: Row of each entry in the result.
        equations: "torque" for the regressor and torques, "kernel" for momentum and force.
        beside: Function that computes further signals (k, m) from positions and velocities (m, dof). These signals are
            filtered like torques and are the last rows of the result.
        load: Torques (m, dof) transmitted by the gears, from positions, velocities and torques (m, dof); for momentum
            and force of load-dependent friction.

    If a motion has 2 dof columns, the second half are references; their rows are below those of the measured motion.
    Terms with memory continue from one call to the next, until `restart`.
    """

    def __init__(self, layout: Layout, equations: str = "torque",
                 beside: Callable[[Array, Array], Array] | None = None,
                 load: Callable[[Array, Array, Array], Array] | None = None) -> None:
        self.layout, self.beside, self.load = layout, beside, load
        self.torque_rows = np.array([layout.joint(j).stop - 1 for j in range(len(layout.columns))])
        self.form = (None if equations == "torque"
                     else MomentumForm.from_model(layout.model, is_load_given=load is not None))
        self.restart()

    def restart(self) -> None:
        """Begin a new segment, in which terms with memory do not know the motion before."""
        self.memory, self.reference_memory = StreamMemory(self.layout.model), StreamMemory(self.layout.model)

    def arrays(self) -> dict[str, Array]:
        """Return the states of terms with memory at the last sample, from which `restore` continues."""
        return {f"{name}_{part}": x for name, memory in self._memories for part, x in zip(_CARRIED, memory.last or (),
                                                                                          strict=False)}

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """Continue terms with memory from the result of `arrays`."""
        for name, memory in self._memories:
            if f"{name}_{_CARRIED[0]}" in arrays:
                q, dq, states = (np.array(arrays[f"{name}_{part}"], dtype=float) for part in _CARRIED)
                memory.last = q, dq, states

    @property
    def _memories(self) -> tuple[tuple[str, StreamMemory], ...]:
        return ("along_motion", self.memory), ("along_reference", self.reference_memory)

    def __call__(self, q: Array, dq: Array, *more: Array) -> tuple[Array, ...]:
        """Return entries (rows, m), one array per kernel, along a motion q, dq, (ddq,) tau (m, dof)."""
        dof = len(self.layout.columns)
        if q.shape[1] > dof:
            measured, along = ([np.ascontiguousarray(x[:, part]) for x in (q, dq, *more[:-1])] + [more[-1]]
                               for part in (slice(dof), slice(dof, None)))
            return tuple(np.vstack(both) for both in zip(self._rows(self.memory, *measured),
                                                         self._rows(self.reference_memory, *along), strict=True))
        return self._rows(self.memory, q, dq, *more)

    def _rows(self, carried: StreamMemory, q: Array, dq: Array, *more: Array) -> tuple[Array, ...]:
        memory = carried.along(q, dq)
        found = ((self.torques(q, dq, *more, memory=memory),) if self.form is None
                 else self._momenta(self.form, memory, q, dq, *more))
        if self.beside is None:
            return found
        below = self.beside(q, dq)
        return (*(np.vstack([x, np.zeros_like(below)]) for x in found[:-1]), np.vstack([found[-1], below]))

    def torques(self, q: Array, dq: Array, ddq: Array, tau: Array, *, memory: Array | None = None) -> Array:
        """Return regressor and torques (layout.rows, m), with the torque of known parameters subtracted.

        memory (m, channels): states of terms with memory, see `StreamMemory`.
        """
        layout, found = self.layout, np.empty((self.layout.rows, len(q)))
        complete(layout.model).fill(q, dq, ddq, layout.place, found, *(() if memory is None else (memory,)))
        known = layout.base.known
        found[self.torque_rows] = (tau if not known
                                   else tau - known_torque(layout.model, layout.base, q, dq, ddq, memory)).T
        return found

    def _momenta(self, form: MomentumForm, memory: Array | None, q: Array, dq: Array,
                 tau: Array) -> tuple[Array, Array]:
        """Return momentum and force (layout.rows, m) followed by torques, with those of known parameters subtracted."""
        layout, load = self.layout, self.load(q, dq, tau) if self.load is not None and form.under_load else None

        def filled(place: Ints, rows: int) -> tuple[Array, Array]:
            momentum, force = np.empty((rows, len(q))), np.empty((rows, len(q)))
            form.fill(q, dq, place, momentum, force, memory, load=load)
            return momentum, force

        momentum, force = filled(layout.place, layout.rows)
        momentum[self.torque_rows], force[self.torque_rows] = 0.0, tau.T
        if layout.base.known:
            known = known_sums(layout.model, layout.base, filled)
            momentum[self.torque_rows] -= known[0]
            force[self.torque_rows] -= known[1]
        return momentum, force


class OneSample:
    """Rows (layout.rows, 1) of one sample in preallocated arrays, because allocation takes longer than the computation.

    terms: terms of the model, each with the slice of its entries in a vector of `count` values, of which the last are
    the torques. order: index of each row's value in this vector (layout.rows,).
    """

    def __init__(self, robot: Robot, terms: list[tuple[SingleSample, slice]], order: Ints, count: int) -> None:
        self._given = (robot, terms, order, count)
        self._robot, self._terms, self._order = robot, terms, order
        self._motion, self._values = np.zeros((4, robot.dof)), np.zeros(count)
        self._flat, self._torques = self._motion.reshape(-1), self._values[count - robot.dof:]
        self._signals = tuple(self._motion)
        self._shape, self.velocities = (robot.dof,), self._signals[1]
        self.rows = np.zeros((len(order), 1))
        self._column = self.rows[:, 0]

    def __reduce__(self) -> tuple[Any, ...]:
        """Support copying and pickling: arrays of the copy share memory with each other like those of the original."""
        return OneSample, self._given

    @staticmethod
    def from_model(model: Model, layout: Layout, torque_rows: Ints) -> OneSample | None:
        """Return the fast single-sample computation for a model, or None if a term does not support it."""
        terms: list[tuple[SingleSample, slice]] = []
        order, count = np.zeros(layout.rows, dtype=np.int64), 0
        for term, columns in model.parts:
            single = capabilities(term).single_sample
            if single is None:
                return None
            joints, parameters = single.instant_entries(model.robot)
            rows = layout.place[joints, columns[parameters]]
            order[rows[rows >= 0]] = count + np.flatnonzero(rows >= 0)
            terms.append((single, slice(count, count + len(rows))))
            count += len(rows)
        order[torque_rows] = count + np.arange(model.dof)
        return OneSample(model.robot, terms, order, count + model.dof)

    def take(self, q: Any, dq: Any, ddq: Any, tau: Any) -> bool:
        """Compute `rows` of one sample and return True; return False for a block or invalid numbers."""
        for x in (q, dq, ddq, tau):
            if type(x) is not np.ndarray or x.shape != self._shape or x.dtype != _FLOAT:
                return False
        motion, flat, values = self._signals, self._flat, self._values
        motion[0][:], motion[1][:], motion[2][:], motion[3][:] = q, dq, ddq, tau
        if not math.isfinite(flat.dot(flat)):
            return False
        for term, part in self._terms:
            values[part] = term.instant(self._robot, motion[0], motion[1], motion[2])
        self._torques[:] = motion[3]
        values.take(self._order, out=self._column, mode="clip")  # this mode writes in place
        return True
