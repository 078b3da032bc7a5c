"""`dynid contact`: detection of external forces on a robot, with time, link and size of each contact."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynid.cli.options import LogAssignments, OtherMapping, ResultFolder, Start, Stop, Trust, numbers
from dynid.cli.output import Json, console, print_json, print_outputs, saved, show_progress, table
from dynid.errors import DynidError, known_name

if TYPE_CHECKING:
    from dynid.contacts import ContactLog
    from dynid.runs.contact_result import FoundContacts

MAX_CONTACTS_PRINTED = 12  # contacts printed per log


def command(
    result: ResultFolder,
    logs: Annotated[list[str], typer.Argument(metavar="LOG...", show_default=False,
                                              help="Logs in which the robot may have been touched.")],
    frame: Annotated[str, typer.Option(metavar="FRAME", show_default="the flange, or the last link",
                                       help="Frame (link name) at which wrenches are estimated.")] = "",
    axes: Annotated[str, typer.Option(metavar="FRAME", show_default="the base",
                                      help="Frame in whose axes wrenches are expressed.")] = "",
    free: Annotated[list[str] | None, typer.Option("--free", metavar="LOG", show_default="the logs of the result",
                                                   help="A log without contact; may be repeated.")] = None,
    method: Annotated[str, typer.Option(metavar="METHOD", show_default="momentum",
                                     help="momentum: momentum observer; inverse: filtered inverse dynamics.")] = "",
    window: Annotated[float, typer.Option(
        metavar="SECONDS", help="Length of the filter, s: a longer filter has less noise and more delay.")] = 0.03,
    prior: Annotated[str, typer.Option(metavar="N,N m", help="Prior standard deviations of forces (N) "
                                                             "and moments (N m).")] = "100,20",
    alarms: Annotated[float, typer.Option(metavar="RATE", help="Accepted number of false alarms per hour.")] = 1.0,
    mapping: OtherMapping = None,
    assignments: LogAssignments = None,
    start: Start = None,
    stop: Stop = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", show_default=False,
                                                help="Folder for contacts, wrenches over time and the report.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace earlier contacts in the output folder.")] = False,
    trust: Trust = False,
    json: Json = False,
) -> None:
    """Detect external forces: time, link and size of each contact, and whether it is a payload."""
    from dynid.contacts.observer import OBSERVER_METHODS
    from dynid.files import free_paths
    from dynid.runs.arguments import log_changes, log_table
    from dynid.runs.contact_result import ContactOptions, contact_files, contacts_of_result, save_contacts

    both = numbers(prior, "--prior") or []
    if len(both) != 2:
        raise DynidError("--prior takes two standard deviations, of forces in N and of moments in N m, such as "
                         f"100,20, got '{prior}'")
    chosen = known_name(method or OBSERVER_METHODS[0], OBSERVER_METHODS, "method for external forces")
    options = ContactOptions(frame or None, axes or None, tuple(free or ()), chosen, window, (both[0], both[1]), alarms,
                             trust)
    if output is not None:
        free_paths(output, contact_files(len(logs)), force)
    given = {"log": log_table(mapping, start, stop), "log_changes": log_changes(assignments or [])}
    with show_progress("contact") as progress:
        found = contacts_of_result(result, logs, options, given, progress)
        written = saved(save_contacts, found, output, force, progress)
    if json:
        print_json({**found.to_dict(), "outputs": written})
    else:
        _print(found, written)


def _print(found: FoundContacts, written: dict[str, str]) -> None:
    """Print the contacts of each log with their kinds, and the findings."""
    to, free = console(), found.outside.free
    to.print(f"Calibrated on {free.seconds:.3g} s of free motion. Detection threshold: {free.alarms:g} false "
             f"alarm{'s' * (free.alarms != 1.0)} per hour expected (statistic above {free.level:.0f}). Detection "
             f"delay: {1000.0 * found.logs[0].delay:.0f} ms.")
    for log in found.logs:
        to.print(_table(log) if log.contacts else f"{log.source}: no contact detected.", markup=False)
        for finding in (*log.findings, *(one.finding for one in log.contacts[:MAX_CONTACTS_PRINTED])):
            to.print(f"- {finding.text}", markup=False)
    print_outputs(written)


def _table(log: ContactLog) -> Any:
    head = ["from, s", "to, s", "link", "force x, N", "force y, N", "force z, N", "kind"]
    rows = [(f"{one.start:.3f}", f"{one.stop:.3f}", one.link,
             *(f"{value:.1f} +- {std:.1f}" for value, std in zip(one.link_wrench[:3], one.link_std[:3], strict=True)),
             one.finding.title) for one in log.contacts[:MAX_CONTACTS_PRINTED]]
    more = "" if len(log.contacts) <= MAX_CONTACTS_PRINTED else f", the first {MAX_CONTACTS_PRINTED}"
    many = f"{len(log.contacts)} contact{'s' * (len(log.contacts) > 1)}{more}"
    title = f"{log.source}: {many}, forces at the frame of the link in base axes"
    return table(head, rows, numbers=head[:2] + head[3:6], title=title)
