"""Trajectories composed of others: several in sequence, or one that is slowed down."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import DynidError
from dynid.excitation.trajectories.trajectory import Motion, Trajectory


@dataclass(frozen=True, eq=False)
class Joined:
    """Trajectories one after the other; continuity between them is not checked."""

    parts: tuple[Trajectory, ...]

    def __post_init__(self) -> None:
        if not self.parts or any(part.dof != self.parts[0].dof for part in self.parts):
            raise DynidError("joined trajectories need at least one part, and all parts must have the same joints",
                             code="bad-parts")

    @property
    def dof(self) -> int:
        return self.parts[0].dof

    @cached_property
    def starts(self) -> Array:
        """Start time of each part (parts,), s."""
        return np.concatenate([[0.0], np.cumsum([part.duration for part in self.parts])[:-1]])

    @property
    def duration(self) -> float:
        return float(sum(part.duration for part in self.parts))

    @property
    def jumps(self) -> bool:
        return any(getattr(part, "jumps", False) for part in self.parts)

    def at(self, t: ArrayLike) -> Motion:
        time = np.atleast_1d(np.asarray(t, dtype=float))
        which = np.clip(np.searchsorted(self.starts, time, side="right") - 1, 0, len(self.parts) - 1)
        out = np.empty((4, len(time), self.dof))
        for p, part in enumerate(self.parts):
            rows = which == p
            if rows.any():
                out[:, rows] = part.at(np.clip(time[rows] - self.starts[p], 0.0, part.duration))
        return Motion(*out)


@dataclass(frozen=True, eq=False)
class Slowed:
    """A motion along the path of another one, in `stretch` times its duration."""

    inner: Trajectory
    stretch: float

    @property
    def dof(self) -> int:
        return self.inner.dof

    @property
    def duration(self) -> float:
        return self.stretch * self.inner.duration

    @property
    def jumps(self) -> bool:
        return bool(getattr(self.inner, "jumps", False))

    def at(self, t: ArrayLike) -> Motion:
        motion = self.inner.at(np.asarray(t, dtype=float) / self.stretch)
        return Motion(*(x / self.stretch ** k for k, x in enumerate(motion)))
