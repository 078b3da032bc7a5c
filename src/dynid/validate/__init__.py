"""Validation of an estimate: prediction error, residual tests, cross-validation, simulation, excitation, verdict."""

from dynid.validate.comparison import SetComparison, compare, compare_sets
from dynid.validate.conclusion import Verdict, verdict
from dynid.validate.cross_validation import CrossValidation, cross_validate
from dynid.validate.cutoff_influence import CutoffDependence, cutoff_dependence
from dynid.validate.deflection import Deflection, deflections
from dynid.validate.friction_shape import Breakaway, breakaway
from dynid.validate.hypotheses.gravity import Gravity, estimate_gravity
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
from dynid.validate.reconstruction import Reconstruction, reconstruct
from dynid.validate.residual_statistics import JointTests, Whiteness, residual_tests
from dynid.validate.simulation_check import (
    ResimulatedLog,
    SimulationCheck,
    closed_loop,
    simulation_checks,
    torque_driven,
)
from dynid.validate.tracking import Tracking, tracking_errors

__all__ = [
    "Breakaway", "CrossValidation", "CutoffDependence", "Deflection", "FreeFall", "Gravity",
    "JointTests", "LinkPhysics", "Physics", "Reconstruction", "ResimulatedLog", "SetComparison", "SimulationCheck",
    "Tracking", "Verdict", "Whiteness", "WrenchComparison", "breakaway", "closed_loop", "compare",
    "compare_sets", "cross_validate",
    "cutoff_dependence", "deflections", "estimate_gravity", "free_fall", "physics", "positive_inertia_line",
    "positive_inertia_share", "reconstruct", "residual_tests", "simulation_checks", "torque_driven", "tracking_errors",
    "verdict", "wrench_comparison",
]
