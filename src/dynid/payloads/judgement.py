"""Findings on a payload, with stable codes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from dynid.arrays import Array
from dynid.estimate import Estimate
from dynid.findings import Finding
from dynid.model import required_robot_model
from dynid.payloads.body import distance
from dynid.payloads.payload_methods import LinearPayloadFit, LoadedEquations, Nuisance, Unloaded, payload_fit
from dynid.payloads.result import PayloadEstimate
from dynid.regression import Regression
from dynid.robot import inertia as ten

MIN_BLOCKS_PER_SIDE = 3  # blocks of time on each side of a change
_MIN_LOAD_CHANGE = 0.3  # share of the load: a smaller change cannot be distinguished from model errors
_SIGNIFICANT_STD = 5.0  # standard errors of a change of the load, below which the change is not significant
_DOMINANT_VARIANCE_SHARE = 0.5  # share of the mass's variance above which one source dominates
_SMALL_GAIN_EFFECT = 0.02  # share of the mass: a smaller uncertainty by gains is not reported
_MIN_LOAD_FRICTION = 0.03  # share of the transmitted torque, above which load-dependent friction is reported
# standard errors for independent rows: those of correlated rows are at least twice as large
_SIGNIFICANT_STANDARD_ERRORS = 6.0
_IMPOSSIBLE_STD = 4.0  # standard deviations between the free estimate and the nearest body that noise does not cause
_MAX_ERROR_RATIO = 2.5  # ratio to the robot's own error, above which a load does not explain the torques
_MIN_ERROR_PERCENT = 10.0  # percentage points above the robot's own error, below which a load explains the torques
_UNEXPLAINED_PERCENT = 50.0  # percent: torque error above which the load explains nearly nothing


def judged(found: PayloadEstimate, estimate: Estimate, *, weighed: bool, given: bool,
           log: tuple[LoadedEquations, LinearPayloadFit, Unloaded] | None = None) -> PayloadEstimate:
    """Return a payload with its findings, the worst first.

    Args:
        found: the payload.
        estimate: the robot without load.
        weighed: whether the mass of the payload is from a scale.
        given: whether standard deviations of the drive gains were given.
        log: equations of the loaded logs, their fit and the robot without load; None for a stream of samples.
    """
    findings = [*_unexplained(found, estimate), *(() if log is None else _changed(found, *log)),
                *(_impossible(found) if log is not None or found.consistent else ()), *_not_seen(found),
                *_gains(found, weighed, given), *_unidentified(found), *_too_much(found, estimate),
                *(() if log is None else _gears(found, *log[:2]))]
    worst = sorted(findings, key=lambda one: ("fatal", "warning", "info").index(one.severity))
    return replace(found, findings=tuple(worst))


def _unexplained(found: PayloadEstimate, estimate: Estimate) -> Iterator[Finding]:
    own, error = estimate.diagnostics.relative_error, found.relative_error
    if error <= max(_MAX_ERROR_RATIO * own, own + _MIN_ERROR_PERCENT):
        return
    fatal = error > _UNEXPLAINED_PERCENT
    yield Finding(
        "payload-unexplained", "problem", "fatal" if fatal else "warning",
        f"With the payload the torque error is still {error:.0f} %, while it was {own:.1f} % for the unloaded robot: "
        "the robot, its mounting or the units differ, or more than a rigid load has changed.",
        "payload does not explain the torques", logs=found.logs,
        evidence={"relative_error": error, "unloaded_robot_error": own,
                  "without_payload": found.unloaded_error})


def _changed(found: PayloadEstimate, loaded: LoadedEquations, fit: LinearPayloadFit,
             unloaded: Unloaded) -> Iterator[Finding]:
    if not found.free[9] > found.mass_std_from("noise"):
        return
    change = find_load_change(loaded, fit, unloaded)
    if change is None:
        return
    before, after = change.before, change.after
    yield Finding(
        "payload-changed", "problem", "fatal",
        f"The payload changes: about {max(before, 0.0):.2g} kg before {change.at:.4g} s of {change.log}, about "
        f"{max(after, 0.0):.2g} kg afterwards; cut the log there with --start or --stop.",
        "payload changed", logs=(change.log,),
        evidence={"at": change.at, "mass_before": before, "mass_after": after,
                  "std": float(change.std * found.free[9])})


def _impossible(found: PayloadEstimate) -> Iterator[Finding]:
    if not found.identified.all():
        return
    if not found.has_mass and found.free[9] > -_IMPOSSIBLE_STD * found.mass_std:
        return  # zero load is the apex of the cone: any residual points outside
    if not found.consistent:
        faults = list(ten.body_faults("payload", found.numbers)) if found.mass != 0 else []
        if faults:
            yield Finding("payload-cannot-exist", "problem", "warning",
                          "The inertial parameters of the payload are not physically consistent: "
                          f"{faults[0].message}; request a consistent payload.",
                          "payload not physically consistent", evidence={"amount": faults[0].violation})
        return
    without = found.covariance - found.parts.get("gains", 0.0)
    away = distance(found.free, found.numbers, without)
    if away > _IMPOSSIBLE_STD:
        yield Finding(
            "payload-cannot-exist", "problem", "warning",
            "The torques correspond to a payload that is not physically consistent; the nearest consistent payload "
            f"differs by {away:.1f} standard deviations: check the frame, signs, drive gains, and whether the load is "
            "rigid.", "payload not physically consistent",
            evidence={"standard_errors": away, "free_mass": float(found.free[9])})


def _not_seen(found: PayloadEstimate) -> Iterator[Finding]:
    if not found.seen:
        yield Finding(
            "payload-not-seen", "identified", "info",
            f"No payload is detected: the mass is {found.mass_text}, and its ten inertial parameters together do not "
            "differ from zero.",
            "no payload", evidence={"chance": found.chance})
    elif not found.has_mass:
        known = [f"{name} {value:.3g} kg m ({low:.3g} to {high:.3g})" for name, value, (low, high), yes in
                 zip(ten.NAMES[6:9], found.moment, found.moment_int(), found.identified[6:9], strict=True) if yes]
        where = f" if its centre of mass lies within {found.lever:.2g} m of {found.frame}" \
            if np.isfinite(found.lever) and found.mass_bounds()[0] > 0.0 else ""
        yield Finding(
            "payload-mass-not-determined", "not-excited", "warning",
            "A payload is detected, but these motions do not determine its mass: it is "
            + found.mass_text + where + (f". First moment: {', '.join(known)}" if known else "")
            + ". Weigh the load and add `--mass KG`, or tilt and accelerate the joints that carry it.",
            "payload mass not determined",
            evidence={"chance": found.chance, "moment": tuple(float(x) for x in found.moment)})


def _gains(found: PayloadEstimate, weighed: bool, given: bool) -> Iterator[Finding]:
    share = found.parts["gains"][9, 9] / max(found.covariance[9, 9], 1e-300) if "gains" in found.parts else 0.0
    if weighed or not found.has_mass or share < _DOMINANT_VARIANCE_SHARE:
        return
    whose = "as the log or the user states them" if given else "assumed, because none is known"
    advice = "" if given else ", or calibrate the gains with `dynid gains`"
    large = found.mass_std_from("gains") > _SMALL_GAIN_EFFECT * found.mass
    yield Finding(
        "gains-decide", "problem", "warning" if large else "info",
        f"Drive gains dominate the uncertainty: {100 * np.sqrt(share):.0f} % of the standard error of the mass, "
        f"{found.mass_std_from('gains'):.2g} kg, comes from the gains ({100 * found.gain_std.max():.1f} %, "
        f"{whose}). Weigh the load and add `--mass KG`{advice}.", "gains decide",
        evidence={"share": float(share), "mass_std": found.mass_std, "from_gains": found.mass_std_from("gains")})


def _gears(found: PayloadEstimate, loaded: LoadedEquations, fit: LinearPayloadFit) -> Iterator[Finding]:
    """Yield a finding on friction that increases with the transmitted torque, if the model has no such friction."""
    shares = (fit.columns @ fit.x)[loaded.friction]
    own = fit.columns[loaded.friction]
    deviations = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", own, fit.inverse, own), 0.0))
    large = np.flatnonzero(shares > np.maximum(_MIN_LOAD_FRICTION, _SIGNIFICANT_STANDARD_ERRORS * deviations))
    if not found.has_mass or not len(large):
        return
    names = tuple(loaded.model.joint_names[j] for j in large)
    low, high = 100.0 * shares[large].min(), 100.0 * shares[large].max()
    yield Finding(
        "payload-friction", "problem", "info",
        f"Gears of {', '.join(names)} lose {low:.0f} to {high:.0f} % of the transmitted torque under this load, which "
        "the model does not contain; identify the robot again with --friction load.", "friction increases with load",
        joints=names,
        evidence={"share": tuple(float(x) for x in shares[large])})


def _unidentified(found: PayloadEstimate) -> Iterator[Finding]:
    names = [name for name, known in zip(ten.NAMES, found.identified, strict=True) if not known]
    if names:
        yield Finding("payload-not-identified", "not-excited", "warning",
                      f"The torques do not determine {', '.join(names)} of the payload; orient the payload in more "
                      "directions, and move the joints that carry it.", "payload partly identified",
                      parameters=tuple(names))


def _too_much(found: PayloadEstimate, estimate: Estimate) -> Iterator[Finding]:
    """Yield a finding on a payload that is heavier than the robot's rated payload."""
    model = required_robot_model(estimate.model, "an estimate of a payload")
    limit = model.robot.payload
    if limit is not None and found.has_mass and found.mass > limit:
        yield Finding("payload-too-heavy", "problem", "warning",
                      f"The payload of {found.mass:.3g} kg is more than the {limit:g} kg that the file of robot "
                      f"'{model.robot.name}' allows.", "payload too heavy",
                      evidence={"mass": found.mass, "allowed": limit})


@dataclass(frozen=True)
class LoadChange:
    """A change of the load within a log.

    Attributes:
        log, at: name of the log, and time of the change, s.
        before, after: mass of the load before and after the change, kg.
        std: standard error of the change, relative to the load.
    """

    log: str
    at: float
    before: float
    after: float
    std: float


def find_load_change(loaded: LoadedEquations, fit: LinearPayloadFit, unloaded: Unloaded) -> LoadChange | None:
    """Return the most significant change of the load within the logs, or None if none is significant.

    In every block of time the load's torque p is scaled to the residual r of the robot without load: alpha = <p, r> /
    <p, p>. The best single step in alpha is compared with the scatter of alpha on either side.
    """
    coefficients = fit.columns @ fit.x
    share, weight = [], []
    for block in loaded.regression.blocks:
        product = power = 0.0
        for w, factor in zip(loaded.weights, block.factors, strict=True):
            mine = np.isin(factor.columns, loaded.load)
            p = w * factor.r[:, :-1][:, mine] @ coefficients[factor.columns[mine]]
            rest = w * (factor.r[:, -1] - factor.r[:, :-1][:, ~mine] @ coefficients[factor.columns[~mine]])
            product, power = product + float(p @ rest), power + float(p @ p)
        share.append(product / power if power > 0 else 0.0)
        weight.append(power)
    alpha, weights = np.array(share), np.array(weight)
    if len(alpha) < 2 * MIN_BLOCKS_PER_SIDE or weights.sum() <= 0:
        return None
    places = range(MIN_BLOCKS_PER_SIDE, len(alpha) - MIN_BLOCKS_PER_SIDE + 1)
    best = max((_step(alpha, weights, k) for k in places), key=lambda one: one[0])
    gain, k, before, after, std = best
    if gain <= 0 or abs(after - before) < max(_MIN_LOAD_CHANGE * max(abs(after), abs(before)), _SIGNIFICANT_STD * std):
        return None
    span = loaded.regression.blocks[k].spans[0]
    return LoadChange(span.source, span.start, _mass(loaded, unloaded, slice(None, k)),
                      _mass(loaded, unloaded, slice(k, None)), std)


def _mass(loaded: LoadedEquations, unloaded: Unloaded, part: slice) -> float:
    """Return the mass of the load, kg, from the blocks of time `part`, with the robot fixed at its unloaded values."""
    regression = loaded.regression
    some = Regression.from_blocks(regression.base, regression.blocks[part], regression.joints, regression.sources)
    return float(payload_fit(replace(loaded, regression=some), unloaded, Nuisance.none(), fixed=True).theta[9])


def _step(alpha: Array, weights: Array, k: int) -> tuple[float, int, float, float, float]:
    """Return a step of the relative load alpha (blocks,) before block k: the sum of squares that the step explains, k,
    the means before and after it, and the standard error of their difference."""
    sides = [(alpha[part], weights[part]) for part in (slice(None, k), slice(k, None))]
    if any(w.sum() <= 0 for _, w in sides):
        return 0.0, k, 0.0, 0.0, np.inf
    means = [float(np.average(a, weights=w)) for a, w in sides]
    variance = sum(float(np.average((a - m) ** 2, weights=w)) * float(np.sum(w ** 2)) / float(w.sum()) ** 2
                   for (a, w), m in zip(sides, means, strict=True))
    both = float(weights[:k].sum() * weights[k:].sum() / weights.sum())
    return both * (means[1] - means[0]) ** 2, k, means[0], means[1], float(np.sqrt(variance))
