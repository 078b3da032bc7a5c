"""Parameters of an actuated joint: names, units, bounds, and the friction models M1 to M6 of BAM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dynid.actuators import columns as c

MAX_TYPICAL_STD = 0.5  # standard error relative to the typical value, below which a parameter is identified
# Standard error relative to the estimate, below which a parameter is identified. With a larger share, poorly determined
# parameters would count as identified when noise makes their estimates large, and intervals would miss the truth.
MAX_RELATIVE_STD = 0.25


@dataclass(frozen=True)
class ActuatorParameter:
    """A parameter of an actuated joint, which may be given or estimated.

    Attributes:
        name: name, such as "armature".
        unit: unit, such as "kg m^2".
        lower, upper: bounds of an estimate, in `unit`.
        typical: typical value. A parameter is identified if its standard error is below half of the typical value, or
            below a quarter of the estimate.
        value: default value, used if the parameter is neither given nor estimated.
    """

    name: str
    unit: str
    lower: float = 0.0
    upper: float = np.inf
    typical: float = 0.0
    value: float = 0.0


MECHANICAL_PARAMETERS = {item.name: item for item in (
    ActuatorParameter("armature", "kg m^2", 1e-7, typical=1e-4),
    ActuatorParameter("viscous", "N m s/rad", typical=1e-3),
    ActuatorParameter("coulomb", "N m", typical=1e-3),
    ActuatorParameter("stribeck", "N m", typical=1e-3),
    ActuatorParameter("stribeck_speed", "rad/s", 1e-2, 20.0, value=0.2),
    ActuatorParameter("stribeck_shape", "", 0.3, 5.0, value=2.0),
    ActuatorParameter("load", "", 0.0, 2.0, typical=0.02),
    ActuatorParameter("stribeck_load", "", 0.0, 2.0, typical=0.02),
    ActuatorParameter("load_motor", "", 0.0, 2.0, typical=0.02),
    ActuatorParameter("load_external", "", 0.0, 2.0, typical=0.02),
    ActuatorParameter("stribeck_load_motor", "", 0.0, 2.0, typical=0.02),
    ActuatorParameter("stribeck_load_external", "", 0.0, 2.0, typical=0.02),
    ActuatorParameter("quadratic_motor", "1/(N m)", 0.0, 10.0, typical=0.02),
    ActuatorParameter("quadratic_external", "1/(N m)", 0.0, 10.0, typical=0.02),
    ActuatorParameter("offset", "N m", -np.inf, typical=1e-2),
    ActuatorParameter("bias", "rad", -0.5, 0.5, typical=0.02),
    ActuatorParameter("backlash", "rad", 0.0, 0.5, typical=5e-3),
    ActuatorParameter("delay", "s", -0.02, 0.5, typical=2e-3),
    ActuatorParameter("start_position", "rad", -np.inf, typical=1e-3),
    ActuatorParameter("start_velocity", "rad/s", -np.inf, typical=2e-2),
    ActuatorParameter("torque_scale", "", 0.05, 20.0, typical=0.05, value=1.0),
    ActuatorParameter("link_scale", "", 0.05, 20.0, typical=0.05, value=1.0),
)}

FRICTION_MODELS: Mapping[str, tuple[str, ...]] = {
    "m1": ("coulomb", "viscous"),
    "m2": ("coulomb", "viscous", "stribeck", "stribeck_speed"),
    "m3": ("coulomb", "viscous", "load"),
    "m4": ("coulomb", "viscous", "stribeck", "stribeck_speed", "load", "stribeck_load"),
    "m5": ("coulomb", "viscous", "stribeck", "stribeck_speed", "load_motor", "load_external", "stribeck_load_motor",
           "stribeck_load_external"),
    "m6": ("coulomb", "viscous", "stribeck", "stribeck_speed", "load_motor", "load_external", "stribeck_load_motor",
           "stribeck_load_external", "quadratic_motor", "quadratic_external"),
}
FRICTION_TITLES = {"m1": "Coulomb and viscous", "m2": "with Stribeck effect", "m3": "with load",
                   "m4": "with load and Stribeck effect", "m5": "different weights of motor and external load",
                   "m6": "quadratic in the load"}
# Parameters that are estimated only if the caller names them.
OPTIONAL_PARAMETERS = (
    "bias", "backlash", "torque_limit", "current_limit", "speed_limit", "link_scale", "stribeck_shape")
_COLUMN_OF = {"armature": c.ARMATURE, "viscous": c.VISCOUS, "coulomb": c.COULOMB, "stribeck": c.STRIBECK,
              "stribeck_speed": c.STRIBECK_SPEED, "stribeck_shape": c.STRIBECK_SHAPE, "load_motor": c.LOAD_MOTOR,
              "load_external": c.LOAD_EXTERNAL, "stribeck_load_motor": c.STRIBECK_LOAD_MOTOR,
              "stribeck_load_external": c.STRIBECK_LOAD_EXTERNAL, "quadratic_motor": c.QUADRATIC_MOTOR,
              "quadratic_external": c.QUADRATIC_EXTERNAL, "offset": c.OFFSET, "bias": c.BIAS, "backlash": c.BACKLASH,
              "delay": c.DELAY}


def mechanical_numbers(values: Mapping[str, float]) -> dict[int, float]:
    """Return the inputs of the compiled simulation of a joint by column, from its mechanical parameters or their
    defaults."""
    found = {column: values.get(name, MECHANICAL_PARAMETERS[name].value) for name, column in _COLUMN_OF.items()}
    for name, pair in (("load", (c.LOAD_MOTOR, c.LOAD_EXTERNAL)),
                       ("stribeck_load", (c.STRIBECK_LOAD_MOTOR, c.STRIBECK_LOAD_EXTERNAL))):
        if name in values:  # M3 and M4 weight motor and external torque equally
            found |= dict.fromkeys(pair, values[name])
    return found
