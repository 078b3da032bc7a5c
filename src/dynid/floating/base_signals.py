"""Signals of the base as recorders write them: values that are repeated, angular rates in degrees, and the order of a
quaternion's components.

Each is recognised by comparison with another signal of the same log.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeVar

import numpy as np

from dynid import dynamics
from dynid.arrays import Array
from dynid.dynamics.root_frame import quaternions
from dynid.errors import RecordingError

QuaternionOrder = Literal["xyzw", "wxyz"]
Order = TypeVar("Order", bound=str)
REPEATED_SIGNALS = {"base_position": "position", "base_orientation": "orientation", "base_velocity": "velocity"}
MIN_CHANGES = 10  # changes of a repeated signal, below which it may as well be at rest
MAX_UNEVEN = 0.1  # share of the intervals between changes that may be longer than twice the usual one
RATE_WINDOW = 0.2  # s over which angular rates are integrated: long for the noise, short for the motion
MIN_TURN = 0.01  # rad in such a window, below which the noise of an orientation decides
DEGREES_RATIO = 8.0  # of logged over actual rates: between one and the 57 of degrees
WRONG_ORDER = 4.0  # ratio of the squared errors of two orders, above which only one of them is possible


def without_repetition(t: Array, signals: Mapping[str, Array], notes: list[str]) -> dict[str, Array]:
    """Return signals in which base values that were logged at a lower rate, and so repeated in several rows, are
    interpolated."""
    found = dict(signals)
    for name, word in REPEATED_SIGNALS.items():
        if name not in found:
            continue
        values = np.asarray(found[name], dtype=float)
        changes = np.flatnonzero(np.concatenate([[True], np.any(np.diff(values, axis=0) != 0.0, axis=1)]))
        gaps = np.diff(changes)
        if len(gaps) < MIN_CHANGES or np.median(gaps) < 2 or np.mean(gaps > 2.0 * np.median(gaps)) > MAX_UNEVEN:
            continue
        known = values[changes]
        if name == "base_orientation":  # q and -q are the same rotation
            known = known * np.cumprod(np.concatenate([[1.0], np.where(np.sum(known[1:] * known[:-1], axis=1) < 0.0,
                                                                      -1.0, 1.0)]))[:, None]
        found[name] = np.stack([np.interp(t, t[changes], column) for column in known.T], axis=1)
        if name == "base_orientation":
            found[name] /= np.maximum(np.linalg.norm(found[name], axis=1, keepdims=True), 1e-9)
            found[name] *= np.median(np.linalg.norm(known, axis=1))  # a wrong norm is reported later
        notes.append(f"the {word} of the base has a new value only in every {np.median(gaps):.0f}th row and is "
                     "interpolated between these rows")
    return found


def rates_in_radians(t: Array, rate: Array, orientation: Array | None, specific_force: Array | None,
                     notes: list[str]) -> Array:
    """Return angular rates (samples, 3) in rad/s; they are in deg/s where they are many times those of another signal.

    Args:
        t: times (samples,), s.
        rate: logged angular rates (samples, 3).
        orientation: quaternions (samples, 4) in any order of components, or None.
        specific_force: of an accelerometer (samples, 3), whose direction shows rotations about horizontal axes, or
            None.
        notes: a note is appended if the unit is changed.
    """
    step = max(1, round(RATE_WINDOW * (len(t) - 1) / max(float(t[-1] - t[0]), 1e-9)))
    starts = np.arange(0, len(t) - 2 * step, step)
    if len(starts) < 3:
        return rate
    sums = np.concatenate([np.zeros((1, 3)), np.cumsum(0.5 * (rate[1:] + rate[:-1]) * np.diff(t)[:, None], axis=0)])
    if orientation is not None:
        turned = sums[starts + step] - sums[starts]
        unit = orientation / np.maximum(np.linalg.norm(orientation, axis=1, keepdims=True), 1e-9)
        # The product of two quaternions does not depend on the order of their components.
        cosine = np.abs(np.sum(unit[starts] * unit[starts + step], axis=1))
        shown, named = 2.0 * np.arccos(np.minimum(cosine, 1.0))[:, None], "orientation of the base"
    elif specific_force is not None:
        means = np.stack([np.mean(specific_force[k:k + step], axis=0) for k in starts])
        means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-9)
        middle = starts + step // 2
        turned = np.cross(sums[middle[1:]] - sums[middle[:-1]], means[:-1])
        shown, named = np.diff(means, axis=0), "direction of gravity"
    else:
        return rate
    size, actual = (float(np.sqrt(np.mean(np.sum(one ** 2, axis=1)))) for one in (turned, shown))
    if actual < MIN_TURN or size < DEGREES_RATIO * actual:
        return rate
    notes.append(f"the angular rate is {size / actual:.0f} times that of the {named}, so it is read in deg/s")
    return np.radians(rate)


def order_errors(t: Array, rate: Array, choices: Mapping[Order, Array]) -> dict[Order, float]:
    """Return the squared differences of integrated angular rates and orientations, for quaternions x y z w by order."""
    step, errors = np.diff(t)[:, None], dict[Order, float]()
    for order, one in choices.items():
        turns = dynamics.rotations(quaternions(dynamics.rotations(one)))
        between = turns[:-1].transpose(0, 2, 1) @ turns[1:]
        found = 0.5 * np.stack([between[:, i, j] - between[:, j, i] for i, j in ((2, 1), (0, 2), (1, 0))], axis=1)
        difference = found - rate[:-1] * step
        difference -= difference.mean(axis=0)  # a bias of the rates
        errors[order] = float(np.sum(np.cumsum(difference, axis=0) ** 2))
    return errors


def check_order(t: Array, rate: Array | None, chosen: Array, choices: Mapping[QuaternionOrder, Array],
                source: str) -> None:
    """Raise an error if quaternions x y z w (samples, 4) contradict the angular rates, and those in another order do
    not.

    Args:
        t: times (samples,), s.
        rate: angular rates (samples, 3), rad/s, or None.
        chosen: the quaternions as read.
        choices: the quaternions as read in each order of the columns.
        source: name of the log.
    """
    if rate is None or float(np.std(rate)) == 0.0:
        return
    errors = order_errors(t, rate, choices)
    best = min(choices, key=lambda order: errors[order])
    if order_errors(t, rate, {"chosen": chosen})["chosen"] > WRONG_ORDER * errors[best]:
        raise RecordingError(f"{source}: the orientation of the base contradicts the angular rates, but not if its "
                             f"columns are read in the order {best}", f"add --set log.quaternion={best}, or map its "
                             "columns x, y, z, w with --set 'log.base_orientation=[...]'", code="quaternion-order")
