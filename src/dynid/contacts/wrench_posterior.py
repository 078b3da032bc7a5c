"""Bayesian estimate of the wrench at a frame from joint torques, and of the link in contact.

tau = J' F + noise with noise ~ N(0, C) and F ~ N(0, P0) give F ~ N(P J C^-1 tau, P), P = (J C^-1 J' + P0^-1)^-1. In
directions that the posture does not determine, P keeps the prior's standard deviation.
"""

from __future__ import annotations

import numpy as np

from dynid import dynamics
from dynid.arrays import Array
from dynid.robot import Robot


def frame_jacobian(robot: Robot, frame: str, axes: str | None, q: Array) -> Array:
    """Return the Jacobian (m, 6, dof) of a frame's origin, in the axes of another frame, by default the base."""
    found = dynamics.jacobian(robot, frame, q)
    if axes is None:
        return found
    turn = np.swapaxes(dynamics.frame_pose(robot, axes, q)[:, :3, :3], 1, 2)
    return np.concatenate([turn @ found[:, :3], turn @ found[:, 3:]], axis=1)


def posterior(jacobian: Array, tau: Array, covariance: Array, prior: Array) -> tuple[Array, Array]:
    """Return wrenches (m, 6) and their covariances (m, 6, 6) from joint torques (m, dof) with covariances (m, dof,
    dof).

    `prior` (6,) are the standard deviations of the expected wrench.
    """
    weighted = np.linalg.solve(covariance, np.swapaxes(jacobian, 1, 2))
    information = jacobian @ weighted + np.diag(prior ** -2.0)
    # In units of the prior, so that newtons and newton metres do not spoil the inverse.
    scaled = np.linalg.inv(information * np.outer(prior, prior)) * np.outer(prior, prior)
    found = 0.5 * (scaled + np.swapaxes(scaled, 1, 2))
    return (found @ (np.swapaxes(weighted, 1, 2) @ tau[:, :, None]))[:, :, 0], found


def link_evidence(robot: Robot, q: Array, tau: Array, covariance: Array, prior: Array) -> Array:
    """Return the log evidence (m, links) that each moving link is in contact.

    A wrench on a link affects only the joints that carry it: tau ~ N(0, C + J' P0 J), J that of the link's frame.
    """
    found = np.zeros((len(q), robot.dof))
    for i, name in enumerate(robot.body_names):
        jacobian = dynamics.jacobian(robot, name, q)
        spread = covariance + np.swapaxes(jacobian, 1, 2) @ (jacobian * (prior ** 2)[:, None])
        factor = np.linalg.cholesky(spread)
        unit = np.linalg.solve(factor, tau[:, :, None])[:, :, 0]
        log_root = np.sum(np.log(np.diagonal(factor, axis1=1, axis2=2)), axis=1)
        found[:, i] = -0.5 * np.sum(unit ** 2, axis=1) - log_root
    return found
