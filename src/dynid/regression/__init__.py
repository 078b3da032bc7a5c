"""The fold of data into triangular factors, base parameters and essential parameters."""

from dynid.regression.base import BaseParameters, base_parameters
from dynid.regression.closed_form import closed_form_base

__all__ = ["BaseParameters", "base_parameters", "closed_form_base"]
