"""Published methods for comparison: full parameters from base values, and base parameters in closed form."""

from dynid.extraction import BaseValues, Bounds, Extraction, ExtractionOptions
from dynid.extraction.bounds import robot_bounds
from dynid.extraction.procedure import extract
from dynid.symbolic import base_forms, closed_form_base

__all__ = [
    "BaseValues", "Bounds", "Extraction", "ExtractionOptions", "base_forms", "closed_form_base", "extract",
    "robot_bounds"]
