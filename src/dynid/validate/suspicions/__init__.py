"""Suspicions, by subject: small functions from a case to findings with codes.

A new suspicion is a function from a case to findings and an entry in SUSPICIONS of its file; a new subject is a file
in the list below.
"""

from __future__ import annotations

from dynid.findings import Finding
from dynid.validate.suspicions import amount, body, cutoff, gains, known, parameters, residuals, signals, transfer
from dynid.validate.suspicions.case import Case, Stage, Suspicion, of_second_fit
from dynid.validate.suspicions.gains import Refit, with_gains_set_right
from dynid.validate.suspicions.price import without_conditions

__all__ = ["SUSPICIONS", "Case", "Refit", "Suspicion", "suspicious"]

# In the order in which findings are said, stage by stage.
SUSPICIONS: tuple[Suspicion, ...] = (*signals.SUSPICIONS, *gains.SUSPICIONS, *residuals.SUSPICIONS,
                                     *parameters.SUSPICIONS, *known.SUSPICIONS, *amount.SUSPICIONS,
                                     *transfer.SUSPICIONS, *cutoff.SUSPICIONS, *body.SUSPICIONS)


def suspicious(case: Case) -> tuple[list[Finding], Refit | None]:
    """Findings of all suspicions, and the second fit where a drive gain had to be set right.

    Where the data make the fit worthless, only what is wrong with the data is said. Where consistency has a large price
    that is said first, and the fit that is looked at is the one without it.
    """
    found = _look("data", case)
    if any(finding.severity == "fatal" for finding in found):
        return found, None
    priced, free = without_conditions(case)
    wrong, refitted, refit = with_gains_set_right(free)
    return [*priced, *found, *wrong, *_look("fit", refitted), *_look("transfer", case)], refit


def _look(stage: Stage, case: Case) -> list[Finding]:
    found = [finding for suspicion in SUSPICIONS if suspicion.stage == stage for finding in suspicion.look(case)]
    return [of_second_fit(finding, case.estimate.method) for finding in found] if case.is_second_fit else found
