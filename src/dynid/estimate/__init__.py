"""Identification methods, one module per family, and the result type `Estimate`.

Methods other than least squares are imported on demand, see `MORE_METHODS`.
"""

from dynid.estimate import choice, least_squares
from dynid.estimate.estimate import Estimate
from dynid.estimate.friction_choice import FrictionChoice, choose_terms
from dynid.estimate.iterations import Iteration
from dynid.estimate.problem import Method, Problem, identify, method, methods
from dynid.estimate.reduction import Essential, Removal, essential

__all__ = ["Essential", "Estimate", "FrictionChoice", "Iteration", "Method", "Problem", "Removal", "choice",
           "choose_terms", "essential", "identify", "least_squares", "method", "methods"]
