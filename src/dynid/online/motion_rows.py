"""What a stream is given, checked, and the rows of a regression that it makes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, Ints
from dynid.errors import ModelError
from dynid.model import complete
from dynid.regression.equations import Layout, known_torque


def checked_motion(joints: Sequence[str], *signals: ArrayLike, of: str = "") -> list[Array]:
    """Positions, velocities, accelerations and torques of the joints as contiguous (samples, dof) arrays of finite
    numbers; others are refused."""
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
            raise ModelError(f"{of}{name} has {len(array)} samples but q has {len(found[0])}")
        if not math.isfinite(array.sum()) and not np.isfinite(array).all():
            row, joint = np.argwhere(~np.isfinite(array))[0]
            raise ModelError(f"{of}{name} of joint '{joints[joint]}' is not finite in sample {row} of this block")
        found.append(array)
    return found


def fed_samples(t: ArrayLike, q: ArrayLike, tau: ArrayLike, dof: int) -> tuple[Array, Array, Array]:
    """Time stamps (m,), positions and torques (m, dof) of raw samples, one or a block; shapes that do not fit are
    refused."""
    stamps = np.atleast_1d(np.asarray(t, dtype=float))
    positions, torques = (np.asarray(x, dtype=float).reshape(1, -1) if np.ndim(x) <= 1 else
                          np.asarray(x, dtype=float) for x in (q, tau))
    shape = (len(stamps), dof)
    if positions.shape != shape or torques.shape != shape or stamps.ndim != 1:
        raise ModelError(f"{len(stamps)} time stamps go with positions and torques of shape {shape}, got "
                         f"{np.shape(q)} and {np.shape(tau)}")
    return stamps, positions, torques


def torque_rows(layout: Layout) -> Ints:
    """Places (dof,) of the torques among the rows of a layout."""
    return np.array([layout.joint(j).stop - 1 for j in range(len(layout.columns))])


def motion_rows(layout: Layout, torques: Ints, q: Array, dq: Array, ddq: Array, tau: Array) -> Array:
    """Rows (layout.rows, m) of a motion (m, dof), the torque of known parameters taken off; torques: see
    `torque_rows`."""
    found = np.empty((layout.rows, len(q)))
    complete(layout.model).fill(q, dq, ddq, layout.place, found)
    base = layout.base
    found[torques] = (tau if not base.known else tau - known_torque(layout.model, base, q, dq, ddq)).T
    return found
