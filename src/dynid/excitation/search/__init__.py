"""Search for an optimal exciting motion: criteria, optimisation problem, random starts, and sequential programming."""

from dynid.excitation.search.criteria import CRITERIA, Criterion
from dynid.excitation.search.experiment_design import (
    ExperimentDesign,
    Measurement,
    PriorKnowledge,
    Search,
    design_experiment,
)
from dynid.excitation.search.multistart import MultiStart

__all__ = [
    "CRITERIA", "Criterion", "ExperimentDesign", "Measurement", "MultiStart", "PriorKnowledge", "Search",
    "design_experiment",
]
