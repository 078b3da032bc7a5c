"""What can be identified: terms linear in named parameters, and models as sums of them."""

from dynid.model.closed_forms import DifferentialDrive, Scara
from dynid.model.friction import (
    AsymmetricCoulomb,
    AsymmetricViscous,
    Coulomb,
    CoupledWrist,
    MotorSide,
    Offset,
    Sign,
    Stribeck,
    Viscous,
)
from dynid.model.model import LinearModel, Model, make_terms, term_from_table
from dynid.model.parameters import Parameter, Parameters
from dynid.model.terms import Payload, RigidBodies, RotorInertia, Spring, Term

__all__ = [
    "AsymmetricCoulomb", "AsymmetricViscous", "Coulomb", "CoupledWrist", "DifferentialDrive", "LinearModel", "Model",
    "MotorSide", "Offset", "Parameter", "Parameters", "Payload", "RigidBodies", "RotorInertia", "Scara", "Sign",
    "Spring", "Stribeck", "Term", "Viscous", "make_terms", "term_from_table",
]
