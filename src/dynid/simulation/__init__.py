"""Closed-loop simulation: controllers, integrators, and the virtual robot with noise and encoders."""

from dynid.recording.measured import add_motor_side
from dynid.simulation.controllers import (
    PD,
    PID,
    Cascade,
    CompensatedPD,
    ComputedTorque,
    ControlLaw,
    Controller,
    Poles,
    TorqueDriven,
    control_law,
    controller_from_table,
)
from dynid.simulation.floating import FreeMotion, simulate_floating
from dynid.simulation.plant import Flexible, LuGre, Ripple
from dynid.simulation.reference import Reference
from dynid.simulation.simulation import (
    Simulation,
    dry_elements,
    joint_inertia,
    simulate,
    simulate_many,
)
from dynid.simulation.task_space import Impedance, TaskSpace
from dynid.simulation.virtual import VirtualRobot

__all__ = [
    "PD", "PID", "Cascade", "CompensatedPD", "ComputedTorque", "ControlLaw", "Controller", "Flexible", "FreeMotion",
    "Impedance", "LuGre", "Poles", "Reference", "Ripple", "Simulation", "TaskSpace", "TorqueDriven", "VirtualRobot",
    "add_motor_side", "control_law", "controller_from_table", "dry_elements", "joint_inertia", "simulate",
    "simulate_floating", "simulate_many",
]
