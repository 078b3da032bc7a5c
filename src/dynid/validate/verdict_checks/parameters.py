"""Checks of the values: negative friction or inertia, large offsets, inconsistent links, energy gained in free fall."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import NormalDist

import numpy as np

from dynid.findings import Evidence, Finding
from dynid.model import complete, least_inertia, robot_model, split_regressor
from dynid.model.parameters import VISCOUS
from dynid.regression.equations import unmeasured_joints
from dynid.validate import thresholds
from dynid.validate.friction_shape import friction_at, velocity_friction
from dynid.validate.physical import FreeFall
from dynid.validate.verdict_checks.case import Case, each, suspect
from dynid.validate.words import joints_listed, listed, span

NEGATIVE_TOLERANCE = 1e-9  # relative to the largest value
_INERTIA_POSTURES = 200  # postures of a log at which the inertia matrix is tested
_CHECKED_SPEED_COUNT = 25  # speeds in each direction at which friction is tested
_FRICTION_MIN_SPEED = 1e-2  # share of the top speed, below which friction is not tested

# By group of the parameter's kind: code, title, and why it cannot be negative.
_NEGATIVE = {
    "body": ("unphysical-inertia", "unphysical inertia", "which is physically impossible; use --method pc-wls"),
    "rotor": ("negative-rotor-inertia", "negative rotor inertia",
              "which is physically impossible; it probably compensates an error of the inertias"),
    "friction": ("negative-friction", "negative friction",
                 "so friction would add energy; the friction terms of {} do not fit, or the motion is too slow or too "
                 "short to distinguish them"),
    "stiffness": ("negative-stiffness", "negative stiffness", "which is physically impossible; check the signs of {}"),
}
_NEGATIVE_OTHER = ("negative-parameter", "negative parameter", "which its term excludes; check the signs of {}")
CONDITION_TOLERANCE = 1e-9  # kg, kg m^2 or N m s: tolerance of a condition


def negative_parameters(case: Case) -> Iterator[Finding]:
    """Report significantly negative friction and rotor inertia, and relevant negative diagonal inertias."""
    estimate, items = case.estimate, case.estimate.base.parameters.items
    for (code, title, why), below in _negative(case).items():
        places = [i for i in below if _material(case, i)]
        if not places:
            continue
        leading = [items[estimate.base.independent[i]] for i in places]
        names = [estimate.names[i] for i in places]
        joints = [*dict.fromkeys(case.problem.regression.joints[one.owner] for one in leading)]
        values = listed([f"{estimate.names[i]} ({one.kind.words}, {estimate.values[i]:.3g} +- {estimate.std[i]:.1g} "
                         f"{estimate.base.units[i]})" for i, one in zip(places, leading, strict=True)])
        yield suspect(code, title, ", ".join(names),
                      f"{values} {'is' if len(places) == 1 else 'are'} negative, {why.format(joints_listed(joints))}",
                      joints=joints, parameters=names,
                      evidence={"value": each(estimate.values[places]), "std": each(estimate.std[places])})


def _negative(case: Case) -> dict[tuple[str, str, str], list[int]]:
    """Return negative base parameters that must be positive, grouped by finding."""
    estimate = case.estimate
    items = estimate.base.parameters.items
    found: dict[tuple[str, str, str], list[int]] = {}
    least = np.maximum(thresholds.NEGATIVE_STANDARD_ERRORS * estimate.std,
                       NEGATIVE_TOLERANCE * max(1.0, float(np.abs(estimate.values).max(initial=0.0))))
    for i in np.flatnonzero(estimate.identified & estimate.base.never_negative & (estimate.values <= -least)):
        kind = items[estimate.base.independent[i]].kind
        found.setdefault(_NEGATIVE.get(kind.group, _NEGATIVE_OTHER), []).append(int(i))
    return found


def _material(case: Case, i: int) -> bool:
    """Whether the negative base parameter i is significant, given the number of tests. An inertia must also affect some
    joint's torque enough, because position noise shifts small ones by more than their standard errors."""
    estimate, regression = case.estimate, case.problem.regression
    items, base = estimate.base.parameters.items, estimate.base
    tried = sum(items[c].never_negative for c in base.independent)
    if estimate.values[i] > NormalDist().inv_cdf(thresholds.VALUE_FALSE_ALARM / max(tried, 1)) * estimate.std[i]:
        return False
    if base is not regression.base or items[base.independent[i]].kind.group != "body":
        return True
    shares = [np.linalg.norm(factor.r[:, :-1][:, factor.columns == i]) * abs(estimate.values[i])
              / max(np.sqrt(factor.power), 1e-300) for factor in regression.factors]
    return max(shares) > thresholds.RELEVANT_TORQUE


def pushing_friction(case: Case) -> Iterator[Finding]:
    """Report joints whose total friction adds energy at some speed of the log by more than its standard error, although
    no parameter has the wrong sign: those of the Stribeck effect may be negative."""
    estimate = case.estimate
    if not case.problem.data or robot_model(estimate.model) is None or _NEGATIVE["friction"] in _negative(case):
        return
    own, found = velocity_friction(estimate), {}
    free = np.array([not item.never_negative for item in estimate.model.parameters])
    for j, name in enumerate(case.problem.regression.joints):
        top = max((float(np.abs(part.dq[:, j]).max(initial=0.0)) for part in case.problem.data), default=0.0)
        if not (own[j] & free).any() or not top > 0.0 or case.at_rest(j):
            continue
        speeds = top * np.geomspace(_FRICTION_MIN_SPEED, 1.0, _CHECKED_SPEED_COUNT)
        speeds = np.concatenate([-speeds, speeds])
        torque, deviation = friction_at(estimate, j, own[j], speeds)
        push = -np.sign(speeds) * torque - thresholds.NEGATIVE_STANDARD_ERRORS * deviation
        if push.max() > NEGATIVE_TOLERANCE * np.abs(torque).max():
            found[name] = float(speeds[int(np.argmax(push))])
    if found:
        who, at = joints_listed([*found]), listed([f"{speed:.3g}" for speed in found.values()])
        yield suspect(_NEGATIVE["friction"][0], _NEGATIVE["friction"][1], who,
                      f"the friction of {who} would add energy, most at speeds of {at} rad/s or m/s: its shape has "
                      "more freedom than the data determine; use a friction that always dissipates, such as --friction "
                      "curve or exponential-stribeck", joints=[*found], evidence={"speed": each([*found.values()])})


def driving_friction(case: Case) -> Iterator[Finding]:
    """Report joints whose offset exceeds their Coulomb friction significantly: together they would accelerate the joint
    at low speed in one direction (Ardiani, C.5.1). Offsets that are most of the torque are excluded."""
    estimate, parameters = case.estimate, case.estimate.base.parameters
    if not case.problem.data or robot_model(estimate.model) is None or _NEGATIVE["friction"] in _negative(case):
        return
    known, found = {int(c) for c in estimate.base.independent[estimate.identified]}, []
    dry = np.array([item.kind != VISCOUS for item in parameters])
    for j, (own, name) in enumerate(zip(velocity_friction(estimate), case.problem.regression.joints, strict=True)):
        offsets = np.array([item.kind.group == "offset" and item.owner == j for item in parameters])
        columns = {int(c) for c in np.flatnonzero(own | offsets)}
        if case.at_rest(j) or not (own & dry).any() or not offsets.any() or not columns <= known:
            continue
        top = max(float(np.abs(part.dq[:, j]).max(initial=0.0)) for part in case.problem.data)
        value = float(estimate.full[offsets].sum())
        speeds = -np.sign(value) * top * np.geomspace(_FRICTION_MIN_SPEED, 1.0, _CHECKED_SPEED_COUNT)
        torque, deviation = friction_at(estimate, j, own | offsets, speeds)
        drive = np.sign(value) * torque  # both oppose the motion, or both drive it
        push = drive - thresholds.CLEAR_STANDARD_ERRORS * deviation
        rms = case.reconstruction.joints[j].torque_rms or 0.0
        is_large = abs(value) > thresholds.LARGE_OFFSET * rms
        if push[0] > 0.0 and drive[0] > thresholds.RELEVANT_TORQUE * rms and not is_large:
            friction = float(np.abs(friction_at(estimate, j, own, speeds[:1])[0][0]))
            found.append((name, [parameters.items[c].name for c in np.flatnonzero(offsets)], abs(value), friction,
                          float(deviation[0]), float(np.abs(speeds[push > 0.0]).max())))
    if found:
        joints = [one[0] for one in found]
        names = [text for one in found for text in one[1]]
        values = listed([f"{one[2]:.3g} N m or N against {one[3]:.3g}" for one in found])
        yield suspect("driving-friction", "friction that adds energy", ", ".join(names),
                      f"the offset of {joints_listed(joints)} is above the Coulomb friction, {values}: in slow motion "
                      "friction would add energy; check the zero of the sensor or current, or use --friction "
                      "asymmetric-coulomb with --method pc-wls",
                      joints=joints, parameters=names, evidence={
                          "offset": each([one[2] for one in found]), "friction": each([one[3] for one in found]),
                          "std": each([one[4] for one in found]), "speed": each([one[5] for one in found])})


def indefinite_inertia(case: Case) -> Iterator[Finding]:
    """Report an indefinite inertia matrix at a recorded posture, unless a negative inertia explains it."""
    estimate, model, samples = case.estimate, complete(case.estimate.model), case.problem.data
    if not samples or not estimate.identified.all() or _NEGATIVE["body"] in _negative(case):
        return
    if unmeasured_joints(samples) and estimate.theta is None:
        return  # the data do not determine the inertia of these joints alone
    q = np.concatenate([part.q[np.linspace(0, len(part) - 1, min(_INERTIA_POSTURES, len(part))).astype(int)]
                        for part in samples])
    matrices = model.inertia_matrix(estimate.full, q)
    if not np.allclose(matrices, np.swapaxes(matrices, 1, 2), rtol=0.0, atol=1e-6 * np.abs(matrices).max()):
        return  # each coordinate of such a model has no torque of its own
    shares, directions = least_inertia(matrices)
    negative = shares < -NEGATIVE_TOLERANCE
    if not negative.any():
        return
    worst = int(np.argmin(shares))
    v = directions[worst]
    # v' M v is linear in the parameters, so its standard error follows from their covariance.
    _, units = split_regressor(model, q[worst:worst + 1], np.zeros((1, len(v))))
    gradient = np.einsum("k,kjp,j->p", v, units[0], v)
    value = float(gradient @ estimate.full)
    own = gradient[estimate.base.independent]
    std = float(np.sqrt(max(float(own @ estimate.covariance @ own), 0.0)))
    if value < -thresholds.NEGATIVE_STANDARD_ERRORS * std:
        yield suspect("indefinite-inertia", "unphysical inertia", "inertia matrix",
                      f"the inertia matrix is not positive definite in {100 * negative.mean():.0f} % of the recorded "
                      "postures: the estimate cannot be simulated; use --method pc-wls",
                      evidence={"share": float(negative.mean()), "eigenvalue": value, "std": std})


def large_offsets(case: Case) -> Iterator[Finding]:
    """Report offsets that are most of a moving joint's torque."""
    estimate, found = case.estimate, []
    items = estimate.base.parameters.items
    for i, c in enumerate(estimate.base.independent):
        if case.at_rest(items[c].owner) or items[c].kind.group != "offset" or not estimate.identified[i]:
            continue
        fit = case.reconstruction.joints[items[c].owner]
        torque, value = fit.torque_rms or 0.0, abs(float(estimate.values[i]))
        least = max(thresholds.LARGE_OFFSET * torque, thresholds.CLEAR_STANDARD_ERRORS * float(estimate.std[i]))
        if torque > 0 and value > least:
            found.append((estimate.names[i], value / torque, fit.name))
    if found:
        names, parts, joints = ([*column] for column in zip(*found, strict=True))
        which, are = ("offsets", "are") if len(found) > 1 else ("offset", "is")
        yield suspect("large-offset", "large offset", ", ".join(names),
                      f"the {which} {listed(names)} {are} {span([100.0 * x for x in parts])} of the torque of "
                      f"{joints_listed(joints)}: check the zero of the sensor or current", joints=joints,
                      parameters=names, evidence={"share": each(parts)})


def impossible_links(case: Case) -> Iterator[Finding]:
    """Report links, friction or rotors that are not physically consistent, if the estimate has all parameters."""
    wrong = [] if case.physics is None else [one for one in case.physics.violations if one.amount > CONDITION_TOLERANCE]
    if wrong:
        names = list(dict.fromkeys(one.link for one in wrong))
        yield suspect("impossible-links", "impossible links", listed(names),
                      f"{listed(names, 6)} {'is' if len(names) == 1 else 'are'} not physically "
                      f"consistent ({wrong[0].message}): a simulator may refuse the robot or become "
                      "unstable; use --method pc-wls", parameters=names,
                      evidence={"amount": each([one.amount for one in wrong])})


def energy_grows(case: Case) -> Iterator[Finding]:
    """Report a robot that gains energy, or diverges, in free fall without torques. The finding is a remark if friction
    at speeds above those of the log is the reason."""
    if case.physics is None or case.physics.fall is None or case.physics.fall.stable:
        return
    fall = case.physics.fall
    evidence: Evidence = {"energy_growth": fall.growth, "energy_in_play": fall.in_play, "seconds": float(fall.t[-1])}
    if case.physics.positive_share == 1.0 and _is_stable_at_logged_speeds(case, fall):
        yield Finding("energy-grows", "validation", "info",
                      "In free fall the model gains energy once a joint is faster than in the log, because friction "
                      "is not determined at such speeds: simulate only motions within the speeds of the log, or record "
                      "a faster one.", "free fall (robot)", evidence=evidence)
        return
    yield suspect("energy-grows", "free fall", "robot",
                  f"released without joint torques, the identified robot does not conserve energy: {fall.sentence}",
                  evidence=evidence)


def _is_stable_at_logged_speeds(case: Case, fall: FreeFall) -> bool:
    """Whether the energy does not increase before some joint is faster than in the logs."""
    if not case.problem.data:
        return False
    top = np.max([np.abs(log.dq).max(axis=0) for log in case.problem.data], axis=0)
    faster = np.flatnonzero(np.any(np.abs(fall.dq) > top, axis=1))
    return len(faster) > 0 and fall.until(int(faster[0])).stable
