"""Published constrained fits for comparison, all called as fit_x(consistency, base, stacked) -> Fit."""

from dynid.consistency.literature.factors import fit_log_cholesky, fit_virtual
from dynid.consistency.literature.points import fit_box, fit_points, fit_reduced
from dynid.consistency.literature.sqp import fit_sqp

__all__ = ["fit_box", "fit_log_cholesky", "fit_points", "fit_reduced", "fit_sqp", "fit_virtual"]
