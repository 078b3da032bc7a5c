"""Compiled sensors: position and velocity measured by a controller."""

from __future__ import annotations

import math
from typing import NamedTuple

from dynid.arrays import Array
from dynid.dynamics.compiled import BORROWING
from dynid.kernel_store import njit

# For functions with one caller: a separate function would be optimised again with all that it calls in each of its
# callers, which took most of the compilation time of a loop.
ONCE = {**BORROWING, "inline": "always"}


class Sensors(NamedTuple):
    """Sensors of the controller: position + noise (ticks, n) or (0, n), rounded to `step` (n,) if that is positive.

    smooth: 0 for the true velocity; otherwise the weight of the newest backward difference of the measured positions in
    the velocity (1: the unfiltered difference).
    """

    noise: Array
    step: Array
    smooth: float


@njit(**ONCE)
def see(sensors: Sensors, tick: int, period: float, position: Array, velocity: Array, seen: Array,
        speed: Array) -> None:
    """Update position `seen` and velocity `speed` measured by the controller at a tick."""
    for i in range(len(position)):
        x = position[i]
        if len(sensors.noise) > 0:
            x += sensors.noise[tick, i]
        if sensors.step[i] > 0.0:
            x = sensors.step[i] * math.floor(x / sensors.step[i] + 0.5)
        if sensors.smooth > 0.0:
            if tick == 0:
                speed[i] = velocity[i]
            else:
                speed[i] += sensors.smooth * ((x - seen[i]) / period - speed[i])
        else:
            speed[i] = velocity[i]
        seen[i] = x


@njit(**ONCE)
def lagged(past: Array, tick: int, lag: float, speed: Array, out: Array) -> None:
    """Store the speed (n,) of a tick in the ring buffer `past`; write the speed of `lag` ticks ago, interpolated, to
    `out`."""
    if lag == 0.0:
        for i in range(len(speed)):
            out[i] = speed[i]
        return
    size = len(past)
    if tick == 0:
        for k in range(size):
            for i in range(len(speed)):
                past[k, i] = speed[i]
    for i in range(len(speed)):
        past[tick % size, i] = speed[i]
    whole = int(lag)
    share, late, later = lag - whole, (tick - whole) % size, (tick - whole - 1) % size
    for i in range(len(speed)):
        out[i] = (1.0 - share) * past[late, i] + share * past[later, i]
