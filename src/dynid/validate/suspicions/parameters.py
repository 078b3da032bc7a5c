"""Suspicions of the values: friction or inertia below zero, an inertia matrix that cannot be, large offsets."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dynid.findings import Finding
from dynid.model import Model, Parameter
from dynid.validate.suspicions.case import Case, Suspicion, each, suspect
from dynid.validate.words import joints_listed, listed, span

_BELOW = 2.0  # deviations below zero that count as below zero
_ROUNDING = 1e-9  # of the largest value
_POSTURES = 200  # of a log at which the inertia matrix is looked at
_OFFSET = 0.6  # of the joint's RMS torque
_OFFSET_DEVIATIONS = 3.0
_DIAGONAL = ("XX", "YY", "ZZ", "M")  # of a body: never below zero

# Code: title, and why it cannot be.
_NEGATIVE = {
    "unphysical-inertia": ("unphysical inertia", "no body can be so; a pc- method keeps to what can be"),
    "negative-rotor-inertia": ("negative rotor inertia", "no rotor can be so; it takes up an error of the inertias"),
    "negative-friction": ("negative friction", "friction would push; check the signs of {} and the friction model"),
}


def negative_parameters(case: Case) -> Iterator[Finding]:
    """Friction, rotor inertia and diagonal inertias below zero by more than their deviations allow."""
    estimate, items = case.estimate, case.estimate.base.parameters.items
    for code, places in _negative(case).items():
        title, why = _NEGATIVE[code]
        names = [estimate.names[i] for i in places]
        joints = [*dict.fromkeys(case.problem.regression.joints[items[estimate.base.independent[i]].owner]
                                 for i in places)]
        values = listed([f"{estimate.names[i]} ({estimate.values[i]:.3g} +- {estimate.std[i]:.1g} "
                         f"{estimate.base.units[i]})" for i in places])
        yield suspect(code, title, ", ".join(names),
                      f"{values} {'is' if len(places) == 1 else 'are'} below zero: {why.format(joints_listed(joints))}",
                      joints=joints, parameters=names,
                      evidence={"value": each(estimate.values[places]), "std": each(estimate.std[places])})


def _negative(case: Case) -> dict[str, list[int]]:
    """Base parameters below zero that never can be, by the code of the finding."""
    estimate = case.estimate
    items = estimate.base.parameters.items
    found: dict[str, list[int]] = {}
    for i, row in enumerate(estimate.base.matrix):
        parts = np.flatnonzero(row)
        value, std = float(estimate.values[i]), float(estimate.std[i])
        if (not estimate.identified[i] or not all(_never_negative(items[c]) for c in parts) or np.any(row[parts] < 0)
                or value > -_BELOW * std or value > -_ROUNDING * max(1.0, float(np.abs(estimate.values).max()))):
            continue
        leading = items[estimate.base.independent[i]]
        code = ("negative-rotor-inertia" if leading.name.startswith("Ia")
                else "unphysical-inertia" if leading.body is not None or "kg" in leading.unit else "negative-friction")
        found.setdefault(code, []).append(i)
    return found


def _never_negative(parameter: Parameter) -> bool:
    return parameter.positive or (parameter.body is not None
                                  and parameter.name.rstrip("0123456789L") in _DIAGONAL)


def indefinite_inertia(case: Case) -> Iterator[Finding]:
    """An inertia matrix with a negative eigenvalue at a recorded posture, where no inertia alone is to blame: no
    simulation is possible."""
    estimate, model, samples = case.estimate, case.estimate.model, case.problem.data
    if (not isinstance(model, Model) or not samples or not estimate.identified.all()
            or "unphysical-inertia" in _negative(case)):
        return
    q = np.concatenate([part.q[np.linspace(0, len(part) - 1, min(_POSTURES, len(part))).astype(int)]
                        for part in samples])
    values, vectors = np.linalg.eigh(model.inertia_matrix(estimate.full, q))
    negative = values[:, 0] < -_ROUNDING * np.abs(values[:, -1])
    if not negative.any():
        return
    worst = int(np.argmin(values[:, 0]))
    direction = vectors[worst, :, 0]
    # v' M v is linear in the parameters: its deviation follows from theirs.
    still = np.zeros_like(direction)
    columns = model.regressor(q[worst], still, direction) - model.regressor(q[worst], still, still)
    gradient = (direction @ columns)[estimate.base.independent]
    std = float(np.sqrt(max(float(gradient @ estimate.covariance @ gradient), 0.0)))
    if values[worst, 0] < -_BELOW * std:
        yield suspect("indefinite-inertia", "unphysical inertia", "inertia matrix",
                      f"the inertia matrix is not positive definite in {100 * negative.mean():.0f} % of the recorded "
                      "postures: the estimate cannot be simulated; a pc- method keeps to what can be",
                      evidence={"share": float(negative.mean()), "eigenvalue": float(values[worst, 0]), "std": std})


def large_offsets(case: Case) -> Iterator[Finding]:
    """Offsets that make up most of a moving joint's torque."""
    estimate, found = case.estimate, []
    items = estimate.base.parameters.items
    for i, c in enumerate(estimate.base.independent):
        if case.at_rest(items[c].owner) or not items[c].name.startswith("Fo") or not estimate.identified[i]:
            continue
        fit = case.reconstruction.joints[items[c].owner]
        torque, value = fit.torque_rms or 0.0, abs(float(estimate.values[i]))
        if torque > 0 and value > max(_OFFSET * torque, _OFFSET_DEVIATIONS * float(estimate.std[i])):
            found.append((estimate.names[i], value / torque, fit.name))
    if found:
        names, parts, joints = ([*column] for column in zip(*found, strict=True))
        which, are = ("offsets", "are") if len(found) > 1 else ("offset", "is")
        yield suspect("large-offset", "large offset", ", ".join(names),
                      f"the {which} {listed(names)} {are} {span([100.0 * x for x in parts])} of the torque of "
                      f"{joints_listed(joints)}: check the zero of the sensor or current", joints=joints,
                      parameters=names, evidence={"share": each(parts)})


SUSPICIONS = (Suspicion("fit", negative_parameters), Suspicion("fit", indefinite_inertia),
              Suspicion("fit", large_offsets))
