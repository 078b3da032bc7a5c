"""Conversion of iterations to the arrays of a file and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.estimate.iterations import Iteration, StepMotion

_NUMBER_FIELDS = ("number", "change", "step", "simulated_relative_error")


def packed(iterations: Sequence[Iteration]) -> dict[str, Any]:
    """Return arrays by name: numbers (steps, 4), values, standard errors (steps, base), errors (steps, dof), and for
    steps with a motion its curves, in single precision, and errors (motions, 7, dof); nan for unknown values."""
    if not iterations:
        return {}
    base, moving = len(iterations[0].values), [(k, one.motion) for k, one in enumerate(iterations) if one.motion]
    numbers = [[np.nan if (x := getattr(one, name)) is None else x for name in _NUMBER_FIELDS] for one in iterations]
    arrays: dict[str, Any] = {
        "iteration_numbers": np.array(numbers, dtype=float),
        "iteration_values": np.array([one.values for one in iterations]),
        "iteration_std": np.array([np.full(base, np.nan) if one.std is None else one.std for one in iterations]),
        "iteration_errors": np.array([one.relative_error_per_joint for one in iterations])}
    if moving:
        first = moving[0][1]
        arrays |= {"motion_steps": np.array([k for k, _ in moving]), "motion_t": first.t,
                   "motion_measured": first.measured.astype(np.float32),
                   "motion_q": np.array([one.q for _, one in moving], dtype=np.float32),
                   "motion_errors": np.array([_errors(one) for _, one in moving]),
                   "motion_tracking": np.array([one.tracking_error for _, one in moving])}
    return arrays


def unpacked(arrays: Mapping[str, Any]) -> tuple[Iteration, ...]:
    """Return the iterations from the arrays of `packed`; none if there are none."""
    if "iteration_values" not in arrays:
        return ()
    motions: dict[int, StepMotion] = {}
    for k, step in enumerate(arrays.get("motion_steps", ())):
        errors = arrays["motion_errors"][k]
        motions[int(step)] = StepMotion(arrays["motion_t"], arrays["motion_measured"].astype(float),
                                        arrays["motion_q"][k].astype(float), errors[:3], _known(errors[3:6]),
                                        _known(errors[6]), float(arrays["motion_tracking"][k]))
    found = []
    for k, (numbers, values, std, errors) in enumerate(zip(*(arrays[f"iteration_{name}"] for name in (
            "numbers", "values", "std", "errors")), strict=True)):
        change, step, left = (float(x) if np.isfinite(x) else None for x in numbers[1:])
        found.append(Iteration(values, errors, float(numbers[0]), _known(std), change, step, left, motions.get(k)))
    return tuple(found)


def _errors(motion: StepMotion) -> Array:
    unknown = np.full_like(motion.errors, np.nan)
    away = unknown if motion.from_reference is None else motion.from_reference
    return np.vstack([motion.errors, away, unknown[:1] if motion.torque_error is None else motion.torque_error])


def _known(array: Array) -> Array | None:
    return None if np.isnan(array).all() else array
