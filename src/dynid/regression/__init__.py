"""Equations, their compression into triangular factors, base parameters, and the autocorrelation of residuals."""

from dynid.regression.base import BaseParameters, base_parameters
from dynid.regression.compression import fold
from dynid.regression.equations import Equations, TorqueEquations
from dynid.regression.factor import Factor, Stacked
from dynid.regression.filtered import FilteredEquations, prepared_equations
from dynid.regression.known import Known
from dynid.regression.regression import Block, Regression, Span

__all__ = [
    "BaseParameters", "Block", "Equations", "Factor", "FilteredEquations", "Known", "Regression", "Span", "Stacked",
    "TorqueEquations", "base_parameters", "fold", "prepared_equations",
]
