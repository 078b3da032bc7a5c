"""Figures of simionato-extraction: equal torques and different reaction forces of the extracted sets."""

from __future__ import annotations

from typing import Any

from dynid.report.drawing import Drawing
from reproductions.figures.panels import by_joint

# Sets by their numbers: feasible ones beside one with impossible inertias, one with centres outside, one with both.
FORCES = {"arm3r": ("p_4", "p_8", "p_1", "p_12", "p_9"), "arm3r, friction": ("p_16", "p_20", "p_13", "p_24", "p_21"),
          "kuka-lwr4": ("p_28", "p_25", "p_36", "p_33"), "kuka-lwr4, friction": ("p_40", "p_37", "p_48", "p_45")}
WHERE = {"arm3r": ("5.4", "5.6"), "arm3r, friction": ("5.10", "5.12"), "kuka-lwr4": ("", "5.16"),
         "kuka-lwr4, friction": ("", "5.19")}


def figures(result: dict[str, Any]) -> list[Drawing]:
    found = []
    for case, one in result["robots"].items():
        curves, (torques, forces) = one["curves"], WHERE[case]
        if torques:
            found.append(Drawing(f"{case}: torques of every set", f"figure {torques}: torques of all six sets lie on "
                                 "the true ones.", by_joint(curves["t"], curves["torques"], "time, s", "torque, N m")))
        why = {row["set"]: row["ours"] for row in one["sets"].values()}
        shown = {"true": curves["forces"]["true"],
                 **{f"{name} ({why[name]})": curves["forces"][name] for name in FORCES[case]}}
        found.append(Drawing(f"{case}: forces inside", f"figure {forces}: forces through the joints of feasible sets "
                             "are near the true ones, those of sets with centres of mass outside the links are not, "
                             "most in the first joints.",
                             by_joint(curves["t"], shown, "time, s", "force, N")))
    return found
