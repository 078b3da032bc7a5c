"""The data for checks of an estimate, and the definition of a check."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.estimate import Estimate, Problem
from dynid.findings import Evidence, Finding, Severity
from dynid.model import complete
from dynid.validate import thresholds
from dynid.validate.cross_validation import CrossValidation
from dynid.validate.cutoff_influence import CutoffDependence
from dynid.validate.excited_parameters import DataExcitation
from dynid.validate.gains import Gain
from dynid.validate.hypotheses.nominal import Sheet, compare_with_nominal
from dynid.validate.hypotheses.trial import Trial, try_out
from dynid.validate.joint_motion import JointMotion
from dynid.validate.physical import Physics
from dynid.validate.reconstruction import Reconstruction
from dynid.validate.residual_statistics import ResidualTests, filter_memory
from dynid.validate.words import inside, sentence


@dataclass(frozen=True, eq=False)
class Case:
    """An estimate with all data for its assessment.

    Attributes:
        problem, estimate: the problem, and the estimate that is checked.
        reconstruction: torque prediction on the data of the identification.
        tests, excitation, gains: residual tests, excited parameters, and torque scales.
        validations: torque predictions on other logs.
        cross: cross-validation over blocks of time, or None.
        physics: physical properties of the parameters, None if not all are given.
        cutoff: influence of the cut-off, or None.
        result: the estimate of the verdict; it differs from `estimate` in a second fit.
    """

    problem: Problem
    estimate: Estimate
    reconstruction: Reconstruction
    tests: ResidualTests
    excitation: DataExcitation
    gains: tuple[Gain, ...]
    validations: tuple[Reconstruction, ...] = ()
    cross: CrossValidation | None = None
    physics: Physics | None = None
    cutoff: CutoffDependence | None = None
    result: Estimate | None = None

    def __post_init__(self) -> None:
        if self.result is None:
            object.__setattr__(self, "result", self.estimate)

    @property
    def is_second_fit(self) -> bool:
        """Whether this is a second fit for diagnosis instead of the result."""
        return self.estimate is not self.result

    @cached_property
    def trial(self) -> Trial:
        """Fit of all joints together to the unchanged data, and of each joint alone, cross-validated over blocks."""
        return try_out(self.problem.regression)

    @cached_property
    def most_independent(self) -> float:
        """Largest possible number of independent equations: those that the filter of the torques leaves independent."""
        logs = self.reconstruction.samples
        independent = sum(len(log.t) / filter_memory(log) for log in logs) / max(sum(len(log.t) for log in logs), 1)
        return independent * sum(self.problem.regression.rows)

    @property
    def is_short(self) -> bool:
        """Whether the equations are so few that the parameters fit almost any torques."""
        return self.most_independent < thresholds.MIN_INDEPENDENT * len(self.problem.base)

    @cached_property
    def sheet(self) -> Sheet | None:
        """Rows of the data with torques of the nominal model, or None."""
        return compare_with_nominal(self.problem)

    @cached_property
    def plain(self) -> Case:
        """The same data fitted with viscous and Coulomb friction, offsets and rotors in place of the model's friction.

        Flexible friction terms can absorb a fault of the data; a hypothesis about a fault is tested without them.
        """
        from dynid.validate.verdict_checks.second_fit import plain_case
        return plain_case(self)

    @property
    def has_free_base(self) -> bool:
        """Whether the robot has a free base, on which forces act that no joint causes."""
        robot = complete(self.problem.model).robot
        return robot is not None and robot.has_free_base

    @property
    def motions(self) -> tuple[JointMotion, ...]:
        """Motion of each joint; empty without samples."""
        return self.excitation.motions

    def at_rest(self, j: int) -> bool:
        """Whether joint j (from 0) never moved."""
        return bool(self.motions) and not self.motions[j].moves

    def torques(self, j: int) -> list[Array]:
        """Measured torque of joint j in each log."""
        return [part.tau[:, j] for part in self.problem.data]


Check = Callable[[Case], Iterable[Finding]]


def suspect(code: str, title: str, about: str, text: str, *, severity: Severity = "warning",
            joints: Sequence[str] = (), parameters: Sequence[str] = (), logs: Sequence[str] = (),
            evidence: Evidence | None = None) -> Finding:
    """Return a finding on a problem. title: two or three words; about: subject of the finding."""
    return Finding(code, "problem", severity, sentence(text), f"{title} ({about})", tuple(joints),
                   tuple(parameters), tuple(logs), evidence or {})


def of_second_fit(finding: Finding, method: str) -> Finding:
    """Return the finding with a statement that its numbers are those of a second fit by a method, not of the result."""
    return replace(finding, text=f"In a second fit by {method}, made only for this test: {inside(finding.text)}",
                   second_fit=True)


def each(values: ArrayLike) -> tuple[float, ...]:
    """Return one number per joint, parameter or log as evidence of a finding."""
    return tuple(float(x) for x in np.atleast_1d(np.asarray(values, dtype=float)))
