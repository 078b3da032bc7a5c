"""Feet and contacts of a robot with a free base: frames, log columns, contact Jacobians and their null space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dynid import dynamics
from dynid.arrays import Array, Bools
from dynid.dynamics.kinematics import frame_jacobians
from dynid.errors import ModelError, RecordingError
from dynid.recording.whole_body import UNITREE_ORDER, column_meaning, leg_in_name, name_words
from dynid.robot import Robot

ContactKind = Literal["point", "line", "sole"]
_CONSTRAINED_DIRECTIONS = {"point": 3, "line": 5, "sole": 6}  # directions of motion that a standing contact excludes
_CONTACT_RANK = 1e-6  # share of the largest singular value of the contact Jacobian: smaller values count as zero
_SMOOTH_BASIS = 1e-4  # smallest eigenvalue with which the rows of the chosen coordinates span the null space
_DIFFERENCE_STEP = 1e-5  # s, step of the central differences for the time derivative of a Jacobian
_FOOT_WORDS = ("sole", "foot", "toe", "contact", "ankle", "calf", "shank")  # in order of preference
LIFTED_SHARE = 0.3  # ratio of the 5th to the 95th percentile of a foot's force, above which the foot never lifts
# Smallest and largest threshold of a contact, as shares of the range from the 5th to the 95th percentile of the force.
# A loaded foot that counts as lifted makes the equations wrong, whereas a lifted foot that counts as standing only
# removes rows. The threshold is therefore close to the noise of an unloaded sensor.
THRESHOLD_SHARES = (0.05, 0.25)
THRESHOLD_NOISE = 5.0  # standard deviations of a sensor's noise above an unloaded foot


@dataclass(frozen=True)
class Contact:
    """A contact point of the robot, which does not move while it touches the ground.

    Attributes:
        frame: named frame of the robot.
        kind: "point" (rotates freely), "line" (rotates about the x axis of its frame) or "sole" (does not rotate).
        radius: radius of a round foot, m, whose centre is the origin of the frame. The contact is below the centre.
    """

    frame: str
    kind: ContactKind = "point"
    radius: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in _CONSTRAINED_DIRECTIONS:
            raise ModelError(f"the kind of contact '{self.frame}' must be point, line or sole, got '{self.kind}'",
                             code="unknown-contact-kind")
        if not 0.0 <= self.radius < 10.0:
            raise ModelError(f"the radius of contact '{self.frame}' must be from 0 to 10 m, got {self.radius} m",
                             code="wrong-contact-radius")


def contact_jacobian(robot: Robot, contact: Contact, q: Array, down: Array | None = None) -> Array:
    """Return the Jacobian (samples, 3, 5 or 6, 6 + n) of the velocities that are zero at an active contact.

    Args:
        robot: a robot with a free base.
        contact: the contact.
        q: positions in the axes of the root (samples, 6 + n), see `dynid.dynamics.root_motion`.
        down: unit vector toward the ground in the axes of the root (samples, 3), for round feet.
    """
    return standing_jacobian(robot, (contact,), q, down)[0]


def _constrained_rows(contact: Contact, pose: Array, jacobian: Array, down: Array | None) -> Array:
    """Return the rows of a frame's Jacobian (samples, 6, columns) whose velocities are zero at an active contact. pose:
    poses of the frame (samples, 4, 4). down: unit vector toward the ground (samples, 3), for round feet."""
    if contact.radius > 0.0:
        if down is None:
            raise ModelError(f"contact '{contact.frame}' is round, so the contact point on the foot depends on the "
                             "orientation of the base", "give the orientation, or a radius of zero",
                             code="no-orientation")
        # The point at r = radius * down moves with v + w x r.
        jacobian[:, :3] -= contact.radius * np.cross(down[:, None],
                                                     jacobian[:, 3:].transpose(0, 2, 1)).transpose(0, 2, 1)
    if contact.kind == "point":
        return jacobian[:, :3]
    if contact.kind == "line":
        turn = pose[:, :3, :3].transpose(0, 2, 1)
        return np.concatenate([jacobian[:, :3], (turn @ jacobian[:, 3:])[:, 1:]], axis=1)
    return jacobian


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
    return _constrained_rows(Contact(contact.frame, contact.kind), place, rate[:, :, None], None)[:, :, 0]


def standing_jacobian(robot: Robot, contacts: Sequence[Contact], q: Array, down: Array | None = None
                      ) -> tuple[Array, list[int]]:
    """Return the stacked Jacobians of all contacts (samples, rows, 6 + n), and the index of each row's contact.
    Positions q and directions down are those of `contact_jacobian`."""
    places = frame_jacobians(robot, [contact.frame for contact in contacts], q)
    parts = [_constrained_rows(contact, *place, down) for contact, place in zip(contacts, places, strict=True)]
    owners = [k for k, part in enumerate(parts) for _ in range(part.shape[1])]
    return (np.concatenate(parts, axis=1) if parts else np.zeros((len(q), 0, robot.dof))), owners


def null_rows(jacobian: Array, owners: Sequence[int], standing: Bools, noise: Array) -> tuple[Array, Bools]:
    """Return matrices that project contact forces out of the equations, and the mask of the remaining rows.

    In coordinates divided by the noise of their equations, the matrix is an orthonormal basis of the null space of the
    active contacts' Jacobian, so the remaining rows have uncorrelated noise of equal variance. In each interval without
    a change of contacts, each basis vector is as near as possible to the axis of one coordinate. The basis is therefore
    smooth in time, and each row has the name of a coordinate.

    Args:
        jacobian: Jacobian of all contacts (samples, rows, coordinates).
        owners: index of the contact of each row.
        standing: mask of active contacts (samples, contacts).
        noise: standard deviation of each coordinate's equation (coordinates,).

    Returns:
        mixing: projection matrices (samples, coordinates, coordinates), zero in removed rows.
        keep: mask of the remaining rows (samples, coordinates).
    """
    from scipy.linalg import qr  # a slow import that only robots with a free base need

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


def find_feet(robot: Robot) -> tuple[str, ...]:
    """Return frames whose names indicate feet, one per leg, in the order of the robot's joints.

    A foot is on a link that carries no joint. Among several frames of one leg, names with "sole" are preferred to
    "foot", "toe", "contact" and "ankle", in this order.
    """
    carrying = {joint.parent for joint in robot.joints}
    best: dict[int, tuple[int, str]] = {}
    places = [(frame.name, frame.body) for frame in robot.frames]
    places += [(body.name, i) for i, body in enumerate(robot.bodies)]
    for name, body in places:
        if body in carrying or body < robot.free_coordinates:
            continue
        words = set(name_words(name))
        ranks = [k for k, word in enumerate(_FOOT_WORDS) if word in words]
        if ranks and (body not in best or ranks[0] < best[body][0]):
            best[body] = (ranks[0], name)
    return tuple(best[body][1] for body in sorted(best))


@dataclass(frozen=True)
class FootColumns:
    """Assignment of the columns of a signal to the feet: names of the feet's frames in the order of the columns, number
    of columns of each foot, and a sentence on the assumed order, or empty."""

    frames: tuple[str, ...]
    width: int
    note: str = ""


def assign_feet(robot: Robot, columns: Sequence[str], given: Sequence[str] | None, signal: str, source: str,
                count: int) -> FootColumns:
    """Return the frames of the feet in the order of the columns of a signal.

    Args:
        robot: the robot.
        columns: names of the columns.
        given: frames in the order of the columns, or None.
        signal: "foot_force" or "contact", for error messages.
        source: name of the log, for error messages.
        count: number of columns.
    """
    feet = tuple(given) if given else find_feet(robot)
    for name in feet:
        robot.frame(name)  # raises for a frame that does not exist
    hint = f"name their frames in the order of the columns with --set 'log.feet=[\"...\"]'; robot '{robot.name}' has " \
           f"the frames {', '.join(frame.name for frame in robot.frames[:16])}"
    if not feet:
        raise RecordingError(f"{source} has {signal}, but no frame of robot '{robot.name}' is named like a foot", hint,
                             code="unknown-feet")
    meanings = [column_meaning(name) for name in columns]
    legs = list(dict.fromkeys(one.leg for one in meanings if one is not None and one.leg))
    if not given and legs and all(one is not None and one.leg for one in meanings):
        own = {leg_in_name(name): name for name in feet}
        missing = [leg for leg in legs if leg not in own]
        if missing:
            raise RecordingError(f"{source}: {signal} has columns of the {' '.join(missing[0])} foot, but the feet of "
                                 f"the robot are {', '.join(feet)}", hint, code="unknown-feet")
        lacking = [name for leg, name in own.items() if leg not in legs]
        if lacking:
            raise RecordingError(f"{source}: {signal} has columns of {len(legs)} feet, but none of "
                                 f"{', '.join(lacking)}, so their forces are unknown", f"map all with --set "
                                 f"'log.{signal}=[...]', or name the feet that touch the ground in the order of the "
                                 "columns with --set 'log.feet=[...]'", code="unknown-feet")
        feet = tuple(own[leg] for leg in legs)
    note = ""
    if not given and not legs:
        own = {leg_in_name(name): name for name in feet}
        numbered = len({one.number for one in meanings if one is not None}) > 1
        if numbered and set(own) == set(UNITREE_ORDER):
            feet = tuple(own[leg] for leg in UNITREE_ORDER)
            note = (f"columns of {signal} are numbered: they are assigned to {', '.join(feet)}, the order of Unitree; "
                    "state another order with --set 'log.feet=[...]'")
        else:
            note = f"columns of {signal} are assigned to {', '.join(feet)} in this order"
    if count % len(feet) or count // len(feet) not in (1, 3, 6):
        raise RecordingError(f"{source}: {signal} has {count} columns for the {len(feet)} feet {', '.join(feet)}; each "
                             "foot needs 1, 3 or 6 columns", hint, code="unknown-feet")
    return FootColumns(feet, count // len(feet), note)


def standing_from_loads(loads: Array, threshold: float | None) -> tuple[Bools, tuple[float, ...]]:
    """Return the mask of standing feet (samples, feet) from their loads (samples, feet), N, and the threshold of each
    foot (feet,), N.

    If none is given, the threshold is above the noise of a lifted foot; a foot whose load is never small always stands.
    """
    if threshold is not None:
        return loads > threshold, (threshold,) * loads.shape[1]
    low, high = np.percentile(loads, [5.0, 95.0], axis=0)
    lifts = low < LIFTED_SHARE * high
    noise = 1.4826 * np.median(np.abs(np.diff(loads, axis=0)), axis=0) / np.sqrt(2.0)
    smallest, largest = (share * (high - low) for share in THRESHOLD_SHARES)
    limits = np.where(lifts, low + np.clip(THRESHOLD_NOISE * noise, smallest, largest), -np.inf)
    return loads > limits, tuple(float(x) for x in limits)
