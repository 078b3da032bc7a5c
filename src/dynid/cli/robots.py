"""`dynid robots`: the built-in robots."""

from __future__ import annotations

from dynid.cli.output import Json, console, print_json, table
from dynid.output_fields import array_of, record

_LISTED_ROBOT = record("ListedRobot", name=str, dof=int, joints=list[str], inertias=bool, terms=list[str], source=str)
OUTPUT = record("Robots", robots=array_of(_LISTED_ROBOT))


def command(json: Json = False) -> None:
    """List the built-in robots and those of plugins."""
    from dynid.plugins import plugin_names
    from dynid.robot import Robot
    from dynid.robot.robot_files import builtin_names

    names = [*builtin_names(), *(name for name in plugin_names("dynid.robots") if name not in builtin_names())]

    robots = [
        {"name": robot.name, "dof": robot.dof,
         "joints": [joint.kind for joint in robot.joints],
         "inertias": not robot.bodies_without_inertia,
         "terms": [term["kind"] for term in robot.terms],
         "source": robot.source}
        for robot in map(Robot.load, names)
    ]
    if json:
        print_json({"robots": robots})
        return
    print_table = console().print
    print_table(table(["robot", "dof", "inertias", "from"],
                      [(r["name"], r["dof"], "given" if r["inertias"] else "none", r["source"]) for r in robots],
                      numbers=["dof"]))
    print_table("Use a name wherever a command asks for ROBOT: dynid inspect kuka-lwr4")
