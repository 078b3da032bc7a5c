"""Full parameters from base values by global search: bounds, losses, searches, and results."""

from dynid.extraction.base_values import BaseValues
from dynid.extraction.bounds import Bounds
from dynid.extraction.bounds_file import bounds_from_table, load_bounds
from dynid.extraction.extraction import ConeAnswer, Extraction, reason_of
from dynid.extraction.nominal_bounds import WIDTHS, robot_bounds
from dynid.extraction.procedure import LOSSES, ExtractionOptions, extract
from dynid.extraction.searches import SEARCHES

__all__ = ["LOSSES", "SEARCHES", "WIDTHS", "BaseValues", "Bounds", "ConeAnswer", "Extraction", "ExtractionOptions",
           "bounds_from_table", "extract", "load_bounds", "reason_of", "robot_bounds"]
