"""Scales of all joints' torques relative to each other.

A link's parameters affect the torque of every joint that carries it. With c_j the factor that corrects joint j's
torque, and R_j, rho_j the triangular factor of its equations,

    minimise  sum_j w_j^2 |R_j beta - c_j rho_j|^2   over beta and c,

which is linear in both. beta is eliminated once, on the factors. The remaining small matrix on c shows which joints
agree with each other, and how much of the inconsistency between joints a set of scales removes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.arrays import Array, Bools
from dynid.lapack import column_space
from dynid.order_statistics import median
from dynid.regression import Regression
from dynid.regression.factor import triangular
from dynid.validate import thresholds


@dataclass(frozen=True)
class Scales:
    """Joints whose torque has another scale than the torques of the other joints.

    Attributes:
        joints: indices of the joints, from 0.
        gains, std: ratios of measured and correct torque, and their standard errors.
        removed: share of the inconsistency between joints that correcting these scales removes.
        rivals: other joints that could equally be the wrong ones, with the inverse scale.
    """

    joints: tuple[int, ...]
    gains: tuple[float, ...]
    std: tuple[float, ...]
    removed: float
    rivals: tuple[int, ...] = ()


def between_joints(regression: Regression, noise: Array) -> Array:
    """Return T (dof, dof) such that |T c|^2 is the inconsistency between joints if torques are multiplied by c (dof,).
    Its unit is the joints' noise (dof,); it is zero if each joint's own parameters agree with those of all joints."""
    b, dof = len(regression.base), regression.dof
    tall = np.zeros((sum(len(f.columns) for f in regression.factors), b + dof))
    at = 0
    for j, factor in enumerate(regression.factors):
        k = len(factor.columns)
        rows = slice(at, at + k)
        tall[rows, factor.columns] = factor.r[:k, :k] / noise[j]
        tall[rows, b + j] = -factor.r[:k, k] / noise[j]
        at += k
    span = column_space(tall[:, :b], 1e-9)
    rest = tall[:, b:] - span @ (span.T @ tall[:, b:])
    return triangular(rest)


def wrong_scales(regression: Regression, noise: Array, inflation: float,
                 nominal: Sequence[float | None] | None = None) -> Scales | None:
    """Return the smallest set of joints whose scales explain the inconsistency between joints, or None.

    Each joint in turn is assumed to be correct, and the others are measured relative to it; the joint with which most
    others agree is correct. Among several such sets, one whose scales the nominal model (dof entries) confirms is
    chosen. A contradiction between two joints shows neither which one is wrong nor that a scale is the cause. So a set
    also needs a second correct joint, a nominal model that confirms the scales, or no remaining contradiction.
    """
    t, dof = between_joints(regression, noise), regression.dof
    total = float(np.sum(t.sum(axis=1) ** 2))
    small = thresholds.SMALL_CONTRADICTION * sum(regression.rows) ** 0.5 * max(inflation, 1.0) ** 2
    if dof < 2 or total < small:
        return None
    found = []
    for right in range(dof):
        c, std = _against(t, (right,), dof)
        off = _off(c, std * inflation)
        wrong = tuple(j for j in range(dof) if off[j])
        agree = [j for j in range(dof) if std[j] * inflation < thresholds.SCALE_KNOWN and not off[j]]
        if wrong:
            found.append((len(agree), -_contradiction(agree, nominal), right, wrong))
    # If the nominal model contradicts the set that most joints agree with, the next set is tried.
    for most in sorted(found, reverse=True):
        scales = _measured(t, most[3], inflation, total)
        if scales is not None and not _denied(scales, nominal) and (
                most[0] > 1 or _is_confirmed(scales, nominal) or (1.0 - scales.removed) * total < small):
            rivals = sorted({j for count, doubt, right, wrong in found if count == most[0] and doubt >= most[1] - 0.1
                             for j in wrong if j not in scales.joints})
            return replace(scales, rivals=tuple(rivals))
    return None


def _denied(scales: Scales, nominal: Sequence[float | None] | None) -> bool:
    """Whether the nominal model contradicts the scale of a joint by more than the usual error of a robot file."""
    pairs = [(gain, nominal[j]) for j, gain in zip(scales.joints, scales.gains, strict=True)] if nominal else []
    most = np.log(thresholds.NOMINAL_DENIES)
    return any(value is not None and (value * gain <= 0 or abs(np.log(value / gain)) > most) for gain, value in pairs)


def _is_confirmed(scales: Scales, nominal: Sequence[float | None] | None) -> bool:
    """Whether the nominal model determines some scale, or all scales are negative, which no coupling of joints
    causes."""
    return max(scales.gains) < 0.0 or (nominal is not None and any(nominal[j] is not None for j in scales.joints))


def _measured(t: Array, wrong: tuple[int, ...], inflation: float, total: float) -> Scales | None:
    """Return the scales of the joints that are wrong if all others are correct; None if they explain too little."""
    dof = t.shape[1]
    while wrong:
        right = tuple(j for j in range(dof) if j not in wrong)
        c, std = _against(t, right, dof)
        weak = [j for j in wrong if not _off(c, std * inflation)[j]]
        if not weak:
            removed = 1.0 - float(np.sum((t @ c) ** 2)) / total
            far = np.abs(np.log(np.abs(c[list(wrong)]) + 1e-12)) > np.log(thresholds.ABSURD_SCALE)
            if removed < thresholds.SCALES_EXPLAIN or np.any(far):
                return None
            gains = 1.0 / c[list(wrong)]
            return Scales(wrong, tuple(map(float, gains)),
                          tuple(map(float, std[list(wrong)] * inflation * gains ** 2)), float(removed))
        left = {j: float(np.sum((t @ _against(t, (*right, j), dof)[0]) ** 2)) for j in weak}  # if joint j is correct
        wrong = tuple(j for j in wrong if j != min(left, key=left.__getitem__))
    return None


def _against(t: Array, right: tuple[int, ...], dof: int) -> tuple[Array, Array]:
    """Return correction factors of the torques and standard errors (dof,) if `right` joints are correct."""
    free = [j for j in range(dof) if j not in right]
    c, std = np.ones(dof), np.zeros(dof)
    if not free:
        return c, std
    target = -t[:, list(right)].sum(axis=1)
    size = np.linalg.norm(t[:, free], axis=0)
    scale = np.where(size > 0, size, 1.0)
    u, s, vt = np.linalg.svd(t[:, free] / scale, full_matrices=False)
    s = np.maximum(s, 1e-12)
    c[free] = (vt.T @ ((u.T @ target) / s)) / scale
    std[free] = np.sqrt(np.sum((vt / s[:, None]) ** 2, axis=0)) / scale
    std[[j for j, x in zip(free, size, strict=True) if x <= 0]] = np.inf
    return c, std


def _off(c: Array, std: Array) -> Bools:
    """Return a mask (dof,) of the correction factors c (dof,) that are determined and differ significantly from one."""
    least = np.maximum(thresholds.SCALE_OFF, thresholds.CERTAIN_STANDARD_ERRORS * std)
    return (np.abs(c - 1.0) > least) & (std < thresholds.SCALE_KNOWN * np.abs(c))


def _contradiction(joints: Sequence[int], nominal: Sequence[float | None] | None) -> float:
    """Return the contradiction between the nominal model and the scales of joints assumed correct, as a logarithm."""
    known = [abs(np.log(abs(value))) + (1.0 if value < 0 else 0.0) for j in joints
             if nominal is not None and (value := nominal[j]) is not None and value != 0]
    return float(np.round(median(known), 2)) if known else 0.0
