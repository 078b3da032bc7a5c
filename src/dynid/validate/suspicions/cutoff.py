"""Check for results that depend on the cut-off: half or twice its value would give other parameters or torques."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dynid.arrays import Array, Bools
from dynid.findings import Finding
from dynid.validate.cutoff_dependence import CutoffDependence
from dynid.validate.suspicions.case import Case, Suspicion, each, suspect
from dynid.validate.words import listed, span

MAX_RELATIVE_STD = 30.0  # percent: relative deviation of a parameter that is known well enough to be missed
_MOVES, _MATTERS = 4.0, 20.0  # deviations of both, and percent of the value: a parameter that moves by both depends
_OF_ERROR, _OF_TORQUE = 0.5, 1.0  # share of the fit's error, and percent of the torques: predictions that depend


def depends_on_cutoff(case: Case) -> Iterator[Finding]:
    """Report parameters that change significantly between equally plausible cut-offs, or predictions that change
    about as much as their error."""
    found = case.cutoff
    if found is None:
        return
    percent = np.abs(found.percent)
    material = (percent > _MATTERS) & (case.estimate.relative_std < MAX_RELATIVE_STD) & ~found.refused[:, None]
    deviations = _deviations(found, material)
    moved, changed = material & (deviations > _MOVES), _changed(found)
    sides = np.flatnonzero(moved.any(axis=1) | changed)
    if not len(sides):
        return
    most = np.max(np.where(moved, percent, 0.0), axis=0)
    order = [i for i in np.argsort(-most) if most[i] > 0]
    where = " or ".join(f"{cutoff:g}" for cutoff in found.others[sides])
    said: list[str] = []
    if order:
        said.append(f"{listed([found.names[i] for i in order], 4)} would change by {span(each(most[order]))}")
    if changed.any():
        said.append(f"predicted torques would change by {span(each(found.torques[changed]))}, while the error of the "
                    f"fit is {found.error:.2g} %")
    yield suspect("cutoff-dependent", "results depend on the cut-off", f"{found.cutoff:g} Hz",
                  f"Results depend on the cut-off of {found.cutoff:g} Hz: with {where} Hz {' and '.join(said)}; noise "
                  "and motion of the positions overlap, so a faster motion or finer encoders are needed",
                  parameters=[found.names[i] for i in order], evidence={
                      "cutoff": found.cutoff, "others": each(found.others), "torque_change": each(found.torques),
                      "relative_error": found.error, "percent": each(most[order]),
                      "deviations": each(np.max(np.where(moved, deviations, 0.0), axis=0)[order])})


def _deviations(found: CutoffDependence, material: Bools) -> Array:
    """Return changes (k, base) of significant parameters in standard errors of both estimates; zero for the others.

    A higher cut-off lets more position noise pass, and the estimate there states how much that shifts it: a change that
    this explains is not evidence against the estimate.
    """
    far = np.where(material, np.abs(found.deviations), 0.0)
    for k in np.flatnonzero((far > _MOVES).any(axis=1)):
        std = found.std[material[k]]
        far[k, material[k]] *= std / np.hypot(std, found.std_at(float(found.others[k]))[material[k]])
    return far


def _changed(found: CutoffDependence) -> Bools:
    """Return at which of the other cut-offs (k,) predictions change about as much as their error."""
    return (found.torques > _OF_ERROR * found.error) & (found.torques > _OF_TORQUE) & ~found.refused


def predictions_depend(case: Case) -> bool:
    """Whether predictions, and not only parameters, depend on the cut-off. In that case it is not a consequence of
    another cause, and may itself explain the other findings."""
    return case.cutoff is not None and bool(_changed(case.cutoff).any())


SUSPICIONS = (Suspicion("transfer", depends_on_cutoff),)
