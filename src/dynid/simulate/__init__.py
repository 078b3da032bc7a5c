"""Closed-loop simulation: controllers, integrators, and the virtual robot with noise and encoders."""

from dynid.simulate.controllers import (
    PD,
    PID,
    Cascade,
    ComputedTorque,
    Controller,
    Poles,
    TorqueDriven,
    controller_from_table,
)
from dynid.simulate.plant import Flexible, LuGre, Ripple
from dynid.simulate.reference import Reference
from dynid.simulate.simulation import (
    Simulation,
    dry_elements,
    inertia_matrices,
    joint_inertia,
    simulate,
    simulate_many,
)
from dynid.simulate.virtual import VirtualRobot

__all__ = [
    "PD", "PID", "Cascade", "ComputedTorque", "Controller", "Flexible", "LuGre", "Poles", "Reference", "Ripple",
    "Simulation", "TorqueDriven", "VirtualRobot", "controller_from_table", "dry_elements", "inertia_matrices",
    "joint_inertia", "simulate", "simulate_many",
]
