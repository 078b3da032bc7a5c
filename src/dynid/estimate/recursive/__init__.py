"""Recursive identification methods: square-root recursive least squares on a stream, with forgetting."""

from dynid.estimate.recursive import methods
from dynid.estimate.recursive.forgetting import (
    Bounded,
    Directional,
    Evidence,
    Exponential,
    Forgetting,
    NoForgetting,
    StartUp,
    TowardsPrior,
    Variable,
    VectorForgetting,
    parse_forgetting,
)
from dynid.estimate.recursive.recursion import Recursion
from dynid.estimate.recursive.stream import METHODS, Stream, StreamOptions

__all__ = ["METHODS", "Bounded", "Directional", "Evidence", "Exponential", "Forgetting", "NoForgetting", "Recursion",
           "StartUp", "Stream", "StreamOptions", "TowardsPrior", "Variable", "VectorForgetting", "methods",
           "parse_forgetting"]
