"""Detection of a mobile base: whether a robot seems to walk."""

from __future__ import annotations

import re

from dynid.robot.robot import BASE, Robot

_LEG = re.compile(r"(?:^|[^a-z])(?:leg|foot|feet|ankle|knee|thigh|calf|shank|hip|haa|hfe|kfe)(?:[^a-z]|$)")
_LEG_JOINTS = 3  # of a chain that may be a leg


def base_warnings(robot: Robot) -> tuple[str, ...]:
    """Return a warning if the robot seems to walk, because its base is treated as fixed; otherwise none.

    A robot seems to walk if two chains of at least three joints with names of legs start at the base, or four chains of
    any name.
    """
    if robot.has_free_base:
        return ()
    chains: dict[int, list[str]] = {}
    first: list[int] = []
    for i, joint in enumerate(robot.joints):
        first.append(i if joint.parent == BASE else first[joint.parent])
        chains.setdefault(first[i], []).extend((joint.name, robot.bodies[i].name))
    long = [names for names in chains.values() if len(names) >= 2 * _LEG_JOINTS]
    legs = [names for names in long if any(_LEG.search(name.lower()) for name in names)]
    if len(legs) < 2 and len(long) < 4:
        return ()
    return (f"The base '{robot.base}' carries {len(long)} chains of joints, as on a legged machine. The base is "
            "assumed to be fixed to the ground, so use logs in which it was clamped, or --floating-base",)
