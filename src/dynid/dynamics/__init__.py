"""The physics kernels over batches of samples: regressor, inverse and forward dynamics, energies, kinematics."""

from dynid.dynamics.physics import (
    check_motion,
    coriolis,
    forward_dynamics,
    forward_kinematics,
    frame_pose,
    gravity,
    inertia_matrix,
    inverse_dynamics,
    jacobian,
    kinetic_energy,
    link_wrenches,
    potential_energy,
    regressor,
    regressor_columns,
    wrench_torques,
)
from dynid.dynamics.wrench import Wrench

__all__ = [
    "Wrench", "check_motion", "coriolis", "forward_dynamics", "forward_kinematics", "frame_pose", "gravity",
    "inertia_matrix", "inverse_dynamics", "jacobian", "kinetic_energy", "link_wrenches", "potential_energy",
    "regressor", "regressor_columns", "wrench_torques",
]
