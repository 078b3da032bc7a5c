"""`dynid demo`: what can be identified on a built-in robot, in words."""

from __future__ import annotations

from dynid.cli.output import Json, console, print_json

ROBOT = "kuka-lwr4"
FRICTION = ("viscous", "coulomb", "offset")


def command(json: Json = False) -> None:
    """Show what can be identified on a built-in robot."""
    from dynid.cli.inspect import look_at, verdict
    from dynid.robot import Robot

    facts = look_at(Robot.builtin(ROBOT), FRICTION)
    if json:
        print_json(facts)
        return
    seen = {how: [one["name"] for one in facts["parameters"] if one["seen"] == how]
            for how in ("alone", "combined", "never")}
    longest = max(facts["base_parameters"], key=lambda one: len(one["expression"]))
    to = console()
    for sentence in (
        f"The built-in robot {ROBOT} has {facts['dof']} joints. Its masses, moments, inertias and friction "
        f"({', '.join(FRICTION)}) are {len(facts['parameters'])} parameters.",
        f"Its torques can tell {facts['base_count']} combinations of them, the base parameters:",
        f"  - {len(seen['alone'])} parameters can be identified alone: {_some(seen['alone'])}",
        f"  - {len(seen['combined'])} only in sums with others, such as {longest['name']} = {longest['expression']}",
        f"  - {len(seen['never'])} never show in the torques, whatever the motion: {_some(seen['never'])}",
        *verdict(facts),
        f"See all of it with: dynid inspect {ROBOT} --friction {','.join(FRICTION)}",
    ):
        to.print(sentence, markup=False)


def _some(names: list[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")
