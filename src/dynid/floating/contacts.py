"""Contacts of a robot with a free base: their places, the Jacobians of standing contacts, and their null space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dynid import dynamics
from dynid.arrays import Array, Bools
from dynid.errors import ModelError
from dynid.robot import Robot

ContactKind = Literal["point", "line", "sole"]
_CONSTRAINED_DIRECTIONS = {"point": 3, "line": 5, "sole": 6}  # directions of motion that a standing contact excludes
_CONTACT_RANK = 1e-6  # singular values of the contacts' Jacobian below that share of the largest are none
_SMOOTH_BASIS = 1e-4  # eigenvalue below which the rows of chosen coordinates no longer span the null space
_DIFFERENCE_STEP = 1e-5  # s, over which the rate of a Jacobian is found by central differences


@dataclass(frozen=True)
class Contact:
    """A place of the robot that does not move while it is in contact.

    Attributes:
        frame: named frame of the robot.
        kind: "point" (rotates freely about its point), "line" (rotates about the x axis of its frame) or "sole" (does
            not rotate).
        radius: radius of a round foot, m, whose centre is the origin of the frame. The contact is below the centre.
    """

    frame: str
    kind: ContactKind = "point"
    radius: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in _CONSTRAINED_DIRECTIONS:
            raise ModelError(f"contact '{self.frame}' has the kind '{self.kind}'; it must be point, line or sole",
                             code="unknown-contact-kind")
        if not 0.0 <= self.radius < 10.0:
            raise ModelError(f"contact '{self.frame}' has the radius {self.radius} m; it must not be negative",
                             code="wrong-contact-radius")


def contact_jacobian(robot: Robot, contact: Contact, q: Array, down: Array | None = None) -> Array:
    """Return the Jacobian (samples, 3, 5 or 6, 6 + n) of the velocities that a standing contact makes zero.

    Args:
        robot: a robot with a free base.
        contact: the contact.
        q: positions in the axes of the root (samples, 6 + n), see `dynid.dynamics.root_motion`.
        down: unit vector toward the ground in the axes of the root (samples, 3), for round feet.
    """
    found = dynamics.jacobian(robot, contact.frame, q)
    if contact.radius > 0.0:
        if down is None:
            raise ModelError(f"contact '{contact.frame}' is round, so its place on the foot depends on the orientation "
                             "of the base", "give the orientation, or a radius of zero", code="no-orientation")
        # The point at r = radius * down moves with v + w x r.
        found[:, :3] -= contact.radius * np.cross(down[:, None], found[:, 3:].transpose(0, 2, 1)).transpose(0, 2, 1)
    if contact.kind == "point":
        return found[:, :3]
    if contact.kind == "line":
        turn = dynamics.frame_pose(robot, contact.frame, q)[:, :3, :3].transpose(0, 2, 1)
        return np.concatenate([found[:, :3], (turn @ found[:, 3:])[:, 1:]], axis=1)
    return found


def contact_bias(robot: Robot, contact: Contact, q: Array, dq: Array) -> Array:
    """Return the acceleration of the constrained directions of a contact (samples, 3, 5 or 6) at zero robot
    acceleration.

    The axes are those of `contact_jacobian` at the instant of the sample. Feet are assumed not round.
    """
    still = dq.copy()
    still[:, :6] = 0.0
    ahead, behind = (dynamics.jacobian(robot, contact.frame, q + sign * _DIFFERENCE_STEP * still) for sign in (1, -1))
    relative = np.einsum("sij,sj->si", dynamics.jacobian(robot, contact.frame, q), still)
    rate = np.einsum("sij,sj->si", (ahead - behind) / (2 * _DIFFERENCE_STEP), still)
    place, turning = dynamics.frame_pose(robot, contact.frame, q), dq[:, 3:6]
    rate[:, :3] += (np.cross(turning, np.cross(turning, place[:, :3, 3])) + 2 * np.cross(turning, relative[:, :3]))
    rate[:, 3:] += np.cross(turning, relative[:, 3:])
    if contact.kind == "point":
        return rate[:, :3]
    if contact.kind == "line":
        turned = np.einsum("sji,sj->si", place[:, :3, :3], rate[:, 3:])
        return np.concatenate([rate[:, :3], turned[:, 1:]], axis=1)
    return rate


def standing_jacobian(robot: Robot, contacts: Sequence[Contact], q: Array, down: Array | None = None
                      ) -> tuple[Array, list[int]]:
    """Return the stacked Jacobians of all contacts (samples, rows, 6 + n), and the contact of each row."""
    parts = [contact_jacobian(robot, contact, q, down) for contact in contacts]
    owners = [k for k, part in enumerate(parts) for _ in range(part.shape[1])]
    return (np.concatenate(parts, axis=1) if parts else np.zeros((len(q), 0, robot.dof))), owners


def null_rows(jacobian: Array, owners: Sequence[int], standing: Bools, noise: Array) -> tuple[Array, Bools]:
    """Return matrices that remove the forces of standing contacts from the equations, and which rows they leave.

    In coordinates divided by the noise of their equations, N is an orthonormal basis of the null space of the standing
    contacts' Jacobian: the rows that remain have uncorrelated noise of equal size. In each interval without a change of
    contacts the basis is the one nearest to some of the coordinates themselves, so that it is smooth in time and each
    row has the name of a coordinate.

    Args:
        jacobian: of all contacts (samples, rows, coordinates).
        owners: the contact of each row.
        standing: which contacts stand (samples, contacts).
        noise: standard deviation of each coordinate's equation (coordinates,).

    Returns:
        mixing: (samples, coordinates, coordinates), zero in rows that do not remain.
        keep: rows that remain (samples, coordinates).
    """
    from scipy.linalg import qr  # loading it takes a tenth of a run, and only robots with a free base need it

    samples, _, n = jacobian.shape
    mixing, keep = np.zeros((samples, n, n)), np.zeros((samples, n), dtype=bool)
    changes = 1 + np.flatnonzero(np.any(standing[1:] != standing[:-1], axis=1))
    for start, stop in zip([0, *changes], [*changes, samples], strict=True):
        rows = [r for r, owner in enumerate(owners) if standing[start, owner]]
        scaled = jacobian[start:stop, rows] / noise
        if not rows:
            mixing[start:stop], keep[start:stop] = np.diag(1.0 / noise), True
            continue
        _, size, right = np.linalg.svd(scaled, full_matrices=False)
        rank = int(np.median(np.sum(size > _CONTACT_RANK * size[:, :1], axis=1)))
        span = right[:, :rank]
        projector = np.eye(n) - span.transpose(0, 2, 1) @ span
        if rank >= n:
            continue
        _, _, order = qr(projector.mean(axis=0), pivoting=True)
        chosen = np.sort(order[:n - rank])
        columns = projector[:, :, chosen]
        value, vector = np.linalg.eigh(columns[:, chosen])
        fine = value[:, 0] > _SMOOTH_BASIS
        root = vector / np.sqrt(np.maximum(value, _SMOOTH_BASIS))[:, None] @ vector.transpose(0, 2, 1)
        basis = (columns @ root).transpose(0, 2, 1) / noise
        mixing[start:stop, chosen], keep[start:stop, chosen] = basis, fine[:, None]
    return mixing, keep
