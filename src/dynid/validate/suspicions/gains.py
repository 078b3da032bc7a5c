"""Suspicions of the drives: a joint whose torque has another scale or sign than the others or the nominal model.

A wrong gain makes other things look wrong too. So the data are fitted again with that gain set right, and the
suspicions of the fit are asked of that: only what stays is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynid.estimate import identify
from dynid.findings import Finding
from dynid.validate.gains import Gain, corrected, drive_gains
from dynid.validate.reconstruct import reconstruct
from dynid.validate.residual_tests import ResidualTests, residual_tests
from dynid.validate.suspicions.case import Case, Suspicion, each, suspect
from dynid.validate.words import joint_label, listed

_OFF = 0.1  # from one, against the other joints
_DEVIATIONS = 5.0
_EXPLAINS = 0.6  # share of the misfit between joints that a wrong gain has to remove
_AGREED, _SURE = 0.3, 0.8  # the same, where the nominal model agrees, and where something speaks against it
_RIVAL = 0.95  # share of the best gain's improvement from which another joint may be the one that is wrong
_NOMINAL_OFF = 1.5  # times, against the nominal model: those are often wrong by tens of percent themselves
_ALIKE = 0.3  # spread of the gains of all joints, over their mean, below which one factor explains them
_METHOD = "wls"  # of the second fit: it works on the factors alone and is fast


@dataclass(frozen=True)
class Refit:
    """What the data were fitted again with: the torque of one joint divided by a gain. method: of the second fit."""

    joint: str
    gain: float
    method: str = _METHOD

    def to_dict(self) -> dict[str, Any]:
        return {"joint": self.joint, "gain": self.gain, "method": self.method}


def with_gains_set_right(case: Case) -> tuple[list[Finding], Case, Refit | None]:
    """Findings of wrong drive gains, the case with the worst of them set right, and what that was fitted again with.

    Without a wrong gain the case is returned as it is and nothing is fitted.
    """
    wrong = wrong_gain(case.gains, case.tests)
    if wrong is None:
        return [], case, None
    j, gain = wrong
    refitted = refit_with_gain(case, j, gain)
    second = wrong_gain(refitted.gains, refitted.tests)
    found = [_gain_finding(case.gains, j)]
    if second is not None and second[0] != j:
        found.append(_gain_finding(refitted.gains, second[0]))
    return found, refitted, Refit(case.gains[j].joint, gain)


def refit_with_gain(case: Case, j: int, gain: float) -> Case:
    """The case with joint j's torque divided by its gain, identified anew by weighted least squares.

    Estimate, reconstruction, residual tests and gains are those of the second fit; what is known of the excitation and
    of other logs stays.
    """
    scale = np.ones(case.problem.model.dof)
    scale[j] = 1.0 / gain
    samples = tuple(replace(part, tau=part.tau * scale) for part in case.reconstruction.samples)
    problem = corrected(case.problem, j, gain)
    estimate = identify(problem, method=_METHOD)
    problem = replace(problem, data=samples)
    reconstruction = reconstruct(estimate, samples)
    return replace(case, problem=problem, estimate=estimate, reconstruction=reconstruction,
                   tests=residual_tests(reconstruction), gains=drive_gains(problem, estimate))


def wrong_gain(gains: Sequence[Gain], tests: ResidualTests) -> tuple[int, float] | None:
    """The joint (from 0) whose torque most likely has the wrong scale against the others, and that scale.

    A wrong scale leaves the joint's own equations intact and the nominal model's gravity sees it too. Where they speak
    against it, it takes more to blame the gain, where the nominal model agrees, less.
    """
    found: list[tuple[float, int, float]] = []
    for j, (gain, test) in enumerate(zip(gains, tests.joints, strict=True)):
        if gain.gain is None or gain.std is None:
            continue
        off, nominal, needed = gain.gain - 1.0, gain.by_nominal, _EXPLAINS
        if nominal is not None and 0.5 < (nominal - 1.0) / off < 2.0:
            needed = _AGREED
        elif test.explained_by is not None or (nominal is not None and abs(nominal - 1.0) < 0.5 * abs(off)):
            needed = _SURE
        if gain.improvement > needed and abs(off) > max(_OFF, _DEVIATIONS * gain.std):
            found.append((gain.improvement, j, gain.gain))
    return max(found)[1:] if found else None


def nominal_gains(case: Case) -> Iterator[Finding]:
    """Torques far from what the nominal model's gravity asks for, by one factor that explains them."""
    known = [(gain.joint, gain.by_nominal) for gain in case.gains if gain.by_nominal is not None]
    off = [(joint, value) for joint, value in known if not 1.0 / _NOMINAL_OFF < value < _NOMINAL_OFF]
    sizes = np.array([value for _, value in off])
    if len(off) > 1 and len(off) == len(known) and np.ptp(sizes) < _ALIKE * abs(float(sizes.mean())):
        yield suspect("torque-unit", "drive gain", "torques",
                      f"all torques are about {sizes.mean():.3g} times those of the nominal model: check their unit "
                      f"and {'sign' if sizes[0] < 0 else 'gear ratios'}", joints=[joint for joint, _ in off],
                      evidence={"nominal": each(sizes)})
        return
    for joint, value in off:
        who, evidence = joint_label(joint), {"nominal": value}
        if value < 0:
            yield suspect("torque-sign", "torque sign", who,
                          f"the torque of {who} has the opposite sign of the nominal model's", joints=[joint],
                          evidence=evidence)
        else:
            yield suspect("drive-gain", "drive gain", who,
                          f"the drive gain of {who} looks wrong: its torque is {value:.3g} times that of the nominal "
                          "model", joints=[joint], evidence=evidence)


def _gain_finding(gains: Sequence[Gain], j: int) -> Finding:
    """The finding for a joint whose torque has the wrong scale."""
    gain = gains[j]
    who, value, std = joint_label(gain.joint), gain.gain or 1.0, gain.std or 0.0
    # With two joints sharing everything, one too large is the other too small.
    rivals = [g.joint for g in gains if g is not gain and g.gain is not None
              and g.improvement > _RIVAL * gain.improvement]
    evidence = {"gain": value, "std": std, "improvement": gain.improvement}
    if gain.by_nominal is not None:
        evidence["nominal"] = gain.by_nominal
    if value < 0:
        return suspect("torque-sign", "torque sign", who,
                       f"the torque of {who} has the wrong sign: the other joints' torques say the opposite",
                       joints=[gain.joint], evidence=evidence)
    alternative = f" (or that of {listed([joint_label(rival) for rival in rivals])} by the inverse)" if rivals else ""
    nominal = f"; the nominal model says {gain.nominal:.2f}" if gain.by_nominal is not None else ""
    return suspect("drive-gain", "drive gain", who,
                   f"the drive gain of {who} looks wrong: its torque is {value:.2f} +- {std:.1g} times what the other "
                   f"joints' torques imply{alternative}{nominal}", joints=[gain.joint], evidence=evidence)


SUSPICIONS = (Suspicion("fit", nominal_gains),)
