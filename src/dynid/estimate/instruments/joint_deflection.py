"""Motions of both sides of flexible joints, from those of the motors alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dynid.arrays import Array
from dynid.errors import NotPossibleError
from dynid.estimate.instruments.windows import hann, smooth
from dynid.model import FlexibleModel
from dynid.recording import Samples

# Of bending the links and finding the torque that bends them; each leaves a share K / (K + J w^2) less.
_DEFLECTION_ITERATIONS = 2


def with_joint_deflection(model: FlexibleModel, theta: Array, motions: Sequence[Samples]) -> list[Samples]:
    """Return motions with link positions q = th - tau_l / K, predicted with parameters theta (parameters,).

    tau_l is the torque of the links. The positions are smoothed, since dry friction makes them jump. As instruments
    they are free of the noise of both encoders, and unlike references of the motors they include the joint deflection.
    """
    values = dict(zip(model.parameters.names, model.parameters.vector(theta), strict=True))
    stiffness = np.array([values[f"K{j + 1}"] for j in model.bending])
    if not np.all(stiffness > 0.0):
        name = model.links.joint_names[model.bending[int(np.argmin(stiffness))]]
        raise NotPossibleError(f"{name} shows no stiffness in the log, so its deflection cannot be modelled",
                               "check that motor_position and position belong to the same joints and have the same "
                               "direction",
                               "no-stiffness")
    own = np.array([values[name] for name in model.links.parameters.names])
    return [_bent(model, own, stiffness, motion) for motion in motions]


def _bent(model: FlexibleModel, theta: Array, stiffness: Array, motion: Samples) -> Samples:
    n, bending, window = model.links.dof, list(model.bending), hann(motion.rate)
    links = [np.array(signal[:, :n]) for signal in (motion.q, motion.dq, motion.ddq)]
    for _ in range(_DEFLECTION_ITERATIONS):
        torque = model.links.inverse_dynamics(theta, *links)[:, bending]
        for start, stop in motion.segments:
            rows = slice(int(start), int(stop))
            by = np.column_stack([smooth(torque[rows, k], window) for k in range(len(bending))]) / stiffness
            for signal, link in zip((motion.q, motion.dq, motion.ddq), links, strict=True):
                link[rows, bending] = signal[rows, n:] - by
                by = np.gradient(by, 1.0 / motion.rate, axis=0)
    q, dq, ddq = (np.hstack([link, signal[:, n:]])
                  for link, signal in zip(links, (motion.q, motion.dq, motion.ddq), strict=True))
    return replace(motion, q=q, dq=dq, ddq=ddq)
