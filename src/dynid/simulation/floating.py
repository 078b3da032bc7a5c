"""Simulation of a robot with a free base under given torques, by the Runge-Kutta method of fourth order.

The orientation is a unit quaternion q, which is integrated by its time derivative q (w, 0) / 2 with the angular
velocity w, and normalised after each step. The rest of the state of the base is as in `dynid.dynamics.root_frame`:
position in the world, twist in the axes of the root.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, Ints
from dynid.dynamics.compiled import OPTIONS
from dynid.dynamics.root_frame import rotations
from dynid.dynamics.state import mass_and_bias, pack, solve_state
from dynid.dynamics.tree import robot_tree
from dynid.errors import ModelError, NotPossibleError
from dynid.kernel_store import njit
from dynid.robot import Robot


class FreeMotion(NamedTuple):
    """A simulated motion of a robot with a free base and n joints: times t (samples,), s, configurations q (samples, 7
    + n) and velocities v (samples, 6 + n), as in `dynid.dynamics`."""

    t: Array
    q: Array
    v: Array


@njit(**OPTIONS)
def free_slope(parent: Ints, gravity: Array, w: Array, extra: Array, tau: Array, state: Array, positions: Array,
               matrix: Array, bias: Array, inverse: Array, slope: Array) -> bool:
    """Compute the derivative of the state (13 + 2 n,); return False if the inertia matrix is singular.

    The state is position, quaternion x y z w, joints, twist and joint velocities.
    """
    n = len(parent)
    x, y, z, s = state[3], state[4], state[5], state[6]
    v = state[n + 1:]
    for i in range(6, n):
        positions[i] = state[i + 1]
    mass_and_bias(parent, np.zeros(3), w, positions, v, matrix, bias)
    for i in range(n):
        bias[i] = tau[i] - bias[i]
        for j in range(i + 1):
            matrix[i, j] += extra[i, j]
    if not solve_state(matrix, inverse, bias):
        return False
    # Rotation of the root, row by row.
    R = ((1 - 2 * (y * y + z * z), 2 * (x * y - z * s), 2 * (x * z + y * s)),
         (2 * (x * y + z * s), 1 - 2 * (x * x + z * z), 2 * (y * z - x * s)),
         (2 * (x * z - y * s), 2 * (y * z + x * s), 1 - 2 * (x * x + y * y)))
    for i in range(3):
        slope[i] = R[i][0] * v[0] + R[i][1] * v[1] + R[i][2] * v[2]
    a, b, c = v[3], v[4], v[5]
    slope[3], slope[4] = 0.5 * (s * a + y * c - z * b), 0.5 * (s * b + z * a - x * c)
    slope[5], slope[6] = 0.5 * (s * c + x * b - y * a), -0.5 * (x * a + y * b + z * c)
    for i in range(6, n):
        slope[i + 1] = v[i]
    for i in range(n):
        slope[n + 1 + i] = bias[i]
    for i in range(3):  # proper acceleration of the root's origin, in its rotating axes
        slope[n + 1 + i] += R[0][i] * gravity[0] + R[1][i] * gravity[1] + R[2][i] * gravity[2]
    slope[n + 1] -= b * v[2] - c * v[1]
    slope[n + 2] -= c * v[0] - a * v[2]
    slope[n + 3] -= a * v[1] - b * v[0]
    return True


@njit(**OPTIONS, is_storable=False)
def free_kernel(parent: Ints, gravity: Array, w: Array, extra: Array, tau: Array, step: float, substeps: int,
                states: Array) -> int:
    """Compute states (samples, 13 + 2 n) from the first one.

    tau (samples, n + 6): constant until the next sample. Returns the sample before which the inertia matrix is
    singular, or -1.
    """
    n, size = len(parent), states.shape[1]
    positions, matrix, bias, inverse = np.zeros(n), np.zeros((n, n)), np.empty(n), np.empty(n)
    slopes, state = np.empty((4, size)), np.empty(size)
    h = step / substeps
    for k in range(1, len(states)):
        states[k] = states[k - 1]
        for _ in range(substeps):
            for stage in range(4):
                reach = 0.0 if stage == 0 else h if stage == 3 else 0.5 * h
                for i in range(size):
                    state[i] = states[k, i] + (reach * slopes[stage - 1, i] if stage else 0.0)
                if not free_slope(parent, gravity, w, extra, tau[k - 1], state, positions, matrix, bias, inverse,
                                  slopes[stage]):
                    return k
            norm = 0.0
            for i in range(size):
                states[k, i] += h / 6 * (slopes[0, i] + 2 * slopes[1, i] + 2 * slopes[2, i] + slopes[3, i])
            for i in range(3, 7):
                norm += states[k, i] ** 2
            for i in range(3, 7):
                states[k, i] /= np.sqrt(norm)
    return -1


def simulate_floating(robot: Robot, q: ArrayLike, v: ArrayLike, tau: ArrayLike | None = None, *, duration: float,
                      period: float = 0.001, substeps: int = 1, inertias: ArrayLike | None = None,
                      rotor: ArrayLike | None = None) -> FreeMotion:
    """Simulate a robot with a free base without contact: in flight, or suspended with the wrench in `tau`.

    Args:
        robot: a robot with a free base.
        q: first configuration (7 + n,).
        v: first velocity (6 + n,).
        tau: generalised forces (samples, 6 + n), each constant over one period; default: zero. The first six are the
            wrench on the root.
        duration: simulated time, s.
        period: time between two samples of the result, s.
        substeps: integration steps in one period.
        inertias: ten inertial parameters of every body (bodies, 10); default: those of the robot.
        rotor: reflected rotor inertias of the joints (n,), kg m^2.

    >>> flying = dynid.simulation.simulate_floating(robot, q, v, duration=1.0)
    """
    if not robot.has_free_base or robot.followers is not None:
        raise ModelError(f"robot '{robot.name}' cannot be simulated in flight: it has a fixed base or dependent joints",
                         "use dynid.simulate for a fixed base", code="not-free-base")
    n, count = robot.dof, round(duration / period) + 1
    ten = np.ascontiguousarray(robot.inertias if inertias is None else inertias, dtype=float).reshape(-1, 10)
    first = np.concatenate([np.asarray(q, dtype=float).ravel(), np.asarray(v, dtype=float).ravel()])
    forces = np.zeros((count, n)) if tau is None else np.ascontiguousarray(tau, dtype=float)
    if first.shape != (2 * n + 1,) or forces.shape[1:] != (n,) or len(forces) < count - 1 or count < 2 or substeps < 1:
        raise ModelError(f"robot '{robot.name}' is simulated from q ({n + 1},) and v ({n},), with tau ({count}, {n})",
                         f"got shapes {np.shape(q)}, {np.shape(v)} and {forces.shape}", code="wrong-shape")
    rotations(first[None, 3:7])
    extra = np.diag(np.concatenate([np.zeros(6), np.zeros(n - 6) if rotor is None else np.asarray(rotor, dtype=float)]))
    states = np.empty((count, 2 * n + 1))
    states[0] = first
    tree = robot_tree(robot)
    bad = free_kernel(tree.parent, np.array(robot.gravity, dtype=float), pack(tree, ten), extra, forces, period,
                      substeps, states)
    if bad >= 0 or not np.isfinite(states).all():
        raise NotPossibleError(f"the motion of robot '{robot.name}' cannot be integrated beyond "
                               f"{period * max(bad, 0):g} s",
                               "use smaller torques, a smaller period or more substeps", code="motion-diverges")
    return FreeMotion(np.arange(count, dtype=float) * period, states[:, :n + 1], states[:, n + 1:])
