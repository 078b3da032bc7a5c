"""Sign of a velocity, discontinuous or smooth, and its derivative."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError

SignKind = Literal["hard", "tanh", "arctan"]


@dataclass(frozen=True)
class Sign:
    """Sign of a velocity: discontinuous ("hard"), or smooth over about `width` (rad/s or m/s), one number or one per
    joint.

    tanh: tanh(dq / width). arctan: 2/pi arctan(dq / width) (Ardiani, eq. 1.16 with K_v = 1/width).
    """

    kind: SignKind = "hard"
    width: float | tuple[float, ...] = 0.01

    def __post_init__(self) -> None:
        if self.kind not in ("hard", "tanh", "arctan"):
            raise ModelError(f"the sign function of a friction term is 'hard', 'tanh' or 'arctan', got '{self.kind}'")
        if not isinstance(self.width, int | float):
            object.__setattr__(self, "width", tuple(float(width) for width in self.width))
        if not np.all(np.asarray(self.width) > 0):
            raise ModelError(f"the width of a smooth sign must be above zero, got {self.width}")

    def of_joint(self, j: int) -> Sign:
        """Return the sign function with the width of one joint, counted from 0."""
        if not isinstance(self.width, tuple):
            return self
        if not j < len(self.width):
            raise ModelError(f"a smooth sign has {len(self.width)} widths, and none for joint {j + 1}; give one "
                             "width, or one per joint")
        return Sign(self.kind, self.width[j])

    @property
    def one_width(self) -> float:
        """The width of the smooth sign, rad/s or m/s; an error is raised if each joint has its own."""
        if isinstance(self.width, tuple):
            raise ModelError(f"a smooth sign has {len(self.width)} widths, but this term needs one for all joints",
                             "give one width")
        return self.width

    def __call__(self, velocity: Array) -> Array:
        if self.kind == "hard":
            return np.sign(velocity)
        if self.kind == "tanh":
            return np.tanh(velocity / self.one_width)
        return (2.0 / np.pi) * np.arctan(velocity / self.one_width)

    def slope(self, velocity: Array) -> Array:
        """Return the derivative of the sign by the velocity; zero for a discontinuous sign."""
        x = velocity / self.one_width
        if self.kind == "tanh":
            return (1.0 - np.tanh(x) ** 2) / self.one_width
        if self.kind == "arctan":
            return (2.0 / np.pi) / (self.one_width * (1.0 + x * x))
        return np.zeros_like(velocity)
