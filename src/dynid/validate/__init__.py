"""How good is it: torque reconstruction, residual tests, cross-validation, simulation, excitation, a verdict."""

from dynid.validate.candidates import Follows
from dynid.validate.compare import Comparison, compare
from dynid.validate.cross_validation import CrossValidation, cross_validate
from dynid.validate.excitation import Excitation, Excited, Remedy, excitation
from dynid.validate.gains import Gain, drive_gains
from dynid.validate.motion import JointMotion, joint_motions
from dynid.validate.physical import (
    FreeFall,
    LinkPhysics,
    Physics,
    WrenchComparison,
    free_fall,
    physics,
    positive_inertia_line,
    positive_inertia_share,
    wrench_comparison,
)
from dynid.validate.reconstruct import Fit, Reconstruction, reconstruct
from dynid.validate.residual_tests import JointTests, Normality, ResidualTests, Whiteness, residual_tests
from dynid.validate.simulation import SimulatedLog, SimulationCheck, closed_loop, simulation_checks, torque_driven
from dynid.validate.suspicion import Finding
from dynid.validate.verdict import Verdict, verdict

__all__ = [
    "Comparison", "CrossValidation", "Excitation", "Excited", "Finding", "Fit", "Follows", "FreeFall", "Gain",
    "JointMotion", "JointTests", "LinkPhysics", "Normality", "Physics", "Reconstruction", "Remedy", "ResidualTests",
    "SimulatedLog", "SimulationCheck", "Verdict", "Whiteness", "WrenchComparison", "closed_loop", "compare",
    "cross_validate", "drive_gains", "excitation", "free_fall", "joint_motions", "physics", "positive_inertia_line",
    "positive_inertia_share", "reconstruct", "residual_tests", "simulation_checks", "torque_driven", "verdict",
    "wrench_comparison",
]
