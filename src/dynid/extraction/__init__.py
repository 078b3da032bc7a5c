"""Extraction of standard parameters from base parameters by global search inside bounds."""

from dynid.extraction.bounds import WIDTHS, Bounds, bounds_from_table, load_bounds, robot_bounds
from dynid.extraction.extraction import BaseValues, ConeAnswer, Extraction, violation_reason
from dynid.extraction.procedure import LOSSES, ExtractionOptions, extract
from dynid.extraction.searches import SEARCHES

__all__ = ["LOSSES", "SEARCHES", "WIDTHS", "BaseValues", "Bounds", "ConeAnswer", "Extraction", "ExtractionOptions",
           "bounds_from_table", "extract", "load_bounds", "robot_bounds", "violation_reason"]
