"""Nonlinear shape parameters of a term, one value per joint or one shared by its joints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError


def per_joint(value: Any, count: int, what: str) -> Array:
    """Return one positive number, or one per joint, as (count,); `what` is its name in messages."""
    values = np.atleast_1d(np.asarray(value, dtype=float))
    if values.shape not in ((1,), (count,)) or not np.all(np.isfinite(values) & (values > 0)):
        raise ModelError(f"{what} must be one positive number or {count}, got {values}")
    return np.broadcast_to(values, (count,))


def names(free: Sequence[str], joints: Sequence[int], shared: bool) -> tuple[str, ...]:
    """Return names of free shape parameters: delta1, delta2, alpha1 and so on; delta and alpha if they are shared."""
    return tuple(free) if shared else tuple(f"{name}{j + 1}" for name in free for j in joints)


def values(term: Any, count: int, what: str) -> Array:
    """Return the current values of the free shape parameters of a term with `count` joints, in the order of `names`."""
    parts = [per_joint(getattr(term, name), count, f"{name} of {what}") for name in term.free]
    for name, part in zip(term.free, parts, strict=True):
        if term.shared and np.ptp(part) > 0:
            raise ModelError(f"{name} of {what} is shared by all joints and must be one number, got {part}",
                             code="shape-of-all-joints")
    return np.concatenate([part[:1] if term.shared else part for part in parts]) if parts else np.empty(0)


def changes(term: Any, given: Array) -> dict[str, Any]:
    """Return the fields of a term with other values of its free shape parameters."""
    parts = np.asarray(given, dtype=float).reshape(len(term.free), -1)
    return {name: part.copy() for name, part in zip(term.free, parts, strict=True)}
