"""Inertia matrix and bias torques of a single state, for integrators.

A simulation has one state at a time, so the lanes of a SIMD vector are bodies here. The formulas of a body are in
`bodies`. Velocities, accelerations and wrenches are in the base frame about the base origin, where those of different
bodies can be added:

    V_i = V_p + S_i dq_i,   A_i = A_p + V_p x S_i dq_i,   W_i = I_i A_i + V_i x* I_i V_i.

Only the recursion along the chain is done body by body. All numbers are in one flat array, in blocks of LANES bodies:
row k of body i is at [(i // LANES) BLOCK + k LANES + i % LANES]. Constant strides let LLVM prove that rows do not
overlap.
"""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array
from dynid.dynamics.bodies import axis_in_base, inertia_in_base, momentum, placed, pose_in_parent
from dynid.dynamics.compiled import BORROWING, INLINED, INNER_BORROWING
from dynid.dynamics.tiles import JOINT, TILE, angle_tile
from dynid.dynamics.tree import FREE_ROOT, Tree
from dynid.dynamics.vectors import (
    Matrix,
    Vector,
    add_cross,
    add_times,
    add_turned,
    cross,
    dot,
    matrix,
    put,
    symmetric,
    times,
    turned,
    vector,
)
from dynid.kernel_store import njit

LANES = 8
# First row of: cos, sin and value of q; pose in the parent r p; frame R P; axis S; velocity V; acceleration A; inertial
# parameters of the body; those about the base origin, later of all bodies it carries; wrench F N; momentum L K of all
# bodies it carries for motion along its axis; constants of the pose (see `Tree`) and the axis.
_CS, _RP, _FRAME, _S, _V, _A, _TEN, _INERTIA, _WRENCH, _MOMENTUM, _POSE, _AXIS = (
    k * LANES for k in (0, 3, 15, 27, 33, 39, 45, 55, 65, 71, 77, 125))
ROWS = 131
BLOCK = ROWS * LANES


def pack(tree: Tree, ten: Array) -> Array:
    """Return the work array of `mass_and_bias` for a robot with inertial parameters `ten` (n, 10)."""
    n = len(tree.parent)
    blocks = -(-n // LANES)
    rows = np.zeros((blocks, ROWS, LANES))
    for i in range(n):
        column = rows[i // LANES, :, i % LANES]
        for first, values in ((_TEN, ten[i]), (_POSE, tree.pose[i]), (_AXIS, tree.axis[i])):
            column[first // LANES:first // LANES + len(values)] = values
    # `angle_tile` computes sines and cosines of a block; its work space follows the blocks.
    return np.concatenate([rows.ravel(), np.zeros(JOINT * TILE)])


@njit(**BORROWING)
def mass_and_bias(parent: Array, gravity: Array, w: Array, q: Array, dq: Array, mass: Array, bias: Array) -> None:
    """Compute the lower triangle of the inertia matrix (n, n) and the bias torques c(q, dq) + g(q) (n,). q and dq may
    have more than n entries. w: see `pack`."""
    n = len(parent)
    blocks = (n + LANES - 1) // LANES
    joint = w[blocks * BLOCK:]
    for b in range(blocks):
        block = w[b * BLOCK:(b + 1) * BLOCK]
        for t in range(min(LANES, n - b * LANES)):
            block[_CS + 2 * LANES + t] = q[b * LANES + t]
        for t in range(LANES):
            joint[2 * TILE + t] = block[_CS + 2 * LANES + t]
        angle_tile(joint, LANES)
        for t in range(LANES):
            block[_CS + t], block[_CS + LANES + t] = joint[t], joint[TILE + t]
        _poses(block)
    _walk(parent, gravity, w, dq)
    for b in range(blocks):
        _loads(w[b * BLOCK:(b + 1) * BLOCK])
    for i in range(n - 1, -1, -1):
        p = parent[i]
        if p >= 0:
            here, above = w[(i // LANES) * BLOCK + i % LANES:], w[(p // LANES) * BLOCK + p % LANES:]
            for k in range(16):
                above[_INERTIA + k * LANES] += here[_INERTIA + k * LANES]
    for b in range(blocks):
        _momenta(w[b * BLOCK:(b + 1) * BLOCK])
    for i in range(n):
        own = (i // LANES) * BLOCK + i % LANES
        L, K = vector(w, own + _MOMENTUM, LANES), vector(w, own + _MOMENTUM + 3 * LANES, LANES)
        bias[i] = w[own + _RP]
        j = i
        while j >= 0:
            s = (j // LANES) * BLOCK + j % LANES + _S
            mass[i, j] = dot(vector(w, s, LANES), K) + dot(vector(w, s + 3 * LANES, LANES), L)
            for k in range(max(parent[j], -1) + 1, j):  # bodies of other branches
                mass[i, k] = 0.0
            j = parent[j]


@njit(**BORROWING)
def add_wrenches(parent: Array, w: Array, places: Array, values: Array, bias: Array) -> None:
    """Subtract from the bias (n,) the joint torques J' F of external wrenches, at the state of the last
    `mass_and_bias`. places (wrenches, 14): see `kinematics.places`; values (wrenches, 6): force and moment."""
    for k in range(len(places)):
        F, N = vector(values[k], 0, 1), vector(values[k], 3, 1)
        if dot(F, F) + dot(N, N) == 0.0:  # most wrenches are zero most of the time
            continue
        a, b = int(places[k, 4]), int(places[k, 0])
        turn = matrix(places[k], 5, 1)
        F, N = turned(turn, F), turned(turn, N)
        if a >= 0:
            R, P = _frame(w, (a // LANES) * BLOCK + a % LANES + _FRAME)
            F, N = turned(R, F), turned(R, N)
        if b >= 0:
            R, P = _frame(w, (b // LANES) * BLOCK + b % LANES + _FRAME)
            N = add_cross(N, add_turned(P, R, vector(places[k], 1, 1)), F)  # about the base origin, like the axes
        while b >= 0:
            s = (b // LANES) * BLOCK + b % LANES + _S
            bias[b] -= dot(vector(w, s, LANES), N) + dot(vector(w, s + 3 * LANES, LANES), F)
            b = parent[b]


@njit(**INLINED)
def _frame(rows: Array, at: int) -> tuple[Matrix, Vector]:
    """Return rotation and origin of a body from twelve rows of the work array, a 3 x 4 matrix row by row."""
    R = (*vector(rows, at, LANES), *vector(rows, at + 4 * LANES, LANES), *vector(rows, at + 8 * LANES, LANES))
    return R, vector(rows, at + 3 * LANES, 4 * LANES)


@njit(**INLINED)
def _put_frame(rows: Array, at: int, R: Matrix, P: Vector) -> None:
    put(rows, at, LANES, R[:3])
    put(rows, at + 4 * LANES, LANES, R[3:6])
    put(rows, at + 8 * LANES, LANES, R[6:])
    put(rows, at + 3 * LANES, 4 * LANES, P)


@njit(**INNER_BORROWING)
def _poses(w: Array) -> None:
    """Compute the pose of every body in its parent."""
    for t in range(LANES):
        cosine, sine, x = vector(w, _CS + t, LANES)
        r, p = pose_in_parent(w, _POSE + t, LANES, cosine, sine, x)
        _put_frame(w, _RP + t, r, p)


@njit(**INNER_BORROWING)
def _start_free(w: Array, dq: Array) -> None:
    """Compute the rows of the root link of a free base and six axes, the unit twists in the root frame. The root frame
    is the base frame at this instant (see `tiles.root_tile`). Only the angular velocity of the root affects forces."""
    for i in range(6):
        x = (i // LANES) * BLOCK + i % LANES
        for k in range(6):
            w[x + _S + k * LANES], w[x + _V + k * LANES], w[x + _A + k * LANES] = 0.0, 0.0, 0.0
        w[x + _S + (i + 3 if i < 3 else i - 3) * LANES] = 1.0
        _put_frame(w, x + _FRAME, (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 0.0))
    put(w, (5 // LANES) * BLOCK + 5 % LANES + _V, LANES, vector(dq, 3, 1))


@njit(**INNER_BORROWING)
def _walk(parent: Array, gravity: Array, w: Array, dq: Array) -> None:
    """Compute frames, axes, velocities and velocity-dependent accelerations (minus gravity), from the base outwards."""
    first = 0
    if parent[0] == FREE_ROOT:
        _start_free(w, dq)
        first = 6
    for i in range(first, len(parent)):
        p, d = parent[i], dq[i]
        x = (i // LANES) * BLOCK + i % LANES
        R, P = _frame(w, x + _RP)
        W, U, E, A = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), times(-1.0, vector(gravity, 0, 1))
        if p >= 0:
            y = (p // LANES) * BLOCK + p % LANES
            Rp, Pp = _frame(w, y + _FRAME)
            R, P = placed(Rp, Pp, R, P)
            W, U = vector(w, y + _V, LANES), vector(w, y + _V + 3 * LANES, LANES)
            E, A = vector(w, y + _A, LANES), vector(w, y + _A + 3 * LANES, LANES)
        S, V = axis_in_base(R, P, vector(w, x + _AXIS, LANES), vector(w, x + _AXIS + 3 * LANES, LANES))
        _put_frame(w, x + _FRAME, R, P)
        put(w, x + _S, LANES, S)
        put(w, x + _S + 3 * LANES, LANES, V)
        put(w, x + _V, LANES, add_times(W, d, S))
        put(w, x + _V + 3 * LANES, LANES, add_times(U, d, V))
        put(w, x + _A, LANES, add_times(E, d, cross(W, S)))
        put(w, x + _A + 3 * LANES, LANES, add_times(A, d, add_cross(cross(W, V), U, S)))


@njit(**INNER_BORROWING)
def _loads(w: Array) -> None:
    """Compute the ten inertial parameters of each body about the base origin, and the wrench that its motion requires.

    With the inertia I of a body, (L, K) = I V is its momentum for the velocity V = (w, u), and (F, N) = I A has its
    acceleration A in place of V. The wrench is F + w x L and N + w x K + u x L.
    """
    for t in range(LANES):
        R, P = _frame(w, _FRAME + t)
        M = w[_TEN + 9 * LANES + t]
        J, H = inertia_in_base(R, P, symmetric(w, _TEN + t, LANES), vector(w, _TEN + 6 * LANES + t, LANES), M)
        W, U = vector(w, _V + t, LANES), vector(w, _V + 3 * LANES + t, LANES)
        L, K = momentum(J, H, M, W, U)
        F, N = momentum(J, H, M, vector(w, _A + t, LANES), vector(w, _A + 3 * LANES + t, LANES))
        put(w, _INERTIA + t, LANES, J[:3])
        put(w, _INERTIA + 3 * LANES + t, LANES, J[3:])
        put(w, _INERTIA + 6 * LANES + t, LANES, H)
        w[_INERTIA + 9 * LANES + t] = M
        put(w, _WRENCH + t, LANES, add_cross(F, W, L))
        put(w, _WRENCH + 3 * LANES + t, LANES, add_cross(add_cross(N, W, K), U, L))


@njit(**INNER_BORROWING)
def _momenta(w: Array) -> None:
    """Compute the momentum of all bodies that each joint carries, for unit velocity along the joint's axis, and the
    bias torque S.N + V.F of the joint, which is stored in the first row of the poses."""
    for t in range(LANES):
        S, V = vector(w, _S + t, LANES), vector(w, _S + 3 * LANES + t, LANES)
        L, K = momentum(symmetric(w, _INERTIA + t, LANES), vector(w, _INERTIA + 6 * LANES + t, LANES),
                        w[_INERTIA + 9 * LANES + t], S, V)
        bias = dot(V, vector(w, _WRENCH + t, LANES)) + dot(S, vector(w, _WRENCH + 3 * LANES + t, LANES))
        put(w, _MOMENTUM + t, LANES, L)
        put(w, _MOMENTUM + 3 * LANES + t, LANES, K)
        w[_RP + t] = bias


@njit(**BORROWING)
def solve_state(matrix: Array, inverse: Array, x: Array) -> bool:
    """Solve matrix y = x in place (y replaces x) by the L D L' factors of the lower triangle; return False for a
    singular matrix. inverse (n,): work space for 1 / D. Cholesky is not used, because the published inertias of some
    robots are not physically consistent, although their equations have a solution."""
    n = len(inverse)
    largest = 0.0
    for i in range(n):
        largest = max(largest, abs(matrix[i, i]))
    for i in range(n):
        diagonal, rest = matrix[i, i], x[i]
        lost = 1e-13 * abs(diagonal) + 1e-16 * largest  # smaller pivots are rounding errors
        for j in range(i):
            value = matrix[i, j]
            for k in range(j):
                value -= matrix[i, k] * matrix[j, k]
            matrix[i, j] = value  # L_ij D_j until the row is complete
            scaled = value * inverse[j]
            diagonal -= value * scaled
            rest -= scaled * x[j]
        for j in range(i):
            matrix[i, j] *= inverse[j]
        if not abs(diagonal) > lost:
            return False
        inverse[i], x[i] = 1.0 / diagonal, rest
    for i in range(n - 1, -1, -1):
        value = x[i] * inverse[i]
        for k in range(i + 1, n):
            value -= matrix[k, i] * x[k]
        x[i] = value
    return True
