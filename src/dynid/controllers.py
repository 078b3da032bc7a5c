"""Control laws for simulated robots, and the identification of a controller from a log."""

from dynid.estimate.controller_fit import identify_controller
from dynid.estimate.loop_fit import loop_fits
from dynid.simulation import (
    PD,
    PID,
    Cascade,
    CompensatedPD,
    ComputedTorque,
    Flexible,
    Impedance,
    Poles,
    TaskSpace,
    TorqueDriven,
)

__all__ = [
    "PD",
    "PID",
    "Cascade",
    "CompensatedPD",
    "ComputedTorque",
    "Flexible",
    "Impedance",
    "Poles",
    "TaskSpace",
    "TorqueDriven",
    "identify_controller",
    "loop_fits",
]
