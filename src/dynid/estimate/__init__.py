"""The methods, one file a family, and Estimate, the one result type."""

from dynid.estimate import (
    consistent,
    direct,
    instrumental,
    kalman,
    least_squares,
    likelihood,
    output_error,
    ridge,
    robust,
    separable,
    total,
)
from dynid.estimate.essential import Essential, Removal, essential
from dynid.estimate.estimate import Estimate
from dynid.estimate.problem import Problem, identify, method, methods

__all__ = ["Essential", "Estimate", "Problem", "Removal", "consistent", "direct", "essential", "identify",
           "instrumental", "kalman", "least_squares", "likelihood", "method", "methods", "output_error", "ridge",
           "robust", "separable", "total"]
