"""MJCF actuator elements for identified drives, one element per joint."""

from __future__ import annotations

import math

import numpy as np

from dynid.escape import xml_attribute
from dynid.estimate.simulators.joint_values import SimulatedJoint

MUJOCO_TIMESTEP = 0.002  # s, of a file that names none


def mujoco_actuator(joint: SimulatedJoint, timestep: float = MUJOCO_TIMESTEP) -> str | None:
    """Return the actuator of a joint as MJCF, or None where no drive is known.

    A motor with known winding is a `dcmotor` that takes a voltage. A controller with an integral gain is a `pid`, one
    without it a `position`, with force = stiffness (command - q) - kd dq.

    Args:
        joint: with its drive.
        timestep: of the simulation, s, which decides how many samples a delay needs.
    """
    if not joint.is_driven:
        return None
    name = xml_attribute(joint.name)
    shared = {"delay": joint.delay, "nsample": math.ceil(joint.delay / timestep) + 1} if joint.delay > 0 else {}
    if joint.resistance is not None and joint.torque_constant is not None:
        saturation = {"saturation": joint.force_limit} if np.isfinite(joint.force_limit) else {}
        return _element("dcmotor", name, {"motorconst": joint.torque_constant, "resistance": joint.resistance,
                                          **saturation, **shared})
    gains = {"kp": joint.stiffness or 0.0, **({"ki": joint.ki} if joint.ki else {}), "kv": joint.kd or 0.0}
    limits = {} if np.isinf(joint.force_limit) else {"forcerange": (-joint.force_limit, joint.force_limit)}
    return _element("pid" if joint.ki else "position", name, {**gains, **limits, **shared})


def _element(tag: str, name: str, values: dict[str, float | int | tuple[float, float]]) -> str:
    said = " ".join(f'{key}="{_text(value)}"' for key, value in values.items())
    return f"<{tag} name={name} joint={name} {said}/>"


def _text(value: float | int | tuple[float, float]) -> str:
    if isinstance(value, tuple):
        return " ".join(map(_text, value))
    return str(value) if isinstance(value, int) else repr(float(value) + 0.0)
