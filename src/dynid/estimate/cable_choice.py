"""Position-dependent torques of joints, for robots whose data contradict every physically consistent model.

Cables, hoses and torque sensors cause such torques. Unconstrained bodies imitate them, so that their cross-validation
error does not show them. Physically consistent bodies cannot: the constraints then increase the misfit by more than
noise does. Only in this case are the torques tried, and only on joints whose data revisit each position. They are used
on two conditions. With these torques, the data must not contradict the constraints. The physically consistent robot
with them must predict better than unconstrained least squares without them, by a standard error of the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dynid.errors import DynidError
from dynid.estimate.block_cross_validation import BlockCrossValidation, cross_validate_blocks
from dynid.estimate.choice import Choice, choose, compare_left_out, default_candidates, fit_candidates
from dynid.estimate.columns_left_out import Worth, worth_of_gains
from dynid.estimate.estimate import Estimate
from dynid.estimate.problem import Problem, identify
from dynid.recording import Samples

FREE, CONSISTENT = "wls", "pc-wls"  # names of the compared methods
POSITION_BINS = 8  # equal parts of a joint's range: fine enough for the two periods per turn of the torques
# Blocks of time that visit each part of the range: without one of them, two others still show a torque of the
# position, with different motion of the other joints.
MIN_VISITS = 3
CONTRADICTED = 1.0  # excess misfit, relative to the expected excess of the true robot by noise


@dataclass(frozen=True, eq=False)
class CableFit:
    """An identified problem with torques that depend on position.

    Attributes:
        problem: identification problem with these torques in its model.
        estimate: estimate of this problem.
        worths: error reduction by the torques at each joint, relative to unconstrained least squares without them.
    """

    problem: Problem
    estimate: Estimate
    worths: dict[int, Worth]


def identify_with_cables(problem: Problem, with_cables: Callable[[Sequence[int]], Problem]) -> CableFit | Estimate:
    """Return the estimate of method `auto`, or a fit with position-dependent torques if the data show such torques.

    Args:
        problem: problem without these torques, with chosen friction.
        with_cables: function that returns the same problem with these torques on given joints, counted from 0.
    """
    names = default_candidates(problem)
    first = [name for name in names if name in (FREE, CONSISTENT)]
    fits, failures = fit_candidates(problem, first, {})
    joints = revisiting_joints(problem.data, len(problem.regression.blocks))
    if joints and FREE in fits and CONSISTENT in fits and is_contradicted(fits[CONSISTENT]):
        found = _explained(problem, fits[FREE], lambda: with_cables(joints), joints)
        if found is not None:
            return found
    others, reasons = fit_candidates(problem, [name for name in names if name not in first], {}, fits)
    every = {**fits, **others}
    return choose(problem, every, {}, {**failures, **reasons}, names).estimate_among(every)


def is_contradicted(estimate: Estimate) -> bool:
    """Return whether the data contradict the constraints of a consistent estimate by more than noise explains."""
    return float(estimate.diagnostics["excess_over_noise"]) > CONTRADICTED


def revisiting_joints(logs: Sequence[Samples], blocks: int) -> tuple[int, ...]:
    """Return the joints, counted from 0, that visit each part of their range of motion in several blocks of time."""
    if not logs:
        return ()
    q = np.concatenate([log.q for log in logs])
    low, span = q.min(axis=0), np.ptp(q, axis=0)
    part = np.minimum(POSITION_BINS * (q - low) / np.where(span > 0.0, span, 1.0), POSITION_BINS - 1).astype(np.int64)
    block = np.arange(len(q)) * blocks // len(q)
    visits = np.zeros((q.shape[1], POSITION_BINS, blocks), dtype=bool)
    for j in range(q.shape[1]):
        visits[j, part[:, j], block] = True
    return tuple(np.flatnonzero(visits.sum(axis=2).min(axis=1) >= MIN_VISITS).tolist())


def _explained(problem: Problem, free: Estimate, with_cables: Callable[[], Problem],
               joints: Sequence[int]) -> CableFit | None:
    """Return the fit with position-dependent torques; None if these do not make data and constraints agree."""
    try:
        richer = with_cables()
        consistent = identify(richer, method=CONSISTENT)
        if is_contradicted(consistent):
            return None
        before = cross_validate_blocks(problem, FREE, None, free)
        after = cross_validate_blocks(richer, CONSISTENT, None, consistent)
    except DynidError:  # the method is then chosen without them
        return None
    if before.blocks != after.blocks:
        return None
    compared = compare_left_out({FREE: before, CONSISTENT: after}, {FREE: before.errors, CONSISTENT: after.errors})
    if compared[FREE].excess_error <= compared[FREE].excess_std:  # the best method has no excess error
        return None
    reason = ("without position-dependent torques the data contradict every physically consistent model, and with "
              "them this method has the smallest error in cross-validation")
    choice = Choice(CONSISTENT, reason, tuple(compared.values()))
    worths = {j: _worth(problem, before, after, j) for j in joints}
    return CableFit(richer, choice.estimate_among({CONSISTENT: consistent}), worths)


def _worth(problem: Problem, before: BlockCrossValidation, after: BlockCrossValidation, j: int) -> Worth:
    """Return the reduction of the cross-validation error of joint j by position-dependent torques."""
    power = np.array([problem.regression.blocks[k].factors[j].power for k in before.blocks])
    errors = [np.nan_to_num(0.01 * one.errors_per_joint[:, j]) ** 2 * power for one in (before, after)]
    return worth_of_gains("cable", errors[0] - errors[1], float(errors[0].sum()), float(power.sum()))
