"""Online identification: recursive estimation from a stream of samples."""

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
from dynid.online.change_explanations import Change, Explanation
from dynid.online.events import StreamEvent
from dynid.online.feed import FeedOptions
from dynid.online.online import Online
from dynid.online.verdict import ParameterVerdict

__all__ = ["Bounded", "Change", "Directional", "Evidence", "Explanation", "Exponential", "FeedOptions",
           "NoForgetting", "Online", "ParameterVerdict", "StartUp", "StreamEvent", "TowardsPrior", "Variable",
           "VectorForgetting"]
