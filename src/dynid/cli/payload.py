"""`dynid payload`: estimation of the load on a robot's flange, and values for its controller."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dynid.cli.options import LogAssignments, OtherMapping, Start, Stop, Trust, deviating
from dynid.cli.output import Json, console, print_json, print_outputs, saved, show_progress
from dynid.errors import known_name

if TYPE_CHECKING:
    from dynid.runs.payload_result import FoundPayload


def command(
    result: Annotated[Path, typer.Argument(metavar="RESULT", show_default=False,
                                           help="Result folder of `dynid identify -o` without the load.")],
    logs: Annotated[list[str], typer.Argument(metavar="LOADED_LOG...", show_default=False,
                                              help="Logs of the robot with the load.")],
    frame: Annotated[str, typer.Option(metavar="FRAME", show_default="the flange, or the last link",
                                       help="Frame (link name) to which the load is attached.")] = "",
    method: Annotated[str, typer.Option(metavar="METHOD", show_default="together",
                                     help="residual, difference, same-motion, together (robot and load estimated "
                                          "jointly), sensor (force-torque sensor), both (torques and sensor).")] = "",
    mass: Annotated[str, typer.Option(metavar="KG[+-STD]", show_default=False,
                                      help="Mass of the load, if it was weighed, kg.")] = "",
    gain_std: Annotated[float | None, typer.Option(metavar="SHARE", show_default="of the log, or 0.08",
                                                         help="Relative standard deviation of the drive "
                                                              "gains.")] = None,
    unloaded: Annotated[list[str] | None, typer.Option("--unloaded", metavar="LOG", show_default=False,
                                                       help="For same-motion: a log of the same motion without load.")]
    = None,
    inconsistent: Annotated[bool, typer.Option("--inconsistent", help="Do not require the estimated payload to be "
                                                                      "physically consistent.")] = False,
    mapping: OtherMapping = None,
    assignments: LogAssignments = None,
    start: Start = None,
    stop: Stop = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", show_default=False,
                                                help="Folder for the payload and its report.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier payload in the output folder.")] = False,
    trust: Trust = False,
    json: Json = False,
) -> None:
    """Estimate mass, centre of mass and inertia of the load on a robot, and the values to enter into its controller."""
    from dynid.files import free_paths
    from dynid.runs.arguments import log_changes, log_table
    from dynid.runs.payload_result import FILES, METHODS, PayloadOptions, find_payload, save_payload

    chosen = known_name(method, METHODS, "payload method") if method else None
    options = PayloadOptions(frame or None, chosen, deviating(mass, "--mass"), gain_std,
                             not inconsistent, tuple(unloaded or ()), trust)
    if output is not None:
        free_paths(output, FILES, force)
    given = {"log": log_table(mapping, start, stop), "log_changes": log_changes(assignments or [])}
    with show_progress("payload") as progress:
        found = find_payload(result, logs, options, given, progress)
        written = saved(save_payload, found, output, force, progress)
    if json:
        print_json({**found.to_dict(), "outputs": written})
    else:
        _print(found, written)


def _print(found: FoundPayload, written: dict[str, str]) -> None:
    """Print the load with confidence intervals, the sources of its standard error, findings and controller values."""
    from dynid.cli.tables import payload_errors, payload_table

    to, body = console(), found.payload
    to.print(payload_table(body, f"on {body.frame} of {found.robot.name}, method: {body.method}"))
    if body.has_mass:
        to.print("Standard error of the mass from " + ", ".join(
            f"{source} {body.mass_std_from(source):.2g}" for source in body.parts) + " kg.", markup=False)
    to.print(payload_errors(body))
    for note in found.notes:
        to.print(f"- {note}", markup=False)
    for finding in body.findings:
        to.print(f"- {finding.text}", markup=False)
    for one in found.entries:
        to.print(f"{one.maker}: {one.text}", markup=False, soft_wrap=True)
        if one.unverified:
            to.print(f"   not verified: {one.unverified}", markup=False)
    print_outputs(written)
