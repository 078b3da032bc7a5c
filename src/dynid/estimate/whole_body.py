"""Identification of a robot with a free base: one call from logs to an estimate, for each kind of equations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynid.estimate.estimate import Estimate
from dynid.estimate.imu_errors import with_imu_errors
from dynid.estimate.problem import KnownValues, Problem, identify
from dynid.floating import FloatingEquations, FloatingLog, floating_base_parameters, prepare_floating
from dynid.floating.facts import Facts, symmetry, total_mass
from dynid.floating.noise import equation_noise
from dynid.floating.preparation import DEFAULT_GUARD, WholeBody
from dynid.model import Model
from dynid.regression.known import Prior


@dataclass(frozen=True, eq=False)
class WholeBodyEstimate:
    """An estimate of a robot with a free base.

    Attributes:
        estimate: the parameters.
        problem: the equations it was computed from.
        equations: kind of the equations.
        identifiable: number of base parameters that these equations can identify with sufficient excitation.
        of_whole_robot: number of base parameters of the whole robot.
        noise: standard deviations of the equations (6 + n,) by which projected rows were whitened, or None.
    """

    estimate: Estimate
    problem: Problem
    equations: FloatingEquations
    identifiable: int
    of_whole_robot: int
    noise: np.ndarray | None = None

    def statement(self) -> str:
        """Sentence that states how many parameters the equations can identify."""
        return (f"Equations '{self.equations}' can identify {self.identifiable} of the {self.of_whole_robot} base "
                "parameters of the whole robot.")


def identify_floating(model: Model, logs: FloatingLog | Sequence[FloatingLog], equations: FloatingEquations,
                      method: str = "wls", *, mass: tuple[float, float] | None = None,
                      mirrored: bool | Mapping[str, str] = False, mirror_std: float = 0.01,
                      known: KnownValues | None = None, blocks: int = 10, prepare: Mapping[str, Any] | None = None,
                      **options: Any) -> WholeBodyEstimate:
    """Identify a robot with a free base from its logs.

    Args:
        model: model of a robot with a free base.
        logs: one log or several.
        equations: "wrenches", "base", "projected" or "flight", see `dynid.floating.prepare_floating`.
        method: name of a method, as `dynid.identify` takes it. "ridge" and "pc-ridge" regularise toward the nominal
            values of the robot file (CAD).
        mass: total mass of the robot and its standard deviation, kg, as from a scale.
        mirrored: whether left and right links are alike, or the pairs {left: right}.
        mirror_std: relative standard deviation of the difference between left and right.
        known: standard parameters whose values are known.
        blocks: number of blocks of time for cross-validation.
        prepare: options of `dynid.prepare`, such as {"cutoff": 8.0}.
        options: of the method.

    Projected equations are fitted twice: the residuals of the first fit give the noise of each coordinate, by which
    the second one whitens its rows.
    """
    every = (logs,) if isinstance(logs, FloatingLog) else tuple(logs)
    robot, chosen = model.robot, dict(prepare or {})
    schedules = sorted({tuple(map(bool, row)) for log in every if log.standing is not None
                        for row in np.unique(log.standing, axis=0)})
    kind = equations
    if equations == "flight" and any(log.wrenches for log in every):  # a sensor measures all that holds the robot
        kind = "wrenches" if any(log.tau is not None for log in every) else "base"
    base = floating_base_parameters(model, kind, contacts=every[0].contacts,
                                    schedules=schedules if equations == "projected" else ())
    whole = len(floating_base_parameters(model, "wrenches")) if equations != "wrenches" else len(base)
    facts = [total_mass(model, *mass)] if mass is not None else []
    if mirrored is not False:
        facts.append(symmetry(model, None if mirrored is True else mirrored, std=mirror_std))

    def problem_of(noise: np.ndarray | None) -> Problem:
        samples = [prepare_floating(robot, log, equations, noise=noise, **chosen) for log in every]
        found = Problem.of(model, samples, base=base, known=known, blocks=blocks)
        return with_facts(found, facts)

    problem, noise = problem_of(None), None
    if equations == "projected":
        first = identify(problem, method="ols")
        noise = equation_noise(problem.equations, first.values)
        problem = problem_of(noise)
    estimate = identify(problem, method=method, **options)
    bodies = [WholeBody(robot, log, equations, noise, DEFAULT_GUARD, 0) for log in every]
    estimate = with_imu_errors(estimate, problem, bodies)
    return WholeBodyEstimate(estimate, problem, equations, len(base), whole, noise)


def with_facts(problem: Problem, facts: Sequence[Facts]) -> Problem:
    """Return the problem with additional linear equations of standard parameters."""
    if not facts:
        return problem
    matrix, values = np.vstack([one[0] for one in facts]), np.concatenate([one[1] for one in facts])
    known = problem.base.known_vector
    prior = Prior.of_facts(problem.base, matrix, values - matrix @ known)
    before = problem.regression.prior
    return replace(problem, regression=replace(problem.regression,
                                               prior=prior if before is None else before.and_also(prior)))
