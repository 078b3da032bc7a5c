"""Overview of the motion: a headline, key numbers and remarks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dynid.report.pages.motion.data import MotionData, used
from dynid.report.section import Card, Section
from dynid.report.words import GOOD, number, percent, seconds


def gather(data: MotionData) -> Mapping[str, Any]:
    found = data.excitation
    way = "" if found.trajectory is found.core else \
        f", {seconds(found.trajectory.duration)} including the approach from and to home"
    ends = "interrupted: best motion found so far" if found.interrupted else (
        f"inside the joint limits, {data.unchecked}" if data.unchecked else "inside all limits")
    return {"headline": f"{data.robot.name} moves for {seconds(found.core.duration)}{way}: {ends}.",
            "cards": cards(data), "notes": data.notes}


def cards(data: MotionData) -> list[Card]:
    """Return the key numbers of a motion, as cards of the report."""
    found = data.excitation
    known = np.isfinite(data.relative)
    shown = [Card(found.criterion if found.criterion != "condition" else "condition number", number(found.value, 4),
                  f"the criterion, from {found.starts} starts in {seconds(found.elapsed)}" if found.starts else
                  "of the unscaled base regressor; the motion was not optimised")]
    if found.criterion != "condition" or abs(found.value / found.condition - 1.0) > 1e-6:
        shown.append(Card("condition number", number(found.condition, 4), "of the unscaled base regressor"))
    if known.any():
        shown.append(Card("median standard error", percent(float(np.median(data.relative))),
                          "median expected standard error of the base parameters"))
        shown.append(Card("well determined", f"{int(np.sum(data.relative < GOOD))} of {len(known)}",
                          f"base parameters with an expected standard error below {percent(GOOD)}"))
    tight = max((u for u in found.report.usages if used(u) is not None), key=lambda u: u.excess, default=None)
    if tight is not None:
        shown.append(Card("closest limit", f"{used(tight):.1f} %", f"{tight.kind} of {tight.where}"))
    return shown


SECTION = Section("overview", "Overview", gather)
