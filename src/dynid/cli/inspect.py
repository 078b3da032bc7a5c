"""`dynid inspect`: the structure of a robot, its base parameters, and problems with its inertias."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dynid.cli.options import FixedBase, Lock, LogAssignments, Only, RobotName, three_numbers, words
from dynid.cli.output import Json, console, print_json, show_progress


class Terms(StrEnum):
    default = "default"
    own = "own"
    none = "none"


class Decomposition(StrEnum):
    qr = "qr"
    svd = "svd"


class Order(StrEnum):
    body = "body"
    mass_first = "mass-first"


def command(
    robot: RobotName,
    friction: Annotated[str, typer.Option(metavar="KIND,...", show_default=False,
                                          help="Friction terms of every joint, comma-separated: viscous, "
                                               "coulomb, offset, ...")] = "",
    rotor: Annotated[bool, typer.Option("--rotor", help="Include the reflected rotor inertia of every joint.")] = False,
    terms: Annotated[Terms, typer.Option(help="Terms that the robot file lists, in addition to --friction and "
                                              "--rotor. own: always; none: never; default: only if motors couple "
                                              "several joints.")] = Terms.default,
    gravity: Annotated[str, typer.Option(metavar="X,Y,Z", show_default=False,
                                         help="Gravity in the base frame, m/s^2. Default: that of the robot.")] = "",
    order: Annotated[Order, typer.Option(help="Grouping priority of base parameters: body by body, or "
                                              "all masses, then moments, then inertias.")] = Order.body,
    base: Annotated[Decomposition, typer.Option(help="Compute base parameters by a QR factorisation or by singular "
                                                     "values; both give the same torques.")] = Decomposition.qr,
    only: Only = "",
    lock: Lock = None,
    fixed_base: FixedBase = None,
    log: Annotated[list[Path] | None, typer.Option("--log", metavar="LOG", show_default=False,
                                                   help="Show the signals of a log, and remarks on how the log was "
                                                        "read; may be repeated.")] = None,
    mapping: Annotated[Path | None, typer.Option(show_default=False,
                                                 help="TOML file with a \\[log] table that specifies how to "
                                                      "read the logs.")] = None,
    assignments: LogAssignments = None,
    json: Json = False,
) -> None:
    """Show a robot's tree, limits and base parameters, problems with its inertias, and the signals of its logs."""
    from dynid.cli.robot_tables import print_inspection, print_log_signals
    from dynid.robot import Robot
    from dynid.runs.arguments import lock_table, log_changes
    from dynid.runs.consistency_check import inspect_logs, inspect_robot
    from dynid.runs.models import reduced_robot

    machine = reduced_robot(Robot.load(robot, fixed_base=fixed_base), words(only), lock_table(lock or []))
    down = three_numbers(gravity, "--gravity")
    if down is not None:
        machine = machine.with_gravity(down)
    with show_progress("inspect"):
        facts = inspect_robot(machine, words(friction), rotor, own_terms=terms.value,
                              mass_first=order is Order.mass_first, by=base.value)
        facts["logs"] = inspect_logs(machine, log or [], mapping, log_changes(assignments or []))
    if json:
        print_json(facts)
    else:
        print_inspection(facts, console())
        print_log_signals(facts["logs"], console())
