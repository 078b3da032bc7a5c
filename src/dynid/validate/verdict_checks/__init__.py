"""Checks for problems, by subject: functions from an estimate with its evidence (`Case`) to findings with codes.

A new check is a function in the module of its subject, and an entry of its stage in VERDICT_CHECKS.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from dynid.findings import Finding
from dynid.validate.thresholds import SECOND_FAULT_TORQUE
from dynid.validate.verdict_checks import compensated, cutoff, known, parameters, residuals, signals, transfer
from dynid.validate.verdict_checks.case import Case, Check, of_second_fit
from dynid.validate.verdict_checks.causes import Explained, Refit, accepted, explained
from dynid.validate.verdict_checks.second_fit import unconstrained_case

__all__ = ["VERDICT_CHECKS", "Case", "Explained", "Refit", "run_checks"]

# Checks by stage, in the order of their findings. Checks of the data come first and use the logs alone. Checks of the
# fit use the estimate with faults of the data corrected, unless the data make it worthless. Checks of transfer use
# other logs and blocks of time.
VERDICT_CHECKS: dict[Literal["data", "fit", "transfer"], tuple[Check, ...]] = {
    "data": (signals.joints_at_rest, signals.silent_torques, signals.degrees_for_radians, signals.beyond_limits,
             signals.encoders_stuck, signals.torques_saturated, signals.torques_unsigned,
             signals.torques_lost, signals.rows_lost, signals.clock_against_velocity,
             signals.velocities_for_positions, signals.rows_held, signals.log_in_itself, signals.positions_rounded,
             signals.cutoff_too_high, compensated.gravity_removed, signals.too_few_samples),
    "fit": (residuals.residuals_followed, residuals.torques_late, residuals.residuals_autocorrelated,
            residuals.residual_outliers, residuals.torques_unexplained, parameters.negative_parameters,
            parameters.pushing_friction, parameters.driving_friction, parameters.indefinite_inertia,
            parameters.large_offsets, signals.badly_conditioned),
    "transfer": (known.known_contradicted, transfer.other_logs, transfer.worth_nothing, transfer.logs_differ,
                 transfer.odd_block, transfer.parameters_not_constant, cutoff.depends_on_cutoff,
                 parameters.impossible_links, parameters.energy_grows)}
_FREE_BASE_CHECKS: tuple[Check, ...] = (signals.joints_at_rest, known.known_contradicted, cutoff.depends_on_cutoff,
                                        parameters.impossible_links, parameters.energy_grows)
_NO_FAULT_OF_DATA = {"joint-at-rest", "payload"}  # they have no effect on the residuals
# Friction and rotors that were chosen on data with a fault may lack a term that the corrected data need.
_LEFT_BEHIND = {"residuals-autocorrelated", "residual-outliers", "low-r2", "residual-follows-offset",
                "residual-follows-velocity", "residual-follows-velocity-sign", "residual-follows-acceleration"}
_FOLLOWED_PREFIX = "residual-follows-"
_FEW_ROWS = "few-independent-samples"  # parameters then absorb the structure of residuals
_EXPLAINS_CUTOFF = {"overfit"}  # on other logs: poorly excited parameters change with the cut-off too


def run_checks(case: Case) -> tuple[list[Finding], Explained]:
    """Return the findings of all checks, and the causes that explain the data.

    If the data make the fit worthless, only faults of the data are reported. A large loss of accuracy by physical
    consistency is reported first, and the unconstrained fit is checked. Otherwise a fit with causes corrected is
    checked.
    """
    if case.has_free_base:  # faults of such logs are checked by `whole_body_faults`
        return _look(_FREE_BASE_CHECKS, case), Explained((), case)
    found = _look(VERDICT_CHECKS["data"], case)
    if any(finding.severity == "fatal" for finding in found):
        return found, Explained((), case)
    priced, free = unconstrained_case(case)
    cause = accepted(explained(free.plain), free)
    fit = [] if cause.done else _look(VERDICT_CHECKS["fit"], cause.case)
    reported = {finding.code for finding in (*found, *cause.findings)} - _NO_FAULT_OF_DATA
    if reported:  # consequences of a fault are not separate causes
        fit = [finding for finding in fit if finding.code not in reported | _LEFT_BEHIND
               and not (finding.code.startswith(_FOLLOWED_PREFIX)
                        and (_FEW_ROWS in reported or _little(cause.case, finding)))]
    transfer = _look(VERDICT_CHECKS["transfer"], case)
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


def _look(checks: tuple[Check, ...], case: Case) -> list[Finding]:
    found = [finding for check in checks for finding in check(case)]
    return [of_second_fit(finding, case.estimate.method) for finding in found] if case.is_second_fit else found
