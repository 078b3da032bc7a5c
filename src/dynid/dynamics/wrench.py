"""External force and moment on a frame of a robot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.robot import BASE, Robot

TimeFunction = Callable[[float], ArrayLike]  # time (s) -> force and moment (6,)


@dataclass(frozen=True, eq=False)
class Wrench:
    """External force (N) and moment (N m) on a robot, at the origin of a frame.

    `values` are six constant numbers, an array (times, 6) that is interpolated linearly at `times` (s) and is zero
    outside them, or a function of time. `axes` is the frame in whose axes they are given, by default the base. The f_e
    of Ardiani, eq. 1.11 and 1.18, is the wrench that the robot exerts and has the opposite sign.
    """

    frame: str
    values: ArrayLike | TimeFunction
    times: ArrayLike | None = None
    axes: str | None = None

    @property
    def constant(self) -> bool:
        return self.times is None and not callable(self.values)

    def at(self, t: Array | None, samples: int = 1) -> Array:
        """Return force and moment (samples, 6) at times t (samples,), s; a constant wrench needs no times."""
        if self.constant:
            return np.broadcast_to(self._checked(self.values, (6,)), (samples if t is None else len(t), 6))
        if t is None:
            raise ModelError(f"the wrench on frame '{self.frame}' depends on time", "give the times t of the samples",
                             code="wrench-without-times")
        if callable(self.values):
            return self._checked([self.values(float(one)) for one in t], (len(t), 6))
        times = np.asarray(self.times, dtype=float)
        if times.ndim != 1 or len(times) < 2 or not np.all(np.diff(times) > 0):
            raise ModelError(f"the times of the wrench on frame '{self.frame}' must be at least two that increase",
                             code="wrong-wrench-times")
        given = self._checked(self.values, (len(times), 6))
        return np.column_stack([np.interp(t, times, column, left=0.0, right=0.0) for column in given.T])

    def _checked(self, values: object, shape: tuple[int, ...]) -> Array:
        try:
            found = np.asarray(values, dtype=float)
        except (TypeError, ValueError):
            found = np.zeros(0)
        if found.shape != shape or not np.isfinite(found).all():
            raise ModelError(f"the wrench on frame '{self.frame}' must be finite numbers of shape {shape}, a force and "
                             f"a moment, got shape {found.shape}", code="wrong-wrench")
        return found


def series(wrenches: Sequence[Wrench], t: Array) -> Array:
    """Return the values (times, wrenches, 6) of all wrenches at times t (times,), s, each in its own axes."""
    return np.stack([one.at(t) for one in wrenches], axis=1) if wrenches else np.zeros((len(t), 0, 6))


def places(robot: Robot, wrenches: Sequence[Wrench]) -> Array:
    """Return rows (wrenches, 14) for `state.add_wrenches`: body and point on it, body of the axes and their rotation;
    bodies are numbered as in the whole tree."""
    def numbered(body: int) -> int:
        return body if robot.followers is None else robot.followers.place(body)

    rows = []
    for one in wrenches:
        where = robot.frame(one.frame)
        axes = None if one.axes is None else robot.frame(one.axes)
        turn = np.eye(3) if axes is None else axes.pose[:3, :3]
        rows.append([numbered(where.body), *where.pose[:3, 3], BASE if axes is None else numbered(axes.body),
                     *turn.ravel()])
    return np.array(rows, dtype=float).reshape(-1, 14)
