"""Kinematic checks of active contacts: slipping feet, and drift of the base pose."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array, Bools, true_ranges
from dynid.findings import Finding
from dynid.floating.base_signals import at_nearest
from dynid.floating.contacts import Contact, contact_jacobian
from dynid.floating.preparation import WholeBody
from dynid.recording import Samples

SLIP_SPEED = 0.03  # m/s: largest speed of a standing foot, apart from noise
SLIP_NOISE = 6.0  # speed in units of the median speed of standing feet, above which a foot moves
SLIP_DISTANCE = 0.004  # m: displacement above which a foot counts as slipping
SLIP_BORDER = 0.1  # s at both ends of a contact in which a foot may still move
DRIFT_SPEED = 0.003  # m/s of all standing feet together, above which the pose of the base drifts


@dataclass(frozen=True, eq=False)
class FootSpeeds:
    """Velocities of the contact points relative to the ground (samples, feet, 3), m/s, in the axes of the root, and the
    mask of standing feet (samples, feet); is_absolute: whether the velocity of the base is measured. Otherwise
    velocities are relative to the median of the standing feet."""

    velocity: Array
    standing: Bools
    is_absolute: bool


def foot_speeds(whole: WholeBody, samples: Samples) -> FootSpeeds | None:
    """Return the velocities of the contact points; None without contacts, or if the log does not determine them."""
    log = whole.log
    if log.standing is None or not log.contacts or not np.any(log.standing):
        return None
    standing = at_nearest(log.t, samples.t, log.standing)
    down = -samples.ddq[:, :3] / np.maximum(np.linalg.norm(samples.ddq[:, :3], axis=1, keepdims=True), 1e-9)
    is_absolute = whole.log.base_motion != "imu"
    if not is_absolute and np.mean(standing.sum(axis=1) >= 2) < 0.5:
        return None
    points = [Contact(one.frame, "point", one.radius) for one in log.contacts]
    velocity = np.stack([np.einsum("sij,sj->si", contact_jacobian(whole.robot, one, samples.q, down), samples.dq)
                         for one in points], axis=1)
    if not is_absolute:
        hidden = np.where(standing[:, :, None], velocity, np.nan)
        with np.errstate(all="ignore"):
            middle = np.nanmedian(hidden, axis=1)
        velocity = velocity - np.where(np.isfinite(middle), middle, 0.0)[:, None]
        standing = standing & (standing.sum(axis=1) >= 2)[:, None]
    return FootSpeeds(velocity, standing, is_absolute)


def contact_findings(whole: WholeBody, samples: Samples) -> list[Finding]:
    """Return findings on slipping feet and a drifting base of one log."""
    speeds = foot_speeds(whole, samples)
    if speeds is None:
        return []
    return [*_slips(whole, samples, speeds), *_drift(whole, samples, speeds)]


def _slips(whole: WholeBody, samples: Samples, speeds: FootSpeeds) -> list[Finding]:
    """Return findings on feet that move while they are in contact, away from the ends of their contact."""
    found, border = [], round(SLIP_BORDER * samples.rate)
    size = np.linalg.norm(speeds.velocity, axis=2)
    inner = np.zeros_like(speeds.standing)
    for k in range(size.shape[1]):
        for start, stop in true_ranges(speeds.standing[:, k]):
            inner[start + (border if start else 0):max(start, stop - (border if stop < len(size) else 0)), k] = True
    if not np.any(inner):
        return []
    limit = max(SLIP_SPEED, SLIP_NOISE * float(np.median(size[inner])))
    distances: dict[int, tuple[float, float, float]] = {}
    for k in range(size.shape[1]):
        for start, stop in true_ranges(inner[:, k] & (size[:, k] > limit)):
            moved = float(np.linalg.norm(speeds.velocity[start:stop, k].sum(axis=0))) / samples.rate
            if moved > max(SLIP_DISTANCE, distances.get(k, (0.0,))[0]):
                distances[k] = (moved, float(samples.t[start]), float(samples.t[stop - 1]))
    for k, (moved, begin, end) in distances.items():
        if any(other[0] > 2.0 * moved and begin < other[2] and other[1] < end for other in distances.values()):
            continue  # motion relative to the slipping foot only
        name = whole.log.contacts[k].frame
        found.append(Finding(
            "foot-slips", "problem", "warning", f"Foot '{name}' moves by {1e3 * moved:.0f} mm between {begin:.3g} "
            f"and {end:.3g} s of {samples.source}, although the contact schedule has it in contact: consistent with "
            "slipping. Equations with measured or projected forces remain valid; a base motion from standing feet does "
            "not.", f"foot slips ({name})", logs=(samples.source,),
            evidence={"distance": moved, "start": begin, "stop": end}))
    return found


def _drift(whole: WholeBody, samples: Samples, speeds: FootSpeeds) -> list[Finding]:
    """Return findings on a base pose that drifts relative to standing feet."""
    if not speeds.is_absolute or whole.log.orientation is None:
        return []
    from dynid import dynamics
    nearest = np.clip(np.searchsorted(whole.log.t, samples.t), 0, len(whole.log.t) - 1)
    turns = dynamics.rotations(whole.log.orientation)[nearest]
    world = np.einsum("sij,skj->ski", turns, speeds.velocity)
    each = np.array([np.median(world[speeds.standing[:, k], k], axis=0) for k in range(world.shape[1])
                     if np.sum(speeds.standing[:, k]) > samples.rate])
    if not len(each):
        return []
    common = np.median(each, axis=0)
    if np.linalg.norm(common) < DRIFT_SPEED:
        return []
    x, y, z = common
    return [Finding("base-drifts", "problem", "warning",
                    f"The base of {samples.source} drifts by ({1e3 * x:.1f}, {1e3 * y:.1f}, {1e3 * z:.1f}) mm/s "
                    "relative to all standing feet. A constant drift does not change accelerations, but an "
                    "accelerating drift does: use an IMU with --set floating.base_motion=imu, or motion capture.",
                    "base drifts", logs=(samples.source,),
                    evidence={"speed": float(np.linalg.norm(common)), "x": float(x), "y": float(y), "z": float(z)})]
