"""The methods, one file a family, and Estimate, the one result type."""

from dynid.estimate import least_squares
from dynid.estimate.estimate import Estimate
from dynid.estimate.problem import Problem, identify, method, methods

__all__ = ["Estimate", "Problem", "identify", "least_squares", "method", "methods"]
