"""Findings on a payload, with stable codes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from dynid.estimate import Estimate
from dynid.findings import Finding
from dynid.model import required_robot_model
from dynid.payloads.body import distance
from dynid.payloads.constancy import change_of
from dynid.payloads.loaded import LoadedEquations
from dynid.payloads.result import PayloadEstimate
from dynid.payloads.ways import LinearPayloadFit, Unloaded
from dynid.robot import inertia as ten

_DOMINANT_VARIANCE_SHARE = 0.5  # share of the mass's variance above which one source decides
_SMALL_GAIN_EFFECT = 0.02  # of the mass: below that gains decide, but little
_MIN_LOAD_FRICTION = 0.03  # of the transmitted torque, above which friction from load is said
# deviations as of independent rows: those of rows that correlate are larger by two and more
_SIGNIFICANT_STANDARD_ERRORS = 6.0
_IMPOSSIBLE_STD = 4.0  # deviations between the free estimate and the nearest body: no noise does that
_MAX_ERROR_RATIO = 2.5  # times the error that the robot was identified with, beyond which a load does not explain it
_MIN_ERROR_PERCENT = 10.0  # percent, and at least so much
_UNEXPLAINED_PERCENT = 50.0  # percent: hardly anything is explained


def judged(
        found: PayloadEstimate, estimate: Estimate, loaded: LoadedEquations, fit: LinearPayloadFit, unloaded: Unloaded,
        *, weighed: bool, given: bool) -> PayloadEstimate:
    """Return a payload with its findings, the worst first. weighed: its mass is from a scale. given: standard
    deviations of gains were given."""
    return _with(found, [*_unexplained(found, estimate), *_changed(found, loaded, fit, unloaded),
                         *_alone(found, estimate, weighed, given), *_gears(found, loaded, fit)])


def judged_alone(found: PayloadEstimate, estimate: Estimate, *, weighed: bool, given: bool) -> PayloadEstimate:
    """Return a payload with the findings that need no log."""
    return _with(found, [*_unexplained(found, estimate), *(one for one in _alone(found, estimate, weighed, given)
                                                           if found.consistent or one.code != "payload-cannot-exist")])


def _with(found: PayloadEstimate, findings: list[Finding]) -> PayloadEstimate:
    worst = sorted(findings, key=lambda one: ("fatal", "warning", "info").index(one.severity))
    return replace(found, findings=tuple(worst))


def _alone(found: PayloadEstimate, estimate: Estimate, weighed: bool, given: bool) -> Iterator[Finding]:
    yield from _impossible(found)
    yield from _not_seen(found)
    yield from _gains(found, weighed, given)
    yield from _unidentified(found)
    yield from _too_much(found, estimate)


def _unexplained(found: PayloadEstimate, estimate: Estimate) -> Iterator[Finding]:
    own, error = estimate.diagnostics.relative_error, found.relative_error
    if error <= max(_MAX_ERROR_RATIO * own, own + _MIN_ERROR_PERCENT):
        return
    fatal = error > _UNEXPLAINED_PERCENT
    yield Finding(
        "payload-unexplained", "suspicious", "fatal" if fatal else "warning",
        f"With the payload the torque error is still {error:.0f} %, while it was {own:.1f} % for the unloaded robot: "
        "the robot, its mounting or the units differ, or more than a rigid load has changed.",
        "payload does not explain the torques", logs=found.logs,
        evidence={"relative_error": error, "unloaded_robot_error": own,
                  "without_payload": found.unloaded_error})


def _changed(
    found: PayloadEstimate, loaded: LoadedEquations, fit: LinearPayloadFit, unloaded: Unloaded
) -> Iterator[Finding]:
    if not found.free[9] > found.mass_std_from("noise"):
        return
    change = change_of(loaded, fit, unloaded)
    if change is None:
        return
    before, after = change.before, change.after
    yield Finding(
        "payload-changed", "suspicious", "fatal",
        f"The payload changes: about {max(before, 0.0):.2g} kg before {change.at:.4g} s of {change.log}, about "
        f"{max(after, 0.0):.2g} kg afterwards; cut the log there with --start or --stop.",
        "payload changed", logs=(change.log,),
        evidence={"at": change.at, "mass_before": before, "mass_after": after,
                  "std": float(change.std * found.free[9])})


def _impossible(found: PayloadEstimate) -> Iterator[Finding]:
    if not found.identified.all():
        return
    if not found.has_mass and found.free[9] > -_IMPOSSIBLE_STD * found.mass_std:
        return  # no load at all is the tip of the cone: whatever is left over of it points outside
    if not found.consistent:
        faults = list(ten.body_faults("payload", found.numbers)) if found.mass != 0 else []
        if faults:
            yield Finding("payload-cannot-exist", "suspicious", "warning",
                          f"These inertial parameters are not physically consistent: {faults[0].message}; request a "
                          "consistent payload.",
                          "payload not physically consistent", evidence={"amount": faults[0].amount})
        return
    without = found.covariance - found.parts.get("gains", 0.0)
    away = distance(found.free, found.numbers, without)
    if away > _IMPOSSIBLE_STD:
        yield Finding(
            "payload-cannot-exist", "suspicious", "warning",
            "The torques correspond to a payload that is not physically consistent; the "
            f"nearest consistent one differs by {away:.1f} standard deviations: check the "
            "frame, signs, drive gains, and whether the load is rigid.", "payload not physically "
                                                                                      "consistent",
            evidence={"deviations": away, "free_mass": float(found.free[9])})


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
            "A payload is seen, but these motions do not determine its mass: it is "
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
        "gains-decide", "suspicious", "warning" if large else "info",
        f"Drive gains dominate the uncertainty: {100 * np.sqrt(share):.0f} % of the standard error of the mass, "
        f"{found.mass_std_from('gains'):.2g} kg, comes from the gains ({100 * found.gain_deviation.max():.1f} %, "
        f"{whose}). Weigh the load and add `--mass KG`{advice}.", "gains decide",
        evidence={"share": float(share), "mass_std": found.mass_std, "from_gains": found.mass_std_from("gains")})


def _gears(found: PayloadEstimate, loaded: LoadedEquations, fit: LinearPayloadFit) -> Iterator[Finding]:
    """Yield a finding on friction that grows with the transmitted torque, if the robot's model does not have it."""
    shares = (fit.columns @ fit.x)[loaded.friction]
    own = fit.columns[loaded.friction]
    deviations = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", own, fit.inverse, own), 0.0))
    large = np.flatnonzero(shares > np.maximum(_MIN_LOAD_FRICTION, _SIGNIFICANT_STANDARD_ERRORS * deviations))
    if not found.has_mass or not len(large):
        return
    names = tuple(loaded.model.joint_names[j] for j in large)
    low, high = 100.0 * shares[large].min(), 100.0 * shares[large].max()
    yield Finding(
        "payload-friction", "suspicious", "info",
        f"Gears of {', '.join(names)} lose {low:.0f} to {high:.0f} % of the "
        "transmitted torque under this load, which the model does not "
        "contain; identify the robot again with --friction load.", "friction increases with load", joints=names,
        evidence={"share": tuple(float(x) for x in shares[large])})


def _unidentified(found: PayloadEstimate) -> Iterator[Finding]:
    names = [name for name, known in zip(ten.NAMES, found.identified, strict=True) if not known]
    if names:
        yield Finding("payload-not-identified", "not-excited", "warning",
                      f"These torques do not determine {', '.join(names)} "
                      "of the payload; orient it in more directions, and "
                      "move the joints that carry it.", "payload partly identified", parameters=tuple(names))


def _too_much(found: PayloadEstimate, estimate: Estimate) -> Iterator[Finding]:
    """Yield findings on a payload beyond the robot's limits: its stated payload, and the torque at full reach."""
    model = required_robot_model(estimate.model, "an estimate of a payload")
    limit = model.robot.payload
    if limit is not None and found.has_mass and found.mass > limit:
        yield Finding("payload-too-heavy", "suspicious", "warning",
                      f"The payload of {found.mass:.3g} kg is more than the {limit:g} kg that the file of robot "
                      f"'{model.robot.name}' allows.", "payload too heavy",
                      evidence={"mass": found.mass, "allowed": limit})
