"""`dynid gains`: estimation of the torque per current of every drive."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dynid.cli.options import Cutoff, LogAssignments, RobotName, deviating, numbers, words
from dynid.cli.output import Json, console, print_json, show_progress, table
from dynid.quantities import percent_text


def command(
    robot: RobotName,
    logs: Annotated[list[str], typer.Argument(metavar="LOG...", show_default=False,
                                              help="Logs with motor currents, without load.")],
    mapping: Annotated[Path | None, typer.Option(help="TOML file with a \\[log] table: columns of current, and of "
                                                      "target_torque and target_current if logged.",
                                                 show_default=False)] = None,
    assignments: LogAssignments = None,
    loaded: Annotated[list[str] | None, typer.Option("--loaded", metavar="LOG", show_default=False,
                                                     help="A log with a known load; may be repeated.")] = None,
    mass: Annotated[str, typer.Option(metavar="KG[+-STD]", show_default=False,
                                      help="Mass of the known load, kg.")] = "",
    centre: Annotated[str, typer.Option(metavar="X,Y,Z", show_default=False,
                                        help="Centre of mass of the load in the frame of --frame, m.")] = "",
    inertia: Annotated[str, typer.Option(metavar="XX,XY,XZ,YY,YZ,ZZ", show_default="none (point mass)",
                                         help="Inertia of the load about its centre of mass, kg m^2.")] = "",
    frame: Annotated[str, typer.Option(metavar="FRAME", show_default="the flange, or the last link",
                                       help="Frame to which the load is attached.")] = "",
    friction: Annotated[str, typer.Option(metavar="KIND,...", help="Friction terms of every joint, comma-separated.")]
    = "viscous,coulomb,offset",
    cutoff: Cutoff = None,
    json: Json = False,
) -> None:
    """Estimate drive gains with standard errors, from the controller's targets in a log or with a known load."""
    from dynid.runs.arguments import log_changes, log_table
    from dynid.runs.drive_gains import find_gains
    from dynid.runs.models import make_robot
    from dynid.runs.settings import PayloadSettings, RunSettings

    log = log_table(mapping) | log_changes(assignments or [])
    settings = RunSettings.from_values({"robot": robot, "logs": logs, "log": log,
                                        "model": {"friction": words(friction)},
                                        "prepare": {} if cutoff is None else {"cutoff": cutoff}}, "gains")
    load = PayloadSettings.model_validate({
        "frame": frame or None, "mass": deviating(mass, "--mass"), "centre": numbers(centre, "--centre", "X,Y,Z"),
        "inertia": numbers(inertia, "--inertia", "XX,XY,XZ,YY,YZ,ZZ")})
    with show_progress("gains") as progress:
        found = find_gains(settings, make_robot(settings), load, loaded or [], progress)
    if json:
        print_json(found.to_dict())
        return
    to = console()
    for one in found.gains:
        rows = [(name, f"{value:.5g}" if yes else "-", f"{percent_text(100 * share)}" if yes else "-",
                 "" if yes else f"not identifiable: {one.reasons[name]}")
                for name, value, share, yes in zip(one.joints, one.values, one.relative_std, one.identified,
                                                   strict=True)]
        head = ["joint", "torque per current", "standard error", ""]
        to.print(table(head, rows, numbers=head[1:3], title=one.method))
    for finding in found.findings:
        to.print(f"- {finding.text}", markup=False)
