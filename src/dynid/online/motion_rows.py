"""Samples of a stream, checked, and the entries of a regression along them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, Ints
from dynid.errors import ModelError
from dynid.model import complete
from dynid.model.momentum import MomentumForm
from dynid.regression.equations import Layout, known_sums, known_torque


def checked_motion(joints: Sequence[str], *signals: ArrayLike, of: str = "") -> list[Array]:
    """Return positions, velocities, accelerations and torques of the joints as contiguous (samples, dof) arrays.

    Raises an error for numbers that are not finite.
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


class RowEntries:
    """Entries of a regression along a motion, before they are filtered (`CausalRows`).

    Args:
        layout: Where each entry goes.
        equations: "torque" for the regressor and torques, "kernel" for momentum and force.
        beside: Signals (k, m) of positions and velocities (m, dof) that are filtered as torques are, below the rows.
        load: Torques (m, dof) that the gears transmit, from positions, velocities and torques (m, dof); for momentum
            and force of friction that depends on them.

    Along a motion of 2 dof columns, the second half that of the references, the rows along the references are below
    those along the measured motion.
    """

    def __init__(self, layout: Layout, equations: str = "torque",
                 beside: Callable[[Array, Array], Array] | None = None,
                 load: Callable[[Array, Array, Array], Array] | None = None) -> None:
        self.layout, self.beside, self.load = layout, beside, load
        self.torque_rows = np.array([layout.joint(j).stop - 1 for j in range(len(layout.columns))])
        self.form = None if equations == "torque" else MomentumForm.of(layout.model, is_load_given=load is not None)

    def __call__(self, q: Array, dq: Array, *more: Array) -> tuple[Array, ...]:
        """Return entries (rows, m), one array for each kernel of the rows, along a motion q, dq, (ddq,) tau
        (m, dof)."""
        dof = len(self.layout.columns)
        if q.shape[1] > dof:
            measured, along = ([np.ascontiguousarray(x[:, part]) for x in (q, dq, *more[:-1])] + [more[-1]]
                               for part in (slice(dof), slice(dof, None)))
            return tuple(np.vstack(both) for both in zip(self(*measured), self(*along), strict=True))
        found = (self.torques(q, dq, *more),) if self.form is None else self._momenta(self.form, q, dq, *more)
        if self.beside is None:
            return found
        below = self.beside(q, dq)
        return (*(np.vstack([x, np.zeros_like(below)]) for x in found[:-1]), np.vstack([found[-1], below]))

    def torques(self, q: Array, dq: Array, ddq: Array, tau: Array) -> Array:
        """Return rows (layout.rows, m) of the inverse model, with the torque of known parameters subtracted."""
        layout, found = self.layout, np.empty((self.layout.rows, len(q)))
        complete(layout.model).fill(q, dq, ddq, layout.place, found)
        known = layout.base.known
        found[self.torque_rows] = (tau if not known else tau - known_torque(layout.model, layout.base, q, dq, ddq)).T
        return found

    def _momenta(self, form: MomentumForm, q: Array, dq: Array, tau: Array) -> tuple[Array, Array]:
        """Return momentum and force (layout.rows, m) followed by torques, with those of known parameters subtracted."""
        layout, load = self.layout, self.load(q, dq, tau) if self.load is not None and form.under_load else None

        def filled(place: Ints, rows: int) -> tuple[Array, Array]:
            momentum, force = np.empty((rows, len(q))), np.empty((rows, len(q)))
            form.fill(q, dq, place, momentum, force, load=load)
            return momentum, force

        momentum, force = filled(layout.place, layout.rows)
        momentum[self.torque_rows], force[self.torque_rows] = 0.0, tau.T
        if layout.base.known:
            known = known_sums(layout.model, layout.base, filled)
            momentum[self.torque_rows] -= known[0]
            force[self.torque_rows] -= known[1]
        return momentum, force
