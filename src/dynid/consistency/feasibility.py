"""Test given parameters for physical consistency: distance from the consistent set, and a proof of infeasibility."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.consistency.blocks import slack
from dynid.consistency.consistency import Consistency, Violation
from dynid.consistency.interior import interior_point, moved_inside, scales, strongest_conditions
from dynid.consistency.program import solve_program
from dynid.errors import ModelError, NotPossibleError
from dynid.regression import BaseParameters

_MAX_ATTEMPTS = 8
LARGEST_ROBOT = 100.0  # times 1 kg and 0.1 m, for the rounding error of a proof
_REASON_SHARE = 1e-3  # share of the largest multiplier in a proof, above which a condition is a reason
TOLERANCE = 1e-6  # distance, in the parameters' units, below which a vector counts as consistent


@dataclass(frozen=True, eq=False)
class Certificate:
    """Proof that no consistent theta has matrix @ theta == values: a separating hyperplane.

    It consists of `normal` (k,) and a z_i in the cone of each condition F_i theta + g_i: matrix' normal = sum_i F_i'
    z_i. Every consistent theta has normal . (matrix theta) >= -sum_i g_i . z_i, which the values violate by `gap`.
    """

    consistency: Consistency
    matrix: Array
    values: Array
    normal: Array
    duals: tuple[Array, ...]

    @property
    def gap(self) -> float:
        """Distance of the values from the separating hyperplane, a lower bound of their distance from the consistent
        set; minus infinity for a zero normal."""
        reach = sum(float(block.offset @ z) for block, z in zip(self.consistency.blocks, self.duals, strict=True))
        size = float(np.linalg.norm(self.normal))
        return -(float(self.normal @ self.values) + reach) / size if size > 0 else -np.inf

    def error(self) -> float:
        """Return the largest gap of the proof that rounding errors could cause, for robots up to `LARGEST_ROBOT`."""
        blocks = self.consistency.blocks
        balance = self.matrix.T @ self.normal
        for block, z in zip(blocks, self.duals, strict=True):
            balance[block.columns] -= block.rows.T @ z
        scale = scales(self.consistency)
        slip = float(np.abs(balance * scale).sum())
        # A multiplier may be outside its cone by rounding.
        for block, z in zip(blocks, self.duals, strict=True):
            if block.cone != "zero":
                slip += max(0.0, -slack(block.cone, z / block.balance)) * len(z)
        return slip * LARGEST_ROBOT / float(np.linalg.norm(self.normal))

    def verify(self) -> bool:
        """Return whether the gap of the proof exceeds rounding errors, for robots up to `LARGEST_ROBOT`."""
        return bool(np.isfinite(self.gap) and self.gap > self.error())

    @property
    def reasons(self) -> tuple[str, ...]:
        """Names of the physical conditions that the proof of infeasibility uses, the strongest first."""
        return strongest_conditions(self.consistency, self.duals, _REASON_SHARE)


@dataclass(frozen=True, eq=False)
class Feasibility:
    """Result of a test of parameters for physical consistency.

    Attributes:
        possible: whether the parameters are consistent.
        distance: Euclidean distance from the nearest consistent values.
        nearest: the nearest consistent values, base or full parameters as given.
        theta: the nearest consistent full parameters (parameters,).
        certificate: the proof of infeasibility, or None.
        violations: conditions that a full vector violates.
        virtual: whether the full vector is inconsistent, but one with the same torques is consistent (Sousa, s. 3.6).
    """

    possible: bool
    distance: float
    nearest: Array
    theta: Array
    certificate: Certificate | None
    violations: tuple[Violation, ...] = ()
    virtual: bool = False

    @property
    def reasons(self) -> tuple[str, ...]:
        """Sentences on why the parameters are inconsistent: violated conditions, or those of the certificate."""
        if self.possible:
            return ()
        if self.violations:
            return tuple(violation.message for violation in self.violations)
        return self.certificate.reasons if self.certificate else ()


def nearest(consistency: Consistency, values: ArrayLike, base: BaseParameters | None = None, *,
            tolerance: float = TOLERANCE) -> Feasibility:
    """Return the physically consistent parameters that are nearest to given base or standard parameters.

    The distance is measured in base parameters (Sousa, eq. 3.40) or, without a base, in full parameters (eq. 3.56).
    """
    matrix, given = _space(consistency, values, base)
    theta, proof = _closest(consistency, matrix, given)
    distance = float(np.linalg.norm(matrix @ theta - given))
    possible = distance <= tolerance
    return Feasibility(possible, distance, matrix @ theta, theta, None if possible else proof,
                       () if possible or base is not None else consistency.violations(given))


def test(consistency: Consistency, values: ArrayLike, base: BaseParameters | None = None, *,
         tolerance: float = TOLERANCE) -> Feasibility:
    """Test whether base parameters (Sousa, eq. 3.35), or standard ones if `base` is None, are consistent.

    For full parameters and a base, the test is whether a consistent robot with the same torques exists (eq. 3.55);
    `virtual` is True if it exists although the given parameters are inconsistent.
    """
    vector = np.asarray(values, dtype=float)
    if base is not None and vector.shape == (len(consistency.parameters),) != (len(base),):
        theta = consistency.parameters.vector(vector)
        found = nearest(consistency, base.reduce(theta), base, tolerance=tolerance)
        wrong = consistency.violations(theta, tolerance)
        return replace(found, violations=wrong, virtual=found.possible and bool(wrong))
    return nearest(consistency, values, base, tolerance=tolerance)


def _space(consistency: Consistency, values: ArrayLike, base: BaseParameters | None) -> tuple[Array, Array]:
    if base is None:
        return np.eye(len(consistency.parameters)), consistency.parameters.vector(values)
    given = np.ascontiguousarray(values, dtype=float)
    if given.shape != (len(base),) or not np.isfinite(given).all():
        raise ModelError(f"there are {len(base)} base parameters, got values of shape {given.shape}"
                         + ("" if np.isfinite(given).all() else " that are not all finite"))
    return base.matrix, given


def _closest(consistency: Consistency, matrix: Array, given: Array) -> tuple[Array, Certificate]:
    """Return the nearest consistent theta (parameters,) and the proof of its distance. The problem is solved
    repeatedly, scaled by the last distance, so that small distances are accurate."""
    scale = scales(consistency)
    floor = 1e-8 * max(1.0, float(np.linalg.norm(given)))
    size = max(0.1, 0.01 * float(np.linalg.norm(given)))
    best: tuple[float, Array] | None = None
    proofs: list[Certificate] = []
    regularisation = 1e-12
    for _ in range(_MAX_ATTEMPTS):
        solution = solve_program(consistency.blocks, matrix, given, scale, size=size,
                               settings={"static_regularization_constant": regularisation})
        if not solution.solved:
            if best is None:
                interior_point(consistency)  # raises an error that names contradicting conditions, if there are any
            # With more regularisation of its equations the solver is more robust if they are nearly singular.
            regularisation *= 100.0
            continue
        theta, _ = moved_inside(consistency, solution.theta)
        distance = float(np.linalg.norm(matrix @ theta - given))
        if best is None or distance < best[0]:
            best = (distance, theta)
        # Normal and multipliers must be of the same solution.
        proofs.append(Certificate(consistency, matrix, given, matrix @ solution.theta - given, solution.duals))
        near = best[0] >= 0.5 * size
        if best[0] <= floor or (near and proofs[-1].verify()):
            break
        size = best[0] if near else max(best[0], size / 30.0)
    if best is None:
        raise NotPossibleError("the nearest physically consistent parameters could not be computed; check for limits "
                               "or values in units other than kilograms and metres")
    return best[1], max(proofs, key=lambda proof: proof.gap - proof.error() if np.isfinite(proof.gap) else -np.inf)
