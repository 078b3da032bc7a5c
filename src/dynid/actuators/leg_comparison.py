"""Findings on joints with the same role on several legs whose armature or friction differs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from dynid.actuators.estimate import ActuatorValue
from dynid.findings import Finding

_LEG_SIGMAS = 3.0  # standard errors of a difference between equal joints
_LEG_CHANGE = 0.2  # relative difference between equal joints
_SIDE_WORDS = {"fl", "fr", "rl", "rr", "hl", "hr", "bl", "br", "lf", "rf", "lh", "rh", "left", "right", "l", "r",
               "front", "rear", "back", "hind", "middle"}


def role(name: str) -> str:
    """Return the name of a joint without the words for its side and corner, which corresponding joints share."""
    words = [word for word in re.findall(r"[a-z]+|\d+", re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower())]
    return "_".join(word for word in words if word not in _SIDE_WORDS)


def unequal_joints(parameters: Sequence[ActuatorValue]) -> list[Finding]:
    """Return findings on joints with the same role on several legs whose armature or friction differs."""
    groups: dict[tuple[str, str], list[ActuatorValue]] = defaultdict(list)
    for one in parameters:
        if one.identified and not one.is_given and one.name in ("armature", "coulomb", "viscous"):
            groups[role(one.joint), one.name].append(one)
    found = []
    for (name, parameter), group in groups.items():
        pairs = [(abs(a.value - b.value) / max(np.hypot(a.std, b.std), 1e-300), a, b) for a, b in combinations(group, 2)
                 if abs(a.value - b.value) > _LEG_CHANGE * max(abs(a.value), abs(b.value))]
        if not pairs or max(pairs, key=lambda one: one[0])[0] < _LEG_SIGMAS:
            continue
        low, high = min(group, key=lambda one: one.value), max(group, key=lambda one: one.value)
        listed = ", ".join(f"{one.joint} {one.value:.3g}" for one in group)
        text = (f"{parameter} of the {name} joints differs beyond the intervals: {listed} {group[0].unit}. The largest "
                f"is {high.joint}, the smallest {low.joint}.")
        found.append(Finding("unequal-joints", "suspicious", "info", text, "unequal joints",
                             tuple(one.joint for one in group), (parameter,),
                             evidence={"values": tuple(one.value for one in group),
                                       "std": tuple(one.std for one in group)}))
    return found
