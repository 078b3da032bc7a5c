"""Nonlinear shape parameters of friction terms, with one value per joint or one value for all joints."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.model.terms import chosen
from dynid.robot import Robot


class ShapedFriction:
    """Methods of a friction term that is nonlinear in its fields `SHAPES`, such as the velocity of the Stribeck effect.

    Each field is one positive number, or one per joint. Separable least squares estimate the fields named in `free`.
    With `shared`, all joints have the same values.
    """

    SHAPES: tuple[str, ...]
    shared = False

    def __post_init__(self: Any) -> None:
        for name in self.free:
            if name not in self.SHAPES:
                raise ModelError(f"the shape parameters of friction '{self.kind}' are {', '.join(self.SHAPES)}; there "
                                 f"is no '{name}'", code="unknown-shape")

    def shapes(self: Any, robot: Robot) -> Array:
        """Return the values of all shape parameters (shapes, joints), in the order of `SHAPES`."""
        count = len(chosen(robot, self.joints))
        rows = [np.atleast_1d(np.asarray(getattr(self, name), dtype=float)) for name in self.SHAPES]
        for name, row in zip(self.SHAPES, rows, strict=True):
            if row.shape not in ((1,), (count,)) or not np.all(np.isfinite(row) & (row > 0)):
                raise ModelError(f"{name} of friction '{self.kind}' must be one number above zero or {count}, got "
                                 f"{row}", code="wrong-count")
        return np.array([np.broadcast_to(row, (count,)) for row in rows])

    def shape_names(self: Any, robot: Robot) -> tuple[str, ...]:
        """Return names of the free shape parameters: vs1, vs2, power1 and so on; with `shared`, vs and power."""
        joints = chosen(robot, self.joints)
        return tuple(self.free) if self.shared else tuple(f"{name}{j + 1}" for name in self.free for j in joints)

    def shape(self: Any, robot: Robot) -> Array:
        """Return the current values of the free shape parameters, in the order of `shape_names`."""
        values = dict(zip(self.SHAPES, self.shapes(robot), strict=True))
        for name in self.free:
            if self.shared and np.ptp(values[name]) > 0:
                raise ModelError(f"{name} of friction '{self.kind}' is shared by all joints and must be one number, "
                                 f"got {values[name]}", code="shape-of-all-joints")
        return np.concatenate([np.empty(0), *(values[name][:1 if self.shared else None] for name in self.free)])

    def with_shape(self: Any, robot: Robot, values: Array) -> Any:
        """Return the term with other values of its free shape parameters, in the order of `shape_names`."""
        parts = np.split(np.asarray(values, dtype=float), max(len(self.free), 1))
        return replace(self, **{name: part.copy() for name, part in zip(self.free, parts, strict=False)})
