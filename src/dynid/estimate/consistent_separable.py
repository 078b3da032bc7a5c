"""Method pc-sls: separable least squares constrained to physically consistent parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from dynid.arrays import Array
from dynid.consistency import fit
from dynid.consistency.consistency import MARGIN, InertiaForm
from dynid.estimate.consistent import Fill, inside_the_set, prior_rows, problem_consistency
from dynid.estimate.estimate import Estimate
from dynid.estimate.problem import Problem, method
from dynid.estimate.separable import separable_fit
from dynid.regression import Stacked
from dynid.threads import one_blas_thread


@method("pc-sls", "separable least squares among physically consistent robots, including shape parameters of friction",
        needs={"data", "shape", "torques"}, gives={"shape", "theta"})
def consistent_separable(problem: Problem, *, span: float = 30.0, iterations: int = 30, tolerance: float = 1e-3,
                         form: InertiaForm = "pseudo", margin: float = MARGIN, shapes: bool = False,
                         centres: Mapping[str, Any] | None = None, masses: Sequence[Any] = (),
                         intervals: Mapping[str, Any] | None = None, fill_with: Fill = "auto") -> Estimate:
    """Return weighted least squares over the consistent set, with estimation of the free shape parameters of the model.

    The criterion is the smallest misfit of a consistent robot as a function of the shape (Ardiani, perspectives, and
    eq. 2.23 with the constraints of eq. 1.47). Each Gauss-Newton step is a cone programme in the parameters, from which
    the steps of the shape are eliminated. The constraint that friction dissipates energy is evaluated at the current
    shape.

    Options are those of `sls` and `pc-wls`. The standard errors of the shape neglect that constraints exclude some of
    its values.
    """
    limits: dict[str, Any] = {"form": form, "margin": margin, "shapes": shapes, "centres": centres, "masses": masses,
                              "intervals": intervals}
    with one_blas_thread():
        found = separable_fit(problem, span=span, iterations=iterations, tolerance=tolerance,
                              inside=partial(_inside, limits))
        free = replace(found.free, noise=lambda cov_type: found.noise)
        return inside_the_set(free, "pc-sls", found.regression, found.weights,
                              problem_consistency(free.problem, **limits), fill_with)


def _inside(limits: Mapping[str, Any], problem: Problem, stacked: Stacked) -> Array:
    """Return base parameters (base,) of the consistent robot that fits the weighted equations best."""
    prior = prior_rows(problem, None, stacked)
    return fit(problem_consistency(problem, **limits), problem.base, stacked, prior=prior).beta
