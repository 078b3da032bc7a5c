"""Values of one joint as simulators know them, from an estimate and from an identified drive."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from dynid.errors import ModelError


@dataclass(frozen=True)
class SimulatedJoint:
    """One joint in a simulator: passive values, and its drive where it has one. SI units, on the joint side.

    Attributes:
        name: of the joint.
        armature: reflected rotor inertia, kg m^2 or kg.
        damping: viscous friction, N m s/rad or N s/m.
        frictionloss: Coulomb friction, N m or N.
        stiffness: proportional gain of a position controller, N m/rad or N/m, or None.
        kd: derivative gain, N m s/rad or N s/m, or None.
        ki: integral gain, N m/(rad s) or N/(m s), or None.
        force_limit: largest torque or force of the drive, N m or N; infinite where unknown.
        velocity_limit: no-load speed of the drive, rad/s or m/s; infinite where unknown.
        delay: from command to torque, s.
        torque_constant: torque per current, N m/A or N/A, or None.
        resistance: of the winding, ohm, or None.
    """

    name: str
    armature: float = 0.0
    damping: float = 0.0
    frictionloss: float = 0.0
    stiffness: float | None = None
    kd: float | None = None
    ki: float | None = None
    force_limit: float = np.inf
    velocity_limit: float = np.inf
    delay: float = 0.0
    torque_constant: float | None = None
    resistance: float | None = None

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if one.name == "name" or value is None:
                continue
            endless = one.name in ("force_limit", "velocity_limit")
            if np.isnan(value) or value < 0.0 or (np.isinf(value) and not endless):
                raise ModelError(f"{one.name} of joint '{self.name}' must be a number that is not negative, got "
                                 f"{value:g}", code="wrong-joint-value")

    @property
    def is_driven(self) -> bool:
        """Whether a controller or a motor of this joint is known."""
        return self.stiffness is not None or self.kd is not None or self.resistance is not None

    def with_drive(self, drive: Any) -> SimulatedJoint:
        """Return the joint with the values of a drive: a mapping, or an object with attributes of these names.

        Values that the drive does not give, or gives as None, are not changed.
        """
        given = drive if isinstance(drive, Mapping) else {
            one.name: getattr(drive, one.name) for one in fields(self) if hasattr(drive, one.name)}
        known = {one.name for one in fields(self)} - {"name"}
        for name in given:
            if name not in known and name != "name":
                raise ModelError(f"the drive of joint '{self.name}' has a value '{name}'; known are "
                                 f"{', '.join(sorted(known))}", code="unknown-drive-value")
        try:
            values: dict[str, Any] = {name: float(value) for name, value in given.items()
                                      if name in known and value is not None}
        except (TypeError, ValueError):
            raise ModelError(f"the drive of joint '{self.name}' has a value that is not a number",
                             code="wrong-joint-value") from None
        return replace(self, **values)


def with_drives(joints: tuple[SimulatedJoint, ...], drives: Mapping[str, Any]) -> tuple[SimulatedJoint, ...]:
    """Return the joints with drives by name of their joint.

    Raises:
        ModelError: if a drive names a joint that the robot does not have.
    """
    names = [joint.name for joint in joints]
    for name in drives:
        if name not in names:
            raise ModelError(f"a drive is given for joint '{name}', which the robot does not have; it has "
                             f"{', '.join(names)}", code="unknown-joint")
    return tuple(joint.with_drive(drives[joint.name]) if joint.name in drives else joint for joint in joints)
