"""The fold of data into triangular factors, base parameters and essential parameters."""

from dynid.regression.base import BaseParameters, base_parameters
from dynid.regression.closed_form import closed_form_base
from dynid.regression.fold import Factor, Regression, Stacked, fold

__all__ = ["BaseParameters", "Factor", "Regression", "Stacked", "base_parameters", "closed_form_base", "fold"]
