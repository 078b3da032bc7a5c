"""Compiled friction: dry friction as rows of numbers, and curves as functions called by their address."""

from __future__ import annotations

import math
from typing import Any

from dynid.arrays import Array
from dynid.dynamics.compiled import BORROWING, INLINED, INNER_BORROWING
from dynid.kernel_store import njit, when_numba_is_loaded
from dynid.simulation.plant import (
    ARCTAN,
    CURVE_DIRECTION,
    CURVE_HIGH,
    CURVE_LOW,
    CURVE_VALUES,
    DIRECTION,
    FCN,
    FCP,
    GENERATING,
    HIGH,
    KIND,
    LOAD_KIND,
    LOAD_WIDTH,
    LOW,
    MOTORING,
    SLIP_HIGH,
    SLIP_JOINT,
    SLIP_LOW,
    SLIP_STIFFNESS,
    STATIC,
    STICK,
    TANH,
    WIDTH,
    Plant,
)


@njit(**INLINED)
def sign_of(kind: float, width: float, v: float) -> float:
    """Return the sign of a velocity v, smooth over `width` for the kinds TANH and ARCTAN."""
    if kind == TANH:
        return math.tanh(v / width)
    if kind == ARCTAN:
        return 0.6366197723675814 * math.atan(v / width)
    return 1.0 if v > 0.0 else (-1.0 if v < 0.0 else 0.0)


@njit(**INNER_BORROWING)
def friction(dry: Array, dq: Array, signs: Array, net: Array) -> None:
    """Subtract the dry friction w f(v) of every row of `dry` from the torques `net`, with v = w.dq and its sign S.

    f = Fcp max(S, 0) + Fcn min(S, 0), plus the static excess near rest if the sign is smooth. signs: S of sticking
    elements.
    """
    for e in range(len(dry)):
        row = dry[e]
        if row[FCP] == 0.0 and row[FCN] == 0.0:
            continue
        low, high = int(row[LOW]), int(row[HIGH])
        v = 0.0
        for j in range(low, high):
            v += row[DIRECTION + j] * dq[j]
        s = signs[e] if row[KIND] == STICK else sign_of(row[KIND], row[WIDTH], v)
        f = (row[FCP] if s > 0.0 else row[FCN]) * s
        if row[STATIC] > 0.0 and row[KIND] == TANH:
            f += row[STATIC] * math.exp(-(v / (10.0 * row[WIDTH])) ** 2) * s
        for j in range(low, high):
            net[j] -= row[DIRECTION + j] * f


@njit(**INNER_BORROWING)
def load_friction(load: Array, dq: Array, ddq: Array, linked: Array) -> None:
    """Compute net torques with load friction in the last row of linked (n + 3, n). The other rows of `linked` are the
    lower triangle of the bodies' inertia matrix, their bias torques, and the net torques without load friction."""
    n = len(dq)
    for i in range(n):
        torque = linked[n, i]
        for j in range(n):
            torque += (linked[i, j] if j <= i else linked[j, i]) * ddq[j]
        row, v = load[i], dq[i]
        s = sign_of(row[LOAD_KIND], row[LOAD_WIDTH], v)
        factor = row[MOTORING] if torque * v > 0.0 else row[GENERATING]
        linked[n + 2, i] = linked[n + 1, i] - factor * abs(torque) * s


@njit(**BORROWING, inline="always")
def substitute(matrix: Array, inverse: Array, x: Array) -> None:
    """Solve a linear system in place: x becomes matrix^-1 x, with the factors `matrix`, `inverse` of `solve_state`."""
    n = len(x)
    for i in range(n):
        for k in range(i):
            x[i] -= matrix[i, k] * x[k]
    for i in range(n - 1, -1, -1):
        x[i] *= inverse[i]
        for k in range(i + 1, n):
            x[i] -= matrix[k, i] * x[k]


@njit(**INNER_BORROWING)
def transmit(load: Array, dq: Array, ddq: Array, linked: Array, matrix: Array, inverse: Array) -> None:
    """Compute accelerations ddq with load friction from accelerations without load friction by fixed-point iteration,
    which converges because the friction is below half of the bodies' torques. matrix, inverse: from `solve_state`."""
    n = len(ddq)
    for _ in range(60):
        load_friction(load, dq, ddq, linked)
        new = linked[n + 2]
        substitute(matrix, inverse, new)
        moved, size = 0.0, 0.0
        for i in range(n):
            moved, size = max(moved, abs(new[i] - ddq[i])), max(size, abs(new[i]))
            ddq[i] = new[i]
        if moved <= 1e-12 * size:
            break


def _call_curve(typing: Any, address: Any, q: Any, dq: Any, values: Any, first: Any) -> Any:
    """Call the compiled function f(q, dq, values + first) at an address (see `model.elements.Curve`)."""
    from llvmlite import ir
    from numba import types

    signature = types.float64(types.int64, types.float64, types.float64, values, types.int64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        double = ir.DoubleType()
        kind = ir.FunctionType(double, [double, double, double.as_pointer()])
        array = context.make_array(signature.args[3])(context, builder, value=arguments[3])
        own = builder.gep(array.data, [arguments[4]])
        return builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), [arguments[1], arguments[2], own])

    return signature, generate


call_curve: Any = None  # called by compiled code; created when numba is loaded


@when_numba_is_loaded
def _declare_call_curve() -> None:
    from numba.extending import intrinsic

    globals()["call_curve"] = intrinsic(_call_curve)


@njit(**INNER_BORROWING)
def curve_torques(plant: Plant, q: Array, dq: Array, net: Array) -> None:
    """Subtract the torques w f(w.q, w.dq) of all curve elements from the net torques."""
    for c in range(len(plant.curves)):
        row = plant.curves[c]
        low, high = int(row[CURVE_LOW]), int(row[CURVE_HIGH])
        x, v = 0.0, 0.0
        for j in range(low, high):
            x += row[CURVE_DIRECTION + j] * q[j]
            v += row[CURVE_DIRECTION + j] * dq[j]
        f = call_curve(plant.addresses[c], x, v, plant.values, int(row[CURVE_VALUES]))
        for j in range(low, high):
            net[j] -= row[CURVE_DIRECTION + j] * f


@njit(**INNER_BORROWING)
def slip_torques(slips: Array, y: Array, dy: Array, net: Array) -> None:
    """Subtract the torques of all play operators from the net torques, and set the derivatives of their states to zero.

    The last states of y are the positions p from which the operators are deflected by q - p, within limits.
    They are constant within a step, so that the torque is a continuous function of the position (see `settle_slips`).
    """
    first = len(y) - len(slips)
    for e in range(len(slips)):
        j = int(slips[e, SLIP_JOINT])
        net[j] -= slips[e, SLIP_STIFFNESS] * min(max(y[j] - y[first + e], slips[e, SLIP_LOW]), slips[e, SLIP_HIGH])
        dy[first + e] = 0.0


@njit(**INNER_BORROWING)
def settle_slips(slips: Array, y: Array) -> None:
    """Move the positions p of all play operators after a step, so that no deflection q - p exceeds its limits."""
    first = len(y) - len(slips)
    for e in range(len(slips)):
        q = y[int(slips[e, SLIP_JOINT])]
        y[first + e] = min(max(y[first + e], q - slips[e, SLIP_HIGH]), q - slips[e, SLIP_LOW])


@njit(**BORROWING)
def settle_along(slips: Array, path: Array, states: Array) -> None:
    """Move the states (s,) of all play operators along positions `path` (rows, n), see `settle_slips`."""
    for k in range(len(path)):
        for e in range(len(slips)):
            q = path[k, int(slips[e, SLIP_JOINT])]
            states[e] = min(max(states[e], q - slips[e, SLIP_HIGH]), q - slips[e, SLIP_LOW])
