"""Checks of the amount of data: too few equations, and nearly collinear columns."""

from __future__ import annotations

from collections.abc import Iterator

from dynid.findings import Finding
from dynid.validate.suspicions.case import Case, Suspicion, suspect
from dynid.validate.thresholds import MAX_CONDITION, MIN_EQUATIONS, MIN_INDEPENDENT


def too_few_samples(case: Case) -> Iterator[Finding]:
    """Report fewer equations, or independent ones, than the base parameters require."""
    rows, base = sum(case.problem.regression.rows), len(case.problem.base)
    effective = sum(case.estimate.uncertainty.facts.get("effective_rows_per_joint", case.problem.regression.rows))
    evidence = {"equations": float(rows), "independent": float(effective), "base_parameters": float(base)}
    if rows < MIN_EQUATIONS * base:
        yield suspect("too-few-samples", "too few samples", "data",
                      f"{rows} equations are few for {base} base parameters: record a longer motion",
                      severity="fatal", evidence=evidence)
    elif effective < MIN_INDEPENDENT * base:
        yield suspect("few-independent-samples", "few independent samples", "data",
                      f"{rows} equations contain the information of only {effective:.0f} "
                      f"independent ones, few for {base} base parameters: record a longer motion", evidence=evidence)


def badly_conditioned(case: Case) -> Iterator[Finding]:
    """Report a regressor with nearly collinear scaled columns."""
    condition = float(case.estimate.diagnostics.get("condition", 0.0))
    if condition > MAX_CONDITION:
        yield suspect("badly-conditioned", "condition number", "data",
                      f"the condition number is {condition:.3g} (columns scaled; below {MAX_CONDITION:g} is good): "
                      "with noise, some parameters cannot be distinguished; use an exciting trajectory (dynid excite)",
                      evidence={"condition": condition})


SUSPICIONS = (Suspicion("data", too_few_samples), Suspicion("fit", badly_conditioned))
