"""Checks for problems, by subject: functions from an estimate with its evidence (`Case`) to findings with codes.

A new check is a function in SUSPICIONS of its module; a new subject is a module in the list below.
"""

from __future__ import annotations

import numpy as np

from dynid.findings import Finding
from dynid.validate.suspicions import compensated, cutoff, known, parameters, residuals, signals, transfer
from dynid.validate.suspicions.case import Case, Stage, Suspicion, of_second_fit
from dynid.validate.suspicions.causes import Explained, Refit, accepted, explained
from dynid.validate.suspicions.second_fit import unconstrained_case
from dynid.validate.thresholds import SECOND_FAULT_TORQUE

__all__ = ["SUSPICIONS", "Case", "Explained", "Refit", "Suspicion", "suspicious"]

# In the order of the findings, stage by stage.
SUSPICIONS: tuple[Suspicion, ...] = (*signals.SUSPICIONS, *compensated.SUSPICIONS, *residuals.SUSPICIONS,
                                     *parameters.SUSPICIONS, *known.SUSPICIONS, *signals.AMOUNT_SUSPICIONS,
                                     *transfer.SUSPICIONS, *cutoff.SUSPICIONS, *parameters.ROBOT_SUSPICIONS)
_NO_FAULT_OF_DATA = {"joint-at-rest", "payload"}  # they have no effect on the residuals
# Friction and rotors that were chosen on data with a fault may lack a term that the corrected data need.
_LEFT_BEHIND = {"residuals-autocorrelated", "residual-outliers", "low-r2", "residual-follows-offset",
                "residual-follows-velocity", "residual-follows-velocity-sign", "residual-follows-acceleration"}
_FOLLOWED_PREFIX = "residual-follows-"
_FEW_ROWS = "few-independent-samples"  # parameters then absorb the structure of residuals
_EXPLAINS_CUTOFF = {"overfit"}  # on other logs: poorly excited parameters change with the cut-off too


def suspicious(case: Case) -> tuple[list[Finding], Explained]:
    """Return the findings of all checks, and the causes that explain the data.

    If the data make the fit worthless, only faults of the data are reported. A large loss of accuracy by physical
    consistency is reported first, and the unconstrained fit is checked. Otherwise a fit with causes corrected is
    checked.
    """
    if case.has_free_base:  # faults of such logs are checked by `whole_body_faults`
        return [finding for suspicion in (Suspicion("data", signals.joints_at_rest), *known.SUSPICIONS,
                                          *cutoff.SUSPICIONS, *parameters.ROBOT_SUSPICIONS)
                for finding in suspicion.look(case)], Explained((), case)
    found = _look("data", case)
    if any(finding.severity == "fatal" for finding in found):
        return found, Explained((), case)
    priced, free = unconstrained_case(case)
    cause = accepted(explained(free.plain), free)
    fit = [] if cause.done else _look("fit", cause.case)
    reported = {finding.code for finding in (*found, *cause.findings)} - _NO_FAULT_OF_DATA
    if reported:  # consequences of a fault are not separate causes
        fit = [finding for finding in fit if finding.code not in reported | _LEFT_BEHIND
               and not (finding.code.startswith(_FOLLOWED_PREFIX)
                        and (_FEW_ROWS in reported or _little(cause.case, finding)))]
    transfer = _look("transfer", case)
    explains = reported or any(finding.code.startswith(_FOLLOWED_PREFIX) or finding.code in _EXPLAINS_CUTOFF
                           for finding in (*fit, *transfer))
    if explains and (_most(case, cause.case) or not cutoff.predictions_depend(case)):
        # Faults and unmodelled effects are filtered differently at another cut-off, which changes the parameters.
        transfer = [finding for finding in transfer if finding.code != "cutoff-dependent"]
    return [*priced, *found, *cause.findings, *fit, *transfer], cause


def _most(case: Case, without: Case) -> bool:
    """Whether the causes explain most of the residual: a fit with the causes corrected has less than half the error."""
    before, after = (one.reconstruction.total.relative_error for one in (case, without))
    return before is not None and after is not None and after < 0.5 * before


def _little(case: Case, finding: Finding) -> bool:
    """Whether the structure in the residuals is a small part of their joints' torques."""
    size = {fit.name: fit.torque_rms or 0.0 for fit in case.reconstruction.joints}
    torque = np.atleast_1d(finding.evidence.get("torque", ()))
    return all(x < SECOND_FAULT_TORQUE * size[joint] for x, joint in zip(torque, finding.joints, strict=False))


def _look(stage: Stage, case: Case) -> list[Finding]:
    found = [finding for suspicion in SUSPICIONS if suspicion.stage == stage for finding in suspicion.look(case)]
    return [of_second_fit(finding, case.estimate.method) for finding in found] if case.is_second_fit else found
