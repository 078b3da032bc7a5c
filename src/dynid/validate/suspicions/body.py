"""Checks of the identified robot as a physical system: inconsistent links, and a free fall that gains energy."""

from __future__ import annotations

from collections.abc import Iterator

from dynid.findings import Finding
from dynid.validate.suspicions.case import Case, Suspicion, each, suspect
from dynid.validate.words import listed

CONDITION_TOLERANCE = 1e-9  # kg, kg m^2 or N m s: a condition broken by less is not broken


def impossible_links(case: Case) -> Iterator[Finding]:
    """Report links, friction or rotors that are not physically consistent, if all parameters are given."""
    wrong = [] if case.physics is None else [one for one in case.physics.violations if one.amount > CONDITION_TOLERANCE]
    if wrong:
        names = list(dict.fromkeys(one.link for one in wrong))
        yield suspect("impossible-links", "impossible links", listed(names),
                      f"{listed(names, 6)} {'is' if len(names) == 1 else 'are'} not physically "
                      f"consistent ({wrong[0].message}): a simulator may refuse the robot or become "
                      "unstable; use --method pc-wls", parameters=names,
                      evidence={"amount": each([one.amount for one in wrong])})


def energy_grows(case: Case) -> Iterator[Finding]:
    """Report a robot that gains energy, or diverges, in free fall without torques."""
    fall = None if case.physics is None else case.physics.fall
    if fall is not None and not fall.stable:
        yield suspect("energy-grows", "free fall", "robot",
                      f"released without joint torques, the identified robot does not conserve energy: {fall.sentence}",
                      evidence={"energy_growth": fall.growth, "energy_in_play": fall.in_play,
                                "seconds": float(fall.t[-1])})


SUSPICIONS = (Suspicion("transfer", impossible_links), Suspicion("transfer", energy_grows))
