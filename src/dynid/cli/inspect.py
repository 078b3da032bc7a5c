"""`dynid inspect`: the structure of a robot, its base parameters, and problems with its inertias."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from dynid.cli.options import (
    FixedBase,
    Friction,
    Lock,
    LogAssignments,
    LogMapping,
    Only,
    RobotName,
    Rotor,
    load_robot,
    numbers,
    words,
)
from dynid.cli.output import Json, console, print_json, show_progress

Terms = Literal["default", "own", "none"]
Decomposition = Literal["qr", "svd"]
Order = Literal["body", "mass-first"]


def command(
    robot: RobotName,
    friction: Friction = "",
    rotor: Rotor = False,
    terms: Annotated[Terms, typer.Option(help="Whether to use the terms that the robot file lists, in addition to "
                                              "--friction and --rotor. own: always; none: never; default: only if a "
                                              "motor drives several joints.")] = "default",
    gravity: Annotated[str, typer.Option(metavar="X,Y,Z", show_default=False,
                                         help="Gravity in the base frame, m/s^2. Default: that of the robot.")] = "",
    order: Annotated[Order, typer.Option(help="Order in which parameters become base parameters: body by body, or all "
                                              "masses, then first moments, then inertias.")] = "body",
    base: Annotated[Decomposition, typer.Option(help="Compute base parameters by a QR factorisation or by singular "
                                                     "values; both give the same torques.")] = "qr",
    only: Only = "",
    lock: Lock = None,
    fixed_base: FixedBase = None,
    log: Annotated[list[Path] | None, typer.Option("--log", metavar="LOG", show_default=False,
                                                   help="Show the signals of a log, and remarks on how the log was "
                                                        "read; may be repeated.")] = None,
    mapping: LogMapping = None,
    assignments: LogAssignments = None,
    json: Json = False,
) -> None:
    """Show a robot's tree, limits and base parameters, problems with its inertias, and the signals of its logs."""
    from dynid.cli.robot_tables import print_inspection, print_log_signals
    from dynid.runs.arguments import log_changes
    from dynid.runs.consistency_check import inspect_logs, inspect_robot

    machine = load_robot(robot, only, lock, fixed_base)
    down = numbers(gravity, "--gravity", "X,Y,Z")
    if down is not None:
        machine = machine.with_gravity(down)
    with show_progress("inspect"):
        facts = inspect_robot(machine, words(friction), rotor, own_terms=terms,
                              mass_first=order == "mass-first", by=base)
        facts["logs"] = inspect_logs(machine, log or [], mapping, log_changes(assignments or []))
    if json:
        print_json(facts)
    else:
        print_inspection(facts, console())
        print_log_signals(facts["logs"], console())
