"""HTML representation of a robot for notebooks."""

from __future__ import annotations

from dynid.html_tables import card, paragraph, table
from dynid.robot.robot import Robot

_CARD_HEADER = ("joint", "kind", "lower, rad or m", "upper", "velocity, 1/s", "effort, N m or N", "body", "mass, kg")


def robot_card(robot: Robot) -> str:
    """Return the HTML of a robot: one row per joint."""
    rows = []
    for joint, body in zip(robot.joints, robot.bodies, strict=True):
        limits = (f"{value:.4g}" for value in (joint.lower, joint.upper, joint.velocity, joint.effort))
        mass = "" if body.inertia is None else f"{body.inertia[9]:.4g}"
        rows.append((joint.name, joint.kind, *limits, body.name, mass))
    gravity = ", ".join(f"{part:g}" for part in robot.gravity)
    return card(repr(robot)[1:-1], table(_CARD_HEADER, rows, words=(0, 1, 6)),
                paragraph(f"Gravity {gravity} m/s². {robot.source}"), *map(paragraph, robot.warnings))
