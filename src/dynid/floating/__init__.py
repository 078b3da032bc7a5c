"""Robots with a free base: their logs, contacts, and the four kinds of equations for their identification."""

from dynid.floating.base_signals import FloatingLog, FootWrench, Imu
from dynid.floating.contacts import Contact, contact_jacobian
from dynid.floating.identifiable import floating_base_parameters
from dynid.floating.preparation import FloatingEquations, prepare_floating

__all__ = ["Contact", "FloatingEquations", "FloatingLog", "FootWrench", "Imu", "contact_jacobian",
           "floating_base_parameters", "prepare_floating"]
