"""Other ways to consistent parameters, for comparison, each the same call: other(consistency, base, stacked) -> Fit."""

from dynid.consistency.others.box import fit_box
from dynid.consistency.others.extraction import Bounds, Extraction, extract
from dynid.consistency.others.extraction_bounds import published_bounds
from dynid.consistency.others.factors import fit_log_cholesky, fit_virtual
from dynid.consistency.others.points import fit_points
from dynid.consistency.others.reduction import fit_reduced
from dynid.consistency.others.sqp import fit_sqp

__all__ = ["Bounds", "Extraction", "extract", "fit_box", "fit_log_cholesky", "fit_points", "fit_reduced", "fit_sqp",
           "fit_virtual", "published_bounds"]
