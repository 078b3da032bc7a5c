"""Method "extract": full parameters with the base values of another method, by global search within bounds."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from dynid.errors import ModelError
from dynid.estimate.estimate import Estimate
from dynid.estimate.linear import joint_weights
from dynid.estimate.problem import Problem, find_method, method
from dynid.extraction import BaseValues, ExtractionOptions, extract
from dynid.extraction.searches import find_search


@method("extract", "base values of another method, all parameters by global search within bounds", gives={"theta"})
def extracted(problem: Problem, *, of: str = "wls", bounds: str = "normal",
              loss: Literal["full", "partial", "inertia"] = "full", form: Literal["exact", "penalty"] = "exact",
              step: Literal["two", "one"] = "two", search: str = "annealing", nearest: bool = False, runs: int = 20,
              evaluations: int = 20000, seed: int = 0) -> Estimate:
    """Return the estimate of method `of`, completed by full parameters inside bounds with the same base values.

    See Simionato, s. 2.3.

    Args:
        problem: the identification problem.
        of: method that gives the base values.
        bounds: "loose", "normal", "tight" or a bounds file.
        loss, form, step, search, nearest, runs, evaluations, seed: as in `dynid.literature.ExtractionOptions`.
    """
    if of == "extract":
        raise ModelError("method 'extract' needs the base values of another method; name that method, for example "
                         "with the option of = 'wls'")
    first = find_method(of).function(problem)
    stacked = problem.regression.stack(joint_weights(problem.regression)) if step == "one" else None
    found = extract(BaseValues.from_estimate(first, stacked), bounds, ExtractionOptions(
        loss=loss, form=form, step=step, search=find_search(search), nearest=nearest, runs=runs,
        evaluations=evaluations, seed=seed))
    facts = {key: value for key, value in found.to_dict().items() if key != "parameters"}
    return replace(first, method="extract", values=first.base.matrix @ found.theta, theta=found.theta,
                   diagnostics=first.diagnostics.with_facts({"consistent": found.feasible, "extraction": facts,
                                                             "violations": [one.message for one in found.violations],
                                                             "standard_errors": f"of the base values, by {of}"}))
