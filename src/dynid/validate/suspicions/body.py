"""Checks of the identified robot as a physical system: inconsistent links, and a free fall that gains energy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dynid.findings import Evidence, Finding
from dynid.validate.physical import FreeFall
from dynid.validate.suspicions.case import Case, Suspicion, each, suspect
from dynid.validate.words import listed

CONDITION_TOLERANCE = 1e-9  # kg, kg m^2 or N m s: tolerance of a condition


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
    """Report a robot that gains energy, or diverges, in free fall without torques. It is a remark if friction at speeds
    above those of the log is the reason."""
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


SUSPICIONS = (Suspicion("transfer", impossible_links), Suspicion("transfer", energy_grows))
