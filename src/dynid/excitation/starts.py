"""Where the search begins: random motions inside the limits, and postures that everything allows."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

import numpy as np

from dynid.arrays import Array
from dynid.errors import NotPossibleError
from dynid.excitation.qp import solve_qp
from dynid.excitation.search import Problem

_POSTURES = 400
_DRAWS = 30
_SHRINK = (1.0, 0.7, 0.5, 0.35, 0.2, 0.1, 0.04)


def wide(lower: Array, upper: Array) -> tuple[Array, Array]:
    """Ranges to draw postures from: half a turn either way where there is no limit."""
    low = np.where(np.isfinite(lower), lower, np.where(np.isfinite(upper), upper - 2 * np.pi, -np.pi))
    return low, np.where(np.isfinite(upper), upper, low + 2 * np.pi)


def worst(problem: Problem, z: Array) -> float:
    """Largest value of the curved limits over a motion."""
    return max((float(values.max(initial=-np.inf)) for values in problem.curved_values(z)), default=-np.inf)


def _trouble(problem: Problem, posture: Array) -> str:
    """Which of the curved limits is overstepped most in a posture (dof,), in words."""
    value, text, still = -np.inf, "", np.zeros((1, len(posture)))
    for constraint in problem.curved:
        values = constraint.values(posture[None], still, still)[0]
        if len(values) and values.max() > value:
            value, text = float(values.max()), constraint.describe(int(np.argmax(values)))
    return text


def at_rest(problem: Problem, q: Array) -> Array:
    """Largest value of the curved limits (m,) in postures q (m, dof) without motion."""
    still = np.zeros_like(q)
    values = [constraint.values(q, still, still).max(axis=1, initial=-np.inf) for constraint in problem.curved]
    return np.max(values, axis=0) if values else np.full(len(q), -np.inf)


def safe_posture(problem: Problem, seed: int) -> Array:
    """A posture (dof,) that torque and space limits allow, well inside; or NotPossibleError with what is in the way."""
    limits = problem.limits
    low, high = wide(limits.lower, limits.upper)
    for what, posture in (("first", limits.start), ("last", limits.end)):
        if posture is not None and at_rest(problem, posture[None])[0] > 0:
            text = _trouble(problem, posture)
            raise NotPossibleError(f"the {what} posture already violates a limit, {text}; choose another of either")
    if limits.start is not None:
        return limits.start
    if limits.end is not None:
        return limits.end
    middle = 0.5 * (low + high)
    if not problem.curved:
        return middle
    rng = np.random.default_rng([seed, 1])
    q = np.vstack([middle, np.clip(np.zeros(limits.dof), low, high), rng.uniform(low, high, (_POSTURES, limits.dof))])
    value = at_rest(problem, q)
    for _ in range(40):  # around the best ones, closer and closer
        if value.min() < -0.05:
            break
        best = q[np.argsort(value)[:10]]
        spread = (high - low) * rng.choice([0.3, 0.1, 0.03, 0.01], (100, 1))
        more = np.clip(np.repeat(best, 10, axis=0) + rng.normal(size=(100, limits.dof)) * spread, low, high)
        q, value = np.vstack([best, more]), np.concatenate([np.sort(value)[:10], at_rest(problem, more)])
    k = int(np.argmin(value))
    if value[k] > 0:
        text = _trouble(problem, q[k])
        raise NotPossibleError(f"no posture inside the joints' ranges was found that respects all limits of torque and "
                               f"space; in the best one the trouble is {text}, so relax that limit or the ranges")
    return np.asarray(q[k])


_SIGNALS = ("position", "velocity", "acceleration", "jerk")


def calm(problem: Problem) -> Array:
    """Free numbers z (dof, k) of a motion that respects the linear limits, for a family with given postures."""
    z = np.zeros((problem.family.dof, problem.family.size))
    for j in range(problem.family.dof):
        found = _calm_joint(problem, j, range(4))
        if found is None:
            raise NotPossibleError(_conflict(problem, j))
        z[j] = found
    return z


def _calm_joint(problem: Problem, j: int, signals: Iterable[int]) -> Array | None:
    """Free numbers (k,) of one joint inside the limits of some of its signals; None where there are none."""
    (low, high), k = problem.bounds, problem.family.size
    rows, left = [np.zeros((1, k))], [np.zeros(1)]
    for s in signals:
        for sign, bound in ((1.0, high[s, j]), (-1.0, low[s, j])):
            if np.isfinite(bound):
                rows.append(sign * problem.functions[s] * problem.unit[j] / problem.half[s, j])
                left.append((sign * bound - sign * problem.given[s, :, j]) / problem.half[s, j])
    # A hair of room, so that the step lengths to the limits are not zero from the beginning.
    bounds = np.concatenate(left)
    for room in (1e-3, 0.0):
        stricter = np.maximum(bounds - room, np.minimum(bounds, 0.0))
        x, solved = solve_qp(np.eye(k), np.zeros(k), np.vstack(rows), stricter, 1e-10, 2000)
        if solved and (np.vstack(rows) @ x - bounds).max() < 1e-7:
            return x * problem.unit[j]
    return None


def _conflict(problem: Problem, j: int) -> str:
    """Which limits of a joint exclude each other: the smallest set that does."""
    limits, name = problem.limits, problem.limits.names[j]
    sets = [one for size in range(1, 5) for one in combinations(range(4), size)]
    guilty = next((one for one in sets if _calm_joint(problem, j, one) is None), sets[-1])
    values = (f"{limits.lower[j]:g} to {limits.upper[j]:g}", *(f"{x[j]:g}" for x in (
        limits.velocity, limits.acceleration, limits.jerk)))
    which = " and ".join(f"{_SIGNALS[s]} limit {values[s]}" for s in guilty)
    ends = (("from", limits.start), ("to", limits.end))
    way = " ".join(f"{what} {posture[j]:g}" for what, posture in ends if posture is not None)
    return (f"no {problem.family.kind} motion takes joint '{name}' {way} in {problem.family.duration:g} s inside its "
            f"{which}: allow more time, more coefficients or wider limits")


def random_motion(problem: Problem, rng: np.random.Generator, safe: Array, base: Array | None) -> Array:
    """Free numbers z (dof, k) of a random motion inside the linear limits, and inside the others where that was easy.

    base: a calm motion to start from where postures are given (its free numbers), else None.
    """
    family, (low, high) = problem.family, problem.bounds
    z = rng.normal(size=(family.dof, family.size)) * problem.unit
    # Some draws prefer slow and wide motions, which uniform ones hardly ever are.
    z = (z @ family.null.T * family.wave ** -rng.choice([0.0, 0.5, 1.0, 1.5])) @ family.null
    still = family.free(np.outer(safe, family.centre)) if base is None else base
    if base is None:
        middle = family.free(np.outer(np.ones(family.dof), family.centre))  # of the constant 1
        moved = problem.functions @ z.T
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.min([np.where(np.isfinite(high[s]), high[s] / np.abs(moved[s]).max(axis=0), np.inf)
                            for s in range(1, 4)], axis=0)
            share = np.minimum(share, (high[0] - low[0]) / np.ptp(moved[0], axis=0))
        share = np.where(np.isfinite(share), share, 1.0) * rng.uniform(0.7, 0.99, family.dof)
        z *= share[:, None]
        moved = problem.functions[0] @ z.T
        first, last = wide(low[0], high[0])
        z += middle * rng.uniform(first - moved.min(axis=0), np.maximum(last - moved.max(axis=0),
                                                                       first - moved.min(axis=0)))[:, None]
    else:
        z = base + _room(problem, base, z)[:, None] * rng.uniform(0.3, 0.99, (family.dof, 1)) * z
    if not problem.curved:
        return z
    tries = [still + share * (z - still) for share in _SHRINK]
    values = []
    for one in tries:
        values.append(worst(problem, one))
        if values[-1] <= 0:
            return one
    return tries[int(np.argmin(values))]


def _room(problem: Problem, z: Array, d: Array) -> Array:
    """How far (dof,) each joint may go from z along d inside its linear limits."""
    low, high = problem.bounds
    signals, move = problem.signals(z), problem.functions @ d.T
    with np.errstate(divide="ignore", invalid="ignore"):
        up = np.where(move > 1e-12, (high[:, None] - signals) / move, np.inf).min(axis=(0, 1))
        down = np.where(move < -1e-12, (signals - low[:, None]) / -move, np.inf).min(axis=(0, 1))
    return np.clip(np.minimum(up, down), 0.0, 10.0)


def good_start(problem: Problem, rng: np.random.Generator, safe: Array, base: Array | None) -> Array:
    """The best of several random motions."""
    found: list[tuple[float, int, Array]] = []
    for _ in range(_DRAWS if not problem.curved else _DRAWS // 3):
        z = random_motion(problem, rng, safe, base)
        excess = max(0.0, worst(problem, z))
        found.append((problem.value(z, 2.0) + 10.0 * excess, len(found), z))
    return min(found)[2]
