"""`dynid fleet`: comparison of robots of one type: which differ, in which parameters, and since when."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dynid.cli.options import Scheduler, Tls, Trust, tls_files
from dynid.cli.output import Json, console, print_json, print_outputs, show_progress, table, typed_command
from dynid.cli.screen import Screen
from dynid.errors import DynidError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dynid.fleet.result import FleetResult
    from dynid.fleet.robot_scatter import Differs

_SHOWN_JOINTS = 10  # joints in the table of cross-prediction
_SHOWN_ROBOTS = 4
_DIFFERS: tuple[Differs, Differs] = ("robots", "motions")


def command(
    source: Annotated[Path, typer.Argument(metavar="FLEET.toml", show_default=False,
                                           help="Fleet file (TOML) with the robots and their logs.")],
    output: Annotated[Path | None, typer.Option("-o", "--output", show_default=False,
                                                help="Folder for pages, numbers and compressed logs. "
                                                     "Default: write nothing.")] = None,
    update: Annotated[bool, typer.Option("--update", help="Add new logs to the result in the output folder: only new "
                                                          "logs are read, and logs whose files were deleted still "
                                                          "count.")] = False,
    workers: Annotated[int | None, typer.Option(min=1, show_default="one per core", help="Processes to read "
                                                                                       "and compress logs.")] = None,
    scheduler: Scheduler = None,
    tls: Tls = "",
    trust: Trust = False,
    json: Json = False,
) -> None:
    """Compare many robots of one type from all their logs: which differ, in which parameters, and since when."""
    from dynid.fleet.run import FleetOptions, run_fleet
    from dynid.fleet.save import FOLDS, check_fleet_output, save_fleet
    from dynid.fleet.settings import FleetSettings
    from dynid.workers import Workers

    if update and output is None:
        raise DynidError("--update adds logs to an earlier result, so name the folder of that result: -o FOLDER")
    settings = FleetSettings.load(source, trust=trust)
    if output is not None:
        check_fleet_output(output, update)
    options = FleetOptions(None if output is None else output / FOLDS, Workers(workers, scheduler, tls_files(tls)),
                           update)
    with show_progress("fleet") as progress:
        result = run_fleet(settings, options, progress)
        written = {}
        if output is not None:
            progress("writing the results")
            written = save_fleet(result, output, typed_command())
    if json:
        print_json({**result.to_dict(), "outputs": written})
    else:
        print_fleet(result, written)


def print_fleet(result: FleetResult, written: Mapping[str, str]) -> None:
    """Print the robots that differ and how, the cross-prediction table of a small fleet, and the written files."""
    screen = Screen(console())
    logs, failures = result.folded.entries, result.folded.failures
    screen.print(f"{len(result.robots)} robots of type {result.robot.name}, {len(logs)} logs, {result.folded.read} "
                 f"newly read, {len(failures)} not used")
    if len(result.cross.robots) in range(2, _SHOWN_ROBOTS + 1):
        errors = result.cross.between()
        head = ["model of", "on logs of", *result.cross.joints[:_SHOWN_JOINTS]]
        rows = [[one, other, *(f"{x:.1f}" for x in errors[i, j][:_SHOWN_JOINTS])]
                for i, one in enumerate(result.cross.robots) for j, other in enumerate(result.cross.robots)]
        screen.print(table(head, rows, numbers=head[2:], title="relative error, %"))
    names = result.out.pooling.base.names
    differing, moving = (result.scatter.named(what, names) for what in _DIFFERS)
    screen.print("differ between robots: " + (", ".join(differing) if differing else "no parameters"))
    if moving or result.scatter.crossed is not None:
        screen.print("differ only between motions: " + (", ".join(moving) if moving else "no parameters"))
    sentences = [*result.sentences, *(f"not used: {one.reason}" for one in failures), *result.notes]
    shown = screen.print_what_fits(sentences, spare=len(written) + 2)
    if shown < len(sentences):
        screen.print(f"and {len(sentences) - shown} more; -o FOLDER writes a page with all of them")
    if not result.sentences:
        screen.print("no robot differs significantly, and none changed")
    print_outputs(written)
