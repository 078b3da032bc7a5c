"""Legs of a robot with a free base whose feet have given places: inverse kinematics and rates of the leg joints."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynid.arrays import Array, Ints
from dynid.dynamics.kinematics import frame_jacobians
from dynid.floating.contacts import Contact, contact_bias, contact_jacobian
from dynid.floating.rotation_vectors import rotation_errors
from dynid.robot import FREE_COORDINATES as SIX
from dynid.robot import Robot

INVERSE_STEPS = 30  # of Newton's method from the posture to a sample
FOOT_TOLERANCE = 1e-10  # m or rad by which feet may be off their places
_MAX_JOINT_STEP = 0.3  # rad or m of a leg joint in one step of Newton's method
_STEP_DAMPING = 1e-14  # m^2 or rad^2 added to J J', so that singular legs give a step and not an error


def fixed_feet(contacts: Sequence[Contact]) -> list[Contact]:
    """Return the contacts as points or soles: a line stands as a sole, and a round foot as the point at its centre."""
    return [Contact(contact.frame, "point" if contact.kind == "point" else "sole") for contact in contacts]


def leg_joints(robot: Robot, contacts: Sequence[Contact]) -> Ints:
    """Return the coordinates of the joints between the base and the contacts, in ascending order."""
    bodies = [robot.frame(contact.frame).body for contact in contacts]
    held = np.asarray(np.any(robot.supports[:, bodies], axis=1))
    held[:SIX] = False
    return np.flatnonzero(held)


def solve_rows(jacobian: Array, right: Array) -> Array:
    """Return the smallest x (samples, columns[, k]) with jacobian x = right, for jacobians (samples, rows, columns)."""
    turned = jacobian.transpose(0, 2, 1)
    square = jacobian @ turned + _STEP_DAMPING * np.eye(jacobian.shape[1])
    columns = right if right.ndim == 3 else right[:, :, None]
    found = np.asarray(turned @ np.linalg.solve(square, columns))
    return found if right.ndim == 3 else found[:, :, 0]


def reach_places(robot: Robot, contacts: Sequence[Contact], targets: Sequence[Array], q: Array, legs: Ints
                 ) -> tuple[Array, Array]:
    """Return configurations (samples, 7 + n) whose feet are at their places, and the largest error (samples,), m or
    rad.

    Args:
        robot: a robot with a free base.
        contacts: feet, points or soles.
        targets: pose of each foot in the world, (4, 4) or (samples, 4, 4).
        q: configurations to start from (samples, 7 + n), near the solution.
        legs: coordinates of the joints that move, see `leg_joints`.
    """
    q = q.copy()
    for _ in range(INVERSE_STEPS):
        wrong, rates = [], []
        feet = frame_jacobians(robot, [contact.frame for contact in contacts], q)
        for contact, target, (here, jacobian) in zip(contacts, targets, feet, strict=True):
            aim = np.broadcast_to(target, here.shape)
            error = np.hstack([aim[:, :3, 3] - here[:, :3, 3], rotation_errors(aim[:, :3, :3], here[:, :3, :3])])
            used = 3 if contact.kind == "point" else SIX
            wrong.append(error[:, :used])
            rates.append(jacobian[:, :used, legs])
        error = np.hstack(wrong)
        off = np.abs(error).max(axis=1)
        if off.max() < FOOT_TOLERANCE:
            break
        q[:, legs + 1] += np.clip(solve_rows(np.concatenate(rates, axis=1), error), -_MAX_JOINT_STEP, _MAX_JOINT_STEP)
    return q, off


def leg_rates(robot: Robot, feet: Sequence[Contact], q: Array, v: Array, a: Array, legs: Ints,
              foot_rates: tuple[Array, Array] | None = None) -> tuple[Array, Array]:
    """Return velocities and accelerations (samples, 6 + n) whose leg joints follow from the feet.

    Args:
        robot: a robot with a free base.
        feet: points or soles, see `fixed_feet`.
        q: configurations (samples, 7 + n).
        v: velocities (samples, 6 + n), those of the legs zero.
        a: accelerations (samples, 6 + n), those of the legs zero.
        legs: coordinates of the leg joints.
        foot_rates: velocities and accelerations of the feet in the axes of the root (samples, rows); default: they
            stand still.
    """
    v, a = v.copy(), a.copy()
    reduced = np.hstack([np.zeros((len(q), SIX)), q[:, 7:]])
    jacobian = np.concatenate([contact_jacobian(robot, foot, reduced) for foot in feet], axis=1)
    velocity, acceleration = foot_rates or (np.zeros(jacobian.shape[:2]), np.zeros(jacobian.shape[:2]))
    own = jacobian[:, :, legs]
    v[:, legs] = solve_rows(own, velocity - np.einsum("sij,sj->si", jacobian, v))
    bias = np.hstack([contact_bias(robot, foot, reduced, v) for foot in feet])
    classical = a.copy()
    classical[:, :3] += np.cross(v[:, 3:SIX], v[:, :3])
    a[:, legs] = solve_rows(own, acceleration - bias - np.einsum("sij,sj->si", jacobian, classical))
    return v, a
