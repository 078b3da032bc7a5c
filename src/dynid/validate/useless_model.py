"""Findings on predictions that are worse than predicting zero torque or the mean torque."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from dynid.arrays import Array
from dynid.findings import Finding
from dynid.regression.residual_series import torque_sums
from dynid.validate.cross_validation import CrossValidation
from dynid.validate.reconstruction import Reconstruction, TorqueFit
from dynid.validate.thresholds import SCALE_LEAVES
from dynid.validate.words import joints_listed, listed, sentence, span

NOTHING = 100.0  # percent: the error of predicting zero torque


def negative_r2(other: Reconstruction) -> Iterator[Finding]:
    """Return findings on a validation log that the estimate predicts no better than zero torque, or worse than its
    mean: over all joints, or for some of them."""
    total, name = other.total, other.source
    if _no_better_than_zero(total):
        yield _finding("worse-than-zero", f"the model predicts the torques of {name} with an error of "
                                          f"{total.relative_error:.0f} %, no better than zero torque (100 %): "
                                          f"{_advice(other)}", other, other.joints, (total,))
        return
    if total.r2 is not None and total.r2 < 0.0:
        yield _finding("worse-than-mean", f"the model predicts the torques of {name} with an "
                                          f"error of {total.relative_error:.0f} %, worse than "
                                          f"the mean torque of each joint: {_advice(other)}", other, other.joints,
                       (total,))
        return
    bad = tuple(fit for fit in other.joints if _no_better_than_zero(fit))
    if bad:
        errors = span([fit.relative_error or 0.0 for fit in bad])
        yield _finding("worse-than-zero", f"on {name} the torque of {joints_listed([fit.name for fit in bad])} is "
                                          f"predicted with an error of {errors}, no better than zero torque (100 %): "
                                          f"{_advice(other, bad)}",
                       other, bad, bad)


def blocks_worse_than_nothing(cross: CrossValidation) -> Iterator[Finding]:
    """Return findings on blocks of time whose torques the other blocks predict no better than zero torque."""
    bad = [k for k, error in enumerate(cross.errors) if np.isfinite(error) and error >= NOTHING]
    if bad:
        blocks = listed([cross.where[k] for k in bad], 3)
        errors = tuple(float(cross.errors[k]) for k in bad)
        method = "" if cross.method.startswith("pc-") else ", or use --method pc-wls"
        yield Finding("worse-than-zero", "suspicious", "warning", sentence(
            f"{len(bad)} of {len(cross.blocks)} blocks of time are predicted from the others with an error of "
            f"{span(errors)}, no better than zero torque (100 %): {blocks}; do not use these parameters for other "
            f"motions; record a motion with more excitation{method}"), "worse than zero torque in cross-validation",
            evidence={"error": errors, "block": tuple(float(cross.blocks[k] + 1) for k in bad)})


def _no_better_than_zero(fit: TorqueFit) -> bool:
    return fit.relative_error is not None and fit.relative_error >= NOTHING


def _finding(code: Literal["worse-than-zero", "worse-than-mean"], text: str, other: Reconstruction,
             joints: tuple[TorqueFit, ...], judged: tuple[TorqueFit, ...]) -> Finding:
    title = f"{code.replace('-', ' ')}{' torque' if code == 'worse-than-zero' else ''} ({other.source})"
    evidence: dict[str, float | tuple[float, ...]] = {
        "relative_error": tuple(fit.relative_error or 0.0 for fit in judged)}
    return Finding(code, "suspicious", "warning", sentence(text), title, tuple(fit.name for fit in joints),
                   logs=other.sources, evidence=evidence)


def _advice(other: Reconstruction, judged: tuple[TorqueFit, ...] = ()) -> str:
    """Return advice on the first check: signs and scales if they explain a joint's torque, otherwise other causes."""
    among = {fit.name for fit in judged or other.joints}
    found = {fit.name: slope for fit, slope in zip(other.joints, _scales(other), strict=True)
             if fit.name in among and slope is not None}
    if found:
        scales = listed([f"{slope:.2g}" for slope in found.values()])
        return (f"that of {joints_listed([*found])} is {scales} times the predicted one, check "
                f"{'its sign' if min(found.values()) < 0 else 'its unit, gain and load'} there")
    return ("check columns, signs and units of this log, that it is the same robot and load, and that its motion is "
            "similar to that of the fitted log")


def _scales(other: Reconstruction) -> list[float | None]:
    """Return measured over predicted torque of each joint whose scale is wrong, else None."""
    sums: Array = np.sum([torque_sums(part) for part in other.series], axis=0)
    found: list[float | None] = []
    for power, _, misfit, product, own, rows in sums:
        left = power - product ** 2 / own if rows and own > 0 else misfit  # after scaling the prediction by product/own
        found.append(float(product / own) if misfit > 0 and left < SCALE_LEAVES * misfit and left < SCALE_LEAVES * power
                     else None)
    return found
