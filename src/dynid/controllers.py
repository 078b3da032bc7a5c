"""Control laws for simulated robots, and the identification of a controller from a log."""

from dynid.estimate.loop_fit import fit_loops, identify_controller
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
    "PD", "PID", "Cascade", "CompensatedPD", "ComputedTorque", "Flexible", "Impedance", "Poles", "TaskSpace",
    "TorqueDriven", "fit_loops", "identify_controller"]
