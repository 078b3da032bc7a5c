"""Runs whose direction of gravity is estimated from their own logs."""

from __future__ import annotations

from dataclasses import replace

from dynid.estimate import Problem
from dynid.robot import Robot
from dynid.runs.models import make_model
from dynid.runs.settings import RunSettings
from dynid.validate.hypotheses.gravity import Gravity, estimate_gravity


def with_estimated_gravity(settings: RunSettings, robot: Robot, problem: Problem
                           ) -> tuple[RunSettings, Robot, Problem, Gravity]:
    """A run that asks for it with the gravity that its logs show: settings that name it, the robot so mounted, the logs
    folded anew, and what was found."""
    found = estimate_gravity(problem.torques)
    x, y, z = (float(value) for value in found.vector)
    settings = settings.model_copy(update={"gravity": (x, y, z)})
    robot = robot.with_gravity((x, y, z))
    folded = Problem.of(make_model(settings, robot), problem.data, known=settings.known, blocks=settings.blocks,
                        recordings=problem.recordings, controller=problem.controller, threads=problem.threads)
    return settings, robot, replace(folded, progress=problem.progress), found


def gravity_note(found: Gravity) -> str:
    """What was found, in a sentence."""
    x, y, z = found.vector
    return (f"gravity was estimated from the logs: ({x:.3f}, {y:.3f}, {z:.3f}) m/s^2 in the base frame, "
            f"{found.angle:.1f} degrees from the robot's own, its direction known to +- {max(found.std):.2g} degrees")
