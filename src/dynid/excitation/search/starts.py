"""Starts of a search: random motions within the limits, and feasible postures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dynid.arrays import Array
from dynid.errors import NotPossibleError
from dynid.excitation.search.motion_problem import MotionProblem
from dynid.excitation.search.quadratic_program import solve_qp

_START_POSTURES = 400  # random postures, of which the posture farthest inside the limits is used
_START_DRAWS = 30  # random motions, of which the best is the start; a third as many with nonlinear limits
_START_SHARES = (1.0, 0.7, 0.5, 0.35, 0.2, 0.1, 0.04)  # relative amplitudes, tried until nonlinear limits are satisfied
_LIMITED_SIGNALS = ("position", "velocity", "acceleration", "jerk")


@dataclass(frozen=True, eq=False)
class Anchor:
    """Feasible posture or motion from which random starts are derived; posture (dof,): within torque and workspace
    limits. motion: free coefficients (dof, k) of a motion within the linear limits if the first or last posture is
    given, otherwise None."""

    problem: MotionProblem
    posture: Array
    motion: Array | None

    @staticmethod
    def from_problem(problem: MotionProblem, posture: Array) -> Anchor:
        """Return the feasible start of a search problem at a posture (dof,) within torque and workspace limits.

        Raises:
            NotPossibleError: no motion connects the given postures within the limits.
        """
        given = problem.limits.start is not None or problem.limits.end is not None
        return Anchor(problem, posture, feasible_motion(problem) if given else None)

    @property
    def gentlest(self) -> Array:
        """Free coefficients (dof, k) of the slowest motion."""
        return self.problem.family.constant_motion(self.posture) if self.motion is None else self.motion


# -- postures ----------------------------------------------------------------------------------------
def safe_posture(problem: MotionProblem, seed: int) -> Array:
    """Return a posture (dof,) well within torque and workspace limits; NotPossibleError names the violated limit."""
    limits = problem.limits
    for what, posture in (("first", limits.start), ("last", limits.end)):
        if posture is not None and problem.nonlinear_excess_at_rest(posture[None])[0] > 0:
            text = _worst_limit(problem, posture)
            raise NotPossibleError(f"the {what} posture of the motion violates a limit, {text}",
                                   "change the posture or the limit")
    if limits.start is not None:
        return limits.start
    if limits.end is not None:
        return limits.end
    low, high = _drawing_range(limits.lower, limits.upper)
    middle = 0.5 * (low + high)
    if not problem.nonlinear:
        return middle
    rng = np.random.default_rng([seed, 1])
    q = np.vstack([middle, np.clip(np.zeros(limits.dof), low, high),
                   rng.uniform(low, high, (_START_POSTURES, limits.dof))])
    value = problem.nonlinear_excess_at_rest(q)
    for _ in range(40):  # further postures around the best ones, at several distances
        if value.min() < -0.05:
            break
        best = q[np.argsort(value)[:10]]
        spread = (high - low) * rng.choice([0.3, 0.1, 0.03, 0.01], (100, 1))
        more = np.clip(np.repeat(best, 10, axis=0) + rng.normal(size=(100, limits.dof)) * spread, low, high)
        q = np.vstack([best, more])
        value = np.concatenate([np.sort(value)[:10], problem.nonlinear_excess_at_rest(more)])
    k = int(np.argmin(value))
    if value[k] > 0:
        text = _worst_limit(problem, q[k])
        raise NotPossibleError("no posture within the joint ranges respects all limits of torque and workspace; the "
                               f"best posture violates {text}", "relax that limit or the joint ranges")
    return np.asarray(q[k])


def _drawing_range(lower: Array, upper: Array) -> tuple[Array, Array]:
    """Return the lowest and highest positions (dof,) of random postures; -pi and pi for a joint without limits."""
    low = np.where(np.isfinite(lower), lower, np.where(np.isfinite(upper), upper - 2 * np.pi, -np.pi))
    return low, np.where(np.isfinite(upper), upper, low + 2 * np.pi)


def _worst_limit(problem: MotionProblem, posture: Array) -> str:
    """Return the name of the nonlinear limit with the largest violation in a posture (dof,)."""
    value, text, zero = -np.inf, "", np.zeros((1, len(posture)))
    for limit in problem.nonlinear:
        values = limit.values(posture[None], zero, zero)[0]
        if len(values) and values.max() > value:
            value, text = float(values.max()), limit.describe(int(np.argmax(values)))
    return text


# -- motions between given postures ------------------------------------------------------------------
def feasible_motion(problem: MotionProblem) -> Array:
    """Return free coefficients z (dof, k) of a motion between given postures within the linear limits."""
    z = np.zeros((problem.family.dof, problem.family.size))
    for j in range(problem.family.dof):
        found = _feasible_joint(problem, j, range(4))
        if found is None:
            raise NotPossibleError(_conflict(problem, j), code="limits-conflict")
        z[j] = found
    return z


def _feasible_joint(problem: MotionProblem, j: int, signals: Iterable[int]) -> Array | None:
    """Return free coefficients (k,) of joint j within the limits of some signals, None if there are none; signals:
    indices of position, velocity, acceleration and jerk."""
    (low, high), k = problem.bounds, problem.family.size
    rows, left = [np.zeros((1, k))], [np.zeros(1)]
    for s in signals:
        for sign, bound in ((1.0, high[s, j]), (-1.0, low[s, j])):
            if np.isfinite(bound):
                size = problem.limit_sizes[s, j]
                rows.append(sign * problem.functions[s] * problem.unit[j] / size)
                left.append((sign * bound - sign * problem.fixed_signals[s, :, j]) / size)
    # A small margin, so that initial step lengths to the limits are not zero.
    bounds = np.concatenate(left)
    for margin in (1e-3, 0.0):
        stricter = np.maximum(bounds - margin, np.minimum(bounds, 0.0))
        x, solved = solve_qp(np.eye(k), np.zeros(k), np.vstack(rows), stricter, 1e-10, 2000)
        if solved and (np.vstack(rows) @ x - bounds).max() < 1e-7:
            return x * problem.unit[j]
    return None


def _conflict(problem: MotionProblem, j: int) -> str:
    """Return the smallest set of limits of a joint that contradict each other, as text."""
    limits, family = problem.limits, problem.family.family
    sets = [one for size in range(1, 5) for one in combinations(range(4), size)]
    excluding = next((one for one in sets if _feasible_joint(problem, j, one) is None), sets[-1])
    values = (f"{limits.lower[j]:g} to {limits.upper[j]:g}", *(f"{x[j]:g}" for x in (
        limits.velocity, limits.acceleration, limits.jerk)))
    which = " and ".join(f"{_LIMITED_SIGNALS[s]} limit {values[s]}" for s in excluding)
    ends = (("from", limits.start), ("to", limits.end))
    postures = " ".join(f"{what} {posture[j]:g}" for what, posture in ends if posture is not None)
    return (f"no {family.kind} motion takes joint '{limits.names[j]}' {postures} in {family.duration:g} s within its "
            f"{which}: allow more time, more coefficients or wider limits")


# -- random motions ----------------------------------------------------------------------------------
def random_motion(anchor: Anchor, rng: np.random.Generator) -> Array:
    """Return free coefficients z (dof, k) of a random motion within the linear limits, and if possible within the
    nonlinear limits."""
    problem, family = anchor.problem, anchor.problem.family
    z = rng.normal(size=(family.dof, family.size)) * problem.unit
    # Some draws prefer slow and wide motions, which are rare among uniform draws.
    z = (z @ family.null.T * family.family.frequencies ** -rng.choice([0.0, 0.5, 1.0, 1.5])) @ family.null
    gentlest = anchor.gentlest
    if anchor.motion is None:
        z = _scaled_into_limits(problem, z, rng)
    else:
        reach = np.clip(problem.reach(problem.signals(anchor.motion), z), 0.0, 10.0)[:, None]
        z = anchor.motion + reach * rng.uniform(0.3, 0.99, (family.dof, 1)) * z
    if not problem.nonlinear:
        return z
    tries = [gentlest + share * (z - gentlest) for share in _START_SHARES]
    values = []
    for one in tries:
        values.append(problem.nonlinear_excess(one))
        if values[-1] <= 0:
            return one
    return tries[int(np.argmin(values))]


def _scaled_into_limits(problem: MotionProblem, z: Array, rng: np.random.Generator) -> Array:
    """Return coefficients z (dof, k), scaled per joint to 70 to 99 % of the linear limits and shifted within the
    range."""
    family, (low, high) = problem.family, problem.bounds
    one = family.constant_motion(np.ones(family.dof))
    moved = problem.functions @ z.T
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.min([np.where(np.isfinite(high[s]), high[s] / np.abs(moved[s]).max(axis=0), np.inf)
                        for s in range(1, 4)], axis=0)
        share = np.minimum(share, (high[0] - low[0]) / np.ptp(moved[0], axis=0))
    share = np.where(np.isfinite(share), share, 1.0) * rng.uniform(0.7, 0.99, family.dof)
    z = z * share[:, None]
    moved = problem.functions[0] @ z.T
    first, last = _drawing_range(low[0], high[0])
    lowest = first - moved.min(axis=0)
    return z + one * rng.uniform(lowest, np.maximum(last - moved.max(axis=0), lowest))[:, None]


def best_random_motion(anchor: Anchor, rng: np.random.Generator) -> Array:
    """Return free coefficients (dof, k) of the best of several random motions."""
    problem = anchor.problem
    draws = [random_motion(anchor, rng) for _ in range(_START_DRAWS if not problem.nonlinear else _START_DRAWS // 3)]
    return min(draws, key=lambda z: problem.value(z, 2.0) + 10.0 * max(0.0, problem.nonlinear_excess(z)))
