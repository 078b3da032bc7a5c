"""Comparison of simulated with measured motions at the same rows, and rows in which dry friction has no clear sign."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dynid.arrays import Array, Bools
from dynid.estimate.closed_loop.references import Log
from dynid.model import LinearModel
from dynid.recording import Samples
from dynid.signals import at_times
from dynid.simulation import Reference, Simulation, dry_elements

_SLOW_SPEED = 0.01  # share of the top speed below which dry friction has no clear sign
_UNCLEAR_SIGN_WIDTHS = 3.0  # widths of a smooth sign within which it is not clear


def at_samples(samples: Samples, motion: Simulation) -> Samples:
    """Return a simulated motion at the times of measured samples.

    Accelerations are central differences of the velocities, because the torque changes stepwise at each control tick.
    """
    ddq = np.gradient(motion.dq, 1.0 / motion.rate, axis=0)
    place = (samples.t - motion.t[0]) * motion.rate
    whole = np.clip(np.round(place).astype(np.int64), 0, len(motion) - 1)
    if np.all(np.abs(place - whole) < 1e-3):
        q, dq, ddq, tau = motion.q[whole], motion.dq[whole], ddq[whole], motion.tau[whole]
    else:
        q, dq, ddq, tau = (at_times(samples.t, motion.t, x) for x in (motion.q, motion.dq, ddq, motion.tau))
    return replace(samples, q=np.ascontiguousarray(q), dq=np.ascontiguousarray(dq), ddq=np.ascontiguousarray(ddq),
                   tau=np.ascontiguousarray(tau))


def tracking(logs: Sequence[Log], motions: Sequence[Simulation]) -> float:
    """Return the RMS distance between simulated and measured positions, in percent of the measured motion."""
    miss = size = 0.0
    for log, motion in zip(logs, motions, strict=True):
        there = at_samples(log.samples, motion).q
        moved = log.samples.q - log.samples.q.mean(axis=0)
        miss, size = miss + float(np.sum((there - log.samples.q) ** 2)), size + float(np.sum(moved ** 2))
    return 100.0 * float(np.sqrt(miss / size)) if size > 0 else 0.0


def friction_sign_unclear(directions: Array, widths: Array, speeds: Sequence[Array]) -> Bools:
    """Return rows (samples, dof) in which dry friction on a joint has no clear sign in one of the motions with the
    given velocities (samples, dof); directions (elements, dof) and widths (elements,) as in `dry_elements`."""
    out = np.zeros(speeds[0].shape, dtype=bool)
    for dq in speeds:
        for direction, width in zip(directions, widths, strict=True):
            speed = np.abs(dq @ direction)
            slow = speed < max(_SLOW_SPEED * float(speed.max()), _UNCLEAR_SIGN_WIDTHS * float(width))
            out[:, direction != 0.0] |= slow[:, None]
    return out


def friction_elements(model: LinearModel, theta: Array | None, reference: Reference, step: float | None
                      ) -> tuple[Array, Array]:
    """Return directions (elements, dof) and widths (elements,) of dry friction in a simulation with theta; one per
    joint with zero width if theta is None."""
    if theta is None:
        return np.eye(model.dof), np.zeros(model.dof)
    return dry_elements(model, theta, reference, step, steps=False)
