"""Exact values of printed angles and axes.

A right angle printed as 1.5708 has an error of 3.7e-6 rad. This is irrelevant for the machine, but makes parameters
that torques cannot distinguish look different: a condition number of 1e8, and combinations with coefficients of
1e-12.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal

import numpy as np

from dynid.arrays import Array

ANGLE_GRID_STEP = math.pi / 12  # of the grid that holds all multiples of 45 and of 30 degrees
_BELOW_MACHINES = 1e-5  # rad: a hundredth of a millimetre on a metre, less than arms are built to
MAX_ANGLE_ROUNDING = 2e-3  # rad: pi printed as 3.14 is off by 1.6e-3
_FEWEST_DIGITS = 3
NOISE = 1e-12  # rad: an angle off by less is printed with all its digits


def exact_angle(angle: float) -> float:
    """Return the multiple of pi/4 or pi/6 (rad) that a printed angle represents, or the angle itself.

    The digits printed (three or more) must be those of the multiple, rounded or truncated, or the difference below
    1e-5 rad.
    """
    if not math.isfinite(angle):
        return angle  # refused with the robot, by the name of its row
    count = round(angle / ANGLE_GRID_STEP)
    if count % 2 and count % 3:
        return angle
    exact = count * math.pi / 12
    return exact if _prints(angle, exact) else angle


def exact_axis(axis: Sequence[float]) -> Array:
    """Return the unit vector (3,) that a printed axis represents: along an axis of its frame, or at a multiple of
    pi/4 or pi/6 between two of them if the digits match; otherwise the normalised axis."""
    unit = np.asarray(axis, dtype=float) / np.abs(axis).max()  # so that no square overflows
    unit /= np.linalg.norm(unit)
    unit = np.where(np.abs(unit) < _BELOW_MACHINES, 0.0, unit)
    unit /= np.linalg.norm(unit)
    used = np.flatnonzero(unit)
    if len(used) == 2:
        turn = ANGLE_GRID_STEP * round(math.atan2(unit[used[1]], unit[used[0]]) / ANGLE_GRID_STEP)
        exact = np.array([math.cos(turn), math.sin(turn)])
        if exact_angle(turn) == turn and all(_prints(axis[int(i)], x) for i, x in zip(used, exact, strict=True)):
            unit[used] = exact
    return unit


def rounded_warnings(rounded: Mapping[str, Sequence[float]]) -> tuple[str, ...]:
    """Return one sentence on all corrected angles, none if there are none. rounded: by joint, the corrections (rad)."""
    off = [one for angles in rounded.values() for one in angles if one > NOISE]
    names = [name for name, angles in rounded.items() if max(angles, default=0.0) > NOISE]
    if not off:
        return ()
    verb, multiples = ("are", "exact multiples") if len(off) > 1 else ("is", "an exact multiple")
    return (f"{len(off)} rounded angle{'s' if len(off) > 1 else ''} of joint{'s' if len(names) > 1 else ''} "
            f"{', '.join(names)}, off by up to {max(off):.2g} rad, {verb} taken as {multiples} of pi/4 or pi/6",)


def _prints(printed: float, exact: float) -> bool:
    """Return whether the printed digits of a number are those of another, with the last one rounded or truncated."""
    off = abs(printed - exact)
    if off <= _BELOW_MACHINES:
        return True
    _, digits, exponent = Decimal(repr(float(printed))).normalize().as_tuple()
    return len(digits) >= _FEWEST_DIGITS and off <= min(10.0 ** int(exponent), MAX_ANGLE_ROUNDING)
