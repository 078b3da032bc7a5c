"""Checks on other data: logs and blocks of time that are predicted worse, with another scale, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from dynid.arrays import Array
from dynid.findings import Finding
from dynid.order_statistics import median
from dynid.regression.residual_series import torque_sums
from dynid.validate import thresholds
from dynid.validate.cross_validation import CrossValidation
from dynid.validate.hypotheses.other_log import what_changed
from dynid.validate.reconstruction import Reconstruction, TorqueFit
from dynid.validate.verdict_checks.case import Case, each, suspect
from dynid.validate.words import joint_label, joints_listed, listed, sentence, span

EXACT_ERROR = 1e-6  # percent: smaller errors are rounding errors
NOTHING = 100.0  # percent: the error of predicting zero torque


def other_logs(case: Case) -> Iterator[Finding]:
    """Report other logs that are predicted far worse than the fitted one, and why."""
    own = case.reconstruction
    for other in case.validations:
        if other.relative_error > max(thresholds.WORSE_RATIO * own.relative_error, own.relative_error + 1.0):
            yield _why(case, other)


def _why(case: Case, other: Reconstruction) -> Finding:
    """Return the finding on a log that is predicted worse: a change, poorly determined parameters, or unknown."""
    own, names = case.reconstruction, case.problem.regression.joints
    evidence: dict[str, float | tuple[float, ...]] = {"relative_error": other.relative_error,
                                                      "fitted": own.relative_error}
    plain = case.plain
    found = what_changed(plain.problem, plain.estimate.values, other.samples) if plain.problem.data else None
    log = other.source
    much = f"the torque error is {other.relative_error:.1f} % on {log} and {own.relative_error:.1f} % on the fitted log"
    if found is None or found.what in ("noise", "unexplained"):
        evidence |= {} if found is None else {"excess": found.excess, "honest_excess": found.honest}
        some = "" if found is None or found.what == "noise" else \
            "; possible causes are another load, friction or drive gain, or another machine"
        return suspect("does-not-carry-over", "validation error", log,
                       f"{much}: the estimate is not valid for that log{some}", logs=other.sources, evidence=evidence)
    evidence |= {"both": found.errors[1], "alone": found.errors[2], "excess": found.excess,
                 "honest_excess": found.honest,
                 **{name.replace(" ", "_"): value for name, value in found.explained.items()}}
    if found.what == "overfit":
        advice = "both logs or from a richer motion" if case.estimate.method.startswith("pc-") else \
            "both logs, from a richer motion, or by --method pc-wls"
        return suspect("overfit", "overfit", log,
                       f"the estimate overfits its log: {much}, yet one set of parameters predicts both logs "
                       f"({found.errors[1]:.1f} % on {log}): the fitted log does not excite all parameters; "
                       f"identify from {advice}", logs=other.sources, evidence=evidence)
    if found.what == "gain" and found.joint is not None and found.gain is not None:
        name = names[found.joint]
        return suspect("gain-or-load-changed", "drive gain or load", joint_label(name),
                       f"on {log} the torque of {joint_label(name)} is {found.gain:.2f} times the predicted torque: "
                       "the drive gain or the load has changed", joints=[name], logs=other.sources,
                       evidence={**evidence, "slope": (found.gain,)})
    scaled = _scaled_joints(own, other)
    if found.what == "load":
        slopes = f" ({listed([f'{x:.2f}' for x in scaled.values()])} times the predicted torque)" if scaled else ""
        return suspect("load-changed", "load", log,
                       f"on {log} the robot probably carries another load: the inertial parameters of the last body "
                       f"explain {100 * found.explained['load']:.0f} % of the difference, affecting "
                       f"{joints_listed([*scaled] or list(own.names))}{slopes}", joints=[*scaled] or list(own.names),
                       logs=other.sources, evidence={**evidence, "slope": each([*scaled.values()])})
    if found.what == "friction":
        return suspect("friction-changed", "friction", log,
                       f"on {log} friction differs (temperature, lubrication, wear): it explains "
                       f"{100 * found.explained['friction']:.0f} % of the difference between the logs",
                       logs=other.sources, evidence=evidence)
    return suspect("another-machine", "another machine", log,
                   f"{log} is probably of another machine, or the machine was rebuilt: {much}. With separate friction, "
                   f"common parameters for both logs have {found.excess:.2g} times the squared error of separate ones; "
                   f"for parts of one log this factor is at most {found.honest:.2g}",
                   logs=other.sources, evidence=evidence)


def _scaled_joints(own: Reconstruction, other: Reconstruction) -> dict[str, float]:
    """Return the joints whose torque on another log has another scale, with measured over predicted torque there."""
    return {fit.name: fit.slope for mine, fit, (_, before, after) in zip(own.joints, other.joints,
                                                                         _scaled_misfits(other), strict=True)
            if fit.slope is not None and mine.slope is not None
            and abs(fit.slope - mine.slope) >= thresholds.SLOPE_CHANGE and after < thresholds.SCALE_LEAVES * before
            and (fit.relative_error or 0.0) > thresholds.WORSE_RATIO * (mine.relative_error or 0.0)}


def _scaled_misfits(other: Reconstruction) -> list[tuple[float, float, float]]:
    """Return three sums of squares for each joint: of its measured torque, of its residual, and of the residual after
    the predicted torque is scaled by least squares."""
    sums: Array = np.sum([torque_sums(part) for part in other.series], axis=0)
    return [(power, misfit, power - product ** 2 / own if own > 0 else misfit)
            for power, _, misfit, product, own, _ in sums.tolist()]


def worth_nothing(case: Case) -> Iterator[Finding]:
    """Report other logs and blocks of time that are predicted no better than by zero torque."""
    for other in case.validations:
        yield from negative_r2(other)
    if case.cross is not None:
        yield from blocks_worse_than_nothing(case.cross)


def odd_block(case: Case) -> Iterator[Finding]:
    """Return the finding on a block of time whose torques the model of the other blocks does not predict."""
    cross = case.cross
    if cross is None or cross.mean < EXACT_ERROR:
        return
    blocks = case.problem.regression.blocks
    power = np.array([sum(factor.power for factor in blocks[k].factors) / max(blocks[k].rows, 1) for k in cross.blocks])
    errors = cross.errors * np.sqrt(power / power.mean())
    known = errors[np.isfinite(errors)]
    typical, most = median(known), known.max()
    least = max(thresholds.ODD_BLOCK_RATIO * typical, typical + 100.0 * thresholds.RELEVANT_TORQUE)
    if len(known) > 3 and most > least:
        worst = cross.blocks[int(np.nanargmax(errors))]
        block = blocks[worst]
        which, span = f"block {worst + 1}", block.spans[0]
        evidence = {"block": float(worst + 1), "error": float(most), "typical": float(typical),
                    "start": span.start, "end": block.spans[-1].stop}
        yield suspect("odd-block", "unusual block of time", which,
                      f"{which} of {len(blocks)} ({block}) is predicted from the others with an error of {most:.1f} %, "
                      f"{most / typical:.1f} times the usual: its motion occurs nowhere else, or there was a contact "
                      "or disturbance", logs=[span.source], evidence=evidence)


def logs_differ(case: Case) -> Iterator[Finding]:
    """Report logs that other logs predict far worse than their own blocks of time do: the robot changed."""
    cross = case.cross
    if cross is None or cross.mean < EXACT_ERROR:
        return
    odd = [one for one in cross.logs
           if one.from_others > max(thresholds.WORSE_RATIO * one.from_itself, one.from_itself + 1.0)]
    if odd:
        names = [one.source for one in odd]
        what = listed([f"{one.source} with an error of {one.from_others:.1f} % (from its own other blocks: "
                       f"{one.from_itself:.1f} %)"
                       for one in odd])
        yield suspect("logs-differ", "logs differ", listed(names),
                      f"the other logs predict {what}: the robot probably changed between them (temperature, load, "
                      "drift), or their motions have little in common",
                      logs=names, evidence={"from_others": each([one.from_others for one in odd]),
                                            "from_itself": each([one.from_itself for one in odd])})


def parameters_not_constant(case: Case) -> Iterator[Finding]:
    """Report parameters that vary between blocks of time by more than their standard errors."""
    cross = case.cross
    if (cross is not None and cross.mean >= EXACT_ERROR and cross.ratio is not None
            and cross.ratio > thresholds.NOT_CONSTANT_RATIO):
        yield suspect("parameters-not-constant", "parameters not constant", "parameters",
                      f"between blocks of time, parameters vary by {cross.ratio:.1f} times their standard errors: the "
                      "model is too simple or the robot changes (temperature, load)",
                      evidence={"ratio": cross.ratio})


def negative_r2(other: Reconstruction) -> Iterator[Finding]:
    """Return findings on a validation log that the estimate predicts no better than zero torque, or worse than the mean
    torque: over all joints, or for some of them."""
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
        yield Finding("worse-than-zero", "problem", "warning", sentence(
            f"{len(bad)} of {len(cross.blocks)} blocks of time are predicted from the others with an error of "
            f"{span(errors)}, no better than zero torque (100 %): {blocks}; do not use these parameters for other "
            f"motions; check these blocks for a contact, another load or damaged rows; if there are none, record a "
            f"motion with more excitation{method}"), "worse than zero torque in cross-validation",
            evidence={"error": errors, "block": tuple(float(cross.blocks[k] + 1) for k in bad)})


def _no_better_than_zero(fit: TorqueFit) -> bool:
    return fit.relative_error is not None and fit.relative_error >= NOTHING


def _finding(code: Literal["worse-than-zero", "worse-than-mean"], text: str, other: Reconstruction,
             joints: tuple[TorqueFit, ...], judged: tuple[TorqueFit, ...]) -> Finding:
    title = f"{code.replace('-', ' ')}{' torque' if code == 'worse-than-zero' else ''} ({other.source})"
    evidence: dict[str, float | tuple[float, ...]] = {
        "relative_error": tuple(fit.relative_error or 0.0 for fit in judged)}
    return Finding(code, "problem", "warning", sentence(text), title, tuple(fit.name for fit in joints),
                   logs=other.sources, evidence=evidence)


def _advice(other: Reconstruction, judged: tuple[TorqueFit, ...] = ()) -> str:
    """Return what to check first: signs and scales if they explain a joint's torque, otherwise other causes."""
    among = {fit.name for fit in judged or other.joints}
    found = {fit.name: fit.slope for fit, (power, before, after) in zip(other.joints, _scaled_misfits(other),
                                                                        strict=True)
             if fit.name in among and fit.slope is not None and after < thresholds.SCALE_LEAVES * min(before, power)}
    if found:
        scales = listed([f"{slope:.2g}" for slope in found.values()])
        return (f"the measured torque of {joints_listed([*found])} is {scales} times the predicted torque; check "
                f"{'its sign' if min(found.values()) < 0 else 'its unit, gain and load'} in that log")
    return ("check columns, signs and units of this log, that it is the same robot and load, and that its motion is "
            "similar to that of the fitted log")
