"""Estimation while a robot moves: one more sample at a time, at any time an estimate."""

from dynid.estimate.recursive.forgetting import (
    Bounded,
    Directional,
    Evidence,
    Exponential,
    NoForgetting,
    StartUp,
    TowardsPrior,
    Variable,
    VectorForgetting,
)
from dynid.online.online import Online
from dynid.online.verdict import ParameterVerdict

__all__ = ["Bounded", "Directional", "Evidence", "Exponential", "NoForgetting", "Online", "ParameterVerdict",
           "StartUp", "TowardsPrior", "Variable", "VectorForgetting"]
