"""Stored inputs and results of a program, for its self-tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.arrays import Array

if TYPE_CHECKING:
    from dynid.symbolic.program import Program

STATE_COUNT = 3  # states of each function
ROLLOUT_STEPS = 8  # time steps of a stored rollout
_TIME_STEP = 1.0 / 1024.0  # s, a number that float has too


def stored(program: Program, real: str) -> list[tuple[list[Array], list[Array]]]:
    """Return inputs and outputs of each function at a few states, as arrays (states, size).

    The parameters p have the program's values if it has any, unless a function then divides by zero. Inputs are
    representable in the number type `real`, so that only rounding errors of the function itself count.
    """
    from dynid.symbolic.languages.python import compiled
    rng = np.random.default_rng(0)
    found = []
    for function in program.functions:
        inputs = []
        for one, size in function.inputs:
            values = rng.uniform(-1.0, 1.0, (STATE_COUNT, size))
            if one == "p":
                values = _numbers(program, rng)
            elif program.plan.follow and one in ("q", "q_follow"):
                dof = program.plan.dof
                at = program.plan.closed_postures[:STATE_COUNT]
                values = at[:, :dof] if one == "q" else at[:, dof:]
            inputs.append(_rounded(values, real))
        with np.errstate(all="ignore"):
            outputs = compiled(program)[function.name](*inputs)
        if not all(np.isfinite(values).all() for values in outputs):  # an inertia of zero
            inputs = [np.tile(_rounded(rng.uniform(0.5, 1.5, size), real), (STATE_COUNT, 1)) if one == "p" else values
                      for (one, size), values in zip(function.inputs, inputs, strict=True)]
            outputs = compiled(program)[function.name](*inputs)
        found.append((inputs, [values.reshape(STATE_COUNT, -1) for values in outputs]))
    return found


def _numbers(program: Program, rng: np.random.Generator) -> Array:
    """Return the parameters of the generated functions (states, numbers), the same at every state."""
    own = None if program.values is None else program.matrix @ program.values
    return np.tile(rng.uniform(0.5, 1.5, len(program.numbers)) if own is None else own, (STATE_COUNT, 1))


def _rounded(values: Array, real: str) -> Array:
    return values.astype(np.float32).astype(float) if real == "float" else values


def has_rollout(program: Program) -> bool:
    """Return whether a rollout can be written, which needs `forward_dynamics` without the input `q_follow`."""
    names = [function.name for function in program.functions]
    return "forward_dynamics" in names and "q_follow" not in dict(program.function("forward_dynamics").inputs)


@dataclass(frozen=True)
class StoredRollout:
    """A rollout of a few states under a PD law, with its results by "euler" and "rk4".

    Attributes:
        start: positions q, velocities dq and reference positions q_ref (3, states, dof); dq_ref is zero.
        gains: kp, kd and the largest torque (3, dof).
        p: parameters of the functions (numbers,), or None if they are constants in the code.
        time_step: time step, s.
        ends: q and dq (2, states, dof) after `ROLLOUT_STEPS` steps, by method.
    """

    start: Array
    gains: Array
    p: Array | None
    time_step: float
    ends: dict[str, Array]


def stored_rollout(program: Program, real: str) -> StoredRollout:
    """Return the rollout that self-tests repeat, computed by the functions of the NumPy module."""
    rng, dof = np.random.default_rng(1), program.plan.dof
    start = _rounded(rng.uniform(-1.0, 1.0, (3, STATE_COUNT, dof)), real)
    if program.plan.follow:
        start[0] = _rounded(program.plan.closed_postures[:STATE_COUNT, :dof], real)
        start[2] = start[0]
    p = None if program.mode == "fixed" else _rounded(_numbers(program, rng)[0], real)
    gains = _rounded(np.array([np.linspace(2.0, 1.0, dof), np.linspace(0.2, 0.1, dof), np.full(dof, 2.0)]), real)
    return StoredRollout(start, gains, p, _TIME_STEP,
                         {method: _rolled(program, method, start, gains, p) for method in ("euler", "rk4")})


def _rolled(program: Program, method: str, start: Array, gains: Array, p: Array | None) -> Array:
    from dynid.symbolic.languages.python import compiled
    functions, h = compiled(program), _TIME_STEP
    q, dq, reference = start
    memory = np.zeros((STATE_COUNT, program.plan.remembers))

    def acceleration(q: Array, dq: Array, tau: Array) -> Array:
        given: dict[str, Any] = {"q": q, "dq": dq, "tau": tau, "memory": memory, "p": p}
        found: Array = functions["forward_dynamics"](
            *(given[one] for one, _ in program.function("forward_dynamics").inputs))[0]
        return found

    for _ in range(ROLLOUT_STEPS):
        tau = np.clip(gains[0] * (reference - q) - gains[1] * dq, -gains[2], gains[2])
        before = q, dq
        if method == "euler":
            dq = dq + h * acceleration(q, dq, tau)
            q = q + h * dq
        else:
            speeds, slopes = [dq], [acceleration(q, dq, tau)]
            for share in (0.5, 0.5, 1.0):
                q_at, dq_at = q + share * h * speeds[-1], dq + share * h * slopes[-1]
                speeds.append(dq_at)
                slopes.append(acceleration(q_at, dq_at, tau))
            q = q + h / 6.0 * (speeds[0] + 2.0 * (speeds[1] + speeds[2]) + speeds[3])
            dq = dq + h / 6.0 * (slopes[0] + 2.0 * (slopes[1] + slopes[2]) + slopes[3])
        if program.plan.remembers:
            memory = functions["step"](*before, memory, q, dq)[0]
    return np.array([q, dq])
