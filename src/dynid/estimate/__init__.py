"""The methods, one file a family, and Estimate, the one result type."""

from dynid.estimate import (
    choice,
    consistent,
    consistent_literature,
    consistent_ridge,
    consistent_robust,
    direct,
    extracted,
    instrumental,
    kalman,
    least_squares,
    likelihood,
    output_error,
    recursive,
    ridge,
    robust,
    separable,
    total,
)
from dynid.estimate.essential import Essential, essential
from dynid.estimate.essential_rules import Removal
from dynid.estimate.estimate import Estimate
from dynid.estimate.friction_choice import FrictionChoice, choose_terms
from dynid.estimate.problem import Method, Problem, identify, method, methods

__all__ = ["Essential", "Estimate", "FrictionChoice", "Method", "Problem", "Removal", "choice", "choose_terms",
           "consistent", "consistent_literature", "consistent_ridge", "consistent_robust", "direct", "essential",
           "extracted", "identify", "instrumental", "kalman", "least_squares", "likelihood", "method", "methods",
           "output_error", "recursive", "ridge", "robust", "separable", "total"]
