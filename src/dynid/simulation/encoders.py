"""Encoders of virtual robots: their steps, and those on other joints than the robot's own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.dynamics.following import tree_motion
from dynid.errors import ModelError
from dynid.recording import Recording
from dynid.recording.measured import recording_from_joints
from dynid.robot import Robot
from dynid.simulation.plant import per_joint


def in_counts(x: Array, step: Array) -> Array:
    """Return positions quantised by encoders with these steps; unchanged if a step is zero."""
    return np.where(step > 0, np.where(step > 0, step, 1.0) * np.floor(x / np.where(step > 0, step, 1.0) + 0.5), x)


def recorded_elsewhere(robot: Robot, exact: Recording, encoder: ArrayLike, noise: ArrayLike, seed: int) -> Recording:
    """Return the log of a robot whose measured joints are not its independent ones, from exact positions of these.

    encoder, noise: of the measured joints, rad or m; one number or one each.
    """
    if robot.driven or robot.followers is None or exact.motor_position is not None:
        raise ModelError("a virtual robot whose encoders are on dependent joints must drive its independent joints, "
                         f"{', '.join(robot.joint_names)}, and these must be rigid; remove the other drives")
    tree, count = robot.followers.tree, len(robot.measured)
    places = [tree.joint_index(name) for name in robot.measured]
    true = tree_motion(robot, exact.q).q[:, places]
    spread = np.random.default_rng([seed, 1]).normal(size=true.shape) * per_joint(noise, count, "position noise")
    read = in_counts(true + spread, per_joint(encoder, count, "encoder"))
    made = recording_from_joints(robot, exact.t, read, exact.tau)
    return replace(exact, q=made.q, measured=made.measured, measured_position=made.measured_position,
                   notes=(*exact.notes, *made.notes))
