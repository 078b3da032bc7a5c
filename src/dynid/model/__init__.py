"""Dynamic models of robots as sums of terms that are linear in named parameters."""

from dynid.model.completion import (
    CompleteModel,
    LinearModel,
    bound,
    complete,
    least_inertia,
    required_robot_model,
    robot_model,
    split_regressor,
)
from dynid.model.data_context import DataContext
from dynid.model.delay import Delay
from dynid.model.differential_drive import DifferentialDrive, MobileBase, Scara
from dynid.model.elements import Bodies, Curve, Dry, Linear, Load, curve
from dynid.model.flexible import FlexibleModel, flexible_joint_model
from dynid.model.friction import (
    AsymmetricCoulomb,
    AsymmetricViscous,
    Coulomb,
    CoupledWrist,
    MotorSide,
    Offset,
    Stribeck,
    Viscous,
)
from dynid.model.friction_curve import FrictionCurve, ViscousDifference
from dynid.model.load_friction import LoadFriction
from dynid.model.lugre_friction import Dahl, Hysteresis, LuGreFriction
from dynid.model.model import Model
from dynid.model.parameters import Kind, Parameter, Parameters
from dynid.model.registry import make_terms, register_term, term_from_table
from dynid.model.shaped_friction import BreakawayFriction, ExponentialStribeck, PolynomialFriction
from dynid.model.sign import Sign
from dynid.model.springs import Cable, Counterbalance, GasSpring, PolynomialSpring, RippleTorque
from dynid.model.temperature import Drift, TemperatureFriction
from dynid.model.term import Term
from dynid.model.terms import Payload, RigidBodies, RotorInertia, Spring, chosen, joint_parameter

__all__ = [
    "AsymmetricCoulomb", "AsymmetricViscous", "Bodies", "BreakawayFriction", "Cable", "CompleteModel", "Coulomb",
    "Counterbalance", "CoupledWrist", "Curve", "Dahl", "DataContext", "Delay", "DifferentialDrive", "Drift", "Dry",
    "ExponentialStribeck", "FlexibleModel", "FrictionCurve", "GasSpring", "Hysteresis", "Kind", "Linear", "LinearModel",
    "Load", "LoadFriction", "LuGreFriction", "MobileBase", "Model", "MotorSide", "Offset", "Parameter", "Parameters",
    "Payload", "PolynomialFriction", "PolynomialSpring", "RigidBodies", "RippleTorque", "RotorInertia", "Scara", "Sign",
    "Spring", "Stribeck", "TemperatureFriction", "Term", "Viscous", "ViscousDifference", "bound", "chosen", "complete",
    "curve", "flexible_joint_model", "joint_parameter", "least_inertia", "make_terms", "register_term",
    "required_robot_model", "robot_model", "split_regressor", "term_from_table"]
