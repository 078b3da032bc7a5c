"""Sign: the sign of a velocity, hard or smooth, with its slope."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError

SignKind = Literal["hard", "tanh", "arctan"]


@dataclass(frozen=True)
class Sign:
    """The sign of a velocity: hard, or smooth over about `width` (rad/s or m/s) where a simulation needs it.

    tanh: tanh(dq / width). arctan: 2/pi arctan(dq / width) (Ardiani, eq. 1.16 with K_v = 1/width).
    """

    kind: SignKind = "hard"
    width: float = 0.01

    def __post_init__(self) -> None:
        if self.kind not in ("hard", "tanh", "arctan"):
            raise ModelError(f"a sign is 'hard', 'tanh' or 'arctan', got '{self.kind}'")
        if not self.width > 0:
            raise ModelError(f"the width of a smooth sign must be above zero, got {self.width}")

    def __call__(self, velocity: Array) -> Array:
        if self.kind == "hard":
            return np.sign(velocity)
        if self.kind == "tanh":
            return np.tanh(velocity / self.width)
        return (2.0 / np.pi) * np.arctan(velocity / self.width)

    def slope(self, velocity: Array) -> Array:
        """Derivative by the velocity; a hard sign is flat but for its jump."""
        x = velocity / self.width
        if self.kind == "tanh":
            return (1.0 - np.tanh(x) ** 2) / self.width
        if self.kind == "arctan":
            return (2.0 / np.pi) / (self.width * (1.0 + x * x))
        return np.zeros_like(velocity)
