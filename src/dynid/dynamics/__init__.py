"""Rigid-body dynamics over batches of samples: regressor, inverse and forward dynamics, energies, kinematics."""

from dynid.dynamics.kinematics import Wrench, forward_kinematics, frame_pose, jacobian, wrench_torques
from dynid.dynamics.motion_case import check_motion
from dynid.dynamics.physics import (
    coriolis,
    forward_dynamics,
    gravity,
    inertia_matrix,
    inverse_dynamics,
    kinetic_energy,
    link_wrenches,
    potential_energy,
    regressor,
    regressor_blocks,
    regressor_columns,
    total_momentum,
)
from dynid.dynamics.root_frame import quaternions, root_motion, rotations

__all__ = [
    "Wrench", "check_motion", "coriolis", "forward_dynamics", "forward_kinematics", "frame_pose", "gravity",
    "inertia_matrix", "inverse_dynamics", "jacobian", "kinetic_energy", "link_wrenches",
    "potential_energy", "quaternions", "regressor", "regressor_blocks", "regressor_columns", "root_motion",
    "rotations", "total_momentum", "wrench_torques",
]
