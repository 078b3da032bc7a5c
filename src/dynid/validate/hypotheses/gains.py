"""Scales of all joints' torques against each other at once.

A link's parameters show in the torque of every joint that carries it. With c_j what joint j's torque has to be
multiplied by, and R_j, rho_j the triangular factor of its equations,

    minimise  sum_j w_j^2 |R_j beta - c_j rho_j|^2   over beta and c,

which is linear in both. beta is eliminated once, on the factors; what is left is a small matrix on c that answers every
question: which joints agree with each other, and how much of the misfit between joints a set of scales removes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.arrays import Array, Bools
from dynid.regression import Regression
from dynid.regression.factor import triangular
from dynid.validate.thresholds import (
    ABSURD_SCALE,
    LARGE_SCALE_ERROR,
    NOMINAL_DENIES,
    SCALE_KNOWN,
    SCALE_NEEDED,
    SCALE_OFF,
    SCALE_STANDARD_ERRORS,
    SCALES_EXPLAIN,
    SMALL_CONTRADICTION,
)


@dataclass(frozen=True)
class Scales:
    """Joints (from 0) whose torque has another scale than the others': gains: measured over right, std: deviations.
    removed: share of the misfit between joints that setting them right removes. rivals: other joints that might as
    well be the wrong ones, by the inverse."""

    joints: tuple[int, ...]
    gains: tuple[float, ...]
    std: tuple[float, ...]
    removed: float
    rivals: tuple[int, ...] = ()


def between_joints(regression: Regression, noise: Array) -> Array:
    """T (dof, dof) with |T c|^2 the misfit between joints, in units of their noise (dof,), when torques are multiplied
    by c: zero where each joint's own parameters are those of all."""
    b, dof = len(regression.base), regression.dof
    tall = np.zeros((sum(len(f.columns) for f in regression.factors), b + dof))
    at = 0
    for j, factor in enumerate(regression.factors):
        k = len(factor.columns)
        rows = slice(at, at + k)
        tall[rows, factor.columns] = factor.r[:k, :k] / noise[j]
        tall[rows, b + j] = -factor.r[:k, k] / noise[j]
        at += k
    size = np.linalg.norm(tall[:, :b], axis=0)
    scaled = tall[:, :b] / np.where(size > 0, size, 1.0)
    u, s, _ = np.linalg.svd(scaled, full_matrices=False)
    span = u[:, s > 1e-9 * s[0]]
    rest = tall[:, b:] - span @ (span.T @ tall[:, b:])
    return triangular(rest)


def wrong_scales(regression: Regression, noise: Array, inflation: float,
                 nominal: Sequence[float | None] | None = None) -> Scales | None:
    """The smallest set of joints whose scales explain why joints contradict each other; None where none does.

    Each joint in turn is taken as right and the others measured against it; the joint that most others agree with is
    right. Where several are, those whose scale the nominal model (dof entries) agrees with.
    """
    t, dof = between_joints(regression, noise), regression.dof
    total = float(np.sum(t.sum(axis=1) ** 2))
    if dof < 2 or total < SMALL_CONTRADICTION * sum(regression.rows) ** 0.5 * max(inflation, 1.0) ** 2:
        return None
    found = []
    for right in range(dof):
        c, std = _against(t, (right,), dof)
        off = _off(c, std * inflation)
        wrong = tuple(j for j in range(dof) if off[j])
        agree = [j for j in range(dof) if std[j] * inflation < SCALE_KNOWN and not off[j]]
        if wrong:
            found.append((len(agree), -_contradiction(agree, nominal), right, wrong))
    # The nominal model may contradict the set that most joints agree with; the next one is asked then.
    for most in sorted(found, reverse=True):
        scales = _measured(t, most[3], inflation, total)
        if scales is not None and not _denied(scales, nominal):
            rivals = sorted({j for count, doubt, right, wrong in found if count == most[0] and doubt >= most[1] - 0.1
                             for j in wrong if j not in scales.joints})
            return replace(scales, rivals=tuple(rivals))
    return None


def _denied(scales: Scales, nominal: Sequence[float | None] | None) -> bool:
    """Whether the nominal model says of some joint that its torque has quite another scale; files are rough, but not by
    that much."""
    pairs = [(gain, nominal[j]) for j, gain in zip(scales.joints, scales.gains, strict=True)] if nominal else []
    return any(value is not None and (value * gain <= 0 or abs(np.log(value / gain)) > np.log(NOMINAL_DENIES))
               for gain, value in pairs)


def _measured(t: Array, wrong: tuple[int, ...], inflation: float, total: float) -> Scales | None:
    """The scales of some joints, all others right; joints that do not need one are dropped. None where they explain
    too little."""
    dof = t.shape[1]
    while wrong:
        right = tuple(j for j in range(dof) if j not in wrong)
        c, std = _against(t, right, dof)
        left = float(np.sum((t @ c) ** 2))
        each = {}
        for j in wrong:
            without, _ = _against(t, (*right, j), dof)
            each[j] = (float(np.sum((t @ without) ** 2)) - left) / total
        weak = [j for j in wrong if not _off(c, std * inflation)[j]
                or (each[j] < SCALE_NEEDED * max(each.values()) and abs(c[j] - 1.0) < LARGE_SCALE_ERROR)]
        if not weak:
            removed = 1.0 - left / total
            far = np.abs(np.log(np.abs(c[list(wrong)]) + 1e-12)) > np.log(ABSURD_SCALE)
            if removed < SCALES_EXPLAIN or np.any(far):
                return None
            gains = 1.0 / c[list(wrong)]
            return Scales(wrong, tuple(map(float, gains)),
                          tuple(map(float, std[list(wrong)] * inflation * gains ** 2)), float(removed))
        wrong = tuple(j for j in wrong if j != min(weak, key=lambda k: each[k]))
    return None


def _against(t: Array, right: tuple[int, ...], dof: int) -> tuple[Array, Array]:
    """What torques are to be multiplied by (dof,) when those of some joints are right, and deviations (dof,)."""
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
    """Which factors are known and not one (dof,)."""
    return (np.abs(c - 1.0) > np.maximum(SCALE_OFF, SCALE_STANDARD_ERRORS * std)) & (std < SCALE_KNOWN * np.abs(c))


def _contradiction(joints: Sequence[int], nominal: Sequence[float | None] | None) -> float:
    """How far the nominal model says that the torques of joints which are to be right are off, as a factor's
    logarithm."""
    known = [abs(np.log(abs(value))) + (1.0 if value < 0 else 0.0) for j in joints
             if nominal is not None and (value := nominal[j]) is not None and value != 0]
    return float(np.round(np.median(known), 2)) if known else 0.0
