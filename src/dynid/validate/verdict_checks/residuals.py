"""Checks of the residuals: their structure, autocorrelation without a cause, outliers, unexplained torques."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dynid.arrays import Array, Bools
from dynid.estimate.robust import tukey
from dynid.findings import Finding
from dynid.model.delay import DELAY
from dynid.order_statistics import distinct, median
from dynid.validate import thresholds
from dynid.validate.candidates import BACKLASH, CandidateFit
from dynid.validate.residual_statistics import JointTests
from dynid.validate.sampled_rows import SampledRows
from dynid.validate.verdict_checks.case import Case, each, suspect
from dynid.validate.verdict_checks.second_fit import without_constraints
from dynid.validate.words import joints_listed, listed, sentence, span

_ROBUST_BLOCKS = 10  # blocks of time: even ones are predicted from odd ones, and odd ones from even ones
_REWEIGHTING_STEPS = 12  # iterations of reweighting
OUTLIER_STD = 4.0  # robust standard deviations beyond which a residual is an outlier
_SLOWER_ERRORS = 2.0  # standard errors by which outliers must be slower than random rows to be due to reversals
_NORMAL_MAD = 0.6745  # median absolute deviation of a standard normal distribution


def residuals_followed(case: Case) -> Iterator[Finding]:
    """Report the structure of residuals that a missing or too simple term explains, with one finding for all joints
    with the same structure. Backlash is reported with the causes, because its gap is estimated there."""
    groups: dict[tuple[str, str | None], list[tuple[JointTests, CandidateFit]]] = {}
    several = sum(not case.at_rest(j) for j in range(len(case.tests.joints))) > 1
    for joint in case.tests.joints:
        cause = joint.explained_by
        if cause is not None and cause.candidate != BACKLASH and not (cause.candidate == "delay" and several):
            groups.setdefault((cause.candidate, cause.neighbour), []).append((joint, cause))
    for members in groups.values():
        (first, cause), causes = members[0], [cause for _, cause in members]
        joints = [joint.joint for joint, _ in members]
        who = joints_listed(joints)
        evidence = {"share": each([one.share for one in causes]), "torque": each([one.torque for one in causes]),
                    "strength": each([one.strength for one in causes])}
        if all(one.coefficient is not None for one in causes):
            evidence["coefficient"] = each([one.coefficient or 0.0 for one in causes])
            evidence["std"] = each([one.std or 0.0 for one in causes])
        text = first.notes[0].text
        if len(members) > 1:
            shares = span([100 * one.share for one in causes])
            text = f"the residuals of {who} {cause.seen_by_several}: {cause.hint} ({shares} of them)"
        yield suspect(f"residual-follows-{cause.candidate}", f"residual follows {cause.title}", who, text,
                      joints=joints, evidence=evidence)


def torques_late(case: Case) -> Iterator[Finding]:
    """Report a delay that the joints share, whether the model has a term for it or not, or the delays of single joints.

    A delay of the log is the same for all joints, while friction at reversals and filters of drives give each joint an
    apparent delay of its own. So the common delay is the mean of a random-effects model, whose standard error contains
    the spread between joints. This mean must significantly exceed one sample, or the usual lead of logged commands if
    torques precede the motion. A delay must also be the best explanation of most joints' residuals. It is reported even
    if its effect on the torques is small, because it limits the use of the estimate for faster motions.
    """
    if not case.problem.data:
        return
    modelled, late = _modelled_delays(case), _delays(case)
    period = 1.0 / min(log.rate for log in (case.problem.recordings or case.problem.data))
    moving = [test for j, test in enumerate(case.tests.joints) if not case.at_rest(j)]
    best = {test.joint for test in moving if test.follows and test.follows[0].candidate == "delay"} | modelled.keys()
    if len(late) > 1 and 2 * len(best) > len(moving):
        mean, std = common_value(np.array([*late.values()]))
        # A commanded torque is applied for a period, and its motion is logged one period later: this lead is normal.
        usual = period * (1.0 if mean > 0 else thresholds.COMMAND_PERIODS)
        if abs(mean) - thresholds.CERTAIN_STANDARD_ERRORS * std > usual:
            yield _late_together(mean, std, late, bool(modelled))
            return
    alone = {test.joint: late[test.joint] for test in moving if test.joint in late and len(moving) > 1
             and test.explained_by is not None and test.explained_by.candidate == "delay"} | modelled
    alone = {joint: (x, std) for joint, (x, std) in alone.items()
             if abs(x) > max(period, thresholds.CERTAIN_STANDARD_ERRORS * std)}
    if alone:
        yield _late_alone(alone)


def _delays(case: Case) -> dict[str, tuple[float, float]]:
    """Return delays (s) and standard errors of the moving joints, from delay terms of the model or residuals."""
    found = {test.joint: (-fit.coefficient, fit.std) for j, test in enumerate(case.tests.joints) if not case.at_rest(j)
             for fit in test.follows if fit.candidate == "delay" and fit.coefficient is not None and fit.std}
    return found | _modelled_delays(case)


def _modelled_delays(case: Case) -> dict[str, tuple[float, float]]:
    """Return the delays (s) of joints that the model has a term for, with standard errors."""
    estimate, names = case.estimate, case.problem.regression.joints
    return {names[item.owner]: (float(estimate.values[i]), float(estimate.std[i]))
            for i, c in enumerate(estimate.base.independent)
            if (item := estimate.base.parameters.items[c]).kind == DELAY and estimate.identified[i]}


def common_value(values: Array) -> tuple[float, float]:
    """Return the mean and its standard error of a random-effects model of values with standard errors (n, 2).

    The variance between the values is that of DerSimonian and Laird (1986).
    """
    x, variance = values[:, 0], np.maximum(values[:, 1], 1e-300) ** 2
    weight = 1.0 / variance
    fixed = float(weight @ x / weight.sum())
    excess = float(weight @ (x - fixed) ** 2) - (len(x) - 1)
    between = max(0.0, excess / float(weight.sum() - weight @ weight / weight.sum()))
    weight = 1.0 / (variance + between)
    return float(weight @ x / weight.sum()), float(weight.sum() ** -0.5)


def _late_together(mean: float, std: float, late: dict[str, tuple[float, float]], modelled: bool) -> Finding:
    """Return the finding on a common delay (s) with its standard error, from the delays of each joint."""
    direction = "later" if mean > 0 else "earlier"
    term = "the model has a delay term, but this is a fault of the log: " if modelled else ""
    return suspect("residual-follows-delay", "delay", joints_listed([*late]),
                   f"the torques come {1e3 * abs(mean):.3g} ms {direction} than the motion (95 % interval "
                   f"{_intervals([(mean, std)])} ms), at all joints alike; {term}correct the time stamps of the "
                   "torques",
                   joints=[*late], evidence={"coefficient": each([-x for x, _ in late.values()]),
                                             "std": each([error for _, error in late.values()]),
                                             "common": mean, "common_std": std})


def _late_alone(late: dict[str, tuple[float, float]]) -> Finding:
    """Return a remark on delays (s) with standard errors of a few joints only.

    A fault of the log would delay all joints, so friction or the filter of a drive is as probable.
    """
    names = tuple(late)
    times = listed([f"{1e3 * x:.3g} ms" for x, _ in late.values()], 4)
    return Finding("residual-follows-delay", "validation", "info", sentence(
        f"the torque of {joints_listed(names)} follows the motion with a delay of {times} (95 % intervals "
        f"{_intervals([*late.values()])} ms), and the torques of the other joints do not: the cause may be friction "
        "at reversals, a filter of the drive, or wrong time stamps"), f"delay ({joints_listed(names)})", names,
        evidence={"coefficient": each([-x for x, _ in late.values()]), "std": each([std for _, std in late.values()])})


def _intervals(late: list[tuple[float, float]]) -> str:
    """Return the 95 % intervals of delays from their standard errors (s), in milliseconds."""
    return listed([f"{1e3 * (abs(x) - 1.96 * std):.3g} to {1e3 * (abs(x) + 1.96 * std):.3g}" for x, std in late], 4)


def residuals_autocorrelated(case: Case) -> Iterator[Finding]:
    """Report autocorrelated residuals that neither a candidate cause nor position noise explains; derivatives and
    filters make position noise predictable. Autocorrelation due to constraints of the method is not reported."""
    found = _predictable(case)
    free = without_constraints(case, found) if found else case
    if free is not case:
        found = {joint: share for joint, share in found.items() if joint in _predictable(free)}
    if found:
        shares, who = span([100 * share for share in found.values()]), joints_listed([*found])
        which, are, them = ("residuals", "are", "them") if len(found) > 1 else ("residual", "is", "it")
        yield suspect("residuals-autocorrelated", "autocorrelated residual", who,
                      f"the {which} of {who} {are} autocorrelated: {shares} of {them} can be predicted from the past, "
                      "so some dynamics are not modelled. The standard errors include this effect; the report plots "
                      "the residuals",
                      joints=[*found], evidence={"predictable": each([*found.values()])})


def _predictable(case: Case) -> dict[str, float]:
    """Return the joints with a relevant, unexplained, predictable residual, and the predictable share."""
    return {joint.joint: joint.whiteness.predictable for joint in case.tests.joints
            if joint.explained_by is None and joint.whiteness is not None and joint.whiteness.autocorrelated
            and joint.whiteness.predictable - (joint.noise or 0.0) > thresholds.AUTOCORRELATED_SHARE
            and _matters(case, joint.joint, joint.whiteness.predictable)}


def residual_outliers(case: Case) -> Iterator[Finding]:
    """Report residuals with many outliers, if a robust method predicts other rows better."""
    found = {joint.joint: joint.normality.beyond for joint in case.tests.joints
             if joint.normality is not None and joint.normality.shape == "outliers" and _matters(case, joint.joint)}
    if case.problem.data:
        names = case.problem.regression.joints
        found = {joint: share for joint, share in found.items()
                 if robust_predicts_better(case.tests.rows, names.index(joint))}
    if found:
        shares, who = span([100 * share for share in found.values()]), joints_listed([*found])
        which, have = ("residuals", "have") if len(found) > 1 else ("residual", "has")
        yield suspect("residual-outliers", "outliers", who,
                      f"the {which} of {who} {have} outliers ({shares} of the rows), and a robust method has a "
                      f"better cross-validation error: use --method {robust_method(case.estimate.method)}",
                      joints=[*found], evidence={"beyond": each([*found.values()])})


def robust_method(method: str) -> str:
    """Return the robust method that a finding advises in place of a method: physically consistent if that one is."""
    return "pc-irls" if method.startswith("pc-") else "irls"


def _matters(case: Case, joint: str, share: float = 1.0) -> bool:
    """Whether a share of a joint's squared residual is relevant to its torque."""
    fit = next(fit for fit in case.reconstruction.joints if fit.name == joint)
    return (fit.rms or 0.0) * share ** 0.5 > thresholds.MATERIAL_RESIDUAL * (fit.torque_rms or 0.0)


def torques_unexplained(case: Case) -> Iterator[Finding]:
    """Report joints whose torque variation is not explained, except joints at rest or with a known missing term."""
    found = {fit.name: fit.r2 for j, (fit, test) in enumerate(zip(case.reconstruction.joints, case.tests.joints,
                                                                  strict=True))
             if fit.r2 is not None and fit.r2 < thresholds.LOW_R2 and not case.at_rest(j) and test.explained_by is None}
    if found:
        who, shares = joints_listed([*found]), span([100 * max(r2, 0.0) for r2 in found.values()])
        yield suspect("low-r2", "low R2", who,
                      f"the model explains only {shares} of the variance of the torque of {who}", joints=[*found],
                      evidence={"r2": each([*found.values()])})


def robust_predicts_better(rows: SampledRows, j: int) -> bool:
    """Whether a robust fit of joint j's own equations has a smaller cross-validation error than least squares.

    The comparison uses the median absolute residual, which outliers do not affect. Large residuals at low speeds are no
    outliers: a filter rounds the jump of Coulomb friction at reversals, and a fit without these rows ignores friction.
    """
    use = rows.keep[:, j]
    speed, size = np.abs(rows.dq[use, j]), np.abs(rows.residual[use, j])
    far = size > OUTLIER_STD * median(size) / _NORMAL_MAD if len(size) else np.zeros(0, dtype=bool)
    if not far.any() or _at_reversals(speed, far):
        return False
    columns, tau = rows.columns[j][use], rows.measured[use, j]
    stretch = np.arange(len(tau)) * _ROBUST_BLOCKS // max(len(tau), 1)
    ratios: list[float] = []
    for part in (0, 1):
        own = stretch % 2 == part
        if own.sum() < 2 * columns.shape[1] + 10:
            return False
        plain, robust = _fitted(columns[own], tau[own])
        for held in distinct(stretch[~own]):
            rest = [float(median(np.abs((tau - columns @ value)[stretch == held]))) for value in (plain, robust)]
            if rest[0] > 0:
                ratios.append(rest[1] / rest[0])
    return bool(ratios) and float(np.mean(np.array(ratios) < 1.0)) >= thresholds.PATTERN_BLOCKS \
        and float(median(ratios)) < 1.0 - thresholds.ROBUST_GAIN


def _at_reversals(speed: Array, far: Bools) -> bool:
    """Return whether outliers (rows,) occur at significantly lower speeds (rows,) than other rows.

    Consecutive outliers are one event. The speeds of events at random times have every rank with equal probability.
    """
    rank = np.searchsorted(np.sort(speed), speed[far], side="right") / len(speed)
    event = np.cumsum(np.diff(np.flatnonzero(far), prepend=-2) > 1) - 1
    ranks = np.bincount(event, rank) / np.bincount(event)
    return bool(ranks.mean() < 0.5 - _SLOWER_ERRORS / np.sqrt(12.0 * len(ranks)))


def _fitted(columns: Array, tau: Array) -> tuple[Array, Array]:
    """Return values by least squares, and by a robust fit: least absolute residuals, then Tukey's biweight."""
    size = np.linalg.norm(columns, axis=0)
    size = np.where(size > 0, size, 1.0)
    wide = columns / size

    def solve(weight: Array) -> Array:
        root = np.sqrt(weight)
        return np.asarray(np.linalg.lstsq(wide * root[:, None], tau * root, rcond=1e-6)[0], dtype=float)

    plain = value = solve(np.ones(len(tau)))
    loss = tukey()
    for step in range(_REWEIGHTING_STEPS):
        rest = tau - wide @ value
        scale = max(float(median(np.abs(rest))) / _NORMAL_MAD, 1e-12 * float(np.abs(tau).max()) + 1e-300)
        is_first = step < _REWEIGHTING_STEPS // 2
        value = solve(1.0 / np.maximum(np.abs(rest), 0.1 * scale) if is_first else loss.weight(rest / scale))
    return plain / size, value / size
