"""Check for results that depend on the cut-off: half or twice its value would give other parameters or torques."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dynid.arrays import Array, Bools
from dynid.findings import Evidence, Finding
from dynid.quantities import percent_text
from dynid.validate import thresholds
from dynid.validate.cutoff_influence import CutoffDependence
from dynid.validate.verdict_checks.case import Case, each, suspect
from dynid.validate.words import listed, sentence, span


def depends_on_cutoff(case: Case) -> Iterator[Finding]:
    """Report predictions that change about as much as their error at an equally plausible cut-off.

    If only parameters change, by more than their standard errors at both cut-offs, this is reported as a remark.
    """
    found = case.cutoff
    if found is None:
        return
    percent = np.abs(found.percent)
    known = case.estimate.relative_std < thresholds.CUTOFF_KNOWN
    material = (percent > thresholds.CUTOFF_PERCENT) & known & ~found.refused[:, None]
    standard_errors = _standard_errors(found, material)
    error = _error(case, found)
    moved, changed = material & (standard_errors > thresholds.CERTAIN_STANDARD_ERRORS), _changed(found, error)
    sides = np.flatnonzero(moved.any(axis=1) | changed)
    if not len(sides):
        return
    most = np.max(np.where(moved, percent, 0.0), axis=0)
    order = [i for i in np.argsort(-most) if most[i] > 0]
    where = " or ".join(f"{cutoff:g}" for cutoff in found.others[sides])
    evidence: Evidence = {
        "cutoff": found.cutoff, "others": each(found.others), "torque_change": each(found.torques),
        "relative_error": error, "percent": each(most[order]),
        "standard_errors": each(np.max(np.where(moved, standard_errors, 0.0), axis=0)[order])}
    names = [found.names[i] for i in order]
    parameters = f"{listed(names, 4)} would change by {span(each(most[order]))}" if order else ""
    effects = [parameters] if order else []
    if not changed.any():
        # Predictions are unchanged, so the model is usable: only some standard errors are wrong.
        yield Finding("cutoff-dependent", "validation", "info", sentence(
            f"At a cut-off of {where} instead of {found.cutoff:g} Hz {parameters}, which is more than their standard "
            f"errors state, while predicted torques change by {span(each(found.torques[sides]))}: do not rely on the "
            "single values"), f"parameters depend on the cut-off ({found.cutoff:g} Hz)", parameters=tuple(names),
            evidence=evidence)
        return
    effects.append(f"predicted torques would change by {span(each(found.torques[changed]))}, while their error "
                f"is {percent_text(error)}")
    yield suspect("cutoff-dependent", "results depend on the cut-off", f"{found.cutoff:g} Hz",
                  f"Results depend on the cut-off of {found.cutoff:g} Hz: with {where} Hz {' and '.join(effects)}; "
                  "noise and motion overlap in frequency, so a faster motion or finer encoders are needed",
                  parameters=names, evidence=evidence)


def _standard_errors(found: CutoffDependence, material: Bools) -> Array:
    """Return changes (k, base) of significant parameters in standard errors of both estimates; zero for the others.

    A higher cut-off passes more position noise, and the estimate there states the resulting standard errors. A change
    within these is not evidence against the estimate.
    """
    far = np.where(material, np.abs(found.standard_errors), 0.0)
    for k in np.flatnonzero((far > thresholds.CERTAIN_STANDARD_ERRORS).any(axis=1)):
        std = found.std[material[k]]
        far[k, material[k]] *= std / np.hypot(std, found.std_at(float(found.others[k]))[material[k]])
    return far


def _error(case: Case, found: CutoffDependence) -> float:
    """Return the error of the fit or of cross-validation, whichever is larger, percent."""
    return found.error if case.cross is None else float(np.nanmax([found.error, case.cross.mean]))


def _changed(found: CutoffDependence, error: float) -> Bools:
    """Return for which of the other cut-offs (k,) the predictions change about as much as their error."""
    least = max(thresholds.CUTOFF_OF_ERROR * error, thresholds.CUTOFF_OF_TORQUE)
    return (found.torques > least) & ~found.refused


def predictions_depend(case: Case) -> bool:
    """Whether predictions, not only parameters, depend on the cut-off. The cut-off is then a cause of its own, which
    may explain the other findings."""
    return case.cutoff is not None and bool(_changed(case.cutoff, _error(case, case.cutoff)).any())
