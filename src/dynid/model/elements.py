"""Elements: the forms in which torques of terms with given parameter values enter a compiled simulation.

`Bodies`, `Linear`, `Dry`, `Load`, `Bristles` and `MaxwellSlip` contain numbers. `Curve` contains a function f(q, dq,
values), which is compiled to machine code and called by its address, so that the simulation kernels are compiled only
once. A table of values would be inexact, and a kernel with functions as arguments would be compiled again for every set
of terms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import ModelError
from dynid.kernel_store import curve_address, load_numba
from dynid.model.sign import Sign

_SIGNATURE = "float64(float64, float64, CPointer(float64))"
_COMPILING = Lock()
# Machine code stays in memory until the process ends, so that addresses remain valid.
_COMPILED_CURVES: list[Any] = []


class CurveFunction:
    """A scalar function f(q, dq, values) -> torque in Python, which is compiled at the first use of its `address`."""

    def __init__(self, function: Callable[[float, float, Sequence[float]], float]) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    def __call__(self, q: float, dq: float, values: Sequence[float]) -> float:
        return self.function(q, dq, values)

    @cached_property
    def address(self) -> int:
        """Memory address of the compiled function."""
        with _COMPILING:
            options = {"error_model": "numpy"}
            kept = curve_address(self.function, _SIGNATURE, options)
            if kept is not None:
                return kept
            cfunc = load_numba().cfunc
            try:
                made = cfunc(_SIGNATURE, cache=True, **options)(self.function)
            except RuntimeError:  # a function from a prompt has no file for the cache
                made = cfunc(_SIGNATURE, **options)(self.function)
            except Exception as error:  # errors of numba have no common base class except Exception
                raise ModelError(f"the curve '{self.function.__name__}' cannot be compiled: "
                                 f"{str(error).splitlines()[0]}; use only numbers and functions of `math`",
                                 code="curve-not-compiled") from error
            _COMPILED_CURVES.append(made)
            return int(made.address)


def curve(function: Callable[[float, float, Sequence[float]], float]) -> CurveFunction:
    """Convert a function f(q, dq, values) of plain arithmetic and `math` to a function for a `Curve` (decorator)."""
    return CurveFunction(function)


@dataclass(frozen=True, eq=False)
class Bodies:
    """Ten inertial parameters per body (dof, 10) that are added to those of the robot's bodies."""

    numbers: Array


@dataclass(frozen=True, eq=False)
class Linear:
    """Torques inertia ddq + viscous dq + stiffness q + constant: two matrices (dof, dof) and two vectors (dof,)."""

    inertia: Array | float = 0.0
    viscous: Array | float = 0.0
    stiffness: Array | float = 0.0
    constant: Array | float = 0.0


@dataclass(frozen=True, eq=False)
class Dry:
    """Dry friction along a direction w (dof,): torques w (forward max(S, 0) + backward min(S, 0)), S = sign(w.dq).

    The integrator smooths a discontinuous sign, or uses stiction at rest; it widens a smooth sign only if `widened` is
    set. `static` is static minus sliding friction, N m or N.
    """

    direction: Array
    forward: float
    backward: float
    sign: Sign = field(default_factory=Sign)
    widened: bool = False
    static: float = 0.0


@dataclass(frozen=True, eq=False)
class Curve:
    """Torques w f(w.q, w.dq, values) along a direction w (dof,): friction or a force of any shape."""

    direction: Array
    function: CurveFunction
    values: Sequence[float] | Array


@dataclass(frozen=True)
class Load:
    """Dry friction of one joint proportional to the torque tau of its bodies: factor |tau| sign(dq).

    The factor is `motoring` if tau and dq have the same sign, otherwise `generating`. A discontinuous sign is smoothed.
    """

    joint: int
    motoring: float
    generating: float
    sign: Sign = field(default_factory=Sign)


@dataclass(frozen=True)
class Bristles:
    """LuGre friction of one joint: force z + damping dz/dt, dz/dt = (dq - |dq| z / g) / reach, g = 1 + (ratio - 1)
    exp(-(dq / vs)^2). reach: rad or m; vs: rad/s or m/s; damping: N m s or N s."""

    joint: int
    force: float
    reach: float
    damping: float = 0.0
    ratio: float = 1.0
    vs: float = 1.0


@dataclass(frozen=True)
class MaxwellSlip:
    """Play operator of one joint: torque stiffness s, where the deflection s follows the change of the position from
    zero and is limited to low .. high. stiffness: N m/rad or N/m; low, high: rad or m."""

    joint: int
    stiffness: float
    low: float
    high: float


Element = Bodies | Linear | Dry | Curve | Load | Bristles | MaxwellSlip


def axis(dof: int, joint: int) -> Array:
    """Return the unit vector (dof,) with the entry 1 at one joint."""
    unit = np.zeros(dof)
    unit[joint] = 1.0
    return unit


def on_joints(dof: int, joints: Sequence[int], values: Array) -> Array:
    """Return a vector (dof,) with `values` at the joints and zero elsewhere."""
    vector = np.zeros(dof)
    vector[list(joints)] = values
    return vector
