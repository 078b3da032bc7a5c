"""Checks of the signals: joints at rest, constant torques, positions in the wrong unit or out of range, few data."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dynid.arrays import Array, Ints, true_ranges
from dynid.findings import Finding
from dynid.order_statistics import median
from dynid.quantities import percent_text
from dynid.recording.check import (
    Hang,
    decimal_step,
    hanging_positions,
    held_share,
    lost_rows,
    lost_torques,
    repeated_stretch,
)
from dynid.recording.preparation.selection import at_limit, found_limits
from dynid.validate import thresholds
from dynid.validate.hypotheses.signs import unsigned_misfit
from dynid.validate.joint_motion import JointMotion
from dynid.validate.verdict_checks.case import Case, each, suspect
from dynid.validate.words import joint_label, joints_listed, listed

_ENDLESS_RANGE = 4.0 * np.pi  # rad: assumed limit of a joint without limits
_IN_A_ROW = 5  # consecutive samples at a limit that count as saturated
_LOOKED_AT = 200_000  # rows of a log in which copies are searched, which limits memory
# Factors between units of speed: of velocities in deg/s, in rad/s with positions in degrees, and in rpm.
_SPEED_UNITS = (180.0 / np.pi, np.pi / 180.0, 30.0 / np.pi)
MAX_RANGES_SHOWN = 3  # row ranges in a sentence
MIN_CLOCK_ROWS = 10  # smallest number of rows over which positions and integrated velocities are compared


def joints_at_rest(case: Case) -> Iterator[Finding]:
    """Report joints that never moved, with the option that leaves out those whose torque is the same in every row."""
    still = [motion for motion in case.motions if not motion.moves]
    if still:
        names, widest = [motion.joint for motion in still], max(still, key=lambda motion: motion.range)
        who, width = joints_listed(names), f"{widest.range:.1g} {widest.unit}".strip()
        silent = [motion for j, motion in enumerate(case.motions) if not motion.moves and _constant(case, j)]
        options = " ".join(f"--lock {motion.joint}={motion.low:.6g}" for motion in silent)
        left_out = (f"; the torque of {joints_listed([motion.joint for motion in silent])} is the same in every row as "
                    f"well, so leave {'it' if len(silent) == 1 else 'them'} out: add {options}") if silent else ""
        yield suspect("joint-at-rest", "no motion", who,
                      f"{who} never moved (range {width}), so the data do not determine "
                      f"{'its' if len(still) == 1 else 'their'} own inertia and friction{left_out}", joints=names,
                      evidence={"range": _of_each([motion.range for motion in still])})


def _constant(case: Case, j: int) -> bool:
    """Whether the measured torque of joint j (from 0) is the same in every row of each log."""
    name = case.motions[j].joint
    return (not all(name in log.unmeasured for log in case.problem.data)
            and max(float(np.ptp(tau)) for tau in case.torques(j)) == 0.0)


def silent_torques(case: Case) -> Iterator[Finding]:
    """Report torques that are always zero, and constant torques of joints that move."""
    zero, constant = list[str](), dict[str, float]()
    for j, motion in enumerate(case.motions):
        if not _constant(case, j):
            continue
        torques = case.torques(j)
        if not any(np.any(tau) for tau in torques):
            zero.append(motion.joint)
        elif motion.moves:
            constant[motion.joint] = float(torques[0][0])
    for code, title, says, names in (("torque-zero", "no torque", "always zero", zero),
                                     ("torque-constant", "constant torque", "constant", [*constant])):
        if names:
            who, many = joints_listed(names), len(names) > 1
            yield suspect(code, title, who, f"the torque{'s' * many} of {who} {'are' if many else 'is'} {says}: check "
                          f"{'their columns' if many else 'its column'} (--set 'log.torque=[...]')", severity="fatal",
                          joints=names, evidence={"torque": _of_each([*constant.values()])} if code == "torque-constant"
                          else {})


def degrees_for_radians(case: Case) -> Iterator[Finding]:
    """Report positions far beyond the robot's range, as in degrees instead of radians."""
    far = _far(case)
    if far:
        worst = max(far, key=_reach)
        yield suspect("degrees-for-radians", "degrees for radians", joints_listed([m.joint for m in far]),
                      f"{joint_label(worst.joint)} reaches {_reach(worst):.3g} rad, far beyond its limits: positions "
                      "are probably in degrees: add --set log.unit=deg", severity="fatal",
                      joints=[m.joint for m in far],
                      evidence={"reach": each([_reach(m) for m in far])})


def beyond_limits(case: Case) -> Iterator[Finding]:
    """Report positions or velocities beyond the limits, unless the unit is wrong."""
    if _far(case):
        return
    beyond = [motion for motion in case.motions if _excess(motion) > thresholds.LIMIT_SLACK]
    fast = [motion for motion in case.motions if motion not in beyond and motion.velocity_limit is not None
            and motion.speed > thresholds.TOO_FAST_RATIO * motion.velocity_limit]
    if beyond:
        names, worst = [motion.joint for motion in beyond], max(beyond, key=_excess)
        yield suspect("position-beyond-limits", "beyond limits", joints_listed(names),
                      f"{joint_label(worst.joint)} goes from {worst.low:.3g} to {worst.high:.3g} {worst.unit}, beyond "
                      f"its limits{_and_others(names, worst)}: check sign, offset and unit of the positions, and that "
                      "the robot file is of this machine", joints=names,
                      evidence={"low": _of_each([motion.low for motion in beyond]),
                                "high": _of_each([motion.high for motion in beyond])})
    if fast:
        limits = [float(motion.velocity_limit or 0.0) for motion in fast]
        names, worst = [motion.joint for motion in fast], max(fast, key=lambda one: one.speed)
        yield suspect("velocity-beyond-limits", "velocity beyond limits", joints_listed(names),
                      f"{joint_label(worst.joint)} reaches {worst.speed:.3g} {worst.unit}/s, its limit is "
                      f"{worst.velocity_limit:.3g}{_and_others(names, worst)}: check the unit of position and the time "
                      "stamps", joints=names,
                      evidence={"speed": _of_each([motion.speed for motion in fast]), "limit": _of_each(limits)})


def _of_each(values: list[float]) -> float | tuple[float, ...]:
    """Return the numbers of several joints as evidence of a finding; for a single joint the number itself."""
    return values[0] if len(values) == 1 else each(values)


def _excess(motion: JointMotion) -> float:
    """Return how far a joint goes beyond its limits, rad or m; negative inside of them."""
    return max(-np.inf if motion.lower is None else motion.lower - motion.low,
               -np.inf if motion.upper is None else motion.high - motion.upper)


def _and_others(names: list[str], worst: JointMotion) -> str:
    """Return text that names the other joints of a finding, after the joint with the largest excess."""
    others = [name for name in names if name != worst.joint]
    return f", and so {'do' if len(others) > 1 else 'does'} {joints_listed(others)}" if others else ""


def encoders_stuck(case: Case) -> Iterator[Finding]:
    """Report encoders that are stuck while their joints move."""
    for log in case.problem.recordings:
        names = log.joints or case.problem.regression.joints
        hangs: dict[int, list[Hang]] = {}
        for one in hanging_positions(log.t, log.q):
            hangs.setdefault(one.joint, []).append(one)
        for j, own in hangs.items():
            seconds = sum(float(log.t[one.stop - 1] - log.t[one.start]) for one in own)
            start = float(log.t[own[0].start])
            yield suspect("encoder-stuck", "stuck encoder", joint_label(names[j]),
                          f"the position of {joint_label(names[j])} is stuck for {seconds:.2g} s from t = {start:.4g} "
                          f"s on while the joint moves: check the encoder and its bus; these rows of {log.source} are "
                          "not used", joints=[names[j]], logs=[log.source],
                          evidence={"seconds": seconds, "start": start, "times": float(len(own))})


def torques_saturated(case: Case) -> Iterator[Finding]:
    """Report torques that are saturated at a limit."""
    for log in case.problem.recordings:
        names = log.joints or case.problem.regression.joints
        lower, upper = found_limits(log.tau, _IN_A_ROW)
        share = at_limit(log.tau, lower, upper, _IN_A_ROW).mean(axis=0)
        for j in np.flatnonzero(share > thresholds.SATURATED_SHARE):
            limit = float(upper[j] if np.isfinite(upper[j]) else lower[j])
            yield suspect("torque-saturated", "saturated torque", joint_label(names[j]),
                          f"the torque of {joint_label(names[j])} is cut off at {limit:.4g} in "
                          f"{percent_text(100 * share[j])} of {log.source}: the drive or its log is saturated; these "
                          "rows are not used; move more slowly or with less load", joints=[names[j]], logs=[log.source],
                          evidence={"share": float(share[j]), "limit": limit})


def torques_lost(case: Case) -> Iterator[Finding]:
    """Report torques that are exactly zero in some rows because they were not measured."""
    for log in case.problem.recordings:
        names = log.joints or case.problem.regression.joints
        lost = lost_torques(log.q, log.tau)
        rows = np.asarray(lost.any(axis=1))
        if rows.any():
            who = [names[j] for j in np.flatnonzero(lost.any(axis=0))]
            all_of = "all torques are" if len(who) == log.dof > 1 else f"the torque of {joints_listed(who)} is"
            yield suspect("torque-lost", "lost torques", log.source,
                          f"{all_of} exactly 0 in {int(rows.sum())} of {len(rows)} rows of {log.source} while the "
                          f"robot moves ({_row_ranges(log.t, true_ranges(rows))}): the recorder probably wrote 0 for "
                          "a missing number; these rows are not used; record them, or write nan", joints=who,
                          logs=[log.source], evidence={"rows": float(rows.sum()), "share": float(rows.mean())})


def torques_unsigned(case: Case) -> Iterator[Finding]:
    """Report torques that never change sign, and whose joint's equations explain them far better if they do."""
    joints = []
    for j, motion in enumerate(case.motions):
        torques = [log.tau[:, j] for log in case.problem.recordings or case.problem.data]
        has_one_sign = not any(np.any(tau < 0.0) for tau in torques) or not any(np.any(tau > 0.0) for tau in torques)
        if motion.moves and has_one_sign and not _constant(case, j) \
                and unsigned_misfit(case.tests.rows, j) < 1.0 / thresholds.SWAP_RATIO:
            joints.append(motion.joint)
    if joints:
        who, many = joints_listed(joints), len(joints) > 1
        yield suspect("torque-unsigned", "unsigned torques", who,
                      f"the torque{'s' * many} of {who} never change{'s' * (not many)} sign, although the motion "
                      f"requires both signs: {'they are' if many else 'it is'} probably written as absolute values; "
                      "record torques with their sign", severity="fatal", joints=joints)


def rows_lost(case: Case) -> Iterator[Finding]:
    """Report rows that are missing although the time stamps are regular."""
    for log in case.problem.recordings:
        lost = lost_rows(log.t, log.q)
        if lost is not None:
            count = int(lost.counts.sum())
            places = np.column_stack([lost.rows - 1, lost.rows + 1])
            yield suspect("rows-lost", "lost rows", log.source,
                          f"all joints move a whole multiple of the distance between other rows at {len(lost.rows)} "
                          f"places of {log.source} ({_row_ranges(log.t, places)}): about {count} rows were lost "
                          "there and the time stamps were written anew. The stamps "
                          f"were corrected by the motion, which lasts {log.duration + lost.interval * count:.4g} s "
                          f"instead of {log.duration:.4g} s; record the time of each row", logs=[log.source],
                          evidence={"rows": float(count), "places": float(len(lost.rows)),
                                    "share": count / (len(log) + count)})


def _row_ranges(t: Array, ranges: Ints) -> str:
    """Return the first row ranges (k, 2), half-open and from 0, in words, as rows from 1 without the header."""
    shown = [f"row {start + 1}" if stop - start == 1 else f"rows {start + 1} to {stop}"
             for start, stop in ranges[:MAX_RANGES_SHOWN]]
    more = [f"{len(ranges) - MAX_RANGES_SHOWN} more places"] if len(ranges) > MAX_RANGES_SHOWN else []
    return f"{listed([*shown, *more])}, from {float(t[ranges[0][0]]):.4g} s on"


def rows_held(case: Case) -> Iterator[Finding]:
    """Report logs whose rows repeat the previous row in all signals while the robot moves."""
    for log in case.problem.recordings:
        share = held_share(log.q[:_LOOKED_AT], log.tau[:_LOOKED_AT])
        if share > thresholds.REPEATED_SHARE:
            yield suspect("rows-repeated", "repeated rows", log.source,
                          f"{percent_text(100 * share)} of the rows in motion of {log.source} repeat the previous row "
                          f"in every signal: the log was probably written {1.0 / (1.0 - share):.2g} times as fast as "
                          "it was measured, so standard errors are too small; write each measurement once",
                          logs=[log.source], evidence={"share": share})


def log_in_itself(case: Case) -> Iterator[Finding]:
    """Report logs with a part that occurs again to the last digit."""
    for log in case.problem.recordings:
        again = repeated_stretch(log.t[:_LOOKED_AT], log.q[:_LOOKED_AT], log.tau[:_LOOKED_AT])
        if again is not None:
            yield suspect("log-repeated", "repeated stretch", log.source,
                          f"{again.rows} rows of {log.source} occur again {again.after:.4g} s later to the last digit: "
                          "a part of the log was probably copied, so standard errors are too small; remove the "
                          "copy, for example with --stop", logs=[log.source],
                          evidence={"rows": float(again.rows), "after_s": again.after})


def positions_rounded(case: Case) -> Iterator[Finding]:
    """Report joints whose positions were rounded coarsely when they were written."""
    for log in case.problem.recordings:
        names = case.problem.regression.joints
        steps = {name: step for name, column in zip(names, log.q.T, strict=True)
                 if (step := decimal_step(column)) is not None}
        if steps:
            yield suspect("positions-rounded", "rounded positions", joints_listed(list(steps)),
                          f"positions of {joints_listed(list(steps))} come in steps of {max(steps.values()):g}, too "
                          "coarse for velocities and accelerations: write them with more digits", joints=list(steps),
                          logs=[log.source], evidence={"step": each(list(steps.values()))})


def clock_against_velocity(case: Case) -> Iterator[Finding]:
    """Report time stamps that contradict the measured velocity by one factor at all joints."""
    for log in case.problem.recordings:
        if log.dq is None or len(log) < 100 or lost_rows(log.t, log.q) is not None:
            continue
        # The travel over several rows reduces the effect of the error of a single time stamp.
        width = max(MIN_CLOCK_ROWS, len(log) // 500)
        travel = np.cumsum(0.5 * (log.dq[1:] + log.dq[:-1]) * np.diff(log.t)[:, None], axis=0)
        factors = []
        for j in range(log.dof):
            a, b = (x[width:, j] - x[:-width, j] for x in (log.q[1:], travel))
            if _correlated(a, b):
                factors.append(float(a @ b / (b @ b)))
        if not factors or np.ptp(factors) > thresholds.CLOCK_OFF * abs(median(factors)):
            continue
        factor = float(median(factors))
        unit = min(abs(factor * times - 1.0) for times in _SPEED_UNITS) < thresholds.CLOCK_OFF
        if abs(factor - 1.0) > thresholds.CLOCK_OFF and factor > 0 and not unit:
            yield suspect("time-scale", "time stamps", log.source,
                          f"time stamps of {log.source} are probably wrong by a factor: positions "
                          f"change {factor:.3g} times as fast as the measured velocity; check the "
                          "unit of the time (--set log.time_unit=ms) and the rate", logs=[log.source],
                          evidence={"factor": factor})


def velocities_for_positions(case: Case) -> Iterator[Finding]:
    """Report position columns that probably hold velocities: they equal the measured velocities, or they are the
    derivatives of the velocity columns."""
    for log in case.problem.recordings:
        if log.dq is None or len(log) < 100:
            continue
        moving = np.flatnonzero((np.ptp(log.q, axis=0) > 0.0) & (np.ptp(log.dq, axis=0) > 0.0))
        equal = [_correlated(log.q[:, j], log.dq[:, j]) for j in moving]
        exchanged = [_correlated(log.q[:, j], np.gradient(log.dq[:, j], log.t)) for j in moving]
        derived = [_correlated(np.gradient(log.q[:, j], log.t), log.dq[:, j]) for j in moving]
        if len(moving) and not any(derived) and (all(equal) or all(exchanged)):
            what = "equal its velocities" if all(equal) else "are the derivatives of its velocities"
            names = case.problem.regression.joints
            yield suspect("velocities-for-positions", "velocities for positions", log.source,
                          f"the positions of {log.source} {what}: the position columns probably hold velocities (--set "
                          "'log.position=[...]')", severity="fatal", joints=[names[j] for j in moving],
                          logs=[log.source])


def _correlated(a: Array, b: Array) -> bool:
    """Whether two signals (rows,) vary, and almost in proportion to each other."""
    return bool(np.ptp(a) > 0.0 and np.ptp(b) > 0.0 and np.corrcoef(a, b)[0, 1] > thresholds.CLOCK_CORRELATION)


def cutoff_too_high(case: Case) -> Iterator[Finding]:
    """Report a given cut-off at which more of the accelerations is position noise than motion."""
    if case.cutoff is not None and case.cutoff.is_chosen:  # cross-validation chose this cut-off
        return
    for log in case.problem.data:
        cutoff = log.settings.get("cutoff")
        spectra = [*log.spectrum.values()]
        if not isinstance(cutoff, float | int) or len(spectra) != log.dof or log.settings.get("velocity") == "measured":
            continue
        wanted = [one["cutoff"] for one in spectra if one.get("cutoff") is not None]
        noise = np.array([one.get("noise_floor") or 0.0 for one in spectra])
        # Power of accelerations by white position noise, differentiated twice, up to the cut-off.
        share = noise * (2.0 * np.pi) ** 4 * cutoff ** 5 / 5.0 / np.maximum(np.mean(log.ddq ** 2, axis=0), 1e-300)
        if wanted and cutoff > max(wanted) and float(median(share)) > thresholds.NOISE_ACCELERATION:
            yield suspect("cutoff-too-high", "cut-off", f"{cutoff:g} Hz",
                          f"the cut-off of {cutoff:g} Hz is too high for {log.source}: about "
                          f"{100 * min(float(median(share)), 1.0):.0f} % of the power of its accelerations is noise "
                          f"of the positions, and the motion ends at about {median(wanted):.2g} Hz; leave --cutoff "
                          f"out, or give --cutoff {median(wanted):.2g}", severity="fatal", logs=[log.source],
                          evidence={"cutoff": float(cutoff), "noise_share": each(np.minimum(share, 1.0))})


def _reach(motion: JointMotion) -> float:
    return max(abs(motion.low), abs(motion.high))


def _far(case: Case) -> list[JointMotion]:
    """Return the revolute joints that moved several times as far as their limits allow."""
    def limit(motion: JointMotion) -> float:
        return max((abs(x) for x in (motion.lower, motion.upper) if x is not None), default=_ENDLESS_RANGE)

    return [motion for motion in case.motions if motion.unit == "rad" and motion.moves
            and _reach(motion) > thresholds.DEGREES_LIMIT_RATIO * limit(motion)]


def too_few_samples(case: Case) -> Iterator[Finding]:
    """Report too few equations, or too few independent ones, for the number of base parameters."""
    rows, base = sum(case.problem.regression.rows), len(case.problem.base)
    effective = sum(case.estimate.uncertainty.facts.get("effective_rows_per_joint", case.problem.regression.rows))
    effective = min(float(effective), case.most_independent)
    evidence = {"equations": float(rows), "independent": effective, "base_parameters": float(base)}
    if rows < thresholds.MIN_EQUATIONS * base:
        yield suspect("too-few-samples", "too few samples", "data",
                      f"{rows} equations are few for {base} base parameters: record a longer motion",
                      severity="fatal", evidence=evidence)
    elif effective < thresholds.MIN_INDEPENDENT * base:
        yield suspect("few-independent-samples", "few independent samples", "data",
                      f"{rows} equations contain only the information of {effective:.0f} independent equations, few "
                      f"for {base} base parameters: record a longer motion", evidence=evidence)


def badly_conditioned(case: Case) -> Iterator[Finding]:
    """Report a regressor with nearly collinear scaled columns."""
    condition = float(case.estimate.diagnostics.get("condition", 0.0))
    if condition > thresholds.MAX_CONDITION:
        yield suspect("badly-conditioned", "condition number", "data",
                      f"the condition number is {condition:.3g} (columns scaled; below "
                      f"{thresholds.MAX_CONDITION:g} is good): "
                      "with noise, some parameters cannot be distinguished; use an exciting trajectory (dynid excite)",
                      evidence={"condition": condition})
